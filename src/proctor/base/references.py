"""Finds and loads code by reference: `file.py:name` or `package.module:name`, as suites and settings write it.

`locate` finds the file and checks that it defines the name, by reading it. Validation uses only that: checking a suite
must not run any code of it. `resolve` loads the object.

Each file is executed once per process, so that all references to it share its state, and is registered in
`sys.modules`, so that its dataclasses and pydantic models can resolve their annotations. Python itself would do this
under the name of the file, but two suites in two folders may both have a `tools.py`. So a file that is loaded by its
path gets a unique module name, and while it is executed, `import tools` means the file next to it.

A file with relative imports (`from .help import X`) is part of a package: of the folders above it that have an
`__init__.py`, and of as many as its imports go up. It is loaded as a module of that package, with its own name, so that
relative and absolute imports find the same modules. If another package has this name, an installed one or that of
another suite, the package gets a unique name instead.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from proctor.base.documents import did_you_mean
from proctor.base.errors import UsageError, one_line
from proctor.base.installation import pip_command
from proctor.base.python_source import parse_python

_LOAD_LOCK = threading.RLock()


def is_reference(text: str) -> bool:
    """Whether `text` has the shape `somewhere:name`, and is not a URL or a Windows drive."""
    where, colon, name = text.rpartition(":")
    return bool(colon) and len(where) > 1 and name.replace(".", "_").isidentifier() and not where.endswith(":")


def locate(reference: str, base: Path | None = None) -> Path | None:
    """The file of a reference, found without running any code.

    Raises `UsageError` if there is no such file or module, or if the file does not define the name. Returns `None` for
    a module without source code, such as a compiled one.
    """
    where, name = _split(reference)
    if where.endswith(".py"):
        path: Path | None = find_file(where, base)
    else:
        try:
            path = _file_of_module(where, _folders(base))
        except UsageError as error:
            raise UsageError(f"{reference!r}: {error}") from None
    names = None if path is None else names_defined_in(path)
    first = name.partition(".")[0]
    if names is not None and first not in names:
        raise UsageError(f"{reference!r}: {where} has no {first!r}{did_you_mean(first, sorted(names))}")
    return path


def resolve(reference: str, base: Path | None = None) -> Any:
    """The object that `reference` names; relative paths start at the folder `base`, then at the working folder."""
    where, name = _split(reference)
    module = load_file(find_file(where, base)) if where.endswith(".py") else _import(where, base, reference)
    target: Any = module
    for part in name.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            names = sorted(n for n in dir(target) if not n.startswith("_"))
            owner = where if target is module else repr(name.rpartition(f".{part}")[0])
            raise UsageError(f"{reference!r}: {owner} has no {part!r}{did_you_mean(part, names)}") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise UsageError(f"{reference!r} could not be found: {one_line(error)}") from error
    return target


def _split(reference: str) -> tuple[str, str]:
    where, _, name = reference.rpartition(":")
    if not where or not name:
        raise UsageError(f"{reference!r} is not a reference; write file.py:name or package.module:name")
    return where, name


def find_file(where: str, base: Path | None) -> Path:
    """The file with this path. Raises `UsageError` with the places where it was looked for."""
    path = Path(where).expanduser()
    candidates = [path] if path.is_absolute() else [folder / path for folder in _folders(base)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    near = [item.stem for place in candidates if place.parent.is_dir() for item in place.parent.glob("*.py")]
    hint = did_you_mean(path.stem, near).replace("'?", ".py'?")
    raise UsageError(f"no file {where!r}; looked for {', '.join(map(str, candidates))}{hint}")


def _folders(base: Path | None) -> list[Path]:
    folders = [] if base is None else [base]
    return folders + [folder for folder in (Path.cwd(),) if folder not in folders]


class _SourceLoader(SourceFileLoader):
    """Compiles the file as it is now. Cached bytecode is matched by second and size, and an edit can keep both."""

    def path_stats(self, path: str) -> Any:
        raise OSError(f"the bytecode of {path} is not used")


def load_file(path: Path) -> ModuleType:
    """The module of a Python file. The first call executes the file."""
    with _LOAD_LOCK:
        package = _package_of(path)
        if package is not None:
            return _load_from_package(path, package)
        name = _unique_name(path.stem, path)
        if name in sys.modules:
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path)))
        if spec is None or spec.loader is None:
            raise UsageError(f"{path} cannot be loaded as Python")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            with _siblings_of(path.parent):
                spec.loader.exec_module(module)
        except BaseException as error:
            sys.modules.pop(name, None)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise _not_loaded(path, error) from error
        return module


def _unique_name(stem: str, path: Path) -> str:
    return f"_proctor_{stem.replace('.', '_')}_{hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()}"


def _not_loaded(path: Path, error: BaseException) -> UsageError:
    hint = _import_hint(error) or _requirements_hint(path, error)
    return UsageError(f"{path}{_line_in(path, error)} could not be loaded: {one_line(error)}{hint}")


def _requirements_hint(path: Path, error: BaseException) -> str:
    """How to install what a file imports, if a module is missing and a requirements file lies beside it."""
    requirements = path.with_name("requirements.txt")
    if not isinstance(error, ImportError) or not requirements.is_file():
        return ""
    return f"; install what it needs: {pip_command('-r', str(requirements))}"


def _import_hint(error: BaseException) -> str:
    """What to write instead, if a module failed that was imported by its bare name and has relative imports."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if not isinstance(error, ImportError) or trace is None or trace.tb_frame.f_globals.get("__package__"):
        return ""
    file = Path(trace.tb_frame.f_code.co_filename)
    if not _relative_levels(file):
        return ""
    return f"; {file.name} has relative imports, so import it as a part of its package: from .{file.stem} import ..."


def _package_of(path: Path) -> list[Path] | None:
    """The folders of the package that a file belongs to, outermost first; `None` if it has no relative imports."""
    levels = _relative_levels(path)
    if not levels:
        return None
    folders: list[Path] = []
    folder = path.parent
    while len(folders) < levels or (folder / "__init__.py").is_file():
        if folder == folder.parent:
            raise UsageError(f"{path} could not be loaded: its relative imports go above the top folder")
        folders.insert(0, folder)
        folder = folder.parent
    return folders


def _relative_levels(path: Path) -> int:
    """How many folders the relative imports of a file go up, counted from 1 for its own folder; 0 without any."""
    try:
        nodes = ast.walk(parse_python(path))
        return max((node.level for node in nodes if isinstance(node, ast.ImportFrom)), default=0)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return 0  # loading it reports the problem


def _load_from_package(path: Path, folders: list[Path]) -> ModuleType:
    """The module of a file in a package. The first call executes the packages above it, and the file."""
    root = folders[0].parent
    top = _package_name(folders[0])
    parts = [top, *(folder.name for folder in folders[1:])]
    if path.stem == "__init__":
        *parts, stem = parts
    else:
        stem = path.stem
    if dotted := next((part for part in [*parts[1:], stem] if "." in part), None):
        raise UsageError(f"{path} could not be loaded: a package cannot have a dot in its name, as {dotted!r} has")
    name = ".".join([*parts, stem])
    if name in sys.modules:
        return sys.modules[name]
    if str(root) not in sys.path:
        sys.path.append(str(root))
    importlib.invalidate_caches()
    before = set(sys.modules)
    try:
        if top not in sys.modules:
            _add_package(top, folders[0])
        if parts:
            importlib.import_module(".".join(parts))
        return sys.modules.get(name) or _execute(name, path)
    except BaseException as error:
        for new in set(sys.modules) - before:
            if new == top or new.startswith(f"{top}."):
                del sys.modules[new]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _not_loaded(path, error) from error
    finally:
        _SIBLINGS.setdefault(root, {}).update(
            {other: module for other, module in _loaded_below(folders[0]).items() if not other.startswith("_proctor_")}
        )


def _package_name(folder: Path) -> str:
    """The name of a package: that of its folder, or a unique one if something else has this name."""
    name = folder.name
    known = sys.modules.get(name)
    if known is not None:
        places = [Path(place) for place in getattr(known, "__path__", ())]
        return name if folder in places else _unique_name(name, folder)
    elsewhere = [place for place in sys.path if place and Path(place) not in (folder.parent, folder)]
    if not name.isidentifier() or name in sys.stdlib_module_names:
        return _unique_name(name, folder)
    spec = importlib.machinery.PathFinder.find_spec(name, elsewhere)
    is_taken = spec is not None and spec.origin is not None
    return _unique_name(name, folder) if is_taken else name


def _add_package(name: str, folder: Path) -> None:
    """Import the package of a folder under this name; its `__init__.py` may be missing."""
    file = folder / "__init__.py"
    if file.is_file():
        _execute(name, file)
        return
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    sys.modules[name] = importlib.util.module_from_spec(spec)


def _execute(name: str, path: Path) -> ModuleType:
    """Execute a file of a package as the module of this name."""
    places = [str(path.parent)] if path.stem == "__init__" else None
    loader = _SourceLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader, submodule_search_locations=places)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be loaded as Python")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
    return module


_SIBLINGS: dict[Path, dict[str, ModuleType]] = {}
"""By folder: the modules that its files imported from the same folder or below it."""


@contextlib.contextmanager
def _siblings_of(folder: Path) -> Iterator[None]:
    """While a file of `folder` is executed, `import tools` means the `tools` next to it, not another suite's."""
    siblings = _SIBLINGS.setdefault(folder, {})
    for modules in _SIBLINGS.values():
        for name, module in modules.items():
            if modules is not siblings and sys.modules.get(name) is module and _is_in_folder(folder, name):
                del sys.modules[name]
    sys.modules.update(siblings)
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        siblings.update(
            {name: loaded for name, loaded in _loaded_below(folder).items() if not name.startswith("_proctor_")}
        )


def _is_in_folder(folder: Path, name: str) -> bool:
    top = name.partition(".")[0]
    return (folder / f"{top}.py").is_file() or (folder / top).is_dir()


def _loaded_below(folder: Path) -> dict[str, ModuleType]:
    """The modules of a folder, by name. Paths are compared as text, since thousands of modules may be loaded."""
    below = str(folder).rstrip(os.sep) + os.sep
    loaded = list(sys.modules.items())
    return {name: module for name, module in loaded if str(getattr(module, "__file__", None)).startswith(below)}


def _import(where: str, base: Path | None, reference: str) -> ModuleType:
    """A module by its name. One next to the suite comes before any other of that name."""
    for folder in _folders(base):
        if "." not in where and (folder / f"{where}.py").is_file():
            return load_file((folder / f"{where}.py").resolve())
    for folder in reversed(_folders(base)):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    try:
        return importlib.import_module(where)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UsageError(f"{reference!r}: module {where} could not be imported: {one_line(error)}") from error


def _line_in(path: Path, error: BaseException) -> str:
    """The line of `path` that an exception passed through, as `:12`."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f":{line}" if line else ""


def names_defined_in(path: Path) -> set[str] | None:
    """The names that a Python file defines at its top level, or `None` if that cannot be known without running it."""
    try:
        tree = parse_python(path)
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
    """The statements that run in the module itself, also those inside `if`, `try`, `with` and loops."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody", "handlers"):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = getattr(node, field, [])
                yield from _top_level([part for item in inner for part in getattr(item, "body", [item])])


def _file_of_module(name: str, folders: list[Path]) -> Path | None:
    """The source of a module, found without importing it or its packages; `None` if it has none."""
    places: Any = [*map(str, folders), *sys.path]
    spec = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:count]), places)
        if spec is None:
            break
        places = spec.submodule_search_locations or []
    if spec is None:
        if parts[0] in sys.builtin_module_names or parts[0] in sys.stdlib_module_names or _has_own_finder(parts[0]):
            return None
        raise UsageError(f"module {name} could not be found")
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def _has_own_finder(name: str) -> bool:
    """Whether an installed package is found by its own import hook, as editable installs are."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
