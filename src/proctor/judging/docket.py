"""Notes every call to a judge while an evaluator is at work, so that its verdict can say what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from proctor.judging.model import JudgeCall

_DOCKET: ContextVar[list[JudgeCall] | None] = ContextVar("proctor_docket", default=None)


@contextmanager
def docket() -> Iterator[list[JudgeCall]]:
    """The calls made inside, also in tasks started there."""
    calls: list[JudgeCall] = []
    token = _DOCKET.set(calls)
    try:
        yield calls
    finally:
        _DOCKET.reset(token)


def note_call(call: JudgeCall) -> None:
    """Add a call to whoever keeps a docket at present."""
    calls = _DOCKET.get()
    if calls is not None:
        calls.append(call)
