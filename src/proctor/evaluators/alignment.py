"""Lays the calls that were made against steps in a partial order, so that as much as possible is accounted for.

Exact: steps that cannot get in each other's way are solved apart; those without any order by optimal assignment, the
rest by going through the calls once, with every combination of steps made so far. Only when there are more than
`COMBINATIONS` of those are the least promising ones dropped.
"""

from __future__ import annotations

from collections.abc import Sequence

from proctor.evaluators.assignment import best_assignment
from proctor.evaluators.pairing import Pairs
from proctor.records import record

COMBINATIONS = 20_000

PAIRED = 1e-6
"""What it is worth to pair a call with the step it was probably meant for, although none of its arguments is right."""

BEYOND = 1e-3
"""What a call that may be made is worth beside one that must be."""


@record
class Place:
    """A step as the search sees it."""

    weights: Sequence[float | None]
    """Per call, what making this step with it is worth, from 0 to 1; `None` where it is another tool's."""
    before: frozenset[int]
    """The steps that come earlier, directly or not."""
    least: int
    most: int


@record
class Alignment:
    """Which call makes which step."""

    pairs: Pairs
    """(step, call), by call."""
    exact: bool = True


@record
class _Slot:
    """The calls of a step that must be made, or those that may be made beyond them."""

    step: int
    place: Place
    most: int
    factor: float

    def worth(self, column: int) -> float | None:
        weight = self.place.weights[column]
        return None if weight is None else (weight + PAIRED) * self.factor

    def precedes(self, other: _Slot) -> bool:
        return self.step in other.place.before


def align(places: Sequence[Place]) -> Alignment:
    """The pairs of greatest total worth in which no call comes before one that it must follow."""
    pairs: Pairs = []
    exact = True
    for slots in _separate(_slots(places)):
        if any(one.precedes(other) for one in slots for other in slots):
            found, complete = _in_order(slots)
            exact = exact and complete
        else:
            found = _in_any_order(slots)
        pairs += found
    return Alignment(sorted(pairs, key=lambda pair: pair[1]), exact)


def _slots(places: Sequence[Place]) -> list[_Slot]:
    parts = [
        _Slot(index, place, most, factor)
        for index, place in enumerate(places)
        for most, factor in ((place.least, 1.0), (place.most - place.least, BEYOND))
    ]
    return [slot for slot in parts if slot.most]


def _separate(slots: Sequence[_Slot]) -> list[list[_Slot]]:
    """Groups of slots that share neither a call nor an order."""
    groups: list[tuple[list[_Slot], set[int]]] = []
    for slot in slots:
        members = [slot]
        calls = {column for column, weight in enumerate(slot.place.weights) if weight is not None}
        apart = []
        for others, used in groups:
            if used & calls or any(slot.precedes(other) or other.precedes(slot) for other in others):
                members, calls = others + members, calls | used
            else:
                apart.append((others, used))
        groups = [*apart, (members, calls)]
    return [members for members, _ in groups]


def _in_any_order(slots: Sequence[_Slot]) -> Pairs:
    length = len(slots[0].place.weights)
    columns = [column for column in range(length) if any(slot.worth(column) is not None for slot in slots)]
    units = [slot for slot in slots for _ in range(min(slot.most, len(columns)))]
    worths = [[slot.worth(column) or 0.0 for column in columns] for slot in units]
    if not units:
        return []
    return [(units[row].step, columns[place]) for row, place in best_assignment(worths) if worths[row][place] > 0.0]


_Way = tuple[int, int, "_Way | None"]


def _in_order(slots: Sequence[_Slot]) -> tuple[Pairs, bool]:
    """Per combination of steps made so far, the best way there; a call is left out or makes one further step."""
    later = [[k for k, other in enumerate(slots) if slot.precedes(other)] for slot in slots]
    best: dict[tuple[int, ...], tuple[float, _Way | None]] = {(0,) * len(slots): (0.0, None)}
    exact = True
    for column in range(len(slots[0].place.weights)):
        fitting = [(k, worth) for k, slot in enumerate(slots) if (worth := slot.worth(column)) is not None]
        reached = dict(best) if fitting else best
        for made, (value, way) in list(best.items()) if fitting else ():
            for k, worth in fitting:
                if made[k] >= slots[k].most or any(made[other] for other in later[k]):
                    continue
                now = (*made[:k], made[k] + 1, *made[k + 1 :])
                if now not in reached or value + worth > reached[now][0]:
                    reached[now] = (value + worth, (slots[k].step, column, way))
        if len(reached) > COMBINATIONS:
            exact = False
            reached = dict(sorted(reached.items(), key=lambda item: -item[1][0])[:COMBINATIONS])
        best = reached
    _, last = max(best.values(), key=lambda found: found[0])
    return _pairs_of(last), exact


def _pairs_of(way: _Way | None) -> Pairs:
    pairs: Pairs = []
    while way is not None:
        step, column, way = way
        pairs.append((step, column))
    return pairs
