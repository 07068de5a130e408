"""The stored form of traces: JSON by field name, without secrets, cut if it is too large, compressed."""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any

from proctor.base.errors import one_line
from proctor.base.json_data import Json, to_json
from proctor.base.masking import Masker
from proctor.tracing.model_messages import read_messages, read_tools, write_message, write_tool
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span

MAX_TRACE = 2_000_000
"""Characters of JSON that are stored of one trace; most need a hundredth of it."""
TEXT_LIMITS = (50_000, 5_000, 500)
"""Texts of a trace that is too large are cut to the first of these lengths that makes it small enough."""
ID_FIELDS = ("type", "span_id", "trace_id", "parent_span_id")
TIME_FIELDS = ("started_at", "ended_at", "duration_ms")
MESSAGE_FIELDS = ("input_messages", "output_messages")
TOOL_DEFINITIONS = "tool_definitions"

_encode = json.JSONEncoder(separators=(",", ":"), default=to_json, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class PackedTrace:
    """A trace in its stored form."""

    data: bytes
    spans: tuple[Span, ...]
    """The spans that are stored."""
    cut: str = ""
    """What was cut, in words."""
    is_masked: bool = False
    """Whether secrets in it were masked."""


def pack_trace(spans: Sequence[Span], *, masked: bool = False) -> PackedTrace:
    """Encode spans, whatever values they have; secrets are masked unless they are `masked` already."""
    ordered = sorted(spans, key=lambda span: span.started_at)
    rows = [span_to_json(span) for span in ordered]
    try:
        text = _encode(rows)
    except (ValueError, TypeError, RecursionError):
        rows = [_encodable(row, span) for row, span in zip(rows, ordered, strict=True)]
        text = _encode(rows)
    cut = ""
    if len(text) > MAX_TRACE:  # before masking: what is cut need not be masked
        rows, text, cut = _cut_to_size(rows)
    before = text
    if not masked:
        masker = Masker()
        rows = [_mask_row(row, masker) for row in rows]
        text = _encode(rows)
    data = zlib.compress(text.encode("ascii"), 1)
    return PackedTrace(data, tuple(ordered[: len(rows)]), cut, is_masked=text != before)


def unpack_trace(data: bytes) -> tuple[Span, ...]:
    """The spans of a stored trace, by start."""
    return tuple(span_from_json(row) for row in json.loads(zlib.decompress(data)))


def _mask_row(row: Mapping[str, Json], masker: Masker) -> dict[str, Json]:
    """The row without secrets. Tool definitions stay: the schema of a tool that takes a password is not a secret."""
    return {key: value if key == TOOL_DEFINITIONS else masker.data(value, key) for key, value in row.items()}


def _encodable(row: dict[str, Json], span: Span) -> dict[str, Json]:
    """A span with values that JSON cannot express: converted to plain data, or without them and with a note."""
    converted = {key: to_json(value) for key, value in row.items()}
    try:
        _encode(converted)
    except (ValueError, TypeError, RecursionError) as error:
        return _bare(span_to_json(span), f"could not be stored: {one_line(error)}")
    return converted


def _bare(row: Mapping[str, Json], why: str) -> dict[str, Json]:
    """The span without its data: only its ids, times and name, and a note."""
    shortened = {key: row[key] for key in (*ID_FIELDS, *TIME_FIELDS) if key in row}
    return {
        **shortened,
        "name": _shorten(str(row.get("name", "(unnamed)")), TEXT_LIMITS[-1]),
        "metadata": {"proctor.note": why},
    }


def _cut_to_size(rows: list[dict[str, Json]]) -> tuple[list[dict[str, Json]], str, str]:
    for longest in TEXT_LIMITS:
        shorter = [_shorten_row(row, longest) for row in rows]
        text = _encode(shorter)
        if len(text) <= MAX_TRACE:
            return shorter, text, f"texts of more than {longest:,} characters are cut"
    shorter = [
        row if len(_encode(row)) <= TEXT_LIMITS[0] else _bare(row, "is too large to be stored") for row in shorter
    ]
    text = _encode(shorter)
    while len(text) > MAX_TRACE:
        shorter = shorter[: int(len(shorter) * MAX_TRACE / len(text) * 0.99)]
        text = _encode(shorter)
    note = f"texts of more than {longest:,} characters are cut; {len(shorter):,} of {len(rows):,} spans are stored"
    return shorter, text, note


def _shorten_row(row: Mapping[str, Json], longest: int) -> dict[str, Json]:
    return {key: value if key in ID_FIELDS else _shorten(value, longest) for key, value in row.items()}


def _shorten(value: Json, longest: int) -> Json:
    """The beginning of a text, list or object, and how much there was."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}… (cut: {len(value):,} characters)"
    most = longest // 10
    if isinstance(value, Mapping):
        shortened = {key[:longest]: _shorten(item, longest) for key, item in list(value.items())[:most]}
        return shortened if len(value) <= most else {**shortened, "…": f"(cut: {len(value):,} keys)"}
    if isinstance(value, (list, tuple)):
        items = [_shorten(item, longest) for item in value[:most]]
        return items if len(value) <= most else [*items, f"… (cut: {len(value):,} items)"]
    return value


def span_to_json(span: Span) -> dict[str, Json]:
    """The fields of a span that differ from their defaults; `type` separates model calls from other steps."""
    data: dict[str, Json] = {"type": "llm" if isinstance(span, LLMSpan) else "observe"}
    kind: Any = type(span)
    for name, default in _fields(kind):
        value = getattr(span, name)
        if value != default:
            data[name] = value
    if isinstance(span, LLMSpan):
        for side in MESSAGE_FIELDS:
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
        known |= {side: read_messages(known[side]) for side in MESSAGE_FIELDS if side in known}
        if "tool_definitions" in known:
            known["tool_definitions"] = read_tools(known["tool_definitions"])
        if "finish_reasons" in known:
            known["finish_reasons"] = tuple(known["finish_reasons"])
    span: Span = kind(**known)
    return span


@functools.cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((item.name, None if item.default is MISSING else item.default) for item in fields(kind))
