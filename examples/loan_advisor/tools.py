"""The tools of the loan advisor: typed, exact to the cent, and strict about their arguments."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, Final

from money import Number, cents, dollars, exact
from pydantic import BaseModel

import proctor

MAX_LOAN: Final = Decimal(10_000_000)
MAX_TERM_MONTHS: Final = 600
SCORES: Final = range(300, 851)
MIN_CREDIT_SCORE: Final = 640
LOAN_TO_INCOME: Final = Decimal("0.6")
DEBT_TO_INCOME: Final = Decimal("0.36")
_MAX_SUM: Final = Decimal(10) ** 12
_RATE_PRECISION: Final = Decimal("0.00000001")
_DIGITS: Final = 50
"""Enough for six hundred months of compound interest without an error that reaches the cents."""


class InvalidLoan(ValueError):
    """The figures make no sense; the message can be shown to the customer."""


class LoanPayment(BaseModel):
    """What a loan costs each month and in total."""

    loan_amount: Decimal
    annual_interest_rate: Decimal
    loan_term_months: int
    monthly_payment: Decimal
    total_payment: Decimal
    total_interest: Decimal


@dataclass(frozen=True)
class Eligibility:
    """Whether a loan would be granted, and every reason why not."""

    eligible: bool
    largest_loan: Decimal
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Affordability:
    """Whether a payment is affordable, and the share of the income that goes to debts."""

    affordable: bool
    debt_to_income: Decimal
    largest_payment: Decimal


@dataclass(frozen=True)
class LoanOffer:
    """One of the loans to choose from."""

    name: str
    loan_amount: Number
    annual_interest_rate: Number
    loan_term_months: int


@dataclass(frozen=True)
class LoanQuote:
    """An offer with what it costs."""

    offer: LoanOffer
    monthly_payment: Decimal
    total_payment: Decimal


class Tradeoff(enum.Enum):
    """Whether the cheapest offer is also the one with the lowest payment."""

    NONE = "none"
    LOWER_PAYMENT_COSTS_MORE = "lower payment costs more"


class LoanComparison(BaseModel):
    """Several offers side by side."""

    quotes: list[LoanQuote]
    cheapest: str
    lowest_payment: str
    saving: Decimal
    """What the cheapest saves in total compared with the most expensive."""
    tradeoff: Tradeoff


@dataclass(frozen=True)
class ScheduleRow:
    """One month of a loan."""

    month: int
    payment: Decimal
    principal: Decimal
    interest: Decimal
    balance: Decimal


@dataclass(frozen=True)
class Schedule:
    """A loan month by month, until nothing is owed."""

    rows: list[ScheduleRow]
    total_payment: Decimal
    total_interest: Decimal


@proctor.tool
def calculate_loan_payment(loan_amount: Number, annual_interest_rate: Number, loan_term_months: int) -> LoanPayment:
    """The monthly payment of a loan; totals come from the payment before it is rounded."""
    amount, rate, months = _loan(loan_amount, annual_interest_rate, loan_term_months)
    payment = _payment(amount, rate, months)
    total = cents(payment * months)
    return LoanPayment(
        loan_amount=amount,
        annual_interest_rate=rate,
        loan_term_months=months,
        monthly_payment=cents(payment),
        total_payment=total,
        total_interest=total - amount,
    )


@proctor.tool
def check_eligibility(credit_score: int, annual_income: Number, loan_amount: Number) -> Eligibility:
    """Whether this lender would grant a loan."""
    if credit_score not in SCORES:
        raise InvalidLoan(f"a credit score lies between {SCORES[0]} and {SCORES[-1]}")
    income, amount = _positive("income", annual_income), _amount(loan_amount)
    largest = cents(income * LOAN_TO_INCOME)
    reasons = []
    if credit_score < MIN_CREDIT_SCORE:
        reasons.append(f"the credit score is {credit_score} and must be at least {MIN_CREDIT_SCORE}")
    if amount > largest:
        reasons.append(f"the largest loan for that income is {dollars(largest)}")
    return Eligibility(not reasons, largest, tuple(reasons))


@proctor.tool
def assess_affordability(monthly_income: Number, monthly_debts: Number, monthly_payment: Number) -> Affordability:
    """Whether a further payment leaves enough of an income."""
    income, payment = _positive("income", monthly_income), _positive("payment", monthly_payment)
    debts = _sum_of_money("debts", monthly_debts)
    share = (debts + payment) / income
    largest = max(Decimal(0), cents(income * DEBT_TO_INCOME - debts))
    return Affordability(share <= DEBT_TO_INCOME, share.quantize(Decimal("0.001")), largest)


@proctor.tool
def compare_loans(offers: Sequence[LoanOffer | Mapping[str, Any]]) -> LoanComparison:
    """What each offer costs, which is the cheapest, and what that saves."""
    if len(offers) < 2:
        raise InvalidLoan("a comparison needs at least two offers")
    quotes = [_quote(LoanOffer(**offer) if isinstance(offer, Mapping) else offer) for offer in offers]
    by_total = sorted(quotes, key=lambda quote: quote.total_payment)
    lightest = min(quotes, key=lambda quote: quote.monthly_payment)
    return LoanComparison(
        quotes=quotes,
        cheapest=by_total[0].offer.name,
        lowest_payment=lightest.offer.name,
        saving=by_total[-1].total_payment - by_total[0].total_payment,
        tradeoff=Tradeoff.NONE if lightest is by_total[0] else Tradeoff.LOWER_PAYMENT_COSTS_MORE,
    )


@proctor.tool
def amortization_schedule(loan_amount: Number, annual_interest_rate: Number, loan_term_months: int) -> Schedule:
    """The loan as a bank books it: equal payments in whole cents, of which the last one settles the rest."""
    amount, rate, months = _loan(loan_amount, annual_interest_rate, loan_term_months)
    payment, balance = cents(_payment(amount, rate, months)), amount
    rows: list[ScheduleRow] = []
    while balance:
        interest = cents(balance * rate / 12)
        due = balance + interest
        paid = due if len(rows) + 1 == months else min(payment, due)
        balance = due - paid
        rows.append(ScheduleRow(len(rows) + 1, paid, paid - interest, interest, balance))
    return Schedule(rows, sum((row.payment for row in rows), Decimal(0)), sum((r.interest for r in rows), Decimal(0)))


TOOLS: Final[Mapping[str, Callable[..., object]]] = {
    function.__name__: function
    for function in (
        calculate_loan_payment,
        check_eligibility,
        assess_affordability,
        compare_loans,
        amortization_schedule,
    )
}


def _payment(amount: Decimal, rate: Decimal, months: int) -> Decimal:
    with localcontext(prec=_DIGITS):
        monthly = rate / 12
        growth = (1 + monthly) ** months
        return amount / months if growth == 1 else amount * monthly * growth / (growth - 1)


def _quote(offer: LoanOffer) -> LoanQuote:
    amount, rate, months = _loan(offer.loan_amount, offer.annual_interest_rate, offer.loan_term_months)
    payment = _payment(amount, rate, months)
    return LoanQuote(offer, cents(payment), cents(payment * months))


def _loan(loan_amount: Number, annual_interest_rate: Number, months: int) -> tuple[Decimal, Decimal, int]:
    amount, rate = _amount(loan_amount), exact(annual_interest_rate)
    if rate is None or not 0 <= rate <= 1:
        raise InvalidLoan("the yearly interest rate must lie between 0% and 100%")
    if not isinstance(months, int) or not 1 <= months <= MAX_TERM_MONTHS:
        raise InvalidLoan(f"the term must lie between 1 and {MAX_TERM_MONTHS} months")
    return amount, rate.quantize(_RATE_PRECISION), months


def _amount(value: Number) -> Decimal:
    amount = _positive("loan", value)
    if amount > MAX_LOAN:
        raise InvalidLoan(f"loans go up to {dollars(MAX_LOAN)}")
    return amount


def _positive(noun: str, value: Number) -> Decimal:
    number = _sum_of_money(noun, value)
    if not number:
        raise InvalidLoan(f"the {noun} must be more than zero")
    return number


def _sum_of_money(noun: str, value: Number) -> Decimal:
    number = exact(value)
    if number is None or not 0 <= number <= _MAX_SUM:
        raise InvalidLoan(f"the {noun} must be a sum of money, not negative and not beyond all bounds")
    return cents(number)
