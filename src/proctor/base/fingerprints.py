"""Fingerprints of code: they change when an agent or an evaluator changes, so that stored results are not reused.

Two things decide how code behaves: its source, and the values that it has captured.

The source of a function is not only its own file. `source_fingerprint` follows the import statements of that file to
every file of the user's project that it needs. Taking the modules that happen to be loaded from the same folder would
be simpler, but then the fingerprint would change when a second suite from that folder is loaded. Installed packages
are left out: they change with their version, and are large.

`captured_values` walks what a function or an object holds: closures, defaults, arguments of partials, attributes.

`code_fingerprint` is for evaluators, and for anything without a file, such as a cell of a notebook. It follows a single
function: its text, what it holds, and the functions, classes and values of its module that it names. So an evaluator
stays the same when the agent next to it is edited, and becomes another one when its cell runs again with another body.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime
import enum
import functools
import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from proctor.base.errors import is_user_file
from proctor.base.functions import source_of
from proctor.base.json_data import fingerprint, to_json
from proctor.base.python_source import parse_python, parse_source

MAX_DEPTH = 8
"""How many levels of captured values are followed."""


def source_fingerprint(target: Any) -> str:
    """Hash of the file of a function, a class or an object, and of the files of the project that it imports."""
    while isinstance(target, functools.partial):
        target = target.func
    kind = target if isinstance(target, type) or hasattr(target, "__code__") else type(target)
    file, name = _file_of(kind), getattr(kind, "__qualname__", repr(kind))
    if file is None:
        return fingerprint(name, code_fingerprint(kind))
    files = sorted(imported_files(file)) if is_user_file(str(file)) else [file]
    # Several functions of a file may be called `<lambda>`, or like a function inside another one.
    own = [source_of(kind)] if isinstance(kind, FunctionType) and "<" in name else []
    return fingerprint(name, [[path.name, _digest(path)] for path in files], *own)


def code_fingerprint(target: Any) -> str:
    """Hash of a function, a class or an object: its own code and values, and what it uses of its module."""
    return fingerprint(_CodeWalk().of(target))


class _CodeWalk:
    """Describes code as plain data. Code of the same module is followed; another file of the user's counts whole."""

    def __init__(self) -> None:
        self._visited: dict[int, Any] = {}
        self._files: dict[str | None, Any] = {}

    def of(self, target: Any, home: str | None = None) -> Any:
        """The description of a value; `home` is the file of the code that uses it."""
        if target is None or isinstance(target, (str, int, float, bytes, enum.Enum, Path, datetime.date)):
            return to_json(target)
        if isinstance(target, re.Pattern):
            return [str(target.pattern), target.flags]
        if id(target) in self._visited:
            return "seen"
        self._visited[id(target)] = target
        if isinstance(target, (list, tuple)):
            return [self.of(item, home) for item in target]
        if isinstance(target, (set, frozenset)):
            return sorted([self.of(item, home) for item in target], key=repr)
        if isinstance(target, Mapping):
            return {str(key): self.of(item, home) for key, item in target.items()}
        if isinstance(target, ModuleType):
            return self._of_file(target.__file__ if hasattr(target, "__file__") else None) or target.__name__
        if isinstance(target, functools.partial):
            return [self.of(target.func, home), self.of(target.args, home), self.of(target.keywords, home)]
        if isinstance(target, MethodType):
            return [self.of(target.__func__, home), self.of(target.__self__, home)]
        if isinstance(target, (staticmethod, classmethod)):
            return self.of(target.__func__, home)
        if isinstance(target, property):
            return [self.of(part, home) for part in (target.fget, target.fset)]
        return self._of_code(target, home)

    def _of_code(self, target: Any, home: str | None) -> Any:
        if isinstance(target, FunctionType):
            file: str | None = target.__code__.co_filename
            return self._elsewhere(target, file, home) or self._of_function(target, file)
        kind = target if isinstance(target, type) else type(target)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if file is not None and not is_user_file(file):
            return kind.__qualname__  # of a library
        described = self._elsewhere(kind, file, home) or self._of_class(kind, file)
        return described if isinstance(target, type) else [described, self.of(_attributes(target), file)]

    def _elsewhere(self, target: Any, file: str | None, home: str | None) -> Any:
        """The description of code of another file than `home`; nothing if it is the same one."""
        if home is None or file == home or file is None or file.startswith("<"):
            return None
        whole = self._of_file(file)
        return [target.__qualname__, whole] if whole else None if _has_no_file(file) else target.__qualname__

    def _of_file(self, file: str | None) -> Any:
        if file not in self._files:
            is_users = file is not None and is_user_file(file) and Path(file).is_file()
            files = sorted(imported_files(Path(file))) if is_users and file is not None else []
            self._files[file] = [[path.name, _digest(path)] for path in files]
        return self._files[file]

    def _of_function(self, function: FunctionType, file: str | None) -> Any:
        function = inspect.unwrap(function)
        code = function.__code__
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        names = sorted(_names_in(code) & function.__globals__.keys())
        source = source_of(function)
        return [
            source or _compiled(code),
            [self._of_file(str(path)) for path in sorted(_files_imported_in(source or "", file))],
            self.of(function.__defaults__, file),
            self.of(function.__kwdefaults__, file),
            {name: self.of(cell.cell_contents, file) for name, cell in cells if cell_has_value(cell)},
            {name: self.of(function.__globals__[name], file) for name in names},
        ]

    def _of_class(self, kind: type, file: str | None) -> Any:
        bases = [self.of(base, file) for base in kind.__bases__ if base is not object]
        # Names with two underscores are Python's own, except methods that can be written: `__call__`.
        members = {
            name: value
            for name, value in vars(kind).items()
            if isinstance(value, FunctionType) or not name.startswith("__")
        }
        return [kind.__qualname__, bases, {name: self.of(members[name], file) for name in sorted(members)}]


def _files_imported_in(source: str, file: str | None) -> set[Path]:
    """The user's files that import statements inside a function name."""
    if file is None or "import " not in source:
        return set()
    try:
        tree = parse_source(source)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return {path for path in _files_named_by(tree, Path(file), Path(file).parent) if is_user_file(str(path))}


def _has_no_file(file: str) -> bool:
    """Whether code comes from a cell of a notebook or another text that is not a file."""
    return not Path(file).is_file() or "ipykernel" in file


def _names_in(code: CodeType) -> set[str]:
    """The names that a function uses, also inside nested functions; attributes are among them."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names


def _compiled(code: CodeType) -> Any:
    """The compiled code, for a function whose source is not known."""
    constants = [_compiled(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts]
    return [code.co_code.hex(), constants, list(code.co_names), list(code.co_varnames)]


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
    yield from _files_named_by(tree, file, top)


def _files_named_by(tree: ast.AST, file: Path, top: Path) -> Iterator[Path]:
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
