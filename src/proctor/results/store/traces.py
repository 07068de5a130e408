"""The traces in a store: those of trials, and those that were imported or recorded separately."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from proctor.base.errors import NotInStore
from proctor.base.json_data import Json, fingerprint
from proctor.cases.encoding import dumps
from proctor.results.store.database import Database
from proctor.results.store.trace_encoding import pack_trace, unpack_trace
from proctor.tracing.spans import Span

COLUMNS = "t.no, t.id, t.trace_id, r.id, t.started_at, t.duration_ms, t.spans, t.errors, t.info"
ROWS = f"SELECT {COLUMNS} FROM traces t LEFT JOIN runs r ON r.no = t.run"  # noqa: S608  made of constants only


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A stored trace without its spans, for lists."""

    no: int
    id: str
    """A fingerprint of the spans: the same trace has the same id in every store."""
    trace_id: str
    """The OpenTelemetry trace id of its first span."""
    run: str | None
    started_at: float
    duration_ms: float
    spans: int
    errors: int
    """Number of spans with an error."""
    info: Mapping[str, Json]
    """`suite`, `case` and `number` of a trial, or the `file` or `runnable` it came from; `cut` says what was cut."""

    @property
    def title(self) -> str:
        """Where it comes from: suite/case, runnable or file."""
        if "case" in self.info:
            number = self.info.get("number", 1)
            return f"{self.info.get('suite')}/{self.info['case']}" + (f" #{number}" if number != 1 else "")
        return str(self.info.get("runnable") or self.info.get("file") or self.info.get("name") or "")


class Traces:
    """The traces of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, spans: Sequence[Span], info: Mapping[str, Json]) -> TraceRow:
        """Store a trace that belongs to no trial."""
        [(trace_key, _)] = self.add_all([(spans, info)])
        return self._starting_with(trace_key)[0]

    def add_all(self, traces: Iterable[tuple[Sequence[Span], Mapping[str, Json]]]) -> list[tuple[str, bool]]:
        """Store traces, all or none, but none twice; returns the id of each and whether it is new."""
        known = {trace_key for (trace_key,) in self._database.read("SELECT id FROM traces")}
        stored: list[tuple[str, bool]] = []
        with self._database.transaction():
            for spans, info in traces:
                packed, columns = _pack(spans)
                stored.append((columns[0], columns[0] not in known))
                if columns[0] not in known:
                    known.add(columns[0])
                    self._insert(None, packed, columns, info)
        return stored

    def insert(
        self, run: int, spans: Sequence[Span], info: Mapping[str, Json], masked: bool = False
    ) -> tuple[int, bool]:
        """Store the trace of a trial, inside the transaction of the trial.

        Returns its number, and whether secrets in it were masked now.
        """
        if isinstance(spans, StoredSpans) and spans.database.path == self._database.path:
            return spans.no, False
        packed, columns = _pack(spans, masked)
        return self._insert(run, packed, columns, info), packed.is_masked

    def _insert(self, run: int | None, packed: Any, columns: tuple[Any, ...], info: Mapping[str, Json]) -> int:
        rest = {"cut": packed.cut} if packed.cut else {}
        return self._database.insert(
            "INSERT INTO traces (id, trace_id, started_at, duration_ms, spans, errors, run, info, content)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*columns, run, dumps({**info, **rest}), packed.data),
        )

    def rows(self, limit: int | None = None, *, errors: bool = False) -> list[TraceRow]:
        """The latest traces first; with `errors`, only those with an error."""
        condition = " WHERE t.errors > 0" if errors else ""
        return list(self._rows(f"{condition} ORDER BY t.no DESC LIMIT ?", (-1 if limit is None else limit,)))

    def find(self, name: str) -> TraceRow:
        """A trace by the beginning of its id or of its OpenTelemetry trace id, or `last`."""
        latest = self.rows(1)
        if name == "last" and latest:
            return latest[0]
        matches = self._starting_with(name) if name else []
        if len({row.id for row in matches}) == 1:
            return matches[-1]
        if matches:
            raise NotInStore(f"{name!r} is ambiguous: it could be any of {', '.join(row.id for row in matches[:5])}")
        known = f"; the latest is {latest[0].id}" if latest else "; it has no traces"
        raise NotInStore(f"no trace {name!r} in {self._database.path.parent}{known}")

    def spans(self, no: int) -> tuple[Span, ...]:
        """The spans of a trace, by start; empty if it was removed."""
        for (content,) in self._database.read("SELECT content FROM traces WHERE no = ?", (no,)):
            with self._database.store_errors("read"):
                return unpack_trace(content)
        return ()

    def _starting_with(self, beginning: str) -> list[TraceRow]:
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
        return True  # there is a trace; finding its length would mean reading it

    def __reduce__(self) -> Any:
        return tuple, (self._read(),)


def _pack(spans: Sequence[Span], masked: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """A trace in its stored form, and the columns of its row."""
    packed = pack_trace(spans, masked=masked)
    stored_spans = packed.spans
    started_at = min(span.started_at for span in stored_spans)
    duration_ms = max(0.0, (max(span.ended_at for span in stored_spans) - started_at) * 1000)
    # Rounded, because times lose digits on their way through files of other tools.
    trace_key = fingerprint(sorted([span.trace_id, span.span_id] for span in stored_spans), round(started_at, 1))[:12]
    errors = sum(span.error is not None for span in stored_spans)
    return packed, (trace_key, stored_spans[0].trace_id, started_at, duration_ms, len(stored_spans), errors)
