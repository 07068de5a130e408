"""If tool calls may be hidden, what the observed calls decide stands, and the rest is an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proctor.agents.reply import HiddenCalls, ToolCall
from proctor.cases.suite import ExpectedCall
from proctor.evaluators import (
    ExpectedTools,
    ForbiddenTools,
    Limits,
    MaxSteps,
    ToolConsistency,
    ToolCount,
    ToolTrajectory,
    Trajectory,
)
from proctor.evaluators.calling import evaluate
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.observation import CallsNotObserved

HIDDEN = HiddenCalls("the agent called a model through acme, which nothing observes", "pip install acme-trace")
ADD = ToolCall("add", {"a": 2})


def seen(*calls: ToolCall, expected: tuple[str, ...] | None = None, visible: tuple[str, ...] = ()) -> Evaluable:
    names = None if expected is None else tuple(ExpectedCall(name) for name in expected)
    hidden = HiddenCalls(HIDDEN.reason, HIDDEN.fix, visible)
    return Evaluable("question", "answer", tool_calls=calls, expected_tool_calls=names, hidden_calls=hidden)


def score_of(evaluator: Any, evaluable: Evaluable) -> Evaluation | None:
    return asyncio.run(evaluate(evaluator, evaluable))


UNDECIDED = [
    (ExpectedTools(), seen(expected=("add",))),
    (ExpectedTools(), seen(ADD, expected=("add", "pay"))),
    (ExpectedTools(), seen(expected=())),
    (ToolTrajectory(), seen(ADD, expected=("add",))),
    (ToolTrajectory(match="IN_ORDER"), seen(expected=("add",))),
    (ToolTrajectory(match="ANY_ORDER", extra=False), seen(ADD, expected=("add",))),
    (Trajectory(steps=["add"]), seen()),
    (Trajectory(forbid=["pay"]), seen(ADD)),
    (Trajectory(steps=["add"], extra=False), seen(ADD)),
    (ToolCount(at_least=1), seen()),
    (ToolCount(at_most=1), seen()),
    (ToolCount(tool="add", exactly=1), seen(ADD)),
    (ForbiddenTools(["pay"]), seen(ADD)),
    (MaxSteps(3), seen(ADD)),
    (Limits(tool_calls=3), seen(ADD)),
    (ToolConsistency(), seen()),
    (ForbiddenTools(["pay*"]), seen(visible=("pay",))),
]


@pytest.mark.parametrize(("evaluator", "evaluable"), UNDECIDED)
def test_what_hidden_calls_could_change_is_an_error_that_names_the_fix(evaluator: Any, evaluable: Any) -> None:
    with pytest.raises(CallsNotObserved, match=r"through acme.*pip install acme-trace"):
        score_of(evaluator, evaluable)


DECIDED = [
    (ExpectedTools(), seen(ADD, expected=("add",)), 1.0),
    (ExpectedTools(), seen(ADD, expected=()), 0.0),
    (ExpectedTools(), seen(expected=("add",), visible=("add",)), 0.0),
    (ToolTrajectory(), seen(ADD, expected=()), 0.0),
    (ToolTrajectory(), seen(ADD, ToolCall("pay"), expected=("add",)), 0.0),
    (ToolTrajectory(match="IN_ORDER"), seen(ADD, expected=("add",)), 1.0),
    (Trajectory(steps=["add"]), seen(ADD), 1.0),
    (Trajectory(forbid=["add"]), seen(ADD), 0.0),
    (ToolCount(at_least=1), seen(ADD), 1.0),
    (ToolCount(at_most=0), seen(ADD), 0.0),
    (ToolCount(tool="pay", at_most=0), seen(visible=("pay",)), 1.0),
    (ForbiddenTools(["add"]), seen(ADD), 0.0),
    (ForbiddenTools(["pay"]), seen(visible=("add", "pay")), 1.0),
    (MaxSteps(0), seen(ADD), 0.0),
    (Limits(tool_calls=0), seen(ADD), 0.0),
]


@pytest.mark.parametrize(("evaluator", "evaluable", "score"), DECIDED)
def test_what_the_observed_calls_decide_stands(evaluator: Any, evaluable: Any, score: float) -> None:
    evaluation = score_of(evaluator, evaluable)
    assert evaluation is not None
    assert evaluation.score == score


def test_an_exceeded_limit_of_another_kind_fails_whatever_calls_are_hidden() -> None:
    evaluable = Evaluable("q", "a", duration_ms=5000, hidden_calls=HIDDEN)
    evaluation = score_of(Limits(seconds=1, tool_calls=3), evaluable)
    assert evaluation is not None
    assert evaluation.score == 0.0


def test_an_evaluator_of_a_user_that_names_tool_calls_gets_no_incomplete_list() -> None:
    def polite(output: str) -> bool:
        return True

    def calls_nothing(tool_calls: Any) -> bool:
        return not tool_calls

    assert score_of(polite, seen()) is not None
    with pytest.raises(CallsNotObserved):
        score_of(calls_nothing, seen())
