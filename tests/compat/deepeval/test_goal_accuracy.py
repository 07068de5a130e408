"""GoalAccuracy: which of the user's goals were reached, and how well."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import judged, seen

from proctor.base.errors import JudgeFailed
from proctor.compat.deepeval.evaluators import GoalAccuracy
from proctor.evaluators.evaluation import NothingToCompare


@pytest.mark.parametrize("question", ["", "  ", None])
def test_where_nothing_was_asked_no_goal_can_be_judged(question: Any) -> None:
    with pytest.raises(NothingToCompare, match="input"):
        judged(GoalAccuracy(), seen("text", question=question))


@pytest.mark.parametrize("wrong", ["", " ", 7])
def test_a_goal_must_say_something(wrong: Any) -> None:
    with pytest.raises(ValueError, match="goal must be a non-empty string"):
        GoalAccuracy(goal=wrong)


def goals(*scores: tuple[float, float]) -> dict[str, Any]:
    return {
        "goals": [
            {"goal": f"goal {n}", "reason": "why", "reached": reached, "plan_reason": "how", "plan": plan}
            for n, (reached, plan) in enumerate(scores, 1)
        ]
    }


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6))
def test_goal_accuracy_is_the_mean_of_goals_and_ways_and_stays_between_0_and_1(
    scores: list[tuple[float, float]],
) -> None:
    evaluation = judged(GoalAccuracy(), seen("text"), {"goal-accuracy": goals(*scores)})
    expected = sum(reached + plan for reached, plan in scores) / (2 * len(scores))
    assert evaluation.score == pytest.approx(expected)
    assert 0 <= evaluation.score <= 1


def test_goal_accuracy_says_which_goals_were_missed() -> None:
    evaluation = judged(GoalAccuracy(), seen("text"), {"goal-accuracy": goals((1, 1), (0, 0.5))})
    assert evaluation.score == 0.625
    assert evaluation.reasoning.startswith("1 of 2 goals were reached. goal 0%: “goal 2” (why); 2 of 2 ")
    assert (evaluation.details["goal_score"], evaluation.details["plan_score"]) == (0.5, 0.75)


def test_a_judge_that_finds_no_goal_or_other_goals_than_the_one_given_is_not_believed() -> None:
    with pytest.raises(JudgeFailed, match="goals is empty"):
        judged(GoalAccuracy(), seen("text"), {"goal-accuracy": goals()})
    with pytest.raises(JudgeFailed, match="one entry"):
        judged(GoalAccuracy(goal="to leave"), seen("text"), {"goal-accuracy": goals((1, 1), (1, 1))})
