"""Reads the syntax tree of Python files.

`ast.parse` counts its depth in a variable that all threads share (until Python 3.13), and raises `SystemError` if two
threads parse at the same time. Runs may be started from several threads, so a lock makes them take turns.
"""

from __future__ import annotations

import ast
import threading
from pathlib import Path

_PARSE_LOCK = threading.Lock()


def parse_python(path: Path) -> ast.Module:
    """The syntax tree of a file; raises what `ast.parse` and reading the file raise."""
    return parse_source(path.read_bytes())


def parse_source(source: str | bytes) -> ast.Module:
    """The syntax tree of Python code; raises what `ast.parse` raises."""
    with _PARSE_LOCK:
        return ast.parse(source)
