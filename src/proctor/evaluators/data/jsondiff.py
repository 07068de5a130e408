"""Compares data part by part, so that one wrong field costs one field and not the whole answer."""

from __future__ import annotations

from collections.abc import Callable

from proctor.evaluators.comparands import embedded, text_of
from proctor.evaluators.text.similarity import edit_score
from proctor.plain import Json, canonical
from proctor.records import record

_DEEPEST_EMBEDDED = 200


def number_score(expected: float, got: float) -> float:
    """One minus the difference over the sum of sizes; scaled first, so that the largest numbers do not overflow."""
    largest = max(abs(expected), abs(got))
    if not largest:
        return 1.0
    left, right = expected / largest, got / largest
    return 1.0 - abs(left - right) / (abs(left) + abs(right))


STRING_SCORERS: dict[str, Callable[[str, str], float]] = {
    "levenshtein": edit_score,
    "exact": lambda expected, got: float(expected == got),
}
NUMBER_SCORERS: dict[str, Callable[[float, float], float]] = {
    "numeric": number_score,
    "exact": lambda expected, got: float(expected == got),
    "levenshtein": lambda expected, got: edit_score(text_of(expected), text_of(got)),
}


@record
class Difference:
    """One place where the data are not the same."""

    place: str
    expected: Json
    got: Json
    score: float


class Comparison:
    """Walks two pieces of data at once and notes every leaf that is not the same."""

    def __init__(self, string_scorer: str, number_scorer: str) -> None:
        self._strings = STRING_SCORERS[string_scorer]
        self._numbers = NUMBER_SCORERS[number_scorer]
        self.differences: list[Difference] = []

    def score(self, expected: Json, got: Json, place: str = "", depth: int = 0) -> float:
        """Objects: the mean over the keys of both. Lists: place by place, over the longer one. Leaves by type."""
        if depth < _DEEPEST_EMBEDDED:
            expected, got = embedded(expected), embedded(got)
        if isinstance(expected, dict) and isinstance(got, dict):
            keys = list(expected) + [key for key in got if key not in expected]
            pairs = [(f"{place}.{key}" if place else key, expected.get(key), got.get(key)) for key in keys]
            return self._mean(pairs, depth)
        if isinstance(expected, list) and isinstance(got, list):
            longest = max(len(expected), len(got))
            left, right = (side + [None] * (longest - len(side)) for side in (expected, got))
            score = self._mean([(f"{place}[{i}]", left[i], right[i]) for i in range(longest)], depth)
            # An item beyond the shorter list is missing even when it is null, unlike a key.
            beyond = range(min(len(expected), len(got)), longest)
            surplus = sum(left[i] is None and right[i] is None for i in beyond)
            return score - surplus / longest if surplus else score
        score = self._leaf(expected, got)
        if score < 1.0:
            self.differences.append(Difference(place, expected, got, score))
        return score

    def _mean(self, pairs: list[tuple[str, Json, Json]], depth: int) -> float:
        if not pairs:
            return 1.0
        return sum(self.score(left, right, place, depth + 1) for place, left, right in pairs) / len(pairs)

    def _leaf(self, expected: Json, got: Json) -> float:
        if expected is None or got is None:
            return float(expected is got)
        if isinstance(expected, str) and isinstance(got, str):
            return self._strings(expected, got)
        if isinstance(expected, bool) or isinstance(got, bool):
            return float(expected is got)
        if isinstance(expected, (int, float)) and isinstance(got, (int, float)):
            return self._number(expected, got)
        return self._strings(canonical(expected), canonical(got))

    def _number(self, expected: float, got: float) -> float:
        try:
            return self._numbers(expected, got)
        except OverflowError:
            return float(expected == got)
