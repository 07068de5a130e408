"""What expectations on tools mean: none, in any order, without failed calls, in their thousands."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.agents.reply import ToolCall
from proctor.cases.suite import ExpectedCall, ToolMock
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.tools.checks import ExpectedTools, FinalState, ToolCount, ToolTrajectory
from proctor.evaluators.tools.trajectory import Trajectory

MODES = [ToolTrajectory("EXACT"), ToolTrajectory("IN_ORDER"), ToolTrajectory("ANY_ORDER"), ExpectedTools()]


def seen(expected: list[ExpectedCall], *calls: ToolCall) -> Evaluable:
    return Evaluable(tool_calls=calls, expected_tool_calls=tuple(expected))


@pytest.mark.parametrize("evaluator", MODES)
def test_no_tools_means_that_no_tool_is_called_in_every_mode(evaluator: Any) -> None:
    assert evaluator(seen([])).score == 1.0
    told = evaluator(seen([], ToolCall("refund", {"order": 7})))
    assert told.score == 0.0
    assert [fault["kind"] for fault in told.details["faults"]] == ["extra"]


def test_calls_in_any_order_can_be_exactly_these() -> None:
    exactly = ToolTrajectory("ANY_ORDER", extra=False)
    expected = [ExpectedCall("a"), ExpectedCall("b")]
    a, b = ToolCall("a"), ToolCall("b")
    assert [exactly(seen(expected, *calls)).score for calls in ((a, b), (b, a), (b, a, a), (a,))] == [1, 1, 0, 0]
    with pytest.raises(ValueError, match="EXACT does not allow extra"):
        ToolTrajectory("EXACT", extra=True)


BROKEN = [
    ToolCall("pay", {"sum": 1}, error="PaymentError"),
    ToolCall("pay", {"sum": 1}, result="Error: card declined"),
    ToolCall("pay", {"sum": 1}, result={"error": "card declined"}),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_calls_that_failed_can_be_left_out(broken: ToolCall) -> None:
    good = ToolCall("pay", {"sum": 1}, result="paid")
    expected = [ExpectedCall("pay", {"sum": 1})]
    for evaluator, strict in (
        (ToolTrajectory(failed_calls="ignore"), ToolTrajectory()),
        (ToolCount("pay", exactly=1, failed_calls="ignore"), ToolCount("pay", exactly=1)),
        (Trajectory(["pay"], extra=False, failed_calls="ignore"), Trajectory(["pay"], extra=False)),
    ):
        assert evaluator(seen(expected, broken, good)).score == 1.0
        assert strict(seen(expected, broken, good)).score == 0.0
    told = ToolTrajectory(failed_calls="ignore")(seen(expected, broken, good))
    assert (told.details["pairs"], told.details["left_out"]) == ([[0, 1]], [0])
    assert ExpectedTools(failed_calls="ignore")(seen(expected, broken)).score == 0.0


def test_a_call_is_not_failed_because_its_result_speaks_of_errors() -> None:
    fine = [ToolCall("a", result=r) for r in ("Errors: 0", "no error: fine", {"error": None}, {"error": ""}, [])]
    assert ToolCount("a", exactly=5, failed_calls="ignore")(seen([], *fine)).score == 1.0
    with pytest.raises(ValueError, match="count or ignore"):
        ToolTrajectory(failed_calls="skip")


def test_nested_matchers_work_in_steps_doubles_and_states() -> None:
    from proctor.agents.tool_mocks import NoMatchingMock, ToolMocks

    oslo, rome = {"loc": {"city": "Oslo"}}, {"loc": {"city": "Rome"}}
    nested = {"loc": {"city": {"$one_of": ["Oslo"]}}}
    steps = Trajectory([{"name": "find", "args": nested}])
    assert [steps(seen([], ToolCall("find", args))).score for args in (oslo, rome)] == [1, 0]
    mocks = ToolMocks({"find": (ToolMock(args=ExpectedCall("find", nested).args, result="found"),)})
    assert mocks.take("find", oslo).result == "found"
    with pytest.raises(NoMatchingMock):
        mocks.take("find", rome)
    for state, score in ((oslo, 1.0), (rome, 0.0)):
        assert FinalState()(Evaluable(state=state, expected_state=nested)).score == score
    with pytest.raises(ValueError, match=r"steps\[0\]\.args\.loc\.city\.\$nosuch: \$nosuch is not a matcher"):
        Trajectory([{"name": "find", "args": {"loc": {"city": {"$nosuch": 1}}}}])


def test_an_optional_argument_of_a_double_may_be_absent() -> None:
    from proctor.agents.tool_mocks import ToolMocks

    arguments = ExpectedCall("f", {"a": {"$optional": 1}}).args
    assert ToolMocks({"f": (ToolMock(args=arguments, result="ok"),)}).take("f", {}).result == "ok"


def test_reasons_have_paths_and_plain_words() -> None:
    expected = [ExpectedCall("pay", {"payment": [{"amount": 1}, {"amount": 5}], "unit": {"$one_of": ["km", "mi"]}})]
    call = ToolCall("pay", {"payment": [{"amount": 1}, {"amount": 55}]})
    assert ToolTrajectory()(seen(expected, call)).reasoning == (
        "pay: payment[1].amount: 5 → 55, unit: missing, expected one of [km, mi]"
    )


THOUSAND = 1000


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize(
    "evaluator",
    MODES,
)
def test_a_thousand_equal_calls_are_compared_with_a_thousand(evaluator: Any, wrong: int) -> None:
    expected = [ExpectedCall("a", {"x": 1})] * THOUSAND
    calls = [ToolCall("a", {"x": 1})] * (THOUSAND - wrong) + [ToolCall("a", {"x": 2})] * wrong
    score = evaluator(seen(expected, *calls)).score
    assert (score == 1.0) is not wrong
    assert score in (0.0, 1.0, 1 - wrong / THOUSAND)


def test_a_thousand_different_calls_are_found_in_any_order() -> None:
    expected = [ExpectedCall("a", {"x": number}) for number in range(THOUSAND)]
    calls = [ToolCall("a", {"x": number}) for number in reversed(range(THOUSAND))]
    for evaluator in (
        ToolTrajectory("ANY_ORDER", extra=False),
        ExpectedTools(),
    ):
        assert evaluator(seen(expected, *calls)).score == 1.0


def test_a_pairing_that_may_not_be_the_best_says_so() -> None:
    expected = [ExpectedCall("a", {"x": number}) for number in range(THOUSAND)]
    calls = [ToolCall("a", {"x": number}) for number in range(THOUSAND)]
    evaluator = ToolTrajectory("ANY_ORDER")
    assert evaluator(seen(expected, *calls)).details["approximate"] is True
    assert "approximate" not in evaluator(seen(expected[:9], *calls[:9])).details
