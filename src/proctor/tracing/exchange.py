"""Traces on their way between stores and other tools: whose they are is said beside the spans of OTLP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from proctor.plain import Json
from proctor.records import record
from proctor.tracing.otlp import to_resource
from proctor.tracing.spans import Span

ATTRIBUTES = {
    "run": "proctor.run.id",
    "suite": "proctor.suite",
    "case": "proctor.case.id",
    "number": "proctor.trial",
}
"""Resource attributes that say which trial spans belong to."""


@record
class FoundTrace:
    """Spans of a file that belong together."""

    spans: tuple[Span, ...]
    about: Mapping[str, Json]
    """`run`, `suite`, `case` and `number` of the trial that they were seen in, where the file says so."""


def trial_resource(spans: Iterable[Span], **about: Json) -> dict[str, Json]:
    """The spans of one trial as an entry of `resourceSpans`; `about` as in `FoundTrace`."""
    said = {attribute: about[name] for name, attribute in ATTRIBUTES.items()}
    return to_resource(spans, {"service.name": "proctor", **said})


def trial_of(attributes: Mapping[str, Any]) -> dict[str, Json]:
    """What the attributes of a resource say of the trial; nothing if it was none of ours."""
    said = {name: attributes.get(attribute) for name, attribute in ATTRIBUTES.items()}
    texts = all(isinstance(said[name], str) for name in ("run", "suite", "case"))
    return said if texts and isinstance(said["number"], int) else {}
