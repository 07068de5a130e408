"""Naming a check never removes another one: what a case expects is checked, whatever else it names."""

from __future__ import annotations

from pathlib import Path

import pytest

import proctor
from proctor.cases.formats.loading import load

CASE = """\
agent: app.py:agent
cases:
  - id: shipped
    input: Where is my order?
    expected: {{contains: shipped, tools: [find_order]}}
    evaluators: {evaluators}
    {more}
"""


def names(tmp_path: Path, evaluators: str, more: str = "") -> list[str]:
    path = tmp_path / "suite.yaml"
    path.write_text(CASE.format(evaluators=evaluators, more=more))
    (suite,) = load([path])
    return [spec.name for spec in suite.evaluators_of(suite.cases[0])]


@pytest.mark.parametrize(
    "evaluators", ['["...", {ForbiddenTools: {tools: [refund]}}]', "[{ForbiddenTools: {tools: [refund]}}]"]
)
def test_a_case_that_names_a_check_is_still_checked_for_what_it_expects(tmp_path: Path, evaluators: str) -> None:
    assert names(tmp_path, evaluators) == ["ForbiddenTools", "Contains", "ExpectedTools"]


def test_an_answer_that_misses_what_is_expected_fails_whatever_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def agent(question):\n    return 'I do not know.'\n")
    names(tmp_path, '["...", {ForbiddenTools: {tools: [refund]}}]')
    run = proctor.run(tmp_path / "suite.yaml", store=None)
    assert {score.evaluator: score.outcome.value for trial in run.trials for score in trial.scores} == {
        "ForbiddenTools": "passed",
        "Contains": "failed",
        "ExpectedTools": "failed",
    }


def test_a_check_that_is_named_is_not_made_twice(tmp_path: Path) -> None:
    assert names(tmp_path, "[Contains, ToolTrajectory]") == ["Contains", "ToolTrajectory"]


def test_a_case_can_say_that_only_what_it_names_is_checked(tmp_path: Path) -> None:
    assert names(tmp_path, "[MaxSteps: {most: 3}]", "implied: false") == ["MaxSteps"]


def test_a_turn_with_evaluators_of_its_own_is_checked_for_what_it_expects(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    turn = "{input: hi, expected: {contains: hello}, evaluators: [{MaxSteps: {most: 3}}]}"
    path.write_text(f"cases:\n  - {{id: one, turns: [{turn}]}}\n")
    (suite,) = load([path])
    case = suite.cases[0]
    assert [spec.name for spec in suite.evaluators_of(case, case.turns[0])] == ["MaxSteps", "Contains"]
