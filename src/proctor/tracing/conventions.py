"""What the attributes of a finished span mean: OpenInference and the GenAI conventions of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import NOTHING
from proctor.tracing import genai, openinference
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span

SPAN_KIND = "openinference.span.kind"
CALL_OPERATIONS = {
    "chat": "chat",
    "completion": "chat",
    "text_completion": "chat",
    "generate_content": "chat",
    "llm": "chat",
    "embeddings": "embedding",
    "embedding": "embedding",
}
STEP_OPERATIONS = {"execute_tool": "tool", "invoke_agent": "agent", "create_agent": "agent"}
READ_INTO_FIELDS = (
    SPAN_KIND,
    "input.value",
    "input.mime_type",
    "output.value",
    "output.mime_type",
    "metadata",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
)
"""Attributes that an observed step shows elsewhere than in its metadata."""


@record
class FinishedSpan:
    """A span of OpenTelemetry that has ended, from this process or from a file."""

    name: str
    span_id: str
    trace_id: str
    parent_span_id: str | None
    started_at: float
    ended_at: float
    attributes: Mapping[str, Json] = NOTHING
    events: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    error: str | None = None


def read_span(span: FinishedSpan) -> Span:
    """A model call if the span says it is one, an observed step otherwise."""
    kind = _kind(span.attributes)
    duration_ms = max(0.0, (span.ended_at - span.started_at) * 1000)
    place = (span.span_id, span.trace_id, span.parent_span_id, span.started_at, span.ended_at, duration_ms)
    if kind in ("chat", "embedding"):
        said = genai.call_fields(span.attributes, span.events) | openinference.call_fields(span.attributes)
        error = span.attributes.get("error.type") or _exception(span.events) or span.error
        return LLMSpan(*place, operation=kind, error_type=None if error is None else str(error), **said)
    step = genai.step_fields(span.attributes) | openinference.step_fields(span.attributes)
    name = str(step.pop("name", None) or span.name or "(unnamed)")
    rest = {key: value for key, value in span.attributes.items() if key not in READ_INTO_FIELDS}
    metadata = step.pop("metadata", {}) | rest
    return ObserveSpan(*place, name=name, error=span.error, kind=kind, metadata=metadata, **step)


def _kind(attributes: Mapping[str, Any]) -> str | None:
    """`chat` or `embedding` for a model call; what the library calls it for any other step."""
    named = str(attributes.get(SPAN_KIND) or attributes.get("gen_ai.operation.name") or "").lower()
    if not named and attributes.get("gen_ai.request.model"):
        named = str(attributes.get("llm.request.type") or "chat").lower()
    named = CALL_OPERATIONS.get(named) or STEP_OPERATIONS.get(named) or named
    return None if named in ("", "unknown") else named


def _exception(events: tuple[tuple[str, Mapping[str, Any]], ...]) -> str | None:
    return next((str(said["exception.type"]) for name, said in events if said.get("exception.type")), None)
