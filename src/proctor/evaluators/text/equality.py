"""Whether two answers are the same, and if not, the first difference to look at."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from proctor.base.json_data import Json
from proctor.cases.matchers import same
from proctor.evaluators.evaluation import embedded, quote


def agree(wanted: Json, got: Json) -> bool:
    """Equal text, equal data, or a number and its text.

    `{"a": 1}` agrees with the text `{"a": 1.0}` whatever the order of keys, 123 with `123`, true with `true`;
    nothing agrees with nothing and with the empty text, and never with the word `None`.
    """
    if isinstance(wanted, str) and isinstance(got, str):
        return wanted == got
    if wanted is None or got is None:
        return wanted in (None, "") and got in (None, "")
    if isinstance(wanted, (dict, list)) or isinstance(got, (dict, list)):
        return same(embedded(wanted), embedded(got))
    if isinstance(wanted, str):
        return _is_text_of(got, wanted)
    if isinstance(got, str):
        return _is_text_of(wanted, got)
    return same(wanted, got)


def loosen(value: Json, *, strip: bool, ignore_case: bool) -> Json:
    """The value with every text in it stripped and case-folded as asked; the keys of objects stay as they are."""
    if isinstance(value, str):
        value = value.strip() if strip else value
        return value.casefold() if ignore_case else value
    if isinstance(value, Mapping):
        return {key: loosen(item, strip=strip, ignore_case=ignore_case) for key, item in value.items()}
    if isinstance(value, list):
        return [loosen(item, strip=strip, ignore_case=ignore_case) for item in value]
    return value


def difference(wanted: Json, got: Json) -> str:
    """The first difference of two answers that do not agree; empty where it is plain to see."""
    if isinstance(wanted, str) and isinstance(got, str):
        return _text_difference(wanted, got)
    if isinstance(wanted, (dict, list)) or isinstance(got, (dict, list)):
        left, right = embedded(wanted), embedded(got)
        if isinstance(right, str):
            return "the output is text, not JSON"
        return _data_difference(left, right, "")
    return ""


def _is_text_of(scalar: Json, text: str) -> bool:
    if isinstance(scalar, bool):
        return text in (("true", "True") if scalar else ("false", "False"))
    from proctor.evaluators.data.numerals import same_number

    return isinstance(scalar, (int, float)) and same_number(scalar, text)


def _text_difference(wanted: str, got: str) -> str:
    if wanted.strip() == got.strip():
        return "they differ only in the white space around them"
    if wanted.casefold() == got.casefold():
        return "they differ only in case"
    if unicodedata.normalize("NFC", wanted) == unicodedata.normalize("NFC", got):
        return "they differ only in how accents are encoded"
    if min(len(wanted), len(got)) < 20:
        return ""
    place = _common_prefix(wanted, got)
    left, right = (quote(text[place : place + 20]) for text in (wanted, got))
    return f"from character {place + 1} on {left} became {right}"


def _common_prefix(left: str, right: str) -> int:
    """By halving: comparing slices is a thousand times faster than comparing characters."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _data_difference(wanted: Json, got: Json, place: str) -> str:
    """The path of the first part that differs, and how."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, item in wanted.items():
            if key not in got:
                return f"{place}.{key} is missing".lstrip(".")
            if not same(item, got[key]):
                return _data_difference(item, got[key], f"{place}.{key}")
        extra = next(key for key in got if key not in wanted)
        return f"{place}.{extra} is not expected".lstrip(".")
    if isinstance(wanted, list) and isinstance(got, list):
        for index, (left, right) in enumerate(zip(wanted, got, strict=False)):
            if not same(left, right):
                return _data_difference(left, right, f"{place}[{index}]")
        return f"{place.lstrip('.') or 'the list'} has {len(got)} items instead of {len(wanted)}"
    return f"{place.lstrip('.')} is {quote(got, 40)} instead of {quote(wanted, 40)}" if place else ""
