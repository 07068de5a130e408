"""Other processes: locks between them, and ending programs with everything they started."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from pathlib import Path
from typing import IO, Any

from proctor.base.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """One process holds it at a time.

    Where the platform has `flock`, that is called directly: importing `filelock` would cost every command as much as
    starting Python does. Everywhere else `filelock` does the work.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: Any = None

    def acquire(self, *, wait: bool) -> bool:
        """Whether this process holds the lock now; raises `StoreError` where the file cannot be opened."""
        try:
            self._held = _flock(self.path, wait) if fcntl is not None else _filelock(self.path, wait)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error}") from error
        return self._held is not None

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def remove(self) -> None:
        """Release it, and leave no file behind."""
        try:
            self.path.unlink()
        except OSError:  # another process removed it, or the platform keeps files that are open
            pass
        self.release()


def _flock(path: Path, wait: bool) -> IO[str] | None:
    try:
        handle = path.open("a")
    except OSError:
        handle = path.open()  # a store that can only be read can still tell whether its run goes on
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        handle.close()
        if not isinstance(error, BlockingIOError):
            raise
        return None
    return handle


class _Released:
    """Gives a lock of `filelock` the `close` of a file."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def close(self) -> None:
        self._lock.release()


def _filelock(path: Path, wait: bool) -> _Released | None:
    import filelock

    lock = filelock.FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except filelock.Timeout:
        return None
    return _Released(lock)


MARK = "PROCTOR_TRIAL_PROCESS"
"""The environment variable that tells the descendants of one trial from all other processes."""

_NUMBERS = itertools.count(1)


def new_mark() -> str:
    return f"{os.getpid()}-{next(_NUMBERS)}"


def kill_tree(pid: int, mark: str = "") -> None:
    """End a process, its group, its descendants, and those that have the mark in the environment they began with."""
    doomed = [*_descendants(pid), *_marked(mark)] if os.path.isdir("/proc/self") else []  # noqa: PTH112
    for number in (pid, *doomed):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg") and number == pid:
                os.killpg(number, signal.SIGKILL)
            os.kill(number, signal.SIGKILL)


def kill_children(parent: int) -> None:
    """End every process below `parent`, orphans that were handed to it included."""
    for number in _descendants(parent):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(number, signal.SIGKILL)


def adopt_orphans() -> None:
    """From now on, descendants whose parent ends become children of this process (Linux)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for number in _pids():
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{number}/stat", "rb") as file:  # noqa: PTH123
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(number)
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _marked(mark: str) -> list[int]:
    if not mark:
        return []
    wanted, found = f"{MARK}={mark}".encode(), []
    for number in _pids():
        with contextlib.suppress(OSError), open(f"/proc/{number}/environ", "rb") as file:  # noqa: PTH123
            if wanted in file.read().split(b"\0"):
                found.append(number)
    return found
