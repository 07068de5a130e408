"""An evaluator's own verdict decides, and its score stays what it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import case, echo, only, run, suite

import proctor
from proctor.cases.suite import Criteria, EvaluatorSpec
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.results.reasons import score_value
from proctor.results.run import ScoreThreshold
from proctor.results.score import Outcome, Score
from proctor.results.store.store import Store

ME = "test_own_verdict"


def low_but_good(evaluable: Evaluable) -> Evaluation:
    return Evaluation(0.4, "good enough", passed=True)


def high_but_bad(evaluable: Evaluable) -> Evaluation:
    return Evaluation(0.9, "one thing is wrong", passed=False)


def low_grade(context: Any) -> Any:
    from proctor.compat.holodeck import GraderResult  # only the tests that need HoloDeck call this

    return GraderResult(score=0.4, passed=True)


def high_grade(context: Any) -> Any:
    from proctor.compat.holodeck import GraderResult

    return GraderResult(score=0.9, passed=False)


def neither(evaluable: Evaluable) -> Evaluation:
    return Evaluation(0.9, passed="yes")  # type: ignore[arg-type]


def score_by(spec: EvaluatorSpec, **options: Any) -> Score:
    (score,) = only(run(suite([case("c")], evaluators=(spec,)), agent=echo, **options)).scores
    return score


def grader(name: str) -> Any:
    return pytest.param(EvaluatorSpec("CodeGrader", {"grader": f"{ME}:{name}"}), marks=pytest.mark.needs("holodeck"))


GOOD = [EvaluatorSpec(f"{ME}:low_but_good"), grader("low_grade")]
BAD = [EvaluatorSpec(f"{ME}:high_but_bad"), grader("high_grade")]


@pytest.mark.parametrize("spec", GOOD, ids=lambda spec: spec.name)
def test_a_low_score_that_the_evaluator_passes_is_shown_as_it_is_and_passes(spec: EvaluatorSpec) -> None:
    score = score_by(spec)
    assert (score.value, score.outcome, score.threshold) == (0.4, Outcome.PASSED, 0.5)
    assert score_value(score) == "0.40"


@pytest.mark.parametrize("spec", BAD, ids=lambda spec: spec.name)
def test_a_high_score_that_the_evaluator_fails_is_shown_as_it_is_and_fails(spec: EvaluatorSpec) -> None:
    score = score_by(spec)
    assert (score.value, score.outcome) == (0.9, Outcome.FAILED)
    assert score_value(score) == "0.90, failed by the evaluator"


@pytest.mark.parametrize("spec", BAD, ids=lambda spec: spec.name)
def test_it_fails_also_at_a_threshold_of_zero(spec: EvaluatorSpec) -> None:
    without_bar = suite([case("c")], evaluators=(spec,), criteria=Criteria(threshold=0.0))
    (score,) = only(run(without_bar, agent=echo)).scores
    assert (score.outcome, score.threshold) == (Outcome.FAILED, 0.0)


def test_it_is_still_there_when_the_run_is_read_from_its_store(tmp_path: Path) -> None:
    score_by(GOOD[0], store=tmp_path / "s")
    (trial,) = Store(tmp_path / "s").find_run("last").trials
    assert [(score.value, score.outcome) for score in trial.scores] == [(0.4, Outcome.PASSED)]


def test_a_verdict_that_is_neither_true_nor_false_is_an_error_of_the_evaluator() -> None:
    score = score_by(EvaluatorSpec(f"{ME}:neither"))
    assert score.outcome is Outcome.ERROR
    assert "passed='yes'" in score.reasoning


def test_it_decides_in_assertions_too() -> None:
    assert ScoreThreshold(0.5)([[Evaluation(0.4, passed=True)]])[0]
    assert not ScoreThreshold(0.5)([[Evaluation(0.9, passed=False)]])[0]
    answered: Any = [Evaluable(eval_input="hello", eval_output="hello")]  # type: ignore[arg-type]
    asyncio.run(proctor.assert_pass(echo, ["hello"], [low_but_good], evaluables=answered))
    with pytest.raises(AssertionError, match="one thing is wrong"):
        asyncio.run(proctor.assert_pass(echo, ["hello"], [high_but_bad], evaluables=answered))
