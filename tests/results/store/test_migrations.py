"""Stores of earlier versions keep working; `version_2/` and `version_3/` were made by the last programs of these."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import StoreError
from proctor.cases.encoding import decode_case, encode_case
from proctor.cases.identity import case_key, content_key
from proctor.cases.matchers import Approx, Equals, Regex
from proctor.cases.scenario import Scenario
from proctor.cases.suite import (
    AttachedFile,
    Case,
    EvaluatorSpec,
    Expected,
    ExpectedCall,
    Keywords,
    NamedData,
    ToolMock,
    Turn,
)
from proctor.gate.baseline import read_baseline
from proctor.results.human_labels import HumanLabels
from proctor.results.run import Run
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.store.schema import VERSION
from proctor.results.store.store import DATABASE_FILE, Store
from proctor.results.store.version_2_cases import encode_version_2_case

FOLDER = Path(__file__).parent
LEFT = FOLDER / "version_2"
CASES = ["shipped", "refund", "matchers", "two-turns", "grounded", "kind", "broken", "last"]
"""Of version 2; the suite of version 3 has two more before the last."""


def copy_project(version: str, folder: Path) -> Path:
    (folder / ".proctor").mkdir()
    shutil.copyfile(FOLDER / version / DATABASE_FILE, folder / ".proctor" / DATABASE_FILE)
    for path in (FOLDER / version).iterdir():
        if path.suffix in (".yaml", ".py", ".jsonl"):
            shutil.copyfile(path, folder / path.name)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a store of version 2: a finished run with two trials a case, and one that was cut."""
    return copy_project("version_2", tmp_path)


@pytest.fixture
def project_3(tmp_path: Path) -> Path:
    """The same of version 3, with a gated run between the two, a grade, a label, and a text with a lone surrogate."""
    return copy_project("version_3", tmp_path)


@pytest.fixture(params=["version_2", "version_3"])
def old_project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return copy_project(request.param, tmp_path)


def proctor(project: Path, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proctor", *words],
        cwd=project,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def version(project: Path) -> int:
    with closing(sqlite3.connect(project / ".proctor" / DATABASE_FILE)) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


def shown(project: Path, run: str) -> dict[str, Any]:
    ended = proctor(project, "show", run, "--json", "-")
    assert ended.returncode == 0, ended.stderr
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


@pytest.mark.process
def test_runs_of_an_earlier_version_are_listed(project: Path) -> None:
    ended = proctor(project, "runs")
    assert ended.returncode == 0, ended.stderr
    cut, whole = ended.stdout.splitlines()
    assert "5 passed, 1 failed, 1 pending" in cut
    assert "12 passed, 2 failed, 2 pending" in whole
    assert version(project) == VERSION


@pytest.mark.process
def test_a_run_of_an_earlier_version_is_shown_whole(project: Path) -> None:
    first = json.loads(proctor(project, "runs", "--json").stdout)[-1]
    report = shown(project, first["id"])
    assert [trial["case"]["id"] for trial in report["trials"]] == [case for case in CASES for _ in range(2)]
    by_case = {trial["case"]["id"]: trial for trial in report["trials"]}
    assert by_case["shipped"]["replies"][0]["tool_calls"][0]["result"] == {"number": 7, "status": "shipped"}
    assert by_case["matchers"]["case"]["mocks"] == {"find_order": {"result": {"number": 7, "status": "shipped"}}}
    assert by_case["matchers"]["case"]["x-ticket"] == "T-12"
    assert by_case["broken"]["reason"].startswith("the agent raised RuntimeError")
    assert (report["run"]["git"], report["run"]["name"]) == (None, "")
    assert report["verdict"]["counts"] == first["counts"]


def test_cases_of_an_earlier_version_are_those_of_the_suite_that_was_run(old_project: Path) -> None:
    from proctor.cases.formats.loading import load
    from proctor.cases.suite import with_complete_evaluators

    [suite] = map(with_complete_evaluators, load([old_project / "suite.yaml"]))
    store = Store(old_project / ".proctor", create=False)
    stored = {trial.case.id: encode_case(trial.case) for row in store.runs() for trial in store.trials(row.no)}
    store.close()
    assert stored == {case.id: encode_case(case) for case in suite.cases}


@pytest.mark.process
def test_traces_of_an_earlier_version_are_found(old_project: Path) -> None:
    ended = proctor(old_project, "trace", "show", "last")
    assert ended.returncode == 0, ended.stderr
    assert "find_order" in ended.stdout


@pytest.mark.process
def test_a_run_of_an_earlier_version_is_scored_anew(old_project: Path) -> None:
    before = shown(old_project, "last")
    ended = proctor(old_project, "rescore", before["run"]["id"])
    assert ended.returncode == 1, ended.stdout + ended.stderr
    after = shown(old_project, "last")
    assert after["run"]["id"] != before["run"]["id"]
    outcomes = [[(trial["case"]["id"], trial["outcome"]) for trial in report["trials"]] for report in (before, after)]
    assert outcomes[0] == outcomes[1]


@pytest.mark.process
def test_runs_of_an_earlier_version_are_compared(old_project: Path) -> None:
    cut, *_, whole = (run["id"] for run in json.loads(proctor(old_project, "runs", "--json").stdout))
    ended = proctor(old_project, "compare", whole, cut, "--json", "-")
    assert ended.returncode == 0, ended.stderr
    assert "shipped" in ended.stdout


@pytest.mark.process
def test_a_run_that_an_earlier_version_left_is_continued_without_asking_again(old_project: Path) -> None:
    before = shown(old_project, "last")
    ended = proctor(old_project, "test", "suite.yaml", "--resume")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    after = shown(old_project, "last")
    assert after["run"]["id"] == before["run"]["id"]
    kept = {trial["case"]["id"]: trial["started_at"] for trial in before["trials"]}
    made = {trial["case"]["id"]: trial["started_at"] for trial in after["trials"]}
    assert [*kept, "last"] == list(made)
    assert set(CASES) <= made.keys()
    assert {name for name in made if made[name] != kept.get(name)} == {"last"}


@pytest.mark.process
def test_answers_of_an_earlier_version_are_reused(project: Path) -> None:
    proctor(project, "test", "suite.yaml", "--reuse")
    reused = {trial["case"]["id"]: trial["reused"] for trial in shown(project, "last")["trials"]}
    assert reused == {case: case != "broken" for case in CASES}


@pytest.mark.process
def test_scores_that_an_earlier_version_left_pending_are_graded(project: Path) -> None:
    whole = json.loads(proctor(project, "runs", "--json").stdout)[-1]["id"]
    waiting = json.loads(proctor(project, "grade", whole, "--json").stdout)
    rows = [{**item, "score": 1.0, "reasoning": "kind"} for item in waiting]
    ended = proctor(project, "grade", whole, "--from", "-", given=json.dumps(rows))
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "2 scores graded, none left" in ended.stdout
    report = shown(project, whole)
    assert [trial["outcome"] for trial in report["trials"] if trial["case"]["id"] == "kind"] == ["passed"] * 2


def test_an_earlier_store_without_the_table_of_judge_calls_gets_it(project: Path) -> None:
    path = project / ".proctor" / DATABASE_FILE
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE judge_calls")
    with closing(StoredJudgeCalls(path)) as calls:
        calls.put("k", {"kind": "claims"})
        assert calls.get("k") == {"kind": "claims"}


def test_one_damaged_case_of_an_earlier_version_does_not_hide_the_others(project: Path) -> None:
    path = project / ".proctor" / DATABASE_FILE
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE cases SET content = '{\"input\"' WHERE no = 1")
    store = Store(project / ".proctor")
    assert len(store.summaries(1)) == 16
    assert store.trial(list(store.stored_trials(1).values())[-1].no).case.id == "last"
    with pytest.raises(StoreError):
        list(store.trials(1))
    store.close()


def open_together(folder: str, barrier: Any) -> None:
    barrier.wait()
    store = Store(Path(folder))
    assert [trial.case.id for trial in store.find_run("last").trials][:2] == ["shipped", "refund"]
    store.close()


@pytest.mark.process
def test_processes_that_open_an_earlier_store_at_once_bring_it_up_to_date_once(old_project: Path) -> None:
    method = multiprocessing.get_context("spawn" if sys.platform == "darwin" else "fork")
    barrier = method.Barrier(4)
    folder = str(old_project / ".proctor")
    workers = [method.Process(target=open_together, args=(folder, barrier)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert version(old_project) == VERSION


def test_a_migration_that_fails_leaves_the_store_as_it_was(project: Path) -> None:
    path = project / ".proctor" / DATABASE_FILE
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TRIGGER refuse BEFORE UPDATE ON trials BEGIN SELECT RAISE(ABORT, 'no'); END")
        before = database.execute("SELECT key, content FROM cases").fetchall()
    with pytest.raises(StoreError, match="cannot be written"):
        Store(project / ".proctor")
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT key, content FROM cases").fetchall() == before
    assert version(project) == 2


@pytest.mark.process
def test_a_newer_store_is_refused_in_one_sentence_and_left_alone(project: Path) -> None:
    path = project / ".proctor" / DATABASE_FILE
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    for words in (["runs"], ["show"], ["test", "suite.yaml"], ["rescore", "last"], ["grade"]):
        ended = proctor(project, *words)
        assert ended.returncode in (2, 4), ended.stdout + ended.stderr
        assert "was written by a newer Proctor (store version 99" in ended.stderr
        assert "Traceback" not in ended.stderr
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == [DATABASE_FILE]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may look into; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-test-"))
    folder.chmod(0o755)
    yield folder
    for inner in folder.iterdir():
        inner.chmod(0o755)
    shutil.rmtree(folder)


def read_only_look(folder: str, results: Any) -> None:
    """In a process that may read the store and not write it, which the administrator always may."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    store = Store(Path(folder), create=False)
    found = [trial.case.id for trial in store.find_run("last").trials]
    try:
        store.add_run(Run("new", 0.0))
    except StoreError as error:
        results.put((found, str(error)))
    store.close()


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users with fewer rights")
@pytest.mark.parametrize("migrated", [False, True])
def test_a_store_that_cannot_be_written_is_read_whatever_its_version(shared: Path, migrated: bool) -> None:
    folder = shared / "store"
    folder.mkdir()
    shutil.copyfile(LEFT / DATABASE_FILE, folder / DATABASE_FILE)
    if migrated:
        Store(folder).close()
    before = (folder / DATABASE_FILE).read_bytes()
    (folder / DATABASE_FILE).chmod(0o444)
    folder.chmod(0o555)
    method = multiprocessing.get_context("fork")
    results = method.SimpleQueue()
    worker = method.Process(target=read_only_look, args=(str(folder), results))
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0
    found, refusal = results.get()
    assert found == CASES[:-1]
    assert "cannot be written" in refusal
    assert (folder / DATABASE_FILE).read_bytes() == before


@pytest.mark.process
def test_runs_of_version_3_are_shown_whole(project_3: Path) -> None:
    died, gated, first = json.loads(proctor(project_3, "runs", "--json").stdout)
    assert (died["status"], gated["name"], first["name"]) == ("died", "gated", "first")
    assert version(project_3) == VERSION
    report = shown(project_3, "first")
    trials = {(trial["case"]["id"], trial["number"]): trial for trial in report["trials"]}
    assert len(trials) == 20
    assert trials["surrogate", 1]["replies"][0]["text"] == "half \ud83d and \U0001f600"
    assert [score["value"] for score in trials["refund", 2]["scores"]] == [1.0, 1.0, 1.0]
    assert [score["gates"] for score in trials["refund", 2]["scores"]] == [True, False, True]
    assert {trial["outcome"] for (case, _), trial in trials.items() if case == "kind"} == {"passed", "pending"}
    assert report["verdict"]["counts"] == first["counts"]
    assert shown(project_3, "gated")["verdict"]["reason"] == gated["verdict"]["reason"]


def test_the_cases_of_a_baseline_that_version_3_recorded_are_recognised(project_3: Path) -> None:
    from proctor.cases.formats.loading import load

    [suite] = load([project_3 / "suite.yaml"])
    recorded = {line.case: line.identity.content for line in read_baseline(project_3 / "suite.baseline.jsonl").lines}
    assert recorded == {case.id: content_key(case) for case in suite.cases if case.id in recorded}
    assert len(recorded) == len(CASES) + 1


def test_labels_and_grades_of_version_3_are_still_there(project_3: Path) -> None:
    store = Store(project_3 / ".proctor")
    run = store.find_run("first").id
    store.close()
    with HumanLabels(project_3 / ".proctor" / DATABASE_FILE) as labels:
        found = [(label.place, label.passed, label.comment) for label in labels.for_run(run)]
    assert (("orders", "shipped", 1, 0, "Contains"), True, "right") in found
    assert [place[1] for place, _, comment in found if comment == "kind"] == ["kind"]


@pytest.mark.parametrize("name", ["version_2", "version_3"])
def test_a_migrated_store_is_like_a_new_one(name: str, tmp_path: Path) -> None:
    def layout(path: Path) -> dict[str, Any]:
        with closing(sqlite3.connect(path)) as database:
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master ORDER BY name")]
            return {table: database.execute(f"PRAGMA table_info({table})").fetchall() for table in tables}

    (tmp_path / "old").mkdir()
    old, new = copy_project(name, tmp_path / "old") / ".proctor", tmp_path / "new"
    for folder in (old, new):
        Store(folder).close()
    assert layout(old / DATABASE_FILE) == layout(new / DATABASE_FILE)


@pytest.mark.parametrize("name", ["version_2", "version_3"])
def test_a_migrated_store_has_each_case_once_and_every_score(name: str, tmp_path: Path) -> None:
    folder = copy_project(name, tmp_path) / ".proctor"
    with closing(sqlite3.connect(folder / DATABASE_FILE)) as database:
        before = database.execute("SELECT sum(json_array_length(scores)) FROM trials").fetchone()[0]
    Store(folder).close()
    cases = len(CASES) + 2 * (name == "version_3")
    with closing(sqlite3.connect(folder / DATABASE_FILE)) as database:
        assert database.execute("SELECT count(*), count(DISTINCT key) FROM cases").fetchone() == (cases, cases)
        orphans = "SELECT count(*) FROM trials WHERE case_no NOT IN (SELECT no FROM cases)"
        assert database.execute(orphans).fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM scores JOIN trials t ON t.no = trial").fetchone() == (before,)


def test_users_find_the_columns_of_the_earlier_view_in_the_table_of_scores(project_3: Path) -> None:
    columns = "trial, place, evaluator, outcome, value, threshold, gates, turn, fingerprint, reasoning"
    query = f"SELECT {columns} FROM scores ORDER BY trial, place"
    with closing(sqlite3.connect(project_3 / ".proctor" / DATABASE_FILE)) as database:
        before = database.execute(query).fetchall()
    Store(project_3 / ".proctor").close()
    with closing(sqlite3.connect(project_3 / ".proctor" / DATABASE_FILE)) as database:
        assert database.execute(query).fetchall() == before


def read_version_2(data: dict[str, Any]) -> Case:
    """The case as it is read after its migration, which writes what today's encoding writes."""
    text, key, _ = encode_version_2_case(json.dumps(data))
    case = decode_case(text)
    assert (encode_case(case), case_key(encode_case(case))) == (text, key)
    return case


def test_the_whole_native_format_of_version_2_is_read() -> None:
    text = """
    {"id": "all", "description": "d", "tags": ["a"], "skip": "later", "inputs": {"x": 1}, "metadata": {"m": 1},
     "state": {"s": 1}, "final_state": {}, "repeat": 3, "timeout": 9, "x-own": [1],
     "turns": [
       {"input": {"q": 1}, "expected": {"output": null, "contains": {"any": ["a"], "all": ["b"]}, "context": ["c"],
          "tools": ["plain", {"name": "t", "args": {"a": 1, "b": {"$regex": "x+"}}, "count": 2, "substring": true,
             "extra_args": true, "result": null}]},
        "retrieval_context": ["r"], "files": [{"path": "f.pdf", "type": "pdf", "description": "d", "pages": [1]}],
        "evaluators": [], "metadata": {"t": 1}, "x-turn": 2},
       {"input": "then", "expected": ["a", "list"]}],
     "evaluators": ["A", {"B": {"depth": 2, "threshold": 0.5, "name": "b", "gate": false, "scope": "case",
        "output": "o", "timeout": 5, "output_path": "p", "retries": 1, "optional": true}}],
     "doubles": {"one": {"result": 1}, "two": [{"args": {"n": {"$approx": 2, "tolerance": 0.1}}, "error": "e",
        "delay": 0.5, "times": 1}, {"result": null}]}}
    """
    calls = (
        ExpectedCall("plain"),
        ExpectedCall("t", {"a": Equals(1), "b": Regex("x+")}, count=2, substring=True, extra_args=True, result=None),
    )
    first = Turn(
        {"q": 1},
        Expected(None, contains=Keywords(("a",), ("b",)), tools=calls, context=("c",)),
        evaluators=(),
        retrieval_context=("r",),
        files=(AttachedFile("f.pdf", None, "pdf", "d", {"pages": [1]}),),
        metadata={"t": 1},
        extra={"x-turn": 2},
    )
    assert read_version_2(json.loads(text)) == Case(
        id="all",
        turns=(first, Turn("then", Expected(["a", "list"]))),
        description="d",
        tags=("a",),
        evaluators=(
            EvaluatorSpec("A"),
            EvaluatorSpec(
                "B",
                {"depth": 2},
                0.5,
                "b",
                report_only=True,
                scope="case",
                output="o",
                timeout=5,
                output_path="p",
                retries=1,
                optional=True,
            ),
        ),
        inputs=(NamedData("x", 1),),
        metadata={"m": 1},
        state={"s": 1},
        final_state={},
        repeat=3,
        timeout=9,
        skip="later",
        extra={"x-own": [1]},
        mocks={
            "one": (ToolMock(result=1),),
            "two": (ToolMock(args={"n": Approx(2.0, 0.1)}, result=None, error="e", delay=0.5, times=1), ToolMock()),
        },
    )


def test_a_case_of_version_2_that_inherits_its_evaluators_still_does() -> None:
    data = {"id": "a", "input": "x", "expected": "y", "evaluators": ["..."]}
    assert read_version_2(data) == Case(id="a", turns=(Turn("x", Expected("y")),))


def test_a_simulated_case_of_version_2_has_the_limits_of_its_time() -> None:
    case = read_version_2({"id": "a", "scenario": {"start": "hi", "plan": "buy"}, "evaluators": ["E"]})
    assert case.scenario == Scenario("hi", "buy", max_turns=20, stop="</finished>")
    assert case.turns == (Turn("hi"),)
