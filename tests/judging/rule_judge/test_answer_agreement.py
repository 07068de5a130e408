"""Whether the rule-based judge sees that two answers are the same, and whether one speaks to a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.judging.rule_judge.agreement import agreement, alternatives
from proctor.judging.rule_judge.relevance import is_noncommittal, relevances
from proctor.judging.rule_judge.statements import split_statements


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("how many episodes", "26", "There are twenty-six episodes."),
        ("when was it released", "1979/21 July 1979", "It came out on July 21, 1979."),
        ("when was it released", "May 16, 2002", "It was released on 16 May 2002."),
        ("where is it", "Indianapolis, Indiana", "They broadcast from Indianapolis, Indiana."),
        ("who played him", "Jacob Tremblay", "He is played by Jacob Tremblay123."),
        ("first element", "Hydro\xadgen", "The first element is hydrogen."),
        ("is it open", "yes, it is open on Sundays", "Yes, it is open on Sundays."),
        ("who won", "Zoë Müller", "Zoe Muller won."),
        ("how much", "$1,498", "It costs 1498.00 dollars."),
    ],
)
def test_the_same_answer_in_another_form_agrees(question: str, reference: str, answer: str) -> None:
    assert agreement(question, reference, answer).verdict == "same"


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("how many episodes", "26", "There are 24 episodes."),
        ("when was it released", "May 16, 2002", "It was released on 16 May 2003."),
        ("who wrote it", "Sarah Hale", "Sarah Lindqvist wrote it."),
        ("who wrote it", "Sarah Hale", "It was not written by Sarah Hale."),
        ("who wrote it", "Sarah Hale", "I don't know who wrote it."),
        ("who wrote it", "Sarah Hale", ""),
        ("who wrote it", "", "Sarah Hale"),
    ],
)
def test_another_answer_does_not_agree(question: str, reference: str, answer: str) -> None:
    assert agreement(question, reference, answer).verdict in ("different", "contradicted")


def test_the_missing_and_the_replaced_are_named() -> None:
    assert agreement("where", "Lee County, Florida", "In Ohio.").missing == ("Lee", "County", "Florida")
    replaced = agreement("who wrote it", "Sarah Hale", "Sarah Lindqvist wrote it.")
    assert replaced.contradicted == ("Hale",)
    assert "lindqvist" in replaced.reason


def test_a_long_reference_is_compared_statement_by_statement() -> None:
    reference = (
        "Refunds are paid within 30 days to the original card. Sale items are not refundable. "
        "Return shipping costs $7.50 and is paid by the customer."
    )
    assert agreement("What is the policy?", reference, reference).verdict == "same"
    wrong = agreement("What is the policy?", reference, reference.replace("30 days", "60 days"))
    assert wrong.verdict == "contradicted"
    assert wrong.contradicted == ("Refunds are paid within 30 days to the original card.",)


@pytest.mark.parametrize(
    ("reference", "ways"),
    [
        ("1979/21 July 1979", ["1979", "21 July 1979"]),
        ("1/2", ["1/2"]),
        ("12/24/2018", ["12/24/2018"]),
        ("100 km/h", ["100 km/h"]),
        ("https://example.org/a", ["https://example.org/a"]),
        ("Cake/cakes/Cake", ["Cake", "cakes"]),
        (" / ", []),
    ],
)
def test_a_slash_parts_ways_to_say_it_but_not_dates_fractions_and_units(reference: str, ways: list[str]) -> None:
    assert alternatives(reference) == ways


@pytest.mark.parametrize(
    "text",
    ["I don't know.", "I do not have access to real-time information.", "I'm not sure about that.", "It is unknown.",
     "As an AI language model, I cannot say.", "Sorry, but I can't help with that."],
)  # fmt: skip
def test_an_evasive_answer_is_noncommittal_and_not_relevant(text: str) -> None:
    assert is_noncommittal(text)
    assert relevance("When did it open?", text) == "irrelevant"


@pytest.mark.parametrize(
    "text", ["It opened in 1999.", "No, it does not.", "I know it well.", "The tool is available."]
)
def test_a_plain_answer_is_not_noncommittal(text: str) -> None:
    assert not is_noncommittal(text)


@pytest.mark.parametrize(
    ("question", "answer", "verdict"),
    [
        ("What is the refund policy for sale items?", "Sale items are not refunded.", "relevant"),
        ("What is the refund policy for sale items?", "Our founder loves sailing in Norway.", "irrelevant"),
        ("Capital of France?", "Bananas are yellow.", "irrelevant"),
        ("What is the capital of France?", "Paris.", "relevant"),
        ("What is the capital of France?", "I like cheese.", "irrelevant"),
        ("Do I qualify for a loan of $25,000?", "You are eligible.", "relevant"),
        ("How many rooms are there?", "Forty.", "relevant"),
        ("Is it open?", "Yes.", "relevant"),
        ("Where is it?", "Hello! How can I help?", "irrelevant"),
    ],
)
def test_an_answer_that_shares_no_subject_is_not_relevant_and_a_short_one_is(
    question: str, answer: str, verdict: str
) -> None:
    assert relevance(question, answer) == verdict


def test_small_talk_around_an_answer_is_a_courtesy() -> None:
    told = ["Hello!", "The Berlin office opens at 9 am.", "Is there anything else?"]
    found = [judged.verdict for judged in relevances("When does the Berlin office open?", told)]
    assert found == ["courtesy", "relevant", "courtesy"]


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("why did it fail", "the cable was loose", "Somebody had not plugged it in firmly."),
        ("list the gifts", "wisdom/counsel/piety", "1. Wisdom\n2. Courage\n3. Awe"),
        ("when did it start", "the 1920s/the 1940s", "In the 1940s."),
    ],
)
def test_what_may_be_said_in_other_words_or_in_part_is_unclear(question: str, reference: str, answer: str) -> None:
    assert agreement(question, reference, answer).verdict == "unclear"


def relevance(question: str, text: str) -> str:
    """The verdict on an answer of one or more statements: that of the first."""
    return relevances(question, split_statements(text))[0].verdict


ANY_TEXT = st.text(st.characters(codec=None), max_size=200) | st.sampled_from(
    ["a/b", "1/2/", "not 5 km", "I don't know"]
)


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_any_three_texts_can_be_compared(question: str, reference: str, answer: str) -> None:
    found = agreement(question, reference, answer)
    assert 0 <= found.score <= 1
    assert found == agreement(question, reference, answer)
    assert len(relevances(question, split_statements(answer))) == len(split_statements(answer))


@pytest.mark.parametrize("talk", ["Let me know if anything is unclear.", "Feel free to ask!", "I hope this helps."])
@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("Who sang it?", "Elvis Presley", "It was sung by Elvis Presley."),
        ("Who sang it?", "Elvis Presley", "It was sung by Frank Sinatra."),
        ("What was it for?", "evangelizing", "It was meant to win people for a more personal form of Christianity."),
    ],
)
def test_small_talk_changes_no_verdict(question: str, reference: str, answer: str, talk: str) -> None:
    assert agreement(question, reference, f"{answer} {talk}").verdict == agreement(question, reference, answer).verdict


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("$2.18 billion", "It made over $2.1 billion."), ("1910-1939", "1925"), ("4,712 metres", "4,700 metres")],
)
def test_a_number_that_is_given_less_exactly_is_left_open(reference: str, answer: str) -> None:
    assert agreement("How much, or when?", reference, answer).verdict == "unclear"


def test_a_denied_date_does_not_give_its_year() -> None:
    assert agreement("When did it come out?", "1983", "It was not released on June 24, 1983.").verdict != "same"


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("How many episodes are there?", "10", "There were never 10 episodes in the series."),
        ("What is the legal age?", "18", "The legal age is not 18 years old."),
        ("When was the first call made?", "April 3, 1973", "The first call was made on October 3, 1973."),
        ("Where was it introduced?", "San Francisco/in San Francisco", "It was introduced in San Kowalczyk in 1891."),
    ],
)
def test_what_is_denied_or_replaced_in_so_many_words_is_contradicted(
    question: str, reference: str, answer: str
) -> None:
    assert agreement(question, reference, answer).verdict in ("contradicted", "different")


def test_not_until_a_year_does_not_deny_it() -> None:
    said = "University was not free until a scheme came in 1989."
    assert agreement("When did it become free?", "1989", said).verdict == "unclear"
