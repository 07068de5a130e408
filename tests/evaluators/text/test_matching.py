"""Evaluators of text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.cases.suite import EvaluatorSpec, Keywords, NamedData
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator
from proctor.evaluators.text.matching import Contains, EndsWith, ExactMatch, LevenshteinMatch, Regex, StartsWith

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def seen(output: Any, expectation: Any = UNSET, keywords: Keywords | None = None) -> Evaluable:
    return Evaluable(eval_output=(NamedData("output", output),), expectation=expectation, keywords=keywords)


def exact(output: Any, expectation: Any, **options: Any) -> float:
    return ExactMatch(**options)(seen(output, expectation)).score


@pytest.mark.parametrize("evaluator", [ExactMatch(), LevenshteinMatch(), StartsWith(), EndsWith()])
def test_without_an_expectation_there_is_neither_a_pass_nor_a_zero(evaluator: Any) -> None:
    with pytest.raises(NothingToCompare, match="expected output"):
        evaluator(seen("None"))


@given(anything, anything)
@pytest.mark.parametrize("evaluator", [ExactMatch(), ExactMatch(strip=True, ignore_case=True), LevenshteinMatch()])
def test_any_two_values_get_a_score_in_range_and_a_reason(evaluator: Any, output: Any, expectation: Any) -> None:
    evaluation = evaluator(seen(output, expectation))
    assert 0.0 <= evaluation.score <= 1.0
    assert evaluation.reasoning


@pytest.mark.parametrize(
    ("output", "expectation"),
    [
        ("Paris", "Paris"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ('{"b": 2,   "a": 1.0}', {"a": 1, "b": 2}),
        ({"a": [1]}, ' {"a":[1]} '),
        (123, "123"),
        ("123", 123),
        (1, 1.0),
        ("1.0", 1),
        ("12345678901234567890", 12345678901234567890),
        (True, "true"),
        (None, None),
        ("", None),
        (None, ""),
    ],
)
def test_exact_match_sees_the_same_answer_in_another_form(output: Any, expectation: Any) -> None:
    assert exact(output, expectation) == 1.0


@pytest.mark.parametrize(
    ("output", "expectation"),
    [
        ("paris", "Paris"),
        (" Paris", "Paris"),
        ("None", None),
        (None, "None"),
        (True, 1),
        ("12345678901234567891", 12345678901234567890),
        ("nan", 1),
        ("1" * 5000, 1),
        ({"a": 1}, None),
        ([1], 1),
        ({"a": True}, {"a": 1}),
        ([1, 2], [2, 1]),
        ("[" * 100_000, []),
        ("not json", {"a": 1}),
    ],
)
def test_exact_match_tells_different_answers_apart_without_breaking(output: Any, expectation: Any) -> None:
    assert exact(output, expectation) == 0.0


def test_exact_match_can_ignore_case_and_outer_space_even_inside_of_data() -> None:
    assert exact(" PARIS\n", "paris", strip=True, ignore_case=True) == 1.0
    assert exact({"city": ["PARIS "]}, {"city": ["paris"]}, strip=True, ignore_case=True) == 1.0
    assert exact({"CITY": 1}, {"city": 1}, ignore_case=True) == 0.0


@pytest.mark.parametrize(
    ("output", "expectation", "hint"),
    [
        ("Paris ", "Paris", "white space"),
        ("PARIS", "Paris", "only in case"),
        ("cafe\u0301", "caf\u00e9", "accents"),
        ("It is a long way to Tipperary", "It is a long way to Temeswar", "character 22"),
        ({"a": {"b": [1, 3]}}, {"a": {"b": [1, 2]}}, "a.b[1] is 3 instead of 2"),
        ({"a": 1, "c": 2}, {"a": 1}, "c is not expected"),
        ({}, {"a": 1}, "a is missing"),
        ([1], [1, 2], "1 items instead of 2"),
        ("oops", {"a": 1}, "not JSON"),
    ],
)
def test_a_mismatch_says_where_to_look(output: Any, expectation: Any, hint: str) -> None:
    assert hint in ExactMatch()(seen(output, expectation)).reasoning


def test_a_reason_stays_short_however_long_the_texts() -> None:
    assert len(ExactMatch()(seen("x" * 10**6, "y" * 10**6)).reasoning) < 400


@pytest.mark.parametrize(
    ("output", "expectation", "score"),
    [("héllo", "hello", 0.8), ("kitten", "sitting", 1 - 3 / 7), ("", "", 1.0), ("", None, 1.0), (123, "123", 1.0)],
)
def test_levenshtein_measures_edits_over_the_longer_text(output: Any, expectation: Any, score: float) -> None:
    assert LevenshteinMatch()(seen(output, expectation)).score == pytest.approx(score)


def test_nothing_is_not_like_the_word_none() -> None:
    assert LevenshteinMatch()(seen(None, "None")).score == 0.0


def keyword_found(keyword: str, text: str) -> bool:
    return Contains(all=(keyword,))(seen(text)).score == 1.0


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("1,498", "You pay $1,498.54 a month"),
        ("1,498", "1498"),
        ("1498", "1,498.54."),
        ("1,498", "1\u202f498.54"),
        ("1,498", "1\u00a0498,54 €"),
        ("1,498", "1.498,54 €"),
        ("1.498", "1.498,54 €"),
        ("1.498", "1,498 kg"),
        ("12", "12.000"),
        ("1,498.5", "1,498.54"),
        ("$1,498", "about $ 1498.10"),
        ("€5", "5 €"),
        ("5.00", "it is 5"),
        ("0.5", "about .5 percent"),
        ("-5", "it was -5 degrees"),
        ("7%", "at 7.25 %"),
        ("2024", "FY2024"),
        ("2", "1,2,3"),
        ("12,34,567", "₹1234567"),
        ("１２", "12 apples"),
        ("PRE-APPROVED", "You are pre-approved!"),
        ("credit  score", "your Credit\nScore is"),
        ("ﬁne", "It is FINE"),
        ("10:30", "at 10:30 sharp"),
        ("1.2.3", "version 1.2.3"),
        ("ประเทศ", "อยู่ในประเทศไทย"),
        ("5 days", "within 5 days"),
        ("5 days", "(5 days)"),
        ("total of 1,498", "a total of 1,498.54"),
        ("3 May 2025", "on 3 May 2025."),
        ("refund", "refunds"),
        ("don't", "we don’t ship"),
        ("on-time", "the on\u2011time train"),
        ('"paid"', "it is “paid”"),
        ("3-5 days", "3–5 days"),
        ("-5 °C", "it is −5 °C"),
        ("12,000", "12 000 people"),
        ("12 000", "12,000 people"),
        ("1 498,54 €", "1\u202f498,54 €"),
        ("1,234 km", "1234 km"),
        ("150", "Widget 2 150"),
        ("555 123", "dial 555 123 now"),
        ("5", "- 5 apples"),
        ("-5", "- 5 degrees"),
        ("5 days", "3-5 days"),
        ("17", "order A-17"),
    ],
)
def test_a_keyword_is_found_however_it_is_written(keyword: str, text: str) -> None:
    assert keyword_found(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("1,498", "11,498"),
        ("1,498", "14980"),
        ("1,498", "1,498,200"),
        ("1,498.6", "1,498.54"),
        ("$5", "5 apples"),
        ("5%", "5 of 15%"),
        ("-5", "5 degrees"),
        ("5", "15 and 50 and 0.5"),
        ("12", "$12,000"),
        ("$1", "$1,498"),
        ("1.498", "1.498.000"),
        ("42", "0042"),
        ("approved", "denied"),
        ("5 days", "15 days"),
        ("5 days", "1.5 days"),
        ("5 days", "within .5 days"),
        ("498 euros", "1,498 euros"),
        ("3 May 2025", "13 May 2025"),
        ("May 3", "May 31"),
        ("٥ أيام", "١٥ أيام"),
        ("५ दिन", "१५ दिन"),
        ("total of 1", "a total of 1,498"),
        ("5 °C", "it is -5 °C"),
        ("5 °C", "it is −5 °C"),
        ("$20", "balance: -$20.00"),
        ("100", "a change of -100"),
        ("-5", "3-5 days"),
        ("500 g", "1\u00a0500 g"),
        ("000 steps", "10,000 steps"),
        ("5-year", "a 15‑year plan"),
    ],
)
def test_a_keyword_is_not_found_in_another_number_or_word(keyword: str, text: str) -> None:
    assert not keyword_found(keyword, text)


def test_with_whole_words_a_keyword_is_not_found_inside_of_another_word() -> None:
    whole = Contains(any=("art", "5 day"), whole_words=True)
    assert whole(seen("modern art")).score == 1
    assert whole(seen("a party for 5 days")).score == 0
    assert Contains(any=("art",))(seen("a party")).score == 1


@given(st.integers(0, 10**12), st.sampled_from(["{:d}", "{:,d}", "${:,d}.50", "{:_d}", "about {:d}, roughly"]))
def test_every_number_is_found_in_its_usual_forms_and_its_neighbour_is_not(number: int, form: str) -> None:
    text = form.format(number)
    assert keyword_found(f"{number:,}", text)
    assert keyword_found(str(number), text)
    assert not keyword_found(str(number * 10 + 1), text)


@given(st.text(min_size=1).filter(str.strip))
def test_every_text_contains_itself(text: str) -> None:
    assert keyword_found(text, f"so {text}" if not text[0].isdigit() else text)


def test_any_keyword_of_a_group_is_enough_and_all_of_the_other_count_by_share() -> None:
    assert Contains(any=("approved", "eligible"))(seen("You are eligible")).score == 1.0
    assert Contains(any=("approved", "eligible"))(seen("Sorry")).score == 0.0
    assert Contains(all=("rate", "term", "fee"))(seen("The rate and the fee")).score == pytest.approx(2 / 3)
    assert Contains(any=("denied",), all=("rate",))(seen("The rate")).score == 0.0


def test_the_keywords_of_the_case_are_never_dropped_for_those_of_the_evaluator() -> None:
    contains = Contains(any=("hello",))
    assert contains(seen("hello", keywords=Keywords(any=("paris",)))).score == 0.0
    assert contains(seen("hello Paris", keywords=Keywords(any=("paris",)))).score == 1.0
    assert contains(seen("hello", keywords=Keywords(all=("hello", "paris")))).score == 0.5


def test_the_reason_names_what_was_found_and_what_is_missing() -> None:
    evaluation = Contains(all=("rate", "fee"))(seen("the rate"))
    assert 'found "rate"' in evaluation.reasoning
    assert 'missing "fee"' in evaluation.reasoning
    assert evaluation.details == {"found": ["rate"], "missing": ["fee"]}


@pytest.mark.parametrize("keywords", [None, Keywords(), Keywords(any=("", " "))])
def test_no_keywords_are_nothing_to_compare(keywords: Keywords | None) -> None:
    with pytest.raises(NothingToCompare, match="keywords"):
        Contains()(seen("anything", keywords=keywords))


def test_half_of_the_required_keywords_do_not_pass_by_default() -> None:
    assert resolve_evaluator(EvaluatorSpec("Contains", {"all": ["a", "b"]})).threshold == 1.0


def test_a_single_keyword_may_be_given_without_a_list_and_as_a_number() -> None:
    assert Contains(any="approved").any == ("approved",)  # type: ignore[arg-type]
    assert Contains(all=[1498])(seen("$1,498")).score == 1.0  # type: ignore[arg-type,list-item]


def test_case_matters_when_asked() -> None:
    assert Contains(any=("Paris",), ignore_case=False)(seen("PARIS")).score == 0.0


def test_a_pattern_is_searched_or_matched_whole() -> None:
    assert Regex(pattern="[A-Z]{2}-[0-9]+")(seen("order AB-12 sent")).score == 1.0
    assert Regex(pattern="[A-Z]{2}-[0-9]+", full=True)(seen("order AB-12 sent")).score == 0.0
    assert Regex(pattern="ab-12", ignore_case=True)(seen("AB-12")).score == 1.0
    assert Regex(pattern="x")(seen(None)).score == 0.0


def test_text_starts_and_ends_as_given_or_as_expected() -> None:
    assert StartsWith(prefix="Dear")(seen("Dear Ann")).score == 1.0
    assert StartsWith(ignore_case=True)(seen("DEAR Ann", "dear")).score == 1.0
    assert StartsWith()(seen("Oh dear", "dear")).score == 0.0
    assert EndsWith(suffix="Bob")(seen("Yours, Bob")).score == 1.0
    assert EndsWith(ignore_case=True)(seen("yours, bob", "BOB")).score == 1.0
    assert EndsWith()(seen("Bob.", "Bob")).score == 0.0


@pytest.mark.parametrize("evaluator", [StartsWith(), EndsWith()])
@pytest.mark.parametrize("nothing", ["", None])
def test_every_text_starts_with_nothing_so_that_proves_nothing(evaluator: Any, nothing: Any) -> None:
    with pytest.raises(NothingToCompare, match="empty"):
        evaluator(seen("text", nothing))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Regex", {"pattern": "("}, "not a regular expression"),
        ("Regex", {"pattern": ""}, "non-empty"),
        ("Regex", {}, "pattern"),
        ("ExactMatch", {"strip": "yes"}, "strip must be true or false"),
        ("Contains", {"any": [""]}, "blank"),
        ("Contains", {"all": [["a"]]}, "list of keywords"),
        ("Contains", {"any": {"a": 1}}, "list of keywords"),
        ("StartsWith", {"prefix": ""}, "non-empty"),
        ("EndsWith", {"suffix": 3}, "suffix must be a non-empty string"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_the_reason(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_evaluator(EvaluatorSpec(name, arguments))
