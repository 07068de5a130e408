"""`--rate`: at most so many turns a second to each endpoint."""

from __future__ import annotations

import asyncio

from proctor.agents.agent import BaseAgent
from proctor.base.clock import Clock


class RateLimit:
    """Spaces out the trials of each endpoint, for all agents, suites and workers that share it.

    A trial counts with all its turns when it begins. Turns that are sent again after a failure do not count.
    """

    def __init__(self, turns_a_second: float) -> None:
        self._seconds = 1.0 / turns_a_second
        self._free_at: dict[str, float] = {}

    async def wait(self, agent: BaseAgent, turns: int) -> None:
        """Return when a trial with so many turns may begin; trials that wait begin in the order in which they came."""
        endpoint, now = agent.endpoint or agent.identity, Clock.monotonic()
        begins = max(now, self._free_at.get(endpoint, now))
        self._free_at[endpoint] = begins + turns * self._seconds
        if begins > now:
            await asyncio.sleep(begins - now)
