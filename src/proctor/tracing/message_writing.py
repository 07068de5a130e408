"""Writes messages and tools of a model call as the GenAI conventions do; `messages` reads them again."""

from __future__ import annotations

from proctor.agents.model import ToolCall
from proctor.plain import Json
from proctor.tracing.spans import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
)


def write_message(message: Message) -> dict[str, Json]:
    """A message with its role and parts."""
    if isinstance(message, ToolResultMessage):
        part = {
            "type": "tool_call_response",
            "id": message.tool_call_id,
            "name": message.tool_name,
            "response": message.content,
        }
        return {"role": "tool", "parts": [part]}
    content = (TextContent(message.content),) if isinstance(message.content, str) else message.content
    parts = [_part(part) for part in content]
    if not isinstance(message, AssistantMessage):
        return {"role": message.role, "parts": parts}
    parts += [_tool_call(call) for call in message.tool_calls]
    finish = {} if message.finish_reason is None else {"finish_reason": message.finish_reason}
    return {"role": "assistant", "parts": parts, **finish}


def write_tool(tool: ToolDefinition) -> dict[str, Json]:
    """A tool as the model was offered it."""
    parameters = None if tool.parameters is None else dict(tool.parameters)
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": parameters}


def _part(part: TextContent | ImageContent) -> dict[str, Json]:
    if isinstance(part, TextContent):
        return {"type": "text", "content": part.text}
    detail = {} if part.detail is None else {"detail": part.detail}
    return {"type": "uri", "modality": "image", "uri": part.url, **detail}


def _tool_call(call: ToolCall) -> dict[str, Json]:
    arguments = dict(call.arguments) if call.raw_arguments is None else call.raw_arguments
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments}
