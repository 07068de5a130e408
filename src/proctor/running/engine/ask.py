"""Holds one conversation with the agent: in time, with retries where the fault is not the agent's, and recorded."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from proctor.agents.agent import Agent, BaseAgent, Reply, Session, ToolCall, Usage
from proctor.agents.toolbox import DOUBLES, Doubles
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.records import record
from proctor.base.reply_size import LIMIT, UNDERWAY, ReplyTooLarge, Underway, check_size
from proctor.base.threads import CLOCK, end_fork_of
from proctor.cases.suite import Case, NamedData, Turn
from proctor.results.run import Outcome, Score
from proctor.running.engine.broken_turn import OpenTurn, is_transient, pause_before, told, wish_of
from proctor.running.engine.deadline import Cancelled, TooLate, Watchdog, in_time
from proctor.running.options import Limits
from proctor.tracing.capture import capturing
from proctor.tracing.trial_recording import CURRENT, MissingInput, Recording


class ConversationSpoiled(Exception):
    """The user could not go on, through no fault of the agent: nothing is known about the agent then."""


class RunStopped(Exception):
    """A trial was not made, since the run cannot go on; without text, since no further trial is to be begun."""


class User(Protocol):
    """One side of one conversation, the agent being the other."""

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        """The next message, after these replies; `None` when there is nothing more to say."""
        ...

    @property
    def seconds(self) -> float:
        """How long the user took so far, which is not the agent's time."""
        ...

    @property
    def said(self) -> tuple[Turn, ...] | None:
        """The turns as they happened, where the case does not have them."""
        ...


class WrittenUser:
    """Says the turns of a case one after another."""

    __slots__ = ("_turns",)
    seconds = 0.0
    said = None

    def __init__(self, case: Case) -> None:
        self._turns = iter(case.turns)

    async def next_turn(self, replies: Sequence[Reply]) -> Turn | None:
        return next(self._turns, None)


if TYPE_CHECKING:
    from proctor.tracing.spans import Span

MOST_BROKEN = 2
"""After so many turns in a row for which the session broke, the rest of a conversation is not tried."""


@record
class Answer:
    """What came of asking: the replies, or why there are none."""

    replies: tuple[Reply, ...]
    outcome: Outcome | None
    """`None` when every turn was answered and evaluators have the word."""
    reason: str
    attempts: int
    started_at: float
    duration_ms: float
    warnings: tuple[str, ...] = ()
    spans: Sequence[Span] = ()
    """What was seen inside the application meanwhile."""
    turns: tuple[Turn, ...] | None = None
    """What was said to the agent, where that is not what the case says."""
    failed_turns: Outcome | None = None
    """What turns that failed come to, where the conversation went on after them: `reason` tells of each."""
    scores: tuple[Score, ...] | None = None
    """Where they were made beside the agent, on a worker."""


async def ask(
    agent: Agent,
    case: Case,
    limits: Limits,
    backoff: float,
    watchdog: Watchdog,
    new_user: Callable[[], User],
    *,
    goes_on: bool = False,
) -> Answer:
    """Hold the conversation of `case`; what failed for a transient reason is tried again, and the answer says so.

    A turn that was answered is never sent again, since what it did would be done twice: a new session is opened only
    while nothing was answered, and later only the turn that failed is sent again. A conversation that `goes_on` sends
    no turn again: a turn that fails has failed, and the next one is sent.
    """
    retries = _Retries(limits.retries, backoff)
    while True:
        started_at, clock = CLOCK.time(), CLOCK.perf_counter()
        user = new_user()
        with capturing() as seen:
            LIMIT.set(limits.max_reply_bytes)
            talk = _Conversation(agent, case, user, seen.spans, retries, goes_on=goes_on)
            outcome, reason, again = await _attempt(talk, limits.timeout, watchdog)
        duration_ms = (CLOCK.perf_counter() - clock - talk.waited) * 1000
        if again is None or talk.replies or not retries.left:
            if again is not None and retries.told:
                reason = f"{reason} (after {retries.attempts} attempts)"
            broken = None if outcome is None else talk.broken(reason)
            heard = tuple(talk.replies) if broken is None else (*talk.replies, broken)
            noted, spans = (*retries.told, *talk.warnings), tuple(seen.spans)
            return Answer(
                heard,
                outcome,
                reason or "; ".join(talk.failures),
                retries.attempts,
                started_at,
                duration_ms,
                noted,
                spans,
                user.said,
                talk.failed,
            )
        await retries.pause(reason, again)


class _Retries:
    """How often a conversation may still be tried again, and why it was."""

    def __init__(self, most: int, backoff: float) -> None:
        self.left = most
        self.attempts = 1
        self.told: list[str] = []
        self._backoff = backoff

    async def pause(self, reason: str, wish: float, turn: int = 0) -> None:
        """Wait before the next try, for as long as the service wishes where it has a wish."""
        self.left -= 1
        pause = wish or pause_before(self._backoff, self.attempts)
        self.attempts += 1
        asked = f"turn {turn + 1} was sent again" if turn else "the agent was asked again"
        self.told.append(f"{asked} (attempt {self.attempts}), since {reason}")
        await asyncio.sleep(pause)


async def _attempt(talk: _Conversation, timeout: float, watchdog: Watchdog) -> tuple[Outcome | None, str, float | None]:
    """One try: the outcome if it is settled, why, and, if trying again may help, after how many seconds (0: any)."""
    try:
        await in_time(talk.hold(), timeout, watchdog, lambda: talk.waited, talk.case_id)
    except ConversationSpoiled as error:
        return Outcome.ERROR, str(error), None
    except TooLate:
        return Outcome.FAILED, f"the agent gave no answer within {timeout:g} s", None
    except Cancelled:
        return Outcome.FAILED, "the agent cancelled its own task", None
    except UnreadableReply as error:
        return Outcome.ERROR, f"the agent's reply cannot be read: {error}", None
    except MissingInput as error:
        return Outcome.ERROR, str(error), None
    except Exception as error:
        reason = told(error)
        if is_transient(error):
            return Outcome.ERROR, reason, wish_of(error)
        return Outcome.FAILED, reason, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # such as GeneratorExit: whatever an agent raises is its own trial's
        return Outcome.FAILED, told(error), None
    return None, "", None


class _Conversation:
    """One session of an agent, and what was heard in it."""

    def __init__(
        self, agent: Agent, case: Case, user: User, spans: list[Span], retries: _Retries, *, goes_on: bool
    ) -> None:
        self.replies: list[Reply] = []
        self.warnings: list[str] = []
        self.case_id = case.id
        self._agent = agent
        self._case = case
        self._user = user
        self._spans = spans
        self._retries = retries
        self._goes_on = goes_on
        self._paused = 0.0
        self._pause_began: float | None = None
        self._broken = 0
        self.failures: list[str] = []
        self.failed: Outcome | None = None
        self._open: tuple[Session, Recording, Underway, float, int] | None = None
        """The turn that was sent and is not answered: what sees it, when it began, and the spans before it."""
        self._raised: BaseException | None = None
        self._inputs = {item.name: item.value for item in case.inputs} if case.inputs else None

    @property
    def waited(self) -> float:
        """Seconds that are not the agent's: the user's, and pauses before a turn was sent again."""
        pausing = 0.0 if self._pause_began is None else CLOCK.perf_counter() - self._pause_began
        return self._user.seconds + self._paused + pausing

    async def hold(self) -> None:
        doubles = Doubles(self._case.doubles) if self._case.doubles else None
        if doubles is not None:
            DOUBLES.set(doubles)
        try:
            async with self._agent.session(self._case) as session:
                while (turn := await self._user.next_turn(self.replies)) is not None:
                    reply = await self._answered(session, turn)
                    self.replies.append(reply)
                    if reply.error is not None and not self._goes_on:
                        raise AgentFailed(reply.error)
                    if self._broken >= MOST_BROKEN:
                        break
            self._note_unsent()
            if doubles is not None and DOUBLES.get() is doubles:
                self.warnings += doubles.unasked(call.name for reply in self.replies for call in reply.tool_calls)
        except (SystemExit, KeyboardInterrupt) as error:
            raise AgentFailed(told(error)) from error

    async def _answered(self, session: Session, turn: Turn) -> Reply:
        """The reply to one turn, which is sent again where that may help and others were answered before."""
        while True:
            try:
                reply = await self._sent(session, turn)
            except (ConversationSpoiled, UnreadableReply, MissingInput, ReplyTooLarge):
                raise
            except Exception as error:
                if self._goes_on:
                    return self._failed(error)
                if not (self.replies and self._retries.left and is_transient(error)):
                    raise
                await self._pause(error)
            else:
                self._broken = 0
                if reply.error is not None:
                    self._note_failure(reply.error, Outcome.FAILED)
                return reply

    async def _pause(self, error: Exception) -> None:
        self._pause_began = CLOCK.perf_counter()
        await self._retries.pause(told(error), wish_of(error), len(self.replies))
        self._paused, self._pause_began = self.waited - self._user.seconds, None

    def _failed(self, error: Exception) -> Reply:
        """The reply to a turn that failed, after which the conversation goes on."""
        transient = is_transient(error)
        breaks_session = getattr(error, "breaks_session", False) or isinstance(error, ConnectionError)
        self._broken = self._broken + 1 if breaks_session else 0
        reason = told(error)
        self._note_failure(reason, Outcome.ERROR if transient else Outcome.FAILED)
        return self.broken(reason) or Reply(error=reason)

    def broken(self, reason: str) -> Reply | None:
        """What there is of the answer to a turn that was sent and not answered, if there is anything of it."""
        if self._open is None:
            return None
        session, recording, seen, clock, before = self._open
        self._open, spans = None, self._spans[before:]
        sees_calls = isinstance(self._agent, BaseAgent) and self._agent.sees_calls
        traced = () if sees_calls else traced_calls(spans)
        duration_ms = (CLOCK.perf_counter() - clock) * 1000
        turn = OpenTurn(session, recording, seen, self._raised, duration_ms, traced, traced_usage(spans))
        reply = turn.reply(reason)
        return None if reply is None else _priced(reply, self._agent)

    def _note_failure(self, reason: str, outcome: Outcome) -> None:
        self.failures.append(f"turn {len(self.replies) + 1}: {reason}")
        self.failed = Outcome.FAILED if Outcome.FAILED in (outcome, self.failed) else outcome

    def _note_unsent(self) -> None:
        unsent = len(self._case.turns) - len(self.replies)
        if self._broken >= MOST_BROKEN and unsent > 0:
            told = "1 turn was" if unsent == 1 else f"{unsent} turns were"
            self.failures.append(f"{told} not sent, since the session broke {MOST_BROKEN} times in a row")

    async def _sent(self, session: Session, turn: Turn) -> Reply:
        recording = Recording(self._inputs)
        CURRENT.set(recording)  # never reset: the conversation is a task, whose context ends with it
        UNDERWAY.set(seen := Underway())
        clock, before = CLOCK.perf_counter(), len(self._spans)
        self._open, self._raised = (session, recording, seen, clock, before), None
        pid = os.getpid()
        try:
            reply = await session.send(turn)
        except ReplyTooLarge as error:
            self._open = None
            self.replies.append(Reply(error.head))
            raise
        except BaseException as error:
            self._raised = error
            raise
        finally:
            end_fork_of(pid)
        recording.over = True
        duration_ms = (CLOCK.perf_counter() - clock) * 1000
        sees_calls = isinstance(self._agent, BaseAgent) and self._agent.sees_calls
        whole = _priced(
            complete_reply(reply, recording, duration_ms, self._spans[before:], sees_calls=sees_calls), self._agent
        )
        self._open = None
        try:
            check_size(whole)
        except ReplyTooLarge as error:
            self.replies.append(Reply(error.head, duration_ms=duration_ms))
            raise
        if self._inputs:
            unused = recording.unused()
            self.warnings += [f"the application never asked for the input {name!r}" for name in unused]
        return whole


def complete_reply(
    reply: Any, recording: Recording, duration_ms: float, spans: list[Span], *, sees_calls: bool = False
) -> Reply:
    """The reply with what was recorded on the way; what an adapter reports itself comes first, then `@tool`."""
    if not isinstance(reply, Reply):
        raise UnreadableReply(f"the session returned {type(reply).__name__} instead of a Reply")
    _check(reply)
    return Reply(
        reply.text,
        tuple(reply.tool_calls or recording.tool_calls or (() if sees_calls else traced_calls(spans))),
        traced_usage(spans) if reply.usage is None else _measured(reply.usage),
        tuple(reply.outputs or recording.outputs),
        reply.structured,
        reply.state,
        reply.retrieval_context,
        duration_ms if reply.duration_ms is None else reply.duration_ms,
        error=reply.error,
    )


def _priced(reply: Reply, agent: Agent) -> Reply:
    """The reply with an estimate of its cost, where tokens are known and their price is not told."""
    usage = reply.usage
    if usage is None or usage.cost_usd is not None or not usage.total_tokens:
        return reply
    from proctor.agents.agent import model_of, priced

    return replace(reply, usage=priced(usage, model_of(agent)))


def traced_calls(spans: list[Span]) -> tuple[ToolCall, ...]:
    if not spans:
        return ()
    from proctor.tracing.spans import tool_calls_of

    return tool_calls_of(spans)


def traced_usage(spans: list[Span]) -> Usage | None:
    if not spans:
        return None
    from proctor.tracing.spans import usage_of

    return usage_of(spans)


def _check(reply: Reply) -> None:
    """Refuse a reply that a session put together wrongly, before it breaks what comes after."""
    if not isinstance(reply.text, str):
        raise UnreadableReply(f"the text of the reply is {type(reply.text).__name__}, not str")
    for name, kind, items in (("tool_calls", ToolCall, reply.tool_calls), ("outputs", NamedData, reply.outputs)):
        if items != () and not (isinstance(items, (tuple, list)) and all(isinstance(item, kind) for item in items)):
            raise UnreadableReply(f"the {name} of the reply are not a tuple of {kind.__name__}")


def _measured(usage: Any) -> Usage:
    """What an answer cost, in plain numbers whatever library counted it."""
    if not isinstance(usage, Usage):
        raise UnreadableReply(f"the usage of the reply is {type(usage).__name__}, not Usage")
    given = (usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.model_calls)
    try:
        numbers = [None if number is None else float(number) for number in given]
    except (TypeError, ValueError, OverflowError):
        numbers = [math.nan]
    if not all(number is None or abs(number) < 2**53 for number in numbers):
        raise UnreadableReply(f"the usage of the reply is not in numbers: {usage!r:.200}")
    tokens_in, tokens_out, cost, calls = numbers
    model = usage.model if isinstance(usage.model, str) else None
    whole = [None if number is None else int(number) for number in (tokens_in, tokens_out, calls)]
    return Usage(whole[0], whole[1], cost, whole[2], model, usage.estimated is True)
