"""Evaluators that look at a part of the answer, are asked again, or are skipped when they break."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.base.errors import InvalidSuite
from proctor.cases.suite import Case, EvaluatorSpec, Expected, Suite, Turn
from proctor.results.score import Outcome, Score

FLAKY = """
tries = []

def third_time(evaluable):
    tries.append(1)
    if len(tries) < 3:
        raise RuntimeError("not yet")
    return True

def never(evaluable):
    raise RuntimeError("no such table")
"""


def scored(agent: Any, spec: EvaluatorSpec, expected: Any, folder: Path = Path()) -> tuple[Outcome, Score]:
    suite = Suite(
        "s", (Case(id="c", turns=(Turn("q", Expected(expected)),)),), evaluators=(spec,), path=folder / "s.yaml"
    )
    [trial] = proctor.run(suite, agent).trials
    return trial.outcome, trial.scores[0]


@pytest.mark.needs("holodeck")
@pytest.mark.parametrize(
    ("answer", "path", "expected", "outcome"),
    [
        ('{"order": {"total": "7"}}', "order.total", "7", Outcome.PASSED),
        ({"items": [{"name": "tea"}]}, "items[0].name", "tea", Outcome.PASSED),
        ('{"order": {}}', "order.total", "7", Outcome.FAILED),
        ("seven", "order.total", "seven", Outcome.FAILED),
        ("", "a", "", Outcome.FAILED),
    ],
)
def test_only_the_value_at_the_path_is_compared(answer: Any, path: str, expected: str, outcome: Outcome) -> None:
    found, score = scored(lambda question: answer, EvaluatorSpec("Equality", output_path=path), expected)
    assert found is outcome
    if outcome is Outcome.FAILED:
        assert score.value == 0.0
        assert f"{path!r} was not found in" in score.reasoning


@pytest.mark.needs("holodeck")
def test_a_path_that_is_none_is_found_before_anything_runs() -> None:
    with pytest.raises(InvalidSuite, match="is not a selector"):
        scored(lambda question: "x", EvaluatorSpec("Equality", output_path="a..b"), "x")


def test_an_evaluator_that_breaks_is_retried_as_often_as_its_file_says(tmp_path: Path) -> None:
    (tmp_path / "flaky.py").write_text(FLAKY)
    outcome, score = scored(lambda q: "x", EvaluatorSpec("flaky.py:third_time", retries=2), "x", tmp_path)
    assert outcome is Outcome.PASSED
    assert score.details == {"retries": 2}


def test_an_evaluator_that_keeps_breaking_is_an_error_unless_it_is_optional(tmp_path: Path) -> None:
    (tmp_path / "flaky.py").write_text(FLAKY)
    outcome, score = scored(lambda q: "x", EvaluatorSpec("flaky.py:never", retries=1), "x", tmp_path)
    assert (outcome, score.outcome) == (Outcome.ERROR, Outcome.ERROR)
    _, score = scored(lambda q: "x", EvaluatorSpec("flaky.py:never", optional=True), "x", tmp_path)
    assert score.outcome is Outcome.SKIPPED
    assert "no such table" in score.reasoning


def test_an_optional_evaluator_alone_leaves_the_case_without_a_verdict(tmp_path: Path) -> None:
    (tmp_path / "flaky.py").write_text(FLAKY)
    outcome, _ = scored(lambda q: "x", EvaluatorSpec("flaky.py:never", optional=True), "x", tmp_path)
    assert outcome is Outcome.ERROR
