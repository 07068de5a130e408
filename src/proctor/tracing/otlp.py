"""Reads and writes trace files: OTLP JSON as one document or one batch per line, and the formats of plugins.

`read_trace_file` takes a file, compressed or not, and returns its spans grouped by trial or trace. `to_resource` makes
an entry of `resourceSpans` from spans.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json, canonical
from proctor.base.source import check_readable
from proctor.plugins import TraceFormat, load, plugins
from proctor.tracing.model_messages import write_message, write_tool
from proctor.tracing.semantic_conventions import SPAN_KIND, OtelSpan, as_number, as_string, read_span
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span
from proctor.version import __version__

ERROR_STATUS = 2
OPERATION_NAMES = {"chat": "chat", "embedding": "embeddings"}


def to_resource(spans: Iterable[Span], attributes: Mapping[str, Json]) -> dict[str, Json]:
    """An entry of `resourceSpans`: spans of one source, which `attributes` describe."""
    scope = {"name": "proctor", "version": __version__}
    return {
        "resource": {"attributes": _attributes(attributes)},
        "scopeSpans": [{"scope": scope, "spans": [_span_to_otlp(span) for span in spans]}],
    }


def from_resources(document: Any) -> list[tuple[dict[str, Json], list[Span]]]:
    """The attributes of the source and the spans, for each entry of `resourceSpans`; raises `ValueError`."""
    if not isinstance(document, Mapping) or "resourceSpans" not in document:
        raise ValueError("is not an OTLP document: it has no resourceSpans")
    resources = []
    for index, entry in enumerate(_object_list(document, "resourceSpans", "")):
        resource = entry.get("resource")
        attributes = _unwrap_attributes(resource.get("attributes")) if isinstance(resource, Mapping) else {}
        spans = [read_span(_parse_span(span, where)) for where, span in _spans(entry, f"resourceSpans[{index}]")]
        resources.append((attributes, spans))
    return resources


def _span_to_otlp(span: Span) -> dict[str, Json]:
    attributes = _call_attributes(span) if isinstance(span, LLMSpan) else _step_attributes(span)
    name = f"{attributes['gen_ai.operation.name']} {span.name}" if isinstance(span, LLMSpan) else span.name
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_span_id or "",
        "name": name,
        "kind": 3 if isinstance(span, LLMSpan) else 1,
        "startTimeUnixNano": str(round(span.started_at * 1e9)),
        "endTimeUnixNano": str(round(span.ended_at * 1e9)),
        "attributes": _attributes(attributes),
        "status": {"code": ERROR_STATUS, "message": span.error} if span.error else {},
    }


def _call_attributes(span: LLMSpan) -> dict[str, Json]:
    attributes = {
        "gen_ai.operation.name": OPERATION_NAMES.get(span.operation, span.operation),
        "gen_ai.provider.name": span.provider,
        "gen_ai.request.model": span.request_model,
        "gen_ai.response.model": span.response_model,
        "gen_ai.usage.input_tokens": span.input_tokens,
        "gen_ai.usage.output_tokens": span.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": span.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": span.cache_creation_tokens,
        "gen_ai.request.temperature": span.request_temperature,
        "gen_ai.request.max_tokens": span.request_max_tokens,
        "gen_ai.request.top_p": span.request_top_p,
        "gen_ai.response.finish_reasons": list(span.finish_reasons) or None,
        "gen_ai.response.id": span.response_id,
        "gen_ai.output.type": span.output_type,
        "error.type": span.error_type,
        "gen_ai.input.messages": _json([write_message(message) for message in span.input_messages]),
        "gen_ai.output.messages": _json([write_message(message) for message in span.output_messages]),
        "gen_ai.tool.definitions": _json([write_tool(tool) for tool in span.tool_definitions]),
    }
    return {key: value for key, value in attributes.items() if value is not None}


def _step_attributes(span: ObserveSpan) -> dict[str, Json]:
    attributes: dict[str, Json] = {} if span.kind is None else {SPAN_KIND: span.kind.upper()}
    for side, value in (("input", span.input), ("output", span.output)):
        if value is not None:
            is_text = isinstance(value, str)
            attributes[f"{side}.value"] = value if is_text else json.dumps(value)
            attributes[f"{side}.mime_type"] = "text/plain" if is_text else "application/json"
    if span.metadata:
        attributes["metadata"] = json.dumps(dict(span.metadata))
    return attributes


def _json(items: list[Any]) -> str | None:
    return json.dumps(items) if items else None


def _attributes(values: Mapping[str, Json]) -> list[dict[str, Json]]:
    return [{"key": key, "value": _wrap_value(value)} for key, value in values.items()]


def _wrap_value(value: Json) -> dict[str, Json]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_wrap_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _spans(entry: Mapping[str, Any], at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for j, scope in enumerate(_object_list(entry, "scopeSpans", at)):
        inner = f"{at}.scopeSpans[{j}]"
        for k, span in enumerate(_object_list(scope, "spans", inner)):
            yield f"{inner}.spans[{k}]", span


def _object_list(data: Mapping[str, Any], key: str, at: str) -> list[Mapping[str, Any]]:
    """The list under a key, whose items must be objects; raises `ValueError` with the place `at`."""
    items = data.get(key, [])
    where = f"{at}.{key}".lstrip(".")
    if not isinstance(items, list):
        raise ValueError(f"{where} must be a list, not {type(items).__name__}")
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise ValueError(f"{where}[{index}] must be an object, not {type(item).__name__}")
    return items


def _parse_span(span: Mapping[str, Any], where: str) -> OtelSpan:
    span_id, trace_id = as_string(span.get("spanId")), as_string(span.get("traceId"))
    if span_id is None or trace_id is None:
        raise ValueError(f"{where} has no {'spanId' if span_id is None else 'traceId'}")
    started = as_number(span.get("startTimeUnixNano")) or 0.0
    events = [
        (str(e.get("name", "")), _unwrap_attributes(e.get("attributes"))) for e in _object_list(span, "events", where)
    ]
    status = span.get("status")
    return OtelSpan(
        str(span.get("name") or ""),
        span_id,
        trace_id,
        as_string(span.get("parentSpanId")),
        started / 1e9,
        (as_number(span.get("endTimeUnixNano")) or started) / 1e9,
        _unwrap_attributes(span.get("attributes")),
        tuple(events),
        _error(status) if isinstance(status, Mapping) else None,
    )


def _error(status: Mapping[str, Any]) -> str | None:
    return (
        as_string(status.get("message")) or "error"
        if status.get("code") in (ERROR_STATUS, "STATUS_CODE_ERROR")
        else None
    )


def _unwrap_attributes(pairs: Any) -> dict[str, Json]:
    """The attributes by name; items that are not pairs of key and value are ignored."""
    items = [pair for pair in pairs if isinstance(pair, Mapping)] if isinstance(pairs, list) else []
    return {pair["key"]: _unwrap_value(pair.get("value")) for pair in items if isinstance(pair.get("key"), str)}


def _unwrap_value(value: Any) -> Json:
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    [(kind, content)] = value.items()
    if kind == "intValue":
        return int(content) if isinstance(content, (int, str)) and str(content).lstrip("-").isdecimal() else None
    if kind == "arrayValue":
        items = content.get("values", []) if isinstance(content, Mapping) else []
        return [_unwrap_value(item) for item in items] if isinstance(items, list) else []
    if kind == "kvlistValue":
        return _unwrap_attributes(content.get("values") if isinstance(content, Mapping) else None)
    if kind == "bytesValue" and isinstance(content, str):
        try:
            return base64.b64decode(content).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return content
    return content


TRIAL_ATTRIBUTES = {
    "run": "proctor.run.id",
    "suite": "proctor.suite",
    "case": "proctor.case.id",
    "number": "proctor.trial",
}
"""Resource attributes that identify the trial of spans."""


@dataclass(frozen=True, slots=True)
class FileTrace:
    """The spans of one trial or one trace in a file."""

    spans: tuple[Span, ...]
    trial: Mapping[str, Json]
    """`run`, `suite`, `case` and `number` of the trial; empty if the file does not have them."""


def trial_resource(spans: Iterable[Span], **trial: Json) -> dict[str, Json]:
    """The spans of one trial as an entry of `resourceSpans`; `trial` as in `FileTrace`."""
    attributes = {attribute: trial[name] for name, attribute in TRIAL_ATTRIBUTES.items()}
    return to_resource(spans, {"service.name": "proctor", **attributes})


def trial_from_attributes(attributes: Mapping[str, Any]) -> dict[str, Json]:
    """The trial in the attributes of a resource; empty if the spans are not from a trial."""
    trial = {name: attributes.get(attribute) for name, attribute in TRIAL_ATTRIBUTES.items()}
    is_complete = all(isinstance(trial[name], str) for name in ("run", "suite", "case"))
    return trial if is_complete and isinstance(trial["number"], int) else {}


GZIP_MAGIC = b"\x1f\x8b"
MAX_UNPACKED_BYTES = 200_000_000
"""The limit for the content of a compressed file: a few kilobytes can unpack to more than any memory."""


def read_trace_file(path: Path) -> list[FileTrace]:
    """The spans in a file, grouped by trial or else by trace; raises `InvalidSuite` with every problem."""
    problems: list[Problem] = []
    groups: dict[str, tuple[dict[str, Json], list[Span]]] = {}
    records: dict[str, list[tuple[int, Json]]] = {}
    formats: dict[str, TraceFormat] = {}
    documents = _documents(_read_file(path), path, problems)
    if not documents and not problems:
        problems.append(Problem("has no trace: it is empty", path))
    for line, document in documents:
        if (trace_format := _format_of(document)) is not None:
            formats[trace_format.name] = trace_format
            records.setdefault(trace_format.name, []).append((line, document))
            continue
        try:
            _add_to_groups(groups, document)
        except ValueError as error:
            problems.append(Problem(str(error), path, line))
    if problems:
        raise InvalidSuite(problems)
    traces = [FileTrace(tuple(spans), trial) for trial, spans in groups.values()]
    return traces + [FileTrace(tuple(load(formats[name].read)(lines)), {}) for name, lines in records.items()]


def _format_of(document: Json) -> TraceFormat | None:
    """The plugin's format of a document; `None` for OTLP, which is checked first: most files need no plugin."""
    if isinstance(document, Mapping) and "resourceSpans" in document:
        return None
    return next((item for item in trace_formats() if item.recognises(document)), None)


def trace_formats() -> Iterator[TraceFormat]:
    """The formats of plugins, which are read in addition to OTLP."""
    return (trace_format for plugin in plugins() for trace_format in plugin.trace_formats)


def trace_text(spans: Sequence[Span]) -> str:
    """The text of a file with one trace: in the first format of a plugin that can write, else as OTLP JSON."""
    writer = next((item.write for item in trace_formats() if item.write is not None), None)
    if writer is not None:
        return load(writer)(spans)
    return json.dumps({"resourceSpans": [to_resource(spans, {"service.name": "proctor"})]}) + "\n"


def is_otlp(path: Path) -> bool:
    """Whether a file begins like OTLP JSON, or is compressed."""
    try:
        if not path.is_file():  # opening a pipe would block
            return False
        with path.open("rb") as file:
            head = file.read(200)
    except OSError:
        return False
    return head.startswith(GZIP_MAGIC) or b'"resourceSpans"' in head


def _add_to_groups(groups: dict[str, tuple[dict[str, Json], list[Span]]], document: Any) -> None:
    """Add the spans of a document to their groups: by trial, which may have several traces, or else by trace.

    A collector writes batches, so the spans of a trace may be in several documents and resources.
    """
    for attributes, spans in from_resources(document):
        trial = trial_from_attributes(attributes)
        for span in spans:
            key = canonical(trial) if trial else span.trace_id
            groups.setdefault(key, (trial, []))[1].append(span)


def _read_file(path: Path) -> str:
    """The text of a file, which may be compressed; raises `InvalidSuite`."""
    try:
        check_readable(path)
        data = path.read_bytes()
        if data.startswith(GZIP_MAGIC):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
                data = packed.read(MAX_UNPACKED_BYTES + 1)
            if len(data) > MAX_UNPACKED_BYTES:
                raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES / 1e6:,.0f} MB")
        return data.decode("utf-8-sig")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InvalidSuite([Problem(f"cannot be read: {error}", path)]) from error


def _documents(content: str, path: Path, problems: list[Problem]) -> list[tuple[int, Any]]:
    """The documents in a file, with their lines: the whole file is one, or each line is one. Adds to `problems`."""
    try:
        return [(1, json.loads(content))] if content.strip() else []
    except RecursionError:
        problems.append(Problem("is nested too deeply", path))
        return []
    except ValueError as error:
        whole_error = error
    lines = [(number, line) for number, line in enumerate(content.split("\n"), 1) if line.strip()]
    documents: list[tuple[int, Any]] = []
    for number, line in lines:
        try:
            documents.append((number, json.loads(line)))
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"is not valid JSON: {error}", path, number))
    if not documents:  # no line is a document, so the file is one document with an error
        at = getattr(whole_error, "lineno", None)
        problems[:] = [Problem(f"is not valid JSON: {whole_error}", path, at)]
    return documents
