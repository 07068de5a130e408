"""Whole OTLP documents made of spans, and the spans of one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from proctor.tracing.otlp import from_resources, read_trace_file, to_resource
from proctor.tracing.spans import Span


def to_otlp(spans: Iterable[Span], service: str = "proctor") -> dict[str, Any]:
    """One OTLP document: model calls in the GenAI conventions, other steps in those of OpenInference."""
    return {"resourceSpans": [to_resource(spans, {"service.name": service})]}


def from_otlp(document: Any) -> list[Span]:
    """The spans of an OTLP document; `ValueError` says where it is none."""
    return [span for _, spans in from_resources(document) for span in spans]


def read_traces(path: Path) -> list[Span]:
    """The spans of all traces in a file."""
    return [span for found in read_trace_file(path) for span in found.spans]
