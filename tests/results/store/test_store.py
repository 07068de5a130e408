from __future__ import annotations

import json
import multiprocessing
import random
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.errors import StoreError
from proctor.cases.suite import Case, EvaluatorSpec, Expected, NamedData, Turn
from proctor.results.run import Run, RunStatus
from proctor.results.score import Outcome, Score
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import verdict
from proctor.running.resume import exclusive_run

CASE = Case(id="c", turns=(Turn("hi", Expected(output="hi")),), evaluators=(EvaluatorSpec("ExactMatch"),))


def a_trial(**parts: Any) -> Trial:
    whole: dict[str, Any] = {"suite": "s", "case": CASE, "number": 1, "position": 0, "outcome": Outcome.PASSED}
    return Trial(**whole | parts)


def kept(folder: Path, *trials: Trial) -> list[Trial]:
    """What comes back from a store after it was closed."""
    store = Store(folder)
    no = store.add_run(Run(f"run-{len(store.runs())}", 0.0))
    store.add_trials(no, trials)
    store.close()
    again = Store(folder, create=False)
    found = list(again.trials(no))
    assert again.summaries(no) == [TrialSummary.of(trial) for trial in found]
    again.close()
    return found


CHARACTERS = st.one_of(st.characters(), st.sampled_from(["\x00", "\ud800", "\\", '"', "\u2028", "😀"]))
TEXTS = st.text(CHARACTERS, max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), FLOATS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
MAPPINGS = st.dictionaries(TEXTS, JSON, max_size=3)
COUNTS = st.one_of(st.none(), st.integers(0, 2**40))
CALLS = st.builds(
    ToolCall,
    name=TEXTS,
    arguments=MAPPINGS,
    result=JSON,
    error=st.one_of(st.none(), TEXTS),
    id=st.one_of(st.none(), TEXTS),
    started_at=st.one_of(st.none(), FLOATS),
    duration_ms=st.one_of(st.none(), FLOATS),
    raw_arguments=st.one_of(st.none(), TEXTS),
)
REPLIES = st.builds(
    Reply,
    text=TEXTS,
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    usage=st.one_of(st.none(), st.builds(Usage, COUNTS, COUNTS, st.one_of(st.none(), FLOATS), COUNTS)),
    outputs=st.lists(st.builds(NamedData, TEXTS, JSON), max_size=2).map(tuple),
    structured=JSON,
    state=st.one_of(st.none(), MAPPINGS),
    retrieval_context=st.one_of(st.none(), st.lists(TEXTS, max_size=2).map(tuple)),
    duration_ms=st.one_of(st.none(), FLOATS),
)
SCORES = st.builds(
    Score,
    evaluator=TEXTS,
    outcome=st.sampled_from(list(Outcome)),
    value=st.one_of(st.none(), st.floats(0, 1)),
    threshold=st.one_of(st.none(), st.floats(0, 1)),
    reasoning=TEXTS,
    turn=st.one_of(st.none(), st.integers(0, 9)),
    report_only=st.booleans(),
    details=MAPPINGS,
    fingerprint=st.text("0123456789abcdef", max_size=24),
    duration_ms=st.integers(0, 10**6).map(lambda thousandths: thousandths / 1000),
)
TRIALS = st.builds(
    Trial,
    suite=TEXTS,
    case=st.builds(lambda name: replace(CASE, id=f"c{name}"), TEXTS),
    number=st.integers(1, 99),
    position=st.just(0),
    outcome=st.sampled_from(list(Outcome)),
    end_reason=TEXTS,
    replies=st.lists(REPLIES, max_size=2).map(tuple),
    scores=st.lists(SCORES, max_size=2).map(tuple),
    started_at=FLOATS,
    duration_ms=FLOATS,
    attempts=st.integers(0, 9),
    agent=TEXTS,
    warnings=st.lists(TEXTS, max_size=2).map(tuple),
    reused=st.booleans(),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(TRIALS)
@example(a_trial(scores=(Score("e", Outcome.FAILED, 0.0, 0.5, details={"gates": False}),)))
@example(a_trial(scores=(Score("e", Outcome.FAILED, 0.0, 0.5, reasoning='{"gates":false'),)))
@example(a_trial(scores=(Score("e", Outcome.FAILED, 0.0, 0.5, report_only=True),)))
@example(a_trial(suite="\x00json:1", agent="\x00json:"))
def test_a_trial_comes_back_as_it_was_kept(tmp_path: Path, trial: Trial) -> None:
    assert kept(tmp_path, trial) == [trial]


@pytest.mark.parametrize(
    "text",
    ["\ud800", "a\udfffb", "a\x00b", "\x00", "", "x" * 10_000_000, "é😀\u2028\r\n", "\ufeff", "\x1b[31m"],
    ids=lambda text: f"{len(text)} characters",
)
def test_any_answer_comes_back_as_it_was(text: str, tmp_path: Path) -> None:
    trial = a_trial(replies=(Reply(text, structured={"text": text}),), end_reason=text[:100])

    assert kept(tmp_path, trial) == [trial]


@pytest.mark.parametrize("name", ["x" * 100_000, "\ud800", "a\x00b", "'; DROP TABLE trials; --", "é" * 1000])
def test_any_id_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    trial = a_trial(suite=name, case=replace(CASE, id=name), scores=(Score(name, Outcome.PASSED, 1.0, 0.5),))
    store = Store(tmp_path)
    no = store.add_run(Run("r", 0.0, extra={"about": name}, name=name))
    store.add_trials(no, [trial])

    assert list(store.trials(no)) == [trial]
    assert list(store.stored_trials(no)) == [(name, name, 1)]
    assert store.summaries(no) == [TrialSummary.of(trial)]
    assert store.runs()[0].extra == {"about": name}
    assert store.runs()[0].name == name
    store.close()


def test_what_the_framework_returned_is_not_kept(tmp_path: Path) -> None:
    (trial,) = kept(tmp_path, a_trial(replies=(Reply("x", raw=object()),)))

    assert trial.replies == (Reply("x"),)


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "reply",
    [
        Reply("x", structured=Mute()),
        Reply("x", usage=Usage(input_tokens=2**70)),
        Reply("x", usage=Usage(input_tokens="three")),  # type: ignore[arg-type]
        Reply("x", structured=10**5000),
        Reply("x", usage=7),  # type: ignore[arg-type]
    ],
)
def test_a_reply_that_cannot_be_kept_is_a_store_error_at_worst_and_harms_no_other(reply: Reply, tmp_path: Path) -> None:
    store = Store(tmp_path)
    no = store.add_run(Run("r", 0.0))
    store.add_trials(no, [a_trial()])
    try:
        store.add_trials(no, [a_trial(number=2, position=1), a_trial(number=3, position=2, replies=(reply,))])
    except StoreError:
        assert len(store.summaries(no)) == 1, "all or none"
    store.add_trials(no, [a_trial(number=4, position=3)])

    assert [trial.number for trial in store.trials(no)][-1] == 4
    store.close()


def test_a_case_whose_batch_was_rolled_back_is_written_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    no = store.add_run(Run("r", 0.0))
    with pytest.raises(StoreError):
        store.add_trials(no, [a_trial(), a_trial(replies=(Reply("x", usage=7),))])  # type: ignore[arg-type]
    store.add_trials(no, [a_trial()])

    assert [trial.case for trial in store.trials(no)] == [CASE]
    store.close()


def test_a_file_where_the_folder_should_be_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("mine")

    with pytest.raises(StoreError, match="is a file, not a folder"):
        Store(tmp_path / "store")
    with pytest.raises(StoreError, match="no results"):
        Store(tmp_path / "store", create=False)


def test_a_folder_where_the_file_should_be_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).mkdir()

    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path)


@pytest.mark.parametrize(
    "content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 5000, b"\x00" * 4096]
)
def test_a_file_that_is_no_database_is_a_store_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).write_bytes(content)

    with pytest.raises(StoreError):
        Store(tmp_path)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).touch()

    assert kept(tmp_path, a_trial()) == [a_trial()]


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database, database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(StoreError, match="newer Proctor"):
        Store(tmp_path)


def damaged(path: Path, seed: int) -> None:
    data = bytearray(path.read_bytes())
    chance = random.Random(seed)
    for _ in range(60):
        data[chance.randrange(100, len(data))] = chance.randrange(256)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_store_is_a_store_error_and_never_a_traceback(seed: int, tmp_path: Path) -> None:
    kept(tmp_path, *(a_trial(number=n, position=n, replies=(Reply(f"answer {n}" * 20),)) for n in range(1, 60)))
    damaged(tmp_path / DATABASE_FILE, seed)

    try:
        store = Store(tmp_path, create=False)
        for row in store.runs():
            list(store.trials(row.no))
            store.summaries(row.no)
            store.stored_trials(row.no)
            store.find_run(row.id)
        store.latest_answers()
    except StoreError:
        return
    store.close()


@pytest.mark.parametrize("column", ["info", "started_at", "status"])
def test_a_run_whose_row_is_damaged_is_a_store_error(column: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add_run(Run("r", 0.0))
    store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database, database:
        database.execute(f"UPDATE runs SET {column} = ?", ('{"suites": [{"name": 7',))
    database.close()

    store = Store(tmp_path)
    if column in ("info", "status"):
        with pytest.raises(StoreError):
            store.find_run("last")
    else:
        assert store.find_run("last").id == "r"
    store.close()


def open_together(folder: str, barrier: Any, number: int) -> None:
    barrier.wait()
    store = Store(Path(folder))
    no = store.add_run(Run(f"run-{number}", 0.0))
    for position in range(10):
        store.add_trials(no, [a_trial(number=position + 1, position=position)])
    store.close()


@pytest.mark.process
def test_many_processes_may_make_and_fill_one_store_at_once(tmp_path: Path) -> None:
    method = multiprocessing.get_context("spawn" if sys.platform == "darwin" else "fork")
    barrier = method.Barrier(6)
    workers = [method.Process(target=open_together, args=(str(tmp_path), barrier, number)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    assert [worker.exitcode for worker in workers] == [0] * 6
    store = Store(tmp_path)
    assert [len(store.summaries(row.no)) for row in store.runs()] == [10] * 6
    store.close()


def test_a_run_is_found_by_its_id_its_beginning_or_as_the_last(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(StoreError, match="no run 'last'"):
        store.find_run("last")
    for name in ("2025-a", "2025-b", "2025-bb"):
        store.add_run(Run(name, 0.0))

    assert store.find_run("last").id == "2025-bb"
    assert store.find_run("2025-b").id == "2025-b"
    assert store.find_run("2025-a").id == "2025-a"
    with pytest.raises(StoreError, match="could be any of"):
        store.find_run("2025")
    with pytest.raises(StoreError, match="the latest is 2025-bb"):
        store.find_run("2026")
    store.close()


def test_a_store_keeps_itself_out_of_git(tmp_path: Path) -> None:
    Store(tmp_path / ".proctor").close()

    assert (tmp_path / ".proctor" / ".gitignore").read_text() == "*\n"


def test_a_store_that_is_forgotten_is_closed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    connection = store._database._connection
    del store

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_details_are_kept_as_plain_data(tmp_path: Path) -> None:
    score = Score("e", Outcome.PASSED, 1.0, 0.5, details={"where": Path("/x"), "set": {2, 1}})
    (trial,) = kept(tmp_path, a_trial(scores=(score,)))

    assert json.loads(json.dumps(trial.scores[0].details)) == {"where": "/x", "set": [1, 2]}


def test_a_case_is_stored_once_however_often_it_is_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    trials = [made_trial(), replace(made_trial(), number=2, position=1)]
    for run in ("one", "two"):
        store.add_trials(store.add_run(Run(run, 0.0)), trials)
    store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database:
        assert database.execute("SELECT count(*) FROM cases").fetchone() == (1,)


def test_the_arm_of_a_trial_is_stored_where_sql_finds_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    no = store.add_run(Run("r", 0.0))
    store.add_trials(no, [replace(made_trial(), arm="old"), replace(made_trial(), number=2, position=1)])
    assert [trial.arm for trial in store.trials(no)] == ["old", ""]
    assert [summary.arm for summary in store.summaries(no)] == ["old", ""]
    store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database:
        assert database.execute("SELECT arm FROM trials ORDER BY position").fetchall() == [("old",), ("",)]


def test_trials_that_are_dropped_leave_no_scores(tmp_path: Path) -> None:
    store = Store(tmp_path)
    no = store.add_run(Run("r", 0.0))
    store.add_trials(no, [replace(made_trial(), scores=(Score("E", Outcome.PASSED, 1.0),))])
    store.drop_trials(no, [key.no for key in store.stored_trials(no).values()])
    store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_FILE)) as database:
        assert database.execute("SELECT count(*) FROM scores").fetchone() == (0,)


def made_trial() -> Trial:
    return Trial("s", Case(id="a", turns=(Turn("hi"),)), 1, 0, Outcome.PASSED, replies=(Reply("yo"),))


def test_the_status_of_a_run_says_whether_a_process_still_works_on_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = Run("r", 0.0)
    store.add_run(run)
    with exclusive_run(store, "r"):
        found = store.find_run("r")
        assert (found.status, found.interrupted) == (RunStatus.RUNNING, False)
        assert "still in progress" in verdict(found).reason
    died = store.find_run("r")
    assert (died.status, verdict(died).exit_code) == (RunStatus.DIED, 130)
    assert "the process ended" in verdict(died).reason
    run.status = RunStatus.FINISHED
    store.finish_run(run)
    assert store.find_run("r").status is RunStatus.FINISHED
    store.close()


def test_a_list_of_runs_reads_no_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.add_trials(store.add_run(Run("r", 0.0)), [made_trial()])
    [run] = store.runs()
    assert [summary.case_id for summary in run.summaries] == ["a"]
    monkeypatch.setattr(Store, "summaries", lambda *_: pytest.fail("read"))
    monkeypatch.setattr(Store, "trials", lambda *_: pytest.fail("read"))
    assert [found.id for found in store.runs()] == ["r"]
    assert len(run.summaries) == 1  # read once
    store.close()


def test_what_a_newer_program_stored_of_a_run_is_written_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = Run("r", 0.0, name="n", extra={"later": [1]})
    store.add_run(run)
    found = store.find_run("r")
    found.status = RunStatus.FINISHED
    store.finish_run(found)
    assert store.find_run("r").extra == {"later": [1]}
    store.close()
