"""Stored answers in which secrets are masked are never scored as if the mask were the answer."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import only, run, trials_of

import proctor
from proctor import Case, Evaluable, Reply, Suite, ToolCall, Turn
from proctor.cases.evaluator_specs import read_evaluators
from proctor.cases.suite import Criteria, Settings
from proctor.results.masking import masked_parts
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.run_files import export_run, import_run
from proctor.results.store.store import Store
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict
from proctor.running.rescore import rejudge, rescore
from proctor.running.settings import RunOptions

Found = tuple[Run, RunVerdict]

# Put together here, so that no line of this file looks like a key to those who scan repositories for keys.
TOKEN = "ghp" + "_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
OTHER_TOKEN = "ghp" + "_" + "bC4eF6gH8jK0lM2nO4qR6sT8uV0wX2yZ4aB6"
MASK = f"[secret: github token, {len(TOKEN)} characters]"
LEAK = f"Your key is {TOKEN}."


def leaky(question: str) -> Reply:
    call = ToolCall("login", {"header": TOKEN}, result={"seen": TOKEN})
    return Reply(LEAK, (call,), retrieval_context=(f"The key is {TOKEN}",), state={"header": TOKEN}, duration_ms=5.0)


def has_no_key(output: str) -> bool:
    return TOKEN not in output


def has_no_key_in_calls(tool_calls: Any) -> bool:
    return TOKEN not in str(tool_calls)


def has_no_key_in_passages(retrieval_context: Any) -> bool:
    return TOKEN not in str(retrieval_context)


def has_no_key_in_turns(turns: Any) -> bool:
    return TOKEN not in str(turns)


def has_no_key_in_state(state: Any) -> bool:
    return TOKEN not in str(state)


def has_no_key_anywhere(evaluable: Evaluable) -> bool:
    try:
        return TOKEN not in repr(evaluable)
    except Exception:
        return True


def is_quick(evaluable: Evaluable) -> bool:
    return (evaluable.duration_ms or 0.0) < 1e6 and evaluable.input == "go"


READERS = [
    has_no_key,
    has_no_key_in_calls,
    has_no_key_in_passages,
    has_no_key_in_turns,
    has_no_key_in_state,
    has_no_key_anywhere,
]


def suite_of(*evaluators: Any, expected: Any = None) -> Suite:
    return Suite("desk", [Case("go", expected, id="leak")], evaluators=list(evaluators), agent=leaky)


def scored_again(store: Path, *evaluators: Any, suite: Suite | None = None) -> Found:
    """The stored answers, scored with these evaluators or with those of another suite."""
    return run(suite or suite_of(*evaluators), store=store, reuse=True)


def scores(found: Found) -> dict[str, Outcome]:
    return {score.evaluator: score.outcome for score in only(found).scores}


@pytest.mark.parametrize("evaluator", [proctor.evaluators.PIILeakage(), *READERS])
def test_a_leak_that_was_detected_stays_one(tmp_path: Path, evaluator: Any) -> None:
    first = run(suite_of(evaluator), store=tmp_path)
    second = scored_again(tmp_path, evaluator)
    third = scored_again(tmp_path, evaluator)

    assert [found[1].exit_code for found in (first, second, third)] == [1, 1, 1]
    assert only(second).reused
    assert only(third).scores[0].reasoning == only(second).scores[0].reasoning
    assert "1 score depends on text in which secrets are masked" in second[0].masked_note


@pytest.mark.parametrize("evaluator", READERS)
def test_an_evaluator_that_did_not_see_the_text_gives_an_error(tmp_path: Path, evaluator: Any) -> None:
    run(suite_of(is_quick), store=tmp_path)
    found = scored_again(tmp_path, evaluator)

    assert scores(found) == {evaluator.__name__: Outcome.ERROR}
    assert found[1].exit_code == 4
    assert "masked" in only(found).scores[0].reasoning
    assert "run the case again" in only(found).scores[0].reasoning
    assert "1 is an error" in found[0].masked_note


def test_an_evaluator_that_reads_no_masked_text_scores_as_usual(tmp_path: Path) -> None:
    run(suite_of(has_no_key), store=tmp_path)
    found = scored_again(tmp_path, is_quick)

    assert scores(found) == {"is_quick": Outcome.PASSED}
    assert found[0].masked_note == ""


def test_an_expected_secret_passes_again(tmp_path: Path) -> None:
    expecting = suite_of("ExactMatch", expected=LEAK)
    first = run(expecting, store=tmp_path)
    second = scored_again(tmp_path, suite=expecting)

    assert (first[1].exit_code, second[1].exit_code) == (0, 0)


def test_two_cases_with_one_input_take_over_their_own_scores(tmp_path: Path) -> None:
    cases = [Case("go", id="a", evaluators=["PIILeakage"]), Case("go", id="b", evaluators=[has_no_key])]
    suite = Suite("desk", cases, agent=leaky)
    run(suite, store=tmp_path)
    again = run(suite, store=tmp_path, reuse=True)
    outcomes = [(trial.case.id, trial.reused, trial.outcome) for trial in trials_of(again)]
    assert outcomes == [("a", True, Outcome.FAILED), ("b", True, Outcome.FAILED)]


@pytest.mark.parametrize("expected", [LEAK.replace(TOKEN, OTHER_TOKEN), "nothing"])
def test_a_score_is_not_taken_over_for_another_expectation(tmp_path: Path, expected: str) -> None:
    run(suite_of("ExactMatch", expected=LEAK), store=tmp_path)
    found = scored_again(tmp_path, suite=suite_of("ExactMatch", expected=expected))

    assert scores(found) == {"ExactMatch": Outcome.ERROR}


def test_an_agent_may_print_a_mask_itself(tmp_path: Path) -> None:
    def echo(question: str) -> str:
        return f"it is {MASK}"

    run(replace(suite_of(has_no_key), agent=echo), store=tmp_path)
    found = scored_again(tmp_path, suite=replace(suite_of(has_no_key_in_turns), agent=echo))

    assert scores(found) == {"has_no_key_in_turns": Outcome.PASSED}


def test_a_new_threshold_decides_about_the_score_that_was_given(tmp_path: Path) -> None:
    def half(output: str) -> float:
        return 0.5 if TOKEN in output else 1.0

    suite = suite_of(proctor.evaluator(threshold=0.4)(half))
    stricter = suite_of(proctor.evaluator(threshold=0.9)(half))
    assert run(suite, store=tmp_path)[1].exit_code == 0
    found = scored_again(tmp_path, suite=stricter)

    assert [(score.value, score.threshold, score.outcome) for score in only(found).scores] == [
        (0.5, 0.9, Outcome.FAILED)
    ]


def test_the_masked_turn_of_a_conversation_hides_only_what_it_is_part_of(tmp_path: Path) -> None:
    def agent(question: str) -> str:
        return LEAK if question == "first" else "fine"

    def suite(*evaluators: Any) -> Suite:
        case = Case(turns=[Turn("first"), Turn("second")], id="two")
        return Suite("desk", [case], evaluators=list(evaluators), agent=agent)

    run(suite(is_quick), store=tmp_path)
    found = run(suite(has_no_key, has_no_key_in_turns), store=tmp_path, reuse=True)

    assert [(score.evaluator, score.turn, score.outcome) for score in only(found).scores] == [
        ("has_no_key", 0, Outcome.ERROR),
        ("has_no_key_in_turns", 0, Outcome.ERROR),
        ("has_no_key", 1, Outcome.PASSED),
        ("has_no_key_in_turns", 1, Outcome.ERROR),
    ]


def again(store: Path, **options: Any) -> Found:
    return rescore(store, "last", options=RunOptions(backoff=0.0), **options)


def test_a_suite_from_the_store_takes_its_scores_over(tmp_path: Path) -> None:
    """The suite has no file, so its masked case and the masked arguments of its evaluator come from the store."""
    other = {"Contains": {"all": [OTHER_TOKEN], "name": "other"}}
    suite = suite_of("PIILeakage", {"Contains": {"any": [TOKEN]}}, other)
    run(suite, store=tmp_path)
    found = again(tmp_path)

    assert scores(found) == {
        "PIILeakage": Outcome.FAILED,
        "Contains": Outcome.PASSED,
        "other": Outcome.FAILED,
    }
    assert "3 scores depend" in found[0].masked_note


def test_an_evaluator_of_the_command_line_gives_an_error_unless_it_is_the_same(tmp_path: Path) -> None:
    run(suite_of("PIILeakage"), store=tmp_path)
    same = again(tmp_path, evaluators=read_evaluators(["PIILeakage"]))
    other = again(tmp_path, evaluators=read_evaluators([{"Contains": {"any": ["key"]}}]))

    assert scores(same) == {"PIILeakage": Outcome.FAILED}
    assert scores(other) == {"Contains": Outcome.ERROR}


def test_answers_that_are_kept_with_their_secrets_are_scored(tmp_path: Path) -> None:
    run(suite_of(is_quick), store=tmp_path, keep_secrets=True)
    found = run(suite_of(has_no_key), store=tmp_path, reuse=True, keep_secrets=True)

    assert scores(found) == {"has_no_key": Outcome.FAILED}
    assert found[0].masked_note == ""


def test_a_run_in_memory_is_rescored_with_its_secrets() -> None:
    first = proctor.run(suite_of(is_quick))
    second = first.rescore(evaluators=[has_no_key])

    assert TOKEN not in str(first.trials[0].replies)
    assert [case.id for case in second.failed] == ["leak"]


def test_a_resumed_run_does_not_score_masked_answers(tmp_path: Path) -> None:
    def suite(criteria: Criteria) -> Suite:
        cases = [Case("go", id="first"), Case("go on", id="second")]
        return Suite("desk", cases, evaluators=[has_no_key], agent=leaky, criteria=criteria)

    one_by_one = Settings(parallel=1)
    first = trials_of(run(suite(Criteria()), store=tmp_path, maxfail=1, overrides=one_by_one))
    found = run(suite(Criteria(threshold=0.4)), store=tmp_path, resume=True, overrides=one_by_one)

    assert [trial.case.id for trial in first] == ["first"]
    assert [(trial.reused, trial.outcome) for trial in trials_of(found)] == [
        (True, Outcome.FAILED),
        (False, Outcome.FAILED),
    ]


def without_record(store: Path) -> None:
    """Make a store look as an earlier version wrote it."""
    with sqlite3.connect(store / "results.db") as database:
        for no, content in database.execute("SELECT no, content FROM trials").fetchall():
            data = {key: value for key, value in json.loads(content).items() if not key.startswith("masked")}
            database.execute("UPDATE trials SET content = ? WHERE no = ?", (json.dumps(data), no))


def test_in_an_older_store_every_mask_counts(tmp_path: Path) -> None:
    run(suite_of(has_no_key), store=tmp_path)
    without_record(tmp_path)

    same, other = scored_again(tmp_path, has_no_key), scored_again(tmp_path, has_no_key_in_calls, is_quick)

    assert scores(same) == {"has_no_key": Outcome.FAILED}
    assert scores(other) == {"has_no_key_in_calls": Outcome.ERROR, "is_quick": Outcome.PASSED}


def test_a_score_that_an_earlier_version_gave_to_masked_text_is_not_taken_over(tmp_path: Path) -> None:
    run(suite_of(has_no_key), store=tmp_path)
    scored_again(tmp_path, has_no_key)
    with sqlite3.connect(tmp_path / "results.db") as database:
        database.execute("DELETE FROM trials WHERE no = 1")
    without_record(tmp_path)

    assert scores(scored_again(tmp_path, has_no_key)) == {"has_no_key": Outcome.ERROR}


def test_the_record_survives_export_and_import(tmp_path: Path) -> None:
    first, _ = run(suite_of(has_no_key), store=tmp_path / "here")
    with (tmp_path / "run.jsonl").open("w") as out:
        export_run(first, out)
    lines = (tmp_path / "run.jsonl").read_text().splitlines()
    imported, _ = import_run(Store(tmp_path / "there"), lines, "run.jsonl")

    def parts(trial: Trial) -> set[str]:
        return {part for part in masked_parts(trial) if part.startswith("replies")}

    assert parts(imported.trials[0]) == parts(first.trials[0]) != set()


def test_an_answer_that_cannot_be_judged_again_is_not_counted_as_the_same_verdict(tmp_path: Path) -> None:
    first, _ = run(suite_of("PIILeakage"), store=tmp_path)

    assert rejudge(Store(tmp_path), first.id, {("desk", "leak")}, RunOptions()) == {}


def test_an_input_with_another_secret_of_the_same_kind_is_asked_again(tmp_path: Path) -> None:
    """Both inputs have the same mask in the store, so only the agent can say what it answers to the second."""
    log = str(tmp_path / "log")

    def agent(question: str) -> str:
        with Path(log).open("a") as file:
            file.write(f"{question}\n")
        return "done"

    def answer(question: str) -> None:
        suite = Suite("s", [Case(question, "done", id="a")], evaluators=["ExactMatch"], agent=agent)
        assert proctor.run(suite, store=tmp_path, reuse=True, progress=False).passed

    for question in (f"Use {TOKEN}.", f"Use {OTHER_TOKEN}.", "Use nothing.", "Use nothing."):
        answer(question)
    assert Path(log).read_text().splitlines() == [f"Use {TOKEN}.", f"Use {OTHER_TOKEN}.", "Use nothing."]


@pytest.mark.parametrize(("secret", "is_kept"), [(TOKEN, True), (OTHER_TOKEN, False)])
def test_a_case_whose_secret_has_changed_runs_again_when_a_run_is_continued(
    tmp_path: Path, secret: str, is_kept: bool
) -> None:
    log = tmp_path / "log"

    def agent(question: str) -> str:
        with log.open("a") as file:
            file.write(f"{question}\n")
        return "done"

    def suite(token: str) -> Suite:
        cases = [Case(f"Use {token}.", "nothing", id="first"), Case("go on", id="second")]
        return Suite("desk", cases, evaluators=["ExactMatch"], agent=agent)

    one_by_one = Settings(parallel=1)
    run(suite(TOKEN), store=tmp_path, maxfail=1, overrides=one_by_one)
    run(suite(secret), store=tmp_path, resume=True, overrides=one_by_one)
    again = [] if is_kept else [f"Use {secret}."]
    assert log.read_text().splitlines() == [f"Use {TOKEN}.", *again, "go on"]


@pytest.mark.parametrize(
    ("secret", "expected", "outcome"),
    [(TOKEN, "fine", Outcome.PASSED), (TOKEN, "bad", Outcome.FAILED), (OTHER_TOKEN, "fine", Outcome.ERROR)],
)
def test_the_answer_to_an_input_with_another_secret_is_not_scored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str, expected: str, outcome: Outcome
) -> None:
    def write(token: str, expected: str) -> None:
        case = f"{{id: a, input: Use {token}., expected: {expected}}}"
        (tmp_path / "desk.yaml").write_text(f"agent: app.py:agent\nevaluators: [ExactMatch]\ncases: [{case}]\n")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text("def agent(question):\n    return 'fine'\n")
    write(TOKEN, "fine")
    proctor.run("desk.yaml", store=tmp_path, progress=False)
    write(secret, expected)
    found = rescore(tmp_path, "last", options=RunOptions())
    assert only(found).outcome is outcome
    assert ("the input of the case has changed" in only(found).end_reason) is (outcome is Outcome.ERROR)
