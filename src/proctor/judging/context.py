"""Who judges at present: set by the engine for each evaluator it calls, found from the environment otherwise.

Notes every call to a judge while an evaluator is at work, so that its verdict can say what it rests on.

Tells waiting from working: a queue in front of a judge must not use up the time of those who stand in it.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from proctor.base.records import record
from proctor.judging.judge import JudgeCall
from proctor.judging.panel import Panel

if TYPE_CHECKING:
    from proctor.judging.judge_cache import JudgeCache
    from proctor.judging.limits import Budget

EMBEDDED = "embedded"
"""The judge that needs no model, and judges where nobody named another."""

VARIABLE = "PROCTOR_JUDGE"


class JudgeFactory(Protocol):
    """Where judges are made: what they share (cache, limits, budget) lives there."""

    def panel(self, named: Any) -> Panel:
        """Whoever `named` means: `provider:model`, a mapping with options, a Judge, a Panel. Raises `UsageError`."""
        ...


@record
class JudgeContext:
    """What holds while one evaluator is at work."""

    judges: JudgeFactory
    judge: Any = EMBEDDED
    """Who judges unless the evaluator names its own."""
    threshold: float | None = None
    """The line the score will be held against; `None` leaves it to the evaluator."""
    cache: JudgeCache | None = None
    """Where embeddings are found again; `None` where nothing outlives the process."""
    budget: Budget | None = None
    """What embeddings are paid from."""


_CONTEXT: ContextVar[JudgeContext | None] = ContextVar("proctor_judge_context", default=None)


@contextmanager
def judge_context(present: JudgeContext) -> Iterator[None]:
    """Let evaluators called inside ask the judge of `present`."""
    token = _CONTEXT.set(present)
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def engine_judge_context() -> JudgeContext | None:
    """That of the engine, if it is the engine that calls."""
    return _CONTEXT.get()


def current_judge_context() -> JudgeContext:
    """The engine's, or for an evaluator called on its own, the judge named in the environment."""
    return _CONTEXT.get() or JudgeContext(_own_judges(), os.environ.get(VARIABLE) or EMBEDDED)


@functools.cache
def _own_judges() -> JudgeFactory:
    from proctor.judging.judge_factory import SharedJudges

    return SharedJudges()


_CALL_LOG: ContextVar[list[JudgeCall] | None] = ContextVar("proctor_judge_call_log", default=None)


@contextmanager
def call_log() -> Iterator[list[JudgeCall]]:
    """The calls made inside, also in tasks started there."""
    calls: list[JudgeCall] = []
    token = _CALL_LOG.set(calls)
    try:
        yield calls
    finally:
        _CALL_LOG.reset(token)


def log_call(call: JudgeCall) -> None:
    """Add a call to whoever keeps a docket at present."""
    calls = _CALL_LOG.get()
    if calls is not None:
        calls.append(call)


class WaitTimer:
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


_WAITS: ContextVar[WaitTimer | None] = ContextVar("proctor_waits", default=None)


@contextmanager
def counting_waits(waits: WaitTimer) -> Iterator[None]:
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
