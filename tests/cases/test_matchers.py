from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.cases.matchers import (
    FORMS,
    Approx,
    Equals,
    Fuzzy,
    Ignore,
    InvalidMatcher,
    Matcher,
    OneOf,
    Predicate,
    Regex,
    Subset,
    json_equal,
    parse,
    value_matchers,
)

keys = st.text(max_size=3)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
plain_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keys.filter(lambda key: not key.startswith("$")), inner, max_size=3)
    ),
    max_leaves=8,
)


def fits(form: Any, actual: Any) -> bool:
    return parse(form).mismatch(actual) is None


@given(values)
def test_a_value_is_the_same_as_itself_and_as_its_copy(value: Any) -> None:
    import copy

    assert json_equal(value, value)
    assert json_equal(value, copy.deepcopy(value))


@given(values, values)
def test_sameness_does_not_depend_on_who_is_asked(left: Any, right: Any) -> None:
    assert json_equal(left, right) == json_equal(right, left)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (1, "1", False),
        (None, None, True),
        (None, 0, False),
        (None, {}, False),
        ("a", "A", False),
        ([1, 2], [2, 1], False),
        ([1], (1.0,), True),
        ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a": {"b": [1]}}, {"a": {"b": [1.0]}}, True),
        ({}, [], False),
        (math.nan, math.nan, False),
        (10**400, 1e308, False),
        ("\ud800", "\ud800", True),
    ],
)
def test_literal_values_are_equal_as_data(left: Any, right: Any, equal: bool) -> None:
    assert json_equal(left, right) is equal
    assert (Equals(left).mismatch(right) is None) is equal


def test_a_difference_shows_both_values() -> None:
    assert Equals(7).mismatch(8) == "7 → 8"
    assert "…" in (Equals("x" * 10_000).mismatch("y" * 10_000) or "")


@pytest.mark.parametrize(
    ("wanted", "actual", "equal"),
    [
        ("206588", "206,588", True),
        ("206588", "206 588", True),
        ("206588", "206\u202f588", True),
        ("206588", "206\u00a0588", True),
        ("206588", 206588.0, True),
        ("206_588", 206588, True),
        ("14.14%", 0.1414, True),
        (0.5, "50 %", True),
        ("YES", " yes ", True),
        ("New  York", "new york", True),
        ("New York", "newyork", False),
        ("inf", "Infinity", True),
        ("1e3", "1000", True),
        ("true", True, True),
        ("1", True, False),
        ("", "", True),
        ("%", "%", True),
        ("%", "0", False),
        ("12", "13", False),
        ("STRASSE", "straße", True),
        ("a", None, False),
        ("null", None, False),
        ("None", None, False),
        ("", None, False),
        (None, None, True),
        (None, "null", False),
        (None, "", False),
        ("null", "NULL", True),
        ("True", True, True),
        (False, "false", True),
        ("0", False, False),
        ("\ud800", "\ud800", True),
    ],
)
def test_fuzzy_text_and_numbers(wanted: Any, actual: Any, equal: bool) -> None:
    assert fits({"$fuzzy": wanted}, actual) is equal


@pytest.mark.parametrize(
    ("pattern", "actual", "equal"),
    [
        ("A-[0-9]+", "A-17", True),
        ("A-[0-9]+", "xA-17", False),
        ("A-[0-9]+", "A-17x", False),
        ("[0-9]+", 17, True),
        ("", "", True),
        (".*", "two\nlines", False),
        (".*", None, False),
        ("null|None", None, False),
        ("null", "null", True),
        ("true", True, True),
        ("True", True, False),
        ("(?s).*", "two\nlines", True),
    ],
)
def test_a_pattern_matches_from_end_to_end(pattern: str, actual: Any, equal: bool) -> None:
    assert fits({"$regex": pattern}, actual) is equal


@pytest.mark.parametrize(
    ("form", "actual", "equal"),
    [
        ({"$approx": 12.5, "tolerance": 0.1}, 12.45, True),
        ({"$approx": 12.5, "tolerance": 0.1}, 12.7, False),
        ({"$approx": 100, "relative": 0.05}, 104, True),
        ({"$approx": 100, "relative": 0.05}, 106, False),
        ({"$approx": 1}, 1 + 1e-9, True),
        ({"$approx": 1}, True, False),
        ({"$approx": 1}, "1", False),
        ({"$approx": 1}, None, False),
        ({"$approx": 1}, math.nan, False),
        ({"$approx": 1}, math.inf, False),
        ({"$approx": -100, "relative": 0.05}, -104, True),
    ],
)
def test_numbers_within_a_tolerance(form: Any, actual: Any, equal: bool) -> None:
    assert fits(form, actual) is equal


@pytest.mark.parametrize(
    ("wanted", "actual", "reason"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, None),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, None),
        ({}, {"a": 1}, None),
        ([2], [1, 2, 3], None),
        ([{"id": 1}], [{"id": 1, "name": "x"}], None),
        ([], [], None),
        ({"a": {"$regex": "x+"}}, {"a": "xxx"}, None),
        ({"a": [{"$approx": 1, "tolerance": 1}]}, {"a": [1.5]}, None),
        ({"a": 1}, {}, "a: missing, expected 1"),
        ({"a": {"b": 1}}, {"a": {}}, "a.b: missing, expected 1"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b: 1 → 2"),
        ({"a": 1}, [1], "expected an object, got [1]"),
        ({"a": {"b": 1}}, {"a": 1}, "a: expected an object, got 1"),
        ({"a": [4]}, {"a": [1, 2]}, "a: lacks 4"),
        ({"a": None}, {}, "a: missing, expected null"),
    ],
)
def test_part_of_something_larger(wanted: Any, actual: Any, reason: str | None) -> None:
    assert parse({"$subset": wanted}).mismatch(actual) == reason


def test_any_one_of_several_values_matchers_included() -> None:
    form = {"$one_of": ["EUR", {"$regex": "US.?"}, None]}
    assert all(fits(form, value) for value in ("EUR", "USD", None))
    assert parse(form).mismatch("GBP") == "'GBP' is not one of [EUR, /US.?/, null]"


@given(values)
def test_anything_fits_what_is_ignored(value: Any) -> None:
    assert fits({"$ignore": True}, value)


def test_a_predicate_is_found_beside_the_file_and_called_only_when_needed(tmp_path: Path) -> None:
    (tmp_path / "predicates_here.py").write_text("def even(value): return value % 2 == 0\n")
    matcher = parse({"$predicate": "predicates_here.py:even"}, tmp_path)
    assert matcher.mismatch(2) is None
    assert matcher.mismatch(3) == "predicates_here.py:even rejects 3"


def test_a_predicate_that_is_nowhere_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere_here\.py"):
        Predicate("nowhere_here.py:even", tmp_path).mismatch(1)


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"$like": 1}, r"\$like is not a matcher"),
        ({"$regex": "a", "$fuzzy": "a"}, "is not a matcher"),
        ({"$regex": "("}, "is not a pattern"),
        ({"$regex": 7}, "needs a pattern"),
        ({"$regex": "a", "flags": "i"}, "does not take flags"),
        ({"$approx": "1"}, "needs numbers"),
        ({"$approx": True}, "needs numbers"),
        ({"$approx": 1, "tolerance": None}, "needs numbers"),
        ({"$one_of": "abc"}, "needs a list"),
        ({"$one_of": [{"$regex": "("}]}, "is not a pattern"),
        ({"$subset": {"a": [{"$like": 1}]}}, r"\$like is not a matcher"),
        ({"$predicate": "even"}, "needs a reference"),
        ({"$predicate": None}, "needs a reference"),
    ],
)
def test_a_mistake_in_a_matcher_is_found_when_it_is_read(form: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(form)


@given(values)
def test_a_literal_survives_being_written_and_read(value: Any) -> None:
    assert parse(Equals(value).to_json()) == Equals(value)


@given(plain_values)
def test_a_value_without_a_matcher_in_it_means_itself(value: Any) -> None:
    assert parse(value) == Equals(value)
    assert parse({"$subset": value}).mismatch(value) is None
    assert parse({"$one_of": [value]}).mismatch(value) is None
    assert parse({"$fuzzy": value}).mismatch(value) is None


@pytest.mark.parametrize(
    "matcher",
    [
        Equals({"$regex": "not a pattern ("}),
        Regex("a+"),
        Fuzzy("A"),
        Approx(1.0),
        Approx(1.0, 0.5, 0.25),
        Subset({"a": [1]}),
        OneOf((1, "a")),
        Ignore(),
        Predicate("checks.py:even"),
    ],
)
def test_every_matcher_is_read_back_as_it_was_written(matcher: Matcher) -> None:
    assert parse(matcher.to_json()) == matcher
    assert isinstance(matcher, Matcher)


def test_every_form_has_a_matcher() -> None:
    operands = {"$approx": 1, "$one_of": [1], "$predicate": "checks.py:even", "$ignore": True, "$type": "string"}
    operands |= {"$object": {}, "$list": []}
    assert all(isinstance(parse({form: operands.get(form, "a")}), Matcher) for form in FORMS)


@given(
    st.sampled_from([Equals(1), Regex("a"), Fuzzy("1"), Approx(1.0), Subset({"a": 1}), OneOf((1,)), Ignore()]),
    values | st.just(math.nan) | st.just("\ud800"),
)
def test_no_value_makes_a_matcher_crash(matcher: Matcher, value: Any) -> None:
    reason = matcher.mismatch(value)
    assert reason is None or reason


@pytest.mark.parametrize(
    "form", [{"$subset": {"a": {"$predicate": "beside.py:ok"}}}, {"$one_of": [{"$predicate": "beside.py:ok"}]}]
)
def test_a_predicate_inside_a_matcher_is_found_beside_the_file(form: Any, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def ok(value): return True\n")
    assert parse(form, tmp_path).mismatch({"a": 1}) is None


def test_a_number_too_large_for_a_float_is_not_near_anything() -> None:
    assert Approx(1.0).mismatch(10**400)


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"$approx": 10**400}, "smaller numbers"),
        ({"$approx": math.nan}, "finite"),
        ({"$approx": 1, "tolerance": -1}, "negative"),
        ({"$ignore": False}, "must be true"),
        ({"$one_of": []}, "at least one"),
    ],
)
def test_a_matcher_that_could_never_match_is_refused(form: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(form)


def test_values_that_look_alike_are_told_apart() -> None:
    assert Equals(1).mismatch("1") == "1 → '1'"


def test_long_identifiers_are_not_rounded_to_each_other() -> None:
    assert not fits({"$fuzzy": "1000000001"}, "1000000002")
    assert fits({"$fuzzy": "007"}, 7)


def test_a_tuple_is_a_list() -> None:
    assert Subset([1]).mismatch((1, 2)) is None


def test_a_new_matcher_is_one_class() -> None:
    before = dict(FORMS)

    @value_matchers.form("$shorter_than", "unit")
    @dataclass(frozen=True)
    class ShorterThan:
        length: Matcher

        @classmethod
        def read(cls, operand: Json, options: value_matchers.Options, parts: value_matchers.Parts) -> Matcher:
            return cls(parts.read(operand))

        def mismatch(self, actual: Json) -> str | None:
            return self.length.mismatch(len(str(actual)))

        def to_json(self) -> Json:
            return {"$shorter_than": self.length.to_json()}

    try:
        matcher = parse({"a": [{"$shorter_than": {"$approx": 3, "tolerance": 2}}]})
        assert matcher.mismatch({"a": ["four"]}) is None
        assert "a[0]" in str(matcher.mismatch({"a": ["far too long"]}))
        assert parse(matcher.to_json()) == matcher
        with pytest.raises(InvalidMatcher, match=r"\$shorter_than does not take units"):
            parse({"$shorter_than": 3, "units": 1})
        with pytest.raises(InvalidMatcher, match=r"did you mean '\$shorter_than'"):
            parse({"$shorter_then": 3})
    finally:
        FORMS.clear()
        FORMS.update(before)
