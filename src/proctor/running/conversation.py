"""Holds one conversation with an agent: sends its turns in order, with a timeout and retries, and records them.

`converse` opens a session and sends the turns of the user one after another. Two rules shape it:

- *An answered turn is never sent again*: its side effects would happen twice. Until a turn is answered, a transient
  failure opens a new session. After that, only the failed turn is sent again, in the same session.
- *A turn that fails keeps what was recorded of it.* The obvious version returns the reply or raises, and loses the tool
  calls, tokens and text that came before the exception or the timeout. Here a turn is an `OpenTurn`, and its recorder
  and the trace fill it while the agent works. `OpenTurn.complete` merges that with the answer. `OpenTurn.partial_reply`
  is the same merge without an answer, and works while the agent still hangs.

`send_turn` sends one turn. A process that runs the agent for another process uses it too.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import numbers
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from proctor.agents.agent import Agent, BaseAgent, Session
from proctor.agents.pricing import model_name_of
from proctor.agents.reply import HiddenCalls, Reply, ToolCall, Usage, with_estimated_cost
from proctor.agents.reply_limits import HEAD_BYTES, ReplyTooLarge, check_size
from proctor.agents.tool_mocks import ToolMocks
from proctor.agents.tools import marked_names
from proctor.agents.trial_context import (
    MockBypassed,
    TrialContext,
    current_trial,
    max_reply_bytes,
    running_trial,
    stray_call_warnings,
    trial_number,
)
from proctor.agents.turn_recorder import TurnEvent, TurnRecorder
from proctor.base.clock import Clock
from proctor.base.diagnosis import AGENT
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.infrastructure import diagnose
from proctor.base.json_data import Json
from proctor.base.output_capture import NOTHING_CAPTURED, CapturedOutput
from proctor.base.rate_limit import EndpointDown, RateLimiter, RequestSlot
from proctor.base.threads import exit_if_forked
from proctor.cases.suite import Case, NamedData, Turn
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.running.answer_times import SentTurn
from proctor.running.error_locations import user_locations
from proctor.running.failures import ConversationInvalid, Failure, SessionLost, failure_of
from proctor.running.retries import Retries
from proctor.running.settings import TrialLimits
from proctor.running.timeouts import Cancelled, TimedOut, Watchdog, run_with_timeout
from proctor.tracing.capture import collect_spans
from proctor.tracing.hidden_calls import hidden_calls
from proctor.tracing.model_requests import watch_model_requests
from proctor.tracing.spans import Span, tool_calls_of, usage_of
from proctor.tracing.thread_context import carry_context_into_pools
from proctor.tracing.wrap import MissingInput


class RunStopped(Exception):
    """The trial was not run, since the run cannot continue; has no text if the run is stopping anyway."""


class User(Protocol):
    """The user in one conversation with the agent."""

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        """The next turn, after these replies; `None` at the end of the conversation."""
        ...

    @property
    def thinking_seconds(self) -> float:
        """How long the user has taken, which does not count as the agent's time."""
        ...

    @property
    def turns(self) -> tuple[Turn, ...] | None:
        """The turns as they were sent, if they are not those of the case."""
        ...


class ScriptedUser:
    """Sends the turns of a case, one after another."""

    __slots__ = ("_turns",)
    thinking_seconds = 0.0
    turns = None

    def __init__(self, case: Case) -> None:
        self._turns = iter(case.turns)

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        return next(self._turns, None)


MAX_BROKEN_TURNS = 2
"""After this many turns in a row that broke the session, no more turns are sent."""


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """The result of a conversation: the replies, or why there are none."""

    replies: tuple[Reply, ...]
    outcome: Outcome | None
    """`None` if every turn was answered, so that evaluators decide."""
    reason: str
    attempts: int
    started_at: float
    duration_ms: float
    warnings: tuple[str, ...] = ()
    spans: Sequence[Span] = ()
    """The trace of the application."""
    turns: tuple[Turn, ...] | None = None
    """The turns as they were sent, if they are not those of the case."""
    failed_turns: Outcome | None = None
    """The outcome of failed turns, if the conversation continued after them; `reason` names each."""
    captured: CapturedOutput = NOTHING_CAPTURED
    """What the agent printed and logged."""
    files_read: Mapping[str, str] = field(default_factory=dict)
    """The digests of the project's files that the agent read."""
    lasting_problem: str = ""
    """What kept the agent from answering, if the next trial would have the same problem."""
    stored: Trial | None = None
    """The stored trial that the answers come from; `None` if the agent was called."""


async def converse(
    agent: Agent,
    case: Case,
    limits: TrialLimits,
    backoff: float,
    watchdog: Watchdog,
    new_user: Callable[[], User],
    limiter: RateLimiter | None = None,
    wait_for_rate: Callable[[], Awaitable[None]] | None = None,
    sent: SentTurn | None = None,
) -> ConversationResult:
    """Hold the conversation of `case`. Transient failures are retried, and a warning of the result says so.

    If the case continues after failed turns, a failed turn is not retried: the next one is sent. Turns wait for the
    `limiter` of the agent's endpoint. A turn that is sent again waits for `wait_for_rate` first. `sent`
    follows the turn that the agent has now.
    """
    carry_context_into_pools()
    limiter = limiter or RateLimiter()
    retries = Retries(limits.retries, limits.retry_seconds, backoff, limiter, wait_for_rate)
    number = trial_number()
    while True:
        started_at, clock = Clock.time(), Clock.perf_counter()
        user = new_user()
        trial = TrialContext(number, limits.agent, ToolMocks(case.mocks) if case.mocks else None)
        with collect_spans() as trace:
            conversation = _Conversation(agent, case, user, trial, trace.spans, retries, limiter, sent or SentTurn())
            try:
                failure = await _attempt(conversation, limits.timeout, watchdog)
            finally:
                conversation.release_slot()
        duration_ms = (Clock.perf_counter() - clock - conversation.excluded_seconds) * 1000
        if failure is None or conversation.replies or not retries.allow(failure):
            return _conversation_result(
                conversation, failure, retries, user, (started_at, duration_ms), tuple(trace.spans)
            )
        await retries.pause(failure)


def _conversation_result(
    conversation: _Conversation,
    failure: Failure | None,
    retries: Retries,
    user: User,
    times: tuple[float, float],
    spans: tuple[Span, ...],
) -> ConversationResult:
    reason = "" if failure is None else failure.reason + retries.summary(failure)
    partial = None if failure is None else conversation.partial_reply(reason)
    return ConversationResult(
        tuple(conversation.replies) if partial is None else (*conversation.replies, partial),
        None if failure is None else failure.outcome,
        reason or "; ".join(conversation.failures),
        retries.attempts,
        *times,
        (*retries.warnings, *conversation.warnings, *stray_call_warnings()),
        spans,
        user.turns,
        conversation.failed,
        lasting_problem=failure.diagnosis.cause if failure is not None and failure.diagnosis.lasting else "",
    )


async def _attempt(conversation: _Conversation, timeout: float, watchdog: Watchdog) -> Failure | None:
    """Hold the conversation once; returns why it failed, or `None` if every turn was answered."""
    failure: Failure | None = None
    try:
        await run_with_timeout(
            conversation.run(), timeout, watchdog, lambda: conversation.excluded_seconds, conversation.case_id
        )
    except TimedOut:
        failure = Failure(AGENT, f"the agent gave no answer within {timeout:g} s")
    except Cancelled:
        failure = Failure(AGENT, "the agent cancelled its own task")
    except (asyncio.CancelledError, RunStopped):
        raise
    except BaseException as error:  # such as GeneratorExit: whatever an agent raises only affects its trial
        failure = failure_of(error)
    if conversation.trial.bypassed_mocks:  # the result says nothing about the agent, whatever it did next
        return failure_of(MockBypassed(conversation.trial.bypassed_mocks[0]))
    return failure


class _Conversation:
    """One session with an agent, and its replies."""

    def __init__(
        self,
        agent: Agent,
        case: Case,
        user: User,
        trial: TrialContext,
        spans: list[Span],
        retries: Retries,
        limiter: RateLimiter,
        sent: SentTurn,
    ) -> None:
        self.replies: list[Reply] = []
        self.warnings: list[str] = []
        self.failures: list[str] = []
        self.failed: Outcome | None = None
        self.case_id = case.id
        self.trial = trial
        self._agent = agent
        self._case = case
        self._user = user
        self._spans = spans
        self._retries = retries
        self._limiter = limiter
        self._sent = sent
        self._continues_after_failure = case.continue_after_failed_turn
        self._paused = 0.0
        self._pause_began: float | None = None
        self._breaks_in_a_row = 0
        self._open: OpenTurn | None = None
        """The turn that was sent and is not answered yet."""
        self._slot: RequestSlot | None = None

    def release_slot(self) -> None:
        """Give back the slot of a turn that is not over although its time is: the agent refuses to be cancelled."""
        if self._slot is not None:
            self._slot.close()

    @property
    def excluded_seconds(self) -> float:
        """Seconds that do not count for the agent: of the user, of pauses before retries, of waiting for a worker."""
        pausing = 0.0 if self._pause_began is None else Clock.perf_counter() - self._pause_began
        return self._user.thinking_seconds + self._paused + pausing + self.trial.waited_seconds

    async def run(self) -> None:
        with running_trial(self.trial):
            try:
                mocks = self.trial.mocks
                async with self._agent.session(self._case) as session:
                    while (turn := await self._user.next_turn(self.replies)) is not None:
                        reply = await self._send_with_retries(session, turn)
                        self.replies.append(reply)
                        if reply.error is not None and not self._continues_after_failure:
                            raise AgentFailed(reply.error)
                        if self._breaks_in_a_row >= MAX_BROKEN_TURNS:
                            break
                self._note_unsent()
                if mocks is not None and self.trial.mocks is mocks:
                    self.warnings += mocks.unused(call.name for reply in self.replies for call in reply.tool_calls)
            except (SystemExit, KeyboardInterrupt) as error:
                raise AgentFailed(failure_of(error).reason) from error

    async def _send_with_retries(self, session: Session, turn: Turn) -> Reply:
        """The reply to one turn; after a transient failure it is sent again, unless it is the first turn.

        `converse` retries the first turn in a new session.
        """
        while True:
            try:
                reply = await self._send(session, turn)
            except (ConversationInvalid, UnreadableReply, MissingInput, MockBypassed, ReplyTooLarge, RunStopped):
                raise
            except Exception as error:
                failure = failure_of(error)
                if self._continues_after_failure:
                    return self._failed_turn(failure)
                if not self.replies or failure.loses_session or not self._retries.allow(failure):
                    raise
                with self._excluded():
                    await self._retries.pause(failure, len(self.replies))
            else:
                self._breaks_in_a_row = 0
                if reply.error is not None:
                    self._note_failure(reply.error, Outcome.FAILED)
                return reply

    async def _send(self, session: Session, turn: Turn) -> Reply:
        began, is_retry = Clock.perf_counter(), self._retries.attempts > 1
        try:
            self._slot = await self._limiter.acquire(waiting=self._excluded(), first=is_retry or bool(self.replies))
        except EndpointDown as error:
            raise ConversationInvalid(self._why_not_sent(error)) from None
        with self._slot as slot:
            if is_retry:
                self._retries.waited += Clock.perf_counter() - began
            try:
                reply = await self._send_now(session, turn)
            except Exception as error:
                _report(slot, error)
                raise
            slot.answered()
            return reply

    def _why_not_sent(self, error: EndpointDown) -> str:
        last = self._retries.last_failure
        return f"not sent: {error}" if last is None else f"{last.reason} (not sent again: {error})"

    async def _send_now(self, session: Session, turn: Turn) -> Reply:
        self._open = OpenTurn(self._agent, session, self._case, self._spans)
        self._sent.usage = self._open.usage_so_far
        try:
            with self._sent.timed(self.trial):
                reply = await send_turn(self._open, turn)
        except ReplyTooLarge as error:
            self.replies.append(Reply(error.head, duration_ms=self._open.duration_ms))
            self._open = None
            raise
        unused = self._open.recorder.unused_inputs()
        self.warnings += [f"the application never read the input {name!r}" for name in unused]
        self.warnings += self._open.recorder.notes
        self._open = None
        return reply

    @contextlib.contextmanager
    def _excluded(self) -> Iterator[None]:
        """Exclude the time that passes inside from the timeout: it is not the agent's."""
        self._pause_began = began = Clock.perf_counter()
        try:
            yield
        finally:
            self._paused, self._pause_began = self._paused + Clock.perf_counter() - began, None

    def _failed_turn(self, failure: Failure) -> Reply:
        """The reply to a failed turn, after which the conversation continues."""
        self._breaks_in_a_row = self._breaks_in_a_row + 1 if failure.breaks_session else 0
        self._note_failure(failure.reason, failure.outcome)
        return self.partial_reply(failure.reason) or Reply(error=failure.reason)

    def partial_reply(self, reason: str) -> Reply | None:
        """What was recorded of a turn that was sent and not answered, or `None`."""
        turn, self._open = self._open, None
        if turn is None:
            return None
        self.warnings += turn.recorder.notes
        return turn.partial_reply(reason)

    def _note_failure(self, reason: str, outcome: Outcome) -> None:
        self.failures.append(f"turn {len(self.replies) + 1}: {reason}")
        self.failed = Outcome.FAILED if Outcome.FAILED in (outcome, self.failed) else outcome

    def _note_unsent(self) -> None:
        unsent = len(self._case.turns) - len(self.replies)
        if self._breaks_in_a_row >= MAX_BROKEN_TURNS and unsent > 0:
            what = "1 turn was" if unsent == 1 else f"{unsent} turns were"
            self.failures.append(f"{what} not sent, since the session broke {MAX_BROKEN_TURNS} times in a row")


def _report(slot: RequestSlot, error: Exception) -> None:
    """Report to the limiter what a failed turn says about its endpoint."""
    diagnosis = diagnose(error)
    if diagnosis.limited:
        slot.limited(diagnosis.retry_after or None)
    elif diagnosis.is_transient and not isinstance(error, SessionLost):
        slot.failed()


class OpenTurn:
    """A turn that the agent is answering: its recorder, and its spans."""

    def __init__(
        self,
        agent: Agent,
        session: Session,
        case: Case,
        spans: list[Span],
        listener: Callable[[TurnEvent], None] | None = None,
    ) -> None:
        """`spans` is the list that the active trace capture fills; `listener` is called with everything recorded."""
        trial = current_trial.get()
        inputs: Mapping[str, Json] | None = {item.name: item.value for item in case.inputs} if case.inputs else None
        self.recorder = TurnRecorder(inputs, mocks=None if trial is None else trial.mocks, listener=listener)
        self._trial = trial
        self._limit = max_reply_bytes()
        self.session = session
        self.error: BaseException | None = None
        """The exception of the session, if it raised one."""
        self._agent = agent
        self._all_spans = spans
        self._spans_before = len(spans)
        watch_model_requests()
        self._clock = Clock.perf_counter()

    @property
    def duration_ms(self) -> float:
        return (Clock.perf_counter() - self._clock) * 1000

    @property
    def spans(self) -> list[Span]:
        return self._all_spans[self._spans_before :]

    def complete(self, answer: Any) -> Reply:
        """The session's answer, completed with what was recorded."""
        if not isinstance(answer, Reply):
            raise UnreadableReply(f"the session returned {type(answer).__name__} instead of a Reply")
        _check_types(answer)
        self.recorder.closed = True
        reply = self._merge(answer, self.recorder.tool_calls)
        return replace(reply, duration_ms=self.duration_ms) if reply.duration_ms is None else reply

    def partial_reply(self, reason: str) -> Reply | None:
        """What was recorded without an answer, with `reason` as the error; `None` if nothing was recorded."""
        self.recorder.closed = True
        where = "".join(f"\n  at {place}" for place in user_locations(self.error, self._trial))
        reply = self._merge(self._partial_answer(), self.recorder.partial_tool_calls)
        reply = replace(reply, duration_ms=self.duration_ms, error=reason + where)
        parts = (reply.text, reply.tool_calls, reply.usage, reply.outputs, reply.structured, where)
        return _truncate_if_too_large(reply, self._limit) if any(parts) else None

    def _merge(self, answer: Reply, recorded_calls: tuple[ToolCall, ...]) -> Reply:
        """The answer with its tool calls, usage and outputs: from the session, else the recorder, else the trace."""
        spans, recorder = self.spans, self.recorder
        calls = tuple(answer.tool_calls) or recorded_calls
        if not calls and not self._reports_all_tool_calls:
            calls = tool_calls_of(spans)
        return replace(
            answer,
            tool_calls=calls,
            usage=self.usage_so_far() if answer.usage is None else self._priced(_normalize_usage(answer.usage)),
            outputs=tuple(answer.outputs or recorder.outputs),
            raw=None,
            hidden_calls=answer.hidden_calls or self._hidden_calls(answer, spans),
        )

    def usage_so_far(self) -> Usage | None:
        """The tokens that are known without an answer: from the recorder, else from the trace."""
        recorded, spans = self.recorder.usage, self.spans
        return self._priced(_normalize_usage(recorded) if recorded is not None else usage_of(spans) if spans else None)

    def _priced(self, usage: Usage | None) -> Usage | None:
        return _with_estimated_cost(usage, self._agent)

    def _hidden_calls(self, answer: Reply, spans: list[Span]) -> HiddenCalls | None:
        """Why tool calls may be missing. An agent that says itself which tools it called hides none."""
        if self._reports_all_tool_calls or answer.reports_calls or answer.tool_calls:
            return None
        recorder = self.recorder
        stray = () if self._trial is None else self._trial.stray_calls
        return hidden_calls(recorder.model_requests, spans, marked_names() | recorder.recorded_tools, stray)

    @property
    def _reports_all_tool_calls(self) -> bool:
        return isinstance(self._agent, BaseAgent) and self._agent.reports_all_tool_calls

    def _partial_answer(self) -> Reply:
        """The answer so far, from the session's own `partial_reply()` if it has one, or from the recorder."""
        partial_reply = getattr(self.session, "partial_reply", None)
        recorded = self.recorder.partial_reply
        try:
            part = partial_reply() if callable(partial_reply) else None
            if not isinstance(part, Reply):
                return recorded
            _check_types(part)
            usage = None if part.usage is None else _normalize_usage(part.usage)
        except Exception:  # user code, which may fail here too
            return recorded
        return replace(part, text=part.text or recorded.text, usage=usage)


async def send_turn(open_turn: OpenTurn, turn: Turn) -> Reply:
    """Send one turn and return the reply, completed with what was recorded. Raises what the session raises.

    If it raises, `open_turn.partial_reply` has what was recorded until then.
    """
    trial, pid = current_trial.get(), os.getpid()
    if trial is not None:
        trial.turn = open_turn.recorder
    try:
        answer = await open_turn.session.send(turn)
    except BaseException as error:
        open_turn.error = error
        raise
    finally:
        exit_if_forked(pid)
    reply = open_turn.complete(answer)
    check_size(reply)
    return reply


def _with_estimated_cost(usage: Usage | None, agent: Agent) -> Usage | None:
    """The usage with an estimated cost, if the tokens are known and the cost is not."""
    if usage is None or usage.cost_usd is not None or not usage.total_tokens:
        return usage
    return with_estimated_cost(usage, model_name_of(agent))


def _truncate_if_too_large(reply: Reply, limit: int) -> Reply:
    """A partial reply, shortened if it is larger than a reply may be."""
    try:
        check_size(reply, limit)
    except ReplyTooLarge:
        calls = tuple(ToolCall(call.name, error="omitted: too large") for call in reply.tool_calls[:100])
        return Reply(reply.text[:HEAD_BYTES], calls, reply.usage, duration_ms=reply.duration_ms, error=reply.error)
    return reply


def _check_types(reply: Reply) -> None:
    """Raise `UnreadableReply` if a session filled a reply with wrong types."""
    if not isinstance(reply.text, str):
        raise UnreadableReply(f"the text of the reply is {type(reply.text).__name__}, not str")
    for name, kind, items in (("tool_calls", ToolCall, reply.tool_calls), ("outputs", NamedData, reply.outputs)):
        if items != () and not (isinstance(items, (tuple, list)) and all(isinstance(item, kind) for item in items)):
            raise UnreadableReply(f"the {name} of the reply are not a tuple of {kind.__name__}")
    _check_fields(reply, "reply", _REPLY_FIELDS)
    for call in reply.tool_calls:
        if not isinstance(call.name, str):
            raise UnreadableReply(f"name of the tool call is {type(call.name).__name__}, not str")
        if call.arguments is None:
            raise UnreadableReply("arguments of the tool call is None, not a dict")
        _check_fields(call, "tool call", _CALL_FIELDS)
    passages = reply.retrieval_context or ()
    if isinstance(passages, str) or not all(isinstance(passage, str) for passage in passages):
        raise UnreadableReply("retrieval_context of the reply is not a list of str")


def _check_fields(value: Reply | ToolCall, owner: str, kinds: Mapping[str, tuple[type, str]]) -> None:
    """Raise `UnreadableReply` if a field is neither None nor of its type, or is not a finite number."""
    for name, (kind, kind_name) in kinds.items():
        item = getattr(value, name)
        if item is None or (isinstance(item, kind) and not (isinstance(item, float) and not math.isfinite(item))):
            continue
        shown = repr(item) if isinstance(item, float) else type(item).__name__
        raise UnreadableReply(f"{name} of the {owner} is {shown}, not {kind_name}")


_NUMBER, _TEXT, _OBJECT = (numbers.Real, "a number"), (str, "str"), (Mapping, "a dict")
_REPLY_FIELDS: dict[str, tuple[type, str]] = {
    "duration_ms": _NUMBER,
    "retrieval_context": (Sequence, "a list"),
    "state": _OBJECT,
    "thoughts": _TEXT,
    "error": _TEXT,
}
_CALL_FIELDS: dict[str, tuple[type, str]] = {
    "arguments": _OBJECT,
    "error": _TEXT,
    "raw_arguments": _TEXT,
    "started_at": _NUMBER,
    "duration_ms": _NUMBER,
}


def _normalize_usage(usage: Any) -> Usage:
    """The usage as plain numbers, whatever library counted them."""
    if not isinstance(usage, Usage):
        raise UnreadableReply(f"the usage of the reply is {type(usage).__name__}, not Usage")
    counts = (usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.model_calls)
    try:
        numbers = [None if count is None else float(count) for count in counts]
    except (TypeError, ValueError, OverflowError):
        numbers = [math.nan]
    if not all(number is None or abs(number) < 2**53 for number in numbers):
        raise UnreadableReply(f"the usage of the reply has values that are not numbers: {usage!r:.200}")
    tokens_in, tokens_out, cost, calls = numbers
    model = usage.model if isinstance(usage.model, str) else None
    whole = [None if number is None else int(number) for number in (tokens_in, tokens_out, calls)]
    return Usage(whole[0], whole[1], cost, whole[2], model, usage.estimated is True)
