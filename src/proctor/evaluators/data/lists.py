"""Pairs the items of two lists whose order means nothing."""

from __future__ import annotations

from collections import defaultdict

from proctor.evaluators.comparands import data_of
from proctor.evaluators.text.similarity import edit_score
from proctor.evaluators.tools.assignment import best_assignment
from proctor.plain import Json, canonical
from proctor.records import record

LARGEST_ASSIGNMENT = 90_000
"""The product of lengths up to which the best pairing is sought; beyond it, equal items and then neighbours pair."""


@record
class Pair:
    """An expected item and the item it was paired with, by index."""

    expected: int
    got: int
    score: float


@record
class Pairing:
    """Which items belong together; an approximate one may have missed a better whole."""

    pairs: list[Pair]
    approximate: bool = False


def as_items(value: Json) -> list[Json]:
    """The items of a list or of a JSON list in text; nothing has none, anything else is one item itself."""
    data = data_of(value)
    if isinstance(data, list):
        return data
    return [] if data is None or data == "" else [data]


def pair_up(expected: list[Json], got: list[Json], *, exact: bool) -> Pairing:
    """Each expected item with at most one other, for the greatest total similarity."""
    if exact:
        return Pairing(_equal_pairs(expected, got))
    if len(expected) * len(got) <= LARGEST_ASSIGNMENT:
        return Pairing(_best_pairs(expected, got, list(range(len(expected))), list(range(len(got)))))
    pairs = _equal_pairs(expected, got)
    left = _without(len(expected), {pair.expected for pair in pairs})
    right = _without(len(got), {pair.got for pair in pairs})
    if len(left) * len(right) <= LARGEST_ASSIGNMENT:
        pairs += _best_pairs(expected, got, left, right)
    else:
        texts = [(i, j, _text(expected[i]), _text(got[j])) for i, j in zip(left, right, strict=False)]
        pairs += [Pair(i, j, edit_score(a, b)) for i, j, a, b in texts]
    return Pairing(sorted(pairs, key=lambda pair: pair.expected), approximate=True)


def _best_pairs(expected: list[Json], got: list[Json], left: list[int], right: list[int]) -> list[Pair]:
    wanted = [_text(expected[index]) for index in left]
    given = [_text(got[index]) for index in right]
    scores = [[edit_score(a, b) for b in given] for a in wanted]
    return [Pair(left[i], right[j], scores[i][j]) for i, j in best_assignment(scores)]


def _equal_pairs(expected: list[Json], got: list[Json]) -> list[Pair]:
    places: dict[str, list[int]] = defaultdict(list)
    for index in reversed(range(len(got))):
        places[_identity(got[index])].append(index)
    pairs = []
    for index, item in enumerate(expected):
        if found := places.get(_identity(item)):
            pairs.append(Pair(index, found.pop(), 1.0))
    return pairs


def _without(count: int, taken: set[int]) -> list[int]:
    return [index for index in range(count) if index not in taken]


def _text(item: Json) -> str:
    return item if isinstance(item, str) else _identity(item)


def _identity(item: Json) -> str:
    """One text per value, in which 1 and 1.0 are the same and true and 1 are not."""
    return canonical(_integral(item))


def _integral(item: Json) -> Json:
    if isinstance(item, float) and item.is_integer():
        return int(item)
    if isinstance(item, dict):
        return {key: _integral(value) for key, value in item.items()}
    return [_integral(value) for value in item] if isinstance(item, list) else item
