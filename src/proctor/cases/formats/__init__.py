"""One reader per file format, found by what a file contains and not only by its name.

Paths come in and suites go out (`loading.load`); the command line, the pytest plugin and the Python interface call it.
A format is a module or package with `NAME`, `DECLARED` (a `Declaration`: its endings, keys and file names),
`recognises(path, data) -> bool`, `read(document) -> list[Suite]` and `write(suites, ending) -> Written`. The shipped
ones are listed in `loading.SHIPPED`; others come through the entry-point group `proctor.formats`.
"""
