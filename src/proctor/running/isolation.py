"""Runs every trial in its own process (`--isolate`): an agent that blocks, crashes or forks only affects its trial.

Before the run starts, one process is forked (`_serve_forks`). It holds the agents and the cases in memory and does
nothing but fork. For each session it forks another process (`_serve_session`), which starts the agent, opens the
session, answers turns, closes the session and stops the agent. The obvious version, forking from the process of the
run, is wrong: that process has threads, and a lock that one of them holds during the fork is never released in the
child.

The two processes exchange messages over a socket, each with its length in front. The run sends pickled turns and closes
its half of the socket at the end of the session. The other process sends JSON (`messages`), in this order:
`ProcessStarted`, `AgentStarted`, `SessionOpened`, for each turn any number of `Progress` and one `TurnAnswered` or
`TurnFailed`, then `SessionClosed` and `AgentStopped`; or `ProcessFailed` instead of any of them. Each step has a
timeout. At the end of a session its process is always killed, together with everything it started, since it may not be
able to end itself.

What the process prints arrives through two pipes, its file descriptors 1 and 2. So the output of C code and of
programs that the agent starts is captured too, and the last lines before a crash. Log records are messages (`Printed`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from proctor.agents.agent import BaseAgent
from proctor.agents.reply import Reply
from proctor.agents.reply_limits import ReplyTooLarge
from proctor.agents.trial_context import AgentSettings
from proctor.base.diagnosis import Diagnosis, FailureKind
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError
from proctor.base.event_loops import run_sync
from proctor.base.output_capture import CapturedOutput, OutputCapture, current_capture, route_output
from proctor.base.process_tree import MARK_VARIABLE, adopt_orphans, kill_children, kill_tree, new_mark
from proctor.cases.suite import Case, Turn
from proctor.running.agent_lifecycle import STOP_SECONDS, try_step
from proctor.running.failures import ConversationInvalid, not_started
from proctor.running.messages import (
    AgentStarted,
    AgentStopped,
    InvalidMessage,
    Printed,
    ProcessFailed,
    ProcessStarted,
    Progress,
    SessionClosed,
    SessionOpened,
    TurnAnswered,
    TurnFailed,
    decode_message,
    encode_message,
    is_encodable,
    message_limit,
)
from proctor.running.plan import Plan
from proctor.running.remote_agent import (
    HostedSession,
    HostedTrial,
    RemoteAgent,
    RemoteSession,
    excluded_time,
    pack,
    portable_error,
    trial_to_host,
    unpack,
)
from proctor.tracing.instrumentation import instrument_clients

ABORT_SECONDS = 3.0
"""How long a session that is aborted during a turn may take to close."""
REACTION_SECONDS = 2.0
"""How much longer than its timeout a step may take before its process counts as stuck."""
_LENGTH = struct.Struct("<Q")
_SENDING = threading.Lock()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Requests a process for one session; the process already has the case and finds it by its id."""

    suite: int
    case_id: str
    number: int
    settings: AgentSettings
    start_seconds: float
    mark: str


@contextlib.contextmanager
def isolated_plan(plan: Plan) -> Iterator[Plan]:
    """The same plan with agents that run every session in its own process."""
    if not hasattr(os, "fork"):
        raise UsageError("--isolate needs os.fork, which this system does not have")
    agents = [item.agent for item in plan.suites]
    suites = {item.suite.name: number for number, item in enumerate(plan.suites)}
    cases = {(suites[trial.suite.suite.name], trial.case.id): trial.case for trial in plan.trials}
    ours, theirs = socket.socketpair()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()  # or each process would print again what the buffer holds
    pid = os.fork()
    if pid == 0:
        ours.close()
        _serve_forks(theirs, agents, cases)
    theirs.close()
    try:
        yield plan.with_agents(
            lambda item: IsolatedAgent(item.agent, ours, suites[item.suite.name], item.limits.timeout),
            lambda item: item.limits.fixed_parallel,
        )
    finally:
        ours.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


class IsolatedAgent(RemoteAgent):
    """An agent that runs every session in its own process."""

    def __init__(self, agent: BaseAgent, control: socket.socket, suite: int, start_seconds: float) -> None:
        super().__init__(agent)
        self.suite = suite
        self.start_limit = max(start_seconds, agent.start_timeout)
        """How long the agent may take to start in each process."""
        self.control = control
        self.processes: set[IsolatedSession] = set()
        self.stop_problems: dict[str, None] = {}

    def session(self, case: Case) -> IsolatedSession:
        return IsolatedSession(self, case)

    async def stop(self) -> None:
        """Wait for processes that are still closing; raises if the agent could not stop in one of them."""
        while self.processes:
            await asyncio.sleep(0.02)
        if self.stop_problems:
            raise AgentFailed("; ".join(self.stop_problems))


class IsolatedSession(RemoteSession):
    """One session in its own process, which is killed at the end together with everything it started."""

    def __init__(self, agent: IsolatedAgent, case: Case) -> None:
        super().__init__()
        self._agent = agent
        self._trial = trial_to_host(case)
        self._mark = new_mark()
        self._pid = 0
        self._output = OutputPipes(current_capture())

    async def __aenter__(self) -> IsolatedSession:
        trial, agent = self._trial, self._agent
        request = SessionRequest(
            agent.suite, trial.case.id, trial.number, trial.settings, agent.start_limit, self._mark
        )
        ours, theirs = socket.socketpair()
        data = pack(request)
        with self._output.open() as pipes:
            socket.send_fds(agent.control, [_LENGTH.pack(len(data)) + data], [theirs.fileno(), *pipes])
        theirs.close()
        ours.setblocking(False)
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        agent.processes.add(self)
        try:
            self._pid = (await self._receive(ProcessStarted)).pid
            await self._start_agent()
            if (error := (await self._receive(SessionOpened)).error) is not None:
                raise error
        except BaseException:
            await self._abort()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the session, stop the agent and kill the process."""
        if kind is not None:
            await self._abort()
        elif (error := await self._end(None)) is not None:
            raise error

    async def send(self, turn: Turn) -> Reply:
        self.begin_turn()
        self._writer.write(_frame(pack(turn)))
        while isinstance(message := await self._read(), Progress):
            self.record(message)
        if isinstance(message, ProcessFailed):
            raise message.error
        if not isinstance(message, (TurnAnswered, TurnFailed)):
            raise AgentFailed("the process of the trial closed its session before the agent answered")
        return self.receive(message)

    async def _start_agent(self) -> None:
        """Start the agent, with its own timeout; a failure is an error of the trial, not of the agent."""
        name, seconds = self._agent.name, self._agent.start_limit
        with excluded_time():
            try:
                async with asyncio.timeout(seconds + REACTION_SECONDS):
                    problem = (await self._receive(AgentStarted)).problem
            except TimeoutError:
                problem = f"it took longer than {seconds:g} s"
            except AgentFailed as error:
                problem = str(error)
        if problem is not None:
            raise not_started(name, problem)

    async def _abort(self) -> None:
        """End a session that has already failed; this does not count towards timeouts."""
        with excluded_time():
            await self._end(ABORT_SECONDS)

    async def _end(self, close_seconds: float | None) -> Exception | None:
        """Close the session, stop the agent and kill the process; returns the error of closing, if any."""
        error = None
        try:
            self._writer.write_eof()
            async with asyncio.timeout(close_seconds):
                error = await self._close()
            with excluded_time():
                async with asyncio.timeout(STOP_SECONDS + REACTION_SECONDS):
                    await self._stop_agent()
        except (TimeoutError, OSError):
            pass  # it is killed below
        finally:
            self._writer.close()
            if self._pid:
                kill_tree(self._pid, self._mark)
            self._output.close()
            self._agent.processes.discard(self)
        return error

    async def _close(self) -> Exception | None:
        try:
            return (await self._receive(SessionClosed)).error
        except AgentFailed as error:  # the process has ended
            return error

    async def _stop_agent(self) -> None:
        with contextlib.suppress(AgentFailed):  # the process has ended, and the agent with it
            stopped = await self._receive(AgentStopped)
            if stopped.problem is not None:
                self._agent.stop_problems[stopped.problem] = None

    async def _receive(self, kind: type[T]) -> T:
        """The next message of one kind; skips messages of a turn that was abandoned."""
        while not isinstance(message := await self._read(), kind):
            if isinstance(message, ProcessFailed):
                raise message.error
        return message

    async def _read(self) -> Any:
        while isinstance(message := await self._read_message(), Printed):
            self.record(message)
        return message

    async def _read_message(self) -> Any:
        try:
            [length] = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            limit = message_limit(self._trial.settings.max_reply_bytes)
            if length > limit:
                raise ReplyTooLarge("what the agent's process sent")
            return decode_message(await self._reader.readexactly(length), object, limit=limit)
        except InvalidMessage as error:
            raise UnreadableReply(f"the process of the trial sent {error}") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise AgentFailed("the process of the trial ended before the agent answered") from None


class OutputPipes:
    """The pipes through which the output of a session's process arrives."""

    def __init__(self, capture: OutputCapture | None) -> None:
        self._capture = capture
        self._readers: dict[int, str] = {}

    @contextlib.contextmanager
    def open(self) -> Iterator[list[int]]:
        """The ends for the process, for its stdout and stderr; they are closed here after the block."""
        writers = []
        try:
            for stream in ("stdout", "stderr"):
                reader, writer = os.pipe()
                writers.append(writer)
                self._readers[reader] = stream
                os.set_blocking(reader, False)
                asyncio.get_running_loop().add_reader(reader, self._receive, reader)
            yield writers
        finally:
            for writer in writers:
                os.close(writer)

    def close(self) -> None:
        """Read what is left, and close the pipes."""
        for reader in list(self._readers):
            while self._receive(reader):
                pass
            self._stop(reader)

    def _receive(self, reader: int) -> bool:
        """Read from a pipe; returns whether there may be more."""
        try:
            data = os.read(reader, 1 << 16)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._stop(reader)
        elif self._capture is not None:
            self._capture.add_bytes(self._readers[reader], data)
        return bool(data)

    def _stop(self, reader: int) -> None:
        if self._readers.pop(reader, None) is not None:
            asyncio.get_running_loop().remove_reader(reader)
            os.close(reader)


def _frame(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _serve_forks(control: socket.socket, agents: list[BaseAgent], cases: dict[tuple[int, str], Case]) -> NoReturn:
    """Fork a process for every request until the run ends; then kill all processes that are left."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended children need not be waited for
        adopt_orphans()
        while True:
            head, fds, _, _ = socket.recv_fds(control, _LENGTH.size, 3)
            if not head or not fds:
                break
            [length] = _LENGTH.unpack(head)
            request: SessionRequest = unpack(_receive_exactly(control, length))
            try:
                pid = os.fork()
            except OSError as error:  # this machine has no more processes or memory
                _refuse_session(socket.socket(fileno=fds[0]), error)
                for fd in fds[1:]:
                    os.close(fd)
                continue
            if pid == 0:
                control.close()
                case = cases[request.suite, request.case_id]
                _replace_standard_streams(fds[1], fds[2])
                _serve_session(socket.socket(fileno=fds[0]), agents[request.suite], case, request)
            for fd in fds:
                os.close(fd)
    finally:
        kill_children(os.getpid())
        os._exit(0)


def _refuse_session(link: socket.socket, error: OSError) -> None:
    """Report that no process could be started for a session."""
    diagnosis = Diagnosis(FailureKind.INFRASTRUCTURE, "this machine can start no more processes", lasting=True)
    with contextlib.suppress(OSError), link:
        _send(
            link, ProcessFailed(ConversationInvalid(f"no process could be started for the trial: {error}", diagnosis))
        )


def _replace_standard_streams(stdout: int, stderr: int) -> None:
    """Use the pipes of the session, and no input: the terminal belongs to the run."""
    stdin = os.open(os.devnull, os.O_RDONLY)
    for fd, standard in ((stdin, 0), (stdout, 1), (stderr, 2)):
        os.dup2(fd, standard)
        os.close(fd)


def _receive_exactly(source: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        chunk = source.recv(min(length - len(data), 1 << 20))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def _serve_session(link: socket.socket, agent: BaseAgent, case: Case, request: SessionRequest) -> NoReturn:
    """Answer turns, in the process of one trial, until the run closes the socket."""
    try:
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ[MARK_VARIABLE] = request.mark
        asyncio.set_event_loop(None)
        asyncio.events._set_running_loop(None)  # the loop of the parent process does not run here
        _send(link, ProcessStarted(os.getpid()))
        with instrument_clients(), route_output():
            run_sync(_host_session(link, agent, HostedTrial(case, request.number, request.settings), request))
    except BaseException as error:
        with contextlib.suppress(Exception):
            _send(link, ProcessFailed(portable_error(error)))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)


async def _host_session(link: socket.socket, agent: BaseAgent, trial: HostedTrial, request: SessionRequest) -> None:
    problem = await try_step(agent.start, request.start_seconds)
    _send(link, AgentStarted(problem))
    if problem is not None:
        return
    session = HostedSession(
        agent, trial, lambda progress: _report(link, progress), lambda stream, text: _forward(link, stream, text)
    )
    error = await session.open()
    _send(link, SessionOpened(error))
    if error is None:
        _send(link, SessionClosed(await _answer_turns(link, session)))
    else:
        _send(link, SessionClosed(None))
    _send(link, AgentStopped(await try_step(agent.stop, STOP_SECONDS)))


async def _answer_turns(link: socket.socket, session: HostedSession) -> Exception | None:
    """Answer turns until the run closes its half of the socket, possibly during a turn."""
    loop = asyncio.get_running_loop()
    next_turn = loop.run_in_executor(None, _receive_turn, link)
    while (turn := await next_turn) is not None:
        next_turn = loop.run_in_executor(None, _receive_turn, link)
        answer = asyncio.ensure_future(session.send(turn))
        events: set[asyncio.Future[Any]] = {answer, next_turn}
        await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():  # the next turn comes only after the answer, so this is the end
            await session.abort(ABORT_SECONDS)
            return None
        _send(link, answer.result())
    return await session.close()


def _receive_turn(link: socket.socket) -> Turn | None:
    try:
        [length] = _LENGTH.unpack(_receive_exactly(link, _LENGTH.size))
        turn: Turn = unpack(_receive_exactly(link, length))
        return turn
    except (EOFError, OSError):
        return None


def _report(link: socket.socket, progress: Progress) -> None:
    """Report progress. What cannot be sent is dropped here, and fails its turn when that is answered."""
    if is_encodable(progress):
        _send(link, progress)


def _forward(link: socket.socket, stream: str, text: str) -> None:
    """Send what was printed: log records as a message, everything else through the pipe of its stream."""
    with contextlib.suppress(OSError):  # the run no longer listens
        if stream == "log":
            _send(link, Printed(CapturedOutput(log=text)))
            return
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(1 if stream == "stdout" else 2, data) :]


def _send(link: socket.socket, message: Any) -> None:
    """Send one message completely; may be called from any thread."""
    data = encode_message(message)
    with _SENDING:
        link.sendall(_frame(data))
