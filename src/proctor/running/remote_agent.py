"""An agent whose sessions run in another process, and the half of a session that runs there.

A `RemoteAgent` takes the place of the real agent in the plan. The engine opens its sessions and sends turns as it does
with every agent; a `RemoteSession` passes each turn to a `HostedSession` in the other process, which holds the real
session. Only turns and what came of them travel. How they travel is all that `--isolate` (a socket to a forked process)
and `--workers` (a Dask actor) differ in.

The obvious version, running the whole trial over there, is wrong: retries, timeouts, simulated users and scoring would
exist twice, and whatever restarts a lost process would send turns again that the agent has answered already.

`answer_turn` is the one place that records a turn on the far side. Everything that it records is also reported to
`listener` when it happens, because the process may not live to answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from proctor.agents.agent import BaseAgent, Session
from proctor.agents.reply import Reply
from proctor.agents.reply_limits import ReplyTooLarge
from proctor.agents.tool_mocks import ToolMocks
from proctor.agents.trial_context import (
    AgentSettings,
    MockBypassed,
    TrialContext,
    agent_settings,
    current_trial,
    current_turn,
    running_trial,
    trial_number,
)
from proctor.agents.turn_recorder import TurnEvent
from proctor.base.clock import Clock
from proctor.base.errors import AgentFailed, UnreadableReply, one_line
from proctor.cases.suite import Case, Turn
from proctor.running.conversation import OpenTurn, send_turn
from proctor.running.error_locations import user_locations
from proctor.running.failures import ConversationInvalid, FailureKind, failure_of
from proctor.tracing.capture import SCOPE, collect_spans


@dataclass(frozen=True, slots=True)
class HostedTrial:
    """What the far side has to know to open the session of a trial."""

    case: Case
    number: int
    settings: AgentSettings


@dataclass(frozen=True, slots=True)
class TurnAnswered:
    """A turn that the agent answered."""

    reply: Reply
    spans: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A turn that the agent did not answer: why, and what there is of an answer."""

    error: Exception
    partial: Reply | None = None
    spans: tuple[Any, ...] = ()


Progress = TurnEvent
"""One thing that happened during a turn, reported when it happens."""

ProgressListener = Callable[[Progress], None]


class RemoteAgent(BaseAgent):
    """Stands for an agent whose sessions run in another process; it is started and stopped there."""

    def __init__(self, agent: BaseAgent) -> None:
        self.target = agent
        self.name = agent.name
        self.fingerprint = agent.identity
        self.unfingerprinted_parts = agent.unfingerprinted_parts
        self.reads_files = agent.reads_files
        self.reports_all_tool_calls = agent.reports_all_tool_calls
        self.reports_cost = agent.reports_cost
        self.endpoint = agent.endpoint

    def __getattr__(self, name: str) -> Any:
        """What else the agent has, such as `tools` and `model`."""
        if name == "target":  # not set yet while the object is being copied
            raise AttributeError(name)
        return getattr(self.target, name)

    def check(self, case: Case) -> str | None:
        return self.target.check(case)


class RemoteSession:
    """One session whose other half is in another process; keeps what there is of an answer that was not finished."""

    def __init__(self) -> None:
        self._partial: Reply | None = None

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        raise NotImplementedError

    async def send(self, turn: Turn) -> Reply:
        raise NotImplementedError

    def so_far(self) -> Reply | None:
        return self._partial

    def begin_turn(self) -> None:
        self._partial = None

    def receive(self, answer: TurnAnswered | TurnFailed) -> Reply:
        """The reply, with everything that was recorded over there recorded here; or raises why there is none."""
        if isinstance(answer, TurnFailed):
            self._partial = answer.partial
            _add_spans(answer.spans)
            raise answer.error
        _add_spans(answer.spans)
        return answer.reply

    def record(self, progress: Progress) -> None:
        """Record here what happened over there."""
        if (turn := current_turn()) is not None:
            turn.apply(progress)


def _add_spans(spans: tuple[Any, ...]) -> None:
    scope = SCOPE.get()
    for span in spans if scope is not None else ():
        for capture in scope.captures:  # type: ignore[union-attr]
            capture.add(span)


@contextlib.contextmanager
def excluded_time() -> Iterator[None]:
    """Time that passes inside is not the agent's: no timeout counts it."""
    trial = current_trial.get()
    if trial is None or trial.waiting_since is not None:
        yield
        return
    trial.waiting_since = Clock.monotonic()
    try:
        yield
    finally:
        trial.excluded_seconds, trial.waiting_since = trial.waited_seconds, None


def trial_to_host(case: Case) -> HostedTrial:
    """What the far side has to know of the trial that is running here."""
    return HostedTrial(case, trial_number(), agent_settings())


class HostedSession:
    """The far half: the real session, opened, asked and closed by one task.

    It is one task because a session may hold context variables and cancel scopes, which belong to the task that entered
    them.
    """

    def __init__(self, agent: BaseAgent, trial: HostedTrial, listener: ProgressListener) -> None:
        self._agent = agent
        self._trial = trial
        self._listener = listener
        self._turns: asyncio.Queue[tuple[Turn, asyncio.Future[TurnAnswered | TurnFailed]] | None] = asyncio.Queue()
        self._opened = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def open(self) -> Exception | None:
        """Open the session; returns why that failed, if it did."""
        self.task = asyncio.create_task(self._hold())
        opened = asyncio.ensure_future(self._opened.wait())
        events: set[asyncio.Future[Any]] = {self.task, opened}
        await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        return None if self._opened.is_set() else self._failure()

    async def send(self, turn: Turn) -> TurnAnswered | TurnFailed:
        assert self.task is not None
        answer: asyncio.Future[TurnAnswered | TurnFailed] = asyncio.get_running_loop().create_future()
        self._turns.put_nowait((turn, answer))
        events: set[asyncio.Future[Any]] = {self.task, answer}
        await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        return TurnFailed(self._failure() or AgentFailed("the session ended before the turn was answered"))

    async def close(self) -> Exception | None:
        """Close the session once the turn in progress is answered; returns why that failed, if it did."""
        assert self.task is not None
        self._turns.put_nowait(None)
        await asyncio.wait({self.task})
        return self._failure()

    async def abort(self, seconds: float) -> None:
        """Cancel the turn in progress and close the session, which may take this long."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=seconds)

    async def _hold(self) -> None:
        case = self._trial.case
        mocks = ToolMocks(case.mocks) if case.mocks else None
        trial = TrialContext(self._trial.number, self._trial.settings, mocks)
        try:
            with running_trial(trial):
                async with self._agent.session(case) as session:
                    self._opened.set()
                    while (request := await self._turns.get()) is not None:
                        turn, answer = request
                        answer.set_result(await answer_turn(self._agent, session, case, turn, self._listener))
        except (SystemExit, KeyboardInterrupt) as error:  # would end the event loop
            raise portable_error(error) from error

    def _failure(self) -> Exception | None:
        if self.task is None or not self.task.done():
            return None
        if self.task.cancelled():
            return AgentFailed("the agent cancelled its own task")
        error = self.task.exception()
        return None if error is None else portable_error(error)


async def answer_turn(
    agent: BaseAgent, session: Session, case: Case, turn: Turn, listener: ProgressListener
) -> TurnAnswered | TurnFailed:
    """Send one turn to the real session and return its answer with everything that was recorded."""
    trial = current_trial.get()
    with collect_spans() as trace:
        open_turn = OpenTurn(agent, session, case, trace.spans, listener)
        try:
            reply = await send_turn(open_turn, turn)
        except ReplyTooLarge as error:
            return TurnFailed(portable_error(error))
        except BaseException as error:
            current = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and current is not None and current.cancelling():
                raise
            return TurnFailed(portable_error(error), open_turn.broken(""), tuple(trace.spans))
        if trial is not None and trial.bypassed_mocks:
            return TurnFailed(ConversationInvalid(str(MockBypassed(trial.bypassed_mocks[0]))))
        return TurnAnswered(reply, tuple(trace.spans))


def portable_error(error: BaseException) -> Exception:
    """An exception as it can travel: one of ours, with the text of the agent's own and where it was raised."""
    failure, places = failure_of(error), user_locations(error)
    if isinstance(error, UnreadableReply):
        return UnreadableReply(str(error))
    if failure.kind is FailureKind.INFRASTRUCTURE:
        return ConversationInvalid(failure.reason)
    wait = failure.retry_after or None
    return AgentFailed(failure.reason, transient=failure.is_transient, retry_after=wait, places=places)


def pack(message: Any) -> bytes:
    """What goes to the other process; the answer to a turn that cannot be pickled becomes a failed turn."""
    try:
        return pickle.dumps(message)
    except Exception as error:
        reason = f"the reply cannot leave the process of its trial: {one_line(error)}"
        return pickle.dumps(TurnFailed(UnreadableReply(reason)))


def unpack(data: bytes) -> Any:
    """What the other process packed.

    Unpickling runs code that the sender chooses. That is acceptable because both sides run the user's own code; who can
    reach a worker over the network is described in docs/scale.md.
    """
    return pickle.loads(data)  # noqa: S301
