"""The context in which an evaluator asks a judge: the judge in force, the log of calls, the time spent waiting.

All three are context variables, so that evaluators of concurrent trials never see each other's.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from proctor.base.json_data import object_or_text
from proctor.base.records import record
from proctor.judging.judge import JudgeCall
from proctor.judging.panel import Panel

if TYPE_CHECKING:
    from proctor.judging.judge_cache import JudgeCache
    from proctor.judging.limits import Budget

EMBEDDED = "embedded"
"""The name of the rule judge, which needs no model; used where no other judge is named."""

VARIABLE = "PROCTOR_JUDGE"
FAST_VARIABLE = "PROCTOR_FAST"
"""Set by pytest's `--proctor-fast` for evaluators that tests call directly."""


class JudgeFactory(Protocol):
    """Makes judges from their names, and holds what they share: cache, rate limits, budget."""

    def panel(self, named: Any) -> Panel:
        """The judges of `named`: `provider:model`, a mapping with options, a Judge or a Panel. Raises `UsageError`."""
        ...


@record
class JudgeContext:
    """What holds while the engine calls one evaluator."""

    judges: JudgeFactory
    judge: Any = EMBEDDED
    """The judge, unless the evaluator names its own."""
    threshold: float | None = None
    """The threshold that the score will be compared with; `None` leaves it to the evaluator."""
    cache: JudgeCache | None = None
    """Where embeddings are kept; `None` where nothing outlives the process."""
    budget: Budget | None = None
    """What embeddings are paid from."""


_CONTEXT: ContextVar[JudgeContext | None] = ContextVar("proctor_judge_context", default=None)


@contextmanager
def judge_context(context: JudgeContext) -> Iterator[None]:
    """Let evaluators called inside ask the judge of `context`."""
    token = _CONTEXT.set(context)
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def engine_judge_context() -> JudgeContext | None:
    """The context that the engine set; `None` for an evaluator that a user calls directly."""
    return _CONTEXT.get()


def current_judge_context() -> JudgeContext:
    """The engine's context, or for an evaluator that a user calls directly, the judge named in the environment."""
    return _CONTEXT.get() or JudgeContext(_own_judges(), _named_in_environment())


def models_are_left_out() -> bool:
    """Whether pytest was told to leave out what needs a model."""
    return os.environ.get(FAST_VARIABLE) == "1"


def _named_in_environment() -> Any:
    return object_or_text(os.environ.get(VARIABLE) or EMBEDDED, f"{VARIABLE}: the judge")


@functools.cache
def _own_judges() -> JudgeFactory:
    from proctor.judging.judge_factory import SharedJudges

    return SharedJudges()


_CALL_LOG: ContextVar[list[JudgeCall] | None] = ContextVar("proctor_judge_call_log", default=None)


@contextmanager
def call_log() -> Iterator[list[JudgeCall]]:
    """Collect the judge calls made inside, also in tasks started there: a verdict says which calls it rests on."""
    calls: list[JudgeCall] = []
    token = _CALL_LOG.set(calls)
    try:
        yield calls
    finally:
        _CALL_LOG.reset(token)


def log_call(call: JudgeCall) -> None:
    """Add a call to the log of the current context, if there is one."""
    calls, waits = _CALL_LOG.get(), _WAITS.get()
    if calls is not None:
        calls.append(call)
    if waits is not None:
        waits.calls.append(call)


def log_request(request: SentRequest) -> None:
    """Add a request to what the current evaluator has sent, so that a timeout can say what took so long."""
    waits = _WAITS.get()
    if waits is not None:
        waits.requests.append(request)


class SentRequest:
    """One request to a model: how many were under way with it, and how long it took."""

    def __init__(self, in_flight: Callable[[], int]) -> None:
        self._in_flight = in_flight
        self._began = time.monotonic()
        self._told = ""

    def end(self) -> None:
        self._told = str(self)

    def __str__(self) -> str:
        return self._told or f"{time.monotonic() - self._began:.3g} s with {self._in_flight():,} in flight"


def requests_told(requests: Sequence[SentRequest]) -> str:
    """How long each request took, and how many were under way with it."""
    told = [str(request) for request in requests[:MOST_TOLD]]
    return ", ".join(told) + (f", and {len(requests) - MOST_TOLD} more" if len(requests) > MOST_TOLD else "")


MOST_TOLD = 6


class WaitTimer:
    """Adds up the time spent waiting for a judge to be free, and keeps what was asked meanwhile.

    Waits that overlap count once.
    """

    def __init__(self) -> None:
        self.requests: list[SentRequest] = []
        self.calls: list[JudgeCall] = []
        self._under_way = 0
        self._since = 0.0
        self._finished = 0.0

    @property
    def seconds(self) -> float:
        return self._finished + (time.monotonic() - self._since if self._under_way else 0.0)

    def begin(self) -> None:
        if not self._under_way:
            self._since = time.monotonic()
        self._under_way += 1

    def end(self) -> None:
        self._finished = self.seconds if self._under_way == 1 else self._finished
        self._under_way -= 1


_WAITS: ContextVar[WaitTimer | None] = ContextVar("proctor_waits", default=None)


@contextmanager
def counting_waits(waits: WaitTimer) -> Iterator[None]:
    """Add to `waits` all waiting inside, also in tasks started there."""
    token = _WAITS.set(waits)
    try:
        yield
    finally:
        _WAITS.reset(token)


@contextmanager
def waiting() -> Iterator[None]:
    """Excluded from the evaluator's timeout: waiting in a queue is no fault of the evaluator."""
    waits = _WAITS.get()
    if waits is None:
        yield
        return
    waits.begin()
    try:
        yield
    finally:
        waits.end()
