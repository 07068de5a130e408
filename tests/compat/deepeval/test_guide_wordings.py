"""The evaluation guide's two questions, answered in 13 right and 10 wrong ways and some more, judged without a model.

A right answer is never failed and a wrong one never passed; what the rules cannot decide is pending.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest

import proctor.compat.deepeval as d
from proctor.base.open_checks import collect_open_checks

PAYMENT = {
    "monthly_payment": 1498.54, "total_payment": 53947.61, "total_interest": 3947.61,
    "loan_amount": 50000, "annual_interest_rate": 0.05, "loan_term_months": 36,
}  # fmt: skip
ELIGIBILITY = {"eligible": True, "max_loan_amount": 285000, "credit_score": 720, "reason": "All criteria are met"}
QUESTIONS = {
    "asked": ("What is the monthly payment for a $50,000 loan at 5% interest over 36 months?", PAYMENT),
    "told": ("Calculate my monthly payment for a $50,000 loan at 5% interest over 36 months.", PAYMENT),
    "eligible": (
        "I am 35, earn $95,000 a year and have a credit score of 720. Am I eligible for a $50,000 loan?",
        ELIGIBILITY,
    ),
}
RIGHT = [
    ("asked", "Your monthly payment is $1,498.54."),
    ("told", "The monthly payment comes to $1,498.54 for 36 months."),
    ("asked", "You would pay $1,498.54 per month."),
    ("asked", "Each month you pay 1,498.54 dollars, which adds up to $53,947.61 over three years."),
    ("told", "For $50,000 at 5% over 36 months, the monthly payment is $1,498.54 and the total interest $3,947.61."),
    ("asked", "Happy to help! The monthly payment is $1,498.54. Let me know if you want to try another term."),
    ("asked", "About $1,500 a month."),
    ("told", "- Monthly payment: $1,498.54\n- Total payment: $53,947.61\n- Total interest: $3,947.61"),
    ("told", "Over the whole term you pay $53,947.61, of which $3,947.61 is interest; 36 payments of $1,498.54."),
    ("asked", "It stays below $1,500: the monthly payment is $1,498.54."),
    ("eligible", "Yes, you are eligible for a $50,000 loan."),
    ("eligible", "Good news: you qualify. The most you could borrow is $285,000."),
    ("eligible", "You meet all criteria, so you are eligible."),
]
WRONG = [
    ("asked", "Your monthly payment is $1,948.54."),
    ("told", "Your monthly payment is $1,498.54, and the total interest is $4,947.61."),
    ("asked", "The monthly payment is $53,947.61."),
    ("asked", "You would pay $1,498.54 per year."),
    ("asked", "The monthly payment is not $1,498.54."),
    ("asked", "For a $50,000 loan at 5% over 48 months, the monthly payment is $1,498.54."),
    ("told", "There is no interest; the monthly payment is $1,388.89."),
    ("asked", "Interest rates have risen a lot this year."),
    ("eligible", "Unfortunately, you are not eligible for the loan."),
    ("eligible", "You are eligible, and the most you could borrow is $28,500."),
]


FURTHER_RIGHT = [
    ("asked", "The monthly payment is roughly $1,499."),
    ("asked", "Your monthly payment is one thousand four hundred ninety-eight dollars and 54 cents."),
    ("asked", "The monthly payment is $1498.5."),
    ("asked", "Thanks for your patience! The monthly payment is 1,498.54 dollars."),
    ("told", "The annual interest rate is 5%, and the monthly payment is $1,498.54."),
    ("eligible", "Yes."),
    ("eligible", "Yes, you are eligible."),
]
FURTHER_WRONG = [
    ("asked", "The monthly payment is €1,498.54."),
    ("asked", "The monthly payment is £1,498.54."),
    ("asked", "The monthly payment is 1,498.54 yen."),
    ("asked", "The monthly payment is more than $1,498.54."),
    ("told", "The annual interest rate is 50%, and the monthly payment is $1,498.54."),
    ("eligible", "No, you are not eligible."),
    ("eligible", ""),
]


def outcome(question: str, answer: str) -> str:
    """What `assert_test` with the guide's metrics and thresholds makes of an answer."""
    text, result = QUESTIONS[question]
    passages = [json.dumps(result)]
    case = d.LLMTestCase(input=text, actual_output=answer, retrieval_context=passages, context=passages)
    metrics = [d.AnswerRelevancyMetric(0.7), d.FaithfulnessMetric(0.7), d.HallucinationMetric(0.5)]
    with collect_open_checks() as checks:
        try:
            d.assert_test(case, metrics)
        except AssertionError:
            return "failed"
    return "pending" if checks else "passed"


@pytest.mark.parametrize(("question", "answer"), [*RIGHT, *FURTHER_RIGHT])
def test_no_right_answer_is_failed(question: str, answer: str) -> None:
    assert outcome(question, answer) in ("passed", "pending")


@pytest.mark.parametrize(("question", "answer"), [*WRONG, *FURTHER_WRONG])
def test_no_wrong_answer_is_passed(question: str, answer: str) -> None:
    assert outcome(question, answer) in ("failed", "pending")


def test_some_of_both_are_decided() -> None:
    assert Counter(outcome(*row) for row in RIGHT)["passed"] >= 2
    assert Counter(outcome(*row) for row in WRONG)["failed"] >= 4
