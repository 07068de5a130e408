"""The store: one SQLite database in WAL mode. A finished trial is in it before the listener of the run is told."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from proctor.base.errors import StoreError
from proctor.cases.encoding import decode_case, dumps, encode_case
from proctor.cases.identity import case_key, case_key_as_planned, question_key
from proctor.cases.suite import Case
from proctor.results.gate_result import gate_from_json
from proctor.results.judge_calls import JudgeSummary, Tally
from proctor.results.run import Run, Score, ScoreRow, TrialResult, Trials, TrialSummary
from proctor.results.run_info import RunInfo, RunRow, find_run, run_info_from_json, run_info_to_json
from proctor.results.store.database import Database, guarded
from proctor.results.store.encoding import (
    SCORE_COLUMNS,
    SCORE_ROW_COLUMNS,
    SUMMARY_COLUMNS,
    TRIAL_COLUMNS,
    score_from_row,
    score_row_from_row,
    score_to_row,
    summary_from_row,
    trial_from_json,
    trial_to_json,
    trial_to_row,
)
from proctor.results.store.text_columns import decode_text, encode_text
from proctor.results.store.traces import StoredSpans, TraceRow, Traces
from proctor.tracing.spans import Span

K = TypeVar("K")
V = TypeVar("V")

FOLDER = ".proctor"
FILE = "results.db"

NO_INFO = RunInfo()

# ruff: noqa: S608  the queries below are made of the names of columns
SELECT_TRIAL = (
    f"SELECT t.no, c.content, t.content, {TRIAL_COLUMNS.select('t')} FROM trials t JOIN cases c ON c.no = t.case_no"
)
SELECT_SCORES = f"SELECT {SCORE_COLUMNS.select('s')} FROM scores s WHERE s.trial = ? ORDER BY s.place"
SELECT_SUMMARIES = f"SELECT t.no, {SUMMARY_COLUMNS.select('t')} FROM trials t WHERE t.run = ? ORDER BY t.position"
SELECT_SCORE_ROWS = (
    f"SELECT s.trial, {SCORE_ROW_COLUMNS.select('s')} FROM trials t JOIN scores s ON s.trial = t.no"
    " WHERE t.run = ? ORDER BY s.trial, s.place"
)


@dataclass(frozen=True, slots=True)
class TrialKey:
    """What a kept trial is known by."""

    no: int
    case_key: str
    agent: str
    outcome: str
    position: int


class Store:
    """One open database; used from one thread."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.folder = folder
        self.path = folder / FILE
        self._decoded: tuple[str, Case] | None = None
        if not create and not self.path.is_file():
            raise StoreError(f"no results in {folder}: run `proctor test` first, or name the folder with --store")
        with guarded(self.path, "opened"):
            if create:
                folder.mkdir(parents=True, exist_ok=True)
            self._database = Database(self.path)
            if create:
                _keep_out_of_git(folder)

    @property
    def database_path(self) -> Path:
        """The file that is read: of a store that cannot be written it may be a copy."""
        return self._database.opened_path

    @functools.cached_property
    def traces(self) -> Traces:
        return Traces(self._database)

    def close(self) -> None:
        self._database.close()

    def check_present(self) -> None:
        """Raises `StoreError` if what was written is gone."""
        self._database.check_present()

    def add_run(self, run_id: str, plan: str, info: RunInfo = NO_INFO, *, name: str = "") -> int:
        """Open a new run and return its number."""
        with self._database.writing():
            return self._database.insert(
                "INSERT INTO runs (id, started_at, status, plan, info, name) VALUES (?, ?, 'running', ?, ?, ?)",
                (run_id, time.time(), plan, dumps(run_info_to_json(info)), encode_text(name)),
            )

    def add_whole_run(self, row: RunRow, trials: Iterable[TrialResult]) -> int:
        """Keep a run that was made elsewhere, with all of its trials or not at all; its number here."""
        with self._database.writing():
            info = dumps(run_info_to_json(row.info))
            no = self._database.insert(
                "INSERT INTO runs (id, started_at, finished_at, status, plan, info, name) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (row.id, row.started_at, row.finished_at, row.status, row.plan, info, encode_text(row.name)),
            )
            for trial in trials:
                self._add_trial(no, trial)
        return no

    def reopen_run(self, no: int) -> None:
        with self._database.writing():
            self._database.execute("UPDATE runs SET status = 'running', finished_at = NULL WHERE no = ?", (no,))

    def finish_run(self, no: int, status: str, info: RunInfo) -> None:
        with self._database.writing():
            self._database.execute(
                "UPDATE runs SET status = ?, finished_at = ?, info = ? WHERE no = ?",
                (status, time.time(), dumps(run_info_to_json(info)), no),
            )

    def add_trials(self, run: int, trials: Sequence[TrialResult], *, masked: bool = False) -> None:
        """Keep finished trials, all or none; secrets are not looked for again in traces of `masked` ones."""
        with self._database.writing():
            for trial in trials:
                self._add_trial(run, trial, masked)

    def drop_trials(self, run: int, numbers: Sequence[int]) -> None:
        """Forget trials that a resumed run makes anew."""
        with self._database.writing():
            self._database.execute_many("DELETE FROM trials WHERE no = ? AND run = ?", [(no, run) for no in numbers])
            self._database.execute_many("DELETE FROM scores WHERE trial = ?", [(no,) for no in numbers])

    def move_trials(self, moves: Sequence[tuple[int, int]]) -> None:
        """Give trials of a resumed run their place in the present plan: (position, number of the trial)."""
        with self._database.writing():
            self._database.execute_many("UPDATE trials SET position = ? WHERE no = ?", list(moves))

    def update_scores(self, run: int, graded: Sequence[tuple[int, TrialResult]], info: RunInfo) -> None:
        """Replace the scores of trials, by their numbers, and what the run makes of them, all or none."""
        with self._database.writing():
            for no, trial in graded:
                outcome = (trial.outcome.value, no, run)
                self._database.execute("UPDATE trials SET outcome = ? WHERE no = ? AND run = ?", outcome)
                self._database.execute("DELETE FROM scores WHERE trial = ?", (no,))
                self._add_scores(no, trial.scores)
            self._database.execute("UPDATE runs SET info = ? WHERE no = ?", (dumps(run_info_to_json(info)), run))

    def runs(self, limit: int | None = None) -> list[RunRow]:
        """The latest runs first."""
        rows = self._database.read(
            "SELECT no, id, started_at, finished_at, status, plan, info, name FROM runs ORDER BY no DESC LIMIT ?",
            (-1 if limit is None else limit,),
        )
        with self._database.guard("read"):
            return [
                RunRow(no, run_id, began, ended, status, plan, run_info_from_json(json.loads(info)), decode_text(name))
                for no, run_id, began, ended, status, plan, info, name in rows
            ]

    def find_run(self, wanted: str) -> RunRow:
        """A run by its id, the beginning of its id, its name, `last` or `last~1`."""
        return find_run(self.runs, wanted, str(self.folder))

    def trial_keys(self, run: int) -> dict[tuple[str, str, int], TrialKey]:
        """By (suite, case, number): what the trials are known by."""
        return dict(self.iterate_keys(run))

    def iterate_keys(self, run: int) -> Iterator[tuple[tuple[str, str, int], TrialKey]]:
        """The same in the order of the plan, one by one."""
        for suite, case_id, number, no, key, agent, outcome, position in self._database.read(
            "SELECT suite, case_id, number, no, case_key, agent, outcome, position FROM trials WHERE run = ?"
            " ORDER BY position",
            (run,),
        ):
            address = decode_text(suite), decode_text(case_id), number
            yield address, TrialKey(no, key, decode_text(agent), outcome, position)

    def trials(self, run: int, wanted: Collection[tuple[str, str]] | None = None) -> Iterator[TrialResult]:
        """The trials of a run in the order of its plan, read one by one; of the `wanted` (suite, case id) or of all."""
        if wanted is not None:
            yield from self._trials_of(run, wanted)
            return
        rows = self._database.read(f"{SELECT_TRIAL} WHERE t.run = ? ORDER BY t.position", (run,))
        for row in rows:
            yield self._trial(row)

    def _trials_of(self, run: int, wanted: Collection[tuple[str, str]]) -> Iterator[TrialResult]:
        keys = {(encode_text(suite), encode_text(case_id)) for suite, case_id in wanted}
        listed = self._database.read("SELECT no, suite, case_id FROM trials WHERE run = ? ORDER BY position", (run,))
        for no in [no for no, suite, case_id in listed if (suite, case_id) in keys]:
            yield self.trial(no)

    def summaries(self, run: int) -> Sequence[TrialSummary]:
        """The part of every trial that verdicts need, in the order of the plan."""
        with self._database.guard("read"):
            scores: dict[int, list[ScoreRow]] = {}
            for trial, *row in self._database.read(SELECT_SCORE_ROWS, (run,)):
                scores.setdefault(trial, []).append(score_row_from_row(row))
            return [
                summary_from_row(row, scores.get(no, ())) for no, *row in self._database.read(SELECT_SUMMARIES, (run,))
            ]

    def answers(self) -> dict[tuple[str, str, int], int]:
        """By question, agent and repetition: the latest trial that was answered."""
        asked: dict[int, str] = {}
        found: dict[tuple[str, str, int], int] = {}
        for case_no, content, agent, number, no in self._database.read(
            "SELECT t.case_no, c.content, t.agent, t.number, t.no FROM trials t JOIN cases c ON c.no = t.case_no"
            " WHERE json_valid(t.content) AND json_array_length(t.content, '$.replies') > 0 ORDER BY t.no"
        ):
            if case_no not in asked:
                asked[case_no] = question_key(self._decode(content))
            found[asked[case_no], decode_text(agent), number] = no
        return found

    def trial(self, no: int) -> TrialResult:
        """One trial by its number."""
        return self._trial(next(iter(self._database.read(f"{SELECT_TRIAL} WHERE t.no = ?", (no,)))))

    def passing_trials(self, suite: str, case_id: str, most: int) -> list[TrialResult]:
        """The latest trials of a case that passed, the latest first."""
        rows = self._database.read(
            f"{SELECT_TRIAL} WHERE t.suite = ? AND t.case_id = ? AND t.outcome = 'passed' ORDER BY t.no DESC LIMIT ?",
            (encode_text(suite), encode_text(case_id), most),
        )
        return [self._trial(row) for row in rows]

    def trial_of(self, trace: TraceRow) -> TrialResult | None:
        """The trial that left a trace, if one did and is still there."""
        found = self._database.read(
            f"{SELECT_TRIAL} JOIN runs r ON r.no = t.run WHERE r.id = ? AND json_extract(t.content, '$.trace') = ?",
            (trace.run, trace.no),
        )
        return next((self._trial(row) for row in found), None)

    def _trial(self, row: Sequence[Any]) -> TrialResult:
        no, case, content, *columns = row
        with self._database.guard("read"):
            data = json.loads(content)
            spans: Sequence[Span] = StoredSpans(self._database, data["trace"]) if "trace" in data else ()
            scores = map(score_from_row, self._database.read(SELECT_SCORES, (no,)))
            return trial_from_json(data, scores, **TRIAL_COLUMNS.decode(columns), case=self._decode(case), spans=spans)

    def _decode(self, content: str) -> Case:
        """The case of a row; repeats come one after another and share it."""
        if self._decoded is None or self._decoded[0] != content:
            self._decoded = content, decode_case(content)
        return self._decoded[1]

    def _add_trial(self, run: int, trial: TrialResult, masked: bool = False) -> None:
        content = trial_to_json(trial)
        if trial.spans:
            about = {"suite": trial.suite, "case": trial.case.id, "number": trial.number}
            content["trace"] = self.traces.insert(run, trial.spans, about, masked)
        case_no, case_key = self._case(trial.case)
        about_case = {"case_no": case_no, "case_key": case_key}
        no = self._insert("trials", {"run": run, **trial_to_row(trial), **about_case, "content": dumps(content)})
        self._add_scores(no, trial.scores)

    def _add_scores(self, trial: int, scores: Sequence[Score]) -> None:
        for place, score in enumerate(scores):
            self._insert("scores", {"trial": trial, "place": place, **score_to_row(score)})

    def _insert(self, table: str, row: Mapping[str, Any]) -> int:
        """Write a row, by column; the number of the new row."""
        marks = ", ".join("?" * len(row))
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"
        return self._database.insert(statement, tuple(row.values()))

    def _case(self, case: Case) -> tuple[int, str]:
        """The number of a case in the store, which is written if it is new, and the key of what was planned."""
        content = encode_case(case)
        key = case_key(content)
        self._database.execute("INSERT OR IGNORE INTO cases (key, content) VALUES (?, ?)", (key, content))
        [(no,)] = self._database.read("SELECT no FROM cases WHERE key = ?", (key,))
        return no, key if case.scenario is None else case_key_as_planned(case)


def _keep_out_of_git(folder: Path) -> None:
    ignore = folder / ".gitignore"
    if folder.name == FOLDER and not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def read_run(store: Store, wanted: str) -> Run:
    """The run called `wanted`, as `Store.find_run` understands it; its trials stream from the store."""
    row = store.find_run(wanted)
    info = row.info
    trials = Trials(partial(store.trials, row.no))
    return Run(
        id=row.id,
        started_at=row.started_at,
        suites=info.suites,
        summaries=store.summaries(row.no),
        trials=trials,
        finished_at=row.finished_at,
        interrupted=row.status == "interrupted",
        note=info.note or ("the run was cut off" if row.status == "running" else ""),
        environment=info.environment,
        options=info.options,
        store=str(store.folder),
        judges=_judges(trials) if info.judges is None else info.judges,
        uncounted=info.uncounted,
        name=row.name,
        git=info.git,
        evaluator_keys=info.evaluator_keys,
        gate=None if info.gate is None else gate_from_json(info.gate),
    )


def _judges(trials: Iterable[TrialResult]) -> tuple[JudgeSummary, ...]:
    return tuple(Tally(trials))
