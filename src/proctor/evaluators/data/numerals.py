"""Numbers as people and models write them: separators of thousands, decimal marks, percent and currency signs."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

CURRENCIES = "$€£¥₹₽₩₺₴₫฿₪₱₿¢"
GROUPING_SPACES = "\u00a0\u2007\u2009\u202f"
GROUPING = f"_'’{GROUPING_SPACES}"
"""Marks that only ever separate thousands; a comma and a point may also be the decimal mark."""

# Patterns stay text until they are used: compiling them would cost every start, and `re` keeps what it compiled.
_PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WHOLE = r"[+-]?[0-9]{1,400}"
_THREES = rf"[0-9]{{1,3}}([ ,{GROUPING}])[0-9]{{3}}(?:\1[0-9]{{3}})*"
_LAKHS = r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}"
_GROUPED = rf"[+-]?(?:{_THREES}|{_LAKHS})(?:\.[0-9]+)?"
_SEPARATORS = rf"[ ,{GROUPING}]"


def read_number(value: Any, *, separators: bool = True, percent: bool = True, currency: bool = True) -> float | None:
    """The finite number that `value` is or whose whole text it is; `None` when it is none. `12%` is 0.12."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return _finite(value)
    if not isinstance(value, str) or len(value) > 500:
        return None
    text = value.strip().replace("−", "-")
    scale = 1.0
    if percent and text.endswith("%"):
        text, scale = text[:-1].rstrip(), 100.0
    if currency:
        text = _without_currency(text)
    if separators and re.fullmatch(_GROUPED, text):
        text = re.sub(_SEPARATORS, "", text)
    if not re.fullmatch(_PLAIN, text):
        return None
    number = _finite(float(text))
    return None if number is None else number / scale


def same_number(number: float, text: str) -> bool:
    """Whether `text` is exactly this number, written plainly: `1` is `1.0`, and large integers lose no digit."""
    if re.fullmatch(_WHOLE, text):
        return int(text) == number
    return bool(re.fullmatch(_PLAIN, text)) and float(text) == number


@lru_cache(maxsize=4096)
def readings(digits: str) -> tuple[tuple[str, str], ...]:
    """What digits with marks between them may mean, as (whole digits, decimal digits), the English reading first.

    `1.498` is read as 1 point 498 and as 1498; `1,2,3` and `10.0.0.1` are no number at all.
    """
    both = (_reading(digits, ".", ","), _reading(digits, ",", "."))
    return tuple(dict.fromkeys(reading for reading in both if reading is not None))


def _reading(digits: str, decimal_mark: str, thousands_mark: str) -> tuple[str, str] | None:
    whole, mark, decimals = digits.partition(decimal_mark)
    if mark and not decimals.isdigit():
        return None
    groups = re.split(rf"[{re.escape(thousands_mark)}{GROUPING}]", whole)
    if len(groups) > 1:
        first, *middle, last = groups
        if not 1 <= len(first) <= 3 or len(last) != 3 or any(len(group) not in (2, 3) for group in middle):
            return None
    return "".join(groups) or "0", decimals


def _without_currency(text: str) -> str:
    sign = text[:1] if text[:1] in ("+", "-") else ""
    return sign + text[len(sign) :].strip(f"{CURRENCIES} ")


def _finite(value: float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
