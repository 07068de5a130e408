"""Ends processes together with everything they started."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal

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
