"""Spaces the trials of a run in time (`--rate`), so that a service is asked no more often than it allows."""

from __future__ import annotations

import asyncio

from proctor.agents.agent import BaseAgent
from proctor.base.threads import CLOCK


class RateLimit:
    """At most so many turns a second to each endpoint, whichever agent, suite or worker sends them.

    A trial counts with all its turns when it begins; what is sent again after a failure does not count.
    """

    def __init__(self, turns_a_second: float) -> None:
        self._seconds = 1.0 / turns_a_second
        self._free_at: dict[str, float] = {}

    async def wait(self, agent: BaseAgent, turns: int) -> None:
        """Return when a trial with so many turns may begin; those that wait begin in the order in which they came."""
        endpoint, now = agent.endpoint or agent.identity, CLOCK.monotonic()
        begins = max(now, self._free_at.get(endpoint, now))
        self._free_at[endpoint] = begins + turns * self._seconds
        if begins > now:
            await asyncio.sleep(begins - now)
