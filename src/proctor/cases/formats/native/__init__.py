"""Proctor's own format: YAML or JSON with `cases`, or JSON Lines with one case a line.

A parsed document comes in and one `Suite` goes out (`read`), or suites come in and text goes out (`write`). The loader
of suites is the caller; `editing` changes cases in a file that exists, for `proctor approve`.
"""

from proctor.cases.formats.native.declaration import DECLARED, recognises, write
from proctor.cases.formats.native.json_lines import LINES
from proctor.cases.formats.native.reader import NAME
from proctor.cases.formats.native.reader import read_document as read

__all__ = ["DECLARED", "LINES", "NAME", "read", "recognises", "write"]
