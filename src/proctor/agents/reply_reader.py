"""Reads what an agent returned: text, data, a chat completion, a result object, or a whole conversation.

Agents answer in many shapes, and guessing wrong turns data into words or words into data. The text is looked for under
the usual names; what has none of them is data. Parts such as `state` count only in their right shape, so that an answer
`{"state": "Ohio"}` stays the data that it is.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from proctor.agents.messages import (
    ChatMessage,
    completion_message,
    get_field,
    is_list,
    latest_messages,
    parts_text,
    to_tool_calls,
    to_usage,
    tool_calls_in,
)
from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import UnreadableReply
from proctor.base.json_data import Json, to_json, to_text
from proctor.cases.suite import NamedData, Turn

TEXT_KEYS = ("text", "output", "response", "answer", "content", "message")
"""The keys of a mapping under which an answer's words are looked for, in this order."""
_TEXT_ATTRIBUTES = ("text", "output", "content", "final_output")
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
    return _data_reply(value) if envelope is None else envelope


def read_envelope(value: Any, asked: Json = None) -> Reply | None:
    """A reply from something that wraps one; `None` when there are neither words nor calls nor named parts in it."""
    if isinstance(value, _DATA) and not _is_conversation(value):
        return None
    messages = latest_messages(value, asked) or completion_message(value)
    found, words = _find_text(value, messages)
    if not found and not _has_reply_parts(value):
        return None
    text, structured = text_and_data(words if found else _without_reply_parts(value))
    return Reply(
        text=text,
        tool_calls=to_tool_calls(get_field(value, "tool_calls")) or _calls(words, messages),
        usage=to_usage(get_field(value, *_USAGE)),
        outputs=_outputs(get_field(value, "outputs")),
        structured=to_json(get_field(value, "structured")) if structured is None else structured,
        state=as_state(get_field(value, "state")),
        retrieval_context=_passages(get_field(value, "retrieval_context")),
        raw=value,
    )


def _is_conversation(value: Any) -> bool:
    """A list of messages, the agent's among them, and not just any list of data."""
    return is_list(value) and any(message.is_answer for message in latest_messages(value))


def text_and_data(value: Any) -> tuple[str, Json]:
    """The text of an answer and, where it is data instead of words, that data."""
    if value is None:
        return "", None
    if isinstance(value, str):
        return str(value), None
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace"), None
    parts = parts_text(value)
    if parts is not None:
        return parts, None
    message = ChatMessage.of(value)
    if message is not None and message.is_answer:
        return text_and_data(message.content)
    data = to_json(value)
    return to_text(data), data


def _data_reply(value: Any) -> Reply:
    data = to_json(value)
    if isinstance(data, str) and data == repr(value) and not isinstance(value, _DATA):
        raise _unreadable(value)
    return Reply(to_text(data), structured=data, raw=value)


def _is_code(value: Any) -> bool:
    return isinstance(value, type) or inspect.ismodule(value) or inspect.isroutine(value)


def _unreadable(value: Any) -> UnreadableReply:
    kind = f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"
    return UnreadableReply(
        f"the agent returned {kind}, in which no answer can be read; return text, data, a Reply, "
        "or an object with .text, .output or .content"
    )


def _find_text(value: Any, messages: list[ChatMessage]) -> tuple[bool, Any]:
    """Whether there is a place for words, and what stands in it; it may be empty when the agent only acts."""
    names = TEXT_KEYS if isinstance(value, Mapping) else _TEXT_ATTRIBUTES
    for name in names:
        words = get_field(value, name)
        if words is not None and not (name == "message" and messages):
            return True, words
    for message in reversed(messages):
        if message.is_answer:
            return True, message.content
    is_empty_place = isinstance(value, Mapping) and any(name in value for name in names)
    return is_empty_place or bool(messages), None


def _has_reply_parts(value: Any) -> bool:
    """Parts of a reply without words: each counts only in its right shape, so that `{"state": "Ohio"}` stays data."""
    if isinstance(value, Mapping) and "tool_calls" in value:
        return True
    return (
        get_field(value, "tool_calls") is not None
        or _is_named_values(get_field(value, "outputs"))
        or (isinstance(value, Mapping) and to_usage(get_field(value, *_USAGE)) is not None)
        or isinstance(get_field(value, "state"), Mapping)
        or is_list(get_field(value, "retrieval_context"))
    )


def _without_reply_parts(value: Any) -> Any:
    """The answer of a mapping that names its parts but has no text: everything else in it."""
    parts = {"tool_calls", "outputs", "state", "retrieval_context", "structured", *_USAGE}
    return {k: v for k, v in value.items() if k not in parts} or None if isinstance(value, Mapping) else None


def _calls(words: Any, messages: list[ChatMessage]) -> tuple[ToolCall, ...]:
    if not messages:
        message = ChatMessage.of({"role": "assistant", "content": words}) if is_list(words) else ChatMessage.of(words)
        messages = [] if message is None else [message]
    return tool_calls_in(messages)


def _is_named_values(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        is_list(value) and all(isinstance(get_field(item, "name"), str) for item in value)
    )


def _outputs(value: Any) -> tuple[NamedData, ...]:
    if value is None:
        return ()
    if not _is_named_values(value):
        kind = type(value).__name__
        raise UnreadableReply(f"outputs are a {kind}; give an object of values by name, or a list of name and value")
    if isinstance(value, Mapping):
        return tuple(NamedData(str(name), to_json(item)) for name, item in value.items())
    return tuple(NamedData(get_field(item, "name"), to_json(get_field(item, "value"))) for item in value)


def _passages(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    return tuple(to_text(to_json(item)) for item in value) if is_list(value) else None


def as_text(turn: Turn) -> str:
    """A turn's input as the text that a chat interface takes."""
    return turn.input if isinstance(turn.input, str) else to_text(turn.input)


def parse_json_answer(text: str) -> Json:
    """An answer that should be JSON, as data; `None` if it is not."""
    try:
        return to_json(json.loads(text))
    except (ValueError, RecursionError):
        return None


def as_state(value: Any) -> Mapping[str, Json] | None:
    """A state as plain data; `None` for what is no mapping."""
    return to_json(value) if isinstance(value, Mapping) else None
