"""An agent whose sessions run in another process, and the half of a session that runs there.

A `RemoteAgent` replaces the real agent in the plan. The engine opens its sessions and sends turns as with every agent;
a `RemoteSession` passes each turn to a `HostedSession` in the other process, which holds the real session. Only turns
and their results are sent. `--isolate` (a socket to a forked process) and `--workers` (calls of Dask) differ only in
how they are sent.

The obvious version, running the whole trial in the other process, is wrong: retries, timeouts, simulated users and
scoring would exist twice, and restarting a lost process would send turns again that the agent has already answered.

`answer_turn` records a turn in the other process. It also reports everything it records to `listener` immediately,
because the process may end before it answers. What the other process sends is data (`messages`).
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
from proctor.base.clock import Clock
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.output_capture import Forward, OutputCapture, capture_output, current_capture
from proctor.cases.suite import Case, Turn
from proctor.running.conversation import OpenTurn, send_turn
from proctor.running.error_locations import user_locations
from proctor.running.failures import ConversationInvalid, failure_of
from proctor.running.messages import Printed, Progress, TurnAnswered, TurnFailed
from proctor.tracing.capture import SCOPE, collect_spans
from proctor.tracing.thread_context import carry_context_into_pools
from proctor.tracing.wrap import MissingInput


@dataclass(frozen=True, slots=True)
class HostedTrial:
    """What the other process needs to open the session of a trial."""

    case: Case
    number: int
    settings: AgentSettings


ProgressListener = Callable[[Progress], None]


class RemoteAgent(BaseAgent):
    """Represents an agent whose sessions run in another process; the agent is started and stopped there."""

    def __init__(self, agent: BaseAgent) -> None:
        self.target = agent
        self.runs_here = False
        self.name = agent.name
        self.fingerprint = agent.identity
        self.unfingerprinted_parts = agent.unfingerprinted_parts
        self.reads_files = agent.reads_files
        self.reports_all_tool_calls = agent.reports_all_tool_calls
        self.reports_cost = agent.reports_cost
        self.endpoint = agent.endpoint

    def __getattr__(self, name: str) -> Any:
        """Other attributes of the agent, such as `tools` and `model`."""
        if name == "target":  # not set yet while the object is copied
            raise AttributeError(name)
        return getattr(self.target, name)

    def check(self, case: Case) -> str | None:
        return self.target.check(case)


class RemoteSession:
    """The local half of a session in another process; keeps the partial reply of a turn that failed."""

    def __init__(self) -> None:
        self._partial: Reply | None = None

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        raise NotImplementedError

    async def send(self, turn: Turn) -> Reply:
        raise NotImplementedError

    def partial_reply(self) -> Reply | None:
        """What was recorded of a turn that failed; the engine asks for it."""
        return self._partial

    def begin_turn(self) -> None:
        self._partial = None

    def receive(self, answer: TurnAnswered | TurnFailed) -> Reply:
        """Return the reply, or raise the error of the turn; records the spans of the other process here."""
        self.record(Printed(answer.printed))
        if isinstance(answer, TurnFailed):
            self._partial = answer.partial
            _add_spans(answer.spans)
            raise answer.error
        _add_spans(answer.spans)
        return answer.reply

    def record(self, progress: Progress) -> None:
        """Record an event of the other process here."""
        if isinstance(progress, Printed):
            if (capture := current_capture()) is not None:
                capture.add_output(progress.output)
        elif (turn := current_turn()) is not None:
            turn.apply(progress)


def _add_spans(spans: tuple[Any, ...]) -> None:
    scope = SCOPE.get()
    for span in spans if scope is not None else ():
        for capture in scope.captures:  # type: ignore[union-attr]
            capture.add(span)


@contextlib.contextmanager
def excluded_time() -> Iterator[None]:
    """Exclude the time that passes inside from timeouts: it is not the agent's."""
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
    """What the other process needs to know about the trial that runs here."""
    return HostedTrial(case, trial_number(), agent_settings())


class HostedSession:
    """The half of a session in the other process: the real session, opened, used and closed by one task.

    It must be one task, because a session may hold context variables and cancel scopes, which belong to the task that
    entered them.
    """

    def __init__(
        self, agent: BaseAgent, trial: HostedTrial, listener: ProgressListener, forward: Forward | None = None
    ) -> None:
        """`forward` gets what is printed; without it, the answer to each turn contains it."""
        self._agent = agent
        self._forward = forward
        self.output: OutputCapture | None = None
        self._trial = trial
        self._listener = listener
        self._turns: asyncio.Queue[tuple[Turn, asyncio.Future[TurnAnswered | TurnFailed]] | None] = asyncio.Queue()
        self._opened = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def open(self) -> Exception | None:
        """Open the session; returns the error, if there is one."""
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
        """Close the session once the turn in progress is answered; returns the error, if there is one."""
        assert self.task is not None
        self._turns.put_nowait(None)
        await asyncio.wait({self.task})
        return self._failure()

    async def abort(self, seconds: float) -> None:
        """Cancel the turn in progress and close the session, waiting at most `seconds`."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=seconds)

    async def _hold(self) -> None:
        carry_context_into_pools()  # here too: the patch of the process of the run may be younger than this process
        case = self._trial.case
        mocks = ToolMocks(case.mocks) if case.mocks else None
        trial = TrialContext(self._trial.number, self._trial.settings, mocks)
        try:
            with running_trial(trial), capture_output(forward=self._forward) as self.output:
                async with self._agent.session(case) as session:
                    self._opened.set()
                    while (request := await self._turns.get()) is not None:
                        turn, answer = request
                        result = await answer_turn(self._agent, session, case, turn, self._listener)
                        answer.set_result(replace(result, printed=self.output.take()))
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
            return TurnFailed(portable_error(error), open_turn.partial_reply(""), tuple(trace.spans))
        if trial is not None and trial.bypassed_mocks:
            return TurnFailed(ConversationInvalid(str(MockBypassed(trial.bypassed_mocks[0]))))
        return TurnAnswered(reply, tuple(trace.spans))


def portable_error(error: BaseException) -> Exception:
    """An exception that can be pickled: one of ours, with the text and the locations of the agent's own."""
    failure, places = failure_of(error), user_locations(error)
    if isinstance(error, UnreadableReply):
        return UnreadableReply(str(error))
    if isinstance(error, (ConversationInvalid, MissingInput, MockBypassed)):
        return ConversationInvalid(failure.reason, failure.diagnosis)
    return AgentFailed(failure.reason, places=places, diagnosis=failure.diagnosis)


def pack(order: Any) -> bytes:
    """Something for the process of the agent; its answers are messages (`running/messages.py`)."""
    return pickle.dumps(order)


def unpack(data: bytes) -> Any:
    """What the run packed.

    Unpickling can run code of the sender. So only the process of an agent calls this, which runs the code that the run
    names anyway.
    """
    return pickle.loads(data)  # noqa: S301
