"""Functions and objects of the user's code: their source text, what reports call them, and how a file names them.

A lambda has no name, and its line may hold several. So its text is found by code positions: every instruction knows
the columns that it was compiled from, and together they span exactly the expression. `inspect.getsource` returns whole
lines.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
from pathlib import Path
from types import CodeType, MethodType
from typing import Any

from proctor.base.errors import is_user_file

LAMBDA = "<lambda>"
MAX_TITLE = 80
"""How many characters of a lambda are shown."""


def innermost(target: Any) -> Any:
    """The function or object inside partials, methods and wrappers."""
    while True:
        if isinstance(target, functools.partial):
            target = target.func
        elif isinstance(target, MethodType):
            target = target.__func__
        elif inspect.isfunction(target) and hasattr(target, "__wrapped__"):
            target = inspect.unwrap(target)
        else:
            return target


def title_of(target: Any) -> str:
    """What reports call a function, a class or an object: a lambda by its own text, an object by its class."""
    target = innermost(target)
    if inspect.isfunction(target) and target.__name__ == LAMBDA:
        text = lambda_text(target.__code__) or LAMBDA
        return text if len(text) <= MAX_TITLE else f"{text[: MAX_TITLE - 1]}…"
    return str(getattr(target, "__name__", None) or type(target).__name__)


def lambda_text(code: CodeType) -> str:
    """The expression of a lambda on one line, or nothing if its source is not known."""
    lines = _lines(code)
    places = [
        (line, column, end_line, end_column)
        for line, end_line, column, end_column in code.co_positions()
        if line is not None and end_line is not None and column is not None and end_column is not None
        # The instruction that starts a function has the place 0 to 0 of its first line.
        if (line, column) != (end_line, end_column)
    ]
    if not lines or not places:
        return ""
    (line, column), (end_line, end_column) = min(p[:2] for p in places), max(p[2:] for p in places)
    if not 0 < line <= end_line <= len(lines):
        return ""
    part = [text.encode() for text in lines[line - 1 : end_line]]  # columns count bytes
    part[-1] = part[-1][:end_column]
    part[0] = part[0][column:]
    return " ".join(b"".join(part).decode(errors="replace").split())


def source_of(function: Any) -> str | None:
    """The source text of a function, or `None` if it is not known, as with `python -c`."""
    code: CodeType = function.__code__
    if function.__name__ == LAMBDA:
        text = lambda_text(code)
        return f"{', '.join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])}: {text}" if text else None
    lines = _lines(code)
    if not 0 < code.co_firstlineno <= len(lines):
        return None
    try:
        block = inspect.getblock(lines[code.co_firstlineno - 1 :])
    except (SyntaxError, IndentationError):
        return None
    return inspect.cleandoc("\n" + "".join(block))


def _lines(code: CodeType) -> list[str]:
    """The lines of the file or notebook cell of a function; empty if there are none."""
    return linecache.getlines(code.co_filename)


def reference_of(target: Any) -> str | None:
    """`file.py:name` of a function, a class or an object that its module has under its own name; else `None`.

    Files below the working folder are named from there.
    """
    name, module = getattr(target, "__qualname__", None), sys.modules.get(getattr(target, "__module__", None) or "")
    if not isinstance(name, str) or "<" in name or module is None:
        return None
    owner: Any = module
    for part in name.split("."):
        owner = getattr(owner, part, None)
    file = getattr(module, "__file__", None)
    if owner is not target or file is None:
        return None
    if not is_user_file(file):
        return f"{module.__name__}:{name}"
    path = Path(file).resolve()
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{name}"


def is_in_notebook(target: Any) -> bool:
    """Whether a function was defined in a cell of a notebook, or at a prompt."""
    module = sys.modules.get(getattr(innermost(target), "__module__", None) or "")
    return module is not None and module.__name__ == "__main__" and not hasattr(module, "__file__")
