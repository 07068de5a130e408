"""ToolCorrectness: the share of the expected calls that were made."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor
from proctor.agents.reply import ToolCall
from proctor.cases.matchers import Equals, Ignore, Regex, Subset
from proctor.cases.suite import EvaluatorSpec, ExpectedCall
from proctor.compat.deepeval.evaluators import ToolCorrectness
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator
from proctor.evaluators.tools.calls import credit
from proctor.evaluators.tools.consistency import ToolConsistency


def expected_call(name: str, arguments: dict[str, Any] | None = None, **rest: Any) -> ExpectedCall:
    asserted = None if arguments is None else {key: Equals(value) for key, value in arguments.items()}
    return ExpectedCall(name, asserted, **rest)


def make_evaluable(expected: list[ExpectedCall] | None, actual: list[ToolCall]) -> Evaluable:
    return Evaluable(expected_tool_calls=None if expected is None else tuple(expected), tool_calls=tuple(actual))


def by_name(actual: str, expected: str) -> Evaluable:
    return make_evaluable([expected_call(name) for name in expected], [ToolCall(name) for name in actual])


@pytest.mark.parametrize(
    ("actual", "expected", "default", "ordered", "exact"),
    [
        ("A", "AB", 0.5, 0.5, 0),
        ("AB", "A", 1.0, 1.0, 0),
        ("BA", "AB", 1.0, 0.5, 0),
        ("AXB", "AB", 1.0, 1.0, 0),
        ("AA", "AA", 1.0, 1.0, 1),
        ("A", "AA", 0.5, 0.5, 0),
        ("AB", "AB", 1.0, 1.0, 1),
        ("", "AB", 0.0, 0.0, 0),
        ("", "", 1.0, 1.0, 1),
        ("A", "", 0.0, 0.0, 0),
    ],
)
def test_the_share_of_expected_tools(actual: str, expected: str, default: float, ordered: float, exact: float) -> None:
    evaluable = by_name(actual, expected)
    scores = [ToolCorrectness()(evaluable).score, ToolCorrectness(ordered=True)(evaluable).score]
    assert [*scores, ToolCorrectness(exact=True)(evaluable).score] == [default, ordered, exact]


@pytest.mark.parametrize("options", [{}, {"ordered": True}])
@pytest.mark.parametrize(
    ("wanted", "given_", "score"),
    [
        ({"x": 1, "y": 3}, {"x": 1, "y": 2}, 0.5),
        ({"x": 1}, {"x": 1, "y": 2}, 0.5),
        ({"d": {"p": 1, "q": 9}}, {"d": {"p": 1, "q": 2}}, 0.5),
        ({"x": "50000"}, {"x": 50000}, 0.0),
        ({"x": 50000.0}, {"x": 50000}, 1.0),
        ({"x": None}, {"x": None}, 1.0),
        ({"x": None}, {"x": {}}, 0.0),
        ({"d": {}}, {"d": {}}, 1.0),
        ({}, {}, 1.0),
        ({}, {"x": 1}, 0.0),
        ({"x": 1}, {}, 0.0),
        (None, {"x": 1}, 1.0),
    ],
)
def test_arguments_earn_credit_by_the_share_that_is_right(
    wanted: dict[str, Any] | None, given_: dict[str, Any], score: float, options: dict[str, bool]
) -> None:
    evaluable = make_evaluable([expected_call("a", wanted)], [ToolCall("a", given_)])
    assert ToolCorrectness(compare_arguments=True, **options)(evaluable).score == score
    assert ToolCorrectness(compare_arguments=True, exact=True)(evaluable).score == float(score == 1.0)


def test_arguments_are_only_compared_when_asked() -> None:
    assert ToolCorrectness()(make_evaluable([expected_call("a", {"x": 1})], [ToolCall("a", {"x": 2})])).score == 1.0


def test_arguments_that_could_not_be_parsed_earn_nothing_and_break_nothing() -> None:
    evaluable = make_evaluable([expected_call("a", {"x": 1})], [ToolCall("a", raw_arguments="x: 1")])
    evaluation = ToolCorrectness(compare_arguments=True)(evaluable)
    assert evaluation.score == 0.0
    assert evaluation.reasoning == "a: arguments are not an object: 'x: 1'"


def test_matchers_earn_all_or_nothing_and_further_arguments_cost_nothing_where_allowed() -> None:
    expected = ExpectedCall("a", {"x": Regex("1+"), "y": Ignore()}, extra_args=True)
    assert (
        ToolCorrectness(compare_arguments=True)(make_evaluable([expected], [ToolCall("a", {"x": "11", "z": 1})])).score
        == 1.0
    )
    assert ToolCorrectness(compare_arguments=True)(make_evaluable([expected], [ToolCall("a", {"x": "2"})])).score == 0.5


def test_results_count_when_asked_and_given() -> None:
    expected = [expected_call("a", result={"ok": True}), expected_call("b")]
    evaluable = make_evaluable(expected, [ToolCall("a", result={"ok": False}), ToolCall("b", result="anything")])
    assert ToolCorrectness()(evaluable).score == 1.0
    evaluation = ToolCorrectness(compare_results=True)(evaluable)
    assert evaluation.score == 0.5
    assert evaluation.reasoning == "a: result.ok: true → false"


def test_each_call_is_paired_where_it_earns_the_most_on_the_whole() -> None:
    expected = [expected_call("a", {"x": 1, "y": 1}), expected_call("a", {"x": 1, "y": 2})]
    actual = [ToolCall("a", {"x": 1, "y": 2}), ToolCall("a", {"x": 1, "y": 3})]
    assert ToolCorrectness(compare_arguments=True)(make_evaluable(expected, actual)).score == 0.75


def test_an_identical_call_is_left_to_the_expected_call_that_needs_it_more() -> None:
    literal = expected_call("a", {"d": {"p": 1, "q": 1}})
    picky = ExpectedCall("a", {"d": Subset({"q": 1})})
    actual = [ToolCall("a", {"d": {"p": 1, "q": 1}}), ToolCall("a", {"d": {"p": 1, "q": 2}})]
    assert ToolCorrectness(compare_arguments=True)(make_evaluable([literal, picky], actual)).score == 0.75


def test_identical_arguments_do_not_pair_calls_of_different_tools() -> None:
    expected = [expected_call("ab", {"x": 1}), expected_call("a", {"x": 2}, substring=True)]
    actual = [ToolCall("a", {"x": 1}), ToolCall("ab", {"x": 2})]
    assert ToolCorrectness(compare_arguments=True)(make_evaluable(expected, actual)).score == 0.5


def test_more_expected_than_actual_calls_are_paired_at_their_best_too() -> None:
    expected = [
        expected_call("a", {"w": 1, "x": 1, "y": 0}),
        expected_call("a", {"w": 1, "x": 0, "y": 0}),
        expected_call("a", {"w": 0, "x": 0, "y": 0}),
    ]
    actual = [ToolCall("a", {"w": 1, "x": 1, "y": 5}), ToolCall("a", {"w": 1, "x": 1, "y": 6})]
    assert ToolCorrectness(compare_arguments=True)(make_evaluable(expected, actual)).score == pytest.approx(1 / 3)


def test_an_expected_count_is_that_many_calls() -> None:
    assert ToolCorrectness()(make_evaluable([expected_call("a", count=4)], [ToolCall("a")])).score == 0.25


def test_no_expectation_is_skipped() -> None:
    with pytest.raises(NothingToCompare):
        ToolCorrectness()(make_evaluable(None, [ToolCall("a")]))


def test_the_reason_names_the_argument_and_the_credit_is_kept() -> None:
    evaluable = make_evaluable(
        [expected_call("a", {"x": 1, "y": 1}), expected_call("b")], [ToolCall("a", {"x": 1, "y": 2})]
    )
    evaluation = ToolCorrectness(compare_arguments=True)(evaluable)
    assert evaluation.reasoning == "missing b; a: y: 1 → 2"
    assert evaluation.details["credit"] == [0.5]


def test_calls_in_the_wrong_order_are_named() -> None:
    assert ToolCorrectness(ordered=True)(by_name("BA", "AB")).reasoning.startswith("out of order ")


def test_a_suite_file_builds_it_by_name() -> None:
    bound = resolve_evaluator(EvaluatorSpec("ToolCorrectness", {"ordered": True}))
    assert bound.threshold == 0.5
    assert bound.call(by_name("BA", "AB")).score == 0.5


arguments = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 1), max_size=3)
actual_calls = st.lists(st.builds(ToolCall, st.sampled_from(["a", "b", "ab"]), arguments), max_size=4)
literal_calls = st.builds(expected_call, st.sampled_from(["a", "b"]), arguments, substring=st.booleans())
loose_calls = st.builds(
    lambda name, asserted, substring, extra: ExpectedCall(name, asserted, substring=substring, extra_args=extra),
    st.sampled_from(["a", "b"]),
    st.none() | st.dictionaries(st.sampled_from("xy"), st.sampled_from([Equals(0), Ignore(), Regex("1")])),
    st.booleans(),
    st.booleans(),
)
expectations = st.lists(literal_calls, max_size=4) | st.lists(literal_calls | loose_calls, max_size=4)


def best_by_trying(expected: list[ExpectedCall], actual: list[ToolCall]) -> float:
    places = [*range(len(actual)), *[None] * len(expected)]
    return max(
        sum(
            credit(call, actual[place])
            for call, place in zip(expected, order, strict=True)
            if place is not None and call.accepts_name(actual[place].name)
        )
        for order in set(permutations(places, len(expected)))
    )


@given(expectations.filter(bool), actual_calls)
def test_no_other_pairing_earns_more(expected: list[ExpectedCall], actual: list[ToolCall]) -> None:
    score = ToolCorrectness(compare_arguments=True)(make_evaluable(expected, actual)).score
    assert score * len(expected) == pytest.approx(best_by_trying(expected, actual))


@given(expectations, actual_calls, st.randoms())
def test_the_order_of_the_reference_never_changes_the_score(
    expected: list[ExpectedCall], actual: list[ToolCall], random: Any
) -> None:
    evaluator = ToolCorrectness(compare_arguments=True)
    shuffled = random.sample(expected, len(expected))
    assert evaluator(make_evaluable(shuffled, actual)).score == pytest.approx(
        evaluator(make_evaluable(expected, actual)).score
    )


@given(expectations, actual_calls, st.booleans())
def test_order_and_exactness_never_earn_more(
    expected: list[ExpectedCall], actual: list[ToolCall], compare: bool
) -> None:
    def score(**options: bool) -> float:
        return ToolCorrectness(compare_arguments=compare, **options)(make_evaluable(expected, actual)).score

    assert score(exact=True) <= score(ordered=True) + 1e-9
    assert score(ordered=True) <= score() + 1e-9


@pytest.mark.parametrize("options", [{}, {"ordered": True}, {"exact": True}])
def test_hundreds_of_calls_against_hundreds_come_to_an_end(options: dict[str, bool]) -> None:
    expected = [expected_call("t", {"id": index}) for index in range(300)]
    actual = [ToolCall("t", {"id": index}) for index in range(300)]
    assert ToolCorrectness(compare_arguments=True, **options)(make_evaluable(expected, actual)).score == 1.0


def test_hundreds_of_half_alike_calls_are_matched_without_hanging() -> None:
    expected = tuple(ExpectedCall("t", {"kind": index % 3, "id": index}) for index in range(300))
    actual = tuple(ToolCall("t", {"kind": index % 3, "id": -index - 1}) for index in range(300))
    evaluable = Evaluable(tool_calls=actual, expected_tool_calls=expected)
    assert ToolCorrectness(compare_arguments=True)(evaluable).score == pytest.approx(0.5)


def rate() -> float:
    return 0.05


def broken() -> None:
    raise ConnectionError("no route")


TOOLS = {"rate": rate, "broken": broken}


def score(*calls: ToolCall, **options: Any) -> proctor.Evaluation:
    found = proctor.evaluate_sync(ToolConsistency(**{"tools": TOOLS, **options}), Evaluable(tool_calls=calls))
    assert found is not None
    return found
