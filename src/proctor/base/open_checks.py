"""Checks that ended without a result, and where a running test records them.

An assertion whose result is pending must not pass, and must not end the test either: what follows it may fail. While
pytest runs a test, the plugin collects such checks and decides at the end of the test what becomes of it. One process
runs one test at a time, so the collection belongs to the process, and threads that a test starts record there too.
Where nothing collects, as in a script or in a process that a test starts or forks, the assertion raises its own error.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

Need = Literal["model", "grade"]


@dataclass(frozen=True, slots=True)
class OpenCheck:
    """One check without a result."""

    names: tuple[str, ...] = ()
    """The evaluators or metrics that gave no score."""
    need: Need = "model"
    """What would give one: a judge with a model, or a person's grade."""
    details: str = ""
    """What was checked, and why there is no result; several lines."""
    summary: str = ""
    """One line that says it, if there are no names."""
    place: tuple[str, int] | None = None
    """The file and line that looked at a pending result: an `AssertionError` from there is not a failure."""
    is_skipped: bool = False
    """Whether it was left out on purpose, so that the test is skipped instead of pending."""


UNITTEST = "__unittest"
"""A global of unittest's own modules, by which it leaves their frames out of tracebacks."""


class Undecided(Exception):
    """The base of exceptions that say that a result is pending."""


_collections: list[tuple[int, list[OpenCheck]]] = []
"""The active collections, each with the process that it belongs to."""
_lock = threading.Lock()


@contextmanager
def collect_open_checks() -> Iterator[list[OpenCheck]]:
    """While active, `record_open_check` adds to the list; of several that are active, to the innermost."""
    checks: list[OpenCheck] = []
    with _lock:
        _collections.append((os.getpid(), checks))
    try:
        yield checks
    finally:
        with _lock:
            _collections[:] = [entry for entry in _collections if entry[1] is not checks]


def record_open_check(check: OpenCheck) -> bool:
    """Add a check to the running test; False if no test is running, and the caller has to raise."""
    with _lock:
        process, checks = _collections[-1] if _collections else (0, [])
        if process != os.getpid():
            return False
        checks.append(check)
        return True


def place_of(frame: FrameType) -> tuple[str, int]:
    """The file and line that a frame is at, or if it is one of unittest's `assert` methods, the line that calls it."""
    while UNITTEST in frame.f_globals and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def headline(checks: Sequence[OpenCheck]) -> str:
    """What the checks need, in one line: `AnswerRelevancy needs a model`."""
    parts = [
        f"{_listed(names)} {'needs' if len(names) == 1 else 'need'} a {need}"
        for need in ("model", "grade")
        if (names := list(dict.fromkeys(name for check in checks if check.need == need for name in check.names)))
    ]
    return "; ".join([*parts, *dict.fromkeys(check.summary for check in checks if not check.names)])


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
