"""Reads typed values in a text: numbers with units, money, dates, times of day and identifiers.

One pattern per type is tried, the most specific first: dates, times of day, identifiers (`A-17`, `2.8.1`), numbers.
Values of one dimension are compared in its base unit, so 90 minutes are 1.5 hours. Comparing strings instead would fail
"3 May 2025" against "2025-05-03" and pass 70 euros for 70 dollars.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from proctor.judging.rule_judge.lexicon import MONEY as MONEY
from proctor.judging.rule_judge.lexicon import MONTHS, SCALES, SPELLED, UNITS, WEEKDAYS


@dataclass(frozen=True, slots=True)
class Value:
    """A typed value in a text."""

    kind: Literal["number", "date", "clock", "id"]
    text: str
    start: int
    end: int
    amount: float = 0.0
    """Of a number: in the base unit of its dimension. Of a time of day: minutes since midnight."""
    unit: str = ""
    """Of a number: its dimension (`time`, `usd`), `ordinal`, or empty. Of a time of day: whether its half is known."""
    parts: tuple[int | None, ...] = ()
    """Of a date: year, month, day, weekday, as far as the text has them."""

    @property
    def key(self) -> str:
        """The same for every way to write the same value."""
        return self.text.casefold() if self.kind == "id" else f"{self.amount:.10g} {self.unit} {self.parts}"


def same_value(claim: Value, source: Value) -> bool:
    """Whether the claim's value follows from the source's: it may be less exact (May 2024 for 3 May 2024)."""
    if claim.kind != source.kind or (claim.kind == "number" and claim.unit != source.unit):
        return False
    if claim.kind == "id":
        return claim.text.casefold() == source.text.casefold()
    if claim.kind == "date":
        return all(ours in (None, theirs) for ours, theirs in zip(claim.parts, source.parts, strict=True))
    return math.isclose(claim.amount, source.amount)


def conflicts(claim: Value, source: Value) -> bool:
    """Whether both cannot be true of the same thing: another amount, unit, date, time or identifier."""
    if claim.kind != source.kind or same_value(claim, source) or same_value(source, claim):
        return False
    if claim.kind == "id":
        return True
    if claim.kind == "date":
        return any(a != b for a, b in zip(claim.parts, source.parts, strict=True) if None not in (a, b))
    if claim.kind == "clock":
        return claim.amount % 720 != source.amount % 720 or claim.unit == source.unit
    if claim.unit != source.unit:
        is_same_number = claim.amount == source.amount or claim.text.split()[0] == source.text.split()[0]
        return bool(claim.unit and source.unit) and is_same_number  # `2 weeks` and `2 months`
    # 1,234,567 is 1.2 million, and 10 miles are 16 km.
    digits = len(f"{claim.amount:.15g}".replace(".", "").strip("-0"))
    is_rounded = float(f"{source.amount:.{max(digits, 1)}g}") == claim.amount
    return not (is_rounded and math.isclose(claim.amount, source.amount, rel_tol=0.05))


_VERSION = r"(?<![\w.])(?:v\d+(?:\.\d+)+|\d+(?:\.\d+){2,})(?:-\w+)?(?!\w)"
_CODE = r"(?<![\w.])\d+-[A-Z]{1,3}\b|(?<![\w-])[A-Za-z]\w*(?:[-_/]\w+)*"
_ID = re.compile(rf"https?://\S+[\w/]|[\w.+-]+@[\w-]+\.[\w.]+\w|{_VERSION}|{_CODE}")
_SHORT_MONTHS = [name[:3] for name in MONTHS]
_MONTH = "|".join(["sept?(?:ember)?", *(f"{m[:3]}(?:{m[3:]})?" for m in MONTHS if m != "september")])
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?!\d)"
_YEAR = r"(?:1\d|20|21)\d\d(?![\d,.]\d|[\w-]|\s(?:percent|euros?|dollars?|people|homes|items))"
_DATE = re.compile(
    r"(?<![\w.-])(?P<y1>\d{4})-(?P<m1>\d{2})-(?P<d1>\d{2})(?!\d)(?!-\d)(?:T[\d:.]+Z?)?"
    rf"|\b(?P<m2>{_MONTH})\b\.?\s{{1,3}}(?P<d2>{_DAY})(?:\s?,?\s{{0,3}}(?P<y2>\d{{4}})(?!\d))?"
    rf"|(?<![\w.])(?P<d3>{_DAY})\s{{1,3}}(?:of\s)?(?P<m3>{_MONTH})\b\.?(?:\s?,?\s{{0,3}}(?P<y3>\d{{4}})(?!\d))?"
    rf"|\b(?P<m4>{_MONTH})\b\.?\s?,?\s{{1,3}}(?:of\s)?(?P<y4>\d{{4}})(?!\d)"
    rf"|(?<![\w'])(?P<m5>{'|'.join({*MONTHS} - {'may', 'march'})}|(?-i:May|March))(?![\w'])"
    rf"|\b(?P<w6>{'|'.join(WEEKDAYS)})s?\b"
    rf"|(?:\b(?:in|since|until|during|between|from|by|before|after)\s|\()(?P<y7>{_YEAR})",
    re.IGNORECASE,
)
"""Groups are named after what they hold: year, month, day, weekday. `5/6/2024` is left out: it may be May or June."""
_CLOCK = re.compile(
    r"(?<![\w.:])(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::\d{2})?(?![\w:])(?:\s?(?P<half>[ap])\.?m\b\.?)?"
    r"|\s?(?P<half2>[ap])\.?m\b\.?)",
    re.IGNORECASE,
)
_SPELLED = "|".join(sorted(SPELLED, key=len, reverse=True))
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)])(?P<minus>[-−]))?"
    r"(?P<code>(?:EUR|USD|GBP|CHF|JPY|INR|SEK|NOK|DKK|PLN|CZK|CAD|AUD|CNY|S?Fr\.)\s|[$€£¥₹]\s?)?"
    r"(?:(?P<digits>\d{1,3}(?:[,\u202f\u2009' ](?=\d{3}(?!\d))\d{3}){1,6}(?:\.\d+)?|\d+(?:\.\d+)?)(?!\d)(?!\.\d)"
    rf"(?P<rank>(?:st|nd|rd|th)\b)?|(?<![\w'-])(?P<words>(?:{_SPELLED})(?:-(?:{_SPELLED}))?)(?![\w']))"
    rf"(?P<scales>(?:[\s-]?(?:{'|'.join(SCALES)})\b)*)"
    r"(?(code)|(?:\s?(?:°|degrees?)\s?(?P<degree>celsius|fahrenheit|[CF])\b|\s?(?P<sign>[%€£$¥₹])"
    rf"|[\s-]?(?P<unit>{'|'.join(sorted(map(re.escape, UNITS), key=len, reverse=True))})(?!\w))?)",
    re.IGNORECASE,
)


def find_values(text: str) -> list[Value]:
    """The typed values of a text in order, without overlaps."""
    found: list[Value] = []
    taken: set[int] = set()
    for reader in (_dates, _clocks, _ids, _numbers):
        for value in reader(text):
            if taken.isdisjoint(range(value.start, value.end)):
                found.append(value)
                taken.update(range(value.start, value.end))
    return sorted(found, key=lambda value: value.start)


def _ids(text: str) -> Iterator[Value]:
    # Without a digit or an address, it is a word.
    return (Value("id", match[0], *match.span()) for match in _ID.finditer(text) if re.search(r"\d|@|://", match[0]))


def _dates(text: str) -> Iterator[Value]:
    for match in _DATE.finditer(text):
        fields = {name[0]: word.lower() for name, word in match.groupdict().items() if word is not None}
        year, day = (int(re.sub(r"\D", "", fields[name])) if name in fields else None for name in "yd")
        name = fields.get("m", "")
        month = int(name) if name.isdigit() else _SHORT_MONTHS.index(name[:3]) + 1 if name else None
        weekday = WEEKDAYS.index(fields["w"]) if "w" in fields else None
        start = match.start("y7") if match["y7"] else match.start()
        if 1 <= (month or 1) <= 12 and 1 <= (day or 1) <= 31:
            yield Value("date", text[start : match.end()], start, match.end(), parts=(year, month, day, weekday))


def _clocks(text: str) -> Iterator[Value]:
    for match in _CLOCK.finditer(text):
        half = (match["half"] or match["half2"] or "").lower()
        hour, minute = int(match["hour"]), int(match["minute"] or 0)
        unit = "half of the day unknown" if not half and hour <= 12 and not match[0].startswith("0") else ""
        hour = hour % 12 + (12 if half == "p" else 0) if half else hour
        if hour <= 24 and minute <= 59:
            yield Value("clock", match[0], *match.span(), hour % 24 * 60.0 + minute, unit)


def _numbers(text: str) -> Iterator[Value]:
    for match in _NUMBER.finditer(text):
        read = {name: (word or "").lower().strip(" .") for name, word in match.groupdict().items()}
        words = [SPELLED[word] for word in read["words"].split("-") if word]
        amount = sum(words) if words else float(re.sub(r"[,\u202f\u2009' ]", "", read["digits"]))
        amount *= math.prod(SCALES[scale] for scale in re.findall(r"\w+", read["scales"])) * (
            -1 if read["minus"] else 1
        )
        degree = {"c": "celsius", "f": "fahrenheit"}.get(read["degree"][:1])
        unit, size = UNITS.get(read["code"] or read["sign"] or degree or read["unit"], ("", 1.0))
        yield Value("number", match[0].strip(), *match.span(), amount * size, "ordinal" if read["rank"] else unit)
