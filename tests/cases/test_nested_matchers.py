from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.control_agents import NoExample, example_of
from proctor.base.errors import InvalidSuite
from proctor.cases.encoding import decode_matcher, encode_matcher
from proctor.cases.formats.loading import load
from proctor.cases.matchers import Equals, InvalidMatcher, describe, hashable_key, json_equal, parse

NESTED: list[tuple[Any, list[Any], list[Any]]] = [
    ({"city": {"$one_of": ["Oslo"]}}, [{"city": "Oslo"}], [{"city": "Rome"}, {}, {"city": "Oslo", "x": 1}, "Oslo"]),
    ([{"$fuzzy": "oslo"}], [["OSLO"]], [["Rome"], [], ["oslo", "oslo"], "oslo"]),
    ({"a": [{"b": {"$approx": 1, "tolerance": 1}}]}, [{"a": [{"b": 2}]}], [{"a": [{"b": 3}]}, {"a": [{}]}]),
    ({"a": 1, "b": {"$optional": {"$one_of": [2, 3]}}}, [{"a": 1}, {"a": 1, "b": 3}], [{"a": 1, "b": 4}, {"b": 2}]),
    ({"$type": "integer"}, [3, -1], [3.0, "3", True, None]),
    ({"$type": "number"}, [3, 3.5], ["3", False]),
    ({"$type": ["string", "null"]}, ["", None], [0, [], {}]),
    ({"$type": "integer", "value": {"$one_of": [3, 5]}}, [3, 5], [4, 3.0]),
    ({"$type": "array"}, [[], [1]], [{}, "a"]),
    ({"$object": {"a": 1}, "extra": True}, [{"a": 1}, {"a": 1, "b": 2}], [{"b": 2}, {"a": 2}, [1]]),
    ({"$object": {"a": {"$regex": "x"}}}, [{"a": "x"}], [{"a": "x", "b": 1}]),
    ({"$object": {"$ref": {"$regex": "x+"}}}, [{"$ref": "xx"}], [{"$ref": "y"}]),
    ({"$list": [1, 2, 2], "order": "any"}, [[2, 1, 2]], [[1, 2], [1, 1, 2], [1, 2, 2, 3], "122"]),
    ({"$list": [1, 3], "extra": True}, [[1, 3], [1, 2, 3], [0, 1, 2, 3]], [[3, 1], [1]]),
    ({"$list": [1, 3], "order": "any", "extra": True}, [[3, 2, 1]], [[1, 2], [3]]),
    (
        {"$list": [{"$regex": "a|b"}, {"$regex": "a"}], "order": "any"},
        [["a", "b"], ["b", "a"], ["a", "a"]],
        [["b", "b"]],
    ),
    ({"$each": {"$type": "string"}}, [[], ["a"], ["a", "b"]], [[1], ["a", None], "a"]),
    ({"$each": 1, "at_least": 1, "at_most": 2}, [[1], [1, 1]], [[], [1, 1, 1], [2]]),
    ({"$fuzzy": "New York, NY", "ignore_punctuation": True}, ["new-york NY", "NewYork (NY)!"], ["New York", "York"]),
    ({"$fuzzy": "12.5 km", "ignore_punctuation": True}, ["12.5km", "12.5-KM"], ["125 km", "1.25 km"]),
    ({"$fuzzy": "at -5 C", "ignore_punctuation": True}, ["at: -5 c"], ["at 5 C"]),
    ({"$subset": {"a": {"b": {"$optional": 1}}}}, [{"a": {}}, {"a": {"b": 1, "c": 2}}], [{"a": {"b": 2}}, {}]),
]


@pytest.mark.parametrize(("form", "fitting", "others"), NESTED)
def test_matchers_work_at_every_depth(form: Any, fitting: list[Any], others: list[Any]) -> None:
    matcher = parse(form)
    assert [value for value in fitting if matcher.mismatch(value) is not None] == []
    assert [value for value in others if matcher.mismatch(value) is None] == []


@pytest.mark.parametrize("form", [form for form, _, _ in NESTED])
def test_a_nested_matcher_is_written_and_stored_and_the_oracle_finds_a_value_unless_it_has_a_pattern(form: Any) -> None:
    matcher = parse(form)
    assert parse(matcher.to_json()) == matcher
    assert decode_matcher(encode_matcher(matcher)) == matcher
    if "$regex" in json.dumps(form):
        with pytest.raises(NoExample):
            example_of(matcher)
    else:
        assert matcher.mismatch(example_of(matcher)) is None
    assert "$" not in describe(matcher).replace("$ref", "")


@pytest.mark.parametrize(
    ("form", "reason", "pointer"),
    [
        ({"a": {"$nosuch": 1}}, r"\$nosuch is not a matcher", ("a", "$nosuch")),
        ([1, {"$one_fo": [1]}], r"did you mean '\$one_of'", (1, "$one_fo")),
        ({"$one_of": [{"b": {"$regx": "x"}}]}, r"\$regx", ("$one_of", 0, "b", "$regx")),
        ([{"$optional": 1}], "only an argument or a key", (0,)),
        ({"$type": "int"}, "integer", ("$type",)),
        ({"$type": []}, "needs one of", ("$type",)),
        ({"$list": 1}, "needs a list", ("$list",)),
        ({"$list": [], "order": "some"}, "given or any", ("$list",)),
        ({"$object": []}, "needs an object", ("$object",)),
        ({"$object": {}, "extra": 1}, "true or false", ("$object",)),
        ({"$each": 1, "at_least": -1}, "whole number", ("$each",)),
        ({"$each": 1, "at_least": 3, "at_most": 2}, "less than at_least", ("$each",)),
        ({"$fuzzy": "a", "ignore_punctuation": "yes"}, "true or false", ("$fuzzy",)),
    ],
)
def test_a_mistake_in_a_nested_matcher_leads_to_its_place(form: Any, reason: str, pointer: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidMatcher, match=reason) as raised:
        parse(form)
    assert raised.value.pointer == pointer


def test_an_unknown_matcher_is_named_with_its_line_wherever_it_stands(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "cases:\n"
        "  - input: hi\n"
        "    expected:\n"
        "      tools:\n"
        "        - name: book\n"
        "          args:\n"
        "            loc:\n"
        "              city:\n"
        "                $nosuch: 1\n"
        "    final_state:\n"
        "      seats: [{$fuzy: 1}]\n"
        "    mocks:\n"
        "      book: {args: {a: [{$on_of: [1]}]}, result: 1}\n"
    )
    with pytest.raises(InvalidSuite) as raised:
        load([suite])
    found = {(problem.line, problem.where.rpartition(".")[2]) for problem in raised.value.problems}
    assert found == {(9, "$nosuch"), (11, "$fuzy"), (13, "$on_of")}


@pytest.mark.parametrize(
    ("wanted", "got", "reason"),
    [
        ([{"amount": 1}, {"amount": 5}], [{"amount": 1}, {"amount": 55}], "[1].amount: 5 → 55"),
        ({"p": [1, 2, 3]}, {"p": [1, 3]}, "p[1]: missing, expected 2"),
        ({"p": [1, 3]}, {"p": [1, 2, 3]}, "p[1]: not expected, got 2"),
        ({"a": 1, "b": "x"}, {"a": "1"}, "a: 1 → '1', b: missing, expected 'x'"),
        ({"a": {"$one_of": ["km", {"$fuzzy": "mi"}]}}, {"a": "m"}, "a: 'm' is not one of [km, mi]"),
        ({"a": {"$type": "integer"}}, {"a": 3.0}, "a: expected an integer, got the number 3.0"),
        ({"$list": [{"n": 1}, {"n": 2}], "order": "any"}, [{"n": 2}, {"n": 3}], "[1].n: 1 → 3"),
    ],
)
def test_a_difference_is_told_with_its_path(wanted: Any, got: Any, reason: str) -> None:
    assert parse(wanted).mismatch(got) == reason


def test_long_texts_are_shown_where_they_differ() -> None:
    reason = Equals("x" * 500 + "5 EUR").mismatch("x" * 500 + "55 EUR") or ""
    assert "x5 EUR'" in reason
    assert "x55 EUR'" in reason
    assert len(reason) < 150


def test_a_pattern_nested_beyond_all_use_is_refused() -> None:
    form: Any = {"$regex": "x"}
    for _ in range(500):
        form = [form]
    with pytest.raises(ValueError, match="levels deep"):
        parse(form)


scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5]) | st.sampled_from(["", "1"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=5
)


@given(values, values)
def test_equal_data_share_a_key_and_others_do_not(left: Any, right: Any) -> None:
    assert (hashable_key(left) == hashable_key(right)) is json_equal(left, right)


def test_an_unknown_matcher_in_a_step_of_a_trajectory_is_named_with_its_line(tmp_path: Path) -> None:
    from proctor.running.plan import check_references

    path = tmp_path / "suite.yaml"
    path.write_text(
        "evaluators:\n"
        "  - Trajectory:\n"
        "      steps:\n"
        "        - name: find\n"
        "          args:\n"
        "            loc: {city: [{$nosuch: 1}]}\n"
        "cases: [{input: hi}]\n"
    )
    [suite] = load([path])
    [problem] = check_references(suite)
    assert problem.line == 6
    assert "steps[0].args.loc.city[0].$nosuch" in problem.message
