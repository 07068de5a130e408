"""Which worker makes which trial."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.running.cluster.messages import TrialOrder
from proctor.running.engine.ask import Answer

SHORT_SECONDS = 1.0
"""Trials shorter than this are sent ahead, so that a worker does not wait for the network between two."""


@dataclass(slots=True, eq=False)
class Job:
    """One trial until there is an answer."""

    order: TrialOrder
    answer: asyncio.Future[Answer]
    lost: list[str] = field(default_factory=list)
    """The workers that ended while it was being asked."""
    arrived: bool = False
    """Whether the worker is known to have got it; one that had ended before cannot have been ended by it."""
    missed: int = 0
    """How often a worker had ended before it got the trial."""
    place: asyncio.Future[Lane] | None = None
    """Where a conversation takes place whose user is in this process: nothing is sent for it but its turns."""


@dataclass(slots=True, eq=False)
class Lane:
    """One worker, and the trials it has."""

    address: str
    name: str
    server: Any
    jobs: dict[int, Job] = field(default_factory=dict)
    """In the order in which they were sent, which is the order in which they begin."""
    unsent: list[TrialOrder] = field(default_factory=list)
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    ended: bool = False
    """Whether it gets no more trials: it does not answer."""
    kept_for: Job | None = None
    """A trial that is to have this worker for itself."""
    task: asyncio.Task[None] | None = None
    sending: asyncio.Task[None] | None = None

    @property
    def ahead(self) -> bool:
        """Whether trials are short enough to be sent ahead."""
        return self.done > 0 and self.seconds / self.done < SHORT_SECONDS


def lane_with_room(lanes: Iterable[Lane], job: Job, width: int, parallel: Sequence[int]) -> Lane | None:
    """The worker with most room for a trial of its suite; one that makes as many as it may gets short ones ahead."""
    suite, best, most = job.order.suite, None, 0
    for lane in lanes:
        if lane.kept_for is not None or lane.ended:
            continue
        room = width - len(lane.jobs)
        if len(parallel) > 1:
            of_suite = sum(1 for other in lane.jobs.values() if other.order.suite == suite)
            room = min(room, parallel[suite] - of_suite)
        ahead = width if lane.ahead and not job.lost else 0
        if room + ahead > 0 and (best is None or room > most):
            best, most = lane, room
    return best


def empty_lane(lanes: Iterable[Lane], job: Job) -> Lane | None:
    """A worker for one trial alone; the one with fewest trials gets no more until they are done."""
    there = [lane for lane in lanes if not lane.ended]
    own = next((lane for lane in there if lane.kept_for is job), None)
    if own is None:
        free = [lane for lane in there if lane.kept_for is None]
        own = min(free, key=lambda lane: len(lane.jobs), default=None)
        if own is None:
            return None
        own.kept_for = job
    return own if not own.jobs else None
