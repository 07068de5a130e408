"""Locks between processes: one file each, released when the process ends, however it ends."""

from __future__ import annotations

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
