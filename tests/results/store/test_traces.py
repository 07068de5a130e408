"""The traces of a store: kept with their trial or by themselves, found again, never twice."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import StoreError
from proctor.cases.suite import Case, Turn
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.results.trial import Trial
from proctor.tracing.spans import ObserveSpan, Span

CASE = Case(id="c", turns=(Turn("hi"),))


def step(name: str, *, error: str | None = None, trace_id: str = "t" * 32) -> ObserveSpan:
    return ObserveSpan(name * 8, trace_id, None, 100.0, 101.0, 1000.0, name, error=error)


def a_trial(*spans: Span, number: int = 1) -> Trial:
    return Trial("s", CASE, number, number, Outcome.PASSED, spans=spans)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    made = Store(tmp_path)
    yield made
    made.close()


def kept(store: Store, *trials: Trial) -> int:
    no = store.add_run(Run(f"run-{len(store.runs())}", 0.0))
    store.add_trials(no, trials)
    return no


SCHEMA_OF_VERSION_1 = """
CREATE TABLE runs (
    no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, started_at REAL NOT NULL, finished_at REAL,
    status TEXT NOT NULL, plan TEXT NOT NULL, info TEXT NOT NULL);
CREATE TABLE cases (no INTEGER PRIMARY KEY, key TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE trials (
    no INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs, position INTEGER NOT NULL, suite TEXT NOT NULL,
    case_id TEXT NOT NULL, number INTEGER NOT NULL, case_no INTEGER NOT NULL REFERENCES cases, case_key TEXT NOT NULL,
    agent TEXT NOT NULL, outcome TEXT NOT NULL, started_at REAL NOT NULL,
    duration_ms REAL NOT NULL, tokens INTEGER, cost_usd REAL, content TEXT NOT NULL, scores TEXT NOT NULL);
CREATE INDEX trials_of_run ON trials (run, position);
"""


def old_store(folder: Path) -> None:
    """A store as the version without traces left it, with one trial in it."""
    folder.mkdir(exist_ok=True)
    database = sqlite3.connect(folder / DATABASE_FILE)
    database.executescript(SCHEMA_OF_VERSION_1)
    database.execute("INSERT INTO runs VALUES (1, 'old', 1.0, 2.0, 'finished', 'plan', '{}')")
    database.execute("""INSERT INTO cases VALUES (1, 'k', '{"id":"c","input":"hi"}')""")
    content = '{"replies":[{"text":"hi"}]}'
    database.execute(
        "INSERT INTO trials VALUES (1, 1, 0, 's', 'c', 1, 1, 'k', 'a', 'passed', 1.0, 2.0, NULL, NULL, ?, '[]')",
        (content,),
    )
    database.execute("PRAGMA user_version = 1")
    database.commit()
    database.close()


def test_a_store_without_traces_still_opens_and_takes_them(tmp_path: Path) -> None:
    old_store(tmp_path)
    store = Store(tmp_path, create=False)
    [trial] = store.find_run("old").trials
    assert (trial.replies[0].text, trial.trace) == ("hi", [])
    assert store.traces.rows() == []
    no = kept(store, a_trial(step("a")))
    assert [node.name for trial in store.trials(no) for node in trial.trace] == ["a"]
    store.close()


def test_the_spans_of_a_trial_are_read_when_they_are_used(store: Store) -> None:
    no = kept(store, a_trial(step("a"), step("b")))
    [trial] = store.trials(no)
    assert bool(trial.spans)
    assert (len(trial.spans), trial.spans[0].name, [s.name for s in trial.spans[1:]]) == (2, "a", ["b"])
    assert pickle.loads(pickle.dumps(trial)).spans == (step("a"), step("b"))


def test_a_trial_and_its_trace_are_kept_together_or_not_at_all(store: Store) -> None:
    broken = Trial("s", CASE, 2, 2, Outcome.PASSED, replies=(7,))  # type: ignore[arg-type]
    with pytest.raises(StoreError):
        kept(store, a_trial(step("a")), broken)
    assert store.traces.rows() == []


def test_traces_are_listed_with_where_they_come_from_the_latest_first(store: Store) -> None:
    kept(store, a_trial(step("a")), a_trial(step("b", error="ValueError"), number=2))
    store.traces.add([step("c")], {"file": "x.json"})
    rows = store.traces.rows()
    assert [(row.title, row.run, row.spans, row.errors) for row in rows] == [
        ("x.json", None, 1, 0),
        ("s/c #2", "run-0", 1, 1),
        ("s/c", "run-0", 1, 0),
    ]
    assert [row.title for row in store.traces.rows(errors=True)] == ["s/c #2"]
    assert len(store.traces.rows(2)) == 2
    assert store.trial_for_trace(rows[0]) is None
    trial = store.trial_for_trace(rows[1])
    assert trial is not None and trial.number == 2


def test_the_same_spans_are_kept_once(store: Store) -> None:
    kept(store, a_trial(step("a")))
    assert [new for _, new in store.traces.add_all([([step("a")], {}), ([step("b")], {}), ([step("b")], {})])] == [
        False,
        True,
        False,
    ]
    assert len(store.traces.rows()) == 2


def test_a_trace_is_found_by_its_id_its_beginning_its_trace_id_or_as_the_last(store: Store) -> None:
    first = store.traces.add([step("a", trace_id="f" * 32)], {})
    second = store.traces.add([step("b", trace_id="e" * 32)], {})
    for wanted in (first.id, first.id[:6], "ffff"):
        assert store.traces.find(wanted).no == first.no
    assert store.traces.find("last").no == second.no
    for unknown in ("zzz", "", "%", "last2"):
        with pytest.raises(StoreError, match=f"no trace {unknown!r}.*the latest is {second.id}"):
            store.traces.find(unknown)


def test_a_beginning_that_several_traces_share_is_refused(store: Store) -> None:
    store.traces.add([step("a")], {})
    store.traces.add([step("b")], {})
    with pytest.raises(StoreError, match="could be any of"):
        store.traces.find("t")


def test_an_empty_store_says_that_it_has_no_traces(store: Store) -> None:
    with pytest.raises(StoreError, match="it has no traces"):
        store.traces.find("last")


@pytest.mark.parametrize("content", [b"", b"no zlib", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_a_damaged_trace_is_a_store_error(store: Store, content: bytes) -> None:
    no = kept(store, a_trial(step("a")))
    with closing(sqlite3.connect(store.path)) as database, database:
        database.execute("UPDATE traces SET content = ?", (content,))
    database.close()
    [trial] = store.trials(no)
    with pytest.raises(StoreError, match="cannot be read"):
        _ = trial.trace
