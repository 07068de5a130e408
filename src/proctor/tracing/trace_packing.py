"""Makes of a trace what is kept: small, without secrets, and never too large to be kept."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence

from proctor.base.json_data import Json, plain
from proctor.base.records import record
from proctor.base.references import describe
from proctor.base.secrets import Masker
from proctor.tracing.otlp import span_from_json, span_to_json
from proctor.tracing.spans import Span

LARGEST = 2_000_000
"""Characters of JSON that are kept of one trace; most need a hundredth of it."""
LENGTHS = (50_000, 5_000, 500)
"""What texts of a trace that is too large are cut to, the first that suffices."""
IDENTITY = ("type", "span_id", "trace_id", "parent_span_id")
TIMES = ("started_at", "ended_at", "duration_ms")
OFFERED = "tool_definitions"

_encode = json.JSONEncoder(separators=(",", ":"), default=plain, allow_nan=False).encode


@record
class Packed:
    """A trace as it is kept."""

    data: bytes
    spans: tuple[Span, ...]
    """Those that are kept, whole."""
    cut: str = ""
    """What is left out, in words."""


def pack(spans: Sequence[Span]) -> Packed:
    """Whatever spans hold, something of them can be kept."""
    ordered = sorted(spans, key=lambda span: span.started_at)
    rows = [span_to_json(span) for span in ordered]
    try:
        text = _encode(rows)
    except (ValueError, TypeError, RecursionError):
        rows = [_encodable(row, span) for row, span in zip(rows, ordered, strict=True)]
        text = _encode(rows)
    masker = Masker()
    if masker.may_be_in([text]):
        rows = [_masked(row, masker) for row in rows]
        text = _encode(rows)
    cut = ""
    if len(text) > LARGEST:
        rows, text, cut = _cut(rows)
    return Packed(zlib.compress(text.encode("ascii"), 1), tuple(ordered[: len(rows)]), cut)


def unpack(data: bytes) -> tuple[Span, ...]:
    """The spans of a kept trace, by start."""
    return tuple(span_from_json(row) for row in json.loads(zlib.decompress(data)))


def _masked(row: Mapping[str, Json], masker: Masker) -> dict[str, Json]:
    """The schema of a tool that takes a password is no password."""
    return {key: value if key == OFFERED else masker.data(value, key) for key, value in row.items()}


def _encodable(row: dict[str, Json], span: Span) -> dict[str, Json]:
    """A span whose values JSON has no words for: in plain words, or without them and with the reason."""
    spoken = {key: plain(value) for key, value in row.items()}
    try:
        _encode(spoken)
    except (ValueError, TypeError, RecursionError) as error:
        return _bare(span_to_json(span), f"could not be kept: {describe(error)}")
    return spoken


def _bare(row: Mapping[str, Json], why: str) -> dict[str, Json]:
    """That there was such a span, and when; what it held is left out."""
    kept = {key: row[key] for key in (*IDENTITY, *TIMES) if key in row}
    return {**kept, "name": _short(str(row.get("name", "(unnamed)")), LENGTHS[-1]), "metadata": {"proctor.note": why}}


def _cut(rows: list[dict[str, Json]]) -> tuple[list[dict[str, Json]], str, str]:
    for longest in LENGTHS:
        shorter = [_shortened(row, longest) for row in rows]
        text = _encode(shorter)
        if len(text) <= LARGEST:
            return shorter, text, f"texts of more than {longest:,} characters are cut"
    shorter = [row if len(_encode(row)) <= LENGTHS[0] else _bare(row, "is too large to be kept") for row in shorter]
    text = _encode(shorter)
    while len(text) > LARGEST:
        shorter = shorter[: int(len(shorter) * LARGEST / len(text) * 0.99)]
        text = _encode(shorter)
    note = (
        f"texts of more than {longest:,} characters are cut, and of {len(rows):,} spans the first {len(shorter):,} kept"
    )
    return shorter, text, note


def _shortened(row: Mapping[str, Json], longest: int) -> dict[str, Json]:
    return {key: value if key in IDENTITY else _short(value, longest) for key, value in row.items()}


def _short(value: Json, longest: int) -> Json:
    """The beginning of a text, list or object, and how much there was."""
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}… (cut: {len(value):,} characters)"
    most = longest // 10
    if isinstance(value, Mapping):
        kept = {key[:longest]: _short(item, longest) for key, item in list(value.items())[:most]}
        return kept if len(value) <= most else {**kept, "…": f"(cut: {len(value):,} keys)"}
    if isinstance(value, (list, tuple)):
        items = [_short(item, longest) for item in value[:most]]
        return items if len(value) <= most else [*items, f"… (cut: {len(value):,} items)"]
    return value
