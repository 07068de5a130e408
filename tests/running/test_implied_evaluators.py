"""What a case expects is checked, whatever else scores it and wherever the suite comes from."""

from __future__ import annotations

from typing import Any

import pytest

import proctor
from proctor import Case, EvaluatorSpec, Expected, ExpectedCall, Keywords, Suite, Turn

WORDS = Expected(contains=Keywords(any=("shipped",)))
CALLS = Expected(tools=(ExpectedCall("find_order"),))
BRIEF = EvaluatorSpec("MaxSteps", {"steps": 9})


def scores(*turns: Turn, evaluators: tuple[EvaluatorSpec, ...] = (BRIEF,), **more: Any) -> dict[str, str]:
    case = Case(id="a", turns=turns, **more)
    run = proctor.run(Suite("s", (case,), evaluators=evaluators), lambda question: "I do not know.")
    return {score.evaluator: score.outcome.value for trial in run.trials for score in trial.scores}


@pytest.mark.parametrize(("expected", "check"), [(WORDS, "Contains"), (CALLS, "ExpectedTools")])
def test_a_wrong_answer_fails_although_the_suite_has_evaluators(expected: Expected, check: str) -> None:
    assert scores(Turn("Where is it?", expected)) == {"MaxSteps": "passed", check: "failed"}


def test_a_final_state_is_checked_although_the_case_has_evaluators() -> None:
    assert set(scores(Turn("Pay."), final_state={"paid": True})) == {"MaxSteps", "FinalState"}


def test_a_turn_with_its_own_evaluators_is_checked_for_what_it_expects() -> None:
    assert scores(Turn("Where is it?", WORDS, evaluators=(BRIEF,)), evaluators=())["Contains"] == "failed"


def test_dots_stand_for_the_evaluators_of_the_suite() -> None:
    own = (EvaluatorSpec("..."), EvaluatorSpec("Regex", {"pattern": "know"}))
    assert scores(Turn("Where is it?"), evaluators=(BRIEF,), skip=None) == {"MaxSteps": "passed"}
    case = Case(id="a", turns=(Turn("Where is it?"),), evaluators=own)
    suite = Suite("s", (case,), evaluators=(BRIEF,))
    assert [spec.name for spec in suite.evaluators_of(case)] == ["MaxSteps", "Regex"]
    [trial] = proctor.run(suite, lambda question: "I do not know.").trials
    assert [score.evaluator for score in trial.scores] == ["MaxSteps", "Regex"]


def test_a_case_can_do_without_implied_checks() -> None:
    assert scores(Turn("Where is it?", WORDS), implied=False) == {"MaxSteps": "passed"}


@pytest.mark.filterwarnings("ignore::proctor.base.errors.UnusedExpectation")
def test_an_expected_output_is_compared_only_if_nothing_else_is_named() -> None:
    answer = Expected(output="It is shipped.")
    assert scores(Turn("Where is it?", answer), evaluators=()) == {"ExactMatch": "failed"}
    assert scores(Turn("Where is it?", answer)) == {"MaxSteps": "passed"}
