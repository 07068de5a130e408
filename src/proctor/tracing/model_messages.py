"""Reads messages of model calls in any of the common forms, and writes them in the form of the GenAI conventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.json_data import Json, parse_json_or_keep, to_text
from proctor.tracing.spans import (
    AssistantMessage,
    Content,
    ImageContent,
    Message,
    SystemMessage,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
)


def read_messages(data: Any) -> tuple[Message, ...]:
    """The messages in a list, in one message, or in text, which becomes a message of the user."""
    data = parse_json_or_keep(data)
    if isinstance(data, str):
        return (UserMessage.from_text(data),) if data else ()
    if isinstance(data, Mapping):
        data = [data]
    if not isinstance(data, Sequence):
        return ()
    return tuple(read_message(item) for item in data if isinstance(item, (Mapping, str)))


def read_message(data: Mapping[str, Any] | str) -> Message:
    """A message in the form of OpenAI (`content`, `tool_calls`) or of the GenAI conventions (`parts`)."""
    if isinstance(data, str):
        return UserMessage.from_text(data)
    kind = data.get("type")
    if kind in ("function_call", "function_call_output"):  # items of OpenAI's Responses API have no role
        return _response_item(data)
    role = data.get("role")
    raw = data.get("parts", data.get("content"))
    parts = [raw] if isinstance(raw, (str, Mapping)) else list(raw) if isinstance(raw, Sequence) else []
    result = next((part for part in parts if _kind(part) in ("tool_call_response", "tool_result")), None)
    if role in ("tool", "function") or result is not None:
        return _tool_result(data, parts, result)
    if role in ("system", "developer"):
        return SystemMessage("".join(_part_text(part) for part in parts))
    content = tuple(item for part in parts if (item := _content(part)) is not None)
    if role in ("assistant", "model", "ai"):
        inline = [part for part in parts if _kind(part) in ("tool_call", "tool_use")]
        calls = [read_call(call) for call in (*_mappings(inline), *_mappings(data.get("tool_calls")))]
        # A part of the content may stand for a call that is described, with its name, in `tool_calls`.
        named = tuple(call for call in calls if call.name) or tuple(calls)
        return AssistantMessage(content, named, _text_or_none(data, "finish_reason"))
    return UserMessage(content)


def read_call(data: Mapping[str, Any]) -> ToolCall:
    """A tool call; arguments that are not an object stay as the model wrote them."""
    function = data.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, Mapping) else data
    name = inner.get("name")
    arguments = next((inner[key] for key in ("arguments", "input", "args") if inner.get(key) is not None), None)
    call_id = data.get("id") or data.get("call_id")
    return ToolCall.parse(str(name or ""), arguments, id=None if call_id is None else str(call_id))


def read_tools(data: Any) -> tuple[ToolDefinition, ...]:
    """The definitions of tools: `{"type": "function", "function": {...}}`, or the inner object alone."""
    data = parse_json_or_keep(data)
    tools = [read_tool(item) for item in (data if isinstance(data, (list, tuple)) else [data])]
    return tuple(tool for tool in tools if tool is not None)


def read_tool(data: Any) -> ToolDefinition | None:
    data = parse_json_or_keep(data)
    if not isinstance(data, Mapping):
        return None
    inner = data.get("function")
    tool: Mapping[str, Any] = inner if isinstance(inner, Mapping) else data
    name = tool.get("name")
    if not isinstance(name, str):
        return None
    schema = next(
        (tool[key] for key in ("parameters", "input_schema", "inputSchema") if tool.get(key) is not None), None
    )
    schema = parse_json_or_keep(schema)
    return ToolDefinition(
        name, _text_or_none(tool, "description"), dict(schema) if isinstance(schema, Mapping) else None
    )


def _response_item(data: Mapping[str, Any]) -> Message:
    if data["type"] == "function_call":
        return AssistantMessage((), (read_call({**data, "id": data.get("call_id")}),))
    return ToolResultMessage(_value_text(data.get("output")), _text_or_none(data, "call_id"))


def _tool_result(data: Mapping[str, Any], parts: Sequence[Any], result: Any) -> ToolResultMessage:
    if result is None:
        text = "".join(_part_text(part) for part in parts)
        call_id = _text_or_none(data, "tool_call_id") or _text_or_none(data, "id")
        return ToolResultMessage(text, call_id, _text_or_none(data, "tool_name") or _text_or_none(data, "name"))
    content = next((result[key] for key in ("response", "result", "content") if result.get(key) is not None), None)
    call_id = _text_or_none(result, "id") or _text_or_none(result, "tool_use_id")
    return ToolResultMessage(_value_text(content), call_id, _text_or_none(result, "name"))


def _content(part: Any) -> Content | None:
    kind = _kind(part)
    if kind in ("tool_call", "tool_use", "tool_call_response", "tool_result", "reasoning", "thinking"):
        return None
    if kind in ("image", "image_url", "input_image", "uri", "blob") and isinstance(part, Mapping):
        return _image(part)
    text = _part_text(part)
    return TextContent(text) if text else None


def _image(part: Mapping[str, Any]) -> ImageContent | None:
    inner = part.get("image_url", part.get("image"))
    nested: Mapping[str, Any] = inner if isinstance(inner, Mapping) else part
    deeper = nested.get("image")
    nested = deeper if isinstance(deeper, Mapping) else nested
    url = inner if isinstance(inner, str) else nested.get("url", nested.get("uri"))
    return ImageContent(url, _text_or_none(nested, "detail")) if isinstance(url, str) else None


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    content = next((part[key] for key in ("text", "content", "refusal") if part.get(key) is not None), "")
    return _value_text(content)


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _value_text(value: Json) -> str:
    return "" if value is None else to_text(value)


def _mappings(items: Any) -> Iterable[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, (list, tuple)) else []


def _text_or_none(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) and value else None


def write_message(message: Message) -> dict[str, Json]:
    """A message as an object with its role and parts."""
    if isinstance(message, ToolResultMessage):
        part = {
            "type": "tool_call_response",
            "id": message.tool_call_id,
            "name": message.tool_name,
            "response": message.content,
        }
        return {"role": "tool", "parts": [part]}
    content = (TextContent(message.content),) if isinstance(message.content, str) else message.content
    parts = [_write_part(part) for part in content]
    if not isinstance(message, AssistantMessage):
        return {"role": message.role, "parts": parts}
    parts += [_write_tool_call(call) for call in message.tool_calls]
    finish = {} if message.finish_reason is None else {"finish_reason": message.finish_reason}
    return {"role": "assistant", "parts": parts, **finish}


def write_tool(tool: ToolDefinition) -> dict[str, Json]:
    """The definition of a tool as an object."""
    parameters = None if tool.parameters is None else dict(tool.parameters)
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": parameters}


def _write_part(part: TextContent | ImageContent) -> dict[str, Json]:
    if isinstance(part, TextContent):
        return {"type": "text", "content": part.text}
    detail = {} if part.detail is None else {"detail": part.detail}
    return {"type": "uri", "modality": "image", "uri": part.url, **detail}


def _write_tool_call(call: ToolCall) -> dict[str, Json]:
    arguments = dict(call.arguments) if call.raw_arguments is None else call.raw_arguments
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments}
