"""Reads the figures in a question: sums of money with their meaning, rates, terms, a credit score."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from money import cents

_AMOUNT = re.compile(
    r"(?P<sign>\$\s?)?(?<![\d.])(?P<digits>\d{1,15}(?:,\d{3})*(?:\.\d{1,4})?)(?P<unit>\s?(?:k|thousand|m|million)\b)?"
    r"(?!\d|\.\d|\s*%|\s*per\s?cent|\s*-?\s*(?:month|year|yr))",
    re.IGNORECASE,
)
_RATE = re.compile(r"(?<![\d.])(\d{1,6}(?:\.\d{1,6})?)\s*(?:%|per\s?cent\b)", re.IGNORECASE)
_TERM = re.compile(r"(?<![\d.])(\d{1,6}(?:\.\d{1,4})?)\s*-?\s*(month|year|yr)", re.IGNORECASE)
_SCORE = re.compile(r"\bscore\D{0,15}(\d{1,6})", re.IGNORECASE)
_YEARLY = re.compile(r"\s*(?:a|per|each|every|/)\s*year|\s*(?:yearly|annually)", re.IGNORECASE)
_MONTHLY = re.compile(r"\s*(?:a|per|each|every|/)\s*month|\s*monthly", re.IGNORECASE)
_IS_LOAN = re.compile(r"\s*(?:\w+\s)?(?:loan|mortgage)", re.IGNORECASE)
_ROLE = re.compile(
    r"\b(?:(?P<income>earn|make|income|salary)|(?P<debts>owe|debts?|already pay)"
    r"|(?P<payment>afford|payments? of)|(?P<loan>loan|borrow|mortgage))\b",
    re.IGNORECASE,
)
_UNITS = {"k": 1_000, "thousand": 1_000, "m": 1_000_000, "million": 1_000_000}
_MIN_BARE_AMOUNT = 1_000
"""A smaller number without a dollar sign is probably not money: it may be a score, a count, a year of birth."""


@dataclass(frozen=True)
class Figures:
    """The numbers in a question."""

    loans: tuple[Decimal, ...] = ()
    rates: tuple[Decimal, ...] = ()
    """Yearly, as shares: 0.05 for 5%."""
    terms: tuple[int, ...] = ()
    """In months."""
    annual_income: Decimal | None = None
    monthly_debts: Decimal | None = None
    monthly_payment: Decimal | None = None
    credit_score: int | None = None


def read_figures(question: str) -> Figures:
    """All figures in a question; those that it lacks stay empty."""
    sums: dict[str, list[Decimal]] = {"loan": [], "income": [], "debts": [], "payment": []}
    score = _SCORE.search(question)
    amounts = [match for match in _AMOUNT.finditer(question) if _is_money(match, score)]
    start = 0
    for match in amounts:
        role = _role(question[start : match.start()], question[match.end() :])
        sums[role].append(_per_period(role, _value(match), question[match.end() :]))
        start = match.end()
    return Figures(
        loans=tuple(sums["loan"]),
        rates=tuple(Decimal(number) / 100 for number in _RATE.findall(question)),
        terms=tuple(_months(number, unit) for number, unit in _TERM.findall(question)),
        annual_income=_first(sums["income"]),
        monthly_debts=_first(sums["debts"]),
        monthly_payment=_first(sums["payment"]),
        credit_score=int(score.group(1)) if score else None,
    )


def _is_money(match: re.Match[str], score: re.Match[str] | None) -> bool:
    if score is not None and match.start("digits") == score.start(1):
        return False
    return bool(match["sign"] or match["unit"]) or _value(match) >= _MIN_BARE_AMOUNT


def _value(match: re.Match[str]) -> Decimal:
    unit = (match["unit"] or "").strip().lower()
    return Decimal(match["digits"].replace(",", "")) * _UNITS.get(unit, 1)


def _role(before: str, after: str) -> str:
    """What an amount means: the last keyword before it, unless a loan is named right after it."""
    words = list(_ROLE.finditer(before))
    if _IS_LOAN.match(after) or not words:
        return "loan"
    return words[-1].lastgroup or "loan"


def _per_period(role: str, amount: Decimal, after: str) -> Decimal:
    """An income per year, which people mean unless they name a month; debts and payments per month."""
    if role == "income":
        return amount * 12 if _MONTHLY.match(after) else amount
    return cents(amount / 12) if role != "loan" and _YEARLY.match(after) else amount


def _months(number: str, unit: str) -> int:
    return int(Decimal(number) * (1 if unit.lower() == "month" else 12))


def _first(amounts: list[Decimal]) -> Decimal | None:
    return amounts[0] if amounts else None
