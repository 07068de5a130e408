from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor
from proctor.agents.reply import Reply
from proctor.base.errors import StoreError, UsageError
from proctor.cases.suite import Criteria, EvaluatorSpec
from proctor.results.store.store import Store
from proctor.running.review.grading import (
    BadGrade,
    Grade,
    Gradebook,
    grading_row,
    open_gradebook,
    parse_rows,
    read_gradebook,
    read_grades,
    read_score,
)

EVALS = """
from proctor.evaluators.prompt_evaluators import create_agent_evaluator

tone = create_agent_evaluator("tone", "It is kind.")
"""


def waiting_run(folder: Path, criteria: Criteria, repeat: int = 1, cases: int = 2) -> Path:
    """A kept run in which every answer waits for a grade; returns its store."""
    (folder / "evals.py").write_text(EVALS)
    suite = proctor.Suite(
        "talk",
        tuple(proctor.Case(id=f"case-{n}", turns=(proctor.Turn(f"question {n}"),)) for n in range(cases)),
        evaluators=(EvaluatorSpec(f"{folder}/evals.py:tone", threshold=0.6),),
        criteria=criteria,
    )
    store = folder / "store"
    run = proctor.run(suite, agent=lambda question: question, repeat=repeat, store=store)
    assert proctor.verdict(run).exit_code == 3
    return store


def test_graders_see_the_answer_that_evaluators_see(tmp_path: Path) -> None:
    (tmp_path / "evals.py").write_text(EVALS)
    cases = (proctor.Case(id="total", turns=(proctor.Turn("how much?"),)),)
    suite = proctor.Suite("shop", cases, evaluators=(EvaluatorSpec(f"{tmp_path}/evals.py:tone"),))
    proctor.run(suite, agent=lambda question: Reply("Here it is.", structured={"total": 3}), store=tmp_path / "store")

    [item] = read_gradebook(tmp_path / "store", "last").pending
    assert item.answer == {"total": 3}


def grade_all(store: Path, *scores: float) -> Any:
    with open_gradebook(store, "last") as book:
        book.record([Grade(w.address, s, "", "ada") for w, s in zip(book.pending, scores, strict=True)])
        assert not book.pending
        return book.verdict()


@pytest.mark.parametrize(
    ("criteria", "scores", "outcome"),
    [
        (Criteria(), (1.0, 0.7), "passed"),
        (Criteria(), (1.0, 0.59), "failed"),
        (Criteria(pct=0.5), (1.0, 0.0), "passed"),
        (Criteria(threshold=0.2), (0.2, 0.3), "passed"),
    ],
)
def test_grades_are_judged_by_the_criteria_that_the_run_had(
    criteria: Criteria, scores: tuple[float, ...], outcome: str, tmp_path: Path
) -> None:
    verdict = grade_all(waiting_run(tmp_path, criteria), *scores)

    assert verdict.outcome == outcome
    kept = Store(tmp_path / "store")
    assert proctor.verdict(kept.find_run("last")).outcome == outcome
    found = kept.find_run("last")
    assert found.stored_verdict is not None
    assert found.stored_verdict.outcome == outcome
    assert found.counts is not None
    assert found.counts["pending"] == 0


@pytest.mark.parametrize(
    ("rule", "scores", "outcome"),
    [("any", (0.0, 1.0), "passed"), ("all", (0.0, 1.0), "failed"), ("mean", (0.2, 1.0), "passed")],
)
def test_the_repeats_of_a_case_combine_as_the_suite_says(
    rule: Any, scores: tuple[float, ...], outcome: str, tmp_path: Path
) -> None:
    store = waiting_run(tmp_path, Criteria(trials=rule), repeat=2, cases=1)

    assert grade_all(store, *scores).outcome == outcome


def test_what_somebody_else_has_graded_meanwhile_is_never_written_over(tmp_path: Path) -> None:
    store = waiting_run(tmp_path, Criteria())
    late = read_gradebook(store, "last")
    grade_all(store, 1.0, 1.0)

    with pytest.raises(StoreError, match="graded by somebody else in the meantime"):
        late.record([Grade(late.pending[0].address, 0.0, "", "eve")])

    assert [s.value for t in Store(store).find_run("last").trials for s in t.scores] == [1.0, 1.0]


def test_what_the_agent_answered_is_untouched_by_grading(tmp_path: Path) -> None:
    store = waiting_run(tmp_path, Criteria())
    before = list(Store(store).find_run("last").trials)

    grade_all(store, 1.0, 0.0)

    after = list(Store(store).find_run("last").trials)
    assert [(t.replies, t.case, t.duration_ms, t.end_reason) for t in after] == [
        (t.replies, t.case, t.duration_ms, t.end_reason) for t in before
    ]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Gradebook:
    return read_gradebook(waiting_run(tmp_path_factory.mktemp("rows"), Criteria()), "last")


NAMES = st.sampled_from(["case", "evaluator", "score", "suite", "trial", "turn", "reasoning", "grader", "else"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["case-0", "tone"])
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2))


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=5) | VALUES, max_size=4))
def test_rows_of_any_kind_are_taken_or_refused_and_never_break(book: Gradebook, rows: Any) -> None:
    try:
        grades = read_grades(parse_rows(json.dumps(rows), "rows"), book, "ada")
    except UsageError:
        return
    assert all(0.0 <= grade.score <= 1.0 for grade in grades)


@given(st.text() | st.text('{}[]",:0 \n'))
def test_text_of_any_kind_is_rows_or_refused(book: Gradebook, text: str) -> None:
    try:
        read_grades(parse_rows(text, "rows"), book, "ada")
    except UsageError:
        return
    pytest.fail("no grade can come out of this")


@given(PLAIN)
def test_a_score_is_between_0_and_1_or_refused(value: Any) -> None:
    try:
        number = read_score(value)
    except BadGrade:
        return
    assert 0.0 <= number <= 1.0
    assert math.isfinite(number)


def test_the_rows_that_are_handed_out_can_be_handed_back(book: Gradebook) -> None:
    rows = [{**grading_row(item), "score": 0.5} for item in book.pending]

    for text in (json.dumps(rows), "\r\n".join(map(json.dumps, rows)), json.dumps(rows, indent=2)):
        grades = read_grades(parse_rows(text, "rows"), book, "ada")
        assert [grade.address for grade in grades] == [item.address for item in book.pending]
