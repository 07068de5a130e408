"""Money as people count it: exact decimals, rounded half up to cents, written with a dollar sign."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import TypeAlias

Number: TypeAlias = Decimal | int | float | str
"""The numbers that tools accept: a model sends JSON, and JSON has no decimals."""

CENT = Decimal("0.01")
DOLLARS = re.compile(r"\$\s?(\d{1,15}(?:,\d{3})*(?:\.\d+)?)")


def exact(value: Number) -> Decimal | None:
    """The decimal that a person reads in `value`, so that 0.05 is a twentieth; `None` if it is not a number."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_UP)


def dollars(amount: Decimal) -> str:
    """`$1,498.54`, and `$50,000` for whole dollars."""
    return f"${cents(amount):,.2f}".removesuffix(".00")


def percent(share: Decimal) -> str:
    """`5%` for a twentieth, `6.5%` for 0.065."""
    return f"{(share * 100).normalize():f}%"


def amounts_in(text: str) -> set[Decimal]:
    """Every sum of dollars that a text mentions."""
    return {Decimal(digits.replace(",", "")) for digits in DOLLARS.findall(text)}
