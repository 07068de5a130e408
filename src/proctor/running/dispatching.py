"""Hands out trials in the order of the plan, never more of one suite at once than that suite allows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from proctor.running.plan import PlannedTrial


class Dispatcher:
    """What is still to be made. A suite that is at its limit does not hold up the ones behind it."""

    def __init__(self, trials: Iterable[PlannedTrial]) -> None:
        self._queues: dict[int, deque[PlannedTrial]] = {}
        self._room: dict[int, int] = {}
        for trial in trials:
            key = id(trial.suite)
            self._queues.setdefault(key, deque()).append(trial)
            self._room[key] = trial.suite.limits.parallel
        self._freed = asyncio.Event()

    async def take(self) -> PlannedTrial | None:
        """The next trial that may start; waits while all suites are at their limits, `None` when nothing is left."""
        while self._queues:
            for key, queue in self._queues.items():
                if self._room[key] > 0:
                    self._room[key] -= 1
                    trial = queue.popleft()
                    if not queue:
                        del self._queues[key]
                    return trial
            self._freed.clear()
            await self._freed.wait()
        return None

    def give_back(self, trial: PlannedTrial) -> None:
        """The trial is over: its suite has room for another."""
        self._room[id(trial.suite)] += 1
        self._freed.set()

    def close(self) -> None:
        """Nothing more is handed out."""
        self._queues.clear()
        self._freed.set()
