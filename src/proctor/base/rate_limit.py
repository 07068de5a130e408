"""Finds out how many requests an endpoint takes, and how often: of an agent, or of a judge.

`RateLimiter.acquire` waits until a request may be sent. The obvious version, a fixed number of requests at a time and a
growing pause after each refusal, is too slow where the endpoint would take more, and burns all retries in an outage.
Here every request that ends says something about the endpoint:

- *Answers* (`_Room`). The number of requests in flight starts small, and grows with each answer. If the
  quickest third of a group of requests take much longer to be answered than the quickest third of the first ones did,
  the endpoint queues requests: more in flight gains nothing, and all that wait in its queue are lost in an outage. Then
  fewer are sent; if these are not quicker, they did not wait in a queue, and the number is as before. Single answers
  cannot show this, since early answers are always quick ones.
- *A refusal that says nothing more*. There were too many at the same time, and the endpoint has accepted all others
  that are in flight: this is its limit. From then on one more is tried now and then: rarely while that is refused,
  and in growing steps while it is accepted, as the limit may have been lifted.
- *A refusal with the time of the next try* (`_Pace`). The endpoint limits the rate, with tokens that it refills, and
  has none left now. Between two such moments it has accepted as many requests as it refilled tokens: that is the rate.
  It is followed, and exceeded a little more with each request that is accepted, so that a limit that was lifted is
  noticed. Others may use the same limit, such as the judges of a run: then the measured rate is too low, so a refusal
  never takes more than a share of the rate at which the last requests were sent. Fewer requests at the same time would
  be the wrong answer: quick ones would be refused all the same, and slow ones would be sent too rarely.
- *Faults* (`_Outage`): server errors and broken connections. Several in a row, of an endpoint that has answered before,
  mean that it is down. Then all wait, but for one request at a time that finds out whether it is back.

"In a row" is about the order in which requests were sent: answers to earlier ones may still arrive in an outage.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from weakref import WeakKeyDictionary

WINDOW_SECONDS = 60.0
SLOW_SHARE = 0.25
"""A slow answer that took at least this share of the timeout does not let the number of requests grow."""
LATE_SHARE = 0.5
"""From this share on it halves the number: the next such request may time out."""
SLOW_FACTOR = 1.5
"""An answer is slow if it took more than this many times as long as the quickest one; some models are never quick."""


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
    """Seconds to pause if a request is refused while no other is in flight; doubled each time."""
    max_pause: float = 120.0
    """The longest pause; a request whose `Retry-After` is longer fails."""
    max_outage: float = 300.0
    """Seconds of an outage after which requests are no longer held back, but fail."""


NO_LIMITS = RateLimits()


class EndpointDown(Exception):
    """A request was not sent, since the endpoint has been down for too long; `seconds` is for how long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the service has been down for {seconds:.0f} s")


@dataclass(slots=True)
class LimiterEvents:
    """What a limiter has seen and done, for reports."""

    refusals: int = 0
    faults: int = 0
    outages: int = 0
    highest: int = 0
    """The most requests that were in flight."""


class RequestSlot:
    """Permission to make one request, inside `with`; the caller reports how it ended.

    A request that ends without a report, as with an error of the agent's own, says nothing about the endpoint.
    """

    def __init__(self, queue: _Queue, number: int) -> None:
        self._queue = queue
        self._is_open = True
        self._is_lost = False
        self._number = number
        self._began = asyncio.get_running_loop().time()
        self._in_flight_at_start = queue.in_flight

    @property
    def in_flight(self) -> int:
        """How many requests were in flight when this one was sent, or are now, if that is more."""
        return max(self._in_flight_at_start, self._queue.in_flight)

    def answered(self, timeout: float = math.inf) -> None:
        """Report an answer; `timeout` is how long it could have taken."""
        self._queue.answered(self._number, self._began, timeout)

    def limited(self, retry_after: float | None = None) -> None:
        """Report that the endpoint refused the request because of its rate limit."""
        self._is_lost = True
        self._queue.refused(self._number, self._began, retry_after)

    def timed_out(self) -> None:
        """Report that the request timed out."""
        self._is_lost = True
        self._queue.timed_out(self._began, self.in_flight)

    def failed(self) -> None:
        """Report a server error or a broken connection."""
        self._is_lost = True
        self._queue.failed(self._number)

    def __enter__(self) -> RequestSlot:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_lost = self._is_lost or kind is asyncio.CancelledError
        self.close()

    def close(self) -> None:
        """Give the slot back, once."""
        if self._is_open:
            self._is_open = False
            self._queue.leave(self._number, lost=self._is_lost)


class RateLimiter:
    """The limits of one endpoint; each event loop has its own queue, since loops cannot wake each other."""

    def __init__(self, limits: RateLimits = NO_LIMITS, on_outage: Callable[[bool], None] = lambda _: None) -> None:
        """`on_outage` is called with True when an outage begins, and with False when it ends."""
        self._limits = limits
        self._on_outage = on_outage
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()
        self.events = LimiterEvents()

    @property
    def down_seconds(self) -> float:
        """How long the endpoint was down, an outage that goes on included."""
        return sum(queue.outage.seconds(loop.time()) for loop, queue in self._queues.items())

    async def acquire(
        self, tokens: int = 0, waiting: AbstractContextManager[None] | None = None, *, first: bool = False
    ) -> RequestSlot:
        """Wait for a slot, first come, first served; those with `first` go before all others.

        `tokens` is an estimate of what the request will use. `waiting` is entered while the request waits. The slot is
        given back at the end of its `with` block. Raises `EndpointDown` after a long outage.
        """
        queue = self._queue()
        with waiting or nullcontext():
            number = await queue.enter(tokens, first=first)
        return RequestSlot(queue, number)

    @property
    def is_down(self) -> bool:
        """Whether the endpoint has an outage, as far as known."""
        return self._queue().outage.is_open

    @property
    def has_answered(self) -> bool:
        """Whether the endpoint has answered a request before."""
        return self._queue().has_answered

    def _queue(self) -> _Queue:
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = _Queue(self._limits, self.events, self._on_outage)
        return queue


GROWTH_SHARE = 0.15
"""With each answer, this share of the first number of requests may be in flight in addition, and at least one."""
FULL = 0.9
"""The room is needed if this share of it is used; a few requests may just pause before they are sent again."""
MAX_ROUNDS = 8
"""After so many rounds one more request is tried, even if it was always refused."""


class _Room:
    """How many requests may be in flight at the same time."""

    def __init__(self, initial: int, maximum: int) -> None:
        self._maximum = float(max(1, maximum))
        self.size = self._initial = float(max(1, min(initial, maximum)))
        self._grows_fast = True
        self._growth = max(1.0, GROWTH_SHARE * self._initial)
        self._step = 1.0
        self._rounds = 1.0  # how many rounds, of as many answers as the room is large, until the next step
        self._answers = 0
        self._has_stepped = False
        self._queueing = _QueueingTest(int(self.size))
        self._before_cut: tuple[float, float] | None = None  # size and ratio, until the cut has proved right

    def sent(self, number: int, in_flight: int) -> None:
        self._queueing.sent(number, in_flight)

    def answered(self, number: int, seconds: float, *, is_full: bool) -> None:
        """Grow, if all of the room was needed."""
        if (ratio := self._queueing.answered(number, seconds)) is not None:
            self._compare(ratio)
        if is_full and self._grows_fast:
            self.size = min(self._maximum, self.size + self._growth)
            if self.size == self._maximum:
                self._queueing.end_soon()
        elif is_full and self.size < self._maximum:
            self._answers += 1
            if self._answers >= self.size * self._rounds:
                self._take_step()

    def _compare(self, ratio: float) -> None:
        """Have fewer requests in flight if `ratio` times as long as the first ones shows that they queue."""
        if self._before_cut is not None:
            size, before = self._before_cut
            self._before_cut = None
            if ratio > SAME * before:  # fewer are no quicker: these requests just take longer than the first ones
                self.size = max(self.size, size)
                self._queueing.end()
        elif ratio > MUCH_LONGER:
            self._before_cut = self.size, ratio
            self._stop_growing()
            self._rounds = MAX_ROUNDS
            self.size = min(self.size, max(self._initial, MARGIN * self.size / ratio))

    def _take_step(self) -> None:
        if self._has_stepped:  # the last step was not refused
            self._rounds = 1.0
            self._step *= 2
        self._has_stepped = True
        self._answers = 0
        self.size = min(self._maximum, self.size + self._step)

    def refused(self, others: int) -> None:
        """The endpoint takes only the others that are in flight."""
        self._queueing.restart()
        if others < self.size:
            rounds = min(MAX_ROUNDS, 2 * self._rounds) if self._has_stepped else self._rounds
            self._stop_growing()
            self._rounds = rounds
            self.size = float(max(1, others))

    def halve(self, in_flight: int) -> None:
        """The endpoint takes too long for this many."""
        self._queueing.restart()
        self._stop_growing()
        self.size = max(1.0, min(self.size, in_flight) / 2)

    def failed(self) -> None:
        self._queueing.restart()

    def _stop_growing(self) -> None:
        self._grows_fast = False
        self._has_stepped = False
        self._step = 1.0
        self._answers = 0


GROUP = 24
"""So many requests are compared with the first ones."""
QUICKEST = 0.35
"""This share of the group is compared with the same share of the first ones: time in a queue shows most in them."""
MUCH_MORE = 1.5
"""Requests are compared with the first ones if so many times as many are in flight."""
MUCH_LONGER = 2.2
"""They wait in a queue if they take so many times as long."""
MARGIN = 1.5
"""How many times as many requests are in flight as the endpoint seems to work on, if it queues them."""
SAME = 0.75
"""They did not queue, if fewer in flight take more than this share of the time."""
LAST_GROUPS = 3
"""How many groups are compared when the number in flight does not grow any more."""


class _QueueingTest:
    """Finds out, while the number of requests in flight grows, whether the endpoint lets them wait in a queue.

    Compares the time in which the quickest third of a group of requests are answered with that of the first requests.
    The mean time would have to wait for the slow answers, and varies with them.
    """

    def __init__(self, first: int) -> None:
        self._first = max(8, first)
        self._base = 0.0  # seconds in which the quickest of the first requests were answered
        self._first_seconds: list[float] = []
        self._start: int | None = None  # the number of the first request of the group
        self._seconds: list[float] = []
        self._groups_left = math.inf

    def restart(self) -> None:
        """Drop the group: something else has happened."""
        self._start = None

    def end(self) -> None:
        self._groups_left = 0

    def end_soon(self) -> None:
        """The number in flight does not grow any more."""
        self._groups_left = min(self._groups_left, LAST_GROUPS)

    def sent(self, number: int, in_flight: int) -> None:
        if self._start is None and self._base and self._groups_left and in_flight >= MUCH_MORE * self._first:
            self._start = number
            self._seconds = []

    def answered(self, number: int, seconds: float) -> float | None:
        """Count an answer; at the end of a group, returns how many times as long as the first ones they took."""
        if number <= self._first and not self._base:
            self._first_seconds.append(seconds)
            if len(self._first_seconds) >= QUICKEST * self._first:
                self._base = max(self._first_seconds)
        if self._start is None or not self._start <= number < self._start + GROUP:
            return None
        self._seconds.append(seconds)
        if len(self._seconds) < QUICKEST * GROUP:
            return None
        self._start = None
        self._groups_left -= 1
        return max(self._seconds) / self._base


SURE_REFUSALS = 3
"""So many refusals in a row make all requests wait as long as the endpoint asks; fewer make them wait less."""
DOUBLED_AFTER = 16.0, 32, 256
"""After how many requests without a refusal the rate is twice what was measured: a factor of the requests that it was
measured on, the least number and the highest. What few requests say may be far too low."""
GUESS_DOUBLED_AFTER = 0.5, 4, 8
"""The same while the rate is a guess."""
KEPT_PACE = 0.6
"""A refusal leaves at least this share of the rate at which the last requests were sent."""
RECENT_SENDS = 16
"""So many requests are the last ones."""
MEASURED_REQUESTS = 5
"""A rate that was computed from fewer accepted requests is a guess."""
BLIND_SENDS = 4
"""How many requests are sent until the next refusal could arrive, after the first one."""


class _Pace:
    """When the next request may be sent, by what the endpoint says when it refuses one."""

    def __init__(self, refusal_pause: float, max_pause: float) -> None:
        self._refusal_pause = refusal_pause
        self._max_pause = max_pause
        self._rate = 0.0  # requests per second; 0 if the endpoint has not refused any
        self._is_guess = True
        self._doubled_after = float(GUESS_DOUBLED_AFTER[1])
        self._refused_pace = 0.0  # the rate at which requests were sent when one was refused
        self._recent: deque[float] = deque(maxlen=RECENT_SENDS)  # when the last requests were sent
        self._burst = 1.0  # the most tokens
        self._tokens = 0.0
        self._filled_at = 0.0
        self._start: tuple[int, float] | None = None  # the request from which accepted ones are counted, and when
        self._last_refused: tuple[int, float] | None = None  # the same of the last refusal, until it is measured
        self._refused = 0  # requests since the start
        self._wait = 0.0  # what the endpoint asked for last
        self._seconds_to_refuse = 0.0
        self._sent_in_a_row = 0  # since the last refusal
        self._paused_at = self._paused_until = 0.0
        self._lone_refusals = 0

    def sent(self, now: float, number: int) -> None:
        if self._start is None:
            self._start = number - 1, now
        self._sent_in_a_row += 1
        if self._rate:
            self._fill(now)
            self._tokens -= 1.0
            if self._tokens >= 1.0:  # not the rate, but the tokens that were saved, let it go
                self._recent.clear()
            else:
                self._recent.append(now)

    def answered(self) -> None:
        self._lone_refusals = 0

    def refused(self, now: float, number: int, began: float, wait: float, in_a_row: int) -> None:
        """A request was refused, and the endpoint says how long to wait."""
        self._refused += self._start is not None and number > self._start[0]
        self._refused_pace = max(self._refused_pace, self._recent_pace(now))
        self._sent_in_a_row = 0
        self._recent.clear()
        self._wait = wait
        self._seconds_to_refuse = max(1e-3, now - began)
        if self._last_refused is None or number > self._last_refused[0]:
            self._last_refused = number, began + wait
        if in_a_row >= SURE_REFUSALS:
            self._pause(now, wait)
        elif self._is_guess:
            self._pause(now, min(wait, 1.0))

    def refused_alone(self, now: float) -> None:
        """A request was refused although no other was in flight, and the endpoint does not say how long to wait."""
        self._pause(now, self._refusal_pause * 2 ** min(self._lone_refusals, 10))
        self._lone_refusals += 1

    def _pause(self, now: float, seconds: float) -> None:
        until = now + min(max(0.0, seconds), self._max_pause)
        if until > self._paused_until:
            self._paused_at = now
            self._paused_until = until

    def ready_at(self, now: float) -> float:
        """The time at which another request may be sent."""
        if now < self._paused_until:
            return self._paused_until
        if self._last_refused is not None:
            self._measure(now, *self._last_refused)
        if not self._rate:
            return now
        self._fill(now)
        return now if self._tokens >= 1.0 - 1e-6 else now + (1.0 - self._tokens) / self._current_rate

    @property
    def _current_rate(self) -> float:
        rate = self._rate * (1.0 + (self._sent_in_a_row / self._doubled_after) ** 2)
        if not self._is_guess:
            return rate
        return min(rate, (BLIND_SENDS + self._sent_in_a_row) / self._seconds_to_refuse)

    def _recent_pace(self, now: float) -> float:
        """The rate at which the last requests were sent, without a refusal among them; 0 if these were too few."""
        if len(self._recent) < RECENT_SENDS or now <= self._recent[0]:
            return 0.0
        return min(self._current_rate, len(self._recent) / (now - self._recent[0]))

    def _fill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._current_rate)
        self._filled_at = now

    def _measure(self, now: float, number: int, refilled_at: float) -> None:
        """Take the rate at which the endpoint has accepted requests since it had no tokens."""
        self._last_refused = None
        first, began = self._start or (number, refilled_at)
        accepted, seconds = number - first - self._refused, refilled_at - began
        is_first = not self._rate
        if is_first:
            self._burst = max(1.0, float(accepted))
        if seconds > 0 and accepted >= (1 if self._is_guess else MEASURED_REQUESTS):
            self._rate = max(accepted / seconds, KEPT_PACE * self._refused_pace)
            if is_first or accepted >= MEASURED_REQUESTS:
                self._is_guess = is_first
                self._start, self._refused = (number, refilled_at), 0
            factor, least, most = GUESS_DOUBLED_AFTER if self._is_guess else DOUBLED_AFTER
            self._doubled_after = min(most, max(least, factor * accepted))
        self._refused_pace = 0.0
        # If the wait was rounded up to seconds, the endpoint has refilled its tokens meanwhile; else it has one.
        is_rounded = self._wait == int(self._wait)
        refilled = self._rate * (self._paused_until - self._paused_at) if is_rounded else 1.0
        self._tokens = min(self._burst, max(1.0, refilled)) if self._paused_until > self._filled_at else 0.0
        self._filled_at = now


FAULTS_OF_OUTAGE = 4
"""So many faults in a row mean that the endpoint is down."""
FIRST_PROBE = 0.5
"""Seconds until the first request that finds out whether an outage is over."""
PROBE_GROWTH = 1.25
LAST_PROBE = 1.0
"""The longest time between two of them, in seconds."""


class _Outage:
    """Whether the endpoint is down, and when to find out whether it is back."""

    def __init__(self, events: LimiterEvents, on_change: Callable[[bool], None]) -> None:
        self.is_open = False
        self.since = 0.0
        self._seconds = 0.0  # of outages that are over
        self._events = events
        self._on_change = on_change
        self._first_fault = 0  # the number of the first request that was lost
        self._probe: int | None = None
        self._probe_at = 0.0
        self._interval = FIRST_PROBE

    def seconds(self, now: float) -> float:
        """How long all outages took until now."""
        return self._seconds + (now - self.since if self.is_open else 0.0)

    def begin(self, now: float, first_fault: int) -> None:
        self.is_open = True
        self.since = now
        self._first_fault = first_fault
        self._probe = None
        self._interval = FIRST_PROBE
        self._probe_at = now + self._interval
        self._events.outages += 1
        self._on_change(True)

    def answered(self, now: float, number: int) -> None:
        """A request was answered; one that was sent after the outage began ends it."""
        if self.is_open and number > self._first_fault:
            self._seconds = self.seconds(now)
            self.is_open = False
            self._on_change(False)

    def left(self, now: float, number: int, *, lost: bool) -> None:
        """A request has ended; after a probe that was lost comes the next one, a little later."""
        if number == self._probe and not lost:
            self.answered(now, number)
        elif number == self._probe:
            self._probe = None
            self._interval = min(LAST_PROBE, self._interval * PROBE_GROWTH)
            self._probe_at = now + self._interval

    def ready_at(self, now: float) -> float:
        """The time at which a request may be sent; infinite while another one finds out whether the outage is over."""
        return now if not self.is_open else math.inf if self._probe is not None else max(now, self._probe_at)

    def sent(self, number: int) -> None:
        if self.is_open:
            self._probe = number


@dataclass(eq=False, slots=True)
class _Waiting:
    """A request that waits to be sent; the result of the future is its number."""

    future: asyncio.Future[int]
    tokens: int


class _Queue:
    """The requests of one event loop that wait for an endpoint, and what is known about it."""

    def __init__(self, limits: RateLimits, events: LimiterEvents, on_outage: Callable[[bool], None]) -> None:
        self._limits = limits
        self._events = events
        self._room = _Room(limits.initial, limits.maximum)
        self._pace = _Pace(limits.refusal_pause, limits.max_pause)
        self.outage = _Outage(events, on_outage)
        self.in_flight = 0
        self.has_answered = False
        self._last_number = 0  # requests are numbered as they are sent
        self._last_answered = 0  # the highest number of an answered one
        self._refusals: list[int] = []  # of requests that were sent after that one
        self._faults: list[int] = []
        self._waiting: deque[_Waiting] = deque()
        self._sent: deque[tuple[float, int]] = deque()  # of the last window: time and tokens of each request
        self._tokens = 0
        self._quickest = math.inf  # seconds of the quickest answer
        self._slowed_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, tokens: int, *, first: bool) -> int:
        """Wait until the request may be sent; returns its number."""
        loop = asyncio.get_running_loop()
        entry = _Waiting(loop.create_future(), tokens)
        if first:
            self._waiting.appendleft(entry)
        else:
            self._waiting.append(entry)
        self._admit()
        try:
            return await entry.future
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif not entry.future.cancelled():  # admitted and cancelled at the same moment: the next one gets the slot
                self._depart(entry.future.result(), lost=True)
            self._admit()
            raise

    def leave(self, number: int, *, lost: bool) -> None:
        """A request has ended; `lost` is whether the endpoint did not answer it."""
        self._depart(number, lost=lost)
        self._admit()

    def _depart(self, number: int, *, lost: bool) -> None:
        self.in_flight -= 1
        self.outage.left(asyncio.get_running_loop().time(), number, lost=lost)

    def answered(self, number: int, began: float, timeout: float) -> None:
        now = asyncio.get_running_loop().time()
        self.has_answered = True
        if number > self._last_answered:
            self._last_answered = number
            self._refusals = [item for item in self._refusals if item > number]
            self._faults = [item for item in self._faults if item > number]
        self.outage.answered(now, number)
        self._pace.answered()
        seconds = now - began
        self._quickest = min(self._quickest, seconds)
        is_slow = seconds > SLOW_FACTOR * self._quickest
        if is_slow and seconds >= LATE_SHARE * timeout:
            self.timed_out(began, self.in_flight)
        elif not is_slow or seconds < SLOW_SHARE * timeout:
            self._room.answered(number, seconds, is_full=self.in_flight >= FULL * int(self._room.size))

    def refused(self, number: int, began: float, retry_after: float | None) -> None:
        now = asyncio.get_running_loop().time()
        self._events.refusals += 1
        if number > self._last_answered:
            self._refusals.append(number)
        if retry_after is not None:
            self._pace.refused(now, number, began, retry_after, len(self._refusals))
        elif self.in_flight == 1:
            self._pace.refused_alone(now)
        if retry_after is None:
            self._room.refused(self.in_flight - 1)
        else:
            self._room.failed()

    def timed_out(self, began: float, in_flight: int) -> None:
        """Halve the room; once for all requests that were in flight together."""
        now = asyncio.get_running_loop().time()
        if began >= self._slowed_at:
            self._room.halve(in_flight)
            self._slowed_at = now

    def failed(self, number: int) -> None:
        now = asyncio.get_running_loop().time()
        self._events.faults += 1
        if number > self._last_answered:
            self._faults.append(number)
        if not self.outage.is_open and self.has_answered and len(self._faults) >= FAULTS_OF_OUTAGE:
            self.outage.begin(now, min(self._faults))

    def _admit(self) -> None:
        """Admit waiting requests in order, as many as may be sent now, and set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = asyncio.get_running_loop()
        while self._waiting and (self.in_flight < int(self._room.size) or self.outage.is_open):
            entry = self._waiting[0]
            now = loop.time()
            ready = self._ready_at(now, entry.tokens)
            if ready > now:
                if self.outage.is_open:
                    patience = self.outage.since + self._limits.max_outage
                    if now >= patience:
                        self._give_up(now)
                        return
                    ready = min(ready, patience)
                self._timer = loop.call_at(ready, self._admit)
                return
            self._waiting.popleft()
            if not entry.future.done():
                self._send(now, entry)

    def _send(self, now: float, entry: _Waiting) -> None:
        self.in_flight += 1
        self._events.highest = max(self._events.highest, self.in_flight)
        self._last_number += 1
        self._room.sent(self._last_number, self.in_flight)
        self._sent.append((now, entry.tokens))
        self._tokens += entry.tokens
        self._pace.sent(now, self._last_number)
        self.outage.sent(self._last_number)
        entry.future.set_result(self._last_number)

    def _give_up(self, now: float) -> None:
        """End the wait of all requests."""
        for entry in self._waiting:
            if not entry.future.done():
                entry.future.set_exception(EndpointDown(now - self.outage.since))
        self._waiting.clear()

    def _ready_at(self, now: float, tokens: int) -> float:
        """The time at which a request of this size may be sent; one larger than the limit waits for an empty window."""
        limits = self._limits
        while self._sent and self._sent[0][0] + limits.window <= now:
            self._tokens -= self._sent.popleft()[1]
        ready = max(self._pace.ready_at(now), self.outage.ready_at(now))
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
