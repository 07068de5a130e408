from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import ToolCall
from proctor.cases.matchers import Equals, Ignore, Regex
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.calls import actual_text, credit, expand_counts, expected_text, match_matrix, mismatches

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, 1.0, math.nan, math.inf])
    | st.text(max_size=2)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
arguments = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
literal_calls = st.builds(
    lambda name, given: ExpectedCall(name, {key: Equals(value) for key, value in given.items()}),
    st.sampled_from(["x", "y"]),
    arguments,
)
actual_calls = st.builds(ToolCall, st.sampled_from(["x", "y"]), arguments)


def expecting(given: Mapping[str, Any], **options: Any) -> ExpectedCall:
    return ExpectedCall("x", {key: Equals(value) for key, value in given.items()}, **options)


def why(expected: ExpectedCall, **given: Any) -> list[str]:
    return list(mismatches(expected, ToolCall("x", given)))


def test_arguments_that_are_not_asserted_may_be_anything() -> None:
    assert why(ExpectedCall("x"), a=1, b=2) == []


def test_no_arguments_means_no_arguments() -> None:
    assert why(expecting({})) == []
    assert why(expecting({}), a=1) == ["a: not expected, got 1"]


def test_a_missing_argument_is_named_with_what_it_should_be() -> None:
    assert why(expecting({"id": "7"})) == ["id: missing, expected '7'"]


def test_an_ignored_argument_may_be_missing_altogether() -> None:
    assert why(ExpectedCall("x", {"note": Ignore()})) == []


def test_further_arguments_are_fine_only_where_they_are_allowed() -> None:
    assert why(expecting({"id": 7}), id=7, page=1) == ["page: not expected, got 1"]
    assert why(expecting({"id": 7}, extra_args=True), id=7, page=1) == []


def test_numbers_are_equal_across_types_and_booleans_are_no_numbers() -> None:
    assert why(expecting({"id": 1}), id=1.0) == []
    assert len(why(expecting({"id": 1}), id=True)) == 1
    assert len(why(expecting({"id": 1}), id="1")) == 1


def test_arguments_that_were_no_json_object_fit_no_assertion() -> None:
    garbled = ToolCall("x", raw_arguments="{id: 7")
    assert list(mismatches(expecting({}), garbled)) == ["arguments are not an object: '{id: 7'"]
    assert list(mismatches(ExpectedCall("x"), garbled)) == []
    assert credit(expecting({}), garbled) == 0.0


@given(st.lists(literal_calls, max_size=5), st.lists(actual_calls, max_size=5))
def test_calls_fit_exactly_when_names_and_arguments_do(expected: list[ExpectedCall], actual: list[ToolCall]) -> None:
    assert match_matrix(expected, actual) == [
        [float(wanted.name == call.name and not list(mismatches(wanted, call))) for call in actual]
        for wanted in expected
    ]


def test_part_of_a_name_is_enough_only_where_that_is_said() -> None:
    actual = [ToolCall("vectorstore-search")]
    assert match_matrix([ExpectedCall("search", substring=True)], actual) == [[1.0]]
    assert match_matrix([ExpectedCall("search")], actual) == [[0.0]]


def test_a_call_expected_a_trillion_times_takes_no_more_room_than_there_are_calls() -> None:
    assert expand_counts([ExpectedCall("x", count=10**12), ExpectedCall("y")], 3) == [0, 0, 0, 1]


@given(arguments, arguments)
def test_credit_is_whole_exactly_when_nothing_differs(wanted: dict[str, Any], given: dict[str, Any]) -> None:
    expected, call = expecting(wanted), ToolCall("x", given)
    worth = credit(expected, call)
    assert 0.0 <= worth <= 1.0
    assert (worth == 1.0) == (not list(mismatches(expected, call)))


@given(arguments, arguments, arguments)
def test_what_credit_lacks_is_a_distance(one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]) -> None:
    def distance(left: dict[str, Any], right: dict[str, Any]) -> float:
        return 1.0 - credit(expecting(left), ToolCall("x", right))

    assert distance(one, three) <= distance(one, two) + distance(two, three) + 1e-9


def test_calls_are_written_as_people_write_them() -> None:
    assert expected_text(expecting({"order": 7, "note": "it's"})) == 'x(order=7, note="it\'s")'
    assert expected_text(expecting({"order": 7}, extra_args=True)) == "x(order=7, …)"
    assert expected_text(ExpectedCall("x")) == "x"
    assert expected_text(expecting({})) == "x()"
    assert expected_text(ExpectedCall("x", {"id": Regex("A.*")})) == "x(id=/A.*/)"
    assert actual_text(ToolCall("x", {"q": "y" * 1000})) == f"x(q='{'y' * 59}…')"
    assert actual_text(ToolCall("x", raw_arguments="oops")) == "x('oops')"
    assert actual_text(ToolCall("x", {"q": "\ud800"})) == "x(q='\\ud800')"
    assert actual_text(ToolCall("x", dict.fromkeys("abcdefghijk", 1))).endswith("h=1, …)")
