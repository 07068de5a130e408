"""Looks at Python files without running them: what a reference names, and which files a file imports."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
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
    try:
        return name in sys.modules or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def imported_files(file: Path) -> set[Path]:
    """The file and, as far as import statements name them, those of its folder that it needs, at any remove."""
    found, waiting = {file}, [file]
    while waiting:
        further = set(_imports(waiting.pop(), file.parent)) - found
        found |= further
        waiting += further
    return found


def _imports(file: Path, top: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            above = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else None
            start = "" if node.module is None else f"{node.module}."
            names = [node.module or "", *(start + name for name in names)]
            folders = [above] if above is not None else [top, file.parent]
        else:
            folders = [top, file.parent]
        for name in filter(None, names):
            for folder in folders:
                place = folder.joinpath(*name.split("."))
                yield from (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())
