"""Rate limits and retries of requests to models.

The rate limiter finds out how many requests at once an endpoint accepts. It starts low and doubles while all goes
well; a refusal (429) halves it, and from then on it grows by one for each round without a refusal. So does a request
that got no answer in time, or hardly in time while others were quick: the endpoint has a queue of its own. A server
error says nothing about the rate and only makes a short pause. A `Retry-After` holds for all callers of the endpoint.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

from proctor.judging.call_log import SentRequest, format_requests, log_request, waiting
from proctor.judging.judge import EndpointFailed

T = TypeVar("T")

WINDOW_SECONDS = 60.0
TIMEOUT = 120.0
RETRIES = 3
REFUSALS = 10
"""How often an endpoint may refuse a request for its rate; such a refusal is no failure and counts as no retry."""
MAX_BACKOFF = 20.0
SLOW_SHARE = 0.25
"""From this share of its time on, an answer that was slower than others lets the number of requests grow no further."""
LATE_SHARE = 0.5
"""From this share on it halves the number, as a refusal does: the next such request may get no answer in time."""
SLOWER = 1.5
"""How many times as long as the quickest answer makes a slow one; some models always take their time."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What an endpoint accepts, as far as the user said."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    initial: int = 4
    """Requests at once to begin with."""
    maximum: int = 64
    """Requests at once, at most."""
    window: float = WINDOW_SECONDS
    """What counts as a minute."""
    refusal_pause: float = 1.0
    """Seconds to pause after a refusal that does not say for how long; doubled each time."""
    fault_pause: float = 0.5
    """Seconds to pause after a server error."""
    max_pause: float = 120.0
    """A longer `Retry-After` is not waited for: the request fails."""


NO_LIMITS = RateLimits()


@dataclass(frozen=True, slots=True)
class RetryOptions:
    """How often and how long a request is tried."""

    retries: int = RETRIES
    timeout: float = TIMEOUT
    """Seconds for one request."""
    backoff: float = 0.5
    """Seconds before the first retry, on average doubled before each further one."""


class RequestSlot:
    """Permission to make one request; the caller reports a refusal or a failure to it."""

    def __init__(self, queue: _Queue, began: float) -> None:
        self._queue = queue
        self._began = began
        self._went_well = True
        self._sent_with = queue.under_way

    @property
    def in_flight(self) -> int:
        """How many requests were under way when this one was sent, or are now: the greater number."""
        return max(self._sent_with, self._queue.under_way)

    def limited(self, retry_after: float | None = None) -> None:
        """The endpoint refused the request for its rate."""
        self._went_well = False
        self._queue.slow_down(self._began, retry_after)

    def timed_out(self) -> None:
        """No answer came in time."""
        self._went_well = False
        self._queue.halve(self._began, self.in_flight)

    def answered(self, timeout: float) -> None:
        """An answer came; one that took long beside others means that the endpoint has a queue of its own."""
        seconds = asyncio.get_running_loop().time() - self._began
        if not self._queue.is_slow(seconds) or seconds < SLOW_SHARE * timeout:
            return
        self._went_well = False
        if seconds >= LATE_SHARE * timeout:
            self._queue.halve(self._began, self.in_flight)

    def failed(self) -> None:
        """The endpoint had an error of its own."""
        self._went_well = False
        self._queue.pause()

    def over(self, *, broken_off: bool) -> None:
        self._queue.leave(went_well=self._went_well and not broken_off)


class RateLimiter:
    """The rate limit of one endpoint; each event loop has its own queue, since loops cannot wake each other."""

    def __init__(self, limits: RateLimits = NO_LIMITS) -> None:
        self._limits = limits
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[RequestSlot]:
        """Wait for a slot, first come, first served; `tokens` is how many the request is about to use."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Queue(self._limits)
        with waiting():
            await queue.enter(tokens)
        slot, went_through = RequestSlot(queue, loop.time()), False
        try:
            yield slot
            went_through = True
        finally:
            slot.over(broken_off=not went_through)


class _Queue:
    """The requests that wait for an endpoint in one event loop, and how many at once it has accepted so far."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._room = float(max(1, min(limits.initial, limits.maximum)))
        self._doubling = True
        self._under_way = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._sent: deque[tuple[float, int]] = deque()
        """The requests of the last window: when each was sent, and with how many tokens."""
        self._tokens = 0
        self._closed_until = 0.0
        self._slowed_at = float("-inf")
        self._refusals = 0
        self._quickest = float("inf")
        """Seconds of the quickest answer so far."""
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, tokens: int) -> None:
        loop = asyncio.get_running_loop()
        place = (loop.create_future(), tokens)
        self._waiting.append(place)
        self._admit()
        try:
            await place[0]
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            elif not place[0].cancelled():
                self._under_way -= 1  # admitted and cancelled at the same moment: the next request gets the slot
            self._admit()
            raise

    def leave(self, *, went_well: bool) -> None:
        self._under_way -= 1
        if went_well:
            self._refusals = 0
            self._room = min(float(self._limits.maximum), self._room + (1.0 if self._doubling else 1.0 / self._room))
        self._admit()

    @property
    def under_way(self) -> int:
        return self._under_way

    def is_slow(self, seconds: float) -> bool:
        """Whether an answer took much longer than the quickest one."""
        self._quickest = min(self._quickest, seconds)
        return seconds > SLOWER * self._quickest

    def halve(self, began: float, in_flight: float = float("inf")) -> bool:
        """Halve the number of requests at once; requests that were under way together do so once."""
        if began < self._slowed_at:
            return False
        self._room = max(1.0, min(self._room, in_flight) / 2)
        self._doubling = False
        self._slowed_at = asyncio.get_running_loop().time()
        return True

    def slow_down(self, began: float, retry_after: float | None) -> None:
        """Halve the rate, and let all requests wait; refusals of requests that were under way together count as one."""
        now = asyncio.get_running_loop().time()
        self._refusals += self.halve(began)
        seconds = (
            self._limits.refusal_pause * 2 ** (min(self._refusals, 10) - 1) if retry_after is None else retry_after
        )
        self._close(now, seconds)

    def pause(self) -> None:
        self._close(asyncio.get_running_loop().time(), self._limits.fault_pause)

    def _close(self, now: float, seconds: float) -> None:
        self._closed_until = max(self._closed_until, now + min(max(0.0, seconds), self._limits.max_pause))

    def _admit(self) -> None:
        """Admit as many requests as may go now, in order, and set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._waiting and self._under_way < int(self._room):
            future, tokens = self._waiting[0]
            now = loop.time()
            ready = self._ready(now, tokens)
            if ready > now:
                self._timer = loop.call_at(ready, self._admit)
                return
            self._waiting.popleft()
            if future.done():
                continue
            self._under_way += 1
            self._sent.append((now, tokens))
            self._tokens += tokens
            future.set_result(None)

    def _ready(self, now: float, tokens: int) -> float:
        """When a request of this size may be sent; one that is larger than the limit waits for an empty window."""
        limits = self._limits
        while self._sent and self._sent[0][0] + limits.window <= now:
            self._tokens -= self._sent.popleft()[1]
        ready = self._closed_until
        if limits.requests_per_minute is not None and len(self._sent) >= max(1, limits.requests_per_minute):
            ready = max(ready, self._sent[len(self._sent) - max(1, limits.requests_per_minute)][0] + limits.window)
        if limits.tokens_per_minute is not None:
            excess = self._tokens + tokens - limits.tokens_per_minute
            for sent_at, spent in self._sent:
                if excess <= 0:
                    break
                excess -= spent
                ready = max(ready, sent_at + limits.window)
        return ready


async def send_with_retries(
    send: Callable[[], Awaitable[T]], limiter: RateLimiter, retry: RetryOptions, tokens: int = 0
) -> T:
    """What `send` returns, tried again while it fails with a transient `EndpointFailed`; `tokens` is its size."""
    faults = refusals = 0
    sent: list[SentRequest] = []
    while True:
        try:
            return await _send_once(send, limiter, tokens, retry.timeout, sent)
        except EndpointFailed as failure:
            faults, refusals = faults + (not failure.limited), refusals + failure.limited
            is_last = faults > retry.retries or refusals > REFUSALS
            if not failure.transient or is_last or _asks_too_much(failure):
                raise _final(failure, faults + refusals, sent) from None
            if not failure.limited:
                with waiting():
                    await asyncio.sleep(backoff(retry.backoff, faults, failure.retry_after))


async def _send_once(
    send: Callable[[], Awaitable[T]], limiter: RateLimiter, tokens: int, timeout: float, sent: list[SentRequest]
) -> T:
    async with limiter.slot(tokens) as slot:
        request = SentRequest(lambda: slot.in_flight)
        sent.append(request)
        log_request(request)
        try:
            answer = await send()
            slot.answered(timeout)
            return answer
        except EndpointFailed as error:
            failure = error
        finally:
            request.end()
        if failure.limited:
            slot.limited(failure.retry_after)
        elif failure.timed_out:
            slot.timed_out()
        elif failure.transient:
            slot.failed()
    raise failure


def backoff(first: float, fault: int, retry_after: float | None = None) -> float:
    """Seconds before the next try: longer each time, and random, so that callers that failed together come apart."""
    wait = min(first * 2.0 ** (fault - 1), MAX_BACKOFF) * random.uniform(0.5, 1.5)  # noqa: S311
    return max(wait, min(retry_after or 0.0, NO_LIMITS.max_pause))


def _asks_too_much(failure: EndpointFailed) -> bool:
    return failure.retry_after is not None and failure.retry_after > NO_LIMITS.max_pause


def _final(failure: EndpointFailed, attempts: int, sent: Sequence[SentRequest]) -> EndpointFailed:
    words = str(failure)
    if _asks_too_much(failure):
        words += f" (and not for {failure.retry_after:.0f} seconds, which is too long to wait)"
    elif attempts > 1:
        words += f" (tried {attempts} times{f': {format_requests(sent)}' if failure.timed_out else ''})"
    elif failure.timed_out:
        words += f" ({format_requests(sent)})"
    return failure.with_message(words)
