"""The files of the project that an agent opens: prompts, templates, data.

Stored answers are reused only if the agent is the same, and its code is not all of it: a prompt in `prompt.md` matters
as much. Python reports every opening of a file to audit hooks, also by libraries, so a hook notes the names while an
agent is loaded or answers. Each trial stores the digests of its files, and `--reuse` and `--resume` compare them.

An agent often reads a prompt once and keeps it: when its module is imported, or in the first trial. So the files of the
loading, and the first ones that any trial opened, count for every trial of the process. Only files below the working
folder count; code has its own fingerprint, and what the agent itself writes does not count. Files that are opened by
another process, or by a library without Python, cannot be noticed; `depends_on:` of a suite names those.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
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

    def digests(self) -> dict[str, str]:
        """By path from the working folder: the digest of each file of the project that was opened."""
        root = _working_folder()
        if root is None:
            return {}
        own = [path for name in list(self.names) if name not in _written and (path := _path_in_project(name, root))]
        _share(root, own, MAX_SHARED_FILES)
        paths = list(dict.fromkeys((*_shared.get(root, ()), *own)))
        digests = ((path, _cached_digest(Path(root, path))) for path in paths[:MAX_FILES])
        return {path: digest for path, digest in digests if digest}


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
    """The digest of a regular file; empty if there is none, or if it is too large to be a prompt."""
    try:
        status = path.stat()
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
    folders = Path(path).parts[:-1]
    return None if any(part.startswith(".") or part in IGNORED_FOLDERS for part in folders) else path


def _install_hook() -> None:
    """Add the hook once; Python has no way to remove one."""
    if _state["is_installed"]:
        return
    with _lock:
        if not _state["is_installed"]:
            _state["is_installed"] = True
            sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open":
        return
    with suppress(Exception):  # otherwise opening the file would fail
        recorder = _recorder.get()
        if recorder is None or len(recorder.names) > 10 * MAX_FILES:
            return
        name, _, flags = arguments
        if isinstance(name, int):
            return
        path = os.path.abspath(os.fsdecode(name))  # noqa: PTH100  links stay links
        if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            if len(_written) < 100 * MAX_FILES:
                _written.add(path)
        else:
            recorder.names[path] = None
