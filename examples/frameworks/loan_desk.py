"""What the examples share: the tools of a loan desk, and a mind that works them by rules instead of a model.

Each framework gets the same tools and a model of its own kind that asks `next_step` what to do, so that everything runs
offline, without a key, and the same cases get the same verdicts.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

INSTRUCTIONS = "You advise on loans. Use the tools; never work out a figure yourself."
LEAST_SCORE = 640
LOAN_TO_INCOME = 0.6


def calculate_loan_payment(loan_amount: float, annual_interest_rate: float, loan_term_months: int) -> dict[str, Any]:
    """The monthly payment of a loan; a rate of 5% is 0.05."""
    monthly = annual_interest_rate / 12
    growth = (1 + monthly) ** loan_term_months
    payment = loan_amount * monthly * growth / (growth - 1) if monthly else loan_amount / loan_term_months
    return {"monthly_payment": round(payment, 2), "total_payment": round(payment * loan_term_months, 2)}


def check_eligibility(credit_score: int, annual_income: float, loan_amount: float) -> dict[str, Any]:
    """Whether this lender would grant a loan."""
    largest = round(annual_income * LOAN_TO_INCOME, 2)
    return {"eligible": credit_score >= LEAST_SCORE and loan_amount <= largest, "largest_loan": largest}


TOOLS = (calculate_loan_payment, check_eligibility)


@dataclass(frozen=True)
class Call:
    """A tool to be used."""

    name: str
    arguments: dict[str, Any]


def next_step(questions: Sequence[str], result: Any = None) -> Call | str:
    """What a model would do after these questions: use a tool, or put the result of the latest use into words.

    Figures that the latest question does not mention are those of earlier ones.
    """
    if result is not None:
        return _in_words(_read(result) if isinstance(result, str) else result)
    score, income = _latest(questions, r"score\D{0,8}(\d+)"), _latest(questions, r"(?:earn|income of) \$([\d,]+)")
    loan = _latest(questions, r"\$([\d,]+) loan")
    if score is not None and income is not None and loan is not None:
        return Call("check_eligibility", {"credit_score": int(score), "annual_income": income, "loan_amount": loan})
    rate, months = _latest(questions, r"([\d.]+)%"), _latest(questions, r"(\d+) months")
    if loan is None or rate is None or months is None:
        return "Please tell me the amount, the rate and the term of the loan."
    terms = {"loan_amount": loan, "annual_interest_rate": rate / 100, "loan_term_months": int(months)}
    return Call("calculate_loan_payment", terms)


def _read(result: str) -> Mapping[str, Any]:
    """Some frameworks show a model JSON, others what Python prints."""
    try:
        read: Mapping[str, Any] = json.loads(result)
    except ValueError:
        read = ast.literal_eval(result)
    return read


def _in_words(result: Mapping[str, Any]) -> str:
    if "eligible" not in result:
        return f"You would pay ${result['monthly_payment']:,.2f} a month, ${result['total_payment']:,.2f} in total."
    verdict = "You are eligible" if result["eligible"] else "You are not eligible"
    return f"{verdict}; the largest loan for that income is ${result['largest_loan']:,.0f}."


def _latest(questions: Sequence[str], pattern: str) -> float | None:
    found = [match for question in questions for match in re.findall(pattern, question)]
    return float(found[-1].replace(",", "")) if found else None
