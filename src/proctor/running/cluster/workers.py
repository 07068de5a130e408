"""The part of a distributed run in its own process: the workers, the sessions on them, and lost workers.

A `Pool` is where the workers come from: a Dask cluster (`connection.py`), or the process of an arm (`running/arms/`).

A `ClusterAgent` replaces an agent in the plan. Its sessions wait for a free worker; waiting does not count as the
agent's time. After that a session is a series of calls of the worker's `AgentHost`. Each call returns, or fails because
the worker has ended. The obvious version lets Dask repeat the work of a lost worker. That is wrong for agents, since an
answered turn must not be sent again. So a lost worker is an exception (`SessionLost`), and the engine decides: it opens
a new session if no turn was answered yet, and otherwise the trial is an error.

While several sessions share a worker, nobody can know which of them ended it. So none is blamed: a trial that has lost
two workers, or one that was stuck, gets a worker for itself the next time.

The engine counts the timeouts. Time counts against an agent only when its worker has confirmed that the session could
run (`AgentHost.status`, a few times per second); unconfirmed time counts as waiting. A worker that confirms nothing for
longer than a session may take is blocked by code that does not release the interpreter, and is restarted.

A worker may be wrong, or in bad hands. What it answers is data (`RemoteHost`), and a worker that sends anything else is
not used any more. It cannot stop the clock of its sessions: while one of them waits, another one must be running.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from proctor.agents.agent import BaseAgent
from proctor.agents.reply import Reply
from proctor.agents.trial_context import MAX_REPLY_BYTES, TrialContext, current_trial
from proctor.base.clock import Clock
from proctor.base.errors import AgentFailed, UsageError, one_line
from proctor.cases.suite import Case, Turn
from proctor.running.agent_lifecycle import STOP_SECONDS
from proctor.running.cluster.agent_host import AgentHost
from proctor.running.conversation import RunStopped
from proctor.running.failures import SessionLost, not_started
from proctor.running.messages import (
    AgentStarted,
    CallFailed,
    HostInfo,
    HostStatus,
    HostStopped,
    InvalidMessage,
    SessionClosed,
    SessionOpened,
    StopProblem,
    TurnProgress,
    decode_message,
    message_limit,
)
from proctor.running.plan import PlannedSuite
from proctor.running.remote_agent import HostedTrial, RemoteAgent, RemoteSession, excluded_time, pack, trial_to_host
from proctor.running.settings import WorkerState

STATUS_SECONDS = 0.25
WATCH_SECONDS = 0.5
STUCK_SECONDS = 2.0
"""How much longer than its timeout a session may block its worker before the worker is restarted."""
SILENT_SECONDS = 60.0
"""A scheduler or an idle worker that does not respond for this long counts as lost."""
PREPARE_SECONDS = 300.0
NO_WORKER_SECONDS = 60.0
"""How long a run waits without any worker before it stops."""
LOSSES_BEFORE_EXCLUSIVE = 2

HostedTrialId = tuple[int, str, int]
"""The number of the suite, the id of the case, and the number of the trial."""


class Pool(Protocol):
    """Where workers come from."""

    noun: str
    """What a worker is called, such as `the worker`."""
    advice: str
    """What to do about a worker that a case ends, as the end of a sentence."""
    gone: str
    """Why a worker is not among `names` any more."""

    async def names(self) -> Mapping[str, str]:
        """The name of each worker that exists now, by address. Raises if that cannot be found out."""
        ...

    async def start_host(self, address: str) -> tuple[RemoteHost, HostInfo]:
        """Start an `AgentHost` on a worker and let it load the agents."""
        ...

    async def restart(self, address: str) -> None:
        """End the process of a worker and start a new one, which gets another address."""
        ...


class RemoteHost:
    """An `AgentHost` in another process."""

    def __init__(self, limit: int) -> None:
        """`limit` is the number of bytes that a message may have."""
        self.limit = limit
        self._numbers = itertools.count(1)

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the host; returns its message.

        Raises `InvalidMessage` if it answers anything else, and `AgentFailed` if it raised an exception.
        """
        number = next(self._numbers)
        data = await self.exchange(number, method, arguments)
        kinds = AgentHost.ANSWERS[method]
        message = decode_message(data, *kinds, CallFailed, limit=self.limit, call=number)
        if isinstance(message, CallFailed):
            raise AgentFailed(message.problem)
        return message

    async def exchange(self, number: int, method: str, arguments: tuple[Any, ...]) -> object:
        """Send a call, and return what comes back. Raises if the process has ended."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Worker:
    """One worker and the sessions on it."""

    address: str
    name: str
    host: RemoteHost
    ended: asyncio.Future[None]
    """Done when the worker is no longer used."""
    end_reason: str = ""
    stuck: bool = False
    """Whether it was restarted because it did not respond."""
    has_leftovers: bool = False
    """Whether a session was aborted here: something that it started, such as a thread, may still run."""
    culprit: ClusterSession | None = None
    """The session that blocked it, if no other can have done so."""
    sessions: dict[int, ClusterSession] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    """The suites whose agents have been started here."""
    reserved_for: int | None = None
    """The session that gets this worker for itself."""
    done: int = 0
    failed: int = 0
    follower: asyncio.Task[None] | None = None


class ClusterAgent(RemoteAgent):
    """An agent on all workers; each of its sessions is on one of them."""

    def __init__(self, agent: BaseAgent, workers: Workers, suite: int, timeout: float) -> None:
        super().__init__(agent)
        self.workers = workers
        self.suite = suite
        self.timeout = timeout

    def session(self, case: Case) -> ClusterSession:
        return ClusterSession(self, case)

    def pack_trial(self, trial: HostedTrial) -> bytes:
        """What the other process needs to open a session."""
        return pack_with_code(trial)

    async def stop(self) -> None:
        """Stop the agents of all workers; raises if this one could not stop."""
        problems = [item.problem for item in await self.workers.stop_agents() if item.suite == self.suite]
        if problems:
            raise AgentFailed("; ".join(dict.fromkeys(problems)))


class ClusterSession(RemoteSession):
    """One session on a worker."""

    def __init__(self, agent: ClusterAgent, case: Case) -> None:
        super().__init__()
        trial = trial_to_host(case)
        self.agent = agent
        self.key = agent.workers.new_key()
        self.trial: HostedTrialId = (agent.suite, case.id, trial.number)
        self.timeout = max(agent.timeout, case.timeout or 0.0)
        self.worker: Worker | None = None
        self.is_busy = False
        """Whether a call of this session is running on the worker."""
        self.uncharged_seconds = 0.0
        """How long the current call has waited while no session on the worker was running, as the worker says."""
        self._busy_since = self._lost_in_call = self._lost_seconds = 0.0
        self._context: TrialContext | None = None
        self._packed_trial = agent.pack_trial(trial)

    async def __aenter__(self) -> ClusterSession:
        workers, suite = self.agent.workers, self.agent.suite
        try:
            with excluded_time():
                self.worker = await workers.acquire(self)
                problem = None
                if suite not in self.worker.started:
                    problem = await self._start_agent(suite)
            if problem is not None:
                raise not_started(self.agent.name, problem)
            self.worker.started.add(suite)
            opened: SessionOpened = await self._call("open", self.key, suite, self._packed_trial)
            if opened.error is not None:
                raise opened.error
        except BaseException:
            workers.abort(self)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        workers = self.agent.workers
        if kind is not None:
            workers.abort(self)
            return
        try:
            closed: SessionClosed = await self._call("close", self.key)
        except BaseException:
            workers.abort(self)
            raise
        workers.release(self, failed=closed.error is not None)
        if closed.error is not None:
            raise closed.error

    async def send(self, turn: Turn) -> Reply:
        self.begin_turn()
        try:
            return self.receive(await self._call("send", self.key, pack(turn)))
        except asyncio.CancelledError:
            await self._record_progress()
            raise

    def confirm(self, lost_seconds: float) -> float:
        """Confirm the time up to now; `lost_seconds` is what other sessions have taken since this one was opened.

        Returns how much of it is new. It cannot be more than the time that has passed.
        """
        lost = max(0.0, lost_seconds - self._lost_seconds)
        self._lost_seconds = lost_seconds
        if self.is_busy:
            now = Clock.monotonic()
            lost = min(lost, now - self._busy_since - self._lost_in_call)
            self._lost_in_call += lost
            if self._context is not None:
                self._context.excluded_seconds += lost
                self._context.waiting_since = now
        return lost

    async def _start_agent(self, suite: int) -> str | None:
        """Start the agent on the worker, which has a timeout for that; returns why it could not be started."""
        agent = self.agent
        seconds = max(self.timeout, agent.start_timeout, agent.target.start_timeout)
        try:
            async with asyncio.timeout(seconds + SILENT_SECONDS):
                started: AgentStarted = await agent.workers.call(self, "start", suite)
        except TimeoutError:
            return f"it took longer than {seconds:g} s"
        return started.problem

    async def _call(self, method: str, *arguments: Any) -> Any:
        with self._worker_time():
            return await self.agent.workers.call(self, method, *arguments)

    @contextlib.contextmanager
    def _worker_time(self) -> Iterator[None]:
        """Count the time that passes inside only when the worker confirms it."""
        self._context = context = current_trial.get()
        self.is_busy, self._busy_since, self._lost_in_call, self.uncharged_seconds = True, Clock.monotonic(), 0.0, 0.0
        if context is not None:
            context.waiting_since = Clock.monotonic()
        try:
            yield
        finally:
            self.is_busy = False
            if context is not None:
                context.waiting_since = None

    async def _record_progress(self) -> None:
        """Record the events of a turn that timed out, unless the worker is stuck."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(0.5):
                progress: TurnProgress = await self.agent.workers.call(self, "progress", self.key)
                for event in progress.events:
                    self.record(event)


class Workers:
    """The workers of one run."""

    def __init__(
        self,
        pool: Pool,
        parallel: Sequence[int],
        why_incompatible: Callable[[HostInfo], str],
        notify: Callable[[str], None],
    ) -> None:
        """`parallel` has the number of trials in parallel on one worker, by suite.

        `why_incompatible` returns why a worker cannot be used, or nothing.
        """
        self.ready: dict[str, Worker] = {}
        self.refused: dict[str, tuple[str, str]] = {}
        """By address: the name of the worker, and why it is not used."""
        self._lost: dict[str, WorkerState] = {}
        """By name: the totals of a worker before its process ended."""
        self._restarting: set[str] = set()
        self._pool = pool
        self._why_incompatible = why_incompatible
        self._notify = notify
        self._parallel = list(parallel)
        self._losses: Counter[HostedTrialId] = Counter()
        self._keys = itertools.count(1)
        self._joining: dict[str, asyncio.Task[None]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._stopped = ""
        self._closed = False
        self._watcher: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[list[StopProblem]] | None = None

    async def open(self, least: int) -> None:
        """Wait until `least` workers, or all of the scheduler's, are ready; raises `UsageError` if there is none."""
        self._watcher = asyncio.create_task(self._watch())
        end = Clock.monotonic() + (PREPARE_SECONDS if least else NO_WORKER_SECONDS)
        while Clock.monotonic() < end and not self._stopped:
            count = len(self.ready) + len(self.refused)
            if count and count >= least and not self._joining:
                break
            await asyncio.sleep(0.02)
        if not self.ready:
            reasons = "; ".join(f"{self._pool.noun} {name} {reason}" for name, reason in self.refused.values())
            raise UsageError(f"no worker can be used: {reasons or self._stopped or 'the scheduler has none'}")

    def states(self) -> list[WorkerState]:
        """The state of each worker, by name; a worker keeps its name when its process is restarted."""
        states = {name: replace(state, status="lost") for name, state in self._lost.items()}
        for worker in self.ready.values():
            before = self._lost.get(worker.name, WorkerState(worker.name))
            done, failed = before.done + worker.done, before.failed + worker.failed
            states[worker.name] = WorkerState(worker.name, len(worker.sessions), done, failed, before.lost)
        refused = [WorkerState(name, status=f"refused: {reason}") for name, reason in self.refused.values()]
        return [*states.values(), *refused]

    def new_key(self) -> int:
        return next(self._keys)

    async def acquire(self, session: ClusterSession) -> Worker:
        """Wait for a worker for a session, which holds it until `release`; raises `RunStopped`."""
        try:
            while not self._stopped:
                changed = self._changed
                worker = self._worker_for(session)
                if worker is not None:
                    worker.sessions[session.key] = session
                    return worker
                await changed.wait()
        except asyncio.CancelledError:
            self._unreserve(session)
            raise
        raise RunStopped(self._stopped)

    def release(self, session: ClusterSession, *, failed: bool) -> None:
        """Release the worker of a session that has ended."""
        worker = session.worker
        self._unreserve(session)
        if worker is not None and worker.sessions.pop(session.key, None) is not None:
            worker.done += 1
            worker.failed += failed
        self._wake()

    def abort(self, session: ClusterSession) -> None:
        """End a session in the background; its worker is released when it has closed."""
        if session.worker is None or session.worker.ended.done():
            self.release(session, failed=True)
        else:
            self._run_in_background(self._abort(session, session.worker))

    async def call(self, session: ClusterSession, method: str, *arguments: Any) -> Any:
        """Call a method of the worker's host; raises `SessionLost` if the worker ends meanwhile.

        Failures of the agent are return values. An exception means that the worker cannot be reached.
        """
        worker = session.worker
        assert worker is not None
        call = asyncio.ensure_future(worker.host.call(method, *arguments))
        try:
            await asyncio.wait({call, worker.ended}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            worker.has_leftovers = True
            call.cancel()
            raise
        if call.done() and call.exception() is None:
            return call.result()
        call.cancel()
        error = call.exception() if call.done() else None
        if isinstance(error, InvalidMessage):
            self._refuse(worker, f"sent {error}")
        raise await self._loss(session, worker, "" if error is None else one_line(error))

    async def stop_agents(self) -> list[StopProblem]:
        """Stop the agents of all workers, once."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop_agents())
        return await asyncio.shield(self._stopping)

    async def close(self) -> None:
        self._closed = True
        tasks = [self._watcher, *self._joining.values()]
        for task in tasks:
            if task is not None:
                task.cancel()
        await self.stop_agents()
        for task in [*self._background, *(worker.follower for worker in self.ready.values())]:
            if task is not None:
                task.cancel()

    # Choosing a worker

    def _worker_for(self, session: ClusterSession) -> Worker | None:
        """The worker with most free slots; a trial that needs its own worker reserves one until it is empty."""
        if self._losses[session.trial] >= LOSSES_BEFORE_EXCLUSIVE:
            return self._empty_worker(session)
        free = [worker for worker in self.ready.values() if worker.reserved_for is None]
        best = max(free, key=lambda worker: self._free_slots(worker, session.agent.suite), default=None)
        return best if best is not None and self._free_slots(best, session.agent.suite) > 0 else None

    def _free_slots(self, worker: Worker, suite: int) -> int:
        same_suite = sum(other.agent.suite == suite for other in worker.sessions.values())
        return min(max(self._parallel) - len(worker.sessions), self._parallel[suite] - same_suite)

    def _empty_worker(self, session: ClusterSession) -> Worker | None:
        reserved = next((worker for worker in self.ready.values() if worker.reserved_for == session.key), None)
        if reserved is None:
            free = [worker for worker in self.ready.values() if worker.reserved_for is None]
            reserved = min(free, key=lambda worker: (worker.has_leftovers, len(worker.sessions)), default=None)
        if reserved is None:
            return None
        reserved.reserved_for = session.key
        return None if reserved.sessions else reserved

    def _unreserve(self, session: ClusterSession) -> None:
        for worker in self.ready.values():
            if worker.reserved_for == session.key:
                worker.reserved_for = None
                self._wake()

    def _wake(self) -> None:
        """Wake every session that waits for a worker."""
        self._changed.set()
        self._changed = asyncio.Event()

    # Lost workers

    async def _loss(self, session: ClusterSession, worker: Worker, reason: str) -> Exception:
        """The exception for a session whose worker has ended."""
        if await self._scheduler_workers() is None:
            return RunStopped(self._stopped)
        self._lose(worker, reason)
        if worker.culprit is session:
            return AgentFailed(f"the agent blocked its worker for longer than its timeout of {session.timeout:g} s")
        self._losses[session.trial] += LOSSES_BEFORE_EXCLUSIVE if worker.stuck else 1
        name, advice = f"{self._pool.noun} {worker.name}", self._pool.advice
        return SessionLost(f"{name} ended before the agent answered ({worker.end_reason}); {advice}")

    def _lose(self, worker: Worker, reason: str) -> None:
        """Stop using a worker."""
        if self.ready.get(worker.address) is not worker:
            return
        del self.ready[worker.address]
        worker.end_reason = reason
        before = self._lost.get(worker.name, WorkerState(worker.name))
        done, failed = before.done + worker.done, before.failed + worker.failed
        self._lost[worker.name] = WorkerState(worker.name, 0, done, failed, before.lost + 1)
        if not worker.ended.done():
            worker.ended.set_result(None)
        if not self._closed:
            count = len(worker.sessions)
            trials = "1 trial was" if count == 1 else f"{count} trials were"
            self._notify(f"{self._pool.noun} {worker.name} ended ({reason}); {trials} running on it")
        self._wake()

    def _refuse(self, worker: Worker, reason: str) -> None:
        """Use a worker no more, whatever it says from now on."""
        self.refused[worker.address] = worker.name, reason
        self._lose(worker, f"it {reason}; it is not used any more")

    def _restart(self, worker: Worker, reason: str) -> None:
        """Let the pool kill the process of a worker and start a new one."""
        if self.ready.get(worker.address) is not worker:
            return
        worker.stuck = True
        self._restarting.add(worker.address)
        self._lose(worker, reason)
        self._run_in_background(self._restart_process(worker))

    async def _restart_process(self, worker: Worker) -> None:
        with contextlib.suppress(Exception):  # if it cannot be restarted, it is not used again
            await self._pool.restart(worker.address)

    async def _abort(self, session: ClusterSession, worker: Worker) -> None:
        """Close a session on its worker; restart the worker if its event loop does not respond."""
        try:
            call = asyncio.ensure_future(worker.host.call("abort", session.key))
            await asyncio.wait({call, worker.ended}, timeout=SILENT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            reached = call.done() and call.exception() is None and call.result().is_ended
            call.cancel()
            if not reached and not worker.ended.done():
                self._restart(worker, f"case {session.trial[1]} blocked it beyond its timeout")
        finally:
            self.release(session, failed=True)

    # Following workers

    async def _follow(self, worker: Worker) -> None:
        """Poll the status of a worker until it has ended."""
        while not worker.ended.done():
            requested_at = Clock.monotonic()
            call = asyncio.ensure_future(worker.host.call("status"))
            while not call.done() and not worker.ended.done():
                await asyncio.wait({call, worker.ended}, timeout=STATUS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not call.done() and Clock.monotonic() - requested_at > self._patience(worker):
                    worker.culprit = _only_suspect(worker)
                    self._restart(worker, "it did not respond")
            if not call.done():
                call.cancel()
                return
            if isinstance(error := call.exception(), InvalidMessage):
                self._refuse(worker, f"sent {error}")
                return
            if error is not None:
                if await self._scheduler_workers() is not None:
                    self._lose(worker, one_line(error))
                return
            status: HostStatus = call.result()
            if _confirm(worker, status) > SILENT_SECONDS + self._patience(worker):
                self._refuse(worker, "says that its sessions get no time, and none of them takes it")
                return
            if status.blocked_by is None and status.blocked_seconds > self._patience(worker):
                self._restart(worker, "its event loop was blocked")
            await asyncio.sleep(STATUS_SECONDS)

    @staticmethod
    def _patience(worker: Worker) -> float:
        """How long a worker may go without responding."""
        timeouts = [session.timeout for session in worker.sessions.values() if session.is_busy]
        return min(timeouts) + STUCK_SECONDS if timeouts else SILENT_SECONDS

    async def _scheduler_workers(self) -> Mapping[str, str] | None:
        """The names of the workers, by address; if the scheduler does not respond, stop the run and return `None`."""
        if self._stopped:
            return None
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                return await self._pool.names()
        except Exception as error:
            self._stop(f"the scheduler was lost ({one_line(error)}); run the same command with --resume to continue")
            return None

    async def _watch(self) -> None:
        """Add and remove workers as they come and go; stop the run without a scheduler or any worker."""
        seen_at = Clock.monotonic()
        while (current := await self._scheduler_workers()) is not None:
            used = {*self.ready, *self._joining, *self.refused, *self._restarting}
            for address in current.keys() - used:
                self._joining[address] = asyncio.create_task(self._join(address, current[address]))
            for address in self.ready.keys() - current.keys():
                self._lose(self.ready[address], self._pool.gone)
            for address in self._joining.keys() - current.keys():
                self._joining.pop(address).cancel()
            self._restarting &= current.keys()
            if self.ready or self._joining:
                seen_at = Clock.monotonic()
            elif Clock.monotonic() - seen_at > NO_WORKER_SECONDS:
                self._stop(f"no worker for {NO_WORKER_SECONDS:g} s; run the same command with --resume to continue")
                return
            await asyncio.sleep(WATCH_SECONDS)

    async def _join(self, address: str, name: str) -> None:
        """Start a host on a worker, and use the worker if it has the same agents."""
        host, problem = None, ""
        try:
            async with asyncio.timeout(PREPARE_SECONDS):
                host, info = await self._pool.start_host(address)
                problem = self._why_incompatible(info)
        except Exception as error:
            problem = f"cannot be used: {one_line(error)}"
        self._joining.pop(address, None)
        if self._closed:
            return
        if problem or host is None:
            self.refused[address] = name, problem
            self._notify(f"{self._pool.noun} {name} {problem}")
            return
        worker = Worker(address, name, host, asyncio.get_running_loop().create_future())
        self.ready[address] = worker
        worker.follower = asyncio.create_task(self._follow(worker))
        self._wake()

    # Stopping

    def _stop(self, reason: str) -> None:
        """Open no more sessions and end the open ones."""
        self._stopped = self._stopped or reason
        for worker in self.ready.values():
            if not worker.ended.done():
                worker.ended.set_result(None)
        self._wake()

    async def _stop_agents(self) -> list[StopProblem]:
        if self._background:
            await asyncio.wait(self._background, timeout=STOP_SECONDS)
        hosts = [] if self._stopped else list(self.ready.values())
        return [problem for problems in await asyncio.gather(*map(_stop_host, hosts)) for problem in problems]

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def suites_message_limit(suites: Iterable[PlannedSuite]) -> int:
    """How many bytes a message of the agents of these suites may have."""
    return message_limit(max((item.limits.agent.max_reply_bytes for item in suites), default=MAX_REPLY_BYTES))


def _only_suspect(worker: Worker) -> ClusterSession | None:
    """The session that blocks a worker, if only one is possible."""
    busy = [session for session in worker.sessions.values() if session.is_busy]
    return busy[0] if len(busy) == 1 and not worker.has_leftovers else None


def _confirm(worker: Worker, status: HostStatus) -> float:
    """Confirm the time of the sessions on a worker; returns for how long one of them has waited for none of the others.

    Each session waits while another one holds the event loop, so at any time one of them is running.
    """
    lost = {item.session: item.seconds for item in status.lost}
    waited = [(session, session.confirm(lost.get(key, 0.0))) for key, session in worker.sessions.items()]
    busy = [(session, seconds) for session, seconds in waited if session.is_busy]
    uncharged = min((seconds for _, seconds in busy), default=0.0)
    for session, _ in busy:
        session.uncharged_seconds += uncharged
    return max((session.uncharged_seconds for session, _ in busy), default=0.0)


def pack_with_code(value: Any) -> bytes:
    """Pickle a value for a worker, including functions that the worker cannot import."""
    import cloudpickle

    packed: bytes = cloudpickle.dumps(value)
    return packed


async def _stop_host(worker: Worker) -> tuple[StopProblem, ...]:
    """Stop the agents of one worker; returns no problems if the worker has ended."""
    try:
        async with asyncio.timeout(2 * STOP_SECONDS):
            stopped: HostStopped = await worker.host.call("stop")
            return stopped.problems
    except Exception:
        return ()
