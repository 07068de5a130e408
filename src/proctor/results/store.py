"""The store: one SQLite database in WAL mode, in which every finished trial stands before anybody is told of it.

Brings a kept run back: the same object that the engine gave, streaming from the store.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.base.errors import StoreError
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.formats.native.reader import case_from_json
from proctor.cases.suite import Case, Criteria
from proctor.results.database import Database, guarded
from proctor.results.encoding import (
    case_content,
    case_key,
    dumps,
    kept_text,
    question_key,
    reply_from_json,
    score_from_json,
    score_to_json,
    text_kept,
    trial_content,
)
from proctor.results.judge_calls import JudgeSummary, Tally
from proctor.results.run import Outcome, Run, SuiteInfo, TrialResult, TrialSummary
from proctor.results.stored_traces import StoredSpans, TraceRow, Traces

FOLDER = ".proctor"
FILE = "results.db"

RECENT_CASES = 1024
"""Repeats of a case come close together: this many are remembered, so that a case is written once."""

SELECT_TRIAL = (
    "SELECT t.no, t.suite, c.content, t.number, t.position, t.outcome, t.started_at, t.duration_ms, t.agent, t.content,"
    " t.scores FROM trials t JOIN cases c ON c.no = t.case_no"
)


@record
class RunRow:
    """A run as the store lists it."""

    no: int
    id: str
    started_at: float
    finished_at: float | None
    status: str
    """`running`, `finished` or `interrupted`."""
    plan: str
    """The fingerprint of what was to be run."""
    info: dict[str, Json]


class TrialKey(NamedTuple):
    """What a kept trial is known by."""

    no: int
    case_key: str
    agent: str
    outcome: str


class Store:
    """One open database; used from one thread."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.folder = folder
        self.path = folder / FILE
        self._recent: dict[str, int] = {}
        if not create and not self.path.is_file():
            raise StoreError(f"no results in {folder}: run `proctor test` first, or name the folder with --store")
        with guarded(self.path, "opened"):
            if create:
                folder.mkdir(parents=True, exist_ok=True)
                _keep_out_of_git(folder)
            self._database = Database(self.path)
        self._database.on_rollback = self._recent.clear

    @functools.cached_property
    def traces(self) -> Traces:
        return Traces(self._database)

    def close(self) -> None:
        self._database.close()

    def add_run(self, run_id: str, plan: str, info: dict[str, Json]) -> int:
        """Open a new run and return its number."""
        with self._database.writing():
            return self._database.insert(
                "INSERT INTO runs (id, started_at, status, plan, info) VALUES (?, ?, 'running', ?, ?)",
                (run_id, time.time(), plan, dumps(info)),
            )

    def reopen_run(self, no: int) -> None:
        with self._database.writing():
            self._database.execute("UPDATE runs SET status = 'running', finished_at = NULL WHERE no = ?", (no,))

    def finish_run(self, no: int, status: str, info: dict[str, Json]) -> None:
        with self._database.writing():
            self._database.execute(
                "UPDATE runs SET status = ?, finished_at = ?, info = ? WHERE no = ?",
                (status, time.time(), dumps(info), no),
            )

    def add_trials(self, run: int, trials: Sequence[TrialResult]) -> None:
        """Keep finished trials, all or none."""
        with self._database.writing():
            for trial in trials:
                self._add_trial(run, trial)

    def drop_trials(self, run: int, numbers: Sequence[int]) -> None:
        """Forget trials that a resumed run makes anew."""
        with self._database.writing():
            self._database.execute_many("DELETE FROM trials WHERE no = ? AND run = ?", [(no, run) for no in numbers])

    def move_trials(self, moves: Sequence[tuple[int, int]]) -> None:
        """Give trials of a resumed run their place in the present plan: (position, number of the trial)."""
        with self._database.writing():
            self._database.execute_many("UPDATE trials SET position = ? WHERE no = ?", list(moves))

    def grade_trials(self, run: int, graded: Sequence[tuple[int, TrialResult]], info: dict[str, Json]) -> None:
        """Keep new scores of trials, by their numbers, and what the run makes of them, all or none."""
        rows = [
            (trial.outcome.value, dumps([score_to_json(score) for score in trial.scores]), no, run)
            for no, trial in graded
        ]
        with self._database.writing():
            self._database.execute_many("UPDATE trials SET outcome = ?, scores = ? WHERE no = ? AND run = ?", rows)
            self._database.execute("UPDATE runs SET info = ? WHERE no = ?", (dumps(info), run))

    def runs(self, limit: int | None = None) -> list[RunRow]:
        """The latest runs first."""
        rows = self._database.read(
            "SELECT no, id, started_at, finished_at, status, plan, info FROM runs ORDER BY no DESC LIMIT ?",
            (-1 if limit is None else limit,),
        )
        with self._database.guard("read"):
            return [
                RunRow(no, name, began, ended, state, plan, json.loads(info))
                for no, name, began, ended, state, plan, info in rows
            ]

    def find_run(self, wanted: str) -> RunRow:
        """A run by its id, the beginning of its id, or `last`."""
        runs = self.runs()
        if wanted == "last" and runs:
            return runs[0]
        exact = [run for run in runs if run.id == wanted]
        found = exact or [run for run in runs if run.id.startswith(wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            raise StoreError(f"{wanted!r} could be any of {', '.join(run.id for run in found[:5])}")
        known = f"; the latest is {runs[0].id}" if runs else ""
        raise StoreError(f"no run {wanted!r} in {self.folder}{known}")

    def trial_keys(self, run: int) -> dict[tuple[str, str, int], TrialKey]:
        """By (suite, case, number): what a resumed run must know of the trials that are there."""
        rows = self._database.read(
            "SELECT suite, case_id, number, no, case_key, agent, outcome FROM trials WHERE run = ?", (run,)
        )
        return {(text_kept(row[0]), text_kept(row[1]), row[2]): TrialKey(*row[3:]) for row in rows}

    def trials(self, run: int) -> Iterator[TrialResult]:
        """The trials of a run in the order of its plan, read one by one."""
        rows = self._database.read(f"{SELECT_TRIAL} WHERE t.run = ? ORDER BY t.position", (run,))
        for row in rows:
            yield self._trial(row)

    def summaries(self, run: int) -> list[TrialSummary]:
        """The little of every trial that verdicts need."""
        with self._database.guard("read"):
            return list(self._summaries(run))

    def _summaries(self, run: int) -> Iterator[TrialSummary]:
        for suite, case_id, number, position, outcome, scores, duration_ms, tokens, cost_usd in self._database.read(
            "SELECT suite, case_id, number, position, outcome, scores, duration_ms, tokens, cost_usd FROM trials"
            " WHERE run = ? ORDER BY position",
            (run,),
        ):
            yield TrialSummary(
                text_kept(suite),
                text_kept(case_id),
                number,
                position,
                Outcome(outcome),
                tuple((row[0], Outcome(row[1]), row[2], row[3], row[4]) for row in json.loads(scores)),
                duration_ms,
                tokens,
                cost_usd,
            )

    def answers(self) -> dict[tuple[str, str, int], int]:
        """By question, agent and repetition: the latest trial that was answered."""
        asked: dict[int, str] = {}
        found: dict[tuple[str, str, int], int] = {}
        for case_no, content, agent, number, no in self._database.read(
            "SELECT t.case_no, c.content, t.agent, t.number, t.no FROM trials t JOIN cases c ON c.no = t.case_no"
            " WHERE t.content NOT LIKE '{\"replies\":[]%' ORDER BY t.no"
        ):
            if case_no not in asked:
                asked[case_no] = question_key(case_from_json(content))
            found[asked[case_no], text_kept(agent), number] = no
        return found

    def trial(self, no: int) -> TrialResult:
        """One trial by its number."""
        return self._trial(next(iter(self._database.read(f"{SELECT_TRIAL} WHERE t.no = ?", (no,)))))

    def trial_of(self, trace: TraceRow) -> TrialResult | None:
        """The trial that left a trace, if one did and is still there."""
        found = self._database.read(
            f"{SELECT_TRIAL} JOIN runs r ON r.no = t.run WHERE r.id = ? AND json_extract(t.content, '$.trace') = ?",
            (trace.run, trace.no),
        )
        return next((self._trial(row) for row in found), None)

    def _trial(self, row: Any) -> TrialResult:
        with self._database.guard("read"):
            return _trial(row, case_from_json(row[2]), self._database)

    def _add_trial(self, run: int, trial: TrialResult) -> None:
        usage = trial.usage
        case_no, key = self._case(trial.case)
        if trial.case.scenario is not None:
            key = case_key(case_content(trial.case.as_planned))
        content = trial_content(trial)
        if trial.spans:
            about = {"suite": trial.suite, "case": trial.case.id, "number": trial.number}
            content["trace"] = self.traces.insert(run, trial.spans, about)
        self._database.execute(
            "INSERT INTO trials (run, position, suite, case_id, number, case_no, case_key, agent, outcome,"
            " started_at, duration_ms, tokens, cost_usd, content, scores)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                run,
                trial.position,
                kept_text(trial.suite),
                kept_text(trial.case.id),
                trial.number,
                case_no,
                key,
                kept_text(trial.agent),
                trial.outcome.value,
                trial.started_at,
                trial.duration_ms,
                None if usage is None else usage.total_tokens,
                None if usage is None else usage.cost_usd,
                dumps(content),
                dumps([score_to_json(score) for score in trial.scores]),
            ),
        )

    def _case(self, case: Case) -> tuple[int, str]:
        """The row of a case and its key; written when it is new."""
        content = case_content(case)
        key = case_key(content)
        no = self._recent.get(key)
        if no is None:
            no = self._database.insert("INSERT INTO cases (key, content) VALUES (?, ?)", (key, content))
            self._recent[key] = no
            if len(self._recent) > RECENT_CASES:
                del self._recent[next(iter(self._recent))]
        return no, key


def _trial(row: Any, case: Case, database: Database) -> TrialResult:
    content = json.loads(row[9])
    return TrialResult(
        suite=text_kept(row[1]),
        case=case,
        number=row[3],
        position=row[4],
        outcome=Outcome(row[5]),
        reason=content.get("reason", ""),
        replies=tuple(reply_from_json(reply) for reply in content["replies"]),
        scores=tuple(score_from_json(score) for score in json.loads(row[10])),
        started_at=row[6],
        duration_ms=row[7],
        attempts=content.get("attempts", 1),
        agent=text_kept(row[8]),
        warnings=tuple(content.get("warnings", ())),
        reused=content.get("reused", False),
        spans=StoredSpans(database, content["trace"]) if "trace" in content else (),
    )


def _keep_out_of_git(folder: Path) -> None:
    ignore = folder / ".gitignore"
    if folder.name == FOLDER and not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


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
