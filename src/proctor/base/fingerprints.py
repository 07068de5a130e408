"""Fingerprints of code: they change when an agent or an evaluator changes, so that stored results are not reused.

Two things decide how code behaves: its source, and the values that it has captured.

The source of a function is not only its own file. `source_fingerprint` follows the import statements of that file to
every file of the user's project that it needs. Taking the modules that happen to be loaded from the same folder would
be simpler, but then the fingerprint would change when a second suite from that folder is loaded. Installed packages
are left out: they change with their version, and are large.

`captured_values` walks what a function or an object holds: closures, defaults, arguments of partials, attributes.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import enum
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from proctor.base.errors import is_user_file
from proctor.base.json_data import fingerprint, to_json
from proctor.base.python_source import parse_python

MAX_DEPTH = 8
"""How many levels of captured values are followed."""


def source_fingerprint(target: Any) -> str:
    """Hash of the file of a function, a class or an object, and of the files of the project that it imports."""
    while isinstance(target, functools.partial):
        target = target.func
    kind = target if isinstance(target, type) or hasattr(target, "__code__") else type(target)
    file = _file_of(kind)
    if file is None:
        files: list[Path] = []
    else:
        files = sorted(imported_files(file)) if is_user_file(str(file)) else [file]
    return fingerprint(getattr(kind, "__qualname__", repr(kind)), [[path.name, _digest(path)] for path in files])


def _file_of(kind: Any) -> Path | None:
    """The file of the module that defines a function or a class."""
    file = getattr(sys.modules.get(getattr(kind, "__module__", "") or ""), "__file__", None)
    return None if file is None else Path(file)


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest() if path.is_file() else ""


def imported_files(file: Path) -> set[Path]:
    """The file, and all of the user's files that it imports, directly or through others."""
    files, waiting = {file}, [file]
    while waiting:
        more = {path for path in _imports_of(waiting.pop(), file.parent) if is_user_file(str(path))} - files
        files |= more
        waiting += more
    return files


def _imports_of(file: Path, top: Path) -> Iterator[Path]:
    """The files that the import statements of `file` name; `top` is the folder of the file where the search began."""
    try:
        tree = parse_python(file)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of_import(alias.name, [top, file.parent])
        elif isinstance(node, ast.ImportFrom):
            # `from a import b` may import the module a.b, and `from . import b` the module b of this package.
            start = [] if node.module is None else [node.module]
            names = [*start, *(".".join([*start, alias.name]) for alias in node.names)]
            is_relative = 0 < node.level <= len(file.parents)
            for name in names:
                yield from (
                    _files_below(file.parents[node.level - 1], name)
                    if is_relative
                    else _files_of_import(name, [top, file.parent])
                )


def _files_of_import(name: str, folders: list[Path]) -> list[Path]:
    """The files that `import name` runs: those next to the importing file first, as when it is executed."""
    for folder in folders:
        if files := _files_below(folder, name):
            return files
    root = name.partition(".")[0]
    if root in sys.stdlib_module_names:
        return []
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return []
    if spec is None or spec.origin is None or not is_user_file(spec.origin):
        return []
    origin = Path(spec.origin)
    return _files_below(origin.parent.parent if spec.submodule_search_locations else origin.parent, name)


def _files_below(folder: Path, name: str) -> list[Path]:
    """The files of a dotted module name below a folder: each package's `__init__.py` and the module itself."""
    path, files = folder, []
    for part in name.split("."):
        path = path / part
        files += [file for file in (path / "__init__.py", path.with_name(f"{part}.py")) if file.is_file()]
    return files


def captured_values(target: Any) -> tuple[Any, tuple[str, ...]]:
    """What distinguishes two things with the same source, and the names of the parts that cannot be compared.

    A function has its closure, its defaults and the arguments of a partial; a method the object it is bound to; an
    object its attributes. Objects of libraries, such as clients and locks, cannot be compared.
    """
    unknown: list[str] = []
    return _Capture(unknown).of(target), tuple(unknown)


class _Capture:
    """Walks the values that a function or an object holds; `unknown` collects those that cannot be compared."""

    def __init__(self, unknown: list[str]) -> None:
        self._unknown = unknown
        self._visited: dict[int, Any] = {}
        """By identity; holding the objects keeps their identities from being used again."""

    def of(self, target: Any, name: str = "it", depth: int = 0) -> Any:
        if target is None or isinstance(target, (str, int, float, bytes, enum.Enum, Path, datetime.date)):
            return to_json(target)
        if depth > MAX_DEPTH:
            return self._give_up(target, name)
        if id(target) in self._visited:
            return "seen"
        self._visited[id(target)] = target
        if isinstance(target, (list, tuple, set, frozenset)):
            items = [self.of(item, f"{name}[{index}]", depth + 1) for index, item in enumerate(target)]
            return items if isinstance(target, (list, tuple)) else sorted(items, key=repr)
        if isinstance(target, Mapping):
            return {str(key): self.of(item, str(key), depth + 1) for key, item in target.items()}
        if isinstance(target, ModuleType):
            return target.__name__
        return self._of_code(target, name, depth)

    def _of_code(self, target: Any, name: str, depth: int) -> Any:
        parts: dict[str, Any]
        if isinstance(target, type):
            return source_fingerprint(target)
        if isinstance(target, functools.partial):
            parts = {"function": target.func, "args": target.args, "keywords": target.keywords}
        elif isinstance(target, MethodType):
            parts = {"function": target.__func__, "object": target.__self__}
        elif isinstance(target, FunctionType):
            cells = zip(target.__code__.co_freevars, target.__closure__ or (), strict=True)
            parts = {key: cell.cell_contents for key, cell in cells if cell_has_value(cell)}
            parts |= {"defaults": target.__defaults__, "keyword defaults": target.__kwdefaults__}
        elif dataclasses.is_dataclass(target) or _is_user_class(type(target)):
            parts = _attributes(target)
        else:
            return self._give_up(target, name)
        return [source_fingerprint(target), self.of({key: value for key, value in parts.items() if value}, name, depth)]

    def _give_up(self, target: Any, name: str) -> Any:
        kind = type(target)
        self._unknown.append(f"{name} ({kind.__module__}.{kind.__qualname__})")
        return None


def _attributes(target: Any) -> dict[str, Any]:
    slots = [name for kind in type(target).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(target, name)]
    return {**{name: getattr(target, name) for name in slots}, **getattr(target, "__dict__", {})}


def cell_has_value(cell: CellType) -> bool:
    """Whether the variable behind a cell of a closure has a value."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _is_user_class(kind: type) -> bool:
    file = _file_of(kind)
    return file is not None and is_user_file(str(file))
