"""The rule-based judge's reading of support: what counts as the same, and what does not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.judging.rule_judge.passage_reading import entities
from proctor.judging.rule_judge.relevance import makes_claim
from proctor.judging.rule_judge.statements import split_statements
from proctor.judging.rule_judge.support import support

POLICY = "Refunds are given within 30 days. The Berlin office is not open on Sundays. Shipping takes 5 km by bike."


@pytest.mark.parametrize(
    ("statement", "passage"),
    [
        ("The total is 1498.", "The total is $1,498.00."),
        ("It grew by 10 percent.", "It grew by 10% last year."),
        ("There are twenty rooms.", "The hotel has 20 rooms; there are no more."),
        ("It lasts 2 hours.", "It lasts 120 minutes."),
        ("It opened on 3 May 2021.", "It opened on May 3rd, 2021."),
        ("It opened on 2021-05-03.", "It opened on 3 May 2021."),
        ("It opened in 2021.", "It opened on 3 May 2021."),
        ("It costs about 400 dollars.", "It costs $398."),
        ("He was born in the US.", "He was born in the United States."),
        ("They purchased the firm.", "They bought the company."),
        ("The room is unavailable.", "The room is not available."),
        ("The NFL has teams.", "The National Football League has teams."),
        ("The order is not refundable.", '{"order": {"refundable": false}}'),
        ("It starts at 3 pm.", "It starts at 15:00."),
        ("It is 7.8 km long.", "It is 7.8 kilometres long."),
        ("The Canadian plan is free.", "The plan is free in Canada."),
    ],
)
def test_the_same_claim_in_other_words_is_supported(statement: str, passage: str) -> None:
    assert support(statement, [passage]).verdict == "supported"


@pytest.mark.parametrize(
    ("statement", "passage"),
    [
        ("The total is 2499.", "The total is $1,498.00."),
        ("It grew by 12%.", "It grew by 10% last year."),
        ("It is 5 miles long.", "It is 5 km long."),
        ("It costs 5 million.", "It costs 5 billion."),
        ("It opened on 4 May 2021.", "It opened on May 3rd, 2021."),
        ("It opened in May 2020.", "It opened on May 3rd, 2021."),
        ("The office is open on Sundays.", POLICY),
        ("Refunds are never given within 30 days.", POLICY),
        ("Sales increased in March.", "Sales decreased in March."),
        ("The claim was approved.", "The claim was denied."),
        ("The room is unavailable.", "The room is available."),
        ("Apply before the deadline.", "Apply after the deadline."),
        ("Ajax beat Celtic.", "Celtic beat Ajax."),
        ("The order is refundable.", '{"order": {"refundable": false}}'),
        ("It starts at 4 pm.", "It starts at 15:00."),
        ("They earned five platinum and two gold albums.", "They earned two platinum and five gold albums."),
    ],
)
def test_a_claim_that_the_passage_speaks_against_is_contradicted(statement: str, passage: str) -> None:
    assert support(statement, [passage]).verdict == "contradicted"


@pytest.mark.parametrize(
    "statement", ["The Hamburg office is not open on Sundays.", "Refunds need a receipt signed by Ms Okafor."]
)
def test_a_name_that_is_nowhere_is_unmentioned(statement: str) -> None:
    assert support(statement, [POLICY]).verdict == "unmentioned"


def test_the_reason_says_what_is_missing_and_what_stands_there_instead() -> None:
    assert support("It grew by 12 %.", "It grew by 10 %.").reason == "the context says 10 %, not 12 %"
    assert "Okafor" in support("Ms Okafor signs the refunds.", POLICY).reason


def test_not_only_is_no_denial() -> None:
    assert support("It is not only cheap but fast.", "It is cheap and fast.").verdict != "contradicted"


def test_an_answering_no_denies_nothing() -> None:
    assert support("No, refunds are given within 30 days.", POLICY).verdict != "contradicted"


def test_one_wrong_name_in_a_long_statement_is_enough() -> None:
    passage = (
        "The committee met in Geneva and discussed water, energy, transport, housing, schools, hospitals and taxes."
    )
    assert support(passage, passage).verdict == "supported"
    assert support(passage.replace("Geneva", "Toronto"), passage).verdict == "unmentioned"


def test_more_than_one_word_of_its_own_leaves_a_statement_open() -> None:
    passage = "Broccoli is often boiled or steamed but may be eaten raw."
    assert support("Broccoli is often boiled or steamed but can be eaten raw.", passage).verdict == "supported"
    assert support("So it was often boiled or steamed, but can be eaten raw.", passage).verdict == "unclear"


def test_what_only_the_question_says_leaves_a_statement_open() -> None:
    asked = ["Is the color of minerals an interesting subject?"]
    told = "Several minerals have a green color, including the emerald."
    said = "This is an interesting subject: several minerals have a green color."
    assert support(said, told, asked).verdict == "unclear"


def test_some_is_not_all() -> None:
    assert support("All plans include support.", "Some plans include support.").verdict == "unclear"


def test_values_of_a_tool_need_no_words_around_them_although_another_tool_returned_text() -> None:
    told = ['{"kind": "fixed", "rate": 0.05}', "The message was sent to the customer."]
    assert support("The fixed rate is 5%.", told).verdict == "supported"
    assert support("The fixed rate is 6%.", told).verdict in ("contradicted", "unmentioned")


def test_words_scattered_over_a_long_text_do_not_add_up_to_support() -> None:
    scattered = [
        f"Section {number}: {word} matters here." for number, word in enumerate("llama tango violin iron soup".split())
    ]
    filler = [f"Paragraph {number} is about something else entirely." for number in range(50)]
    judged = support("A llama plays tango on an iron violin and eats soup.", [*scattered, *filler])
    assert judged.verdict == "unmentioned"


@pytest.mark.parametrize(
    "text",
    ["", "Yes.", "...", "\ud800", "Hello!", "Hi there, Anna!", "Thanks for asking!", "Is there anything else?",
     "Let me know if you have further questions about refunds.", "I hope this helps!", "You are welcome.",
     "Great question!", "Here are the details:", "Feel free to contact us at any time.", "That's so cool!",
     "I'd be happy to help you with the refund.", "Have a nice day!", "I don't know."],
)  # fmt: skip
def test_courtesies_questions_headings_and_refusals_claim_nothing(text: str) -> None:
    assert not makes_claim(text)


@pytest.mark.parametrize(
    "text",
    ["Refunds take 5 days.", "Thanks for asking, refunds take 5 days.", "Good news: you are eligible.", "He did.",
     "I am not sure, but refunds take 5 days.", "Hello! Refunds take 5 days."],
)  # fmt: skip
def test_a_claim_beside_a_courtesy_is_a_claim(text: str) -> None:
    assert makes_claim(text)


def test_nothing_is_supported_by_no_passage() -> None:
    assert support("Refunds are given within 30 days.", []).verdict == "unmentioned"
    assert support("Refunds are given within 30 days.", [""]).verdict == "unmentioned"


def test_abbreviations_decimals_and_initials_do_not_end_a_statement() -> None:
    text = "Dr. Smith paid $3.50 to J. K. Rowling in the U.S. on Jan. 5. He left at 5 p.m. with e.g. two bags."
    assert split_statements(text) == [
        "Dr. Smith paid $3.50 to J. K. Rowling in the U.S. on Jan. 5.",
        "He left at 5 p.m. with e.g. two bags.",
    ]


def test_bullets_rows_headings_and_wrapped_lines_become_statements() -> None:
    listed = "- costs nothing\n* has 5 GB\n1. first\n\n| plan | price |\n|---|---|\n| a | 2 |"
    text = f"# Plans\nThe free plan\nis small.\n{listed}"
    assert split_statements(text) == [
        "Plans:", "The free plan is small.", "costs nothing", "has 5 GB", "first", "plan, price:", "a price 2",
    ]  # fmt: skip


def test_sentences_without_spaces_between_them_are_parted() -> None:
    assert split_statements("彼は来た。彼女は行った！") == ["彼は来た。", "彼女は行った！"]


def test_json_documents_become_statements_of_key_and_value() -> None:
    document = {"orderTotal": 12, "items": [{"in_stock": True}, {"in_stock": None}], "note": "Call first."}
    assert split_statements(json.dumps(document)) == [
        "order Total: 12", "items in stock: true", "items in stock: null", "note: Call first.",
    ]  # fmt: skip


def test_text_that_only_begins_like_json_is_read_as_text() -> None:
    assert split_statements("{not json} at all}") == ["{not json} at all}"]
    assert [statement.strip("[]") for statement in split_statements("[" * 100_000 + "x" + "]" * 100_000)] == ["x"]


def test_names_numbers_and_dates_are_entities() -> None:
    found = entities("Marie Curie moved to Paris on 3 May 1891 with 40 rubles. Marie Curie won.")
    assert found == ["Marie Curie", "Paris", "3 May 1891", "40"]


ANY_TEXT = st.text(st.characters(codec=None), max_size=300)
CLAIMS = st.lists(
    st.sampled_from(
        "the not no never 5 km $1,498 10% May 3 2021 Ajax beat Celtic is 3 pm . , ; \n - | { } : \" ' don't".split(" ")
    ),
    max_size=40,
).map(" ".join)


@given(ANY_TEXT | CLAIMS, ANY_TEXT | CLAIMS)
def test_any_text_can_be_read(statement: str, passage: str) -> None:
    judged = support(statement, [passage])
    assert 0 <= judged.share <= 1
    assert judged == support(statement, [passage])
    assert makes_claim(statement) in (True, False)
    assert isinstance(entities(statement), list)


@given(ANY_TEXT | CLAIMS)
def test_statements_lose_no_word(text: str) -> None:
    if text.strip()[:1] in ("{", "["):
        return
    kept = "".join(split_statements(text))
    letters = [character for character in text if character.isalpha()]
    assert all(character in kept for character in letters if not text.strip().startswith("```"))


@given(st.lists(st.sampled_from("refund order Berlin 30 days river Ajax costs green".split()), min_size=1, max_size=12))
def test_a_passage_supports_itself(words: list[str]) -> None:
    text = " ".join(words)
    assert support(text, [text]).verdict == "supported"


LIMITS = '{"eligible": true, "credit_score": 720, "minimum_credit_score": 650, "maximum_loan_amount": 47500}'


@pytest.mark.parametrize(
    "statement",
    [
        "Your credit score of 720 is above the minimum credit score of 650.",
        "The minimum credit score of 650 is below your credit score of 720.",
        "A credit score of 720 exceeds the minimum credit score of 650.",
    ],
)
def test_two_values_that_are_compared_keep_their_own_labels(statement: str) -> None:
    assert support(statement, [LIMITS]).verdict == "supported"


def test_compared_values_that_are_swapped_contradict() -> None:
    assert (
        support("Your credit score of 650 is above the minimum credit score of 720.", [LIMITS]).verdict
        == "contradicted"
    )


SCORES = {"credit_score": 720, "minimum_credit_score": 650}
TOLD = [
    json.dumps(SCORES),
    json.dumps({"tool": "check", "arguments": {"name": "Ann"}, "result": SCORES}),
    "credit score: 720\nminimum credit score: 650",
    "| credit score | minimum credit score |\n|---|---|\n| 720 | 650 |",
    "The credit score is 720. The minimum credit score is 650.",
]


@pytest.mark.parametrize("told", TOLD, ids=["json", "tool", "pairs", "table", "prose"])
def test_a_figure_under_another_label_contradicts_where_the_named_one_has_its_own(told: str) -> None:
    found = support("Your credit score is 650.", [told])
    assert (found.verdict, found.reason) == (
        "contradicted",
        "the context says 720, not 650 (650 refers to something else)",
    )
    assert support("The minimum credit score is 720.", [told]).verdict == "contradicted"
    assert support("Your credit score is 720.", [told]).verdict == "supported"
    assert support("The minimum credit score is 650.", [told]).verdict == "supported"
    for bound in ("You need a credit score of 650.", "The credit score must be at least 650."):
        assert support(bound, [told]).verdict != "contradicted"


def test_what_the_user_said_of_a_label_may_be_repeated() -> None:
    assert support("Your credit score is 650.", [TOLD[0]], ["My credit score is 650."]).verdict != "contradicted"


def test_a_number_of_things_is_not_compared_with_an_amount() -> None:
    told = ['{"monthly_payment": 1498.54, "users": 3}']
    assert support("There are 36 monthly payments of $1,498.54.", told).verdict != "contradicted"
    assert support("There are 5 users.", told).verdict == "contradicted"


def test_degrees_are_those_of_either_scale_and_of_nothing_else() -> None:
    assert support("It was 5 degrees.", "It was 5 °C.").verdict == "supported"
    assert support("It was 5 degrees.", "It was 5 km.").verdict != "supported"
    assert support("It was 5 °F.", "It was 5 °C.").verdict != "supported"


YEARS = [
    json.dumps({"revenue": {"2022": "5 million", "2023": "7 million"}}),
    "| year | revenue |\n|---|---|\n| 2022 | 5 million |\n| 2023 | 7 million |",
    "Revenue was 5 million in 2022 and 7 million in 2023.",
]


@pytest.mark.parametrize("told", YEARS, ids=["json", "table", "prose"])
def test_figures_of_two_years_that_changed_places_contradict(told: str) -> None:
    assert support("Revenue was 5 million in 2022.", [told]).verdict == "supported"
    assert support("Revenue was 7 million in 2022.", [told]).verdict == "contradicted"


def test_one_other_letter_in_a_long_name_makes_no_other_name() -> None:
    assert support("Dostoevsky wrote it.", "Dostoyevsky wrote it.").verdict == "supported"
