"""What adapters share: a reply made of what an agent returns, the memory of a conversation, the calls of a turn."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import json
import os
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, is_typeddict

from proctor.agents.agent import BaseAgent, BaseSession, Reply, ToolCall, Usage
from proctor.agents.chat_messages import (
    Message,
    calls_in,
    completion_message,
    field,
    is_list,
    latest_messages,
    text_of_parts,
    to_tool_calls,
    to_usage,
)
from proctor.base.errors import UnreadableReply
from proctor.base.json_data import Json, plain, show
from proctor.base.references import describe, is_filled, source_fingerprint
from proctor.base.reply_size import UNDERWAY
from proctor.cases.suite import Case, NamedData, Turn

WORDS = ("text", "output", "response", "answer", "content", "message")
"""The keys of a mapping under which an answer's words are looked for, in this order."""
_OBJECT_WORDS = ("text", "output", "content", "final_output")
_USAGE = ("usage", "usage_metadata", "usageMetadata")
_DATA = (list, tuple, bool, int, float)


def to_reply(value: Any, asked: Json = None) -> Reply:
    """The reply that `value` means; raises `UnreadableReply` when it means none.

    The text is looked for under the usual names, so that `{"answer": ..., "tool_calls": [...]}`, a chat completion and
    a framework's result object all read the same. A value without text is data, and data is an answer too.
    `asked` is what the agent was given, so that the answer to it is found in a record of a whole conversation.
    """
    if isinstance(value, str):
        return Reply(str(value))
    if value is None:
        return Reply()
    if isinstance(value, Reply):
        return value
    if isinstance(value, (bytes, bytearray)):
        return Reply(bytes(value).decode("utf-8", "replace"))
    if _is_code(value) or isinstance(value, BaseException):
        raise _unreadable(value)
    envelope = read_envelope(value, asked)
    return _data(value) if envelope is None else envelope


def read_envelope(value: Any, asked: Json = None) -> Reply | None:
    """A reply from something that wraps one; `None` when there are neither words nor calls nor named parts in it."""
    if isinstance(value, _DATA) and not _is_conversation(value):
        return None
    messages = latest_messages(value, asked) or completion_message(value)
    found, words = _words(value, messages)
    if not found and not _has_parts(value):
        return None
    text, structured = read_words(words if found else _rest(value))
    return Reply(
        text=text,
        tool_calls=to_tool_calls(field(value, "tool_calls")) or _calls(words, messages),
        usage=to_usage(field(value, *_USAGE)),
        outputs=_outputs(field(value, "outputs")),
        structured=plain(field(value, "structured")) if structured is None else structured,
        state=state_of(field(value, "state")),
        retrieval_context=_passages(field(value, "retrieval_context")),
        raw=value,
    )


def _is_conversation(value: Any) -> bool:
    """A list of messages, the agent's among them, and not just any list of data."""
    return is_list(value) and any(message.is_answer for message in latest_messages(value))


def read_words(value: Any) -> tuple[str, Json]:
    """The text of an answer and, where it is data instead of words, that data."""
    if value is None:
        return "", None
    if isinstance(value, str):
        return str(value), None
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace"), None
    parts = text_of_parts(value)
    if parts is not None:
        return parts, None
    message = Message.of(value)
    if message is not None and message.is_answer:
        return read_words(message.content)
    data = plain(value)
    return show(data), data


def _data(value: Any) -> Reply:
    data = plain(value)
    if isinstance(data, str) and data == repr(value) and not isinstance(value, _DATA):
        raise _unreadable(value)
    return Reply(show(data), structured=data, raw=value)


def _is_code(value: Any) -> bool:
    return isinstance(value, type) or inspect.ismodule(value) or inspect.isroutine(value)


def _unreadable(value: Any) -> UnreadableReply:
    kind = f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"
    return UnreadableReply(
        f"the agent returned {kind}, in which no answer can be read; return text, data, a Reply, "
        "or an object with .text, .output or .content"
    )


def _words(value: Any, messages: list[Message]) -> tuple[bool, Any]:
    """Whether there is a place for words, and what stands in it; it may be empty when the agent only acts."""
    names = WORDS if isinstance(value, Mapping) else _OBJECT_WORDS
    for name in names:
        words = field(value, name)
        if words is not None and not (name == "message" and messages):
            return True, words
    for message in reversed(messages):
        if message.is_answer:
            return True, message.content
    is_empty_place = isinstance(value, Mapping) and any(name in value for name in names)
    return is_empty_place or bool(messages), None


def _has_parts(value: Any) -> bool:
    """Parts of a reply without words: each counts only in its right shape, so that `{"state": "Ohio"}` stays data."""
    if isinstance(value, Mapping) and "tool_calls" in value:
        return True
    return (
        field(value, "tool_calls") is not None
        or _is_named(field(value, "outputs"))
        or (isinstance(value, Mapping) and to_usage(field(value, *_USAGE)) is not None)
        or isinstance(field(value, "state"), Mapping)
        or is_list(field(value, "retrieval_context"))
    )


def _rest(value: Any) -> Any:
    """The answer of a mapping that names its parts but has no text: everything else in it."""
    parts = {"tool_calls", "outputs", "state", "retrieval_context", "structured", *_USAGE}
    return {k: v for k, v in value.items() if k not in parts} or None if isinstance(value, Mapping) else None


def _calls(words: Any, messages: list[Message]) -> tuple[ToolCall, ...]:
    if not messages:
        message = Message.of({"role": "assistant", "content": words}) if is_list(words) else Message.of(words)
        messages = [] if message is None else [message]
    return calls_in(messages)


def _is_named(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        is_list(value) and all(isinstance(field(item, "name"), str) for item in value)
    )


def _outputs(value: Any) -> tuple[NamedData, ...]:
    if value is None:
        return ()
    if not _is_named(value):
        kind = type(value).__name__
        raise UnreadableReply(f"outputs are a {kind}; give an object of values by name, or a list of name and value")
    if isinstance(value, Mapping):
        return tuple(NamedData(str(name), plain(item)) for name, item in value.items())
    return tuple(NamedData(field(item, "name"), plain(field(item, "value"))) for item in value)


def _passages(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    return tuple(show(plain(item)) for item in value) if is_list(value) else None


TRIAL: ContextVar[int] = ContextVar("proctor_trial", default=1)
"""The number of the trial of its case that is under way here, from 1."""

_PROCESS = os.urandom(6).hex()
_NUMBERS = itertools.count(1)


class Conversation:
    """One session's memory; `state` is the agent's to change, starting from a copy of the case's."""

    __slots__ = ("case", "history", "id", "state")

    def __init__(self, case: Case) -> None:
        self.id = f"{_PROCESS}-{next(_NUMBERS)}"
        self.case = case
        self.state: dict[str, Any] = copy.deepcopy(dict(case.state))
        self.history: list[tuple[Json, str]] = []

    def record(self, turn: Turn, reply: Reply) -> Reply:
        """Remember an answered turn, and what the agent says it knows now."""
        self.history.append((turn.input, reply.text))
        if reply.state is not None and reply.state is not self.state:
            self.state = copy.deepcopy(dict(reply.state))
        return reply

    def messages(self) -> list[Json]:
        """What was said so far, in the shape in which chat interfaces take it."""
        said: list[Json] = []
        for question, answer in self.history:
            said += [{"role": "user", "content": plain(question)}, {"role": "assistant", "content": answer}]
        return said


class FrameworkAgent(BaseAgent):
    """An agent of a framework: `name`, a fingerprint, and a session per trial."""

    sees_calls = True

    takes_files = False

    def __init__(self, target: Any, name: str, fingerprint: str) -> None:
        self.target = target
        self.name = name
        self.fingerprint = fingerprint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def session(self, case: Case) -> BaseSession:
        raise NotImplementedError


class CallLog:
    """The tool calls of one turn while they happen, calls within calls included, in the order they began."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        self._clocks: dict[str, float] = {}
        self.usage: Usage | None = None
        self.said = ""
        """What there is of the answer, as far as events tell before its end."""
        if (turn := UNDERWAY.get()) is not None:
            turn.logs.append(self)

    def begin(self, identity: str | None, name: str, arguments: Any) -> str:
        """A call begins, inside the one that is under way here if there is one."""
        key = identity or f"{name}-{len(self._calls) + 1}"
        call = ToolCall.parse(name, plain(arguments), id=key, started_at=time.time(), parent=_INSIDE.get())
        self._calls[key] = call
        self._clocks[key] = time.perf_counter()
        _INSIDE.set(key)
        return key

    def end(self, key: str, result: Any = None, error: BaseException | str | None = None) -> None:
        """A call ends; what begins here from now on is again inside the one around it."""
        call = self._calls.get(key)
        if call is None:
            return
        _INSIDE.set(call.parent)
        told = None if error is None else error if isinstance(error, str) else describe(error)
        self._calls[key] = ToolCall(
            call.name,
            call.arguments,
            plain(result),
            told,
            call.id,
            call.started_at,
            (time.perf_counter() - self._clocks[key]) * 1000,
            call.raw_arguments,
            call.parent,
        )

    def add_usage(self, usage: Usage | None) -> None:
        """Add the usage of one model call."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(self._calls.values())


_INSIDE: ContextVar[str | None] = ContextVar("proctor_inside_call", default=None)


def text_of(turn: Turn) -> str:
    """A turn's input as the text that a chat interface takes."""
    return turn.input if isinstance(turn.input, str) else show(turn.input)


def described_tool(tool: Any) -> Json:
    """What makes two tools alike, for fingerprints: the name, and the code wherever a framework keeps it."""
    kept = (getattr(tool, part, None) for part in _CODE)
    code = next((found for found in kept if hasattr(found, "__code__")), tool)
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__
    return [str(name), source_fingerprint(code)]


_CODE = ("func", "function", "real_fn", "entrypoint", "handler", "forward")


def read_data(text: str) -> Json:
    """An answer that should be JSON, as data; `None` if it is not."""
    try:
        return plain(json.loads(text))
    except (ValueError, RecursionError):
        return None


def closure_values(function: Any) -> list[Any]:
    """What the closure of a function holds, apart from variables that are not set yet."""
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if is_filled(cell)]


def state_of(value: Any) -> Mapping[str, Json] | None:
    """A state as plain data; `None` for what is no mapping."""
    return plain(value) if isinstance(value, Mapping) else None


UNKNOWN = (None, type(None), object, Any)
"""Kinds that say nothing: the state itself will do, if there is any."""


def context_from(kind: Any, state: Mapping[str, Json]) -> Any:
    """An object of `kind` with what the case's state says; `None` where there is nothing to say, or no way to say it.

    Raises `ValueError` when the state does not fit a kind that is made of fields.
    """
    if kind in UNKNOWN:
        return copy.deepcopy(dict(state)) or None
    if is_typeddict(kind) or _is(kind, Mapping):
        return copy.deepcopy(dict(state))
    if not dataclasses.is_dataclass(kind) and not hasattr(kind, "model_fields"):
        return None
    from pydantic import PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(kind).validate_python(copy.deepcopy(dict(state)))
    except PydanticUserError:
        return None
    except ValueError as error:
        if not state:
            return None
        raise ValueError(
            f"the state of the case does not fit {getattr(kind, '__name__', kind)}: {describe(error)}"
        ) from None


def state_from(context: Any) -> Mapping[str, Json] | None:
    """What such an object says in the end, where it is made of fields."""
    told = plain(context) if _has_fields(context) else None
    return told if isinstance(told, Mapping) else None


def _is(kind: Any, parent: type) -> bool:
    plainly = getattr(kind, "__origin__", kind)
    return isinstance(plainly, type) and issubclass(plainly, parent)


def _has_fields(value: Any) -> bool:
    return isinstance(value, Mapping) or dataclasses.is_dataclass(value) or hasattr(value, "model_dump")
