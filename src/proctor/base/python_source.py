"""Reads the syntax tree of Python files.

`ast.parse` counts its depth in a variable that all threads share (until Python 3.13), and raises `SystemError` if two
threads parse at the same time. Runs may be started from several threads, so they take turns here.
"""

from __future__ import annotations

import ast
import threading
from pathlib import Path

_PARSING = threading.Lock()


def parse_python(path: Path) -> ast.Module:
    """The syntax tree of a file; raises what `ast.parse` and reading the file raise."""
    source = path.read_bytes()
    with _PARSING:
        return ast.parse(source)
