"""One reader per file format, found by what a file contains and not only by its name.

A format is a module with `NAME`, `recognises(path, data) -> bool`, `read(document) -> list[Suite]` and, where the
format can be written, `write(suites) -> Written`. Shipped ones are listed in `loading`; others come through the
entry-point group `proctor.formats`.
"""
