"""The cases of runs as rows that SQLite can filter and sort: a private table beside the store, brought up to date.

A run is never read as a whole: SQLite adds its trials up, and a page takes the rows that it shows.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from proctor.base.errors import StoreError
from proctor.reporting.clusters import cluster_name
from proctor.reporting.plots import BARS
from proctor.results.run import Outcome, Run, SuiteInfo
from proctor.results.statistics import Estimate, wilson
from proctor.results.store.store import Store
from proctor.results.store.text_columns import decode_text, encode_text
from proctor.results.verdict import judge_suite

T = TypeVar("T")

TABLES = """
CREATE TABLE indexed (
    run INTEGER PRIMARY KEY, state TEXT NOT NULL, trials INTEGER NOT NULL, last INTEGER NOT NULL,
    scored INTEGER NOT NULL DEFAULT 0);
CREATE TABLE case_rows (
    run INTEGER NOT NULL, suite TEXT NOT NULL, case_id TEXT NOT NULL, position INTEGER NOT NULL,
    case_no INTEGER NOT NULL, trials INTEGER NOT NULL, passed INTEGER NOT NULL, failed INTEGER NOT NULL,
    errors INTEGER NOT NULL, skipped INTEGER NOT NULL, pending INTEGER NOT NULL, tokens INTEGER, cost_usd REAL,
    duration_ms REAL NOT NULL, numbers TEXT NOT NULL, outcome TEXT NOT NULL DEFAULT '',
    quarantined INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (run, suite, case_id)) WITHOUT ROWID;
CREATE TABLE score_rows (
    run INTEGER NOT NULL, suite TEXT NOT NULL, case_id TEXT NOT NULL, evaluator TEXT NOT NULL, outcome TEXT NOT NULL,
    part INTEGER NOT NULL, scores INTEGER NOT NULL,
    PRIMARY KEY (run, suite, case_id, evaluator, outcome, part)) WITHOUT ROWID;
CREATE TABLE tag_rows (
    run INTEGER NOT NULL, tag TEXT NOT NULL, suite TEXT NOT NULL, case_id TEXT NOT NULL,
    PRIMARY KEY (run, suite, case_id, tag)) WITHOUT ROWID;
CREATE TABLE cluster_rows (
    run INTEGER NOT NULL, cluster TEXT NOT NULL, suite TEXT NOT NULL, case_id TEXT NOT NULL,
    PRIMARY KEY (run, suite, case_id, cluster)) WITHOUT ROWID;
"""

ADD_CASES = """
INSERT INTO case_rows (run, suite, case_id, position, case_no, trials, passed, failed, errors, skipped, pending,
    tokens, cost_usd, duration_ms, numbers)
SELECT run, suite, case_id, min(position), max(case_no), count(*), sum(outcome = 'passed'), sum(outcome = 'failed'),
    sum(outcome = 'error'), sum(outcome = 'skipped'), sum(outcome = 'pending'), sum(tokens), sum(cost_usd),
    sum(duration_ms), group_concat(no)
FROM store.trials WHERE run = ? AND no > ? GROUP BY suite, case_id
ON CONFLICT DO UPDATE SET position = min(position, excluded.position), case_no = excluded.case_no,
    trials = trials + excluded.trials, passed = passed + excluded.passed, failed = failed + excluded.failed,
    errors = errors + excluded.errors, skipped = skipped + excluded.skipped, pending = pending + excluded.pending,
    tokens = coalesce(tokens + excluded.tokens, tokens, excluded.tokens),
    cost_usd = coalesce(cost_usd + excluded.cost_usd, cost_usd, excluded.cost_usd),
    duration_ms = duration_ms + excluded.duration_ms, numbers = numbers || ',' || excluded.numbers
"""
ADD_SCORES = """
INSERT INTO score_rows (run, suite, case_id, evaluator, outcome, part, scores)
SELECT t.run, t.suite, t.case_id, s.evaluator, s.outcome,
    coalesce(max(0, min(:bars - 1, CAST(s.value * :bars AS INTEGER))), -1) AS part, count(*)
FROM store.trials t JOIN store.scores s ON s.trial = t.no
WHERE +t.run = :run AND t.no > :after AND t.no <= :last
GROUP BY t.suite, t.case_id, s.evaluator, s.outcome, part
ON CONFLICT DO UPDATE SET scores = scores + excluded.scores
"""
"""Each value by which of equal parts between 0 and 1 it lies in; -1 where there is none."""
ADD_TAGS = """
INSERT OR IGNORE INTO tag_rows (run, tag, suite, case_id)
SELECT k.run, t.value, k.suite, k.case_id
FROM case_rows k JOIN store.cases c ON c.no = k.case_no, json_each(c.content, '$.tags') t
WHERE k.run = ? AND json_valid(c.content)
"""
SETTLE = """
UPDATE case_rows SET outcome = CASE
    WHEN trials = skipped THEN 'skipped'
    WHEN passed >= {needed} THEN 'passed'
    WHEN passed + errors + pending < {needed} THEN 'failed'
    WHEN errors > 0 THEN 'error' ELSE 'pending' END
WHERE run = ? AND suite = ?
"""
"""The rule of `proctor.results.verdict.case_outcome` over the counts of a case."""
NEEDED = {"all": "trials - skipped", "any": "1", "majority": "(trials - skipped) / 2 + 1"}
PART = 5_000
"""Trials whose scores are added at once."""
MOST_CLUSTERED = 2_000
"""Failed trials that are read to group them: more would keep the reader waiting, and the first ones show the causes."""
TABLE_NAMES = ("indexed", "case_rows", "score_rows", "tag_rows", "cluster_rows")


@dataclass(frozen=True, slots=True)
class SuiteTotals:
    """What the cases of one suite in one run add up to."""

    suite: str
    outcomes: dict[Outcome, int]
    """Cases by outcome."""
    trials: int
    cost_usd: float | None
    tokens: int | None
    mean_ms: float
    flaky: int
    rate: Estimate | None
    """Of the cases that have a verdict and decide something."""


class RunIndex:
    """Of one store; used under its own lock from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._clustered: set[int] = set()
        self._remembered: dict[int, dict[str, Any]] = {}
        self._prepared: dict[int, threading.Thread] = {}
        self._closed = False
        # an empty name is a private file that SQLite removes: large runs do not have to fit into memory
        self._connection = sqlite3.connect("", uri=True, check_same_thread=False, isolation_level=None)
        self._connection.text_factory = _text
        try:
            self._connection.execute("ATTACH ? AS store", (f"{path.resolve().as_uri()}?mode=ro",))
            for statement in TABLES.split(";"):
                self._connection.execute(statement)
        except sqlite3.Error as error:
            self._connection.close()
            raise StoreError(f"{path} cannot be read: {error}") from error

    def close(self) -> None:
        self._closed = True
        for thread in list(self._prepared.values()):
            thread.join()
        with self._lock:
            self._connection.close()

    def version(self) -> int:
        """Changes when another connection has written to the store."""
        with self._lock:
            return int(self._connection.execute("PRAGMA store.data_version").fetchone()[0])

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query whose text is made of constants; whatever comes from outside is in `values`."""
        with self._guard():
            return self._connection.execute(query, tuple(values)).fetchall()

    def named_rows(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        """The same with values by name."""
        with self._guard():
            return self._connection.execute(query, values).fetchall()

    def count(self, run: int) -> int:
        """How many trials of a run are kept."""
        return int(self.rows("SELECT count(*) FROM store.trials WHERE run = ?", (run,))[0][0])

    def is_ready(self, run: int) -> bool:
        return bool(self.rows("SELECT 1 FROM indexed WHERE run = ?", (run,)))

    def ensure(self, row: Run, store: Store) -> None:
        """Bring the rows of a run up to date: new trials are added, and a run that was changed is taken anew."""
        with self._guard():
            state = repr((row.status, row.finished_at, row.stored_verdict, row.counts))
            trials, last = self.rows(
                "SELECT count(*), coalesce(max(no), 0) FROM store.trials WHERE run = ?", (row.no,)
            )[0]
            known = self.rows("SELECT state, trials, last FROM indexed WHERE run = ?", (row.no,))
            if known and known[0] == (state, trials, last):
                return
            self._remembered.pop(row.no, None)
            with self._transaction():
                self._update(row, store, known[0] if known and known[0][0] == state else None)
                self._connection.execute(
                    "INSERT INTO indexed (run, state, trials, last)"
                    " SELECT ?, ?, count(*), coalesce(max(no), 0) FROM store.trials WHERE run = ? AND no <= ?"
                    " ON CONFLICT DO UPDATE SET state = excluded.state, trials = excluded.trials, last = excluded.last",
                    (row.no, state, row.no, last),
                )

    def ensure_scores(self, run: int) -> None:
        """Bring the scores of a run that is indexed up to date; only some pages need them.

        Others may read between one part and the next.
        """
        while self._add_scores(run):
            pass

    def _add_scores(self, run: int) -> bool:
        """Whether there may be more."""
        with self._guard():
            found = self.rows("SELECT last, scored FROM indexed WHERE run = ?", (run,))
            if not found or found[0][1] >= found[0][0]:
                return False
            last, scored = found[0]
            first = self.rows("SELECT min(no) FROM store.trials WHERE run = ? AND no > ?", (run, scored))[0][0]
            end = last if first is None else min(last, first + PART - 1)
            with self._transaction():
                values = {"bars": BARS, "run": run, "after": scored, "last": end}
                self._connection.execute(ADD_SCORES, values)
                self._connection.execute("UPDATE indexed SET scored = ? WHERE run = ?", (end, run))
            self._remembered.get(run, {}).pop("evaluators", None)
            return bool(end < last)

    def prepare_scores(self, run: int) -> None:
        """Begin with the scores of a large run before a page needs them."""
        with self._guard():
            if run in self._prepared:
                return
            self._prepared[run] = threading.Thread(
                target=self._prepare, args=(run,), name="proctor-scores", daemon=True
            )
            self._prepared[run].start()

    def _prepare(self, run: int) -> None:
        with suppress(StoreError):  # whichever page needs the scores meets the same problem and says it
            while not self._closed and self._add_scores(run):
                time.sleep(0.01)  # a page that waits for the lock would otherwise not get it between two parts

    def forget(self, run: int) -> None:
        """Take a run anew when it is next looked at: its scores were changed."""
        with self._guard():
            self._connection.execute("DELETE FROM indexed WHERE run = ?", (run,))

    def remembered(self, run: int, name: str, made: Callable[[], T]) -> T:
        """What a page needs of a whole run, made once and anew when the run has changed."""
        with self._guard():
            known = self._remembered.setdefault(run, {})
            if name not in known:
                known[name] = made()
            found: T = known[name]
            return found

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def _update(self, row: Run, store: Store, known: Any) -> None:
        after = 0
        self._clustered.discard(row.no)
        if known is not None:
            there = self.rows("SELECT count(*) FROM store.trials WHERE run = ? AND no <= ?", (row.no, known[2]))
            after = known[2] if there[0][0] == known[1] else 0
        if after == 0:
            for table in TABLE_NAMES:
                self._connection.execute(f"DELETE FROM {table} WHERE run = ?", (row.no,))  # noqa: S608  constants
        self._connection.execute(ADD_CASES, (row.no, after))
        self._connection.execute(ADD_TAGS, (row.no,))
        for info in row.suites:
            self._settle(row, info, store)

    def _settle(self, row: Run, info: SuiteInfo, store: Store) -> None:
        suite = encode_text(info.name)
        self._connection.execute(SETTLE.format(needed=NEEDED.get(info.criteria.trials, NEEDED["all"])), (row.no, suite))
        if info.criteria.trials not in NEEDED:  # by the mean of scores, which needs each of them
            judged = judge_suite(info, [item for item in store.summaries(row.no) if item.suite == info.name])
            self._connection.executemany(
                "UPDATE case_rows SET outcome = ? WHERE run = ? AND suite = ? AND case_id = ?",
                [(case.outcome.value, row.no, suite, encode_text(case.case_id)) for case in judged.cases],
            )
        self._connection.executemany(
            "UPDATE case_rows SET quarantined = 1 WHERE run = ? AND suite = ? AND case_id = ?",
            [(row.no, suite, encode_text(item.case)) for item in info.quarantined],
        )

    def ensure_clusters(self, row: Run, store: Store) -> None:
        """Group the failed cases of a run by their cause, once; a run that goes on is grouped anew as it grows."""
        with self._guard():
            if row.no in self._clustered:
                return
            numbers = self.rows(
                "SELECT no FROM store.trials WHERE run = ? AND outcome IN ('failed', 'error')"
                " ORDER BY position LIMIT ?",
                (row.no, MOST_CLUSTERED),
            )
            trials = (store.trial(no) for (no,) in numbers)
            members = [
                (row.no, cluster_name(trial), encode_text(trial.suite), encode_text(trial.case.id)) for trial in trials
            ]
            self._connection.execute("DELETE FROM cluster_rows WHERE run = ?", (row.no,))
            self._connection.executemany("INSERT OR IGNORE INTO cluster_rows VALUES (?, ?, ?, ?)", members)
            self._clustered.add(row.no)

    def totals(self, run: int) -> dict[str, SuiteTotals]:
        """By suite, in the order of the plan."""
        return self.remembered(run, "totals", lambda: self._totals(run))

    def _totals(self, run: int) -> dict[str, SuiteTotals]:
        found: dict[str, list[Any]] = {}
        for suite, *rest in self.rows(
            "SELECT suite, outcome, quarantined, count(*), sum(trials), sum(cost_usd), sum(tokens), sum(duration_ms),"
            " sum(passed > 0 AND failed > 0), min(position) FROM case_rows WHERE run = ? GROUP BY 1, 2, 3"
            " ORDER BY min(position)",
            (run,),
        ):
            found.setdefault(decode_text(suite), []).append(rest)
        return {suite: _totals(suite, rows) for suite, rows in found.items()}

    @contextmanager
    def _guard(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreError(f"the store cannot be read: {error}") from error


def _text(data: bytes) -> str:
    """SQLite gives halves of surrogate pairs that were written in JSON as bytes that are no UTF-8."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def as_bytes(text: str) -> bytes:
    """Text as a parameter: as `CAST(? AS TEXT)`, it may hold halves of surrogate pairs."""
    return text.encode("utf-8", "surrogatepass")


def _totals(suite: str, rows: Sequence[Any]) -> SuiteTotals:
    outcomes = dict.fromkeys(Outcome, 0)
    passed = settled = 0
    for outcome, quarantined, cases, *_ in rows:
        outcomes[Outcome(outcome)] += cases
        if not quarantined and outcome in ("passed", "failed"):
            settled += cases
            passed += cases if outcome == "passed" else 0
    trials, costs, tokens, times, flaky = ([row[at] for row in rows] for at in (3, 4, 5, 6, 7))
    made = sum(trials)
    return SuiteTotals(
        suite=suite,
        outcomes=outcomes,
        trials=made,
        cost_usd=_sum(costs),
        tokens=_sum(tokens),
        mean_ms=sum(times) / made if made else 0.0,
        flaky=sum(flaky),
        rate=Estimate(passed / settled, *wilson(passed / settled, settled), settled) if settled else None,
    )


def _sum(values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
