from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import ToolCall
from proctor.base.errors import UsageError
from proctor.cases.matchers import Equals, Fuzzy, Ignore, OneOf, Regex
from proctor.cases.suite import EvaluatorSpec, ExpectedCall
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator
from proctor.evaluators.tools.checks import ExpectedTools, FinalState, ForbiddenTools, ToolCount, ToolTrajectory


def named(*names: str) -> list[ExpectedCall]:
    return [ExpectedCall(name, substring=True) for name in names]


def seen(expected: list[ExpectedCall] | None, *actual: str | ToolCall) -> Evaluable:
    calls = tuple(ToolCall(call) if isinstance(call, str) else call for call in actual)
    return Evaluable(expected_tool_calls=None if expected is None else tuple(expected), tool_calls=calls)


@pytest.mark.parametrize(
    ("expected", "actual", "score"),
    [
        (["search"], ["search"], 1.0),
        (["search"], ["fetch"], 0.0),
        (["search"], [], 0.0),
        (["search", "fetch"], ["fetch", "search"], 1.0),
        (["search", "fetch"], ["search"], 0.5),
        (["search"], ["search", "fetch"], 1.0),
        (["search", "calculator"], ["vectorstore-search", "mcp-calculator"], 1.0),
        (["search", "calculator"], ["search_v2", "calculator_advanced"], 1.0),
        (["search"], ["vectorstore-query", "mcp-math"], 0.0),
        (["search"], ["SEARCH"], 0.0),
        (["search", "search"], ["search"], 0.5),
        ([], [], 1.0),
        ([], ["search"], 0.0),
    ],
)
def test_expected_tools_by_part_of_their_name(expected: list[str], actual: list[str], score: float) -> None:
    assert ExpectedTools()(seen(named(*expected), *actual)).score == score


def test_one_call_satisfies_one_expectation_whichever_is_listed_first() -> None:
    loose, strict = ExpectedCall("a", {"id": Ignore()}), ExpectedCall("a", {"id": Equals(7)})
    calls = [ToolCall("a", {"id": 7}), ToolCall("a", {"id": 8})]
    assert ExpectedTools()(seen([loose, strict], *calls)).score == 1.0
    assert ExpectedTools()(seen([strict, loose], *calls)).score == 1.0
    assert ExpectedTools()(seen([strict, loose], calls[0])).score == 0.5


def test_asserted_arguments_must_fit_and_further_ones_may_come_where_allowed() -> None:
    expected = [ExpectedCall("sub", {"a": Fuzzy("206,588"), "b": Regex("[0-9]+")}, extra_args=True)]
    fits = ToolCall("sub", {"a": 206588.0, "b": "12", "c": None})
    assert ExpectedTools()(seen(expected, fits)).score == 1.0
    evaluation = ExpectedTools()(seen(expected, ToolCall("sub", {"a": 1})))
    assert evaluation.score == 0.0
    assert "b: missing, expected /[0-9]+/" in evaluation.reasoning


def test_a_count_is_the_least_number_of_calls() -> None:
    expected = [ExpectedCall("a", count=2)]
    assert [ExpectedTools()(seen(expected, *["a"] * times)).score for times in (1, 2, 3)] == [0.0, 1.0, 1.0]
    evaluation = ExpectedTools()(seen(expected, "a", "b"))
    assert (
        evaluation.reasoning
        == "0 of 1 expected tools were called as expected: expected 2 calls of a, got 1; also called b()"
    )


def test_a_count_that_cannot_be_met_leaves_its_calls_to_others() -> None:
    unmet, met = ExpectedCall("a", {"id": Equals(1)}, count=2), ExpectedCall("a", {"id": Ignore()}, count=2)
    calls = [ToolCall("a", {"id": 1}), ToolCall("a", {"id": 2})]
    assert ExpectedTools()(seen([unmet, met], *calls)).score == 0.5


def test_a_demanding_expectation_does_not_starve_two_modest_ones() -> None:
    pair = ExpectedCall("a", {"id": Ignore()}, count=2)
    modest = [ExpectedCall("a", {"id": Equals(1)}), ExpectedCall("a", {"id": Equals(2)})]
    calls = [ToolCall("a", {"id": 1}), ToolCall("a", {"id": 2})]
    for expected in permutations([pair, *modest]):
        assert ExpectedTools()(seen(list(expected), *calls)).details["satisfied"] == sorted(
            expected.index(call) for call in modest
        )


def test_everything_has_to_be_there_to_pass() -> None:
    assert resolve_evaluator(EvaluatorSpec("ExpectedTools")).threshold == 1.0


def test_no_expected_tools_is_skipped() -> None:
    with pytest.raises(NothingToCompare):
        ExpectedTools()(seen(None, "a"))


def test_calls_where_none_may_be_made_are_named() -> None:
    evaluation = ExpectedTools()(seen([], ToolCall("delete", {"id": 7})))
    assert evaluation.reasoning == "expected no tool calls: extra delete(id=7)"


expected_calls = st.builds(
    lambda matcher: ExpectedCall("a", {"id": matcher}),
    st.sampled_from([Equals(0), Equals(1), Ignore(), Regex("[01]"), Regex("[12]")]),
)
counted_calls = st.builds(
    lambda matcher, count: ExpectedCall("a", {"id": matcher}, count=count),
    st.sampled_from([Equals(0), Equals(1), Ignore(), Regex("[01]"), Regex("[12]")]),
    st.integers(1, 3),
)
values = st.lists(st.integers(0, 2), max_size=5)


def all_satisfiable(expected: list[ExpectedCall], actual: list[int]) -> bool:
    if not expected:
        return True
    first, *rest = expected
    assert first.args is not None
    fits = [index for index, value in enumerate(actual) if first.args["id"].mismatch(value) is None]
    return any(
        all_satisfiable(rest, [value for index, value in enumerate(actual) if index not in taken])
        for taken in combinations(fits, first.count)
    )


@given(st.lists(expected_calls, min_size=1, max_size=4), values)
def test_as_many_expectations_are_satisfied_as_can_be_at_once(expected: list[ExpectedCall], actual: list[int]) -> None:
    score = ExpectedTools()(seen(expected, *[ToolCall("a", {"id": value}) for value in actual])).score
    most = max(
        size
        for size in range(len(expected) + 1)
        if any(all_satisfiable(list(some), actual) for some in combinations(expected, size))
    )
    assert score == most / len(expected)


@given(st.lists(counted_calls, min_size=1, max_size=3), values, st.randoms())
def test_it_passes_exactly_when_all_can_be_satisfied_in_whatever_order_they_are_listed(
    expected: list[ExpectedCall], actual: list[int], random: Any
) -> None:
    calls = [ToolCall("a", {"id": value}) for value in actual]
    evaluation = ExpectedTools()(seen(expected, *calls))
    assert (evaluation.score == 1.0) == all_satisfiable(expected, actual)
    assert ExpectedTools()(seen(random.sample(expected, len(expected)), *calls)).score == evaluation.score


def test_a_trillion_expected_calls_do_not_fill_the_memory() -> None:
    assert ExpectedTools()(seen([ExpectedCall("a", count=10**12)], "a")).score == 0.0


def test_hundreds_of_wild_expectations_come_to_an_end() -> None:
    expected = [ExpectedCall("a", {"id": Regex("[0-9]+")}) for _ in range(300)]
    calls = [ToolCall("a", {"id": str(index)}) for index in range(300)]
    assert ExpectedTools()(seen(expected, *calls)).score == 1.0


@pytest.mark.parametrize(
    ("options", "calls", "score"),
    [
        ({"at_least": 1}, "", 0),
        ({"at_least": 1}, "ab", 1),
        ({"at_most": 1}, "ab", 0),
        ({"exactly": 2}, "ab", 1),
        ({"exactly": 0}, "", 1),
        ({"tool": "a", "exactly": 2}, "aab", 1),
        ({"tool": "a", "at_least": 1, "at_most": 2}, "aaab", 0),
        ({"tool": "[ab]", "exactly": 2}, "abc", 1),
        ({"tool": "A", "exactly": 0}, "a", 1),
    ],
)
def test_how_often_a_tool_is_called(options: dict[str, Any], calls: str, score: float) -> None:
    assert ToolCount(**options)(seen(None, *calls)).score == score


def test_a_count_says_what_was_counted_and_what_was_expected() -> None:
    evaluation = ToolCount("search", at_least=1, at_most=2)(seen(None, "search", "search", "search"))
    assert evaluation.reasoning == "search called 3 times (expected at least 1 and at most 2)"
    assert evaluation.details == {"count": 3}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tool": "a"},
        {"exactly": 1, "at_least": 1},
        {"at_least": 2, "at_most": 1},
        {"exactly": -1},
        {"at_most": True},
        {"at_most": "3"},
        {"at_most": 1.5},
    ],
)
def test_bounds_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="ToolCount"):
        resolve_evaluator(EvaluatorSpec("ToolCount", options))


def test_forbidden_tools_are_names_or_patterns() -> None:
    forbidden = ForbiddenTools(["delete_*", "drop"])
    assert forbidden(seen(None, "lookup", "undelete_all", "dropped")).score == 1.0
    evaluation = forbidden(seen(None, "lookup", ToolCall("delete_user", {"id": 7}), "drop"))
    assert evaluation.score == 0.0
    assert evaluation.reasoning == "forbidden tools were called: call 2: delete_user(id=7); call 3: drop()"
    assert evaluation.details["forbidden"] == [{"actual": 1, "name": "delete_user"}, {"actual": 2, "name": "drop"}]


def test_a_name_with_pattern_signs_in_it_still_forbids_itself() -> None:
    assert ForbiddenTools(["f[1]"])(seen(None, "f[1]")).score == 0.0


def test_one_forbidden_tool_needs_no_list() -> None:
    assert ForbiddenTools("delete")(seen(None, "delete")).score == 0.0
    assert ForbiddenTools("delete")(seen(None, "d")).score == 1.0


@pytest.mark.parametrize("tools", [[], "", [""], [7], None])
def test_forbidding_nothing_is_refused(tools: Any) -> None:
    with pytest.raises(UsageError, match="ForbiddenTools"):
        resolve_evaluator(EvaluatorSpec("ForbiddenTools", {"tools": tools}))


def ended(expected: Any, state: Any) -> Evaluable:
    return Evaluable(expected_state=expected, state=state)


def test_a_final_state_may_know_more_than_expected() -> None:
    state = {"cart": {"items": [1, 2], "total": 9.0}, "user": "ann"}
    assert FinalState()(ended({"cart": {"total": 9}}, state)).score == 1.0


def test_a_final_state_that_differs_names_every_key() -> None:
    evaluation = FinalState()(ended({"a": 1, "b": {"c": 2}, "d": 3}, {"a": 2, "b": {"c": 3}}))
    assert evaluation.score == 0.0
    assert sorted(evaluation.details["different"]) == ["a", "b", "d"]
    assert evaluation.reasoning == "a: 1 → 2; b.c: 2 → 3; d: missing, expected 3"


def test_a_final_state_may_hold_matchers() -> None:
    assert FinalState()(ended({"id": {"$regex": "A-[0-9]+"}}, {"id": "A-7"})).score == 1.0


def test_a_predicate_in_a_final_state_is_found_beside_the_suite(tmp_path: Path) -> None:
    (tmp_path / "state_checks.py").write_text("def even(value): return value % 2 == 0\n")
    final_state = resolve_evaluator(EvaluatorSpec("FinalState"), tmp_path).call
    expected = {"total": {"$predicate": "state_checks.py:even"}}
    assert final_state(ended(expected, {"total": 2})).score == 1.0
    assert final_state(ended(expected, {"total": 3})).score == 0.0


def test_an_expected_nothing_is_not_a_missing_key() -> None:
    assert FinalState()(ended({"error": None}, {"error": None})).score == 1.0
    assert FinalState()(ended({"error": None}, {})).score == 0.0


@pytest.mark.parametrize(
    ("expected", "state", "score"),
    [
        ({"cart": []}, {"cart": []}, 1.0),
        ({"cart": []}, {"cart": ["book"]}, 0.0),
        ({"user": {}}, {"user": {"name": "ann"}}, 0.0),
        ({"user": {"orders": []}}, {"user": {"name": "ann", "orders": [7]}}, 0.0),
        ({"user": {"orders": []}}, {"user": {"name": "ann", "orders": []}}, 1.0),
        ({"user": {"orders": []}}, {"user": "ann"}, 0.0),
    ],
)
def test_a_state_that_should_be_empty_is_not_met_by_one_that_is_not(
    expected: dict[str, Any], state: dict[str, Any], score: float
) -> None:
    assert FinalState()(ended(expected, state)).score == score


@pytest.mark.parametrize(("expected", "state"), [(None, {"a": 1}), ({}, {"a": 1}), ({"a": 1}, None)])
def test_a_state_that_is_not_expected_or_not_told_is_skipped(expected: Any, state: Any) -> None:
    with pytest.raises(NothingToCompare):
        FinalState()(ended(expected, state))


def test_the_final_state_is_that_of_the_whole_case() -> None:
    assert resolve_evaluator(EvaluatorSpec("FinalState")).scope == "case"


def test_an_actual_call_moves_along_a_long_chain_to_make_room() -> None:
    size = 200
    chain = [ExpectedCall("a", {"id": OneOf([index, index + 1])}) for index in range(size)]
    calls = [ToolCall("a", {"id": index}) for index in range(size + 1)]
    assert ExpectedTools()(seen([*chain, ExpectedCall("a", {"id": OneOf([0, size])})], *calls)).score == 1.0


RESULTS = [
    (5, ToolCall("f", result=5), True),
    (5, ToolCall("f", result=7), False),
    (5, ToolCall("f", error="timed out"), False),
    (None, ToolCall("f", error="timed out"), False),
    (None, ToolCall("f"), True),
    ({"total": {"$one_of": [5, 6]}, "at": {"$ignore": True}}, ToolCall("f", result={"total": 6, "at": "noon"}), True),
    ({"total": {"$one_of": [5, 6]}}, ToolCall("f", result={"total": 4}), False),
]


@pytest.mark.parametrize("evaluator", [ExpectedTools(), ToolTrajectory(), ToolTrajectory(match="ANY_ORDER")])
@pytest.mark.parametrize(("result", "call", "passes"), RESULTS)
@pytest.mark.parametrize("args", [None, {}])
def test_a_call_with_another_result_than_the_expected_does_not_count(
    evaluator: Any, result: Any, call: ToolCall, passes: bool, args: Any
) -> None:
    evaluation = evaluator(seen([ExpectedCall("f", args, result=result)], call))
    assert evaluation.score == float(passes), evaluation.reasoning
    assert passes or "f: result" in evaluation.reasoning


def test_names_alone_do_not_compare_results() -> None:
    expected = [ExpectedCall("f", {"a": 1}, result=5)]
    assert ToolTrajectory(ignore_args=True)(seen(expected, ToolCall("f", result=7))).score == 1.0
