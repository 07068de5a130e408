"""The judge calls of an evaluator, and how long it waited for a free judge.

Both are context variables, so evaluators of concurrent trials never see each other's. Time in the queue of a judge does
not count towards the evaluator's timeout.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from proctor.judging.judge import JudgeCall

T = TypeVar("T")

_CALL_LOG: ContextVar[list[JudgeCall] | None] = ContextVar("proctor_judge_call_log", default=None)


@contextmanager
def call_log() -> Iterator[list[JudgeCall]]:
    """Collect the judge calls made inside, also in tasks started there, for the details of the score."""
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
    """Add a request to those of the current evaluator, so that a timeout can report them."""
    waits = _WAITS.get()
    if waits is not None:
        waits.requests.append(request)


class SentRequest:
    """One request to a model: how long it took, and how many were in flight."""

    def __init__(self, in_flight: Callable[[], int]) -> None:
        self._in_flight = in_flight
        self._began = time.monotonic()
        self._final_text = ""

    def end(self) -> None:
        """Fix the duration; until then, it is the time so far."""
        self._final_text = str(self)

    def __str__(self) -> str:
        return self._final_text or f"{time.monotonic() - self._began:.3g} s with {self._in_flight():,} in flight"


def format_requests(requests: Sequence[SentRequest]) -> str:
    """The duration of each request, and how many were in flight."""
    parts = [str(request) for request in requests[:MAX_REQUESTS_LISTED]]
    return ", ".join(parts) + (
        f", and {len(requests) - MAX_REQUESTS_LISTED} more" if len(requests) > MAX_REQUESTS_LISTED else ""
    )


MAX_REQUESTS_LISTED = 6
GRACE_SECONDS = 1.0
"""The time that cancelled work has to clean up before it is abandoned."""


class WaitTimer:
    """Adds up the time that an evaluator waits for a free judge, and collects its requests and calls.

    Waits that overlap count once.
    """

    def __init__(self) -> None:
        self.requests: list[SentRequest] = []
        self.calls: list[JudgeCall] = []
        self._active_waits = 0
        self._since = 0.0
        self._finished = 0.0

    @property
    def seconds(self) -> float:
        return self._finished + (time.monotonic() - self._since if self._active_waits else 0.0)

    def begin(self) -> None:
        if not self._active_waits:
            self._since = time.monotonic()
        self._active_waits += 1

    def end(self) -> None:
        self._finished = self.seconds if self._active_waits == 1 else self._finished
        self._active_waits -= 1


_WAITS: ContextVar[WaitTimer | None] = ContextVar("proctor_waits", default=None)


@contextmanager
def count_waits(waits: WaitTimer) -> Iterator[None]:
    """Add to `waits` all waiting inside, also in tasks started there."""
    token = _WAITS.set(waits)
    try:
        yield
    finally:
        _WAITS.reset(token)


async def run_with_timeout(work: Callable[[], Awaitable[T]], seconds: float, waits: WaitTimer) -> T:
    """Return the result of `work`; raise `TimeoutError` after `seconds`, not counting waits for a judge."""
    began = time.monotonic()
    with count_waits(waits):
        task = asyncio.ensure_future(work())
    try:
        while not task.done() and (left := began + seconds + waits.seconds - time.monotonic()) > 0:
            await asyncio.wait({task}, timeout=left)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)


@contextmanager
def waiting() -> Iterator[None]:
    """Exclude the time inside from the evaluator's timeout."""
    waits = _WAITS.get()
    if waits is None:
        yield
        return
    waits.begin()
    try:
        yield
    finally:
        waits.end()
