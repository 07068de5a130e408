"""Evaluators of data."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.base.keywords import read_number
from proctor.cases.suite import EvaluatorSpec, NamedData
from proctor.evaluators import json_diff as lists
from proctor.evaluators.data import JSONDiff, ListContains, Numeric, NumericDiff, ValidJSON
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator

numbers = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def seen(output: Any, expectation: Any = UNSET) -> Evaluable:
    return Evaluable(eval_output=(NamedData("output", output),), expectation=expectation)


def score(evaluator: Any, output: Any, expectation: Any = UNSET) -> float:
    result: float = evaluator(seen(output, expectation)).score
    return result


@pytest.mark.parametrize("evaluator", [NumericDiff(), Numeric(), JSONDiff(), ListContains()])
def test_without_an_expectation_data_have_nothing_to_be_compared_with(evaluator: Any) -> None:
    with pytest.raises(NothingToCompare, match="expected output"):
        evaluator(seen("1"))


@given(documents, documents)
@pytest.mark.parametrize("evaluator", [NumericDiff(), Numeric(), JSONDiff(), ValidJSON(), ListContains()])
def test_any_data_get_a_score_in_range_or_none(evaluator: Any, output: Any, expectation: Any) -> None:
    try:
        evaluation = evaluator(seen(output, expectation))
    except NothingToCompare:
        return
    assert 0.0 <= evaluation.score <= 1.0
    assert evaluation.reasoning
    json.dumps(evaluation.details, allow_nan=True)


@pytest.mark.parametrize(
    ("output", "expectation", "expected_score"),
    [
        (105, 100, 0.9756097560975610),
        (0, 0, 1.0),
        (-1, 1, 0.0),
        ("105", "100", 0.9756097560975610),
        ("1,498.54", 1498.54, 1.0),
        ("$1,498.54", 1498.54, 1.0),
        ("12%", 0.12, 1.0),
        ("−5", -5, 1.0),
        (1e308, 1e308, 1.0),
        (-1e308, 1e308, 0.0),
    ],
)
def test_numeric_diff_measures_the_difference_over_the_sum(
    output: Any, expectation: Any, expected_score: float
) -> None:
    assert score(NumericDiff(), output, expectation) == pytest.approx(expected_score)


@pytest.mark.parametrize(
    "output", ["about five", None, True, math.nan, math.inf, "1,5", "nan", "", [1], 10**400, "9" * 999]
)
def test_an_answer_that_is_no_number_is_wrong_and_the_reason_says_so(output: Any) -> None:
    for evaluator in (NumericDiff(), Numeric()):
        evaluation = evaluator(seen(output, 5))
        assert evaluation.score == 0.0
        assert "not a number" in evaluation.reasoning


@pytest.mark.parametrize("expectation", ["five", None, True, math.nan, [5]])
@pytest.mark.parametrize("evaluator", [NumericDiff(), Numeric()])
def test_an_expectation_that_is_no_number_cannot_be_compared_with(evaluator: Any, expectation: Any) -> None:
    with pytest.raises(NothingToCompare, match="needs an expected number"):
        evaluator(seen(5, expectation))


@given(st.integers(-(10**15), 10**15), st.sampled_from(["{:,}", "{:_}", "{}"]))
def test_a_number_is_read_back_from_any_grouping(number: int, form: str) -> None:
    assert read_number(form.format(number)) == number


def test_numbers_of_other_countries_are_read_where_they_are_unambiguous() -> None:
    assert read_number("12,34,567.5") == 1234567.5
    assert read_number("1\u202f498.54") == 1498.54
    assert read_number("1,5") is None


def test_numeric_holds_the_tolerance_and_counts_its_edge_in() -> None:
    assert score(Numeric(absolute_tolerance=0.1), 0.3, 0.2) == 1.0
    assert score(Numeric(absolute_tolerance=0.1), 0.31, 0.2) == 0.0
    assert score(Numeric(relative_tolerance=0.05), 105, 100) == 1.0
    assert score(Numeric(relative_tolerance=0.05), 106, 100) == 0.0
    assert score(Numeric(), "5.0000001", 5) == 1.0


def test_numeric_takes_percent_and_separators_only_when_told() -> None:
    assert score(Numeric(), "12%", 0.12) == 0.0
    assert score(Numeric(accept_percent=True), "12%", 0.12) == 1.0
    assert score(Numeric(), "1,498", 1498) == 0.0
    assert score(Numeric(accept_thousands_separators=True), "1,498", 1498) == 1.0
    assert "accept_percent" in Numeric()(seen("12%", 0.12)).reasoning
    assert "accept_thousands_separators" in Numeric()(seen("1,498", 1498)).reasoning


@pytest.mark.parametrize(
    ("output", "expectation", "expected_score"),
    [
        ({}, {}, 1.0),
        ([], [], 1.0),
        (None, None, 1.0),
        ({"a": None}, {}, 1.0),
        ({}, {"a": 1}, 0.0),
        (1, "1", 1 / 3),
        ('{"a": 1}', {"a": 1}, 1.0),
        ({"a": '{"b": 1}'}, {"a": {"b": 1}}, 1.0),
        ({"a": 105, "b": "héllo"}, {"a": 100, "b": "hello"}, (0.9756097560975610 + 0.8) / 2),
        ([1, 2], [1, 2, 3], 2 / 3),
        ([1, None], [1], 0.5),
        ([1], [1, None], 0.5),
        ({"a": True}, {"a": 1}, 0.0),
        ({"a": True}, {"a": True}, 1.0),
        ({"a": 10**400}, {"a": 1}, 0.0),
    ],
)
def test_json_diff_is_the_mean_over_the_parts(output: Any, expectation: Any, expected_score: float) -> None:
    assert score(JSONDiff(), output, expectation) == pytest.approx(expected_score)


def test_json_diff_says_which_parts_differ() -> None:
    evaluation = JSONDiff()(seen({"a": {"b": [1, 5]}, "c": 1}, {"a": {"b": [1, -5]}, "c": 1}))
    assert "a.b[1] is 5 instead of -5" in evaluation.reasoning
    assert evaluation.details["differences"] == [{"place": "a.b[1]", "expected": -5, "got": 5, "score": 0.0}]


def test_json_diff_scores_leaves_as_told() -> None:
    assert score(JSONDiff(string_scorer="exact"), {"a": "héllo"}, {"a": "hello"}) == 0.0
    assert score(JSONDiff(number_scorer="exact"), {"a": 105}, {"a": 100}) == 0.0
    assert score(JSONDiff(number_scorer="exact"), {"a": 1.0}, {"a": 1}) == 1.0
    assert score(JSONDiff(number_scorer="levenshtein"), {"a": 105}, {"a": 100}) == pytest.approx(2 / 3)


@given(documents)
def test_data_are_wholly_like_themselves(document: Any) -> None:
    assert score(JSONDiff(), document, document) == pytest.approx(1.0)
    assert score(JSONDiff(), json.dumps(document), document) == pytest.approx(1.0) or not isinstance(
        document, (dict, list)
    )


def test_nesting_beyond_all_use_does_not_break_json_diff() -> None:
    assert 0.0 <= score(JSONDiff(), "[" * 900 + "]" * 900, [[]]) <= 1.0
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert score(JSONDiff(), [1], deep) < 1.0


@pytest.mark.parametrize("output", ['{"a": 1}', "[]", " [1]\n", {"a": 1}, [1]])
def test_an_object_or_a_list_is_valid_json(output: Any) -> None:
    assert score(ValidJSON(), output) == 1.0


@pytest.mark.parametrize(
    "output", ["1", 100, "null", None, "", "{", "[NaN]", "{'a': 1}", '```json\n{"a": 1}\n```', "[" * 100_000]
)
def test_what_is_neither_object_nor_list_is_not_valid_json(output: Any) -> None:
    assert score(ValidJSON(), output) == 0.0


def test_the_schema_is_honoured_and_the_expectation_is_never_taken_for_one() -> None:
    schema = {"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}}}
    assert score(ValidJSON(schema=schema), '{"name": "Ann", "age": 3}') == 1.0
    evaluation = ValidJSON(schema=schema)(seen('{"age": "three"}', "some text"))
    assert evaluation.score == 0.0
    assert "name" in evaluation.reasoning
    assert {error["place"] for error in evaluation.details["errors"]} == {"", "age"}
    assert score(ValidJSON(), '{"a": 1}', {"type": "array"}) == 1.0
    assert score(ValidJSON(schema={"type": "integer"}), "5") == 1.0
    assert score(ValidJSON(schema={"type": "integer"}), "five") == 0.0


def test_json_in_a_code_fence_is_named_as_such() -> None:
    assert "code fence" in ValidJSON()(seen('```json\n{"a": 1}\n```')).reasoning


@pytest.mark.parametrize(
    ("output", "expectation", "expected_score"),
    [
        (["a", "b"], ["b", "a"], 1.0),
        ([], [], 1.0),
        ([], ["a"], 0.0),
        (["a"], [], 0.0),
        (None, [], 1.0),
        (["apple"], ["apple", "pear"], 0.5),
        (["apple", "pear"], ["apple"], 0.5),
        ('["b", "a"]', ["a", "b"], 1.0),
        ("ab", ["a", "b"], 0.25),
        ("apple", "apple", 1.0),
        (["aaaa", "aaab"], ["aaab", "aaac"], 0.875),
        ([1, {"b": 2, "a": 1}], [{"a": 1, "b": 2.0}, 1.0], 1.0),
    ],
)
def test_list_contains_pairs_items_whatever_their_order(output: Any, expectation: Any, expected_score: float) -> None:
    assert score(ListContains(), output, expectation) == pytest.approx(expected_score)


def test_extra_entities_cost_nothing_when_allowed() -> None:
    allowing = ListContains(allow_extra_entities=True)
    assert score(allowing, ["apple", "pear"], ["apple"]) == 1.0
    assert score(allowing, ["pear"], ["pear", "apple"]) == 0.5
    with pytest.raises(NothingToCompare, match="no item is expected"):
        allowing(seen(["apple"], []))


def test_exact_pairing_gives_nothing_for_what_is_merely_close() -> None:
    assert score(ListContains(pairwise="exact"), ["apples", "pear"], ["apple", "pear"]) == 0.5
    assert score(ListContains(pairwise="exact"), ["a", "a"], ["a", "b"]) == 0.5
    assert score(ListContains(pairwise="exact"), [1, True], [True, 1.0]) == 1.0


def test_items_are_paired_for_the_best_whole_and_shown_in_pairs() -> None:
    evaluation = ListContains()(seen(["pears", "apple"], ["apples", "pear"]))
    assert [(pair["expected"], pair["got"]) for pair in evaluation.details["pairs"]] == [
        ("apples", "apple"),
        ("pear", "pears"),
    ]


def test_lists_of_thousands_are_answered_and_an_approximate_pairing_says_so() -> None:
    items = [f"item number {index}" for index in range(5000)]
    evaluation = ListContains()(seen(list(reversed(items)), [*items[:-1], "another"]))
    assert evaluation.score == pytest.approx(1.0, abs=1e-3)
    assert evaluation.details["approximate"] is True


@given(
    st.lists(st.text(alphabet="ab", max_size=3), max_size=6), st.lists(st.text(alphabet="ab", max_size=3), max_size=6)
)
def test_an_approximate_pairing_never_scores_above_the_best(expected: list[str], got: list[str]) -> None:
    best = score(ListContains(), got, expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "MAX_PAIRING_CELLS", 4)
        assert score(ListContains(), got, expected) <= best + 1e-9


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ValidJSON", {"schema": {"type": "nope"}}, "not a JSON Schema"),
        ("ValidJSON", {"schema": "text"}, "JSON Schema object"),
        ("ValidJSON", {"schema": {"$ref": "http://127.0.0.1:9/schema.json"}}, "only references inside"),
        ("JSONDiff", {"string_scorer": "fuzzy"}, "levenshtein, exact"),
        ("JSONDiff", {"number_scorer": "fuzzy"}, "numeric, exact"),
        ("ListContains", {"pairwise": "fuzzy"}, "pairwise must be one of"),
        ("ListContains", {"allow_extra_entities": "no"}, "true or false"),
        ("Numeric", {"absolute_tolerance": -1}, "absolute_tolerance must be a number"),
        ("Numeric", {"relative_tolerance": math.nan}, "relative_tolerance must be a number"),
        ("Numeric", {"accept_percent": 1}, "true or false"),
    ],
)
def test_arguments_of_data_evaluators_that_make_no_sense_are_refused(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_evaluator(EvaluatorSpec(name, arguments))
