"""A lock between processes, such as the one on a run.

On Unix this calls `flock` directly: the package `filelock` opens its file for writing, but a read-only store must
still report whether its run is in progress. On Windows it uses `filelock`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from proctor.base.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """A lock that one process holds at a time; the system releases it when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: Any = None

    def acquire(self, *, wait: bool) -> bool:
        """Take the lock, and return whether that succeeded. Raises `StoreError` if the file cannot be opened."""
        try:
            self._handle = _flock(self.path, wait) if fcntl is not None else _filelock(self.path, wait)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror or error}") from error
        return self._handle is not None

    def release(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()

    def remove(self) -> None:
        """Release the lock and delete its file."""
        try:
            self.path.unlink()
        except OSError:  # another process removed it, or the platform keeps files that are open
            pass
        self.release()


def _flock(path: Path, wait: bool) -> IO[str] | None:
    try:
        handle = _open(path, "a")
    except OSError:
        if not path.exists():
            raise
        handle = _open(path, "r")  # a read-only store
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        handle.close()
        if not isinstance(error, BlockingIOError):
            raise
        return None
    return handle


def _open(path: Path, mode: str) -> IO[str]:
    """Open a file, but not what a link in its place points to: anyone can put one into /tmp."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666))


class _FilelockHandle:
    """Gives a lock of `filelock` the `close` of a file."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def close(self) -> None:
        self._lock.release()


def _filelock(path: Path, wait: bool) -> _FilelockHandle | None:
    import filelock

    lock = filelock.FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except filelock.Timeout:
        return None
    return _FilelockHandle(lock)
