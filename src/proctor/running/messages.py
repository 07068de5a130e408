"""The messages that the process of an agent sends to the process of the run, and how they are written: as JSON.

The agent may run on another machine (`cluster/`), in the process of an arm (`arms/`) or in the process of its trial
(`isolation`). What comes from there is data: `decode_message` runs nothing, checks every field against its type, and
refuses what is too large or nested too deeply. The obvious version pickles the objects. Unpickling a message runs what
its sender wrote into it, so one worker in bad hands would have the machine of the run.

In the other direction messages are pickled, since they contain the user's functions. The receiver runs those anyway.

`encode_message` never raises. What has no JSON form is sent as the text that a report would show; a message that is
too large, or cannot be written at all, becomes a failed turn that says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from proctor.agents.reply import Reply, ToolCall
from proctor.agents.reply_limits import ReplyTooLarge
from proctor.agents.turn_recorder import (
    CallEvent,
    ChunkEvent,
    InputEvent,
    NoteEvent,
    OutputEvent,
    PartialEvent,
    TurnEvent,
    UsageEvent,
)
from proctor.base.dataclass_json import DataclassCodec, Hook
from proctor.base.diagnosis import Diagnosis
from proctor.base.errors import AgentFailed, ProctorError, UnreadableReply, one_line, truncate_middle
from proctor.base.json_data import Json, to_json
from proctor.base.output_capture import NOTHING_CAPTURED, CapturedOutput
from proctor.base.positions import MAX_DEPTH
from proctor.running.failures import ConversationInvalid
from proctor.tracing.spans import (
    AssistantMessage,
    Content,
    ImageContent,
    LLMSpan,
    Message,
    ObserveSpan,
    Span,
    SystemMessage,
    TextContent,
    ToolResultMessage,
    UserMessage,
)

T = TypeVar("T")

MESSAGE_DEPTH = MAX_DEPTH + 20
"""Levels of nesting that a message may have: those of a value, and of the message around it."""


class InvalidMessage(ProctorError):
    """The process of an agent sent something that is not a message, or not the one that was expected."""


# A turn


@dataclass(frozen=True, slots=True)
class TurnAnswered:
    """A turn that the agent answered."""

    reply: Reply
    spans: tuple[Span, ...] = ()
    printed: CapturedOutput = NOTHING_CAPTURED
    """What was printed since the turn before."""


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A turn that the agent did not answer: why, and what was recorded of it."""

    error: Exception
    partial: Reply | None = None
    spans: tuple[Span, ...] = ()
    printed: CapturedOutput = NOTHING_CAPTURED


@dataclass(frozen=True, slots=True)
class Printed:
    """Something was printed in the other process."""

    output: CapturedOutput


Progress = TurnEvent | Printed
"""One event of a turn, reported immediately."""


@dataclass(frozen=True, slots=True)
class TurnProgress:
    """The events of a turn so far."""

    events: tuple[Progress, ...]


# A session


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The process of a trial runs."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessFailed:
    """The process of a trial could not be started, or cannot continue."""

    error: Exception


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """The agent was started, or why it could not be."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class AgentStopped:
    """The agent was stopped, or why it could not be."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A session was opened, or why it could not be."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """A session was closed, or what went wrong then."""

    error: Exception | None


@dataclass(frozen=True, slots=True)
class SessionAborted:
    """A session was ended during a turn, or not, since the agent blocks its event loop."""

    is_ended: bool


# A host of agents


@dataclass(frozen=True, slots=True)
class LoadedAgent:
    """The fingerprint of an agent, or why it cannot be loaded."""

    fingerprint: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HostInfo:
    """A worker's version of Proctor, and its agents, one for each suite."""

    version: str
    agents: tuple[LoadedAgent, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentTraits:
    """What the run needs to know about an agent, and may be known only once it has started."""

    reads_files: bool
    reports_all_tool_calls: bool
    reports_cost: bool
    endpoint: str


@dataclass(frozen=True, slots=True)
class LostTime:
    """The time in which other sessions blocked the event loop, for one session."""

    session: int
    seconds: float


@dataclass(frozen=True, slots=True)
class HostStatus:
    """The state of a worker and its sessions."""

    lost: tuple[LostTime, ...]
    blocked_seconds: float
    """How long the event loop has been blocked; 0 if it is not."""
    blocked_by: int | None
    """The session that blocks the event loop, if known."""


@dataclass(frozen=True, slots=True)
class StopProblem:
    """Why the agent of a suite could not be stopped."""

    suite: int
    problem: str


@dataclass(frozen=True, slots=True)
class HostStopped:
    """The agents of a worker were stopped."""

    problems: tuple[StopProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A call of a host raised an exception."""

    problem: str


@dataclass(frozen=True, slots=True)
class WorkerDescription:
    """The process of a worker: versions, packages, and the names of its API keys."""

    proctor: str
    python: str
    folder: str
    packages: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WrittenError:
    """An exception in a message."""

    kind: str
    message: str
    places: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None


_ERRORS: Mapping[str, Callable[[WrittenError], Exception]] = {
    "UnreadableReply": lambda error: UnreadableReply(error.message),
    "ConversationInvalid": lambda error: (
        ConversationInvalid(error.message)
        if error.diagnosis is None
        else ConversationInvalid(error.message, error.diagnosis)
    ),
    "AgentFailed": lambda error: AgentFailed(error.message, places=error.places, diagnosis=error.diagnosis),
}


def _encode_error(error: Exception) -> dict[str, Json]:
    kind = type(error).__name__ if type(error).__name__ in _ERRORS else "AgentFailed"
    places = error.places if isinstance(error, AgentFailed) else ()
    return _CODEC.encode(WrittenError(kind, str(error), places, getattr(error, "diagnosis", None)))


def _decode_error(data: Any) -> Exception:
    error = _CODEC.decode(WrittenError, data)
    return _ERRORS[error.kind](error)


def _encode_reply(reply: Reply) -> dict[str, Json]:
    return {**_CODEC.encode(reply), "reports_calls": reply.reports_calls}


def _decode_reply(data: Any) -> Reply:
    return replace(_CODEC.decode(Reply, data), reports_calls=data.get("reports_calls") is True)


def _one_of(*kinds: type) -> Hook:
    """How an object of one of several classes is written: with the name of its class."""
    by_name = {kind.__name__: kind for kind in kinds}
    return Hook(
        lambda value: {"type": type(value).__name__, **_CODEC.encode(value)},
        lambda data: _CODEC.decode(by_name[data["type"]], data),
    )


_EVENTS = (CallEvent, ChunkEvent, InputEvent, NoteEvent, OutputEvent, PartialEvent, Printed, UsageEvent)
_MESSAGES = (
    *(*_EVENTS, TurnAnswered, TurnFailed, TurnProgress),
    *(ProcessStarted, ProcessFailed, AgentStarted, AgentStopped, SessionOpened, SessionClosed, SessionAborted),
    *(HostInfo, AgentTraits, HostStatus, HostStopped, CallFailed, WorkerDescription),
)
_CODEC = DataclassCodec(
    hooks={
        Reply: Hook(_encode_reply, _decode_reply),
        Exception: Hook(_encode_error, _decode_error),
        Span: _one_of(LLMSpan, ObserveSpan),
        Message: _one_of(SystemMessage, UserMessage, AssistantMessage, ToolResultMessage),
        Content: _one_of(TextContent, ImageContent),
        Progress: _one_of(*_EVENTS),
    },
    skip={Reply: ["raw", "reports_calls"]},
    always={ToolCall: ["arguments"]},
    json_value=to_json,
    strict=True,
)
_CODEC.prepare(*_MESSAGES, WrittenError, LLMSpan, ObserveSpan, SystemMessage, UserMessage, AssistantMessage)
_CODEC.prepare(ToolResultMessage, TextContent, ImageContent)
_MESSAGE = _one_of(*_MESSAGES)


def message_limit(max_reply_bytes: int) -> int:
    """How many bytes a message may have: a reply, and the trace that repeats parts of it."""
    return 8 * max_reply_bytes + 1_000_000


def encode_message(message: Any, limit: int | None = None, call: int = 0) -> bytes:
    """The bytes of a message; `call` is the number of the call that it answers, if it answers one."""
    try:
        data = _write(message, call)
    except Exception as error:
        reason = f"the reply cannot leave the process of its trial: {one_line(error)}"
        return _write(TurnFailed(UnreadableReply(reason)), call)
    return data if limit is None or len(data) <= limit else _write(_too_large(message, limit), call)


def is_encodable(message: Any) -> bool:
    """Whether a message can be written. Progress that cannot is left out: its turn will fail with the reason."""
    try:
        _write(message, 0)
    except Exception:
        return False
    return True


def _write(message: Any, call: int) -> bytes:
    written = {"message": _MESSAGE.encode(message), "answers": call}
    text = json.dumps(written, separators=(",", ":"), default=to_json, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")  # half a character, as models send it, is not an error


def _too_large(message: Any, limit: int) -> Any:
    """What is sent instead of a message that is too large."""
    if isinstance(message, (TurnAnswered, TurnFailed)):
        return TurnFailed(ReplyTooLarge("the reply with its trace", limit=limit))
    return TurnProgress(()) if isinstance(message, TurnProgress) else CallFailed("the answer is too large")


def decode_message(data: object, *kinds: type[T], limit: int, call: int = 0) -> T:
    """The message that `encode_message` wrote, if it is of one of these classes and answers this call.

    Raises `InvalidMessage` otherwise, whatever the data is.
    """
    if not isinstance(data, bytes):
        raise InvalidMessage(f"{type(data).__name__} instead of a message")
    if len(data) > limit:
        raise InvalidMessage(f"a message of {len(data):,} bytes, and the limit is {limit:,}")
    try:
        written = json.loads(data)
        if _is_deeper(written, MESSAGE_DEPTH):
            raise InvalidMessage(f"a message that is nested more than {MESSAGE_DEPTH} levels deep")
        number, message = written["answers"], _MESSAGE.decode(written["message"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidMessage(f"not a message: {truncate_middle(one_line(error))}") from None
    if number != call:
        raise InvalidMessage(f"a message that answers another call ({number!r:.20} instead of {call})")
    if not isinstance(message, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidMessage(f"{type(message).__name__} instead of {expected}")
    return message


def _is_deeper(data: Json, limit: int) -> bool:
    """Whether data is nested more than `limit` levels deep; without recursion, which the data could exhaust."""
    level = [data]
    for _ in range(limit):
        level = [
            item
            for value in level
            if isinstance(value, (dict, list))
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True
