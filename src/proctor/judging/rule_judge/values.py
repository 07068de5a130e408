"""Reads typed values in a text: numbers with units, money, dates, times of day and identifiers.

How it works: one pattern per type, tried in an order in which the most specific wins: identifiers (`A-17`, `2.8.1`,
an address), dates, times of day, numbers. Values of one dimension are compared in its base unit, so 90 minutes are 1.5
hours. Comparing strings instead would fail "3 May 2025" against "2025-05-03" and pass 70 euros for 70 dollars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

Kind = Literal["number", "date", "clock", "id"]

_UNITS = """
time: second sec s=1; ms millisecond=0.001; minute min=60; hour hr h=3600; day night=86400; week wk=604800
calendar: month mo=1; quarter=3; year yr=12; decade=120; century centuries=1200
length: mm millimetre millimeter=0.001; cm centimetre centimeter=0.01; m metre meter=1; km kilometre kilometer=1000;
  inch inches=0.0254; foot feet ft=0.3048; yard yd=0.9144; mile mi=1609.344
mass: mcg microgram=0.000001; mg milligram=0.001; g gram gramme=1; kg kilo kilogram=1000; tonne=1000000;
  lb pound=453.59237; ounce oz=28.349523125
volume: ml millilitre milliliter=0.001; l litre liter=1; gallon gal=3.785411784; pint=0.473176473
celsius: celsius centigrade=1
fahrenheit: fahrenheit=1
degree: degree deg=1
data: byte=1; kb kilobyte=1000; mb megabyte=1000000; gb gigabyte=1000000000; tb terabyte=1000000000000
speed: kmh kph km/h=1; mph=1.609344; knot=1.852
percent: percent pct=1
usd: dollar usd buck us$=1; cent=0.01
eur: euro eur=1
gbp: gbp=1; pence=0.01
chf: franc chf=1
jpy: yen jpy=1
inr: rupee inr=1
energy: kcal calorie=1; kwh=860.42
power: watt w=1; kw kilowatt=1000; mw megawatt=1000000; hp horsepower=745.7
frequency: hz=1; khz=1000; mhz=1000000; ghz=1000000000
voltage: volt v=1
area: acre=4046.86; hectare ha=10000; sqm=1
times: time=1
"""
SIGNS = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "%": "percent", "°": "degree"}
MONEY = frozenset("usd eur gbp jpy inr chf".split())
SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
MONTHS = "january february march april may june july august september october november december".split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SPELLED = {word: value for value, word in enumerate(_SMALL)} | {word: 10 * n for n, word in enumerate(_TENS, start=2)}
ORDINALS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), start=1
    )
}
PERIODS = "second minute hour day night week month quarter year person user guest item unit child adult".split()


@cache
def units() -> dict[str, tuple[str, float]]:
    """Each way to write a unit, with its dimension and its size in the base unit."""
    known: dict[str, tuple[str, float]] = {}
    for line in _UNITS.replace(";\n ", ";").strip().splitlines():
        dimension, _, entries = line.partition(":")
        for entry in entries.split(";"):
            names, _, size = entry.partition("=")
            for name in names.split():
                known[name] = known[name + "s"] = (dimension, float(size))
    return known


@dataclass(frozen=True, slots=True)
class Value:
    """A typed value in a text."""

    kind: Kind
    text: str
    start: int
    end: int
    amount: float = 0.0
    """Of a number: in `unit`. Of a time of day: minutes since midnight."""
    unit: str = ""
    """The dimension of a number (`time`, `usd`, `percent`), `ordinal`, or empty."""
    size: float = 1.0
    """The size of the unit in the base unit of its dimension."""
    parts: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
    """Of a date: year, month, day, weekday, as far as the text has them."""
    is_morning_unsaid: bool = False
    """Whether a time of day may be in either half of the day: `9:15`."""

    @property
    def base(self) -> float:
        return self.amount * self.size


def same_value(claim: Value, source: Value) -> bool:
    """Whether the claim's value follows from the source's: it may be less exact (May 2024 for 3 May 2024)."""
    if claim.kind == "id" or source.kind == "id":
        return claim.kind == source.kind and claim.text.casefold() == source.text.casefold()
    if claim.kind == source.kind == "date":
        return claim.parts != (None,) * 4 and all(
            ours is None or ours == theirs for ours, theirs in zip(claim.parts, source.parts, strict=True)
        )
    if claim.kind == source.kind == "clock":
        either = claim.is_morning_unsaid or source.is_morning_unsaid
        return claim.amount == source.amount or (either and claim.amount % 720 == source.amount % 720 and _am(claim))
    if claim.kind == source.kind == "number":
        if claim.unit != source.unit:
            bare = not claim.unit and source.unit not in ("", "percent", "ordinal")
            degrees = {claim.unit, source.unit} in ({"degree", "celsius"}, {"degree", "fahrenheit"})
            days = {claim.unit, source.unit} == {"time", "calendar"} and _in_days(claim) == _in_days(source)
            return days or ((bare or degrees) and claim.amount == source.amount)
        slack = 0.015 if claim.size != source.size and claim.unit not in ("time", "calendar", *MONEY) else 1e-9
        return abs(claim.base - source.base) <= slack * max(abs(claim.base), abs(source.base))
    return {claim.kind, source.kind} == {"date", "number"} and _bare_year(claim) == _bare_year(source) is not None


def conflicts(claim: Value, source: Value) -> bool:
    """Whether both cannot be true of the same thing: another amount, unit, date, time or identifier."""
    if same_value(claim, source) or same_value(source, claim):
        return False
    if claim.kind != source.kind:
        return False
    if claim.kind == "date":
        shared = [(a, b) for a, b in zip(claim.parts, source.parts, strict=True) if a is not None and b is not None]
        return any(ours != theirs for ours, theirs in shared)
    if claim.kind == "number" and claim.unit != source.unit:
        return bool(claim.unit and source.unit) and (
            claim.amount == source.amount
            or {claim.unit, source.unit} <= MONEY
            or {claim.unit, source.unit} <= _DURATIONS
        )
    near = abs(claim.base - source.base) <= 0.05 * max(abs(claim.base), abs(source.base))
    return not (claim.kind == "number" and claim.size != source.size and near)


_DURATIONS = {"time", "calendar"}


def _in_days(value: Value) -> float:
    """A duration in days where that is usual: a year is 365 days, 12 months are a year; other months have no length."""
    if value.unit == "time":
        return value.base / 86400
    return value.base / 12 * 365 if value.base % 12 == 0 else -1


def _am(clock: Value) -> bool:
    """Whether a time with its half of the day can stand for one without: `9:15` is in the morning."""
    return clock.amount < 720 or clock.is_morning_unsaid


def _bare_year(value: Value) -> float | None:
    if value.kind == "date":
        return float(value.parts[0]) if value.parts[0] and value.parts[1:] == (None, None, None) else None
    return value.amount if value.kind == "number" and not value.unit else None


_ID = re.compile(
    r"https?://\S+[\w/]|[\w.+-]+@[\w-]+\.[\w.]+\w|(?<![\w.])(?:v\d+(?:\.\d+)+|\d+(?:\.\d+){2,})(?:-\w+)?(?!\w)"
    r"|(?<![\w-])#\d+\b|(?<![\w.])\d+-[A-Z]{1,3}\b|(?<![\w-])[A-Za-z]\w*(?:[-_/]\w+)*"
    r"|(?<![\w.-])\d{1,3}[:-]\d{1,3}(?=\s|[.,;)]|$)(?!\s*(?:days?|weeks?|hours?|minutes?|months?|years?|%|am|pm))(?<!:\d\d)"
    r"|(?<![\w.])\d{1,4}[A-Z]{1,3}\d*\b(?<![AP]M)",
)
_MONTH = "|".join(
    ["sept?(?:ember)?", *(f"{m[:3]}(?:{m[3:]})?" for m in MONTHS if m not in ("may", "september")), "may"]
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?!\d)"
_DATE = re.compile(
    r"(?<![\w.-])(?P<y1>\d{4})-(?P<m1>\d{2})-(?P<d1>\d{2})(?!\d)(?!-\d)(?:T[\d:.]+Z?)?"
    rf"|\b(?P<m2>{_MONTH})\b\.?\s{{1,3}}(?P<d2>{_DAY})(?:\s?,?\s{{0,3}}(?P<y2>\d{{4}})(?!\d))?"
    rf"|(?<![\w.])(?P<d3>{_DAY})\s{{1,3}}(?:of\s)?(?P<m3>{_MONTH})\b\.?(?:\s?,?\s{{0,3}}(?P<y3>\d{{4}})(?!\d))?"
    rf"|\b(?P<m4>{_MONTH})\b\.?\s?,?\s{{1,3}}(?:of\s)?(?P<y4>\d{{4}})(?!\d)"
    r"|(?<![\w/.])(?P<a>\d{1,2})(?P<mark>[/.])(?P<b>\d{1,2})(?P=mark)(?P<y5>\d{4})(?![\d/])"
    rf"|(?<![\w'])(?P<m6>{'|'.join({*MONTHS} - {'may', 'march'})}|(?-i:May|March))(?![\w'])"
    rf"|\b(?P<weekday>{'|'.join(WEEKDAYS)})s?\b"
    r"|(?<=[Ii]n )(?P<y7>1[0-9]\d\d|20\d\d|21\d\d)(?![\d,.]\d|[\w-]|\s(?:percent|euros?|dollars?|people|homes|items))"
    r"|(?:(?<=since )|(?<=until )|(?<=during )|(?<=between )|(?<=from )|(?<=by )|(?<=before )|(?<=after )|(?<=\())"
    r"(?P<y8>1[0-9]\d\d|20\d\d|21\d\d)(?![\d,.]\d|\w|\s(?:percent|euros?|dollars?|people|homes|items))",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?<![\w.:])(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))(?::\d{2})?(?![\w:])(?:\s?(?P<half>[ap])\.?m\b\.?)?"
    r"|(?<![\w.:])(?P<hour2>\d{1,2})\s?(?P<half2>[ap])\.?m\b\.?|\b(?P<noon>noon|midday|midnight)\b",
    re.IGNORECASE,
)
_WORD = "|".join(sorted([*SPELLED, "hundred", "thousand", "million", "billion"], key=len, reverse=True))
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)])[-−])?(?:(?P<code>(?:EUR|USD|GBP|CHF|JPY|INR)\s|(?:US|CA|AU)?[$€£¥₹]\s?))?"
    r"(?P<digits>\d{1,3}(?:[,\u202f\u2009' ](?=\d{3}(?!\d))\d{3}){1,6}(?:\.\d+)?|\d{1,3}(?:\.\d{3}){1,6},\d{1,2}"
    r"|\d+(?:\.\d+)?)"
    r"(?!\d)(?!\.\d)(?P<rank>(?:st|nd|rd|th)\b)?(?P<decade>'?s\b)?"
    rf"|(?<![\w'-])(?P<words>(?:{_WORD})(?:[ -](?:and )?(?:{_WORD}))*)(?![\w'])"
    rf"|(?<![\w'-])(?P<ordinal>{'|'.join(ORDINALS)})(?![\w'])|\b(?P<often>once|twice|thrice)\b",
    re.IGNORECASE,
)
_SUFFIX = re.compile(
    r"[\s-]?(?P<scale>thousand|million|billion|trillion|mn|bn|k)\b|(?<=[\d])(?P<letter>[mb])\b"
    r"|\s?°\s?(?P<degree>[CF])\b|\s?(?:degrees?)\s(?P<degrees>celsius|fahrenheit|[CF]\b)"
    r"|\s?(?P<sign>[%€£$°¥₹])|[\s-]?(?P<unit>km/h|[a-z]+)(?![\w])",
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
    for match in _ID.finditer(text):
        if any(map(str.isdigit, match[0])):  # otherwise it is a word
            yield Value("id", match[0], *match.span())


def _dates(text: str) -> Iterator[Value]:
    for match in _DATE.finditer(text):
        fields = {name: word for name, word in match.groupdict().items() if word is not None}
        parts: list[int | None] = [None, None, None, None]
        if "mark" in fields:
            one, other = int(fields["a"]), int(fields["b"])
            if fields["mark"] == "/" and one <= 12 and other <= 12 and one != other:
                continue  # 5/6/2024 may be May or June
            month, day = (other, one) if one > 12 or fields["mark"] == "." else (one, other)
            parts = [int(fields["y5"]), month, day, None]
        for name, word in fields.items():
            if name[0] == "y":
                parts[0] = int(word)
            elif name[0] == "m" and name != "mark":
                parts[1] = int(word) if word.isdigit() else _month(word)
            elif name[0] == "d":
                parts[2] = int(re.sub(r"\D", "", word))
            elif name == "weekday":
                parts[3] = WEEKDAYS.index(word.lower())
        year, month_number, day_number, weekday = parts
        if 1 <= (month_number or 1) <= 12 and 1 <= (day_number or 1) <= 31:
            yield Value("date", match[0], *match.span(), parts=(year, month_number, day_number, weekday))


def _month(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name[:3].lower()))


def _clocks(text: str) -> Iterator[Value]:
    for match in _CLOCK.finditer(text):
        if match["noon"]:
            yield Value("clock", match[0], *match.span(), amount=0 if match["noon"].lower() == "midnight" else 720)
            continue
        hour, minute = int(match["hour"] or match["hour2"]), int(match["minute"] or 0)
        half = (match["half"] or match["half2"] or "").lower()
        if hour > 24 or minute > 59:
            continue
        if half:
            hour = hour % 12 + (12 if half == "p" else 0)
        unsaid = not half and hour <= 12 and not match[0].startswith("0")
        yield Value("clock", match[0], *match.span(), amount=hour * 60.0 + minute, is_morning_unsaid=unsaid)


def _numbers(text: str) -> Iterator[Value]:
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        if match["ordinal"] or match["rank"]:
            amount = ORDINALS[match[0].lower()] if match["ordinal"] else _digits(match["digits"])
            yield Value("number", match[0], start, end, amount=amount, unit="ordinal")
            continue
        if match["often"]:
            amount = ("once", "twice", "thrice").index(match[0].lower()) + 1
            yield Value("number", match[0], start, end, amount=amount, unit="times")
            continue
        amount = _spelled(match["words"].lower()) if match["words"] else _digits(match["digits"])
        amount = -amount if match[0][0] in "-−" else amount
        code = (match["code"] or "").strip()
        unit = "decade" if match["decade"] else code.lower() if code.isalpha() else SIGNS.get(code[-1:], "")
        amount, unit, size, end = _with_unit(text, end, amount, unit)
        yield Value("number", text[start:end].strip(), start, end, amount=amount, unit=unit, size=size)


def _with_unit(text: str, end: int, amount: float, unit: str) -> tuple[float, str, float, int]:
    """Apply what follows a number: a scale such as `million`, a sign, a unit."""
    for _ in range(2):
        suffix = _SUFFIX.match(text, end)
        if suffix is None:
            break
        scale = (suffix["scale"] or "").lower()
        word = (suffix["unit"] or "").lower()
        if scale or (suffix["letter"] and unit in MONEY):
            amount *= SCALES[scale] if scale else {"m": 1e6, "b": 1e9}[suffix["letter"].lower()]
            end = suffix.end()
            continue
        if unit:
            break
        if degree := suffix["degree"] or suffix["degrees"]:
            return amount, "celsius" if degree[0].lower() == "c" else "fahrenheit", 1.0, suffix.end()
        if suffix["sign"]:
            return amount, SIGNS[suffix["sign"]], 1.0, suffix.end()
        apart = text[end : end + 1].isspace()
        if word in units() and not (apart and len(word) == 1 and word not in "gmlh"):
            return amount, *units()[word], suffix.end()
        break
    return amount, unit, 1.0, end


def _digits(number: str) -> float:
    """The value of a number in digits, with separators in the English or the continental way."""
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d{1,2}", number):
        number = number.replace(".", "").replace(",", ".")
    return float(re.sub(r"[,\u202f\u2009' ]", "", number))


def _spelled(words: str) -> float:
    total = current = 0.0
    for word in re.split(r"[ -]+", words):
        if word in SPELLED:
            current += SPELLED[word]
        elif word == "hundred":
            current = (current or 1.0) * 100
        elif word in SCALES:
            total += (current or 1.0) * SCALES[word]
            current = 0.0
    return total + current
