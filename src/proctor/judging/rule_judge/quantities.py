"""Reads numbers with their units: `1,498`, `$1,498.00`, `twenty`, `10 percent`, `5 km`, `20th`, `1950s`, `3 pm`.

How it works: one pattern finds digits, spelled numbers, ordinals and times of day. What follows is read as a scale
(`million`), a sign or a unit. Units of one dimension are compared in its base unit, so `90 minutes` equals `1.5 hours`.
A hedged number (`about 9000`) may stand for a more exact one, but not the other way around.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_UNITS = """
time: second secs sec s=1; ms millisecond=0.001; minute mins min=60; hour hrs hr h=3600; day=86400; night=86400;
  week wk=604800; fortnight=1209600; month mo=2629800; quarter=7889400; year yr yrs=31557600; decade=315576000;
  century centuries=3155760000; millennium millennia=31557600000
length: mm millimetre millimeter=0.001; cm centimetre centimeter=0.01; m metre meter=1; km kms kilometre kilometer=1000;
  inch inches in=0.0254; foot feet ft=0.3048; yard yd=0.9144; mile mi=1609.344; nm nanometre nanometer=0.000000001;
  lightyear=9460730472580800
mass: mcg microgram=0.000001; mg milligram=0.001; g gram gramme=1; kg kgs kilo kilogram=1000; tonne=1000000;
  ton=907184.74; lb lbs=453.59237; ounce oz=28.349523125; stone=6350.29318
volume: ml millilitre milliliter=0.001; l litre liter=1; gallon gal=3.785411784; pint=0.473176473; cup=0.24
celsius: c celsius centigrade=1
fahrenheit: f fahrenheit=1
degree: degree deg=1
data: byte bytes=1; kb kilobyte=1000; mb megabyte=1000000; gb gigabyte=1000000000; tb terabyte=1000000000000
speed: kmh kph=1; mph=1.609344; knot=1.852
percent: percent pct percentage=1
point: bps=0.01; pp=1
usd: dollar dollars usd bucks=1; cent cents=0.01
eur: euro euros eur=1
gbp: gbp sterling=1; pence=0.01
jpy: yen jpy=1
inr: rupee rupees inr=1
energy: kcal calorie=1; kj=0.239; kwh=860.42; joule=0.000239
power: watt w=1; kw kilowatt=1000; mw megawatt=1000000
frequency: hz=1; khz=1000; mhz=1000000; ghz=1000000000
voltage: volt v=1
area: acre=4046.86; hectare ha=10000; sqm=1; sqft=0.092903
medical: unit iu=1; mmol=1; mmhg=1
"""
SIGNS = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "%": "percent", "°": "degree"}
SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "mio": 1e6, "mln": 1e6, "billion": 1e9,
    "bn": 1e9, "trillion": 1e12, "tn": 1e12, "lakh": 1e5, "crore": 1e7, "dozen": 12.0,
}  # fmt: skip
MONEY = frozenset("usd eur gbp jpy inr".split())


@cache
def units() -> dict[str, tuple[str, float]]:
    """Each way to write a unit, with its dimension and its size in the base unit."""
    found: dict[str, tuple[str, float]] = {}
    for line in _UNITS.replace(";\n ", ";").strip().splitlines():
        dimension, _, entries = line.partition(":")
        for entry in entries.split(";"):
            names, _, size = entry.partition("=")
            for name in names.split():
                found[name] = found[name + "s"] = (dimension, float(size))
    return found


_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
WORDS = {word: float(value) for value, word in enumerate(_SMALL)} | {
    word: 10.0 * value for value, word in enumerate(_TENS, start=2)
}
_RANKS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
fifteenth sixteenth seventeenth eighteenth nineteenth twentieth""".split()
ORDINALS = {word: float(value) for value, word in enumerate(_RANKS, start=1)}
_ABOUT = frozenset("about around approximately roughly nearly almost circa some estimated approx ~ ≈".split())
_ABOVE = frozenset("over above exceeding least from".split()) | {"more than", "at least", "greater than", "up from"}
_BELOW = frozenset("under below".split()) | {"less than", "fewer than", "up to", "at most", "no more than"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text, with its unit."""

    value: float
    unit: str
    """A dimension such as `time` or `usd`, `ordinal`, `decade`, `clock`, or empty."""
    size: float
    """The size of one unit in the dimension's base unit."""
    text: str
    start: int
    end: int
    hedge: str
    """`about`, `above` or `below` if the text says that the number is not exact; empty otherwise."""
    spelled: bool
    """Whether it is written as a word: `one` is as often a pronoun as a number."""

    @property
    def amount(self) -> float:
        return self.value * self.size

    @property
    def is_year(self) -> bool:
        return not self.unit and 1000 <= self.value < 2200


def find_quantities(text: str) -> list[Quantity]:
    """Every number in a folded text, in order."""
    found: list[Quantity] = []
    end = 0
    for match in _pattern().finditer(text):
        if match.start() >= end:
            found.append(_read(match, text))
            end = found[-1].end
    return found


def same_quantity(claim: Quantity, source: Quantity) -> bool:
    """Whether two mentions are of one number: units, if present, must agree, and a hedged claim may be less exact."""
    both = {claim.unit, source.unit}
    # Texts mix `20th` with `20` and `5 degrees` with `5 °C`.
    mixed = both & {"ordinal", "medical"} or both in ({"degree", "celsius"}, {"degree", "fahrenheit"})
    if "" not in both and len(both) > 1 and not mixed:
        return False
    if claim.unit and source.spelled and not source.unit:
        return False
    if both == {"percent", ""} and _share(claim) == _share(source):
        return True
    comparable = claim.unit == source.unit
    one, other = (claim.amount, source.amount) if comparable else (claim.value, source.value)
    if comparable and claim.size != source.size:
        return abs(one - other) <= 0.015 * max(abs(one), abs(other))
    if abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other)):
        return True
    least, most = _HEDGES.get(claim.hedge, (1.0, 1.0))
    return _digits(one) < _digits(other) and least * one <= other <= most * one


def _share(quantity: Quantity) -> float:
    """The number as a share: data writes `0.05` for 5%."""
    return round(quantity.value / 100 if quantity.unit else quantity.value, 9)


def _digits(value: float) -> int:
    """The number of significant digits: 9000 has one, 9001 four. Only a rounder number may stand for another one."""
    return len(f"{abs(value):.12g}".replace(".", "").split("e")[0].strip("0"))


_HEDGES = {"about": (0.95, 1.05), "above": (1.0, 1.3), "below": (0.75, 1.0)}
"""The range of the exact number, as factors of the hedged one."""


@cache
def _pattern() -> re.Pattern[str]:
    number_word = "|".join(
        sorted([*WORDS, "hundred", "thousand", "million", "billion", "dozen"], key=len, reverse=True)
    )
    return re.compile(
        r"(?P<clock>(?<![\w.:])\d{1,2}(?::\d{2}){1,2}(?![\w:])(?:\s?(?P<half>[ap])\.?m\b\.?)?"
        r"|(?<![\w.:])\d{1,2}\s?(?P<half2>[ap])\.?m\b\.?)"
        r"|(?P<digits>(?<![\w.])(?<!(?-i:[A-Z])-)(?:(?<![\w)])[-−])?(?P<sign>(?:us|ca|au)?[$€£¥₹]\s?)?"
        r"(?P<number>\d{1,3}(?:[,\u202f\u2009']\d{3}){1,8}(?:\.\d{1,20})?|\d{1,3}(?:\.\d{3}){1,8},\d{1,2}"
        r"|\d{1,20}(?:\.\d{1,20})?|\.\d{1,20})(?![\d])(?!\.\d))"
        rf"|(?P<word>(?<![\w'-])(?:{number_word})(?:[ -](?:and )?(?:{number_word})){{0,6}}(?![\w']))"
        rf"|(?P<ordinal>(?<![\w'-])(?:{'|'.join(ORDINALS)})(?![\w']))",
        re.IGNORECASE,
    )


_SUFFIX = re.compile(
    r"(?P<ordinal>(?:st|nd|rd|th)\b)|(?P<decade>'?s\b)|\s?(?P<sign>[%€£$°¥])|[\s-]?(?P<word>[a-z]{1,12})\b", re.I
)


def _read(match: re.Match[str], text: str) -> Quantity:
    start, end = match.span()
    hedge = _hedge(text[max(0, start - 24) : start])
    if match["clock"]:
        return Quantity(_minutes(match), "clock", 1.0, match[0], start, end, hedge, False)
    if match["ordinal"]:
        return Quantity(ORDINALS[match[0].lower()], "ordinal", 1.0, match[0], start, end, "", True)
    if match["word"]:
        value, unit = _parse_words(match["word"].lower()), ""
    else:
        value, unit = _parse_digits(match["number"]), SIGNS.get((match["sign"] or "").strip()[-1:], "")
        if match[0][0] in "-−":
            value = -value
    value, unit, size, end = _with_suffix(text, end, value, unit, spelled=bool(match["word"]))
    return Quantity(value, unit, size, text[start:end].strip(), start, end, hedge, bool(match["word"]))


def _with_suffix(text: str, end: int, value: float, unit: str, *, spelled: bool) -> tuple[float, str, float, int]:
    """Apply what follows a number: the `th` of an ordinal, a scale such as `million`, a sign, a unit.

    Returns value, unit, size and the position after the suffix.
    """
    size = 1.0
    for _ in range(2):
        follows = _SUFFIX.match(text, end)
        if follows is None:
            break
        length = follows.end() - follows.start()
        word = (follows["word"] or "").lower()
        if follows["ordinal"] and not spelled:
            return value, "ordinal", 1.0, end + length
        if follows["decade"] and not spelled and not unit and value >= 10:
            return value, "decade", 1.0, end + length
        if follows["sign"] and not unit:
            unit, end = SIGNS[follows["sign"]], end + length
        elif word in SCALES or (word in ("m", "b") and unit in MONEY):
            value *= SCALES.get(word, 1e6 if word == "m" else 1e9)
            end += length
            continue
        elif word in units() and (not unit or unit == "degree") and not _is_not_unit(text, end, word):
            (unit, size), end = units()[word], end + length
        break
    return value, unit, size, end


def _is_not_unit(text: str, end: int, word: str) -> bool:
    """Whether the word is not a unit here: `in` never is, and most single letters only directly after the number."""
    return word == "in" or (len(word) == 1 and text[end : end + 1].isspace() and word not in "hmgclf")


def _hedge(before: str) -> str:
    words = before.lower().split()[-3:]
    for length in (3, 2, 1):
        phrase = " ".join(words[-length:])
        for name, cues in (("below", _BELOW), ("above", _ABOVE), ("about", _ABOUT)):
            if phrase in cues:
                return name
    return "about" if before.rstrip()[-1:] in ("~", "≈") else ""


def _minutes(match: re.Match[str]) -> float:
    parts = [int(part) for part in re.findall(r"\d{1,2}", match["clock"])][:3]
    hours = parts[0]
    half = (match["half"] or match["half2"] or "").lower()
    if half:
        hours = hours % 12 + (12 if half == "p" else 0)
    return hours * 60.0 + (parts[1] if len(parts) > 1 else 0) + (parts[2] / 60 if len(parts) > 2 else 0)


def _parse_digits(number: str) -> float:
    """The value of a number in digits, with separators in the English or the continental way."""
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d{1,2}", number):
        number = number.replace(".", "").replace(",", ".")
    return float(re.sub(r"[,\u202f\u2009']", "", number))


def _parse_words(words: str) -> float:
    total = current = 0.0
    for word in re.split(r"[ -]+", words):
        if word in WORDS:
            current += WORDS[word]
        elif word == "hundred":
            current = (current or 1.0) * 100
        elif word in SCALES:
            total += (current or 1.0) * SCALES[word]
            current = 0.0
    return total + current
