"""One reader per file format, found by what a file contains and not only by its name.

A format is a module or package with `NAME`, `DECLARED` (a `Declaration`: its endings, keys, file names and hooks),
`recognises(path, data) -> bool`, `read(document) -> list[Suite]` and `write(suites, ending) -> Written`. The shipped
ones are listed in `loading.SHIPPED`; others come through the entry-point group `proctor.formats`. What is imported with
a format's own module stays light: readers and writers are imported when they are called.
"""
