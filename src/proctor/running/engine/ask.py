"""Holds one conversation with the agent: in time, with retries where the fault is not the agent's, and recorded."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from proctor.agents.agent import Agent, Reply, ToolCall, Usage
from proctor.agents.tool_doubles import DOUBLES, Doubles
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.records import record
from proctor.base.references import describe, place_of
from proctor.cases.suite import Case, NamedData, Turn
from proctor.results.run import Outcome
from proctor.running.engine.deadline import Cancelled, TooLate, Watchdog, in_time
from proctor.running.options import Limits
from proctor.tracing.capture import capturing
from proctor.tracing.trial_recording import CURRENT, Recording
from proctor.tracing.wrapping import MissingInput


class ConversationSpoiled(Exception):
    """The user could not go on, through no fault of the agent: nothing is known about the agent then."""


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

TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
TRANSIENT_KINDS = frozenset(
    """ConnectionError APIConnectionError APITimeoutError NetworkError ConnectError ReadError WriteError
    RemoteProtocolError Timeout TimeoutException ConnectTimeout ReadTimeout WriteTimeout PoolTimeout""".split()
)
"""What libraries that are not imported here call a network that failed."""
LONGEST_PAUSE_SECONDS = 120.0
"""A service may ask to be left alone for this long; a run does not wait for longer."""


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


async def ask(
    agent: Agent, case: Case, limits: Limits, backoff: float, watchdog: Watchdog, new_user: Callable[[], User]
) -> Answer:
    """Hold the conversation of `case`, again where something transient came in between."""
    attempt = 0
    while True:
        attempt += 1
        started_at, clock = time.time(), time.perf_counter()
        replies: list[Reply] = []
        warnings: list[str] = []
        user = new_user()
        with capturing() as seen:
            conversation = _converse(agent, case, user, replies, warnings, seen.spans)
            outcome, reason, again = await _attempt(conversation, limits.timeout, watchdog, user)
        duration_ms = (time.perf_counter() - clock - user.seconds) * 1000
        if again is None or attempt > limits.retries:
            if again is not None and attempt > 1:
                reason = f"{reason} (after {attempt} attempts)"
            heard, noted = tuple(replies), tuple(warnings)
            spans = tuple(seen.spans)
            return Answer(heard, outcome, reason, attempt, started_at, duration_ms, noted, spans, user.said)
        await asyncio.sleep(again or _pause(backoff, attempt))


def _said(error: Exception) -> str:
    """What went wrong, as a sentence about the agent."""
    if not isinstance(error, AgentFailed):
        return f"the agent raised {describe(error)}{place_of(error)}"
    return f"the agent {error}" if str(error).startswith("raised ") else str(error)


def _pause(backoff: float, attempt: int) -> float:
    """Longer each time, and never the same for two trials that met the same obstacle."""
    import random

    factor: float = 2.0 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311
    return min(30.0, backoff * factor)


async def _attempt(
    conversation: Coroutine[Any, Any, None], timeout: float, watchdog: Watchdog, user: User
) -> tuple[Outcome | None, str, float | None]:
    """One try: the outcome if it is settled, why, and, if trying again may help, after how many seconds (0: any)."""
    try:
        await in_time(conversation, timeout, watchdog, lambda: user.seconds)
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
        reason = _said(error)
        if is_transient(error):
            return Outcome.ERROR, reason, _wish(error)
        return Outcome.FAILED, reason, None
    return None, "", None


async def _converse(
    agent: Agent, case: Case, user: User, replies: list[Reply], warnings: list[str], spans: list[Span]
) -> None:
    inputs = {item.name: item.value for item in case.inputs} if case.inputs else None
    doubles = Doubles(case.doubles) if case.doubles else None
    if doubles is not None:
        DOUBLES.set(doubles)
    try:
        async with agent.session(case) as session:
            while (turn := await user.next_turn(replies)) is not None:
                recording = Recording(inputs)
                CURRENT.set(recording)  # never reset: the conversation is a task, whose context ends with it
                clock, before = time.perf_counter(), len(spans)
                reply = await session.send(turn)
                recording.over = True
                duration_ms = (time.perf_counter() - clock) * 1000
                replies.append(_priced(_complete(reply, recording, duration_ms, spans[before:]), agent))
                if inputs:
                    unused = recording.unused()
                    warnings += [f"the application never asked for the input {name!r}" for name in unused]
        if doubles is not None and DOUBLES.get() is doubles:
            warnings += doubles.unasked(call.name for reply in replies for call in reply.tool_calls)
    except (SystemExit, KeyboardInterrupt) as error:
        raise AgentFailed(f"the agent raised {describe(error)}{place_of(error)}") from error


def _complete(reply: Any, recording: Recording, duration_ms: float, spans: list[Span]) -> Reply:
    """The reply with what was recorded on the way; what an adapter reports itself comes first, then `@tool`."""
    if not isinstance(reply, Reply):
        raise UnreadableReply(f"the session returned {type(reply).__name__} instead of a Reply")
    _check(reply)
    return Reply(
        reply.text,
        tuple(reply.tool_calls or recording.tool_calls or _traced_calls(spans)),
        _traced_usage(spans) if reply.usage is None else _measured(reply.usage),
        tuple(reply.outputs or recording.outputs),
        reply.structured,
        reply.state,
        reply.retrieval_context,
        duration_ms if reply.duration_ms is None else reply.duration_ms,
    )


def _priced(reply: Reply, agent: Agent) -> Reply:
    """The reply with an estimate of its cost, where tokens are known and their price is not told."""
    usage = reply.usage
    if usage is None or usage.cost_usd is not None or not usage.total_tokens:
        return reply
    from proctor.agents.prices import model_of, priced

    return replace(reply, usage=priced(usage, model_of(agent)))


def _traced_calls(spans: list[Span]) -> tuple[ToolCall, ...]:
    if not spans:
        return ()
    from proctor.tracing.trace_summary import tool_calls_of

    return tool_calls_of(spans)


def _traced_usage(spans: list[Span]) -> Usage | None:
    if not spans:
        return None
    from proctor.tracing.trace_summary import usage_of

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
    return Usage(_whole(tokens_in), _whole(tokens_out), cost, _whole(calls), model, usage.estimated is True)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _wish(error: BaseException) -> float:
    """How many seconds the service asked to be left alone, where that can be understood; 0 is no wish."""
    wish = getattr(error, "retry_after", None)
    return min(float(wish), LONGEST_PAUSE_SECONDS) if isinstance(wish, (int, float)) and wish > 0 else 0.0


def is_transient(error: BaseException) -> bool:
    """Whether the fault lies with the network or an overloaded service, and asking again may help."""
    marked = getattr(error, "transient", None)
    if isinstance(marked, bool):
        return marked
    if isinstance(error, BaseExceptionGroup):
        return all(is_transient(inner) for inner in error.exceptions)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    for owner, name in ((error, "status_code"), (error, "code"), (getattr(error, "response", None), "status_code")):
        status = getattr(owner, name, None)
        if isinstance(status, int) and status in TRANSIENT_STATUS:
            return True
    return any(kind.__name__ in TRANSIENT_KINDS for kind in type(error).__mro__)
