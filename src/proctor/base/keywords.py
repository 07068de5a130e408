"""Finds keywords in an answer the way a reader would, and reads numbers as people write them.

A plain substring search fails on numbers: `1,498` is not a substring of `$1498.54`, and `1498` is one of `11498`. So a
keyword that is a number is compared with each number in the text, in every notation that the digits may mean. All
other keywords are searched as text. White space, compatible characters, typographic apostrophes, quotation marks and
hyphens, and separators of thousands are normalized. A number at an end of such a phrase must be a whole number of the
text with its sign, so that `5 days` is not in `15 days`, and `5 °C` is not in `-5 °C`.

A plain space between digits may separate thousands or two numbers. So a text that has one is read both ways.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

CURRENCIES = "$€£¥₹₽₩₺₴₫฿₪₱₿¢"
GROUPING_SPACES = "\u00a0\u2007\u2009\u202f"
GROUPING = f"_'’{GROUPING_SPACES}"
"""Marks that only separate thousands. A comma or a point may also be the decimal mark."""

# Patterns are compiled on first use, since compiling them would slow down every start. `re` caches them.
_PLAIN = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WHOLE = r"[+-]?[0-9]{1,400}"
_THREES = rf"[0-9]{{1,3}}([ ,{GROUPING}])[0-9]{{3}}(?:\1[0-9]{{3}})*"
_LAKHS = r"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}"
_GROUPED = rf"[+-]?(?:{_THREES}|{_LAKHS})(?:\.[0-9]+)?"
_SEPARATORS = rf"[ ,{GROUPING}]"


def read_number(value: Any, *, separators: bool = True, percent: bool = True, currency: bool = True) -> float | None:
    """The finite number that `value` is or spells; `None` if it is not a number. `12%` is 0.12."""
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
    """What digits with marks may mean, as (whole digits, decimal digits), the English reading first.

    `1.498` may be 1 point 498 or 1498. `1,2,3` and `10.0.0.1` are not numbers.
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


_DIGITS = rf"(?:[0-9]+(?:[.,{GROUPING}][0-9]+)*|\.[0-9]+)"
_NUMBER = rf"(?:(?<![\w.])\.[0-9]+|[0-9]+(?:[.,{GROUPING}][0-9]+)*)"
_NUMBER_KEYWORD = rf"(?P<sign>[-−+]?)(?P<before>[{CURRENCIES}]?) ?(?P<digits>{_DIGITS}) ?(?P<after>[%{CURRENCIES}]?)"
_GROUPING_SPACE = rf"(?<=[0-9])[{GROUPING_SPACES}](?=[0-9]{{3}}(?![0-9]))"


_MINUS = rf"(?<![\w)\]%°-])[-−–](?=[{CURRENCIES}]?$)"
"""A minus at the end of the text before a number; the hyphen in `3-5` or `A-17` is none."""


@dataclass(frozen=True, slots=True)
class NumberKeyword:
    """A keyword that is a number: a match has the same whole part, and its decimals start with these.

    So `1,498` is found in `1498`, `$1,498.54` and `1 498.54`, and not in `11,498` or `14980`; `1,498.5` is found in
    `1,498.54`; `5.00` is found in `5`; `12` is not found in `12,000`. The match has a minus if and only if the keyword
    has one; a percent or currency sign must be there if the keyword has one.
    """

    digits: str
    """The digits and marks as they were written."""
    whole: str
    decimals: str
    negative: bool
    sign_of_unit: str
    """The percent or currency sign, or nothing."""

    def is_in(self, numbers: str) -> bool:
        return any(self._fits(numbers, match) for match in re.finditer(_NUMBER, numbers))

    def _fits(self, numbers: str, match: re.Match[str]) -> bool:
        if not self._is_start_of(match.group()):
            return False
        near = numbers[max(0, match.start() - 3) : match.start()]
        before = near.rstrip()
        after = numbers[match.end() : match.end() + 2].lstrip()
        # In `- 5`, the minus may also be the mark of a list: both `5` and `-5` are found.
        has_minus = re.search(_MINUS, before if self.negative else near) is not None
        if has_minus is not self.negative:
            return False
        if not self.sign_of_unit or after.startswith(self.sign_of_unit):
            return True
        return self.sign_of_unit != "%" and self.sign_of_unit in before

    def _is_start_of(self, number: str) -> bool:
        if "." in self.digits and re.fullmatch(re.escape(self.digits) + ",[0-9]+", number):
            return True  # the comma makes the points of both separate thousands, as in `1.498` and `1.498,54`
        meanings = _meanings(number, is_whole=not self.decimals)
        return any(self._means(whole, decimals) for whole, decimals in meanings)

    def _means(self, whole: str, decimals: str) -> bool:
        if whole != self.whole:
            return False
        return decimals.startswith(self.decimals) or decimals.rstrip("0") == self.decimals.rstrip("0")


@lru_cache(maxsize=4096)
def number_keyword(keyword: str) -> NumberKeyword | None:
    """A keyword as a number, or `None` if it is a word, a date, a version or an address."""
    match = re.fullmatch(_NUMBER_KEYWORD, _join_digits(searchable_numbers(keyword.strip())))
    meanings = readings(match["digits"]) if match else ()
    if match is None or not meanings:
        return None
    whole, decimals = meanings[0]
    negative = match["sign"] in ("-", "−")
    return NumberKeyword(match["digits"], whole, decimals, negative, match["before"] or match["after"])


def find_keywords(
    keywords: Iterable[str], text: str, *, ignore_case: bool, whole_words: bool = False
) -> tuple[list[str], list[str]]:
    """The keywords that are in the text, and those that are not.

    A number is searched among the numbers of the text, anything else as a substring with normalized white space; with
    `whole_words`, not inside of longer words.
    """
    words = searchable_words(text, ignore_case)
    numbers = searchable_numbers(text)
    joined_words, joined_numbers = _join_digits(words), _join_digits(numbers)
    found: list[str] = []
    missing: list[str] = []
    for keyword in keywords:
        number = number_keyword(keyword)
        if number:
            there = number.is_in(numbers) or (joined_numbers != numbers and number.is_in(joined_numbers))
        else:
            phrase = _searchable_keyword(keyword, ignore_case)
            there = _is_phrase_in(phrase, words, whole_words) or (
                joined_words != words and _is_phrase_in(_join_digits(phrase), joined_words, whole_words)
            )
        (found if there else missing).append(keyword)
    return found, missing


def _join_digits(text: str) -> str:
    """The text where plain spaces between digits separate thousands: `12 000` is `12000`."""
    if not re.search("[0-9] [0-9]{3}", text):
        return text  # much faster than the pattern
    return re.sub(_SPACED, lambda match: match.group().replace(" ", ""), text)


def _is_phrase_in(phrase: str, words: str, whole_words: bool) -> bool:
    if phrase not in words:
        return False
    before = next((boundary for start, boundary in _STARTS if re.match(start, phrase)), "")
    after = _NUMBER_GOES_ON if phrase[-1:].isdigit() else ""
    if whole_words:
        before += r"(?<!\w)" if phrase[:1].isalnum() else ""
        after += r"(?!\w)" if phrase[-1:].isalnum() else ""
    return not (before or after) or re.search(f"{before}{re.escape(phrase)}{after}", words) is not None


_NO_MINUS = r"(?<!(?<![\w)\]%°-])-)"
_STARTS = (
    (r"\d", rf"(?<!\d)(?<!\d[.,'_])(?<!\.){_NO_MINUS}"),
    (rf"[{CURRENCIES}] ?\d", _NO_MINUS),
    (rf"-[{CURRENCIES}]?\d", r"(?<![\w)\]%°-])"),
)
"""What must not go before a phrase that begins with a number, with a currency sign, or with a minus."""
_NUMBER_GOES_ON = r"(?!\d)(?![,'_]\d{3}(?!\d))"
"""What must not follow a phrase that ends with a number. A decimal part may follow."""


def _meanings(digits: str, *, is_whole: bool) -> Sequence[tuple[str, str]]:
    """The numbers that digits with marks may mean. A list such as `1,2,3` is read as its parts.

    With `is_whole`, a whole number is searched: it is not the 12 of `12,000`, where the comma may separate thousands.
    """
    numbers = readings(digits)
    if not numbers:
        return [(run, "") for run in re.findall("[0-9]+", digits)]
    return numbers[:1] if is_whole and not numbers[0][1] else numbers


def searchable_numbers(text: str) -> str:
    """The text for a search of numbers: spaces inside numbers become marks, then characters are normalized."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", re.sub(_GROUPING_SPACE, "_", text))


_SAME_CHARACTERS = str.maketrans("’‘ʼ“”„‐‑‒–−", "'" * 3 + '"' * 3 + "-" * 5)
_SPACED = r"(?<![\d.,'_])[0-9]{1,3}(?: [0-9]{3})+(?!\d)"
_THOUSANDS = r"(?<![\d.,'_])[0-9]{1,3}([,'_])[0-9]{3}(?:\1[0-9]{3})*(?!\d)"


def searchable_words(text: str, ignore_case: bool) -> str:
    """The text for a search of words: what readers take for the same is the same, and thousands have no separators."""
    text = searchable_numbers(text)
    if not text.isascii():
        text = text.translate(_SAME_CHARACTERS)
    text = " ".join(text.split())
    if re.search("[0-9][,'_][0-9]{3}", text):
        text = re.sub(_THOUSANDS, lambda match: match.group().replace(match[1], ""), text)
    return text.casefold() if ignore_case else text


_searchable_keyword = lru_cache(maxsize=4096)(searchable_words)
