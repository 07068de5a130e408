"""Ends processes together with all processes that they started."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import signal

MARK_VARIABLE = "PROCTOR_TRIAL_PROCESS"
"""The environment variable that marks the descendants of one trial."""

_NUMBERS = itertools.count(1)


def new_mark() -> str:
    return f"{os.getpid()}-{next(_NUMBERS)}"


def kill_tree(pid: int, mark: str = "") -> None:
    """End a process, its group, its descendants, and processes that were started with the mark in their environment."""
    others = [*_descendants(pid), *_processes_with_mark(mark)] if os.path.isdir("/proc/self") else []  # noqa: PTH112
    for number in (pid, *others):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg") and number == pid:
                os.killpg(number, signal.SIGKILL)
            os.kill(number, signal.SIGKILL)


def kill_children(parent: int) -> None:
    """End every descendant of `parent`, with the orphans that it adopted."""
    for number in _descendants(parent):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(number, signal.SIGKILL)


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends (Linux)."""
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
    descendants, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        descendants += below
        waiting += below
    return descendants


def _processes_with_mark(mark: str) -> list[int]:
    if not mark:
        return []
    assignment, pids = f"{MARK_VARIABLE}={mark}".encode(), []
    for number in _pids():
        with contextlib.suppress(OSError), open(f"/proc/{number}/environ", "rb") as file:  # noqa: PTH123
            if assignment in file.read().split(b"\0"):
                pids.append(number)
    return pids
