"""Decides whether a turn is sent again after a failure, and waits before that.

The rule: a failure that is not the agent's and may pass costs one of the `retries`. It costs none while the endpoint is
known to work, or to be down, as then every turn would use up its retries in the same trouble:

- the endpoint refuses the turn because of its rate limit and says when to come back;
- it refuses the turn because of its rate limit, and has answered others before;
- it is down, after it has answered others before (`proctor.base.rate_limit` finds that out).

What these may cost is time: `retry_seconds` of waiting in all. With no retries, nothing is sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from proctor.base.clock import Clock
from proctor.base.rate_limit import RateLimiter
from proctor.running.failures import Failure, backoff_seconds

MAX_REFUSALS = 20
"""How often a turn may be refused because of a rate limit."""


class Retries:
    """The retries of one conversation: how many there were, how long it waited, and a warning for each."""

    def __init__(
        self,
        limit: int,
        seconds: float,
        backoff: float,
        limiter: RateLimiter,
        wait_for_rate: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`limit` and `seconds` are `retries` and `retry_seconds`; `backoff` is the first pause."""
        self.attempts = 1
        self.warnings: list[str] = []
        self.last_failure: Failure | None = None
        self.waited = 0.0
        """Seconds of pauses, and of waiting for the endpoint after a failure."""
        self._limit = limit
        self._seconds = seconds
        self._backoff = backoff
        self._limiter = limiter
        self._wait_for_rate = wait_for_rate
        self._faults = 0
        self._refusals = 0

    def allow(self, failure: Failure) -> bool:
        """Whether the agent may be called again after a failure."""
        if not failure.is_transient or not self._limit or self._takes_too_long(failure):
            return False
        if failure.diagnosis.limited and self._refusals >= MAX_REFUSALS:
            return False
        return self._costs_no_attempt(failure) or self._faults < self._limit

    async def pause(self, failure: Failure, turn: int = 0) -> None:
        """Wait before the next attempt: as long as the service asked for, or longer each time."""
        self.last_failure = failure
        self._refusals += failure.diagnosis.limited
        pause = failure.diagnosis.retry_after or backoff_seconds(self._backoff, self._faults + 1)
        self.attempts += 1
        what = f"turn {turn + 1} was sent again" if turn else "the agent was called again"
        self.warnings.append(f"{what} (attempt {self.attempts}), since {failure.reason}")
        began = Clock.perf_counter()
        await asyncio.sleep(pause)
        if self._wait_for_rate is not None:
            await self._wait_for_rate()
        self.waited += Clock.perf_counter() - began
        # Only now: it takes a few failures to find out that the endpoint is down.
        self._faults += not self._costs_no_attempt(failure)

    def summary(self, failure: Failure) -> str:
        """How often and how long it was tried, as the end of the reason."""
        if not failure.is_transient:
            return ""
        parts = []
        if self.attempts > 1:
            parts.append(f"after {self.attempts} attempts")
        if self.waited >= 1:
            parts.append(f"{self.waited:.0f} s of waiting")
        if self._limit and self._takes_too_long(failure):
            more = failure.diagnosis.retry_after
            wish = f"the service asks to wait {more:,.0f} s more"
            parts.append(wish if more else "which is as long as Proctor waits")
        return f" ({', '.join(parts)})" if parts else ""

    def _takes_too_long(self, failure: Failure) -> bool:
        return self.waited + failure.diagnosis.retry_after > self._seconds

    def _costs_no_attempt(self, failure: Failure) -> bool:
        if failure.diagnosis.limited:
            return failure.diagnosis.retry_after > 0 or self._limiter.has_answered
        return self._limiter.is_down
