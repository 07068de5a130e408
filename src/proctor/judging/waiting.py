"""Tells waiting from working: a queue in front of a judge must not use up the time of those who stand in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Waits:
    """How long somebody has waited, for a turn or for an answer that another is getting; waits at once count once."""

    def __init__(self) -> None:
        self._at_present = 0
        self._since = 0.0
        self._before = 0.0

    @property
    def seconds(self) -> float:
        return self._before + (time.monotonic() - self._since if self._at_present else 0.0)

    def begin(self) -> None:
        if not self._at_present:
            self._since = time.monotonic()
        self._at_present += 1

    def end(self) -> None:
        self._before = self.seconds if self._at_present == 1 else self._before
        self._at_present -= 1


_WAITS: ContextVar[Waits | None] = ContextVar("proctor_waits", default=None)


@contextmanager
def counted(waits: Waits) -> Iterator[None]:
    """Count in `waits` whatever is waited for inside, also in tasks started there."""
    token = _WAITS.set(waits)
    try:
        yield
    finally:
        _WAITS.reset(token)


@contextmanager
def waiting() -> Iterator[None]:
    """What happens inside is waiting for others."""
    waits = _WAITS.get()
    if waits is None:
        yield
        return
    waits.begin()
    try:
        yield
    finally:
        waits.end()
