"""Traces from files into a store, and from a run into a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from proctor.errors import InvalidSuite, Problem, StoreError
from proctor.plain import Json
from proctor.results.store import Store
from proctor.tracing.exchange import trial_resource
from proctor.tracing.files import find_traces
from proctor.tracing.spans import Span


def import_traces(store: Store, paths: Sequence[str]) -> list[tuple[str, bool]]:
    """The id of each trace of all files, and whether it was new; nothing is kept if a file cannot be read."""
    problems: list[Problem] = []
    found: list[tuple[tuple[Span, ...], Mapping[str, Json]]] = []
    for path in paths:
        try:
            traces = find_traces(Path(path))
        except InvalidSuite as error:
            problems.extend(error.problems)
            continue
        found += [(trace.spans, {**trace.about, "file": Path(path).name}) for trace in traces]
    if problems:
        raise InvalidSuite(problems)
    return store.traces.add_all(found)


def export_traces(store: Store, run_id: str, output: str | None) -> tuple[str, int]:
    """The run that was meant, and how many of its trials had a trace; one trial after the other is in memory."""
    run = store.find_run(run_id)
    entries = _entries(store, run.no, run.id)
    if output in (None, "-"):
        return run.id, _write(entries, sys.stdout)
    path = Path(str(output))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="ascii", newline="\n") as file:
            return run.id, _write(entries, file)
    except OSError as error:
        raise StoreError(f"the traces could not be written to {path}: {error.strerror or error}") from None


def _entries(store: Store, no: int, run_id: str) -> Iterator[dict[str, Json]]:
    for trial in store.trials(no):
        if trial.spans:
            yield trial_resource(trial.spans, run=run_id, suite=trial.suite, case=trial.case.id, number=trial.number)


def _write(entries: Iterator[dict[str, Json]], out: TextIO) -> int:
    """One document, an entry a line."""
    count = 0
    out.write('{"resourceSpans": [')
    for entry in entries:
        out.write(("\n" if count == 0 else ",\n") + json.dumps(entry))
        count += 1
    out.write("\n]}\n")
    return count
