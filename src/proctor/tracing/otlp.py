"""Reads spans from files: OTLP JSON, whole or a line for each batch, or lines of a plugin; compressed or not."""

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
from proctor.base.source import refuse_endless
from proctor.plugins import TraceFormat, load, plugins
from proctor.tracing.model_messages import write_message, write_tool
from proctor.tracing.semantic_conventions import SPAN_KIND, OtelSpan, as_number, as_string, read_span
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span
from proctor.version import __version__

ERROR_STATUS = 2
OPERATION_NAMES = {"chat": "chat", "embedding": "embeddings"}


def to_resource(spans: Iterable[Span], attributes: Mapping[str, Json]) -> dict[str, Json]:
    """One entry of `resourceSpans`: spans that have where they come from in common."""
    scope = {"name": "proctor", "version": __version__}
    return {
        "resource": {"attributes": _attributes(attributes)},
        "scopeSpans": [{"scope": scope, "spans": [_span_to_otlp(span) for span in spans]}],
    }


def from_resources(document: Any) -> list[tuple[dict[str, Json], list[Span]]]:
    """By entry of `resourceSpans`: what is said of where the spans come from, and the spans."""
    if not isinstance(document, Mapping) or "resourceSpans" not in document:
        raise ValueError("is no OTLP document: it has no resourceSpans")
    found = []
    for index, entry in enumerate(_object_list(document, "resourceSpans", "")):
        resource = entry.get("resource")
        about = _unwrap_attributes(resource.get("attributes")) if isinstance(resource, Mapping) else {}
        spans = [read_span(_parse_span(span, where)) for where, span in _spans(entry, f"resourceSpans[{index}]")]
        found.append((about, spans))
    return found


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
    given = {
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
    return {key: value for key, value in given.items() if value is not None}


def _step_attributes(span: ObserveSpan) -> dict[str, Json]:
    attributes: dict[str, Json] = {} if span.kind is None else {SPAN_KIND: span.kind.upper()}
    for side, value in (("input", span.input), ("output", span.output)):
        if value is not None:
            plain_text = isinstance(value, str)
            attributes[f"{side}.value"] = value if plain_text else json.dumps(value)
            attributes[f"{side}.mime_type"] = "text/plain" if plain_text else "application/json"
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


def _object_list(holder: Mapping[str, Any], key: str, at: str) -> list[Mapping[str, Any]]:
    items = holder.get(key, [])
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
        raise ValueError(f"{where} lacks {'spanId' if span_id is None else 'traceId'}")
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
    """Attributes by name; what is not written as a pair is no attribute."""
    found = [pair for pair in pairs if isinstance(pair, Mapping)] if isinstance(pairs, list) else []
    return {pair["key"]: _unwrap_value(pair.get("value")) for pair in found if isinstance(pair.get("key"), str)}


def _unwrap_value(value: Any) -> Json:
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    [(kind, held)] = value.items()
    if kind == "intValue":
        return int(held) if isinstance(held, (int, str)) and str(held).lstrip("-").isdecimal() else None
    if kind == "arrayValue":
        items = held.get("values", []) if isinstance(held, Mapping) else []
        return [_unwrap_value(item) for item in items] if isinstance(items, list) else []
    if kind == "kvlistValue":
        return _unwrap_attributes(held.get("values") if isinstance(held, Mapping) else None)
    if kind == "bytesValue" and isinstance(held, str):
        try:
            return base64.b64decode(held).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return held
    return held


TRIAL_ATTRIBUTES = {
    "run": "proctor.run.id",
    "suite": "proctor.suite",
    "case": "proctor.case.id",
    "number": "proctor.trial",
}
"""Resource attributes that say which trial spans belong to."""


@dataclass(frozen=True, slots=True)
class FileTrace:
    """Spans of a file that belong together."""

    spans: tuple[Span, ...]
    trial: Mapping[str, Json]
    """`run`, `suite`, `case` and `number` of the trial that they were seen in, where the file says so."""


def trial_resource(spans: Iterable[Span], **trial: Json) -> dict[str, Json]:
    """The spans of one trial as an entry of `resourceSpans`; `about` as in `FoundTrace`."""
    said = {attribute: trial[name] for name, attribute in TRIAL_ATTRIBUTES.items()}
    return to_resource(spans, {"service.name": "proctor", **said})


def trial_from_attributes(attributes: Mapping[str, Any]) -> dict[str, Json]:
    """What the attributes of a resource say of the trial; nothing if it was none of ours."""
    said = {name: attributes.get(attribute) for name, attribute in TRIAL_ATTRIBUTES.items()}
    texts = all(isinstance(said[name], str) for name in ("run", "suite", "case"))
    return said if texts and isinstance(said["number"], int) else {}


GZIP_MAGIC = b"\x1f\x8b"
MAX_UNPACKED_BYTES = 200_000_000
"""Bytes; a compressed file of a few kilobytes can hold more than any memory."""


def read_trace_file(path: Path) -> list[FileTrace]:
    """The spans that `path` holds, those of a trial or of one trace together; raises `InvalidSuite`."""
    problems: list[Problem] = []
    groups: dict[str, tuple[dict[str, Json], list[Span]]] = {}
    records: dict[str, list[tuple[int, Json]]] = {}
    formats: dict[str, TraceFormat] = {}
    documents = _documents(_read_file(path), path, problems)
    if not documents and not problems:
        problems.append(Problem("holds no trace: it is empty", path))
    for line, document in documents:
        if (known := _format_of(document)) is not None:
            formats[known.name] = known
            records.setdefault(known.name, []).append((line, document))
            continue
        try:
            _add_to_groups(groups, document)
        except ValueError as error:
            problems.append(Problem(str(error), path, line))
    if problems:
        raise InvalidSuite(problems)
    found = [FileTrace(tuple(spans), trial) for trial, spans in groups.values()]
    return found + [FileTrace(tuple(load(formats[name].read)(lines)), {}) for name, lines in records.items()]


def _format_of(document: Json) -> TraceFormat | None:
    """The plugin's format that a document is in. OTLP is checked first: most files need no plugin."""
    if isinstance(document, Mapping) and "resourceSpans" in document:
        return None
    return next((known for known in trace_formats() if known.recognises(document)), None)


def trace_formats() -> Iterator[TraceFormat]:
    """The formats beside OTLP that traces are read from."""
    return (known for plugin in plugins() for known in plugin.trace_formats)


def trace_text(spans: Sequence[Span]) -> str:
    """The text of a file with one trace: in the first format of a plugin that writes any, else as OTLP JSON."""
    writer = next((known.write for known in trace_formats() if known.write is not None), None)
    if writer is not None:
        return load(writer)(spans)
    return json.dumps({"resourceSpans": [to_resource(spans, {"service.name": "proctor"})]}) + "\n"


def is_otlp(path: Path) -> bool:
    """Whether a file begins like a document of OTLP JSON, or like a compressed one."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            head = file.read(200)
    except OSError:
        return False
    return head.startswith(GZIP_MAGIC) or b'"resourceSpans"' in head


def _add_to_groups(groups: dict[str, tuple[dict[str, Json], list[Span]]], document: Any) -> None:
    """Batches of a collector spread a trace over documents and resources; a trial may hold several traces."""
    for attributes, spans in from_resources(document):
        about = trial_from_attributes(attributes)
        for span in spans:
            key = canonical(about) if about else span.trace_id
            groups.setdefault(key, (about, []))[1].append(span)


def _read_file(path: Path) -> str:
    """The text of a file, unpacked if it is compressed."""
    try:
        refuse_endless(path)
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
