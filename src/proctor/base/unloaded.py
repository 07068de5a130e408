"""Looks for what a reference names without running its file, so that a suite can be checked and nothing is executed."""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proctor.base.errors import UsageError


def stand_in(name: str) -> Any:
    """Stands for a function that was found and not loaded: it takes anything, and what a factory gives is the same."""

    def found(*args: Any, **kwargs: Any) -> Any:
        return found

    found.__name__ = found.__qualname__ = name
    found.is_stand_in = True  # type: ignore[attr-defined]
    return found


def names_in(path: Path) -> set[str] | None:
    """The names that a Python file defines at its top level; `None` where only running it would tell."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise UsageError(f"{path}{line} could not be loaded: {type(error).__name__}: {error}") from None
    names: set[str] = set()
    for node in _top_level(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(item.asname or item.name).partition(".")[0] for item in node.names}
        else:
            names |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return None if "*" in names or "__getattr__" in names or "globals" in names else names


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run in the module itself: also those inside `if`, `try`, `with` and loops."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody", "handlers"):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = getattr(node, field, [])
                yield from _top_level([part for item in inner for part in getattr(item, "body", [item])])


def file_of_module(name: str, folders: list[Path]) -> Path | None:
    """The source of a module, found without importing it or its packages; `None` where it has none."""
    places: Any = [*map(str, folders), *sys.path]
    spec = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:count]), places)
        if spec is None:
            break
        places = spec.submodule_search_locations or []
    if spec is None:
        if parts[0] in sys.builtin_module_names or parts[0] in sys.stdlib_module_names or _is_hooked(parts[0]):
            return None
        raise UsageError(f"module {name} could not be found")
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def _is_hooked(name: str) -> bool:
    """Whether an installed package is found in a way of its own, as editable installs are."""
    import importlib.util

    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
