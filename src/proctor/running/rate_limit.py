"""`--rate`: a limit on the turns per second to each endpoint."""

from __future__ import annotations

import asyncio

from proctor.agents.agent import BaseAgent
from proctor.base.clock import Clock


class RateLimit:
    """Delays the trials of each endpoint, for all agents, suites and workers that share it.

    A trial counts with all its turns when it starts. Turns that are sent again after a failure do not count.
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
