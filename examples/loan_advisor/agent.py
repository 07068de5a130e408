"""A loan advisor that plans by rules instead of a model, so that testing it needs no API key and no network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

import tools
from figures import Figures, read_figures
from money import cents, dollars, exact, percent

T = TypeVar("T")

HELP = (
    "I can help with loans: ask me for a monthly payment, an amortization schedule, a comparison of offers, "
    "whether you are eligible, or whether you can afford a payment."
)
_TOPICS = {
    "schedule": r"schedule|amorti[sz]",
    "comparison": r"compare|cheaper|better (?:deal|offer|loan)",
    "eligibility": r"eligib|qualify|approved?\b",
    "affordability": r"\bafford",
    "payment": r"payment|pay (?:each|every|a|per) month|calculate",
}
_MAX_ROWS = 12


class MissingFigures(Exception):
    """The question lacks a figure that a tool needs."""


@dataclass(frozen=True)
class Loan:
    """The loan that the conversation is about; None for figures that are not known yet."""

    loan_amount: Decimal | None
    annual_interest_rate: Decimal | None
    loan_term_months: int | None

    def complete(self) -> tuple[Decimal, Decimal, int]:
        amount = _need(self.loan_amount, "the loan amount")
        return amount, _need(self.annual_interest_rate, "the interest rate"), _need(self.loan_term_months, "the term")


class Advisor:
    """Reads a question, chooses a tool, and puts the result into words. Its memory is in `state`."""

    def answer(self, question: str, state: dict[str, Any]) -> str:
        figures = self.figures(question)
        memory = self.memory(state)
        topic = topic_of(question) or memory.get("topic")
        if topic is None:
            return HELP
        loan = Loan(
            _latest(figures.loans, memory.get("loan_amount")),
            _latest(figures.rates, memory.get("annual_interest_rate")),
            int(term) if (term := _latest(figures.terms, memory.get("loan_term_months"))) is not None else None,
        )
        state |= {name: value for name, value in vars(loan).items() if value is not None} | {"topic": topic}
        try:
            return _explain(topic, figures, loan)
        except MissingFigures as missing:
            return f"Please also tell me {missing}, and I will work it out."
        except tools.InvalidLoan as error:
            return f"I cannot work that out: {error}."

    def figures(self, question: str) -> Figures:
        return read_figures(question)

    def memory(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """The figures and topic of earlier questions in the conversation."""
        return state


_ADVISOR = Advisor()


def agent(question: str | Mapping[str, str], state: dict[str, Any]) -> str:
    """The agent to test. Formats with named arguments send the question as an object."""
    return _ADVISOR.answer(text_of(question), state)


def text_of(question: str | Mapping[str, str]) -> str:
    return question if isinstance(question, str) else question["question"]


def topic_of(question: str) -> str | None:
    return next((topic for topic, words in _TOPICS.items() if re.search(words, question, re.IGNORECASE)), None)


def _explain(topic: str, figures: Figures, loan: Loan) -> str:
    if topic == "comparison":
        return _comparison(figures)
    if topic == "eligibility":
        return _eligibility(figures)
    if topic == "affordability":
        return _affordability(figures)
    return _schedule(loan) if topic == "schedule" else _payment(loan)


def _payment(loan: Loan) -> str:
    result = tools.calculate_loan_payment(*loan.complete())
    return (
        f"A {dollars(result.loan_amount)} loan at {percent(result.annual_interest_rate)} over "
        f"{result.loan_term_months} months has a monthly payment of {dollars(result.monthly_payment)}. You would pay "
        f"{dollars(result.total_payment)} in total, of which {dollars(result.total_interest)} is interest."
    )


def _schedule(loan: Loan) -> str:
    schedule = tools.amortization_schedule(*loan.complete())
    rows = schedule.rows if len(schedule.rows) <= _MAX_ROWS else [*schedule.rows[:3], schedule.rows[-1]]
    lines = [
        f"Month {row.month}: you pay {dollars(row.payment)}, {dollars(row.principal)} of it principal and "
        f"{dollars(row.interest)} interest, and still owe {dollars(row.balance)}."
        for row in rows
    ]
    return "\n".join([*lines, f"The interest comes to {dollars(schedule.total_interest)}."])


def _eligibility(figures: Figures) -> str:
    result = tools.check_eligibility(
        _need(figures.credit_score, "your credit score"),
        _need(figures.annual_income, "your income"),
        _need(_latest(figures.loans, None), "the loan amount"),
    )
    if result.eligible:
        return f"Good news: you are eligible for this loan. You could borrow up to {dollars(result.largest_loan)}."
    return f"I am sorry, you are not eligible for this loan: {' and '.join(result.reasons)}."


def _affordability(figures: Figures) -> str:
    income = _need(figures.annual_income, "your income")
    result = tools.assess_affordability(
        cents(income / 12), figures.monthly_debts or 0, _need(figures.monthly_payment, "the payment you have in mind")
    )
    verdict = "Yes, you can afford this payment" if result.affordable else "No, this payment would be too much"
    return (
        f"{verdict}: all debts together would take {percent(result.debt_to_income)} of your income. "
        f"The most you should pay is {dollars(result.largest_payment)} a month."
    )


def _comparison(figures: Figures) -> str:
    amounts, rates, terms = figures.loans, figures.rates, figures.terms
    if not (amounts and rates and terms):
        raise MissingFigures("the amount, the rate and the term of each offer")
    count = max(len(amounts), len(rates), len(terms))
    offers = [
        tools.LoanOffer(chr(ord("A") + n % 26), _nth(amounts, n), _nth(rates, n), _nth(terms, n)) for n in range(count)
    ]
    result = tools.compare_loans(offers)
    quotes = "; ".join(
        f"offer {quote.offer.name} costs {dollars(quote.monthly_payment)} a month and {dollars(quote.total_payment)} "
        "in total"
        for quote in result.quotes
    )
    has_tradeoff = result.tradeoff is not tools.Tradeoff.NONE
    hint = f", though offer {result.lowest_payment} is lighter by month" if has_tradeoff else ""
    return f"Side by side: {quotes}. Offer {result.cheapest} is the cheapest and saves {dollars(result.saving)}{hint}."


def _need(value: T | None, name: str) -> T:
    if value is None:
        raise MissingFigures(name)
    return value


def _nth(values: tuple[Any, ...], index: int) -> Any:
    """The figure of an offer; one that is written once is that of every offer."""
    return values[min(index, len(values) - 1)]


def _latest(values: tuple[Any, ...], before: Any) -> Any:
    return values[0] if values else None if before is None else exact(before)
