from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import ToolCall
from proctor.base.errors import UsageError
from proctor.cases.matchers import Equals, Ignore, Predicate, Regex, parse
from proctor.cases.suite import EvaluatorSpec, ExpectedCall
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator
from proctor.evaluators.tools.checks import ToolTrajectory

ANYTHING = ExpectedCall("a", {"id": Ignore()})


def wants(name: str, /, **arguments: Any) -> ExpectedCall:
    return ExpectedCall(name, {key: parse(value) for key, value in arguments.items()})


def called(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments)


def seen(expected: list[ExpectedCall] | None, *actual: ToolCall) -> Evaluable:
    return Evaluable(expected_tool_calls=None if expected is None else tuple(expected), tool_calls=actual)


A, B = wants("a"), wants("b")
a, b, x = called("a"), called("b"), called("x")


@pytest.mark.parametrize(
    ("expected", "actual", "exact", "in_order", "any_order"),
    [
        ([], [], 1, 1, 1),
        ([], [a], 0, 0, 0),
        ([A], [], 0, 0, 0),
        ([A, B], [a, b], 1, 1, 1),
        ([A, B], [b, a], 0, 0, 1),
        ([A, B], [a, x, b], 0, 1, 1),
        ([A, A], [a], 0, 0, 0),
        ([A, A], [a, a], 1, 1, 1),
        ([A, B, A], [a, a, b], 0, 0, 1),
        ([A], [a, a], 0, 1, 1),
        ([wants("a", id=1)], [called("a", id=1.0)], 1, 1, 1),
        ([wants("a", id=1)], [called("a", id=True)], 0, 0, 0),
        ([wants("a", id=1)], [called("a", id="1")], 0, 0, 0),
        ([wants("a", id=1)], [called("a", id=1, page=2)], 0, 0, 0),
        ([ExpectedCall("a")], [called("a", id=1)], 1, 1, 1),
        ([ExpectedCall("a", count=2)], [a, a], 1, 1, 1),
        ([ExpectedCall("a", count=2)], [a], 0, 0, 0),
    ],
)
def test_the_three_ways_to_match(
    expected: list[ExpectedCall], actual: list[ToolCall], exact: int, in_order: int, any_order: int
) -> None:
    evaluable = seen(expected, *actual)
    scores = [ToolTrajectory(match)(evaluable).score for match in ("EXACT", "IN_ORDER", "ANY_ORDER")]
    assert scores == [exact, in_order, any_order]


def test_an_expectation_never_takes_the_call_another_one_needs() -> None:
    either_order = [[ANYTHING, wants("a", id=7)], [wants("a", id=7), ANYTHING]]
    for expected in either_order:
        assert ToolTrajectory("ANY_ORDER")(seen(expected, called("a", id=7), called("a", id=8))).score == 1.0


def test_no_expectation_is_skipped_and_an_empty_one_is_not() -> None:
    with pytest.raises(NothingToCompare):
        ToolTrajectory()(seen(None, a))
    assert ToolTrajectory()(seen([], a)).score == 0.0


@pytest.mark.parametrize("spelling", ["in order", " In-Order ", "IN_ORDER", 1])
def test_a_match_may_be_spelt_in_many_ways(spelling: str | int) -> None:
    assert ToolTrajectory(spelling) == ToolTrajectory("IN_ORDER")


@pytest.mark.parametrize("wrong", ["sorted", "", 3, -1, True, None, 1.0])
def test_an_unknown_match_is_refused_before_anything_runs(wrong: Any) -> None:
    with pytest.raises(ValueError, match="EXACT, IN_ORDER, ANY_ORDER"):
        ToolTrajectory(wrong)
    with pytest.raises(UsageError, match="ToolTrajectory"):
        resolve_evaluator(EvaluatorSpec("ToolTrajectory", {"match": wrong}))


def test_only_all_of_it_passes_by_default() -> None:
    assert resolve_evaluator(EvaluatorSpec("ToolTrajectory")).threshold == 1.0


def test_names_alone_count_when_arguments_are_ignored() -> None:
    evaluable = seen([wants("a", id=1)], called("a", id=2))
    assert ToolTrajectory(ignore_args=True)(evaluable).score == 1.0
    assert ToolTrajectory()(evaluable).score == 0.0


def test_part_of_the_calls_earns_part_of_the_score_when_asked() -> None:
    evaluable = seen([A, B], x, b, a, x)
    scores = {
        match: ToolTrajectory(match, partial=True)(evaluable).score for match in ("EXACT", "IN_ORDER", "ANY_ORDER")
    }
    assert scores == {"EXACT": 0.25, "IN_ORDER": 0.5, "ANY_ORDER": 1.0}


def test_precision_recall_and_f1_are_always_told() -> None:
    details = ToolTrajectory("ANY_ORDER")(seen([A, B], a, x, x, x)).details
    assert (details["matched"], details["precision"], details["recall"]) == (1, 0.25, 0.5)
    assert details["f1"] == pytest.approx(1 / 3)
    nothing = ToolTrajectory()(seen([])).details
    assert (nothing["precision"], nothing["recall"], nothing["f1"]) == (1.0, 1.0, 1.0)
    none_made = ToolTrajectory()(seen([A])).details
    assert (none_made["precision"], none_made["recall"], none_made["f1"]) == (0.0, 0.0, 0.0)


def test_the_reason_names_what_is_missing_what_is_extra_and_which_argument_differs() -> None:
    expected = [wants("refund", order=7), wants("lookup", id=7)]
    evaluation = ToolTrajectory()(seen(expected, called("lookup", id=8), called("search", query="x")))
    assert evaluation.reasoning == "missing refund(order=7); lookup: id: 7 → 8; extra search(query='x')"
    assert evaluation.details["pairs"] == []
    assert [missing["name"] for missing in evaluation.details["missing"]] == ["refund"]
    assert [extra["actual"] for extra in evaluation.details["extra"]] == [1]
    assert evaluation.details["different"] == [{"expected": 1, "actual": 0, "reasons": ["id: 7 → 8"]}]


def test_a_call_at_the_wrong_time_is_not_called_missing() -> None:
    evaluation = ToolTrajectory("IN_ORDER")(seen([A, B], b, a))
    assert evaluation.reasoning.startswith("out of order ")
    assert evaluation.details["missing"] == evaluation.details["extra"] == []


def test_calls_that_are_allowed_anyway_are_not_called_extra() -> None:
    assert ToolTrajectory("IN_ORDER")(seen([A], x, x)).reasoning == "missing a(); also called x() ×2"


def test_arguments_that_differ_are_told_of_the_likeliest_pair() -> None:
    expected = [wants("a", id=1, page=1), wants("a", id=2, page=2)]
    evaluation = ToolTrajectory()(seen(expected, called("a", id=2, page=9), called("a", id=1, page=8)))
    assert evaluation.reasoning == "a: page: 1 → 8; a: page: 2 → 9"


def test_a_long_list_of_differences_is_cut_short() -> None:
    evaluation = ToolTrajectory()(seen([wants(f"t{index}") for index in range(500)]))
    assert evaluation.reasoning.endswith("; and 492 more")
    assert len(evaluation.details["missing"]) == 500


def test_a_success_says_what_was_compared() -> None:
    assert ToolTrajectory("IN_ORDER")(seen([A], a, x)).reasoning == "1 of 1 expected calls made, in order; 1 other call"
    assert ToolTrajectory()(seen([])).reasoning == "no tool calls, as expected"


def test_matchers_decide_about_arguments() -> None:
    expected = [wants("a", id={"$regex": "A-[0-9]+"}, total={"$approx": 12.5, "tolerance": 0.1})]
    assert ToolTrajectory()(seen(expected, called("a", id="A-17", total=12.45))).score == 1.0
    assert "does not match" in ToolTrajectory()(seen(expected, called("a", id="B", total=12.5))).reasoning


def test_a_predicate_that_crashes_is_not_a_verdict_on_the_agent() -> None:
    expected = [ExpectedCall("a", {"id": Predicate("operator:neg")})]
    with pytest.raises(TypeError):
        ToolTrajectory()(seen(expected, called("a", id="seven")))


expected_calls = st.builds(
    lambda name, matcher, count: ExpectedCall(name, {"id": matcher}, count=count),
    st.sampled_from(["a", "b"]),
    st.sampled_from([Equals(0), Equals(1), Ignore(), Regex("[01]"), Regex("[12]")]),
    st.integers(1, 2),
)
actual_calls = st.builds(
    lambda name, value: ToolCall(name, {"id": value}), st.sampled_from(["a", "b"]), st.integers(0, 2)
)


@given(st.lists(expected_calls, max_size=4), st.lists(actual_calls, max_size=6), st.randoms())
def test_the_order_of_the_reference_never_changes_an_any_order_score(
    expected: list[ExpectedCall], actual: list[ToolCall], random: Any
) -> None:
    trajectory = ToolTrajectory("ANY_ORDER", partial=True)
    shuffled = random.sample(expected, len(expected))
    remade = random.sample(actual, len(actual))
    assert trajectory(seen(expected, *actual)).score == trajectory(seen(shuffled, *remade)).score


@given(st.lists(expected_calls, max_size=4), st.lists(actual_calls, max_size=6))
def test_what_matches_exactly_matches_in_order_and_what_matches_in_order_matches_in_any(
    expected: list[ExpectedCall], actual: list[ToolCall]
) -> None:
    evaluable = seen(expected, *actual)
    exact, in_order, any_order = (ToolTrajectory(match)(evaluable).score for match in (0, 1, 2))
    assert exact <= in_order <= any_order


@given(st.lists(expected_calls, max_size=4), st.lists(actual_calls, max_size=6), st.sampled_from([0, 1, 2]))
def test_a_partial_score_is_whole_exactly_when_the_strict_one_is(
    expected: list[ExpectedCall], actual: list[ToolCall], match: int
) -> None:
    evaluable = seen(expected, *actual)
    partial, strict = ToolTrajectory(match, partial=True)(evaluable), ToolTrajectory(match)(evaluable)
    assert (partial.score == 1.0) == (strict.score == 1.0)
    assert partial.reasoning


@given(st.lists(expected_calls, max_size=4), st.lists(actual_calls, max_size=6), st.sampled_from([0, 1, 2]))
def test_every_call_is_accounted_for_once(expected: list[ExpectedCall], actual: list[ToolCall], match: int) -> None:
    details = ToolTrajectory(match)(seen(expected, *actual)).details
    both = details["pairs"] + details["out_of_order"] + [[d["expected"], d["actual"]] for d in details["different"]]
    assert sorted([column for _, column in both] + [e["actual"] for e in details["extra"]]) == list(range(len(actual)))
    assert len(both) + sum(m["count"] for m in details["missing"]) == sum(call.count for call in expected)


@pytest.mark.parametrize("match", ["EXACT", "IN_ORDER", "ANY_ORDER"])
def test_hundreds_of_calls_against_hundreds_come_to_an_end(match: str) -> None:
    expected = [wants("t", id=index) for index in range(300)]
    actual = [called("t", id=300 - index) for index in range(300)]
    details = ToolTrajectory(match)(seen(expected, *actual)).details
    assert details["matched"] == (299 if match == "ANY_ORDER" else 1)
