"""A reference whose order does not matter may be written in any order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import ToolCall
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.tools.checks import ToolTrajectory

ARGUMENTS = st.dictionaries(st.sampled_from("xy"), st.integers(0, 1) | st.booleans(), max_size=2)
CALLS = st.lists(st.tuples(st.sampled_from("abc"), ARGUMENTS), max_size=6)


def score(match: Any, expected: list[Any], made: list[Any], *, ignore_args: bool = False) -> float:
    evaluable = Evaluable(
        expected_tool_calls=tuple(ExpectedCall(name, args) for name, args in expected),
        tool_calls=tuple(ToolCall(name, args) for name, args in made),
    )
    return ToolTrajectory(match=match, ignore_args=ignore_args)(evaluable).score


@given(st.data(), CALLS, CALLS, st.booleans())
def test_permuting_the_reference_never_changes_the_score_in_any_order(
    data: st.DataObject, expected: list[Any], made: list[Any], ignore_args: bool
) -> None:
    permuted = data.draw(st.permutations(expected))
    whole = score("ANY_ORDER", expected, made, ignore_args=ignore_args)
    assert score("ANY_ORDER", permuted, made, ignore_args=ignore_args) == whole


@given(st.data(), CALLS, CALLS)
def test_permuting_what_was_made_never_changes_it_either(
    data: st.DataObject, expected: list[Any], made: list[Any]
) -> None:
    assert score("ANY_ORDER", expected, data.draw(st.permutations(made))) == score("ANY_ORDER", expected, made)


@given(CALLS, CALLS)
def test_an_order_that_is_kept_exactly_is_kept_in_order_and_in_any(expected: list[Any], made: list[Any]) -> None:
    exact, in_order, any_order = (score(match, expected, made) for match in ("EXACT", "IN_ORDER", "ANY_ORDER"))
    assert exact <= in_order <= any_order


@pytest.mark.parametrize("match", ["IN_ORDER", "EXACT"])
def test_where_order_matters_a_permuted_reference_is_another(match: str) -> None:
    expected = [("a", {}), ("b", {})]
    assert score(match, expected, expected) == 1.0
    assert score(match, expected[::-1], expected) < 1.0


@pytest.mark.parametrize("given", [{"ignore_args": "false"}, {"partial": 1}])
def test_a_flag_that_is_no_flag_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be true or false"):
        ToolTrajectory(**given)


@pytest.mark.parametrize("match", ["EXACT", "IN_ORDER", "ANY_ORDER"])
def test_an_empty_expectation_means_no_calls_unless_any_calls_are_allowed(match: str) -> None:
    one_call = Evaluable(expected_tool_calls=(), tool_calls=(ToolCall("a"),))
    assert ToolTrajectory(match=match)(one_call).score == 0.0
    assert ToolTrajectory(match=match, empty="any calls")(one_call).score == float(match != "EXACT")


def test_inner_calls_count_unless_they_are_ignored() -> None:
    calls = (ToolCall("a", id="1"), ToolCall("b", id="2", parent="1"))
    evaluable = Evaluable(expected_tool_calls=(ExpectedCall("a"), ExpectedCall("b")), tool_calls=calls)
    assert ToolTrajectory()(evaluable).score == 1.0
    assert ToolTrajectory(inner_calls="ignore")(evaluable).score == 0.0


@pytest.mark.parametrize("given", [{"empty": "none"}, {"inner_calls": "skip"}])
def test_a_word_that_is_not_a_choice_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ToolTrajectory(**given)
