"""Finds out how many requests an endpoint accepts, and how often; agents and judges share it.

There are two kinds of limits. What the endpoint says when it refuses a request shows which one it has.

- *Without a `Retry-After`* it probably has too many requests at the same time. The limiter starts with a few and
  doubles the number while all goes well. A refusal halves it, and from then on it grows by one per round without a
  refusal. A request that times out, or is close to it while others are quick, also halves it: the endpoint queues
  requests.
- *With a `Retry-After`* it limits the rate. All callers wait as long as it asks. From then on requests are sent one
  after another, at the rate at which the endpoint has really answered so far, waiting included. Each answer makes that
  rate a little higher, so that a limit that was lifted is noticed. Fewer requests at the same time would be the wrong
  answer: quick ones would be refused all the same, and slow ones would be sent too rarely.

A server error says nothing about either and causes only a short pause.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from weakref import WeakKeyDictionary

WINDOW_SECONDS = 60.0
SLOW_SHARE = 0.25
"""A slow answer that took at least this share of the timeout does not let the number of requests grow."""
LATE_SHARE = 0.5
"""From this share on it halves the number, as a refusal does: the next such request may time out."""
SLOW_FACTOR = 1.5
"""An answer is slow if it took more than this many times as long as the quickest one; some models are never quick."""
RATE_GROWTH = 1.01
"""By how much an answer raises the rate of requests after a refusal."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits of an endpoint, as far as the user has set them."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    initial: int = 4
    """Concurrent requests at the start."""
    maximum: int = 64
    """The most concurrent requests."""
    window: float = WINDOW_SECONDS
    """Seconds that count as a minute; shorter in tests."""
    refusal_pause: float = 1.0
    """Seconds to pause after a refusal without a `Retry-After`; doubled each time."""
    fault_pause: float = 0.5
    """Seconds to pause after a server error."""
    max_pause: float = 120.0
    """The longest pause; a request whose `Retry-After` is longer fails."""


NO_LIMITS = RateLimits()


class RequestSlot:
    """Permission to make one request, inside `with`; the caller reports a refusal or a failure to it."""

    def __init__(self, queue: _Queue, began: float) -> None:
        self._queue = queue
        self._is_open = True
        self._began = began
        self._went_well = True
        self._in_flight_at_start = queue.in_flight

    @property
    def in_flight(self) -> int:
        """How many requests were in flight when this one was sent, or are now, if that is more."""
        return max(self._in_flight_at_start, self._queue.in_flight)

    def limited(self, retry_after: float | None = None) -> None:
        """Report that the endpoint refused the request because of its rate limit."""
        self._went_well = False
        self._queue.slow_down(self._began, retry_after)

    def timed_out(self) -> None:
        """Report that the request timed out."""
        self._went_well = False
        self._queue.halve(self._began, self.in_flight)

    def answered(self, timeout: float) -> None:
        """Report an answer; one that was slow compared with others shows that the endpoint queues requests."""
        seconds = asyncio.get_running_loop().time() - self._began
        if not self._queue.is_slow(seconds) or seconds < SLOW_SHARE * timeout:
            return
        self._went_well = False
        if seconds >= LATE_SHARE * timeout:
            self._queue.halve(self._began, self.in_flight)

    def failed(self) -> None:
        """Report a server error."""
        self._went_well = False
        self._queue.pause()

    def __enter__(self) -> RequestSlot:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(raised=kind is not None)

    def close(self, *, raised: bool) -> None:
        """Give the slot back, once; `raised` is whether the request ended with an exception."""
        if self._is_open:
            self._is_open = False
            self._queue.leave(went_well=self._went_well and not raised)


class RateLimiter:
    """The rate limit of one endpoint; each event loop has its own queue, since loops cannot wake each other."""

    def __init__(self, limits: RateLimits = NO_LIMITS) -> None:
        self._limits = limits
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def acquire(self, tokens: int = 0, waiting: AbstractContextManager[None] | None = None) -> RequestSlot:
        """Wait for a slot, first come, first served; `tokens` is an estimate of what the request will use.

        `waiting` is entered while the request waits. The slot is given back at the end of its `with` block.
        """
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Queue(self._limits)
        with waiting or nullcontext():
            await queue.enter(tokens)
        return RequestSlot(queue, loop.time())


class _Queue:
    """The requests of one event loop that wait for an endpoint, and how many it may have at the same time."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        # How many requests may be in flight; a float, since it may grow by less than one per request.
        self._room = float(max(1, min(limits.initial, limits.maximum)))
        self._doubling = True
        self._in_flight = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._sent: deque[tuple[float, int]] = deque()  # of the last window: time and tokens of each request
        self._tokens = 0
        self._closed_until = 0.0
        self._slowed_at = float("-inf")
        self._refusals = 0
        self._quickest = float("inf")  # seconds of the quickest answer
        self._interval = 0.0  # seconds between two requests; 0 if the endpoint has not refused any
        self._is_measuring = False  # whether the rate is computed when requests may be sent again
        self._opened_at = float("inf")  # since when the answers are counted
        self._answers = 0
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, tokens: int) -> None:
        loop = asyncio.get_running_loop()
        entry = (loop.create_future(), tokens)
        self._waiting.append(entry)
        self._admit()
        try:
            await entry[0]
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif not entry[0].cancelled():
                self._in_flight -= 1  # admitted and cancelled at the same moment: the next request gets the slot
            self._admit()
            raise

    def leave(self, *, went_well: bool) -> None:
        self._in_flight -= 1
        if went_well:
            self._refusals = 0
            self._answers += 1
            self._interval /= RATE_GROWTH
            self._room = min(float(self._limits.maximum), self._room + (1.0 if self._doubling else 1.0 / self._room))
        self._admit()

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def is_slow(self, seconds: float) -> bool:
        """Whether an answer took much longer than the quickest one."""
        self._quickest = min(self._quickest, seconds)
        return seconds > SLOW_FACTOR * self._quickest

    def halve(self, began: float, in_flight: float = float("inf")) -> bool:
        """Halve the number of concurrent requests; once for all requests that were in flight together.

        `began` is when the request was sent. Returns whether the number was halved.
        """
        if began < self._slowed_at:
            return False
        self._room = max(1.0, min(self._room, in_flight) / 2)
        self._doubling = False
        self._slowed_at = asyncio.get_running_loop().time()
        return True

    def slow_down(self, began: float, retry_after: float | None) -> None:
        """Pause all requests; then send fewer at the same time, or at the rate that the endpoint accepts.

        Refusals of requests that were in flight together count as one.
        """
        now = asyncio.get_running_loop().time()
        if retry_after is not None:
            self._doubling = False
            self._is_measuring = True
            self._close(now, retry_after)
            return
        self._refusals += self.halve(began)
        self._close(now, self._limits.refusal_pause * 2 ** (min(self._refusals, 10) - 1))

    def _measure_rate(self, now: float) -> None:
        """Take the rate at which the endpoint has answered since the last time, the pause included."""
        if self._answers:
            self._interval = (now - self._opened_at) / self._answers
        self._is_measuring = False
        self._opened_at = now
        self._answers = 0

    def pause(self) -> None:
        """Let all requests wait shortly, after a server error."""
        self._close(asyncio.get_running_loop().time(), self._limits.fault_pause)

    def _close(self, now: float, seconds: float) -> None:
        self._closed_until = max(self._closed_until, now + min(max(0.0, seconds), self._limits.max_pause))

    def _admit(self) -> None:
        """Admit waiting requests in order, as many as may be sent now, and set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._waiting and self._in_flight < int(self._room):
            future, tokens = self._waiting[0]
            now = loop.time()
            if self._is_measuring and now >= self._closed_until:
                self._measure_rate(now)
            ready = self._ready_at(now, tokens)
            if ready > now:
                self._timer = loop.call_at(ready, self._admit)
                return
            self._waiting.popleft()
            if future.done():
                continue
            self._in_flight += 1
            self._opened_at = min(self._opened_at, now)
            self._sent.append((now, tokens))
            self._tokens += tokens
            future.set_result(None)

    def _ready_at(self, now: float, tokens: int) -> float:
        """The time at which a request of this size may be sent; one larger than the limit waits for an empty window."""
        limits = self._limits
        while self._sent and self._sent[0][0] + limits.window <= now:
            self._tokens -= self._sent.popleft()[1]
        ready = self._closed_until
        if self._interval and self._sent:
            ready = max(ready, self._sent[-1][0] + self._interval)
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
