"""Reads chat messages, tool calls and token counts in the many shapes that vendors and frameworks use.

Values may be mappings or objects of any library, so everything is read through `get_field`. `tool_calls_in` joins calls
with their results, which come in later messages.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from proctor.agents.reply import ToolCall, Usage
from proctor.base.errors import UnreadableReply
from proctor.base.json_data import UNSET, Json, Unset, to_json, to_text

_NAMES = ("name", "tool_name", "toolName", "tool")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "tool_input", "toolInput", "tool_args")
_RESULTS = ("result", "output", "tool_result", "response")
_ERRORS = ("error", "tool_call_error")
_IDS = ("id", "call_id", "tool_call_id", "toolCallId")
_INPUT_TOKENS = ("input_tokens", "prompt_tokens", "inputTokens", "prompt_token_count", "promptTokenCount")
_OUTPUT_TOKENS = (
    "output_tokens",
    "completion_tokens",
    "outputTokens",
    "candidates_token_count",
    "candidatesTokenCount",
)
_COSTS = ("cost_usd", "total_cost_usd", "total_cost", "cost")
_MODEL_CALLS = ("model_calls", "requests", "num_requests")


def get_field(value: Any, *names: str) -> Any:
    """The first of `names` that is not None, among the keys of a mapping or the attributes of an object."""
    for name in names:
        item = value.get(name) if isinstance(value, Mapping) else _attribute(value, name)
        if item is not None:
            return item
    return None


def _attribute(value: Any, name: str) -> Any:
    """An attribute that is data: not a method, and not a property that raises."""
    try:
        attribute = getattr(value, name, None)
    except Exception:
        return None
    return None if inspect.isroutine(attribute) else attribute


def to_tool_calls(value: Any) -> tuple[ToolCall, ...]:
    """The calls in a list of any shape; none if `value` is None. Raises `UnreadableReply` for anything but a list."""
    if value is None:
        return ()
    if not is_list(value):
        raise UnreadableReply(f"tool_calls must be a list, not {type(value).__name__}")
    return tuple(to_tool_call(item, f"tool call {index}") for index, item in enumerate(value, 1))


def is_list(value: Any) -> bool:
    """Whether it is a list, a tuple or a list-like container of another library; not a text, mapping or namedtuple."""
    if isinstance(value, (list, tuple)):
        return not hasattr(value, "_fields")
    if isinstance(value, (str, bytes, bytearray, Mapping, type)):
        return False
    return isinstance(value, Sequence) or (hasattr(value, "__len__") and hasattr(value, "__getitem__"))


def to_tool_call(value: Any, place: str = "a tool call", fields: Mapping[str, Json] = MappingProxyType({})) -> ToolCall:
    """One call of any shape. `fields` has values that are known already, such as `name` or `arguments`."""
    if isinstance(value, ToolCall):
        return value
    if isinstance(value, str):
        value = {"name": value}
    function = get_field(value, "function")
    inner = None if function is None or isinstance(function, str) else function
    name = fields.get("name") or get_field(inner, *_NAMES) or get_field(value, *_NAMES)
    name = function if name is None and isinstance(function, str) else name
    if not isinstance(name, str) or not name:
        raise UnreadableReply(f"{place} has no name; it has {_keys_or_type(value)}")
    arguments = fields.get("arguments", UNSET)
    if isinstance(arguments, Unset):
        arguments = get_field(inner, "arguments", "args")
        arguments = get_field(value, *_ARGUMENTS) if arguments is None else arguments
    error = fields["error"] if "error" in fields else get_field(value, *_ERRORS)
    call_id = fields["id"] if "id" in fields else get_field(value, *_IDS)
    return _parse(
        name,
        arguments,
        result=to_json(fields["result"] if "result" in fields else get_field(value, *_RESULTS)),
        error=None if error is None or error is False else to_text(to_json(error)),
        id=None if call_id is None or isinstance(call_id, Unset) else to_text(to_json(call_id)),
        started_at=_number(get_field(value, "started_at")),
        duration_ms=_number(get_field(value, "duration_ms")),
    )


def _parse(name: str, arguments: Any, **rest: Any) -> ToolCall:
    if not isinstance(arguments, (str, bytes, Mapping, type(None))):
        data = to_json(arguments)
        arguments = data if isinstance(data, Mapping) else json.dumps(data)
    elif isinstance(arguments, Mapping):
        arguments = to_json(arguments)
    try:
        call = ToolCall.parse(name, arguments, **rest)
    except RecursionError:
        return ToolCall(name, raw_arguments=arguments if isinstance(arguments, str) else repr(arguments), **rest)
    if isinstance(arguments, (str, bytes)) and call.arguments:
        # Python's JSON parser accepts NaN, which later readers of the results would not.
        return ToolCall(name, to_json(call.arguments), **rest)
    return call


def to_usage(value: Any) -> Usage | None:
    """Token counts and cost under any of the common names. A value that is not a count is unknown, not an error."""
    if value is None or isinstance(value, Usage):
        return value
    usage = Usage(
        _count(get_field(value, *_INPUT_TOKENS)),
        _count(get_field(value, *_OUTPUT_TOKENS)),
        _number(get_field(value, *_COSTS)),
        _count(get_field(value, *_MODEL_CALLS)),
        model if isinstance(model := get_field(value, "model", "model_name"), str) else None,
    )
    return None if replace(usage, model=None) == Usage() else usage


def _count(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _keys_or_type(value: Any) -> str:
    if isinstance(value, Mapping):
        return "nothing" if not value else ", ".join(str(key) for key in list(value)[:12])
    return f"a {type(value).__name__}"


_ASSISTANT_ROLES = ("assistant", "ai", "model")
_USER_ROLES = ("user", "human")
_TEXT_PARTS = ("text", "output_text", "input_text")
_CALL_PARTS = ("tool_use", "tool_call")
_OTHER_PARTS = (
    "refusal thinking redacted_thinking reasoning image image_url input_image audio input_audio file tool_result"
).split()
_PART_TYPES = frozenset((*_TEXT_PARTS, *_CALL_PARTS, *_OTHER_PARTS))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, read from a message."""

    call_id: str
    content: Json
    failed: bool


def _part_result(part: Any) -> Json:
    content = get_field(part, "content")
    text = parts_text(content)
    return to_json(content) if text is None else text


def _is_error(value: Any) -> bool:
    """Whether a tool's message is marked as an error: `error: true`, `is_error: true`, `status: error`."""
    return (
        get_field(value, "error") is True
        or get_field(value, "is_error") is True
        or get_field(value, "status") == "error"
    )


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation, read from any library's object."""

    role: str
    content: Any
    calls: Any = None
    result_of: str | None = None
    """The id of the tool call whose result this message is, if it is one."""
    failed: bool = False
    """Whether that result is an error."""

    @classmethod
    def of(cls, value: Any) -> ChatMessage | None:
        """The message that `value` is, or `None` if it is something else."""
        role = get_field(value, "role", "type")
        calls = get_field(value, "tool_calls")
        if not isinstance(role, str) or not (_has_field(value, "content") or _has_field(value, "tool_calls")):
            return None
        if calls is None and (only := get_field(value, "function_call")) is not None:
            calls = [only]  # the form of OpenAI's first tool calls
        call_id = get_field(value, "tool_call_id") if role == "tool" else None
        return cls(
            role, get_field(value, "content"), calls, None if call_id is None else str(call_id), _is_error(value)
        )

    @property
    def is_assistant(self) -> bool:
        return self.role in _ASSISTANT_ROLES

    @property
    def is_user(self) -> bool:
        """Whether it is a message of the user; tool results that some interfaces send as the user are not."""
        return self.role in _USER_ROLES and not self.results()

    def results(self) -> list[ToolResult]:
        """The results of tool calls in this message, each with the id of its call."""
        if self.result_of is not None:
            return [ToolResult(self.result_of, to_json(self.content), self.failed)]
        if not _is_parts(self.content):
            return []
        parts = [part for part in self.content if get_field(part, "type") == "tool_result"]
        return [
            ToolResult(str(call_id), _part_result(part), _is_error(part))
            for part in parts
            if (call_id := get_field(part, "tool_use_id", *_IDS)) is not None
        ]

    def tool_calls(self) -> tuple[ToolCall, ...]:
        calls = to_tool_calls(self.calls)
        if calls or not _is_parts(self.content):
            return calls
        return to_tool_calls([part for part in self.content if get_field(part, "type") in _CALL_PARTS])


def completion_message(value: Any) -> list[ChatMessage]:
    """The assistant's message in a chat completion or under the key `message`: a list of one message or none."""
    choices = get_field(value, "choices")
    inner = get_field(choices[0], "message") if is_list(choices) and len(choices) else get_field(value, "message")
    if isinstance(inner, Mapping) and "role" not in inner:
        inner = {"role": "assistant", **inner}
    message = ChatMessage.of(inner)
    return [] if message is None else [message]


def latest_messages(value: Any, turn_input: Json = None) -> list[ChatMessage]:
    """The agent's messages since the user's message `turn_input`, or else since the user's last one.

    `value` is a whole conversation. If it ends with a message of the user, it does not answer that message: it is the
    record of a finished conversation (with a simulated user, for example), and all of it counts.
    """
    items = value if is_list(value) else get_field(value, "messages")
    if not is_list(items):
        return []
    messages: list[ChatMessage] = []
    for item in items:
        message = ChatMessage.of(item)
        if message is None:
            return []
        messages.append(message)
    users = [index for index, message in enumerate(messages) if message.is_user]
    if not users:
        return messages
    ends_with_user = users[-1] == len(messages) - 1
    matches = (i for i in reversed(users) if turn_input is not None and messages[i].content == turn_input)
    start = next(matches, -1 if ends_with_user else users[-1])
    return [message for message in messages[start + 1 :] if not message.is_user]


def tool_calls_in(messages: Sequence[ChatMessage]) -> tuple[ToolCall, ...]:
    """The calls in messages, each with its result from a later message.

    An id may occur twice in a long conversation. A result belongs to the latest message that has a call of that id
    without a result, and there to the first such call.
    """
    calls: list[ToolCall] = []
    waiting: dict[str, list[list[int]]] = {}
    for message in messages:
        for result in message.results():
            _add_result(calls, waiting.get(result.call_id, []), result)
        own: dict[str, list[int]] = {}
        for call in message.tool_calls():
            if call.id is not None and call.result is None:
                own.setdefault(call.id, []).append(len(calls))
            calls.append(call)
        for identity, indices in own.items():
            waiting.setdefault(identity, []).append(indices)
    return tuple(calls)


def _add_result(calls: list[ToolCall], waiting: list[list[int]], result: ToolResult) -> None:
    while waiting and not waiting[-1]:
        waiting.pop()
    if not waiting:
        return
    index = waiting[-1].pop(0)
    if result.failed and calls[index].error is None:
        calls[index] = dataclasses.replace(calls[index], error=to_text(result.content))
    else:
        calls[index] = dataclasses.replace(calls[index], result=result.content)


def parts_text(value: Any) -> str | None:
    """The text of a message whose content is a list of parts; `None` if it is not such a list."""
    if not _is_parts(value):
        return None
    texts = [get_field(part, "text") for part in value if get_field(part, "type") in _TEXT_PARTS]
    return "".join(text for text in texts if isinstance(text, str))


def _is_parts(value: Any) -> bool:
    if not is_list(value) or not len(value):
        return False
    kinds = [get_field(part, "type") for part in value]
    return all(isinstance(kind, str) and kind in _PART_TYPES for kind in kinds)


def _has_field(value: Any, name: str) -> bool:
    return name in value if isinstance(value, Mapping) else hasattr(value, name)
