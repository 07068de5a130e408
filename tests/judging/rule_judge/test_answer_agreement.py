"""Whether the embedded judge sees that two answers are the same, and whether one speaks to a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.judging.rule_judge import AGREES_FROM, agreement, alternatives, context_relevance, noncommittal, relevance


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
    found = agreement(question, reference, answer)
    assert found.verdict == "same"
    assert found.score >= AGREES_FROM


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
    found = agreement(question, reference, answer)
    assert found.verdict != "same"
    assert found.score < AGREES_FROM


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
    assert noncommittal(text)
    assert relevance("When did it open?", text)[0] == 0


@pytest.mark.parametrize(
    "text", ["It opened in 1999.", "No, it does not.", "I know it well.", "The tool is available."]
)
def test_a_plain_answer_is_not_noncommittal(text: str) -> None:
    assert not noncommittal(text)


def test_a_statement_about_the_question_is_more_relevant_than_one_about_something_else() -> None:
    question = "What is the refund policy for sale items?"
    near, _ = relevance(question, "Sale items are not refunded.")
    far, reason = relevance(question, "Our founder loves sailing in Norway.")
    assert near > 0.5 > far
    assert reason == "it shares little with the question"


def test_a_bare_number_answers_how_many_and_a_yes_answers_a_yes_or_no_question() -> None:
    assert relevance("How many rooms are there?", "Forty.")[0] > 0
    assert relevance("Is it open?", "Yes.")[0] > 0
    assert relevance("Where is it?", "Yes.")[0] == 0


def test_a_passage_about_the_question_is_more_relevant_than_another() -> None:
    question = "When does the Berlin office open?"
    assert context_relevance(question, "The Berlin office opens at 9 am.")[0] > 0.7
    score, reason = context_relevance(question, "Bananas are yellow.")
    assert score < 0.35
    assert "Berlin" in reason


ANY_TEXT = st.text(st.characters(codec=None), max_size=200) | st.sampled_from(
    ["a/b", "1/2/", "not 5 km", "I don't know"]
)


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_any_three_texts_can_be_compared(question: str, reference: str, answer: str) -> None:
    found = agreement(question, reference, answer)
    assert 0 <= found.score <= 1
    assert (found.verdict == "same") == (found.score >= AGREES_FROM)
    assert 0 <= relevance(question, answer)[0] <= 1
    assert 0 <= context_relevance(question, answer)[0] <= 1
