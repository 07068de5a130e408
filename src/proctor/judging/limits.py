"""Asks an endpoint as much at once as it bears: finds out how much that is, and keeps to limits it is told of.

The number of requests at once starts low and doubles while all goes well. A request that is refused for its rate halves
it, after which it grows by one for each round that went well. A server's own fault says nothing about the rate, so it
only makes for a short pause. Whatever an endpoint wishes for (`Retry-After`) holds for everybody who asks it.


Counts what a run costs in money, and says when it has cost enough.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from weakref import WeakKeyDictionary

from proctor.agents.agent import Usage
from proctor.base.records import record
from proctor.judging.context import waiting

WINDOW_SECONDS = 60.0


@record
class Limits:
    """What an endpoint bears, as far as somebody said."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    first: int = 4
    """Requests at once to begin with."""
    most: int = 64
    """And never more than this, however well it goes."""
    window: float = WINDOW_SECONDS
    """What counts as a minute."""
    pause: float = 1.0
    """Seconds to leave an endpoint alone that refused a request without saying for how long; doubled each time."""
    fault_pause: float = 0.5
    """Seconds to leave it alone after a fault of its own."""
    longest_pause: float = 120.0
    """No wish for more than this is granted; who asked gives up sooner."""


NO_LIMITS = Limits()


class RequestSlot:
    """One request that may be made now; whoever makes it says how it went, unless it went well."""

    def __init__(self, queue: _Queue, began: float) -> None:
        self._queue = queue
        self._began = began
        self._went_well = True

    def limited(self, retry_after: float | None = None) -> None:
        """The endpoint asks to be asked less often."""
        self._went_well = False
        self._queue.slow_down(self._began, retry_after)

    def failed(self) -> None:
        """The endpoint broke down by itself."""
        self._went_well = False
        self._queue.rest()

    def over(self, *, broken_off: bool) -> None:
        self._queue.leave(went_well=self._went_well and not broken_off)


class RateLimiter:
    """One endpoint's rate limit, shared by its callers. Each event loop has its own queue: loops cannot wake each other."""

    def __init__(self, limits: Limits = NO_LIMITS) -> None:
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
    """Who waits for an endpoint in one event loop, and what is known about how much it bears."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._room = float(max(1, min(limits.first, limits.most)))
        self._doubling = True
        self._under_way = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._sent: deque[tuple[float, int]] = deque()
        """When requests of the last window went out, and with how many tokens."""
        self._tokens = 0
        self._closed_until = 0.0
        self._slowed_at = float("-inf")
        self._refusals = 0
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
                self._under_way -= 1  # let in and cancelled in the same moment: the slot goes to the next
            self._admit()
            raise

    def leave(self, *, went_well: bool) -> None:
        self._under_way -= 1
        if went_well:
            self._refusals = 0
            self._room = min(float(self._limits.most), self._room + (1.0 if self._doubling else 1.0 / self._room))
        self._admit()

    def slow_down(self, began: float, retry_after: float | None) -> None:
        """Requests that were under way together are refused together: they count as one refusal."""
        now = asyncio.get_running_loop().time()
        if began >= self._slowed_at:
            self._room = max(1.0, self._room / 2)
            self._doubling = False
            self._slowed_at = now
            self._refusals += 1
        wish = self._limits.pause * 2 ** (min(self._refusals, 10) - 1) if retry_after is None else retry_after
        self._close(now, wish)

    def rest(self) -> None:
        self._close(asyncio.get_running_loop().time(), self._limits.fault_pause)

    def _close(self, now: float, seconds: float) -> None:
        self._closed_until = max(self._closed_until, now + min(max(0.0, seconds), self._limits.longest_pause))

    def _admit(self) -> None:
        """Let in as many as may go now, in order; see to it that the next one is looked at when its time comes."""
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
        """When a request of so many tokens may go out; one that is larger than all limits waits for an empty window."""
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


Payee = Literal["judge", "agent"]


class Budget:
    """What was spent on judges and agents. A cost that nobody knows is counted as such, never as zero."""

    def __init__(self, limit_usd: float | None = None) -> None:
        self.limit_usd = limit_usd
        self.spent = 0.0
        self.unknown: dict[Payee, int] = {"judge": 0, "agent": 0}
        """How many calls of judges, or answers of agents, came without a cost."""

    def spend(self, usage: Usage | None, payee: Payee = "judge") -> None:
        """Count one call of a judge, or one answer of an agent."""
        cost = None if usage is None else usage.cost_usd
        if cost is None:
            self.unknown[payee] += 1
        else:
            self.spent += cost

    @property
    def exhausted(self) -> bool:
        """Whether nothing more should be begun."""
        return self.limit_usd is not None and self.spent >= self.limit_usd

    def uncounted(self) -> str:
        """What the sum leaves out, as people read it; empty when it leaves out nothing."""
        nouns: dict[Payee, tuple[str, str]] = {"judge": ("judge call", "judge calls"), "agent": ("answer", "answers")}
        parts = [f"{count:,} {nouns[who][count != 1]}" for who, count in self.unknown.items() if count]
        return f"the cost of {' and '.join(parts)} is not known and not counted" if parts else ""


class UncappedBudget(Budget):
    """What trials under way spend: it is counted in `budget`, and none of them is cut short when that is spent."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self._budget = budget

    def spend(self, usage: Usage | None, payee: Payee = "judge") -> None:
        self._budget.spend(usage, payee)
