from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND
from pseudo_terminal import run_in_terminal

from proctor.results.store.store import Store
from proctor.running.resume import exclusive_run

EVALS = """
from proctor.evaluators.prompt_evaluators import create_agent_evaluator

tone = create_agent_evaluator("tone", "It is kind.")
facts = create_agent_evaluator("facts", "It is true.")
"""

SUITE = """
name: faq
agent: agents.py:echo
evaluators:
  - evals.py:tone
  - evals.py:facts: {threshold: 0.8}
cases:
  - id: one
    input: First?
    expected: The first.
  - id: two
    input: Second?
    evaluators: [evals.py:tone, checks.py:good]
"""


@pytest.fixture
def graded(project: Path, proctor: Callable[..., Any]) -> Path:
    """A run whose scores wait for a person."""
    (project / "evals.py").write_text(EVALS)
    (project / "faq.yaml").write_text(SUITE)
    assert proctor("test", "faq.yaml").code == 3
    return project


def rows(*filled: dict[str, Any]) -> str:
    return json.dumps(list(filled))


def kept(project: Path) -> dict[tuple[str, str], tuple[str, float | None]]:
    run = Store(project / ".proctor").find_run("last")
    return {(t.case.id, s.evaluator): (s.outcome.value, s.value) for t in run.trials for s in t.scores}


def test_what_waits_is_listed_with_criteria_question_and_answer(graded: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("grade")

    assert ended.code == 0
    assert "faq/one  facts" in ended.out
    for line in ("criteria  It is true.", "input     First?", "expected  The first.", "answer    First?"):
        assert f"  {line}" in ended.out
    assert "3 scores need grading" in ended.out


def test_the_rows_of_json_come_back_filled_in(graded: Path, proctor: Callable[..., Any]) -> None:
    asked = json.loads(proctor("grade", "--json").out)
    assert asked[0] == {
        "schema": "proctor.pending-row/1",
        "suite": "faq",
        "case": "one",
        "trial": 1,
        "turn": None,
        "evaluator": "tone",
        "criteria": "It is kind.",
        "question": "First?",
        "expected": "The first.",
        "answer": "First?",
        "threshold": 0.5,
        "score": None,
        "reasoning": "",
    }
    (graded / "g.json").write_text(json.dumps([{**row, "score": 0.8, "reasoning": "fine"} for row in asked]))

    ended = proctor("grade", "last", "--from", "g.json", "--grader", "ada")

    assert (ended.code, ended.out.splitlines()) == (
        0,
        ["3 scores graded, none left", "passed: 2 of 2 cases passed"],
    )
    (first, _) = Store(graded / ".proctor").find_run("last").trials
    assert first.outcome == "passed"
    assert [(s.value, s.reasoning, s.details["graded_by"]) for s in first.scores] == [(0.8, "fine", "ada")] * 2
    assert first.scores[0].details["criteria"] == "It is kind."
    assert first.scores[0].details["graded_at"].endswith("Z")
    assert "passed" in proctor("runs").out
    assert "0 pending" not in proctor("show").out
    assert json.loads(proctor("grade", "--json").out) == []
    assert "no score needs grading" in proctor("grade").out


def test_a_grade_below_the_threshold_of_the_suite_fails_the_trial_and_the_run(
    graded: Path, proctor: Callable[..., Any]
) -> None:
    lines = [
        {"case": "one", "evaluator": "tone", "score": "pass"},
        {"case": "one", "evaluator": "facts", "score": 0.79, "grader": "bot"},
        {"case": "two", "evaluator": "tone", "score": True},
    ]
    (graded / "g.jsonl").write_text("\n\n".join(map(json.dumps, lines)) + "\n")

    ended = proctor("grade", "--from", "g.jsonl")

    assert ended.code == 1
    assert "failed: 1 of 2 cases passed" in ended.out
    assert kept(graded) == {
        ("one", "tone"): ("passed", 1.0),
        ("one", "facts"): ("failed", 0.79),
        ("two", "tone"): ("passed", 1.0),
        ("two", "good"): ("passed", 1.0),
    }


def test_what_is_left_ungraded_leaves_the_run_inconclusive(graded: Path, proctor: Callable[..., Any]) -> None:
    filled = rows({"case": "two", "evaluator": "tone", "score": 1}, {"case": "one", "evaluator": "tone", "score": None})
    (graded / "g.json").write_text(filled)

    ended = proctor("grade", "--from", "g.json")

    assert ended.code == 3
    assert "1 score graded, 2 scores left" in ended.out
    assert kept(graded)["one", "tone"] == ("pending", None)


WRONG = {
    "an unknown case": ({"case": "ono", "evaluator": "tone", "score": 1}, "has no case ono; did you mean 'one'?"),
    "an unknown evaluator": ({"case": "one", "evaluator": "tune", "score": 1}, "no evaluator tune; did you mean"),
    "an unknown suite": ({"suite": "x", "case": "one", "evaluator": "tone", "score": 1}, "has no suite x"),
    "a suite that is a list": ({"suite": [], "case": "one", "evaluator": "tone", "score": 1}, "has no suite []"),
    "a trial that is not there": ({"case": "one", "trial": 2, "evaluator": "tone", "score": 1}, "with this trial"),
    "a turn that is not there": ({"case": "one", "turn": 0, "evaluator": "tone", "score": 1}, "with this turn"),
    "not a number": ({"case": "one", "evaluator": "tone", "score": float("nan")}, "between 0 and 1"),
    "too much": ({"case": "one", "evaluator": "tone", "score": 7}, "pass or fail, not 7"),
    "too little": ({"case": "one", "evaluator": "tone", "score": -0.1}, "between 0 and 1"),
    "infinity": ({"case": "one", "evaluator": "tone", "score": float("inf")}, "between 0 and 1"),
    "words": ({"case": "one", "evaluator": "tone", "score": "very good"}, "not very good"),
    "a list": ({"case": "one", "evaluator": "tone", "score": [1]}, "between 0 and 1"),
    "no score": ({"case": "one", "evaluator": "tone"}, "has no score"),
    "no case": ({"evaluator": "tone", "score": 1}, "must have 'case'"),
    "no evaluator": ({"case": "one", "score": 1}, "must have 'evaluator'"),
    "scored already": ({"case": "two", "evaluator": "good", "score": 1}, "does not need a grade: passed with 1"),
    "a reason that is no text": ({"case": "one", "evaluator": "tone", "score": 1, "reasoning": 5}, "must be text"),
    "a misspelt key": ({"case": "one", "evaluator": "tone", "scores": 1}, "unknown key scores; did you mean 'score'?"),
    "no object": (5, "must be an object"),
    "half a pair": ({"case": "\ud800", "evaluator": "tone", "score": 1}, "has no case \\ud800"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_told_and_nothing_is_graded(name: str, graded: Path, proctor: Callable[..., Any]) -> None:
    row, message = WRONG[name]
    (graded / "g.json").write_text(json.dumps([{"case": "two", "evaluator": "tone", "score": 1}, row]))

    ended = proctor("grade", "--from", "g.json")

    assert ended.code == 2
    assert "g.json: row 2: " in ended.err
    assert message in ended.err
    assert "1 problem; nothing was graded" in ended.err
    assert kept(graded)["two", "tone"] == ("pending", None)


def test_all_wrong_rows_are_told_at_once(graded: Path, proctor: Callable[..., Any]) -> None:
    (graded / "g.json").write_text(json.dumps([row for row, _ in WRONG.values()]))

    ended = proctor("grade", "--from", "g.json")

    assert f"{len(WRONG)} problems; nothing was graded" in ended.err


def test_two_grades_for_one_score_are_refused(graded: Path, proctor: Callable[..., Any]) -> None:
    row = {"case": "one", "evaluator": "tone", "score": 1}
    (graded / "g.json").write_text(rows(row, row))

    assert "an earlier row has a grade for the same score" in proctor("grade", "--from", "g.json").err


def test_a_score_is_graded_once(graded: Path, proctor: Callable[..., Any]) -> None:
    (graded / "g.json").write_text(rows({"case": "one", "evaluator": "tone", "score": 1, "grader": "ada"}))
    assert proctor("grade", "--from", "g.json").code == 3

    ended = proctor("grade", "--from", "g.json")

    assert ended.code == 2
    assert "does not need a grade: passed with 1, graded by ada" in ended.err


def test_a_row_that_could_mean_several_scores_must_say_which(project: Path, proctor: Callable[..., Any]) -> None:
    (project / "evals.py").write_text(EVALS)
    (project / "faq.yaml").write_text(SUITE)
    proctor("test", "faq.yaml", "--repeat", "2")
    (project / "g.json").write_text(rows({"case": "one", "evaluator": "tone", "score": 1}))

    ended = proctor("grade", "--from", "g.json")
    assert (ended.code, "matches 2 scores; add trial" in ended.err) == (2, True)

    (project / "g.json").write_text(rows({"case": "one", "trial": 2, "evaluator": "tone", "score": 1}))
    assert proctor("grade", "--from", "g.json").code == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no row has a score"),
        (b"[]", "no row has a score"),
        (b"{not json\n{", "g.json:1: is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"null", "must be an object"),
        (b'"text"', "must be an object"),
    ],
)
def test_a_file_that_holds_no_grades_is_told(
    content: bytes, message: str, graded: Path, proctor: Callable[..., Any]
) -> None:
    (graded / "g.json").write_bytes(content)

    ended = proctor("grade", "--from", "g.json")

    assert (ended.code, message in ended.err) == (2, True), ended.err


def test_what_cannot_be_done_is_told(graded: Path, proctor: Callable[..., Any]) -> None:
    assert "no such" in proctor("grade", "--from", "absent.json").err.lower()
    assert proctor("grade", "--from", "absent.json").code == 2
    assert proctor("grade", "--from", "absent.json", "--json").code == 2
    assert "no run 'nope'" in proctor("grade", "nope").err
    assert proctor("grade", "--store", "elsewhere").code == 2


def test_a_run_that_somebody_else_is_working_on_is_left_alone(graded: Path, proctor: Callable[..., Any]) -> None:
    store = Store(graded / ".proctor")
    (graded / "g.json").write_text(rows({"case": "one", "evaluator": "tone", "score": 1}))

    with exclusive_run(store, store.find_run("last").id):
        ended = proctor("grade", "--from", "g.json")
        assert proctor("grade").code == 0

    assert (ended.code, "another process is using run" in ended.err) == (4, True)
    assert proctor("grade", "--from", "g.json").code == 3


def at_a_terminal(project: Path, typed: str, interrupted_at: str | None = None) -> tuple[int, str]:
    """`proctor grade` on a terminal of its own, where somebody types, and may press Ctrl-C at some words."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    command = [*COMMAND, "grade", "--grader", "ada"]
    return run_in_terminal(command, project, typed=typed, environment=environment, interrupt_at=interrupted_at)


@pytest.mark.process
def test_at_a_terminal_each_answer_is_asked_about(graded: Path) -> None:
    code, said = at_a_terminal(graded, "7\nnan\npass\nkind enough\n0.5\n\n\n")

    assert said.count("score must be a number between 0 and 1") == 2
    assert "1 of 3" in said
    assert "score (threshold 0.8)" in said
    assert "Traceback" not in said
    assert "2 scores graded, 1 score left" in said
    assert code == 1
    assert kept(graded) | {("two", "good"): ("passed", 1.0)} == {
        ("one", "tone"): ("passed", 1.0),
        ("one", "facts"): ("failed", 0.5),
        ("two", "tone"): ("pending", None),
        ("two", "good"): ("passed", 1.0),
    }
    (first, _) = Store(graded / ".proctor").find_run("last").trials
    assert (first.scores[0].reasoning, first.scores[0].details["graded_by"]) == ("kind enough", "ada")


@pytest.mark.process
@pytest.mark.parametrize(
    ("end", "interrupted_at", "code"),
    [("q\n", None, 3), ("\x04", None, 3), ("", "threshold 0.8): ", 130)],
    ids=["q", "ctrl-d", "ctrl-c"],
)
def test_whoever_stops_keeps_what_was_graded(graded: Path, end: str, interrupted_at: str | None, code: int) -> None:
    ended, said = at_a_terminal(graded, f"1\nfine\n{end}", interrupted_at)

    assert "Traceback" not in said
    assert ended == code
    assert kept(graded)["one", "tone"] == ("passed", 1.0)
    assert kept(graded)["one", "facts"] == ("pending", None)


def test_grades_of_a_conversation_are_asked_for_turn_by_turn_and_for_the_whole(
    project: Path, proctor: Callable[..., Any]
) -> None:
    (project / "evals.py").write_text(EVALS)
    (project / "talk.yaml").write_text(
        "name: talk\nagent: agents.py:echo\ncases:\n  - id: c\n"
        "    evaluators: [evals.py:tone, {evals.py:facts: {scope: case}}]\n"
        "    turns:\n      - input: Hi\n      - input: {a: 1}\n        expected: bye\n"
    )
    assert proctor("test", "talk.yaml").code in (3, 4)

    asked = json.loads(proctor("grade", "--json").out)

    shown = [(row["evaluator"], row["turn"], row["question"]) for row in asked]
    assert shown == [("tone", 0, "Hi"), ("tone", 1, {"a": 1}), ("facts", None, ["Hi", {"a": 1}])]
    assert "at turn 2" in proctor("grade").out


def test_reports_show_a_waiting_score_as_such_and_never_as_a_pass(graded: Path, proctor: Callable[..., Any]) -> None:
    proctor("show", "--json", "r.json", "--junit", "r.xml", "--html", "r.html")

    report = json.loads((graded / "r.json").read_text())
    assert (report["verdict"]["outcome"], report["verdict"]["exit_code"]) == ("inconclusive", 3)
    assert report["trials"][0]["scores"][0]["details"] == {"criteria": "It is kind."}
    assert report["trials"][0]["scores"][0]["value"] is None
    assert 'message="pending: tone needs grading: It is kind."' in (graded / "r.xml").read_text()
    assert '<header class="banner pending">' in (graded / "r.html").read_text()
    assert "PEND" in proctor("show").out
