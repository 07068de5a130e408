"""Turns one span of a trace into an `Evaluable`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.agents.reply import ToolCall
from proctor.base.json_data import Json, to_json
from proctor.cases.suite import NamedData
from proctor.evaluators.evaluable import Evaluable
from proctor.tracing.instrumentation import missing_instrumentation
from proctor.tracing.spans import (
    AssistantMessage,
    LLMSpan,
    Message,
    ObservationNode,
    ObserveSpan,
    Span,
    TextContent,
    UserMessage,
    usage_of,
)

INPUT, OUTPUT = "input", "output"

_METADATA_FIELDS = (
    "provider request_model response_model operation input_tokens output_tokens cache_read_tokens"
    " cache_creation_tokens finish_reasons response_id output_type error_type tool_definitions"
).split()
"""The fields of a model call that become metadata."""


def as_evaluable(span: Span) -> Evaluable:
    """The input and output of a span as plain data. A span has no expected output."""
    if isinstance(span, ObserveSpan):
        return _evaluable(span, span.input, span.output, {**span.metadata, **_error(span)})
    metadata: dict[str, Json] = {name: to_json(getattr(span, name)) for name in _METADATA_FIELDS}
    return _evaluable(span, [_message(message) for message in span.input_messages], _answer(span), metadata)


def root(trace: Sequence[ObservationNode]) -> Evaluable:
    """The first span without a parent, usually the whole application."""
    if not trace:
        raise ValueError("Trace is empty")
    return as_evaluable(trace[0].span)


def last_llm_call(trace: Sequence[ObservationNode]) -> Evaluable:
    """The model call that ended last, anywhere in the trace."""
    calls = [span for span in _spans(trace) if isinstance(span, LLMSpan)]
    if not calls:
        missing = missing_instrumentation()
        raise ValueError(f"No LLMSpan found in the trace{'; ' if missing else ''}{missing}")
    return as_evaluable(max(reversed(calls), key=lambda span: span.ended_at))


def by_name(trace: Sequence[ObservationNode], name: str) -> Evaluable:
    """The span of that name that started last."""
    named = [span for span in _spans(trace) if span.name == name]
    if not named:
        names = ", ".join(dict.fromkeys(repr(span.name) for span in _spans(trace))) or "nothing"
        raise ValueError(f"No span named {name!r} found in the trace; it has {names}")
    return as_evaluable(max(reversed(named), key=lambda span: span.started_at))


def _spans(trace: Sequence[ObservationNode]) -> Iterator[Span]:
    return (node.span for top in trace for _, node in top.walk())


def _evaluable(span: Span, value: Json, answer: Json, metadata: dict[str, Json]) -> Evaluable:
    return Evaluable(
        eval_input=(NamedData(INPUT, to_json(value)),),
        eval_output=(NamedData(OUTPUT, to_json(answer)),),
        eval_metadata={**to_json(metadata), "trace_id": span.trace_id, "span_id": span.span_id},
        tool_calls=_calls(span),
        usage=usage_of([span]),
        duration_ms=span.duration_ms,
    )


def _error(span: ObserveSpan) -> dict[str, Json]:
    return {} if span.error is None else {"error": span.error}


def _answer(span: LLMSpan) -> str | None:
    """The text of the model's last message; `None` if it has no text."""
    for message in span.output_messages[-1:]:
        if isinstance(message, (AssistantMessage, UserMessage)):
            return message.text if any(isinstance(part, TextContent) for part in message.content) else None
        return message.text
    return None


def _calls(span: Span) -> tuple[ToolCall, ...]:
    """The tool calls that this model call requested."""
    if not isinstance(span, LLMSpan):
        return ()
    messages = [message for message in span.output_messages if isinstance(message, AssistantMessage)]
    return tuple(call for message in messages for call in message.tool_calls)


def _message(message: Message) -> dict[str, Json]:
    """A message in the form of a chat API, without empty fields."""
    fields: dict[str, Json] = {"role": message.role, **to_json(message)}
    if isinstance(message, (AssistantMessage, UserMessage)):
        only_text = all(isinstance(part, TextContent) for part in message.content)
        parts = [{"type": part.type, **to_json(part)} for part in message.content]
        fields["content"] = message.text if only_text else parts
    if isinstance(message, AssistantMessage):
        calls = [{"name": c.name, "arguments": to_json(c.arguments), "id": c.id} for c in message.tool_calls]
        fields["tool_calls"] = calls or None
    return {key: value for key, value in fields.items() if value is not None}
