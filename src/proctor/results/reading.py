"""Brings a kept run back: the same object that the engine gave, streaming from the store."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.cases.model import Criteria
from proctor.results.judgements import JudgeSummary, Tally
from proctor.results.model import Run, SuiteInfo, TrialResult
from proctor.results.store import RunRow, Store


class StoredTrials:
    """The trials of one run, read anew each time they are iterated."""

    def __init__(self, store: Store, no: int) -> None:
        self._store = store
        self._no = no

    def __iter__(self) -> Iterator[TrialResult]:
        return self._store.trials(self._no)


def read_run(store: Store, wanted: str) -> Run:
    """The run called `wanted`: an id, the beginning of one, or `last`."""
    row = store.find_run(wanted)
    run = run_info(row)
    run.summaries = store.summaries(row.no)
    run.trials = StoredTrials(store, row.no)
    run.store = str(store.folder)
    if "judges" not in row.info:  # a run that was cut off had no time to add them up
        run.judges = tuple(Tally(run.trials))
    return run


def run_info(row: RunRow) -> Run:
    """What the row of a run says, without its trials."""
    suites = tuple(
        SuiteInfo(**{**data, "criteria": Criteria(**data["criteria"])}) for data in row.info.get("suites", [])
    )
    return Run(
        id=row.id,
        started_at=row.started_at,
        suites=suites,
        summaries=[],
        trials=(),
        finished_at=row.finished_at,
        interrupted=row.status == "interrupted",
        note=row.info.get("note", "") or ("the run was cut off" if row.status == "running" else ""),
        environment=row.info.get("environment", {}),
        options=row.info.get("options", {}),
        judges=tuple(JudgeSummary(**judge) for judge in row.info.get("judges", ())),
        uncounted=row.info.get("uncounted", ""),
    )
