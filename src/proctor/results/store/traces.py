"""The traces of a store: those of trials, and those that were imported or made by themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from proctor.base.errors import StoreError
from proctor.base.json_data import Json, fingerprint
from proctor.cases.encoding import dumps
from proctor.results.store.database import Database
from proctor.results.store.trace_encoding import pack_trace, unpack_trace
from proctor.tracing.spans import Span

COLUMNS = "t.no, t.id, t.trace_id, r.id, t.started_at, t.duration_ms, t.spans, t.errors, t.info"
ROWS = f"SELECT {COLUMNS} FROM traces t LEFT JOIN runs r ON r.no = t.run"  # noqa: S608  made of constants only


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A kept trace as it is listed."""

    no: int
    id: str
    """A content address: the same spans have the same, wherever they were kept before."""
    trace_id: str
    """That of its first span, by which other tools know it."""
    run: str | None
    started_at: float
    duration_ms: float
    spans: int
    errors: int
    """How many spans ended in an error."""
    info: Mapping[str, Json]
    """`suite`, `case` and `number` of a trial; else the `file` or `runnable` it came from; `cut`: what is left out."""

    @property
    def title(self) -> str:
        """Where it comes from, in few words."""
        if "case" in self.info:
            number = self.info.get("number", 1)
            return f"{self.info.get('suite')}/{self.info['case']}" + (f" #{number}" if number != 1 else "")
        return str(self.info.get("runnable") or self.info.get("file") or self.info.get("name") or "")


class Traces:
    """What a store knows of traces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, spans: Sequence[Span], info: Mapping[str, Json]) -> TraceRow:
        """Keep a trace that belongs to no trial of this store."""
        [(trace_key, _)] = self.add_all([(spans, info)])
        return self._found(trace_key)[0]

    def add_all(self, found: Iterable[tuple[Sequence[Span], Mapping[str, Json]]]) -> list[tuple[str, bool]]:
        """Keep traces, all or none: the id of each, and whether it is new. None is kept twice."""
        known = {trace_key for (trace_key,) in self._database.read("SELECT id FROM traces")}
        kept: list[tuple[str, bool]] = []
        with self._database.transaction():
            for spans, info in found:
                packed, columns = _packed(spans)
                kept.append((columns[0], columns[0] not in known))
                if columns[0] not in known:
                    known.add(columns[0])
                    self._insert(None, packed, columns, info)
        return kept

    def insert(self, run: int, spans: Sequence[Span], info: Mapping[str, Json], masked: bool = False) -> int:
        """Keep the trace of a trial, inside the transaction in which the trial is kept; its number."""
        if isinstance(spans, StoredSpans) and spans.database.path == self._database.path:
            return spans.no
        return self._insert(run, *_packed(spans, masked), info)

    def _insert(self, run: int | None, packed: Any, columns: tuple[Any, ...], info: Mapping[str, Json]) -> int:
        rest = {"cut": packed.cut} if packed.cut else {}
        return self._database.insert(
            "INSERT INTO traces (id, trace_id, started_at, duration_ms, spans, errors, run, info, content)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*columns, run, dumps({**info, **rest}), packed.data),
        )

    def rows(self, limit: int | None = None, *, errors: bool = False) -> list[TraceRow]:
        """The latest first; only those with an error, if asked for."""
        wanted = " WHERE t.errors > 0" if errors else ""
        return list(self._rows(f"{wanted} ORDER BY t.no DESC LIMIT ?", (-1 if limit is None else limit,)))

    def find(self, wanted: str) -> TraceRow:
        """A trace by the beginning of its id or of its OpenTelemetry trace id, or `last`."""
        latest = self.rows(1)
        if wanted == "last" and latest:
            return latest[0]
        found = self._found(wanted) if wanted else []
        if len({row.id for row in found}) == 1:
            return found[-1]
        if found:
            raise StoreError(f"{wanted!r} could be any of {', '.join(row.id for row in found[:5])}")
        known = f"; the latest is {latest[0].id}" if latest else "; none is kept there"
        raise StoreError(f"no trace {wanted!r} in {self._database.path.parent}{known}")

    def spans(self, no: int) -> tuple[Span, ...]:
        """The spans of a kept trace, by start; none if it was removed."""
        for (content,) in self._database.read("SELECT content FROM traces WHERE no = ?", (no,)):
            with self._database.store_errors("read"):
                return unpack_trace(content)
        return ()

    def _found(self, beginning: str) -> list[TraceRow]:
        length = len(beginning)
        return list(
            self._rows(
                " WHERE substr(t.id, 1, ?) = ? OR substr(t.trace_id, 1, ?) = ? ORDER BY t.no",
                (length, beginning, length, beginning),
            )
        )

    def _rows(self, rest: str, values: tuple[Any, ...]) -> Iterator[TraceRow]:
        for no, key, trace_id, run, started_at, duration_ms, spans, errors, info in self._database.read(
            f"{ROWS}{rest}", values
        ):
            with self._database.store_errors("read"):
                about = json.loads(info)
            yield TraceRow(no, key, trace_id, run, started_at, duration_ms, spans, errors, about)


class StoredSpans(Sequence["Span"]):
    """The spans of one trial, read from the store when they are first used."""

    __slots__ = ("_spans", "database", "no")

    def __init__(self, database: Database, no: int) -> None:
        self.database = database
        self.no = no
        self._spans: tuple[Span, ...] | None = None

    def _read(self) -> tuple[Span, ...]:
        if self._spans is None:
            self._spans = Traces(self.database).spans(self.no)
        return self._spans

    @overload
    def __getitem__(self, index: int) -> Span: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Span, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._read()[index]

    def __len__(self) -> int:
        return len(self._read())

    def __bool__(self) -> bool:
        return True  # there is a trace; its length would have to be read

    def __reduce__(self) -> Any:
        return tuple, (self._read(),)


def _packed(spans: Sequence[Span], masked: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """A trace as it is kept, and what a list of traces says of it."""
    packed = pack_trace(spans, masked=masked)
    kept = packed.spans
    started_at = min(span.started_at for span in kept)
    duration_ms = max(0.0, (max(span.ended_at for span in kept) - started_at) * 1000)
    # rounded, since the way through another tool's file may cost the last digits
    trace_key = fingerprint(sorted([span.trace_id, span.span_id] for span in kept), round(started_at, 1))[:12]
    errors = sum(span.error is not None for span in kept)
    return packed, (trace_key, kept[0].trace_id, started_at, duration_ms, len(kept), errors)
