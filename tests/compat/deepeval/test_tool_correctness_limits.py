"""What expectations on tools mean for ToolCorrectness: none, without failed calls, in their thousands."""

from __future__ import annotations

import pytest

from proctor.agents.reply import ToolCall
from proctor.cases.suite import ExpectedCall
from proctor.compat.deepeval.evaluators import ToolCorrectness
from proctor.evaluators.evaluable import Evaluable


def make_evaluable(expected: list[ExpectedCall], *calls: ToolCall) -> Evaluable:
    return Evaluable(tool_calls=calls, expected_tool_calls=tuple(expected))


def test_no_tools_means_that_no_tool_is_called() -> None:
    assert ToolCorrectness()(make_evaluable([])).score == 1.0
    told = ToolCorrectness()(make_evaluable([], ToolCall("refund", {"order": 7})))
    assert told.score == 0.0
    assert [fault["kind"] for fault in told.details["faults"]] == ["extra"]


BROKEN = [
    ToolCall("pay", {"sum": 1}, error="PaymentError"),
    ToolCall("pay", {"sum": 1}, result="Error: card declined"),
    ToolCall("pay", {"sum": 1}, result={"error": "card declined"}),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_calls_that_failed_can_be_left_out(broken: ToolCall) -> None:
    good = ToolCall("pay", {"sum": 1}, result="paid")
    expected = [ExpectedCall("pay", {"sum": 1})]
    assert ToolCorrectness(exact=True, failed_calls="ignore")(make_evaluable(expected, broken, good)).score == 1.0
    assert ToolCorrectness(exact=True)(make_evaluable(expected, broken, good)).score == 0.0


THOUSAND = 1000


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_thousand_equal_calls_are_compared_with_a_thousand(ordered: bool, wrong: int) -> None:
    expected = [ExpectedCall("a", {"x": 1})] * THOUSAND
    calls = [ToolCall("a", {"x": 1})] * (THOUSAND - wrong) + [ToolCall("a", {"x": 2})] * wrong
    score = ToolCorrectness(compare_arguments=True, ordered=ordered)(make_evaluable(expected, *calls)).score
    assert (score == 1.0) is not wrong
    assert score in (0.0, 1.0, 1 - wrong / THOUSAND)


def test_a_thousand_different_calls_are_found_in_any_order() -> None:
    expected = [ExpectedCall("a", {"x": number}) for number in range(THOUSAND)]
    calls = [ToolCall("a", {"x": number}) for number in reversed(range(THOUSAND))]
    assert ToolCorrectness(compare_arguments=True)(make_evaluable(expected, *calls)).score == 1.0


def test_a_pairing_that_may_not_be_the_best_says_so() -> None:
    expected = [ExpectedCall("a", {"x": number}) for number in range(THOUSAND)]
    calls = [ToolCall("a", {"x": number}) for number in range(THOUSAND)]
    evaluator = ToolCorrectness(compare_arguments=True)
    assert evaluator(make_evaluable(expected, *calls)).details["approximate"] is True
    assert "approximate" not in evaluator(make_evaluable(expected[:9], *calls[:9])).details
