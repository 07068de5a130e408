"""The worker's side: loads the agents of a run, makes the trials it is sent, and returns answers as they come.

An instance lives on a worker as a Dask actor. Trials run in a thread with an event loop of their own, so that an agent
that blocks its loop does not cut the worker off; a second thread watches for that, and for a run that is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import tempfile
import threading
import time
import zipfile
from collections import deque
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.agents.agent import BaseAgent
from proctor.agents.resolving import resolve_agent
from proctor.agents.sessions import TRIAL
from proctor.base.environment import environment_from
from proctor.base.errors import AgentFailed, ProctorError, UnreadableReply, UsageError
from proctor.base.references import describe
from proctor.base.threads import CLOCK
from proctor.cases.evaluator_specs import spec_key
from proctor.cases.suite import Case, EvaluatorSpec, Suite
from proctor.evaluators.registry import Bound, build, told_apart
from proctor.results.run import Outcome
from proctor.running.cluster.conversations import Talk
from proctor.running.cluster.messages import RunOrder, SuiteOrder, TrialOrder, unpacked
from proctor.running.engine.ask import Answer, WrittenUser, ask
from proctor.running.engine.deadline import Watchdog, problem_of_step, unforeseen
from proctor.running.engine.isolate import packed
from proctor.running.engine.plan import PlannedSuite
from proctor.running.engine.score import ScoringContext, score
from proctor.running.engine.tool_reruns import answering_for_tools
from proctor.running.suite_hooks import hooks_of
from proctor.tracing.watching import carry_context_into_threads, instrumenting
from proctor.version import __version__

STOP_SECONDS = 10.0
"""How long an agent may take to shut down."""
GRACE_SECONDS = 5.0
"""How much longer than its timeout a trial may hold the event loop before its worker is ended."""
FORGOTTEN_SECONDS = 120.0
"""A run that asks for nothing for this long has ended without saying so."""
LINGER_SECONDS = 0.004
"""Answers that come this close together travel together."""
BEGIN_SECONDS = 0.01
BEAT_SECONDS = 0.5


class TrialServer:
    """Makes trials for one run on one worker."""

    def __init__(self, order: bytes) -> None:
        self._order: RunOrder = unpacked(order)
        self._suites: list[SuiteOnWorker | None] = []
        self._started: dict[BaseAgent, asyncio.Task[str | None]] = {}
        self._running: dict[int, tuple[TrialOrder, asyncio.Task[None]]] = {}
        self._talks: dict[int, Talk] = {}
        self._done: deque[tuple[int, bytes]] = deque()
        self._arrived: asyncio.Event | None = None
        self._waiter: asyncio.AbstractEventLoop | None = None
        self._ends_worker = ""
        self._heard_at = self._beat_at = time.monotonic()
        self._variables = contextlib.ExitStack()
        self._over = threading.Event()
        self._watchdog = Watchdog()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._serve, name="proctor-trials", daemon=True).start()
        threading.Thread(target=self._watch, name="proctor-watch", daemon=True).start()

    async def prepare(self, upload: bytes) -> dict[str, Any]:
        """Load the agents, and say what this worker has; a problem of an agent stands in place of its fingerprint.

        `upload` has the files of the run's folder, zipped; it is empty where workers find them by themselves.
        """
        if self._order.same_machine:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends its workers
            os.dup2(2, 1)  # standard output may be wanted for a document
        if self._order.version != __version__:
            return {"proctor": __version__, "agents": []}
        return {"proctor": __version__, "agents": await self._in_trials(self._load(upload))}

    async def exchange(self, work: bytes, patience: float) -> tuple[list[tuple[int, bytes]], str]:
        """Begin these trials, and return those that ended; without new ones, wait for the first as long as patience is.

        Trials begin a moment after the call that brought them has returned: if one of them ends this process, the run
        knows that it had arrived. The text is why this worker ends now, where it does.
        """
        self._heard_at = time.monotonic()
        if self._over.is_set():
            raise RuntimeError("the worker has ended this run already")
        if work:
            self._loop.call_soon_threadsafe(self._loop.call_later, BEGIN_SECONDS, self._begin, unpacked(work))
            return [], ""
        self._arrived, self._waiter = asyncio.Event(), asyncio.get_running_loop()
        if not self._done and not self._ends_worker:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), patience)
                await asyncio.sleep(LINGER_SECONDS)
        self._heard_at = time.monotonic()
        return [self._done.popleft() for _ in range(len(self._done))], self._ends_worker

    async def open(self, order: bytes) -> bytes:
        """Begin a conversation whose user is elsewhere; its turns come one by one."""
        return await self._in_trials(self._open(unpacked(order)))  # type: ignore[no-any-return]

    async def send(self, key: int, turn: bytes) -> bytes:
        """The agent's reply to one turn, or what is to be raised instead."""
        return await self._in_trials(self._talks[key].send(unpacked(turn)))  # type: ignore[no-any-return]

    async def leave(self, key: int) -> None:
        """The conversation is over."""
        talk = self._talks.pop(key, None)
        if talk is not None:
            await self._in_trials(talk.end())

    async def finish(self) -> list[str]:
        """Drop what is under way and stop the agents; returns what went wrong."""
        if self._over.is_set():
            return []
        self._over.set()
        problems: list[str] = await self._in_trials(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        return problems

    async def _in_trials(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._beat)
        with instrumenting(), carry_context_into_threads():
            self._loop.run_until_complete(self._enter())
            self._loop.run_forever()
        self._loop.close()

    async def _enter(self) -> None:
        self._watchdog.__enter__()
        suites = self._order.suites
        width = max((item.limits.parallel for item in suites), default=1)
        self._rooms = [asyncio.Semaphore(item.limits.parallel) for item in suites]
        self._room = asyncio.Semaphore(width)
        self._scoring = WorkerScoring(self._watchdog, width)

    def _beat(self) -> None:
        self._beat_at = time.monotonic()
        self._loop.call_later(BEAT_SECONDS, self._beat)

    async def _load(self, upload: bytes) -> list[tuple[str, str]]:
        folder = self._folder(upload)
        found: list[tuple[str, str]] = []
        for item in self._order.suites:
            suite: SuiteOnWorker | None = None
            try:
                suite = self._suite_of(item, folder)
                found.append((suite.agent.identity, ""))
            except (ProctorError, OSError) as error:
                found.append(("", str(error)))
            except BaseException as error:
                found.append(("", describe(error)))
            self._suites.append(suite)
        return found

    def _suite_of(self, item: SuiteOrder, folder: Path) -> SuiteOnWorker:
        suite = replace(item.suite, path=_moved(item.suite.path, self._order.folder, folder))
        if suite.hooks:
            self._variables.enter_context(environment_from(hooks_of(suite).env_files(suite)))
        if item.given_agent is not None:
            agent = resolve_agent(item.given_agent, folder)
        elif suite.agent is None:
            agent = hooks_of(suite).described_agent(suite)
        else:
            agent = resolve_agent(suite.agent, suite.base)
        for spec, fingerprint in item.code:
            with contextlib.nullcontext() if self._order.scores else contextlib.suppress(Exception):
                here = build(spec, suite.base).fingerprint
                if self._order.scores and here != fingerprint:
                    raise UsageError(f"{spec.name} has the fingerprint {here}, and in the run it is {fingerprint}")
        return SuiteOnWorker(suite, agent, item)

    def _folder(self, upload: bytes) -> Path:
        """Where the files of the run are on this worker: uploaded, at the same place, or in its own working folder."""
        if upload:
            made = self._variables.enter_context(tempfile.TemporaryDirectory(prefix="proctor-"))
            with zipfile.ZipFile(io.BytesIO(upload)) as archive:
                archive.extractall(made)
            return Path(made).resolve()
        return self._order.folder if self._order.folder.is_dir() else Path.cwd()

    def _begin(self, orders: list[TrialOrder]) -> None:
        for order in orders:
            task = self._loop.create_task(self._make(order))
            self._running[order.key] = order, task

    async def _make(self, order: TrialOrder) -> None:
        try:
            async with self._rooms[order.suite], self._room:
                answer = await self._answer(order)
        except asyncio.CancelledError:
            return
        except BaseException as error:
            answer = _broken(unforeseen(error))
        self._running.pop(order.key, None)
        self._deliver(order.key, packed(answer, otherwise=_broken))

    async def _ready_agent(self, order: TrialOrder) -> BaseAgent:
        """The agent of a trial, started once; raises `AgentFailed` where it cannot start."""
        suite = self._suites[order.suite]
        assert suite is not None
        agent = suite.agent
        if agent not in self._started:
            seconds = max(order.limits.timeout, agent.start_seconds)
            self._started[agent] = self._loop.create_task(problem_of_step(agent.start, seconds))
        if (problem := await asyncio.shield(self._started[agent])) is not None:
            raise AgentFailed(f"the agent {agent.name} could not start: {problem}")
        return agent

    async def _open(self, order: TrialOrder) -> bytes:
        try:
            talk = Talk(await self._ready_agent(order), order)
            await talk.begin()
        except (AgentFailed, UnreadableReply) as error:
            return packed(error)
        self._talks[order.key] = talk
        return b""

    async def _answer(self, order: TrialOrder) -> Answer:
        try:
            agent = await self._ready_agent(order)
        except AgentFailed as error:
            return _broken(str(error))
        TRIAL.set(order.number)
        said = replace(order.case, turns=order.turns)
        answer = await ask(
            agent,
            order.case,
            order.limits,
            order.backoff,
            self._watchdog,
            lambda: WrittenUser(said),
            goes_on=order.goes_on,
        )
        suite = self._suites[order.suite]
        if not order.scored or suite is None:
            return answer
        return await self._scoring.scored(suite, order.case, answer)

    def _deliver(self, key: int, answer: bytes) -> None:
        self._done.append((key, answer))
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and self._arrived is not None:
            self._waiter.call_soon_threadsafe(self._arrived.set)

    async def _stop(self) -> list[str]:
        under_way = [task for _, task in self._running.values()]
        under_way += [talk.task for talk in self._talks.values() if talk.task is not None]
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=2.0)
        problems = []
        for agent, start in self._started.items():
            if not start.done() or start.result() is not None:
                start.cancel()
                continue
            problem = await problem_of_step(agent.stop, STOP_SECONDS)
            if problem is not None:
                problems.append(f"the agent {agent.name} could not stop: {problem}")
        self._watchdog.__exit__()
        self._variables.close()
        return problems

    def _watch(self) -> None:
        """Notice an agent that holds the event loop for longer than its trial may take, and a run that is gone."""
        while not self._over.wait(BEAT_SECONDS):
            now = time.monotonic()
            if now - self._heard_at > FORGOTTEN_SECONDS:
                self._over.set()
                asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(2 * STOP_SECONDS)
                self._loop.call_soon_threadsafe(self._loop.stop)
                return
            held = self._holder() if now - self._beat_at > 2 * BEAT_SECONDS else None
            if held is not None and now - self._beat_at > held.limits.timeout + GRACE_SECONDS:
                self._end_worker(held)

    def _holder(self) -> TrialOrder | None:
        """The trial whose agent holds the event loop: that of the task which runs now, or of any that may have it."""
        label = self._watchdog.label_of(asyncio.current_task(self._loop))
        orders = [order for order, _ in list(self._running.values())]
        named = [order for order in orders if order.case.id == label]
        return max(named or orders, key=lambda order: order.limits.timeout, default=None)

    def _end_worker(self, held: TrialOrder) -> None:
        """Tell the run which trial it was, then end the process: nothing else ends code that does not give way."""
        reason = f"the agent held the interpreter for more than its timeout of {held.limits.timeout:g} s"
        answer = Answer((), Outcome.FAILED, reason, 1, CLOCK.time(), held.limits.timeout * 1000)
        self._ends_worker = f"case {held.case.id} held its interpreter"
        self._deliver(held.key, packed(answer))
        time.sleep(2.0)
        os.kill(os.getpid(), signal.SIGKILL)


def _moved(path: Path | None, there: Path, here: Path) -> Path | None:
    """A file of the run's folder in the folder that the worker has."""
    if path is None:
        return None
    whole = path if path.is_absolute() else there / path
    with contextlib.suppress(ValueError):
        return here / whole.relative_to(there)
    return whole


def _broken(reason: str) -> Answer:
    return Answer((), Outcome.ERROR, reason, 0, CLOCK.time(), 0.0)


class SuiteOnWorker(PlannedSuite):
    """A suite whose evaluators are made when a case first names them: its cases come one by one."""

    def __init__(self, suite: Suite, agent: BaseAgent, order: SuiteOrder) -> None:
        super().__init__(suite, agent, order.fingerprint, order.limits, None)
        self._lists: dict[tuple[str, ...], list[Bound]] = {}

    def evaluators(self, specs: Iterable[EvaluatorSpec]) -> list[Bound]:
        wanted = list(specs)
        key = tuple(spec_key(spec) for spec in wanted)
        if key not in self._lists:
            made: list[Bound] = []
            for spec in wanted:
                made.append(told_apart(build(spec, self.suite.base), {bound.title for bound in made}))
            self._lists[key] = made
        return self._lists[key]


class WorkerScoring:
    """All scoring on one worker."""

    def __init__(self, watchdog: Watchdog, parallel: int) -> None:
        self._context = ScoringContext(asyncio.Semaphore(parallel), watchdog, fast=False)

    async def scored(self, suite: PlannedSuite, case: Case, answer: Answer) -> Answer:
        """The answer with its scores; one that was not given has none."""
        if answer.outcome is not None:
            return answer
        with answering_for_tools(case) if case.doubles else contextlib.nullcontext():
            scores, warnings = await score(suite, case, answer, self._context)
        return replace(answer, scores=scores, warnings=(*answer.warnings, *warnings))
