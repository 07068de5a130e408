"""Compares two values: are they equal, where is the first difference, how similar are two texts?

Edit distance and longest common subsequence take time in proportion to the product of both lengths. Texts beyond
`MAX_EXACT_CELLS` are cut into blocks and compared block by block, which gives a lower bound.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rapidfuzz.distance import LCSseq, Levenshtein

from proctor.base.json_data import Json
from proctor.base.keywords import same_number
from proctor.cases.matchers import json_equal
from proctor.evaluators.values import parse_if_json, quote


def equal_values(expected: Json, actual: Json) -> bool:
    """Equal text, equal data, or a number and its text.

    `{"a": 1}` equals the text `{"a": 1.0}` in any order of keys, 123 equals `123`, and true equals `true`. None equals
    None and the empty text, and never the word `None`.
    """
    if isinstance(expected, str) and isinstance(actual, str):
        return expected == actual
    if expected is None or actual is None:
        return expected in (None, "") and actual in (None, "")
    if isinstance(expected, (dict, list)) or isinstance(actual, (dict, list)):
        return json_equal(parse_if_json(expected), parse_if_json(actual))
    if isinstance(expected, str):
        return _is_text_of(actual, expected)
    if isinstance(actual, str):
        return _is_text_of(expected, actual)
    return json_equal(expected, actual)


def normalize(value: Json, *, strip: bool, ignore_case: bool) -> Json:
    """The value with every text in it stripped or case-folded. Keys of objects stay unchanged."""
    if isinstance(value, str):
        value = value.strip() if strip else value
        return value.casefold() if ignore_case else value
    if isinstance(value, Mapping):
        return {key: normalize(item, strip=strip, ignore_case=ignore_case) for key, item in value.items()}
    if isinstance(value, list):
        return [normalize(item, strip=strip, ignore_case=ignore_case) for item in value]
    return value


def difference(expected: Json, actual: Json) -> str:
    """The first difference of two unequal values; empty if it is obvious."""
    if isinstance(expected, str) and isinstance(actual, str):
        return _text_difference(expected, actual)
    if isinstance(expected, (dict, list)) or isinstance(actual, (dict, list)):
        left, right = parse_if_json(expected), parse_if_json(actual)
        if isinstance(right, str):
            return "the output is text, not JSON"
        return _data_difference(left, right, "")
    return ""


def _is_text_of(scalar: Json, text: str) -> bool:
    if isinstance(scalar, bool):
        return text in (("true", "True") if scalar else ("false", "False"))
    return isinstance(scalar, (int, float)) and same_number(scalar, text)


def _text_difference(expected: str, actual: str) -> str:
    if expected.strip() == actual.strip():
        return "they differ only in surrounding white space"
    if expected.casefold() == actual.casefold():
        return "they differ only in case"
    if unicodedata.normalize("NFC", expected) == unicodedata.normalize("NFC", actual):
        return "they differ only in how accents are encoded"
    if min(len(expected), len(actual)) < 20:
        return ""
    place = _common_prefix(expected, actual)
    left, right = (quote(text[place : place + 20]) for text in (expected, actual))
    return f"first difference at character {place + 1}: {left} became {right}"


def _common_prefix(left: str, right: str) -> int:
    """The length of the common prefix, by bisection: comparing slices is far faster than comparing characters."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _data_difference(expected: Json, actual: Json, place: str) -> str:
    """The path of the first part that differs, and how."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, item in expected.items():
            if key not in actual:
                return f"{place}.{key} is missing".lstrip(".")
            if not json_equal(item, actual[key]):
                return _data_difference(item, actual[key], f"{place}.{key}")
        extra = next(key for key in actual if key not in expected)
        return f"{place}.{extra} is not expected".lstrip(".")
    if isinstance(expected, list) and isinstance(actual, list):
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            if not json_equal(left, right):
                return _data_difference(left, right, f"{place}[{index}]")
        return f"{place.lstrip('.') or 'the list'} has {len(actual)} items instead of {len(expected)}"
    return f"{place.lstrip('.')} is {quote(actual, 40)} instead of {quote(expected, 40)}" if place else ""


S = TypeVar("S", bound=Sequence[str])

MAX_EXACT_CELLS = 10_000_000_000
"""The largest product of lengths for an exact comparison, which then takes about half a second."""
BLOCK_LENGTH = 2048
"""The length of one block of a longer text."""


@dataclass(frozen=True, slots=True)
class Similarity:
    """A similarity between 0 and 1. If it is not `exact`, the true one is between `score` and `at_most`."""

    score: float
    at_most: float
    exact: bool = True


def edit_similarity(left: str, right: str) -> Similarity:
    """1 minus the Levenshtein distance divided by the longer length, in code points; 1 for two empty texts.

    Very long texts are compared exactly if few edits separate them. Otherwise both are cut into the same number of
    blocks, compared pair by pair. That is one possible alignment, maybe not the best, so the score is a lower bound.
    """
    if left == right:
        return Similarity(1.0, 1.0)
    longest = max(len(left), len(right))
    if len(left) * len(right) <= MAX_EXACT_CELLS:
        score = 1.0 - Levenshtein.distance(left, right) / longest
        return Similarity(score, score)
    affordable = MAX_EXACT_CELLS // longest
    distance = Levenshtein.distance(left, right, score_cutoff=affordable)
    if distance <= affordable:
        score = 1.0 - distance / longest
        return Similarity(score, score)
    at_least = max(affordable + 1, abs(len(left) - len(right)))
    blockwise = sum(Levenshtein.distance(a, b) for a, b in _blocks(left, right))
    return Similarity(1.0 - blockwise / longest, 1.0 - at_least / longest, exact=False)


def edit_score(left: str, right: str) -> float:
    """The score of `edit_similarity` alone."""
    return edit_similarity(left, right).score


def common_words(left: Sequence[str], right: Sequence[str]) -> tuple[int, bool]:
    """The length of the longest common subsequence of words, and whether that is exact or a lower bound."""
    if len(left) * len(right) <= MAX_EXACT_CELLS:
        return LCSseq.similarity(left, right), True
    return sum(LCSseq.similarity(a, b) for a, b in _blocks(left, right)), False


def _blocks(left: S, right: S) -> Iterator[tuple[S, S]]:
    """Both sides cut into the same number of pieces, pair by pair."""
    count = -(-max(len(left), len(right)) // BLOCK_LENGTH)
    for index in range(count):
        yield _piece(left, index, count), _piece(right, index, count)


def _piece(whole: S, index: int, count: int) -> S:
    return whole[len(whole) * index // count : len(whole) * (index + 1) // count]  # type: ignore[return-value]
