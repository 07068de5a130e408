"""Reads the value that an agent returned: text, data, a chat completion, a result object, or a whole conversation.

Agents answer in many shapes, and guessing wrong turns data into text or text into data. The text is looked up under
common names (`TEXT_KEYS`); a value with none of them is data. Parts such as `state` count only in their proper shape,
so the answer `{"state": "Ohio"}` remains data.
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
"""The keys of a mapping under which the text of an answer is looked up, in this order."""
_TEXT_ATTRIBUTES = ("text", "output", "content", "final_output")
_USAGE = ("usage", "usage_metadata", "usageMetadata")
_DATA = (list, tuple, bool, int, float)


def to_reply(value: Any, turn_input: Json = None) -> Reply:
    """The reply that `value` means; raises `UnreadableReply` if no answer can be read from it.

    The text is looked up under common names, so that `{"answer": ..., "tool_calls": [...]}`, a chat completion and a
    framework's result object all read the same. A value without text is data, and data is an answer too. `turn_input`
    is the input of the turn, by which its answer is found in the record of a whole conversation.
    """
    if isinstance(value, str):
        return Reply(str(value))
    if value is None:
        return Reply(returned_none=True)
    if isinstance(value, Reply):
        return value
    if isinstance(value, (bytes, bytearray)):
        return Reply(bytes(value).decode("utf-8", "replace"))
    if _is_code(value) or isinstance(value, BaseException):
        raise _unreadable(value)
    envelope = read_envelope(value, turn_input)
    return _data_reply(value) if envelope is None else envelope


def read_envelope(value: Any, turn_input: Json = None) -> Reply | None:
    """A reply from an object that wraps one; `None` if it has no text, no tool calls and no other part of a reply."""
    if isinstance(value, _DATA) and not _is_conversation(value):
        return None
    conversation = latest_messages(value, turn_input)
    messages = conversation or completion_message(value)
    has_text_field, content = _find_text(value, messages)
    if not has_text_field and not _has_reply_parts(value):
        return None
    text, structured = text_and_data(content if has_text_field else _without_reply_parts(value))
    return Reply(
        text=text,
        tool_calls=to_tool_calls(get_field(value, "tool_calls")) or _calls(content, messages),
        usage=to_usage(get_field(value, *_USAGE)),
        outputs=_outputs(get_field(value, "outputs")),
        structured=to_json(get_field(value, "structured")) if structured is None else structured,
        state=as_state(get_field(value, "state")),
        retrieval_context=_passages(get_field(value, "retrieval_context")),
        raw=value,
        reports_calls=bool(conversation) or _has_calls_field(value, messages),
    )


def _is_conversation(value: Any) -> bool:
    """Whether it is a list of messages with one of the agent's among them, and not just a list of data."""
    return is_list(value) and any(message.is_assistant for message in latest_messages(value))


def text_and_data(value: Any) -> tuple[str, Json]:
    """The text of an answer and, if the answer is data, the data."""
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
    if message is not None and message.is_assistant:
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
        f"the agent returned {kind}, which cannot be read as an answer; return text, data, a Reply, "
        "or an object with .text, .output or .content"
    )


def _find_text(value: Any, messages: list[ChatMessage]) -> tuple[bool, Any]:
    """Whether there is a field for the text, and its content, which is None if the agent only called tools."""
    names = TEXT_KEYS if isinstance(value, Mapping) else _TEXT_ATTRIBUTES
    for name in names:
        content = get_field(value, name)
        if content is not None and not (name == "message" and messages):
            return True, content
    for message in reversed(messages):
        if message.is_assistant:
            return True, message.content
    has_empty_field = isinstance(value, Mapping) and any(name in value for name in names)
    return has_empty_field or bool(messages), None


def _has_reply_parts(value: Any) -> bool:
    """Whether a value without text has other parts of a reply. Each counts only in its proper shape."""
    if isinstance(value, Mapping) and "tool_calls" in value:
        return True
    return (
        get_field(value, "tool_calls") is not None
        or _is_named_values(get_field(value, "outputs"))
        or (isinstance(value, Mapping) and to_usage(get_field(value, *_USAGE)) is not None)
        or isinstance(get_field(value, "state"), Mapping)
        or is_list(get_field(value, "retrieval_context"))
    )


def _has_calls_field(value: Any, messages: list[ChatMessage]) -> bool:
    """Whether a value says which tools were called, if only that it was none. A completion without calls does not."""
    if isinstance(value, Mapping) and "tool_calls" in value:
        return True
    return get_field(value, "tool_calls") is not None or any(message.tool_calls() for message in messages)


def _without_reply_parts(value: Any) -> Any:
    """The answer of a mapping with parts of a reply but no text: everything else in it."""
    parts = {"tool_calls", "outputs", "state", "retrieval_context", "structured", *_USAGE}
    return {k: v for k, v in value.items() if k not in parts} or None if isinstance(value, Mapping) else None


def _calls(content: Any, messages: list[ChatMessage]) -> tuple[ToolCall, ...]:
    if not messages:
        message = ChatMessage.of({"role": "assistant", "content": content} if is_list(content) else content)
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
        raise UnreadableReply(
            f"outputs must be an object of values by name, or a list of objects with name and value, not {kind}"
        )
    if isinstance(value, Mapping):
        return tuple(NamedData(str(name), to_json(item)) for name, item in value.items())
    return tuple(NamedData(get_field(item, "name"), to_json(get_field(item, "value"))) for item in value)


def _passages(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    return tuple(to_text(to_json(item)) for item in value) if is_list(value) else None


def as_text(turn: Turn) -> str:
    """The input of a turn as text, for chat interfaces."""
    return turn.input if isinstance(turn.input, str) else to_text(turn.input)


def parse_json_answer(text: str) -> Json:
    """The data of an answer that should be JSON; `None` if it is not JSON."""
    try:
        return to_json(json.loads(text))
    except (ValueError, RecursionError):
        return None


def as_state(value: Any) -> Mapping[str, Json] | None:
    """A state as JSON; `None` if the value is not a mapping."""
    return to_json(value) if isinstance(value, Mapping) else None
