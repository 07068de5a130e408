"""Compares data part by part, so that one wrong field costs one field, and pairs the items of unordered lists.

To compare two JSON texts as strings would punish another order of keys and reward equal punctuation. So two values are
walked together: objects by key, lists by position, leaves by a scorer for their type. `pair_items` is for lists whose
order does not matter: it finds the pairs with the greatest total similarity (see `tools/pairing.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from proctor.base.json_data import Json, canonical
from proctor.evaluators.text.comparison import edit_score
from proctor.evaluators.tools.pairing import best_assignment
from proctor.evaluators.values import as_data, as_text, parse_if_json

_MAX_NESTED_JSON = 200


def number_score(expected: float, actual: float) -> float:
    """1 minus the difference divided by the sum of sizes; scaled first to avoid an overflow."""
    largest = max(abs(expected), abs(actual))
    if not largest:
        return 1.0
    left, right = expected / largest, actual / largest
    return 1.0 - abs(left - right) / (abs(left) + abs(right))


STRING_SCORERS: dict[str, Callable[[str, str], float]] = {
    "levenshtein": edit_score,
    "exact": lambda expected, actual: float(expected == actual),
}
NUMBER_SCORERS: dict[str, Callable[[float, float], float]] = {
    "numeric": number_score,
    "exact": lambda expected, actual: float(expected == actual),
    "levenshtein": lambda expected, actual: edit_score(as_text(expected), as_text(actual)),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ."""

    place: str
    expected: Json
    actual: Json
    score: float


class JsonComparison:
    """Walks two values together and collects every leaf that differs."""

    def __init__(self, string_scorer: str | Callable[[str, str], float], number_scorer: str) -> None:
        self._strings = STRING_SCORERS[string_scorer] if isinstance(string_scorer, str) else string_scorer
        self._numbers = NUMBER_SCORERS[number_scorer]
        self.differences: list[Difference] = []

    def score(self, expected: Json, actual: Json, place: str = "", depth: int = 0) -> float:
        """The similarity of two values. Objects: mean over the keys of both. Lists: mean over positions."""
        if depth < _MAX_NESTED_JSON:
            expected, actual = parse_if_json(expected), parse_if_json(actual)
        if isinstance(expected, dict) and isinstance(actual, dict):
            keys = list(expected) + [key for key in actual if key not in expected]
            pairs = [(f"{place}.{key}" if place else key, expected.get(key), actual.get(key)) for key in keys]
            return self._mean(pairs, depth)
        if isinstance(expected, list) and isinstance(actual, list):
            longest = max(len(expected), len(actual))
            left, right = (side + [None] * (longest - len(side)) for side in (expected, actual))
            score = self._mean([(f"{place}[{i}]", left[i], right[i]) for i in range(longest)], depth)
            # Unlike a key, an item beyond the shorter list is missing even if it is null.
            beyond = range(min(len(expected), len(actual)), longest)
            surplus = sum(left[i] is None and right[i] is None for i in beyond)
            return score - surplus / longest if surplus else score
        score = self._leaf(expected, actual)
        if score < 1.0:
            self.differences.append(Difference(place, expected, actual, score))
        return score

    def _mean(self, pairs: list[tuple[str, Json, Json]], depth: int) -> float:
        if not pairs:
            return 1.0
        return sum(self.score(left, right, place, depth + 1) for place, left, right in pairs) / len(pairs)

    def _leaf(self, expected: Json, actual: Json) -> float:
        if expected is None or actual is None:
            return float(expected is actual)
        if isinstance(expected, str) and isinstance(actual, str):
            return self._strings(expected, actual)
        if isinstance(expected, bool) or isinstance(actual, bool):
            return float(expected is actual)
        if isinstance(expected, (int, float)) and isinstance(actual, (int, float)):
            return self._number(expected, actual)
        return self._strings(canonical(expected), canonical(actual))

    def _number(self, expected: float, actual: float) -> float:
        try:
            return self._numbers(expected, actual)
        except OverflowError:
            return float(expected == actual)


MAX_PAIRING_CELLS = 90_000
"""The largest product of lengths for the best pairing. In longer lists, equal items pair first, then neighbors."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The indices of an expected item and of the item it is paired with."""

    expected: int
    actual: int
    score: float


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which items belong together. An approximate pairing may not be the best."""

    pairs: list[Pair]
    approximate: bool = False


def as_items(value: Json) -> list[Json]:
    """The items of a list or of a JSON list in a text. None and empty text have no items; anything else is one item."""
    data = as_data(value)
    if isinstance(data, list):
        return data
    return [] if data is None or data == "" else [data]


def pair_items(
    expected: list[Json], actual: list[Json], *, exact: bool, scorer: Callable[[Json, Json], float] | None = None
) -> Pairing:
    """Pair each expected item with at most one other, for the greatest total similarity."""
    if scorer is not None:
        scores = [[scorer(a, b) for b in actual] for a in expected]
        return Pairing([Pair(i, j, scores[i][j]) for i, j in best_assignment(scores)] if actual else [])
    if exact:
        return Pairing(_equal_pairs(expected, actual))
    if len(expected) * len(actual) <= MAX_PAIRING_CELLS:
        return Pairing(_best_pairs(expected, actual, list(range(len(expected))), list(range(len(actual)))))
    pairs = _equal_pairs(expected, actual)
    left = _remaining(len(expected), {pair.expected for pair in pairs})
    right = _remaining(len(actual), {pair.actual for pair in pairs})
    if len(left) * len(right) <= MAX_PAIRING_CELLS:
        pairs += _best_pairs(expected, actual, left, right)
    else:
        texts = [(i, j, _text(expected[i]), _text(actual[j])) for i, j in zip(left, right, strict=False)]
        pairs += [Pair(i, j, edit_score(a, b)) for i, j, a, b in texts]
    return Pairing(sorted(pairs, key=lambda pair: pair.expected), approximate=True)


def _best_pairs(expected: list[Json], actual: list[Json], left: list[int], right: list[int]) -> list[Pair]:
    expected_texts = [_text(expected[index]) for index in left]
    actual_texts = [_text(actual[index]) for index in right]
    scores = [[edit_score(a, b) for b in actual_texts] for a in expected_texts]
    return [Pair(left[i], right[j], scores[i][j]) for i, j in best_assignment(scores)]


def _equal_pairs(expected: list[Json], actual: list[Json]) -> list[Pair]:
    places: dict[str, list[int]] = defaultdict(list)
    for index in reversed(range(len(actual))):
        places[_identity(actual[index])].append(index)
    pairs = []
    for index, item in enumerate(expected):
        if indices := places.get(_identity(item)):
            pairs.append(Pair(index, indices.pop(), 1.0))
    return pairs


def _remaining(count: int, taken: set[int]) -> list[int]:
    return [index for index in range(count) if index not in taken]


def _text(item: Json) -> str:
    return item if isinstance(item, str) else _identity(item)


def _identity(item: Json) -> str:
    """A text that is equal for equal values: 1 and 1.0 are equal, true and 1 are not."""
    return canonical(_integral(item))


def _integral(item: Json) -> Json:
    if isinstance(item, float) and item.is_integer():
        return int(item)
    if isinstance(item, dict):
        return {key: _integral(value) for key, value in item.items()}
    return [_integral(value) for value in item] if isinstance(item, list) else item
