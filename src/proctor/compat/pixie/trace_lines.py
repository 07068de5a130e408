"""Read and write pixie's traces, one record per line: arguments of a run, values named by `wrap`, and model calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from proctor.base.json_data import Json, fingerprint, to_json
from proctor.tracing.model_messages import read_messages, read_tools, write_tool
from proctor.tracing.semantic_conventions import as_int, as_number, as_string, as_strings
from proctor.tracing.spans import AssistantMessage, Content, LLMSpan, Message, ObserveSpan, Span, ToolResultMessage
from proctor.tracing.spans import TextContent as Text

TEXT_FIELDS = ("operation", "provider", "request_model", "response_model", "output_type", "error_type")
NUMBER_FIELDS = ("input_tokens", "output_tokens", "duration_ms")


def to_lines(spans: Sequence[Span]) -> str:
    """One JSON document per line, in ASCII."""
    return "".join(f"{json.dumps(record)}\n" for record in to_records(spans))


def to_records(spans: Sequence[Span]) -> Iterator[dict[str, Json]]:
    """The records of a trace in its order; steps for which pixie has no record are left out."""
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
        **{name: getattr(span, name) for name in (*TEXT_FIELDS, *NUMBER_FIELDS)},
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
        record: dict[str, Json] = {"role": message.role, "content": message.content}
        if isinstance(message, ToolResultMessage):
            record |= {"tool_call_id": message.tool_call_id, "tool_name": message.tool_name}
        return record
    record = {"role": message.role, "content": [_part(part) for part in message.content]}
    if isinstance(message, AssistantMessage):
        calls = [
            {"name": call.name, "arguments": call.raw_arguments or dict(call.arguments), "id": call.id}
            for call in message.tool_calls
        ]
        record |= {"tool_calls": calls, "finish_reason": message.finish_reason}
    return record


def _part(part: Content) -> dict[str, Json]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image", "url": part.url, "detail": part.detail}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def from_records(records: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Span]:
    """The spans of one run; everything is below the record with its arguments, in the order of the file."""
    trace_id = fingerprint([to_json(record) for _, record in records]).zfill(32)
    parent: str | None = None
    times = [_seconds(record.get("started_at") or record.get("captured_at")) for _, record in records]
    ends = [_seconds(record.get("ended_at")) for _, record in records]
    now = next((time for time in times if time is not None), 0.0)
    end = max((time for time in (*times, *ends) if time is not None), default=now)
    spans: list[Span] = []
    for line, entry in records:
        now = _seconds(entry.get("started_at") or entry.get("captured_at")) or now
        place = (f"{line:016x}", trace_id, parent)
        if entry["type"] == "kwargs":
            parent = place[0]
            duration_ms = (end - now) * 1000
            spans.append(ObserveSpan(place[0], trace_id, None, now, end, duration_ms, "run", input=entry.get("value")))
        elif entry["type"] == "wrap":
            spans.append(_read_wrap(place, now, entry))
        else:
            spans.append(_read_call(place, now, entry))
    return spans


def _read_wrap(place: tuple[str, str, str | None], now: float, record: Mapping[str, Any]) -> ObserveSpan:
    purpose, data = as_string(record.get("purpose")) or "output", record.get("data")
    metadata: dict[str, Json] = {key: record[key] for key in ("purpose", "description") if record.get(key) is not None}
    input_value, output_value = (data, None) if purpose == "input" else (None, data)
    return ObserveSpan(
        *place, now, now, 0.0, str(record.get("name") or "wrap"), input_value, output_value, metadata, kind="wrap"
    )


def _read_call(place: tuple[str, str, str | None], now: float, record: Mapping[str, Any]) -> LLMSpan:
    duration_ms = as_number(record.get("duration_ms")) or 0.0
    fields: dict[str, Any] = {
        name: as_string(record.get(name))
        for name in ("provider", "request_model", "response_model", "output_type", "error_type")
    }
    fields |= {side: read_messages(record.get(side)) for side in ("input_messages", "output_messages")}
    fields |= {side: as_int(record.get(side)) for side in ("input_tokens", "output_tokens")}
    return LLMSpan(
        *place,
        now,
        _seconds(record.get("ended_at")) or now + duration_ms / 1000,
        duration_ms,
        as_string(record.get("operation")) or "chat",
        finish_reasons=as_strings(record.get("finish_reasons")),
        tool_definitions=read_tools(record.get("tool_definitions")),
        **fields,
    )


def _seconds(value: Any) -> float | None:
    if not isinstance(value, str):
        return as_number(value)
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
