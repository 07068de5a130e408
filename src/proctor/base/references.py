"""Resolves `file.py:name` and `package.module:name`, the only way in which a file may name code to run.

Each file is executed once per process and registered in `sys.modules`, so that its state is shared by everything that
names it and its dataclasses and pydantic models resolve their annotations.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import datetime
import enum
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

from proctor.base.errors import UsageError

_LOADING = threading.RLock()
_DEEPEST = 8
_UNLOADED: contextvars.ContextVar[bool] = contextvars.ContextVar("references are not loaded", default=False)


def is_reference(text: str) -> bool:
    """Whether `text` has the shape `somewhere:name`, and is not a URL or a Windows drive."""
    where, colon, name = text.rpartition(":")
    return bool(colon) and len(where) > 1 and name.replace(".", "_").isidentifier() and not where.endswith(":")


def resolve(reference: str, base: Path | None = None) -> Any:
    """The object that `reference` names; relative files are looked up beside `base`, then in the working folder."""
    where, _, name = reference.rpartition(":")
    if not where or not name:
        raise UsageError(f"{reference!r} is not a reference; write file.py:name or package.module:name")
    if _UNLOADED.get():
        return _found(reference, where, name, base)
    module = load_file(find_file(where, base)) if where.endswith(".py") else _import(where, base, reference)
    target: Any = module
    for part in name.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            names = sorted(n for n in dir(target) if not n.startswith("_"))
            owner = where if target is module else repr(name.rpartition(f".{part}")[0])
            raise UsageError(f"{reference!r}: {owner} has no {part!r}{_nearest(part, names)}") from None
        except Exception as error:
            raise UsageError(f"{reference!r} could not be found: {describe(error)}") from error
    return target


@contextlib.contextmanager
def without_loading() -> Iterator[None]:
    """While this lasts, references are looked for and none is loaded: no code of the user runs."""
    token = _UNLOADED.set(True)
    try:
        yield
    finally:
        _UNLOADED.reset(token)


def _found(reference: str, where: str, name: str, base: Path | None) -> Any:
    """A stand-in for what the reference names, if its file is there and seems to define it."""
    from proctor.base.unexecuted import file_of_module, names_in, stand_in

    if where.endswith(".py"):
        path: Path | None = find_file(where, base)
    else:
        try:
            path = file_of_module(where, _folders(base))
        except UsageError as error:
            raise UsageError(f"{reference!r}: {error}") from None
    names = None if path is None else names_in(path)
    first = name.partition(".")[0]
    if names is not None and first not in names:
        raise UsageError(f"{reference!r}: {where} has no {first!r}{_nearest(first, sorted(names))}")
    return stand_in(name.rpartition(".")[2])


def find_file(where: str, base: Path | None) -> Path:
    """The file a reference means; says where it looked when there is none."""
    path = Path(where).expanduser()
    tried = [path] if path.is_absolute() else [folder / path for folder in _folders(base)]
    for candidate in tried:
        if candidate.is_file():
            return candidate.resolve()
    raise UsageError(f"no file {where!r}; looked for " + ", ".join(str(candidate) for candidate in tried))


class _FromSource(SourceFileLoader):
    """Compiles the file as it is now: cached bytecode is told apart by second and size, and an edit can keep both."""

    def path_stats(self, path: str) -> Any:
        raise OSError(f"the bytecode of {path} is not used")


def load_file(path: Path) -> ModuleType:
    """Execute a Python file once and keep it; later calls get the same module."""
    name = f"_proctor_{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()}"
    with _LOADING:
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, path, loader=_FromSource(name, str(path)))
        if spec is None or spec.loader is None:
            raise UsageError(f"{path} cannot be loaded as Python")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with _siblings_of(path.parent):
                spec.loader.exec_module(module)
        except BaseException as error:
            sys.modules.pop(name, None)
            if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
                raise
            raise UsageError(f"{path}{_line_of(error, path)} could not be loaded: {describe(error)}") from error
        return module


_OWN: dict[Path, dict[str, ModuleType]] = {}
"""By folder: the modules that files there imported from beside them."""


@contextlib.contextmanager
def _siblings_of(folder: Path) -> Iterator[None]:
    """While a file of `folder` is executed, `import tools` means the `tools` beside it, and not another suite's."""
    mine = _OWN.setdefault(folder, {})
    for modules in _OWN.values():
        for name, module in modules.items():
            if modules is not mine and sys.modules.get(name) is module and _is_beside(folder, name):
                del sys.modules[name]
    sys.modules.update(mine)
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        mine.update({name: found for name, found in _loaded_below(folder).items() if not name.startswith("_proctor_")})


def _is_beside(folder: Path, name: str) -> bool:
    top = name.partition(".")[0]
    return (folder / f"{top}.py").is_file() or (folder / top).is_dir()


def describe(error: BaseException) -> str:
    """An exception in one line: its kind and what it says; its own `__str__` may be broken, slow or endless."""
    text = " ".join(shortened(_text_of(error)).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


LONGEST_REASON = 100_000


def shortened(text: str) -> str:
    """The text, or what begins and ends one that is too long to be kept or shown."""
    if len(text) <= LONGEST_REASON:
        return text
    half = LONGEST_REASON // 2
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters left out) … {text[-half:]}"


_TEXT_SECONDS = 1.0
_SIMPLE = (str, int, float, bool, type(None))


def _text_of(error: BaseException) -> str:
    """What an exception says; code of the user's that says it runs apart, for a second at most."""
    own = type(error).__str__
    if not hasattr(own, "__code__") and all(type(item) in _SIMPLE for item in error.args):
        try:
            return str(error)
        except Exception:
            return ""
    said: list[str] = []

    def say() -> None:
        with contextlib.suppress(BaseException):
            said.append(str(error))

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    thread.join(_TEXT_SECONDS)
    return said[0] if said else ""


def place_of(error: BaseException) -> str:
    """Where in the user's own code an exception came from: ` (app.py:12)`; empty where it came from elsewhere."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_users_file(file):
            place = f" ({Path(file).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


def is_users_file(file: str) -> bool:
    """Whether code in a file is the user's own, and not Proctor's, Python's or an installed package's."""
    own = str(Path(__file__).parents[1])
    return not file.startswith((own, "<", sys.base_prefix)) and "site-packages" not in file


def source_fingerprint(target: Any) -> str:
    """Changes when the code behind `target` changes: its own file, and what that imported from beside or below it."""
    return _fingerprint(target, lambda file: {file, *_files_below(file.parent)})


def configuration(target: Any) -> tuple[Any, tuple[str, ...]]:
    """What tells two things of the same code apart, and the parts that cannot be compared.

    A function has its closure, its defaults and the arguments of a partial; a method the object it is bound to; an
    object its attributes. Objects of libraries, such as clients and locks, have no form that could be compared.
    """
    unknown: list[str] = []
    return _Configuration(unknown).of(target), tuple(unknown)


class _Configuration:
    """Walks the values that a function or an object holds; `unknown` collects those without a form."""

    def __init__(self, unknown: list[str]) -> None:
        self._unknown = unknown
        self._seen: dict[int, Any] = {}
        """By identity; holding the objects keeps an identity from being given to another one."""

    def of(self, target: Any, name: str = "it", depth: int = 0) -> Any:
        from proctor.base.json_data import plain

        if target is None or isinstance(target, (str, int, float, bytes, enum.Enum, Path, datetime.date)):
            return plain(target)
        if depth > _DEEPEST:
            return self._give_up(target, name)
        if id(target) in self._seen:
            return "seen"
        self._seen[id(target)] = target
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
            held = zip(target.__code__.co_freevars, target.__closure__ or (), strict=True)
            parts = {key: cell.cell_contents for key, cell in held if is_filled(cell)}
            parts |= {"defaults": target.__defaults__, "keyword defaults": target.__kwdefaults__}
        elif is_own_code(type(target)) or dataclasses.is_dataclass(target):
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


def is_filled(cell: Any) -> bool:
    """Whether the variable behind a cell of a closure is set."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def is_own_code(kind: type) -> bool:
    """Whether a class is of the user's project: neither installed nor part of Python."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    installed = ("site-packages", "dist-packages", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return file is not None and not any(part in installed for part in Path(file).parts)


def own_source_fingerprint(target: Any) -> str:
    """Changes when the file of `target` changes, or a file beside or below it that this one imports.

    Unlike `source_fingerprint` it leaves out what else is loaded from the folder: an evaluator that stands beside the
    agent is still the same one when the agent changes.
    """
    from proctor.base.unexecuted import imported_files

    return _fingerprint(target, imported_files)


def _fingerprint(target: Any, files_of: Callable[[Path], set[Path]]) -> str:
    """The name of a function or a class, and the content of the files that its own file makes count."""
    from proctor.base.json_data import fingerprint

    while isinstance(target, functools.partial):
        target = target.func
    kind = target if isinstance(target, type) or hasattr(target, "__code__") else type(target)
    file = getattr(sys.modules.get(getattr(kind, "__module__", "") or ""), "__file__", None)
    files = [] if file is None else sorted(files_of(Path(file)))
    return fingerprint(getattr(kind, "__qualname__", repr(kind)), [[path.name, _digest(path)] for path in files])


def _files_below(folder: Path) -> list[Path]:
    """The loaded modules of a project's own folder; an installed package changes only with its version."""
    if "site-packages" in folder.parts or "dist-packages" in folder.parts:
        return []
    paths = [Path(str(module.__file__)) for module in _loaded_below(folder).values()]
    return [path for path in paths if path.suffix == ".py" and not _is_test(path.relative_to(folder))]


def _is_test(path: Path) -> bool:
    """Tests examine an agent and are no part of it, wherever pytest has loaded them from."""
    name = path.name
    return name.startswith(("test_", "conftest.")) or name.endswith("_test.py") or "tests" in path.parts[:-1]


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest() if path.is_file() else ""


def _loaded_below(folder: Path) -> dict[str, ModuleType]:
    """The modules of a folder, by name; paths are compared as text, since thousands of modules may be loaded."""
    below = str(folder).rstrip(os.sep) + os.sep
    loaded = list(sys.modules.items())
    return {name: module for name, module in loaded if str(getattr(module, "__file__", None)).startswith(below)}


def _folders(base: Path | None) -> list[Path]:
    folders = [] if base is None else [base]
    return folders + [folder for folder in (Path.cwd(),) if folder not in folders]


def _import(where: str, base: Path | None, reference: str) -> ModuleType:
    """A module by name; one that stands beside the suite is meant before any other of that name."""
    for folder in _folders(base):
        if "." not in where and (folder / f"{where}.py").is_file():
            return load_file((folder / f"{where}.py").resolve())
    for folder in reversed(_folders(base)):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    try:
        return importlib.import_module(where)
    except Exception as error:
        raise UsageError(f"{reference!r}: module {where} could not be imported: {describe(error)}") from error


def _line_of(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f":{line}" if line else ""


def _nearest(name: str, names: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def is_stand_in(target: Any) -> bool:
    """Whether this only stands for what a reference names."""
    return getattr(target, "is_stand_in", False) is True
