"""A trace as the records of a pixie trace file: the arguments, what passed through `wrap`, and the model calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from proctor.base.json_data import Json
from proctor.tracing.model_messages import write_tool
from proctor.tracing.spans import AssistantMessage, Content, LLMSpan, Message, ObserveSpan, Span, ToolResultMessage
from proctor.tracing.spans import TextContent as Text

SAID = ("operation", "provider", "request_model", "response_model", "output_type", "error_type")
COUNTED = ("input_tokens", "output_tokens", "duration_ms")


def to_lines(spans: Sequence[Span]) -> str:
    """One JSON document a line, ASCII throughout."""
    return "".join(f"{json.dumps(record)}\n" for record in to_records(spans))


def to_records(spans: Sequence[Span]) -> Iterator[dict[str, Json]]:
    """In the order of the trace; steps that pixie has no record for are left out."""
    ordered = sorted(spans, key=lambda span: span.started_at)
    root = next((span for span in ordered if isinstance(span, ObserveSpan) and span.parent_span_id is None), None)
    if root is not None:
        yield {"type": "kwargs", "value": root.input}
    for span in ordered:
        if isinstance(span, LLMSpan):
            yield _call(span)
        elif span.kind == "wrap":
            yield _wrap(span)


def _wrap(span: ObserveSpan) -> dict[str, Json]:
    purpose = span.metadata.get("purpose", "output")
    return {
        "type": "wrap",
        "name": span.name,
        "purpose": purpose,
        "data": span.input if purpose == "input" else span.output,
        "description": span.metadata.get("description"),
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "captured_at": _time(span.started_at),
    }


def _call(span: LLMSpan) -> dict[str, Json]:
    return {
        "type": "llm_span",
        **{name: getattr(span, name) for name in (*SAID, *COUNTED)},
        "finish_reasons": list(span.finish_reasons),
        "input_messages": [_message(message) for message in span.input_messages],
        "output_messages": [_message(message) for message in span.output_messages],
        "tool_definitions": [
            {key: value for key, value in write_tool(tool).items() if key != "type"} for tool in span.tool_definitions
        ],
        "started_at": _time(span.started_at),
        "ended_at": _time(span.ended_at),
    }


def _message(message: Message) -> dict[str, Json]:
    if isinstance(message.content, str):
        said: dict[str, Json] = {"role": message.role, "content": message.content}
        if isinstance(message, ToolResultMessage):
            said |= {"tool_call_id": message.tool_call_id, "tool_name": message.tool_name}
        return said
    said = {"role": message.role, "content": [_part(part) for part in message.content]}
    if isinstance(message, AssistantMessage):
        calls = [
            {"name": call.name, "arguments": call.raw_arguments or dict(call.arguments), "id": call.id}
            for call in message.tool_calls
        ]
        said |= {"tool_calls": calls, "finish_reason": message.finish_reason}
    return said


def _part(part: Content) -> dict[str, Json]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image", "url": part.url, "detail": part.detail}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
