"""Spans as JSON and back, by the names of their fields; what is at its default is left out."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from proctor.plain import Json
from proctor.tracing.message_writing import write_message, write_tool
from proctor.tracing.messages import read_messages, read_tools
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span

MESSAGES = ("input_messages", "output_messages")


def span_to_json(span: Span) -> dict[str, Json]:
    """What is said of a span; `type` tells a model call from any other step."""
    data: dict[str, Json] = {"type": "llm" if isinstance(span, LLMSpan) else "observe"}
    kind: Any = type(span)
    for name, default in _fields(kind):
        value = getattr(span, name)
        if value != default:
            data[name] = value
    if isinstance(span, LLMSpan):
        for side in MESSAGES:
            if side in data:
                data[side] = [write_message(message) for message in data[side]]
        if span.tool_definitions:
            data["tool_definitions"] = [write_tool(tool) for tool in span.tool_definitions]
    return data


def span_from_json(data: Mapping[str, Any]) -> Span:
    """The span that `span_to_json` wrote."""
    kind: Any = LLMSpan if data.get("type") == "llm" else ObserveSpan
    known = {name: data[name] for name, _ in _fields(kind) if name in data}
    if kind is LLMSpan:
        known |= {side: read_messages(known[side]) for side in MESSAGES if side in known}
        if "tool_definitions" in known:
            known["tool_definitions"] = read_tools(known["tool_definitions"])
        if "finish_reasons" in known:
            known["finish_reasons"] = tuple(known["finish_reasons"])
    span: Span = kind(**known)
    return span


@functools.cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((item.name, None if item.default is MISSING else item.default) for item in fields(kind))
