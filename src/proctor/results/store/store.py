"""The store: one SQLite database in WAL mode. A finished trial is stored before it is reported."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from proctor.base.errors import NotInStore, StoreError
from proctor.base.locks import FileLock
from proctor.cases.encoding import decode_case, dumps, encode_case
from proctor.cases.identity import case_key, case_key_before_simulation, question_key
from proctor.cases.suite import Case
from proctor.results.run import Run, RunStatus
from proctor.results.score import Outcome, Score, ScoreRow
from proctor.results.store.database import Database, store_errors
from proctor.results.store.encoding import (
    SCORE_COLUMNS,
    SCORE_ROW_COLUMNS,
    SUMMARY_COLUMNS,
    TRIAL_COLUMNS,
    header_to_json,
    run_from_json,
    score_from_row,
    score_row_from_row,
    score_to_row,
    summary_from_row,
    trial_from_json,
    trial_to_json,
    trial_to_row,
)
from proctor.results.store.run_names import find_run
from proctor.results.store.text_columns import decode_text, encode_text
from proctor.results.store.traces import StoredSpans, TraceRow, Traces
from proctor.results.trial import LazySequence, Trial, Trials, TrialSummary
from proctor.tracing.spans import Span

K = TypeVar("K")
V = TypeVar("V")

STORE_FOLDER = ".proctor"
DATABASE_FILE = "results.db"

RUN_COLUMNS = "no, id, started_at, finished_at, status, plan, info, name"

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
class StoredTrial:
    """The columns of a stored trial that resuming, grading and labelling need."""

    no: int
    case_key: str
    agent: str
    outcome: str
    position: int
    files_read: Mapping[str, str] = field(default_factory=dict)
    masked_case: str = ""
    """As in `Trial`."""


class Store:
    """One open store, used from one thread."""

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.folder = folder
        self.path = folder / DATABASE_FILE
        self.location: str | None = str(folder)
        """The value of `Run.store` for its runs; None for a temporary store."""
        self._decoded: tuple[str, Case] | None = None
        if not create and not self.path.is_file():
            raise NotInStore(f"no results in {folder}; run `proctor test` first, or name the folder with --store")
        with store_errors(self.path, "opened"):
            if create:
                _make_folder(folder)
            self._database = Database(self.path)
            if create:
                _keep_out_of_git(folder)

    @property
    def database_path(self) -> Path:
        """The file that is open; for a store that cannot be written, it may be a copy."""
        return self._database.opened_path

    @functools.cached_property
    def traces(self) -> Traces:
        return Traces(self._database)

    def close(self) -> None:
        self._database.close()

    def check_trials(self, run: int, count: int) -> None:
        """Raise `StoreError` unless the file has at least so many trials of a run, and all that belongs to them."""
        self.check_present()
        [(trials, _)] = self._database.read_file(
            "SELECT count(*), total(length(t.content) + length(c.content))"
            " FROM trials t JOIN cases c ON c.no = t.case_no WHERE t.run = ?",
            (run,),
        )
        if trials < count:
            raise StoreError(f"{self.path} was damaged while Proctor was using it: it has {trials} of {count} trials")

    def rest(self) -> None:
        """Close the file until the store is used again."""
        self._database.rest()

    def check_present(self) -> None:
        """Raise `StoreError` if the file was removed or replaced."""
        self._database.check_present()

    def add_run(self, run: Run) -> int:
        """Store a run that starts; sets and returns its number."""
        run.status = RunStatus.RUNNING
        with self._database.transaction():
            run.no = self._insert_run(run)
        return run.no

    def add_whole_run(self, run: Run) -> int:
        """Store a run from elsewhere with all of its trials, or not at all; returns its number here."""
        with self._database.transaction():
            no = self._insert_run(run)
            for trial in run.trials:
                self._add_trial(no, trial)
        return no

    def _insert_run(self, run: Run) -> int:
        row = {name: getattr(run, name) for name in ("id", "started_at", "finished_at", "plan")}
        header = dumps(header_to_json(run))
        return self._insert("runs", {**row, "status": run.status.value, "name": encode_text(run.name), "info": header})

    def reopen_run(self, no: int) -> None:
        """Mark a run that is resumed as running."""
        with self._database.transaction():
            self._database.execute("UPDATE runs SET status = 'running', finished_at = NULL WHERE no = ?", (no,))

    def finish_run(self, run: Run) -> None:
        """Store the status and the verdict of a run that has ended."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE runs SET status = ?, finished_at = ?, info = ? WHERE no = ?",
                (run.status.value, run.finished_at or time.time(), dumps(header_to_json(run)), run.no),
            )

    def add_trials(self, run: int, trials: Sequence[Trial], *, masked: bool = False) -> None:
        """Store finished trials, all or none. With `masked`, secrets in their traces are already masked."""
        with self._database.transaction():
            for trial in trials:
                self._add_trial(run, trial, masked)

    def drop_trials(self, run: int, numbers: Sequence[int]) -> None:
        """Delete trials that a resumed run runs again."""
        with self._database.transaction():
            self._database.execute_many("DELETE FROM trials WHERE no = ? AND run = ?", [(no, run) for no in numbers])
            self._database.execute_many("DELETE FROM scores WHERE trial = ?", [(no,) for no in numbers])

    def delete_runs(self, runs: Sequence[Run]) -> None:
        """Delete runs with their trials, traces and labels, and the cases that no other run has; free the space."""
        database = self._database
        with database.transaction():
            for run in runs:
                database.execute("DELETE FROM scores WHERE trial IN (SELECT no FROM trials WHERE run = ?)", (run.no,))
                database.execute("DELETE FROM trials WHERE run = ?", (run.no,))
                database.execute("DELETE FROM traces WHERE run = ?", (run.no,))
                database.execute("DELETE FROM labels WHERE run = ?", (run.id,))
                database.execute("DELETE FROM runs WHERE no = ?", (run.no,))
            database.execute("DELETE FROM cases WHERE no NOT IN (SELECT case_no FROM trials)")
        with database.store_errors("made smaller"):
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def size(self) -> int:
        """The size of the store's folder in bytes."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def reposition_trials(self, moves: Sequence[tuple[int, int]]) -> None:
        """Set the positions of trials of a resumed run in the current plan: (position, number of the trial)."""
        with self._database.transaction():
            self._database.execute_many("UPDATE trials SET position = ? WHERE no = ?", list(moves))

    def update_scores(self, run: Run, graded: Sequence[tuple[int, Trial]]) -> None:
        """Replace the scores of trials, by their numbers, and the facts about their run, all or none."""
        with self._database.transaction():
            for no, trial in graded:
                outcome = (trial.outcome.value, no, run.no)
                self._database.execute("UPDATE trials SET outcome = ? WHERE no = ? AND run = ?", outcome)
                self._database.execute("DELETE FROM scores WHERE trial = ?", (no,))
                self._add_scores(no, trial.scores)
            header = dumps(header_to_json(run))
            self._database.execute("UPDATE runs SET info = ? WHERE no = ?", (header, run.no))

    def runs(self, limit: int | None = None) -> list[Run]:
        """The latest runs first; their trials are read when they are used."""
        query = f"SELECT {RUN_COLUMNS} FROM runs ORDER BY no DESC LIMIT ?"
        rows = self._database.read(query, (-1 if limit is None else limit,))
        return [self.run_from_row(row) for row in rows]

    def find_run(self, name: str) -> Run:
        """A run by its id, the beginning of its id, its name, `last` or `last~1`."""
        return find_run(self.runs, name, str(self.folder))

    def runs_before(self, no: int | None, most: int) -> list[Run]:
        """The latest runs before the one numbered `no`, or of all, without damaged ones."""
        rows = self._database.read(
            f"SELECT {RUN_COLUMNS} FROM runs WHERE no < ? ORDER BY no DESC LIMIT ?", (2**62 if no is None else no, most)
        )
        runs = []
        for row in rows:
            with contextlib.suppress(StoreError):
                runs.append(self.run_from_row(row))
        return runs

    def run_with_id(self, run_id: str) -> Run | None:
        """The run with exactly this id, or None."""
        rows = self._database.read(f"SELECT {RUN_COLUMNS} FROM runs WHERE id = ?", (run_id,))
        return next((self.run_from_row(row) for row in rows), None)

    def count_runs(self) -> int:
        return int(next(self._database.read("SELECT count(*) FROM runs"))[0])

    def count_trials(self, run: int) -> int:
        """The number of stored trials of a run."""
        return int(next(self._database.read("SELECT count(*) FROM trials WHERE run = ?", (run,)))[0])

    def data_version(self) -> int:
        """A number that changes when another connection has written to the store."""
        return int(next(self._database.read("PRAGMA data_version"))[0])

    def case_tags(self, run: int) -> dict[tuple[str, str], tuple[str, ...]]:
        """By suite and id: the tags of each case that has any."""
        tags_by_case: dict[tuple[str, str], tuple[str, ...]] = {}
        with self._database.store_errors("read"):
            for suite, case_id, content in self._database.read(
                "SELECT t.suite, t.case_id, c.content FROM trials t JOIN cases c ON c.no = t.case_no"
                " WHERE t.run = ? AND c.content LIKE '%\"tags\"%' GROUP BY t.suite, t.case_id",
                (run,),
            ):
                if tags := json.loads(content).get("tags"):
                    tags_by_case[decode_text(suite), decode_text(case_id)] = tuple(tags)
        return tags_by_case

    def cases_with_words(self, run: int, words: Sequence[str]) -> set[tuple[str, str]]:
        """The cases of a run, by suite and id, with every word in their id, input, expectation or answer."""
        word = "(t.case_id LIKE ? ESCAPE '!' OR t.content LIKE ? ESCAPE '!' OR c.content LIKE ? ESCAPE '!')"
        values: list[str] = []
        for text in words:  # inputs and answers are stored as JSON in ASCII
            values += [_like(text), *[_like(dumps(text)[1:-1])] * 2]
        rows = self._database.read(
            "SELECT DISTINCT t.suite, t.case_id FROM trials t JOIN cases c ON c.no = t.case_no"
            f" WHERE t.run = ? AND {' AND '.join([word] * len(words))}",
            (run, *values),
        )
        return {(decode_text(suite), decode_text(case_id)) for suite, case_id in rows}

    def scores(
        self, run: int, *, outcome: Outcome | None = None, detail: str = ""
    ) -> Iterator[tuple[int, int, tuple[str, str, int], Score]]:
        """The scores of a run in the order of the plan, without their trials.

        `outcome` and `detail` select scores with this outcome, or with a detail of this name. Each comes with the
        number of its trial, its index in the trial, and the suite, case and trial number.
        """
        rows = self._database.read(
            f"SELECT t.no, s.place, t.suite, t.case_id, t.number, {SCORE_COLUMNS.select('s')}"
            " FROM trials t JOIN scores s ON s.trial = t.no"
            " WHERE t.run = ? AND s.outcome LIKE ? AND s.details LIKE ? ESCAPE '!' ORDER BY t.position, s.place",
            (run, "%" if outcome is None else outcome.value, _like(f'"{detail}"') if detail else "%"),
        )
        for no, place, suite, case_id, number, *columns in rows:
            with self._database.store_errors("read"):
                score = score_from_row(columns)
            yield no, place, (decode_text(suite), decode_text(case_id), number), score

    def run_from_row(self, row: Sequence[Any]) -> Run:
        """The run of a row of `RUN_COLUMNS`."""
        no, run_id, started_at, finished_at, status, plan, header, name = row
        summaries = LazySequence(lambda: self.summaries(no))
        with self._database.store_errors("read"):
            return run_from_json(
                json.loads(header),
                Trials(partial(self.trials, no), lambda: len(summaries)),
                no=no,
                id=run_id,
                started_at=started_at,
                finished_at=finished_at,
                status=self._status(run_id, status),
                plan=plan,
                name=decode_text(name),
                summaries=summaries,
                store=self.location,
            )

    def _status(self, run_id: str, stored: str) -> RunStatus:
        """The status of a run. If its process has ended without storing one, its lock is free."""
        if stored != RunStatus.RUNNING:
            return RunStatus(stored)
        path = self.lock_path(run_id)
        lock = FileLock(path)
        if not path.exists() or lock.acquire(wait=False):
            lock.release()
            return RunStatus.DIED
        return RunStatus.RUNNING

    def lock_path(self, run_id: str) -> Path:
        """The file whose lock a process holds while it works on a run."""
        return self.folder / f"{run_id}.running"

    def stored_trials(self, run: int) -> dict[tuple[str, str, int], StoredTrial]:
        """By (suite, case, number): the stored trials of a run."""
        return dict(self.iterate_stored_trials(run))

    def iterate_stored_trials(self, run: int) -> Iterator[tuple[tuple[str, str, int], StoredTrial]]:
        """The same in the order of the plan, one by one."""
        for suite, case_id, number, no, key, agent, outcome, position, files, check in self._database.read(
            "SELECT suite, case_id, number, no, case_key, agent, outcome, position,"
            " CASE WHEN json_valid(content) THEN json_extract(content, '$.files_read') END,"
            " CASE WHEN json_valid(content) THEN json_extract(content, '$.masked_case') END"
            " FROM trials WHERE run = ? ORDER BY position",
            (run,),
        ):
            address = decode_text(suite), decode_text(case_id), number
            files_read = json.loads(files) if files else {}
            yield address, StoredTrial(no, key, decode_text(agent), outcome, position, files_read, check or "")

    def trials(self, run: int, cases: Collection[tuple[str, str]] | None = None) -> Iterator[Trial]:
        """The trials of a run in the order of its plan, read one by one; only those of `cases` (suite, id) if given."""
        if cases is not None:
            yield from self._trials_of(run, cases)
            return
        rows = self._database.read(f"{SELECT_TRIAL} WHERE t.run = ? ORDER BY t.position", (run,))
        for row in rows:
            yield self._trial(row)

    def _trials_of(self, run: int, cases: Collection[tuple[str, str]]) -> Iterator[Trial]:
        keys = {(encode_text(suite), encode_text(case_id)) for suite, case_id in cases}
        listed = self._database.read("SELECT no, suite, case_id FROM trials WHERE run = ? ORDER BY position", (run,))
        for no in [no for no, suite, case_id in listed if (suite, case_id) in keys]:
            yield self.trial(no)

    def summaries(self, run: int) -> Sequence[TrialSummary]:
        """The part of every trial that verdicts need, in the order of the plan."""
        with self._database.store_errors("read"):
            scores: dict[int, list[ScoreRow]] = {}
            for trial, *row in self._database.read(SELECT_SCORE_ROWS, (run,)):
                scores.setdefault(trial, []).append(score_row_from_row(row))
            return [
                summary_from_row(row, scores.get(no, ())) for no, *row in self._database.read(SELECT_SUMMARIES, (run,))
            ]

    def latest_answers(self) -> dict[tuple[str, str, int], dict[str, int]]:
        """By question, agent and trial number, and then by case: the latest trial with answers, the very latest last.

        One of a run that called the agent, if there is any: its evaluators saw the answer before secrets were masked.
        """
        questions: dict[int, str] = {}
        latest: dict[tuple[str, str, int], dict[str, int]] = {}
        for case_no, case_id, content, agent, number, no in self._database.read(
            "SELECT t.case_no, t.case_id, c.content, t.agent, t.number, t.no"
            " FROM trials t JOIN cases c ON c.no = t.case_no"
            " WHERE json_valid(t.content) AND json_array_length(t.content, '$.replies') > 0"
            " ORDER BY coalesce(json_extract(t.content, '$.reused'), 0) DESC, t.no"
        ):
            if case_no not in questions:
                questions[case_no] = question_key(self._decode(content))
            by_case = latest.setdefault((questions[case_no], decode_text(agent), number), {})
            name = decode_text(case_id)
            by_case.pop(name, None)
            by_case[name] = no
        return latest

    def trial(self, no: int) -> Trial:
        """The trial with this number."""
        return self._trial(next(iter(self._database.read(f"{SELECT_TRIAL} WHERE t.no = ?", (no,)))))

    def passing_trials(self, suite: str, case_id: str, most: int) -> list[Trial]:
        """The latest trials of a case that passed, the latest first."""
        rows = self._database.read(
            f"{SELECT_TRIAL} WHERE t.suite = ? AND t.case_id = ? AND t.outcome = 'passed' ORDER BY t.no DESC LIMIT ?",
            (encode_text(suite), encode_text(case_id), most),
        )
        return [self._trial(row) for row in rows]

    def trial_for_trace(self, trace: TraceRow) -> Trial | None:
        """The trial that a trace belongs to, or None."""
        rows = self._database.read(
            f"{SELECT_TRIAL} JOIN runs r ON r.no = t.run WHERE r.id = ? AND json_extract(t.content, '$.trace') = ?",
            (trace.run, trace.no),
        )
        return next((self._trial(row) for row in rows), None)

    def _trial(self, row: Sequence[Any]) -> Trial:
        no, case, content, *columns = row
        with self._database.store_errors("read"):
            data = json.loads(content)
            spans: Sequence[Span] = StoredSpans(self._database, data["trace"]) if "trace" in data else ()
            scores = map(score_from_row, self._database.read(SELECT_SCORES, (no,)))
            return trial_from_json(data, scores, **TRIAL_COLUMNS.decode(columns), case=self._decode(case), spans=spans)

    def _decode(self, content: str) -> Case:
        """The case of a row. Trials of one case come one after another and share the object."""
        if self._decoded is None or self._decoded[0] != content:
            self._decoded = content, decode_case(content)
        return self._decoded[1]

    def _add_trial(self, run: int, trial: Trial, masked: bool = False) -> None:
        content = trial_to_json(trial)
        if trial.spans:
            about = {"suite": trial.suite, "case": trial.case.id, "number": trial.number}
            content["trace"], is_masked = self.traces.insert(run, trial.spans, about, masked)
            if is_masked and trial.masked is not None and "spans" not in trial.masked:
                content["masked"] = [*trial.masked, "spans"]
        case_no, case_key = self._case(trial.case)
        about_case = {"case_no": case_no, "case_key": case_key}
        no = self._insert("trials", {"run": run, **trial_to_row(trial), **about_case, "content": dumps(content)})
        self._add_scores(no, trial.scores)

    def _add_scores(self, trial: int, scores: Sequence[Score]) -> None:
        rows = [{"trial": trial, "place": place, **score_to_row(score)} for place, score in enumerate(scores)]
        if rows:
            statement = _insert_statement("scores", tuple(rows[0]))
            self._database.execute_many(statement, [tuple(row.values()) for row in rows])

    def _insert(self, table: str, row: Mapping[str, Any]) -> int:
        """Insert a row, by column; returns its number."""
        return self._database.insert(_insert_statement(table, tuple(row)), tuple(row.values()))

    def _case(self, case: Case) -> tuple[int, str]:
        """The number of a case, which is stored if it is new, and the key of the case as it was planned."""
        content = encode_case(case)
        key = case_key(content)
        self._database.execute("INSERT OR IGNORE INTO cases (key, content) VALUES (?, ?)", (key, content))
        [(no,)] = self._database.read("SELECT no FROM cases WHERE key = ?", (key,))
        return no, key if case.scenario is None else case_key_before_simulation(case)


def _like(word: str) -> str:
    """A pattern for `LIKE ? ESCAPE '!'`; lone surrogates are replaced, because SQLite refuses them."""
    safe = word.encode("utf-8", "replace").decode()
    return f"%{safe.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"


def _make_folder(folder: Path) -> None:
    """Create the folder of a store, for its owner alone: answers and traces are not for other users of the machine.

    A folder that exists keeps its permissions, so that a team can share a store.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        what = "a link to nothing" if folder.is_symlink() else "a file"
        raise StoreError(f"{folder} is {what}, not a folder; name another folder with --store") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(f"{folder} cannot be created: {reason}; name another folder with --store") from error
    needed = os.X_OK if os.access(folder / DATABASE_FILE, os.R_OK) else os.R_OK | os.W_OK | os.X_OK
    if not os.access(folder, needed):  # a store that exists can be read
        raise StoreError(f"{folder} cannot be written: permission denied; name another folder with --store")


def _keep_out_of_git(folder: Path) -> None:
    ignore = folder / ".gitignore"
    if folder.name == STORE_FOLDER and not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


@functools.cache
def _insert_statement(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
