"""Limits on the turns that are sent to an endpoint: `--rate`, and the limit that the endpoint itself has."""

from __future__ import annotations

import asyncio

from proctor.agents.agent import BaseAgent
from proctor.base.clock import Clock
from proctor.base.rate_limit import RateLimiter, RateLimits

MAX_REFUSED_SECONDS = 300.0
"""How long a conversation waits in all for a service that refuses its turns because of a rate limit."""


MAX_REFUSALS = 20
"""How often it is refused at most."""


def agent_limiter(most: int, backoff: float) -> RateLimiter:
    """A limiter for agents of one endpoint. It does nothing until the endpoint refuses a turn.

    A turn is not one request: agents call models and tools, block and compute. So all turns may start at once, at most
    `most`, and only a refusal makes them wait: as long as the endpoint asks, or `backoff` seconds, doubled each time.
    """
    limits = RateLimits(initial=most, maximum=most, max_pause=MAX_REFUSED_SECONDS, refusal_pause=backoff)
    return RateLimiter(limits)


class AgentLimiters:
    """The limiters of a run, one for each endpoint."""

    def __init__(self, most: int, backoff: float) -> None:
        self._most = most
        self._backoff = backoff
        self._limiters: dict[str, RateLimiter] = {}

    def limiter_of(self, agent: BaseAgent) -> RateLimiter:
        endpoint = agent.endpoint or agent.identity
        if endpoint not in self._limiters:
            self._limiters[endpoint] = agent_limiter(self._most, self._backoff)
        return self._limiters[endpoint]


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
