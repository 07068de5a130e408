"""The files of the project that an agent opens: prompts, templates, data.

Stored answers are reused only if the agent is the same, and its code is not all of it: a prompt in `prompt.md` matters
as much. Python reports every opening of a file to audit hooks, also by libraries, so a hook notes the names while an
agent is loaded or answers. Each trial stores the digests of its files, and `--reuse` and `--resume` compare them. Of a
folder that an agent lists, the names count, and a file that is missing counts until somebody writes it. A database is
opened for reading and writing alike; it counts if it is the same after the trial.

An agent often reads a prompt once and keeps it: when its module is imported, or in the first trial. So the files of the
loading, and the first ones that any trial opened, count for every trial of the process. Only files below the working
folder count; code has its own fingerprint, and what the agent itself writes does not count. Files that are opened by
another process, or by a library without Python, cannot be noticed; `depends_on:` of a suite names those.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

MAX_FILES = 200
"""How many files of one trial are stored."""
MAX_SHARED_FILES = 20
"""How many of the files that the first trials opened count for every later one."""
MAX_FOLDERS = 20
"""How many working folders are remembered; a process hardly ever has more than one."""
MAX_FILE_BYTES = 20 * 1024 * 1024
CODE_SUFFIXES = (".py", ".pyc", ".pyi", ".so", ".pyd")
IGNORED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "dist-packages", "venv"})


class FileRecorder:
    """The names that were opened for reading, in their order; filled by the hook, from any thread."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.databases: dict[str, str] = {}
        """The digests that they had when they were opened."""

    def digests(self) -> dict[str, str]:
        """By path from the working folder: the digest of each file of the project that was opened."""
        root = _working_folder()
        if root is None:
            return {}
        for name, digest in list(self.databases.items()):
            if _cached_digest(Path(name)) == digest:
                self.names[name] = None
            else:
                _written.add(name)
        own = [path for name in list(self.names) if name not in _written and (path := _path_in_project(name, root))]
        _share(root, own, MAX_SHARED_FILES)
        paths = list(dict.fromkeys((*_shared.get(root, ()), *own)))
        return {path: _cached_digest(Path(root, path)) for path in paths[:MAX_FILES]}


_recorder: ContextVar[FileRecorder | None] = ContextVar("proctor_opened_files", default=None)
_shared: dict[str, dict[str, None]] = {}
"""By working folder: files that count for every trial of the process."""
_digests: dict[str, tuple[tuple[int, int, int], str]] = {}
"""By path: its modification time, size and number, and the digest that it had then."""
_written: set[str] = set()
"""Files that were opened for writing while an agent was loaded or answered."""
_lock = threading.Lock()
_state = {"is_installed": False}


@contextmanager
def recording_opened_files() -> Iterator[FileRecorder]:
    """Record the files that code in this context opens; threads that know their trial belong to it."""
    _install_hook()
    recorder = FileRecorder()
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


@contextmanager
def recording_loading() -> Iterator[None]:
    """Record the files that are opened while an agent is loaded; they count for every trial of the process."""
    with recording_opened_files() as recorder:
        yield
    root = _working_folder()
    if root is not None:
        _share(root, [path for name in list(recorder.names) if (path := _path_in_project(name, root))], MAX_FILES)


@contextmanager
def recording_nothing() -> Iterator[None]:
    """Record no file in this block: Proctor itself reads them, for a fingerprint."""
    token = _recorder.set(None)
    try:
        yield
    finally:
        _recorder.reset(token)


def _share(root: str, paths: Iterable[str], limit: int) -> None:
    """Let files count for every later trial in this working folder, as long as there are not too many."""
    if root not in _shared and len(_shared) >= MAX_FOLDERS:
        _shared.clear()
    files = _shared.setdefault(root, {})
    for path in paths:
        if len(files) < limit:
            files[path] = None


def has_changed(digests: Mapping[str, str]) -> str | None:
    """The first file whose contents are not those of the digest any more, or None if all are the same."""
    return next((path for path, digest in digests.items() if file_digest(Path(path)) != digest), None)


def digests_of_patterns(base: Path, patterns: Iterable[str]) -> dict[str, str]:
    """By pattern and path: the digests of the files that paths and patterns such as `prompts/*.md` name."""
    digests: dict[str, str] = {}
    for pattern in patterns:
        found = sorted(path for path in base.glob(pattern) if path.is_file()) if _is_pattern(pattern) else []
        for path in found or [base / pattern]:
            files = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
            digests |= {f"{pattern}: {os.path.relpath(file, base)}": file_digest(file) for file in files}
    return digests


def _is_pattern(text: str) -> bool:
    return any(mark in text for mark in "*?[") and not Path(text).is_absolute()


def file_digest(path: Path) -> str:
    """The digest of a regular file; empty if there is none, or if it is too large to be a prompt. Of a folder, the
    digest of the names in it, without code."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            names = sorted(
                name
                for name in os.listdir(path)  # noqa: PTH208  names
                if not name.startswith(".") and name not in IGNORED_FOLDERS and not name.endswith(CODE_SUFFIXES)
            )
            return hashlib.blake2b(json.dumps(names).encode("ascii"), digest_size=12).hexdigest()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return ""
        return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()
    except (OSError, ValueError):
        return ""


def _cached_digest(path: Path) -> str:
    """The same, computed again only if the file has changed: many trials read the same prompt."""
    try:
        status = path.stat()
    except OSError:
        return ""
    version = status.st_mtime_ns, status.st_size, status.st_ino
    known = _digests.get(str(path))
    if known is None or known[0] != version:
        if len(_digests) >= MAX_FOLDERS * MAX_FILES:
            _digests.clear()
        known = _digests[str(path)] = version, file_digest(path)
    return known[1]


def _is_import(caller: FrameType) -> bool:
    """Whether Python lists a folder to find a module."""
    return caller.f_code.co_filename.startswith("<frozen importlib")


def _database_path(path: str) -> str:
    """The file of a database that is named by an address such as `file:kb.db?mode=ro`."""
    folder, separator, name = path.rpartition(os.sep + "file:")
    return os.path.join(folder, name.partition("?")[0]) if separator else path  # noqa: PTH118


def _working_folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109  called for every trial
    except OSError:
        return None


def _path_in_project(name: str, root: str) -> str | None:
    """The path from the working folder of a file that may be a prompt or data; None for any other file."""
    if not name.startswith(root + os.sep) or name.endswith(CODE_SUFFIXES):
        return None
    path = name[len(root) + 1 :]
    parts = Path(path).parts
    is_hidden = any(part.startswith(".") for part in parts[:-1])
    return None if is_hidden or not IGNORED_FOLDERS.isdisjoint(parts) else path


def _install_hook() -> None:
    """Add the hook once; Python has no way to remove one."""
    if _state["is_installed"]:
        return
    with _lock:
        if not _state["is_installed"]:
            _state["is_installed"] = True
            sys.addaudithook(_hook)


_EVENTS = frozenset({"open", "os.listdir", "os.scandir", "sqlite3.connect"})


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS:
        return
    with suppress(Exception):  # otherwise opening the file would fail
        recorder = _recorder.get()
        if recorder is None or len(recorder.names) > 10 * MAX_FILES:
            return
        name, flags = arguments[0], arguments[2] if event == "open" else None
        if isinstance(name, int) or (event == "os.listdir" and _is_import(sys._getframe(1))):
            return
        path = os.path.abspath(os.fsdecode("." if name is None else name))  # noqa: PTH100  links stay links
        if event == "sqlite3.connect":
            database = _database_path(path)
            recorder.databases.setdefault(database, _cached_digest(Path(database)))
        elif isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            if len(_written) < 100 * MAX_FILES:
                _written.add(path)
        else:
            recorder.names[path] = None
