"""Reads dates in many notations into year, month and day, as far as they are in the text.

One pattern with an alternative per notation finds them. Parts are compared instead of strings, so "May 2024" is
confirmed by "3 May 2024", and "5/6/2024" matches in both orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

MONTHS = "january february march april may june july august september october november december".split()


@dataclass(frozen=True, slots=True)
class PartialDate:
    """A date, or the parts of it that are in a text."""

    year: int | None
    month: int | None
    day: int | None
    text: str
    start: int
    end: int
    swapped: bool = False
    """Whether day and month are two numbers that may be in either order."""


def find_dates(text: str) -> list[PartialDate]:
    """Every date with a month in a folded text, in order; a year alone is a number."""
    return [day for match in _pattern().finditer(text) if (day := _read(match)) is not None]


def matches_known_date(date: PartialDate, candidates: Iterable[PartialDate], years: Iterable[int] = ()) -> bool:
    """Whether one candidate has every part of the date; `years` are bare years that may complete a candidate."""
    candidates = list(candidates)
    if any(_fits(date, day) for day in candidates):
        return True
    return date.year is not None and date.year in set(years) and any(_fits(date, day, year=False) for day in candidates)


def _fits(date: PartialDate, candidate: PartialDate, *, year: bool = True) -> bool:
    if year and date.year is not None and date.year != candidate.year:
        return False
    return any(
        (month is None or month == their_month) and (day is None or day == their_day)
        for month, day in _orders(date)
        for their_month, their_day in _orders(candidate)
    )


def _orders(day: PartialDate) -> list[tuple[int | None, int | None]]:
    order = (day.month, day.day)
    return [order, order[::-1]] if day.swapped else [order]


@cache
def _pattern() -> re.Pattern[str]:
    name = "|".join(f"{month[:3]}(?:{month[3:]})?" if month != "may" else "may" for month in MONTHS)
    name = name.replace("sep(?:tember)?", "sept?(?:ember)?")
    alone = "|".join([*(month for month in MONTHS if month not in ("may", "march")), "May", "March"])
    day = r"\d{1,2}(?:st|nd|rd|th)?(?!\d)"
    return re.compile(
        r"(?P<iso>(?<![\w.-])(?P<y1>\d{4})-(?P<m1>\d{2})-(?P<d1>\d{2})(?!\d)(?!-\d))"
        rf"|(?P<mdy>\b(?P<m2>{name})\b\.?\s{{1,3}}(?P<d2>{day})(?:\s?,?\s{{0,3}}(?P<y2>\d{{4}})(?!\d))?)"
        rf"|(?P<dmy>(?<![\w.])(?P<d3>{day})\s{{1,3}}(?:of\s)?(?P<m3>{name})\b\.?(?:\s?,?\s{{0,3}}(?P<y3>\d{{4}})(?!\d))?)"
        rf"|(?P<my>\b(?P<m4>{name})\b\.?\s?,?\s{{1,3}}(?:of\s)?(?P<y4>\d{{4}})(?!\d))"
        r"|(?P<slash>(?<![\w/.])(?P<a>\d{1,2})(?P<mark>[/.])(?P<b>\d{1,2})(?P=mark)(?P<y5>\d{4}|\d{2})(?![\d/])(?!\.\d))"
        rf"|(?P<month>(?<![\w'])(?:{alone})(?![\w']))",
        re.IGNORECASE,
    )


def _read(match: re.Match[str]) -> PartialDate | None:
    kind = next(kind for kind in ("iso", "mdy", "dmy", "my", "slash", "month") if match[kind])
    start, end = match.span()
    if kind == "slash":
        return _numeric(match)
    if kind == "month":
        # "may" and "march" without a capital are usually verbs.
        return (
            PartialDate(None, _month(match[0]), None, match[0], start, end)
            if match[0] not in ("may", "march")
            else None
        )
    number = {"iso": "1", "mdy": "2", "dmy": "3", "my": "4"}[kind]
    year, month, day = (match.groupdict().get(f"{part}{number}") or "" for part in "ymd")
    known_month = int(month) if month.isdigit() else _month(month)
    known_day = int(re.sub(r"\D", "", day)) if day else None
    if not 1 <= known_month <= 12 or (known_day is not None and not 1 <= known_day <= 31):
        return None
    return PartialDate(int(year) if year else None, known_month, known_day, match[0], start, end)


def _numeric(match: re.Match[str]) -> PartialDate | None:
    one, other, year = int(match["a"]), int(match["b"]), int(match["y5"])
    if year < 100:
        year += 2000 if year < 70 else 1900
    if not (1 <= one <= 31 and 1 <= other <= 31) or (one > 12 and other > 12):
        return None
    month, day = (other, one) if one > 12 or match["mark"] == "." else (one, other)
    if month > 12:
        month, day = day, month
    both_orders = one <= 12 and other <= 12 and match["mark"] == "/"
    return PartialDate(year, month, day, match[0], match.start(), match.end(), both_orders)


def _month(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name[:3].lower()))
