"""The part of a distributed run on a worker: holds the agents, and a session for each trial that runs here.

An `AgentHost` is in the process of a Dask worker (`call_host`) or of an arm (`running/arms/host.py`). The run calls its
methods, and each answers with a message (`running/messages.py`). The agents run in a thread with their own event loop,
so that all sessions of an agent can share an asynchronous client. The worker's own loop is not used for that: an agent
that blocks it would disconnect the worker from its scheduler.

An agent may still block the loop of the agents, and then the other sessions on it get no time. The run counts their
timeouts and cannot see that. So a second thread takes samples: while the loop is blocked, it adds up the lost time of
every session except the one whose task holds the loop. The run reads these numbers a few times per second (`status`)
and gives the time back.
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
import weakref
import zipfile
from collections.abc import Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.agents.agent import BaseAgent
from proctor.agents.resolve import resolve_agent
from proctor.base.environment import environment_from
from proctor.base.errors import ProctorError, one_line
from proctor.base.output_capture import route_output
from proctor.base.references import load_file
from proctor.cases.suite import Suite
from proctor.running.agent_lifecycle import STOP_SECONDS, try_step
from proctor.running.messages import (
    AgentStarted,
    AgentTraits,
    CallFailed,
    HostInfo,
    HostStatus,
    HostStopped,
    LoadedAgent,
    LostTime,
    Printed,
    Progress,
    SessionAborted,
    SessionClosed,
    SessionOpened,
    StopProblem,
    TurnAnswered,
    TurnFailed,
    TurnProgress,
    encode_message,
    is_encodable,
)
from proctor.running.remote_agent import HostedSession, unpack
from proctor.tracing.instrumentation import instrument_clients
from proctor.version import __version__

ABORT_SECONDS = 5.0
"""How long a session that is aborted during a turn may take to close."""
ABANDONED_SECONDS = 120.0
"""If a run sends no request for this long, it has ended without notice."""
BEAT_SECONDS = 0.05
SAMPLE_SECONDS = 0.1
BLOCKED_SECONDS = 0.2
"""A loop without a heartbeat for this long is blocked."""

_SESSION: ContextVar[int | None] = ContextVar("proctor_hosted_session", default=None)


@dataclass(frozen=True, slots=True)
class SuiteOrder:
    """What a worker needs to load the agent of one suite."""

    suite: Suite
    """Without its cases, which are sent with their trials."""
    agent_override: Any
    """The agent that was passed instead of the suite's own."""
    start_seconds: float
    """How long the agent may take to start."""


@dataclass(frozen=True, slots=True)
class HostOrder:
    """What a worker needs to know about a run."""

    suites: tuple[SuiteOrder, ...]
    folder: Path
    """The working folder of the run."""
    version: str
    is_local: bool
    """Whether the run started the worker, on its own machine."""
    message_limit: int
    """How many bytes a message to the run may have."""


@dataclass(frozen=True, slots=True)
class PackedOrder:
    """A packed `HostOrder`, and what must be loaded before it can be read."""

    python_files: tuple[Path, ...]
    """The files of suites in Python. Their functions are sent by name, since the files may hold clients and locks."""
    order: bytes


def _open_order(packed: PackedOrder) -> HostOrder:
    for path in packed.python_files:
        if path.is_file():
            load_file(path.resolve())
    order: HostOrder = unpack(packed.order)
    return order


@dataclass(slots=True, eq=False)
class _OpenSession:
    session: HostedSession
    progress: list[Progress] = field(default_factory=list)
    """The events of the current turn."""
    lost_seconds: float = 0.0


class AgentHost:
    """The agents of a worker. Its methods run on the worker's own event loop, which agents never block."""

    ANSWERS: Mapping[str, tuple[type, ...]] = {
        "prepare": (HostInfo,),
        "start": (AgentStarted,),
        "traits": (AgentTraits,),
        "open": (SessionOpened,),
        "send": (TurnAnswered, TurnFailed),
        "progress": (TurnProgress,),
        "close": (SessionClosed,),
        "abort": (SessionAborted,),
        "status": (HostStatus,),
        "stop": (HostStopped,),
    }
    """The methods that the run may call, and the messages that each may answer."""

    def __init__(self, order: bytes) -> None:
        self._order = _open_order(unpack(order))
        self._agents: dict[int, BaseAgent] = {}
        """By the number of the suite; without agents that cannot be loaded."""
        self._starting: dict[BaseAgent, asyncio.Task[str | None]] = {}
        self._sessions: dict[int, _OpenSession] = {}
        self._resources = contextlib.ExitStack()
        self._ended = threading.Event()
        self._owners: weakref.WeakKeyDictionary[asyncio.Task[Any], int] = weakref.WeakKeyDictionary()
        self._last_request_at = self._last_beat_at = self._counted_until = time.monotonic()
        self._last_holder: int | None = None
        """The session that held the event loop at the last sample, if it is still blocked."""
        self._loop = asyncio.new_event_loop()
        self._loop.set_task_factory(self._create_task)  # type: ignore[arg-type]
        threading.Thread(target=self._run_loop, name="proctor-agents", daemon=True).start()
        threading.Thread(target=self._watch, name="proctor-watch", daemon=True).start()

    async def call(self, number: int, method: str, arguments: tuple[Any, ...]) -> bytes:
        """Call a method; returns its message. `number` is repeated in it, so that the run can tell its calls apart."""
        try:
            message = await getattr(self, method)(*arguments)
        except BaseException as error:
            message = CallFailed(one_line(error))
        return encode_message(message, self._order.message_limit, number)

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    async def prepare(self, upload: bytes) -> HostInfo:
        """Load the agents and describe this worker.

        `upload` is a zip archive of the run's folder; empty if workers have the files already.
        """
        if self._order.is_local:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run handles Ctrl-C and ends its workers
            os.dup2(2, 1)  # the standard output of the run may be a report
        if self._order.version != __version__:
            return HostInfo(__version__)
        return await self._in_loop(self._load(upload))  # type: ignore[no-any-return]

    async def start(self, suite: int) -> AgentStarted:
        """Start the agent of a suite, once."""
        return AgentStarted(await self._in_loop(self._start(suite)))

    async def traits(self, suite: int) -> AgentTraits:
        """What the run needs to know about the agent of a suite."""
        agent = self._agents[suite]
        return AgentTraits(agent.reads_files, agent.reports_all_tool_calls, agent.reports_cost, agent.endpoint)

    async def open(self, key: int, suite: int, trial: bytes) -> SessionOpened:
        """Open a session."""
        progress: list[Progress] = []
        session = HostedSession(self._agents[suite], unpack(trial), progress.append)
        # Add it before the event loop runs it, since a blocked loop delays this session too.
        self._sessions[key] = _OpenSession(session, progress)
        return SessionOpened(await self._in_loop(self._open(key, session)))

    async def send(self, key: int, turn: bytes) -> TurnAnswered | TurnFailed:
        """The answer to one turn."""
        hosted = self._sessions[key]
        hosted.progress.clear()
        return await self._in_loop(hosted.session.send(unpack(turn)))  # type: ignore[no-any-return]

    async def progress(self, key: int) -> TurnProgress:
        """The events of the current turn so far."""
        hosted = self._sessions[key]
        events = [item for item in list(hosted.progress) if is_encodable(item)]
        if hosted.session.output is not None:
            events.append(Printed(hosted.session.output.take()))
        return TurnProgress(tuple(events))

    async def close(self, key: int) -> SessionClosed:
        """Close a session."""
        error = await self._in_loop(self._sessions[key].session.close())
        self._sessions.pop(key, None)
        return SessionClosed(error)

    async def abort(self, key: int) -> SessionAborted:
        """End a session during a turn."""
        hosted = self._sessions.get(key)
        if hosted is None or self._ended.is_set():  # `stop` ends all sessions
            return SessionAborted(is_ended=True)
        ended = asyncio.run_coroutine_threadsafe(self._abort(hosted), self._loop)
        await asyncio.wait({asyncio.wrap_future(ended)}, timeout=ABORT_SECONDS + 1.0)
        self._sessions.pop(key, None)
        return SessionAborted(ended.done())

    async def status(self) -> HostStatus:
        """The current state; the run calls this a few times per second."""
        now = self._last_request_at = time.monotonic()
        blocked = now - self._last_beat_at
        is_blocked = blocked > BLOCKED_SECONDS
        lost = tuple(LostTime(key, hosted.lost_seconds) for key, hosted in list(self._sessions.items()))
        return HostStatus(lost, blocked if is_blocked else 0.0, self._holder() if is_blocked else None)

    async def stop(self) -> HostStopped:
        """End all sessions and stop the agents."""
        if self._ended.is_set():
            return HostStopped()
        self._ended.set()
        problems = await self._in_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        return HostStopped(tuple(problems))

    async def _in_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._on_beat)
        with instrument_clients(), route_output():
            while True:
                try:
                    self._loop.run_forever()
                except (SystemExit, KeyboardInterrupt):  # from a task that an agent started
                    continue
                break
        self._loop.close()

    def _on_beat(self) -> None:
        now = time.monotonic()
        if now - self._last_beat_at > BLOCKED_SECONDS:
            self._count_lost_time(now, self._last_holder)
        self._last_beat_at = now
        self._last_holder = None
        self._loop.call_later(BEAT_SECONDS, self._on_beat)

    def _create_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        """Create a task and remember the session in whose context it is created."""
        task = asyncio.Task(work, loop=loop, **options)
        if (key := _SESSION.get()) is not None:
            self._owners[task] = key
        return task

    async def _load(self, upload: bytes) -> HostInfo:
        folder = self._folder(upload)
        loaded = []
        for number, item in enumerate(self._order.suites):
            try:
                agent = self._load_agent(item, folder)
                loaded.append(LoadedAgent(agent.identity))
                self._agents[number] = agent
            except (ProctorError, OSError) as error:
                loaded.append(LoadedAgent(problem=str(error)))
            except BaseException as error:
                loaded.append(LoadedAgent(problem=one_line(error)))
        return HostInfo(__version__, tuple(loaded))

    def _load_agent(self, item: SuiteOrder, folder: Path) -> BaseAgent:
        suite = replace(item.suite, path=_relocate(item.suite.path, self._order.folder, folder))
        if suite.env_files:
            files = [_relocate(path, self._order.folder, folder) for path in suite.env_files]
            self._resources.enter_context(environment_from(path for path in files if path and path.is_file()))
        if item.agent_override is not None:
            return resolve_agent(item.agent_override, folder)
        return resolve_agent(suite.agent, suite.base)

    def _folder(self, upload: bytes) -> Path:
        """The folder of the run's files on this worker: uploaded, at the same path, or the working folder."""
        if upload:
            unpacked = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="proctor-"))
            with zipfile.ZipFile(io.BytesIO(upload)) as archive:
                archive.extractall(unpacked)
            return Path(unpacked).resolve()
        return self._order.folder if self._order.folder.is_dir() else Path.cwd()

    async def _start(self, suite: int) -> str | None:
        agent = self._agents[suite]
        if agent not in self._starting:
            seconds = max(self._order.suites[suite].start_seconds, agent.start_timeout)
            self._starting[agent] = self._loop.create_task(try_step(agent.start, seconds))
        return await asyncio.shield(self._starting[agent])

    async def _open(self, key: int, session: HostedSession) -> Exception | None:
        _SESSION.set(key)
        error = await session.open()
        if error is not None:
            self._sessions.pop(key, None)
        return error

    async def _abort(self, hosted: _OpenSession) -> None:
        if hosted.session.task is not None:
            await hosted.session.abort(ABORT_SECONDS)

    async def _stop(self) -> list[StopProblem]:
        await asyncio.gather(*(self._abort(hosted) for hosted in self._sessions.values()))
        problems: list[StopProblem] = []
        for agent, starting in self._starting.items():
            if not starting.done() or starting.result() is not None:
                starting.cancel()
            elif (problem := await try_step(agent.stop, STOP_SECONDS)) is not None:
                problems += [StopProblem(number, problem) for number, other in self._agents.items() if other is agent]
        self._resources.close()
        return problems

    def _watch(self) -> None:
        """Count the lost time of sessions while the event loop is blocked, and stop the agents if the run has ended."""
        while not self._ended.wait(SAMPLE_SECONDS):
            now = time.monotonic()
            if now - self._last_beat_at > BLOCKED_SECONDS:
                self._last_holder = self._holder()
                self._count_lost_time(now, self._last_holder)
            if now - self._last_request_at > ABANDONED_SECONDS:
                self._ended.set()
                asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(2 * STOP_SECONDS)
                self._loop.call_soon_threadsafe(self._loop.stop)

    def _count_lost_time(self, now: float, holder: int | None) -> None:
        """Add the time since the last heartbeat, or since the last call, to all sessions except the holder."""
        seconds = now - max(self._last_beat_at, self._counted_until)
        self._counted_until = now
        for key, hosted in list(self._sessions.items()):
            hosted.lost_seconds += seconds if key != holder else 0.0

    def _holder(self) -> int | None:
        """The session whose task is running now."""
        task = asyncio.current_task(self._loop)
        return None if task is None else self._owners.get(task)


def _relocate(path: Path | None, run_folder: Path, worker_folder: Path) -> Path | None:
    """The path on this worker of a file in the run's folder."""
    if path is None:
        return None
    absolute = path if path.is_absolute() else run_folder / path
    with contextlib.suppress(ValueError):
        return worker_folder / absolute.relative_to(run_folder)
    return absolute


_HOSTS: dict[str, AgentHost] = {}
"""The hosts in this process of a Dask worker, by the name that the run gave to each."""


def start_host(name: str, order: bytes) -> None:
    """Start a host in the process of a Dask worker; `call_host` finds it by its name."""
    for other in [other for other, host in _HOSTS.items() if host.has_ended]:
        del _HOSTS[other]
    _HOSTS[name] = AgentHost(order)


async def call_host(name: str, number: int, method: str, arguments: tuple[Any, ...]) -> bytes:
    """Call a method of a host in the process of this Dask worker; returns its message."""
    return await _HOSTS[name].call(number, method, arguments)
