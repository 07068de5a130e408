"""Reads spans from files: OTLP JSON, whole or a line for each batch, or a pixie trace; compressed or not."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json, canonical, fingerprint, plain
from proctor.base.records import record
from proctor.tracing.genai import number, text, texts, whole
from proctor.tracing.model_messages import read_messages, read_tools
from proctor.tracing.otlp import from_resources, to_resource
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span

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


CALLS = ("llm_span", "llm_span_trace")
RECORDS = ("kwargs", "wrap", *CALLS)
GZIP = b"\x1f\x8b"


def read_traces(path: Path) -> list[Span]:
    """The spans that `path` holds; raises `InvalidSuite` with everything that is wrong with it."""
    return [span for found in find_traces(path) for span in found.spans]


def find_traces(path: Path) -> list[FoundTrace]:
    """The spans that `path` holds, those of a trial or of one trace together; problems as in `read_traces`."""
    problems: list[Problem] = []
    groups: dict[str, tuple[dict[str, Json], list[Span]]] = {}
    records: list[tuple[int, Mapping[str, Any]]] = []
    documents = _documents(_content(path), path, problems)
    if not documents and not problems:
        problems.append(Problem("holds no trace: it is empty", path))
    for line, document in documents:
        if isinstance(document, Mapping) and document.get("type") in RECORDS:
            records.append((line, document))
            continue
        try:
            _sort_in(groups, document)
        except ValueError as error:
            problems.append(Problem(str(error), path, line))
    if problems:
        raise InvalidSuite(problems)
    found = [FoundTrace(tuple(spans), about) for about, spans in groups.values()]
    return found + ([FoundTrace(tuple(_from_records(records)), {})] if records else [])


def _sort_in(groups: dict[str, tuple[dict[str, Json], list[Span]]], document: Any) -> None:
    """Batches of a collector spread a trace over documents and resources; a trial may hold several traces."""
    for attributes, spans in from_resources(document):
        about = trial_of(attributes)
        for span in spans:
            key = canonical(about) if about else span.trace_id
            groups.setdefault(key, (about, []))[1].append(span)


def _content(path: Path) -> str:
    """The text of a file, unpacked if it is compressed."""
    try:
        data = path.read_bytes()
        if data.startswith(GZIP):
            import gzip

            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InvalidSuite([Problem(f"cannot be read: {error}", path)]) from error


def _documents(content: str, path: Path, problems: list[Problem]) -> list[tuple[int, Any]]:
    """One document over many lines, or one in each line."""
    try:
        return [(1, json.loads(content))] if content.strip() else []
    except RecursionError:
        problems.append(Problem("is nested too deeply", path))
        return []
    except ValueError as error:
        whole_error = error
    lines = [(number_, line) for number_, line in enumerate(content.split("\n"), 1) if line.strip()]
    found: list[tuple[int, Any]] = []
    for line_number, line in lines:
        try:
            found.append((line_number, json.loads(line)))
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"is not JSON: {error}", path, line_number))
    if not found:  # nothing here is a line of its own, so that the fault is the document's
        at = getattr(whole_error, "lineno", None)
        problems[:] = [Problem(f"is not JSON: {whole_error}", path, at)]
    return found


def _from_records(records: list[tuple[int, Mapping[str, Any]]]) -> list[Span]:
    """The records of one run: its arguments hold everything else, in the order of the file."""
    trace_id = fingerprint([plain(record) for _, record in records]).zfill(32)
    parent: str | None = None
    times = [_time(record.get("started_at") or record.get("captured_at")) for _, record in records]
    ends = [_time(record.get("ended_at")) for _, record in records]
    now = next((time for time in times if time is not None), 0.0)
    end = max((time for time in (*times, *ends) if time is not None), default=now)
    spans: list[Span] = []
    for line, entry in records:
        now = _time(entry.get("started_at") or entry.get("captured_at")) or now
        place = (f"{line:016x}", trace_id, parent)
        if entry["type"] == "kwargs":
            parent = place[0]
            took = (end - now) * 1000
            spans.append(ObserveSpan(place[0], trace_id, None, now, end, took, "run", input=entry.get("value")))
        elif entry["type"] == "wrap":
            spans.append(_wrapped(place, now, entry))
        else:
            spans.append(_call(place, now, entry))
    return spans


def _wrapped(place: tuple[str, str, str | None], now: float, record: Mapping[str, Any]) -> ObserveSpan:
    purpose, data = text(record.get("purpose")) or "output", record.get("data")
    said: dict[str, Json] = {key: record[key] for key in ("purpose", "description") if record.get(key) is not None}
    given, taken = (data, None) if purpose == "input" else (None, data)
    return ObserveSpan(*place, now, now, 0.0, str(record.get("name") or "wrap"), given, taken, said, kind="wrap")


def _call(place: tuple[str, str, str | None], now: float, record: Mapping[str, Any]) -> LLMSpan:
    duration_ms = number(record.get("duration_ms")) or 0.0
    said: dict[str, Any] = {
        name: text(record.get(name))
        for name in ("provider", "request_model", "response_model", "output_type", "error_type")
    }
    said |= {side: read_messages(record.get(side)) for side in ("input_messages", "output_messages")}
    said |= {side: whole(record.get(side)) for side in ("input_tokens", "output_tokens")}
    return LLMSpan(
        *place,
        now,
        _time(record.get("ended_at")) or now + duration_ms / 1000,
        duration_ms,
        text(record.get("operation")) or "chat",
        finish_reasons=texts(record.get("finish_reasons")),
        tool_definitions=read_tools(record.get("tool_definitions")),
        **said,
    )


def _time(value: Any) -> float | None:
    if not isinstance(value, str):
        return number(value)
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
