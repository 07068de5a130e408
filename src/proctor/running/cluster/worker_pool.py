"""The run's side: gives trials to workers, as many to each as it may make at once, and asks again what a worker lost.

Each worker holds a `TrialServer`. Trials and answers travel in batches, answers through one pending call per worker. A
trial that was under way when its worker ended is asked again: once among others, then alone, so that a trial which ends
its worker is told from those beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import pickle
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from proctor.agents.agent import Reply
from proctor.base.errors import UsageError
from proctor.base.references import describe
from proctor.base.threads import CLOCK
from proctor.cases.suite import Turn
from proctor.results.run import Outcome
from proctor.running.cluster.messages import TrialOrder, can_be_scored_there, unpacked
from proctor.running.cluster.placement import Job, Lane, empty_lane, lane_with_room
from proctor.running.cluster.trial_server import STOP_SECONDS, TrialServer
from proctor.running.engine.ask import Answer, ConversationSpoiled, RunStopped, User
from proctor.running.engine.plan import Plan, PlannedTrial
from proctor.running.options import Limits, WorkerState
from proctor.version import __version__

MOST_LOST = 3
"""How often a trial may lose its worker before that is held to be its own doing."""
MOST_MISSED = 10
"""How often a worker may have ended before it got a trial, before the trial is given up as not measured."""
WATCH_SECONDS = 0.5
PATIENCE_SECONDS = 10.0
SILENT_SECONDS = 60.0
"""A worker that answers nothing for this long, beyond what trials may take, is given up."""
PREPARE_SECONDS = 300.0
ALONE_SECONDS = 60.0
"""How long a run waits while there is no worker at all."""


class WorkerPool:
    """The workers of one run."""

    def __init__(
        self,
        client: Any,
        plan: Plan,
        order: bytes,
        tell: Callable[[str], None],
        *,
        upload: bytes = b"",
        scores: bool = False,
    ) -> None:
        self.lanes: dict[str, Lane] = {}
        self.refused: dict[str, tuple[str, str]] = {}
        """By address: the name of the worker, and why it is not used."""
        self._lost: dict[str, WorkerState] = {}
        """By name: what a worker had done before its process ended, however often."""
        self._client = client
        self._order = order
        self._upload = upload
        self._scores = scores
        self._tell = tell
        self._numbers = {id(item): number for number, item in enumerate(plan.suites)}
        self._fingerprints = [(item.agent.name, item.agent_fingerprint) for item in plan.suites]
        self._parallel = [item.limits.parallel for item in plan.suites]
        self.width = max(self._parallel, default=1)
        """Trials that one worker makes at once."""
        self._keys = itertools.count()
        self._waiting: deque[Job] = deque()
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._stopped = ""
        self._closed = False
        self._watching: asyncio.Task[None] | None = None
        self._wanted: Callable[[], bool] = lambda: True

    async def open(self, least: int) -> None:
        """Wait until `least` workers are ready, or all that there are; raises `UsageError` where none can be used."""
        self._watching = asyncio.create_task(self._watch())
        end = CLOCK.monotonic() + (PREPARE_SECONDS if least else ALONE_SECONDS)
        while CLOCK.monotonic() < end and not self._stopped:
            known = len(self.lanes) + len(self.refused)
            if known and known >= least and not self._joining:
                break
            await asyncio.sleep(0.02)
        if not self.lanes:
            told = "; ".join(f"the worker {name} {reason}" for name, reason in self.refused.values())
            raise UsageError(f"no worker can be used: {told or self._stopped or 'there is none'}")

    def states(self) -> list[WorkerState]:
        """Each worker by its name, which it keeps when its process is started anew."""
        found = {name: replace(state, status="lost") for name, state in self._lost.items()}
        for lane in self.lanes.values():
            before = self._lost.get(lane.name, WorkerState(lane.name))
            done, failed = before.done + lane.done, before.failed + lane.failed
            found[lane.name] = WorkerState(lane.name, len(lane.jobs), done, failed, before.lost)
        refused = [WorkerState(name, status=f"refused: {reason}") for name, reason in self.refused.values()]
        return [*found.values(), *refused]

    def only_while(self, wanted: Callable[[], bool]) -> None:
        """Trials that wait for a worker are dropped once nothing more is to be begun."""
        self._wanted = wanted

    async def ask(
        self, planned: PlannedTrial, limits: Limits, backoff: float, new_user: Callable[[], User], *, goes_on: bool
    ) -> Answer:
        """What the agent answers on a worker, however many workers that takes."""
        case = planned.case
        try:
            turns = await _written(new_user()) if any(turn.attachments for turn in case.turns) else case.turns
        except ConversationSpoiled as error:
            return Answer((), Outcome.ERROR, str(error), 1, CLOCK.time(), 0.0)
        number = self._numbers[id(planned.suite)]
        scored = self._scores and can_be_scored_there(planned)
        order = TrialOrder(next(self._keys), number, case, planned.number, limits, backoff, goes_on, scored, turns)
        job = Job(order, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._give_out()
        if self._stopped:
            raise RunStopped(self._stopped)
        answer = await job.answer
        if not job.lost:
            return answer
        return replace(
            answer, attempts=answer.attempts + len(job.lost), warnings=(*_told_of(job.lost), *answer.warnings)
        )

    async def place_for(self, planned: PlannedTrial, limits: Limits) -> tuple[Lane, TrialOrder]:
        """A worker that has room for a conversation, which holds it until `leave`."""
        number, loop = self._numbers[id(planned.suite)], asyncio.get_running_loop()
        order = TrialOrder(next(self._keys), number, planned.case, planned.number, limits, 0.0, False, False, ())
        job = Job(order, loop.create_future(), place=loop.create_future())
        assert job.place is not None
        self._waiting.append(job)
        self._give_out()
        if self._stopped:
            raise RunStopped(self._stopped)
        either: list[asyncio.Future[Any]] = [job.answer, job.place]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not job.place.done():
            await job.answer
        return job.place.result(), order

    def has(self, lane: Lane) -> bool:
        """Whether a worker is still there."""
        return self.lanes.get(lane.address) is lane

    def leave(self, lane: Lane, order: TrialOrder) -> None:
        """A conversation is over: its worker has room for another trial."""
        if lane.jobs.pop(order.key, None) is not None:
            lane.done += 1
            self._give_out()

    async def close(self) -> list[str]:
        """Stop the agents on all workers; returns what went wrong with that."""
        self._closed = True
        tasks = [self._watching, *self._joining.values(), *(lane.task for lane in self.lanes.values())]
        for task in tasks:
            if task is not None:
                task.cancel()
        lanes, self.lanes = self.lanes, {}
        ends = [] if self._stopped else [_finished(lane) for lane in lanes.values()]
        problems = [problem for found in await asyncio.gather(*ends) for problem in found]
        return list(dict.fromkeys(problems))

    def _give_out(self) -> None:
        """Give waiting trials to workers that have room; one that must be alone waits for a worker to be empty."""
        waiting, self._waiting = self._waiting, deque()
        touched: set[Lane] = set()
        full: set[int] = set()
        for job in waiting:
            if job.answer.done():
                continue
            if not self._wanted():
                job.answer.set_exception(RunStopped(""))
                continue
            alone = len(job.lost) >= MOST_LOST - 1
            lane = None if job.order.suite in full and not alone else self._lane_for(job)
            if lane is None:
                full |= set() if alone else {job.order.suite}
                self._waiting.append(job)
                continue
            lane.jobs[job.order.key], job.arrived = job, job.place is not None
            if job.place is not None:
                job.place.set_result(lane)
                continue
            lane.unsent.append(job.order)
            touched.add(lane)
        for lane in touched:
            if lane.sending is None or lane.sending.done():
                lane.sending = asyncio.create_task(self._send(lane))

    def _lane_for(self, job: Job) -> Lane | None:
        if len(job.lost) >= MOST_LOST - 1:
            return empty_lane(self.lanes.values(), job)
        return lane_with_room(self.lanes.values(), job, self.width, self._parallel)

    async def _send(self, lane: Lane) -> None:
        """Send the trials that a worker was given, until there are no more; what it answers says that they arrived."""
        await asyncio.sleep(0)
        while lane.unsent and not lane.ended:
            orders, lane.unsent = lane.unsent, []
            try:
                await lane.server.exchange(pickle.dumps(orders), 0.0)
            except Exception as error:
                await self._gone(lane, describe(error))
                return
            for order in orders:
                if (job := lane.jobs.get(order.key)) is not None:
                    job.arrived = True

    async def _serve(self, lane: Lane) -> None:
        """Take the answers of one worker as they come, until it is lost."""
        while not lane.ended:
            longest = max((job.order.limits.timeout for job in lane.jobs.values()), default=0.0)
            try:
                async with asyncio.timeout(PATIENCE_SECONDS + SILENT_SECONDS + longest):
                    found, ends = await lane.server.exchange(b"", PATIENCE_SECONDS)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                await self._gone(lane, describe(error))
                return
            for key, answer in found:
                self._answered(lane, key, answer)
            if ends:
                self._lose(lane, ends)
                return
            self._give_out()

    async def _gone(self, lane: Lane, reason: str) -> None:
        """A worker does not answer: it has ended, unless it is the scheduler that has."""
        lane.ended = True
        if await self._workers_known() is not None:
            self._lose(lane, reason)

    async def _workers_known(self) -> dict[str, Any] | None:
        """The workers that the scheduler has; `None`, and no further trials, where it does not answer."""
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                found: dict[str, Any] = (await self._client.scheduler.identity())["workers"]
                return found
        except Exception as error:
            self._stop(f"the scheduler was lost ({describe(error)}); run the same command with --resume to go on")
            return None

    def _answered(self, lane: Lane, key: int, data: bytes) -> None:
        job = lane.jobs.pop(key, None)
        if job is None:
            return
        if lane.kept_for is job:
            lane.kept_for = None
        try:
            answer: Answer = unpacked(data)
        except Exception as error:
            reason = f"the reply cannot leave the process of its trial: {describe(error)}"
            answer = Answer((), Outcome.ERROR, reason, 1, CLOCK.time(), 0.0)
        lane.done += 1
        lane.failed += answer.outcome is not None
        lane.seconds += answer.duration_ms / 1000
        if not job.answer.done():
            job.answer.set_result(answer)

    def _lose(self, lane: Lane, reason: str) -> None:
        """A worker has ended: what it had under way counts as asked, what it had not begun does not."""
        if self.lanes.get(lane.address) is not lane or self._closed:
            return
        del self.lanes[lane.address]
        lane.ended = True
        before = self._lost.get(lane.name, WorkerState(lane.name))
        self._lost[lane.name] = WorkerState(
            lane.name, 0, before.done + lane.done, before.failed + lane.failed, before.lost + 1
        )
        jobs = [job for job in lane.jobs.values() if not job.answer.done() and job.place is None]
        lane.jobs.clear()
        for job in [job for job in jobs if job.arrived][: self.width]:
            job.lost.append(lane.name)
            if len(job.lost) >= MOST_LOST:
                job.answer.set_result(_given_up(job))
        for job in [job for job in jobs if not job.arrived]:
            job.missed += 1
            if job.missed >= MOST_MISSED:
                job.answer.set_result(_not_made(job))
        again = [job for job in jobs if not job.answer.done()]
        self._waiting.extendleft(reversed(again))
        told = f"{len(again)} trials are" if len(again) != 1 else "1 trial is"
        self._tell(f"the worker {lane.name} ended ({reason}); {told} asked again elsewhere")
        if lane.task is not None and lane.task is not asyncio.current_task():
            lane.task.cancel()
        self._give_out()

    async def _watch(self) -> None:
        """Follow which workers there are; a scheduler that does not answer, or no worker for long, stops the run."""
        seen = CLOCK.monotonic()
        while True:
            workers = await self._workers_known()
            if workers is None:
                return
            for address, info in workers.items():
                if address not in self.lanes and address not in self._joining and address not in self.refused:
                    name = str(info.get("name", address))
                    self._joining[address] = asyncio.create_task(self._join(address, name))
            for address in [address for address in self.lanes if address not in workers]:
                self._lose(self.lanes[address], "the scheduler does not know it any more")
            for address in [address for address in self._joining if address not in workers]:
                self._joining.pop(address).cancel()
            if self.lanes or self._joining:
                seen = CLOCK.monotonic()
            elif CLOCK.monotonic() - seen > ALONE_SECONDS:
                self._stop(f"no worker was left for {ALONE_SECONDS:g} s; run the same command with --resume to go on")
                return
            await asyncio.sleep(WATCH_SECONDS)

    async def _join(self, address: str, name: str) -> None:
        try:
            async with asyncio.timeout(PREPARE_SECONDS):
                made = self._client.submit(
                    TrialServer, self._order, actor=True, workers=[address], allow_other_workers=False, pure=False
                )
                with self._client.as_current():  # the server is reached through this client from now on
                    server = await made
                    found = await server.prepare(self._upload)
            problem = self._misfit(found)
        except Exception as error:
            found, problem = None, f"cannot be used: {describe(error)}"
        with contextlib.suppress(KeyError):
            del self._joining[address]
        if problem:
            if not self._closed:
                self.refused[address] = name, problem
                self._tell(f"the worker {name} {problem}")
            return
        lane = Lane(address, name, server)
        self.lanes[address] = lane
        lane.task = asyncio.create_task(self._serve(lane))
        self._give_out()

    def _misfit(self, found: dict[str, Any]) -> str:
        """Why a worker cannot be trusted to ask the same agents; empty where it can."""
        if found["proctor"] != __version__:
            return f"has Proctor {found['proctor']}, and this is {__version__}; install the same"
        for (name, wanted), (identity, problem) in zip(self._fingerprints, found["agents"], strict=True):
            if problem:
                return f"cannot load the agent {name}: {problem}"
            if identity != wanted:
                return (
                    f"has another version of the agent {name}: its fingerprint is {identity}, and here it is {wanted}"
                )
        return ""

    def _stop(self, reason: str) -> None:
        self._stopped = reason
        jobs = [*self._waiting, *(job for lane in self.lanes.values() for job in lane.jobs.values())]
        for job in jobs:
            if not job.answer.done():
                job.answer.set_exception(RunStopped(reason))
        self._waiting.clear()


async def _finished(lane: Lane) -> list[str]:
    """Stop the agents of one worker; one that is gone has none."""
    try:
        async with asyncio.timeout(STOP_SECONDS + 5):
            problems: list[str] = await lane.server.finish()
            return problems
    except Exception:
        return []


async def _written(user: User) -> tuple[Turn, ...]:
    """All that a user who does not listen will say."""
    turns: list[Turn] = []
    while (turn := await user.next_turn([Reply()] * len(turns))) is not None:
        turns.append(turn)
    return tuple(turns)


def _told_of(lost: list[str]) -> list[str]:
    return [
        f"the agent was asked again (attempt {number}), since the worker {name} ended meanwhile"
        for number, name in enumerate(lost[: MOST_LOST - 1], 2)
    ]


def _not_made(job: Job) -> Answer:
    reason = f"the trial was not made: {job.missed} workers had ended before they got it"
    return Answer((), Outcome.ERROR, reason, 0, CLOCK.time(), 0.0)


def _given_up(job: Job) -> Answer:
    workers = ", ".join(dict.fromkeys(job.lost))
    reason = (
        f"the process of its worker ended each of the {MOST_LOST} times that the agent was asked (workers: {workers})"
    )
    return Answer((), Outcome.FAILED, reason, 0, CLOCK.time(), 0.0)
