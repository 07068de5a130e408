"""A process for every trial (`--isolate`): code that holds the interpreter, crashes or forks harms its trial alone.

One process is forked before the run begins, while there are no threads yet. It forks one process per conversation,
which has the agent and the cases in memory already; only turns and replies travel.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from proctor.agents.agent import BaseAgent, Reply, ToolCall
from proctor.agents.toolbox import DOUBLES, Doubles
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError
from proctor.base.processes import MARK, adopt_orphans, kill_children, kill_tree, new_mark
from proctor.base.records import record
from proctor.base.references import describe, place_of
from proctor.base.reply_size import LIMIT, UNDERWAY, ReplyTooLarge, Underway, check_size
from proctor.base.threads import CLOCK, run_sync
from proctor.cases.suite import Case, NamedData, Turn
from proctor.running.engine.ask import ConversationSpoiled, complete_reply, traced_calls, traced_usage
from proctor.running.engine.broken_turn import OpenTurn, is_transient
from proctor.running.engine.plan import Plan
from proctor.tracing.capture import SCOPE, capturing
from proctor.tracing.trial_recording import CURRENT, MissingInput, Recording

_LENGTH = struct.Struct("<Q")
TEXT_SECONDS = 0.1
_SENDING = threading.Lock()
_ENVELOPE_BYTES = 8
"""How many times the limit of a reply a message may have: spans and tool calls come with the reply."""


@contextlib.contextmanager
def isolated(plan: Plan) -> Iterator[None]:
    """While this lasts, the agents of a plan answer in processes of their own."""
    if not hasattr(os, "fork"):
        raise UsageError("--isolate needs a system that can fork, which this one cannot")
    agents = [item.agent for item in plan.suites]
    numbers = {id(item): number for number, item in enumerate(plan.suites)}
    cases = {(numbers[id(trial.suite)], trial.case.id): trial.case for trial in plan.trials}
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _serve_forks(theirs, agents, cases)
    theirs.close()
    for number, item in enumerate(plan.suites):
        item.agent = IsolatedAgent(item.agent, ours, number)
    try:
        yield
    finally:
        ours.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


@record
class _Broke:
    """What the process of a trial sends instead of an answer."""

    error: Exception
    part: Reply | None
    spans: tuple[Any, ...]


@record
class _Seen:
    """What happens during a turn, sent as it happens: the process may not live to answer."""

    key: int = 0
    call: ToolCall | None = None
    is_over: bool = False
    output: NamedData | None = None
    text: str = ""
    noted: Reply | None = None
    """What an adapter noted so far: calls, tokens, and what there is of the answer."""


class SessionElsewhere:
    """A conversation in another process; keeps what there is of an answer that broke off."""

    _part: Reply | None = None

    def so_far(self) -> Reply | None:
        return self._part

    def taken_in(self, answer: Any) -> Reply:
        """The reply that the other process sent, with what was seen there counted as seen here; or what it raised."""
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, _Broke):
            self._part = answer.part
            _add_spans(answer.spans)
            raise answer.error
        reply, spans, used = answer
        _add_spans(spans)
        if (recording := CURRENT.get()) is not None:
            recording.used |= used
        return reply  # type: ignore[no-any-return]


class AgentElsewhere(BaseAgent):
    """Stands for an agent whose sessions run in another process; it is started and stopped there."""

    def __init__(self, agent: BaseAgent) -> None:
        self.given = agent
        self.name = agent.name
        self.fingerprint = agent.identity
        self.takes_files = agent.takes_files
        self.sees_calls = agent.sees_calls
        self.tells_cost = agent.tells_cost

    def __getattr__(self, name: str) -> Any:
        if name == "given":
            raise AttributeError(name)
        return getattr(self.given, name)

    def check(self, case: Case) -> str | None:
        return self.given.check(case)


class IsolatedAgent(AgentElsewhere):
    """An agent that has a process for every session."""

    def __init__(self, agent: BaseAgent, control: socket.socket, number: int) -> None:
        super().__init__(agent)
        self._control = control
        self._number = number

    def session(self, case: Case) -> IsolatedSession:
        return IsolatedSession(self._control, self._number, case)


class IsolatedSession(SessionElsewhere):
    """One conversation with a process of its own, which ends with it, together with whatever it started."""

    def __init__(self, control: socket.socket, agent: int, case: Case) -> None:
        self._control = control
        self._asked = (agent, case.id, LIMIT.get())
        self._mark = new_mark()
        self._pid = 0

    async def __aenter__(self) -> IsolatedSession:
        ours, theirs = socket.socketpair()
        request = pickle.dumps((*self._asked, self._mark))
        socket.send_fds(self._control, [_LENGTH.pack(len(request)) + request], [theirs.fileno()])
        theirs.close()
        ours.setblocking(False)
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self._pid = await self._receive()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        if self._pid:
            kill_tree(self._pid, self._mark)

    async def send(self, turn: Turn) -> Reply:
        self._part = Reply()
        message = pickle.dumps(turn)
        self._writer.write(_LENGTH.pack(len(message)) + message)
        while isinstance(answer := await self._receive(), _Seen):
            self._note(answer)
        return self.taken_in(answer)

    def _note(self, seen: _Seen) -> None:
        recording = CURRENT.get()
        if seen.text and self._part is not None:
            self._part = replace(self._part, text=self._part.text + seen.text)
        if seen.noted is not None:
            self._part = seen.noted
        if recording is None:
            return
        if seen.output is not None:
            recording.outputs.append(seen.output)
        if seen.call is not None:
            (recording.end_call if seen.is_over else recording.begin_call)(seen.key, seen.call)

    async def _receive(self) -> Any:
        try:
            [length] = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            if length > _ENVELOPE_BYTES * self._asked[2] + 1_000_000:
                raise ReplyTooLarge("what the agent's process sent")
            return pickle.loads(await self._reader.readexactly(length))  # noqa: S301  from our own fork
        except (asyncio.IncompleteReadError, ConnectionError):
            raise AgentFailed("the process of the trial ended before the agent had answered") from None


def _add_spans(spans: tuple[Any, ...]) -> None:
    scope = SCOPE.get()
    for span in spans if scope is not None else ():
        for capture in scope.captures:  # type: ignore[union-attr]
            capture.add(span)


def _serve_forks(control: socket.socket, agents: list[BaseAgent], cases: dict[tuple[int, str], Case]) -> NoReturn:
    """Fork a process for every request, until the run is over; then end all that is left."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended children need not be waited for
        adopt_orphans()
        while True:
            head, fds, _, _ = socket.recv_fds(control, _LENGTH.size, 1)
            if not head or not fds:
                break
            [length] = _LENGTH.unpack(head)
            agent, case, limit, mark = pickle.loads(_exactly(control, length))  # noqa: S301  from our own process
            if os.fork() == 0:
                control.close()
                _serve_session(socket.socket(fileno=fds[0]), agents[agent], cases[agent, case], limit, mark)
            os.close(fds[0])
    finally:
        kill_children(os.getpid())
        os._exit(0)


def _exactly(source: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        chunk = source.recv(min(length - len(found), 1 << 20))
        if not chunk:
            raise EOFError
        found += chunk
    return found


def _serve_session(link: socket.socket, agent: BaseAgent, case: Case, limit: int, mark: str) -> NoReturn:
    """In the process of one trial: answer turns until no more come."""
    try:
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ[MARK] = mark
        LIMIT.set(limit)
        asyncio.set_event_loop(None)
        asyncio.events._set_running_loop(None)
        run_sync(_converse(link, agent, case))
    except BaseException as error:
        with contextlib.suppress(Exception):
            _send(link, AgentFailed(f"the agent raised {describe(error)}"))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)


async def _converse(link: socket.socket, agent: BaseAgent, case: Case) -> None:
    _send(link, os.getpid())
    loop = asyncio.get_running_loop()
    await agent.start()
    if case.doubles:
        DOUBLES.set(Doubles(case.doubles))
    async with agent.session(case) as session:
        while True:
            try:
                turn = await loop.run_in_executor(None, _receive_turn, link)
            except EOFError:
                return
            _send(link, await answered(agent, session, case, turn, link))


def _receive_turn(link: socket.socket) -> Turn:
    [length] = _LENGTH.unpack(_exactly(link, _LENGTH.size))
    return pickle.loads(_exactly(link, length))  # type: ignore[no-any-return]  # noqa: S301  from our own process


async def answered(agent: BaseAgent, session: Any, case: Case, turn: Turn, link: socket.socket | None = None) -> Any:
    """What the agent said, with all that was recorded; or the exception to be raised where it was asked.

    Over `link`, what is recorded is told as it happens.
    """
    inputs = {item.name: item.value for item in case.inputs} if case.inputs else None
    recording = Recording(inputs) if link is None else _SharedRecording(link, inputs)
    CURRENT.set(recording)
    UNDERWAY.set(underway := Underway())
    clock = CLOCK.perf_counter()
    with capturing() as seen:
        telling = None if link is None else asyncio.create_task(_tell_text(link, underway))
        try:
            reply = await session.send(turn)
            recording.over = True
            duration_ms = (CLOCK.perf_counter() - clock) * 1000
            whole = complete_reply(reply, recording, duration_ms, list(seen.spans), sees_calls=agent.sees_calls)
            check_size(whole)
            return whole, tuple(seen.spans), recording.used
        except ReplyTooLarge as error:
            return _carried(AgentFailed(str(error)))
        except BaseException as error:
            duration_ms = (CLOCK.perf_counter() - clock) * 1000
            spans = list(seen.spans)
            broken = OpenTurn(
                session, recording, underway, error, duration_ms, traced_calls(spans), traced_usage(spans)
            )
            return _Broke(_as_failure(error), broken.reply(""), tuple(spans))
        finally:
            if telling is not None:
                telling.cancel()


class _SharedRecording(Recording):
    """Tells the process that waits for the answer what is recorded, when it is."""

    def __init__(self, link: socket.socket, inputs: Any) -> None:
        super().__init__(inputs)
        self.link = link
        self.outputs = _SharedOutputs(link)

    def begin_call(self, key: int, call: ToolCall) -> None:
        super().begin_call(key, call)
        _send(self.link, _Seen(key, call))

    def end_call(self, key: int, call: ToolCall) -> None:
        super().end_call(key, call)
        _send(self.link, _Seen(key, call, is_over=True))


class _SharedOutputs(list[NamedData]):
    """The named outputs of a turn, each told when it is given."""

    def __init__(self, link: socket.socket) -> None:
        super().__init__()
        self._link = link

    def append(self, output: NamedData) -> None:
        super().append(output)
        _send(self._link, _Seen(output=output))


async def _tell_text(link: socket.socket, underway: Underway) -> None:
    """Send what was streamed, and what an adapter noted, as it comes."""
    sent, told = 0, Reply()
    while True:
        await asyncio.sleep(TEXT_SECONDS)
        for log in underway.logs[-1:]:
            if (noted := Reply(log.said, log.calls, log.usage)) != told:
                _send(link, _Seen(noted=noted))
                told = noted
        text = "".join(stream.text() for stream in underway.streams)
        if len(text) > sent:
            _send(link, _Seen(text=text[sent:]))
            sent = len(text)


def _as_failure(error: BaseException) -> Exception:
    if isinstance(error, (AgentFailed, UnreadableReply, MissingInput)):
        return _carried(error)
    return AgentFailed(f"the agent raised {describe(error)}{place_of(error)}", transient=is_transient(error))


def _carried(error: Exception) -> Exception:
    """An exception as it can travel: one of ours, with its text."""
    if isinstance(error, AgentFailed):
        return AgentFailed(str(error), transient=error.transient, retry_after=error.retry_after)
    return UnreadableReply(str(error)) if isinstance(error, UnreadableReply) else ConversationSpoiled(str(error))


def packed(message: Any, *, otherwise: Callable[[str], Any] = UnreadableReply) -> bytes:
    """What goes to another process; in place of a reply that cannot, what `otherwise` makes of the reason."""
    try:
        return pickle.dumps(message)
    except Exception as error:
        return pickle.dumps(otherwise(f"the reply cannot leave the process of its trial: {describe(error)}"))


def _send(link: socket.socket, message: Any) -> None:
    """Send one message whole, from whichever thread."""
    data = packed(message)
    with _SENDING:
        link.sendall(_LENGTH.pack(len(data)) + data)
