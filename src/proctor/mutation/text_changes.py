"""Changes one detail of a text to something wrong: a digit, a date, a unit, a name, a negation.

Each function returns the `Edit` to apply, or `None` if the text has nothing of that kind.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

NUMBER = r"\d+(?:[.,]\d+)*"
MONTHS = "January February March April May June July August September October November December".split()
_MONTH = "|".join(MONTHS)
DATE = (
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b"
    rf"|\b\d{{1,2}}\.? (?:{_MONTH}) \d{{4}}\b"
)
_UNITS: Mapping[str, str] = {
    "month": "year",
    "months": "years",
    "year": "month",
    "years": "months",
    "day": "week",
    "days": "weeks",
    "week": "day",
    "weeks": "days",
    "hour": "minute",
    "hours": "minutes",
    "minute": "hour",
    "minutes": "hours",
    "seconds": "minutes",
    "ms": "s",
    "km": "miles",
    "miles": "km",
    "kg": "pounds",
    "pounds": "kg",
    "MB": "GB",
    "GB": "MB",
    "°C": "°F",
    "°F": "°C",
    "percent": "per mille",
    "%": "‰",
    "dollars": "euros",
    "euros": "dollars",
    "USD": "EUR",
    "EUR": "USD",
}
_UNIT_WORDS = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
UNIT = rf"(?P<sign>[$€£](?=\s?\d))|(?<=\d)(?P<gap>[ -]?)(?P<unit>{_UNIT_WORDS})(?!\w)"
_NAME = r"(?<=[a-z,;:] )(?!I\b)[A-Z][a-z]{2,}\b"
_NAMES = ("Northfield", "Lisbon", "Kestrel", "Marlowe")
_NEGATION = r"\bcannot\b|\bcan't\b|\b\w+n't\b|\bnot |\bnever |^No\b|^Yes\b"
_AFFIRMATION = r"\b(?:is|are|was|were|can|will|would|should|has|have|does|do|did)\b"
_OPPOSITES: Mapping[str, str] = {
    "cannot": "can",
    "can't": "can",
    "won't": "will",
    "not ": "",
    "never ": "always ",
    "No": "Yes",
    "Yes": "No",
}


@dataclass(frozen=True, slots=True)
class Edit:
    """The replacement of the characters from `start` to `end` by `new`."""

    start: int
    end: int
    new: str

    def apply_to(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


class SeededRandom:
    """Reproducible random choices, separate for each kind of mutant, so that one kind does not influence another."""

    def __init__(self, *place: object) -> None:
        self._place = "/".join(map(str, place))
        self._rng = random.Random()  # noqa: S311  not a secret

    def for_kind(self, kind: str) -> random.Random:
        """The random numbers for one kind of mutant; use them before asking for the next kind."""
        self._rng.seed(f"{self._place}/{kind}")
        return self._rng


TextChange = Callable[[str, random.Random], Edit | None]


def replace_all(text: str, new: str) -> Edit:
    return Edit(0, len(text), new)


def change_number(text: str, rng: random.Random) -> Edit | None:
    """Change one digit of one number that is not part of a date."""
    dates = [match.span() for match in re.finditer(DATE, text)]
    numbers = [m for m in re.finditer(NUMBER, text) if not any(start <= m.start() < end for start, end in dates)]
    if not numbers:
        return None
    match = rng.choice(numbers)
    places = [match.start() + at for at, sign in enumerate(match.group()) if sign.isdigit()]
    at = rng.choice(places)
    lowest = 1 if at == match.start() and len(places) > 1 else 0
    digit = rng.choice([str(d) for d in range(lowest, 10) if str(d) != text[at]])
    return Edit(at, at + 1, digit)


def change_date(text: str, rng: random.Random) -> Edit | None:
    """Change the month of a date if it is a word, else the day."""
    dates = list(re.finditer(DATE, text))
    if not dates:
        return None
    match = rng.choice(dates)
    month = re.search(_MONTH, match.group())
    if month is not None:
        start = match.start() + month.start()
        return Edit(start, start + len(month.group()), rng.choice([m for m in MONTHS if m != month.group()]))
    old = match.group()[-2:]
    return Edit(match.end() - 2, match.end(), rng.choice([f"{d:02d}" for d in range(1, 29) if f"{d:02d}" != old]))


def change_unit(text: str, rng: random.Random) -> Edit | None:
    """Change a unit: months to years, dollars to euros."""
    units = list(re.finditer(UNIT, text))
    if not units:
        return None
    match = rng.choice(units)
    if match["sign"]:
        return Edit(match.start(), match.end(), "$" if match["sign"] != "$" else "€")
    return Edit(match.start("unit"), match.end("unit"), _UNITS[match["unit"]])


def change_name(text: str, rng: random.Random) -> Edit | None:
    """Change a capitalized word inside a sentence to another name."""
    names = [match for match in re.finditer(_NAME, text) if match.group() not in MONTHS]
    if not names:
        return None
    match = rng.choice(names)
    return Edit(match.start(), match.end(), rng.choice([name for name in _NAMES if name != match.group()]))


def change_negation(text: str, rng: random.Random) -> Edit | None:
    """Remove a negation, or add one if there is none."""
    negations = list(re.finditer(_NEGATION, text))
    if negations:
        match = rng.choice(negations)
        word = match.group()
        return Edit(match.start(), match.end(), _OPPOSITES.get(word, word.removesuffix("n't")))
    affirmations = list(re.finditer(_AFFIRMATION, text))
    if not affirmations:
        return None
    match = rng.choice(affirmations)
    return Edit(match.start(), match.end(), "cannot" if match.group() == "can" else f"{match.group()} not")


def truncate(text: str, rng: random.Random) -> Edit | None:
    """Cut the text after about half of its words."""
    words = list(re.finditer(r"\S+", text))
    if len(words) < 4:
        return None
    count = rng.randint(len(words) // 3, len(words) // 2)
    return Edit(words[max(1, count) - 1].end(), len(text), "")


def drop_sentences(text: str, values: set[str]) -> Edit | None:
    """Remove the sentences that contain one of these numbers or names."""
    parts = re.split(r"(?<=[.!?])(?=\s)|(?=\n)", text)
    remaining = [part for part in parts if not _mentions(part, values)]
    if len(remaining) == len(parts):
        return None
    return replace_all(text, "".join(remaining).strip() or "I have looked that up for you.")


def _mentions(text: str, values: set[str]) -> bool:
    if any(number_value(match.group()) in values for match in re.finditer(NUMBER, text)):
        return True
    return any(len(value) > 2 and not value[0].isdigit() and value in text for value in values)


def number_value(digits: str) -> str:
    """A number in one spelling: the same for `1,498.50`, `1498.5` and the number 1498.5."""
    bare = re.sub(r",(?=\d{3}(?:\D|$))", "", digits)
    return bare.rstrip("0").rstrip(".") if "." in bare else bare


ID = re.compile(r"(?=.*\d)[\w.:/@-]+")


def change_id(text: str, rng: random.Random) -> Edit | None:
    """Change one digit of an id."""
    if not ID.fullmatch(text):
        return None
    at = rng.choice([index for index, sign in enumerate(text) if sign.isdigit() and sign.isascii()] or [-1])
    return None if at < 0 else Edit(at, at + 1, rng.choice([d for d in "123456789" if d != text[at]]))


def change_word(text: str, rng: random.Random) -> Edit | None:
    """Replace one word by another."""
    words = list(re.finditer(r"[^\W\d_]{2,}", text))
    if not words:
        return None
    match = rng.choice(words)
    word = match.group()
    return Edit(match.start(), match.end(), rng.choice([name for name in _NAMES if name != word]))
