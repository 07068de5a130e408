"""Limits on the turns that are sent to an endpoint: `--rate`, and the limit that the endpoint itself has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from proctor.agents.agent import BaseAgent
from proctor.base.clock import Clock
from proctor.base.rate_limit import RateLimiter, RateLimits
from proctor.results.run import EndpointTrouble

INITIAL_PARALLEL = 20
"""Turns in flight at the start, and trials of a suite until the first one is answered."""


class AgentLimiters:
    """The limiters of a run, one for each endpoint."""

    def __init__(self, limits: RateLimits, on_outage: Callable[[bool], None]) -> None:
        self._limits = limits
        self._on_outage = on_outage
        self._limiters: dict[str, RateLimiter] = {}
        self._names: dict[str, str] = {}

    def limiter_of(self, agent: BaseAgent) -> RateLimiter:
        endpoint = agent.endpoint or agent.identity
        if endpoint not in self._limiters:
            self._limiters[endpoint] = RateLimiter(self._limits, self._on_outage)
            self._names[endpoint] = agent.endpoint or agent.name
        return self._limiters[endpoint]

    def troubles(self) -> tuple[EndpointTrouble, ...]:
        """The endpoints that refused requests or were down."""
        return tuple(
            EndpointTrouble(self._names[key], events.highest, events.refusals, events.faults, limiter.down_seconds)
            for key, limiter in self._limiters.items()
            if (events := limiter.events).refusals or events.outages
        )


class RateLimit:
    """Delays the trials of each endpoint, for all agents, suites and workers that share it.

    A trial counts with all its turns when it starts, and each turn that is sent again after a failure too.
    """

    def __init__(self, turns_per_second: float) -> None:
        self._seconds_per_turn = 1.0 / turns_per_second
        self._free_at: dict[str, float] = {}

    async def wait(self, agent: BaseAgent, turns: int) -> None:
        """Wait until a trial with this many turns may start; waiting trials start in the order of their calls."""
        endpoint, now = agent.endpoint or agent.identity, Clock.monotonic()
        start = max(now, self._free_at.get(endpoint, now))
        self._free_at[endpoint] = start + turns * self._seconds_per_turn
        if start > now:
            await asyncio.sleep(start - now)
