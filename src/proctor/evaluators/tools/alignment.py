"""Lays the calls that were made against steps in a partial order, so that as much as possible is accounted for.

Exact: steps that cannot get in each other's way are solved apart; those without any order by optimal assignment, the
rest by going through the calls once, with every combination of steps made so far that makes a difference to what
follows. Only when there are more than `COMBINATIONS` of those are the least promising ones dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from proctor.evaluators.tools.assignment import best_assignment
from proctor.evaluators.tools.pairing import Pairs
from proctor.records import record

COMBINATIONS = 20_000
KEPT = 4_000
"""How many of too many combinations are followed further: those of which the most could still come."""

PAIRED = 1e-6
"""What it is worth to pair a call with the step it was probably meant for, although none of its arguments is right."""

BEYOND = 1e-4
"""What a call that may be made is worth beside one that must be, however many calls there are of the former."""
MANY = 100
"""Calls from which on that is less, so that all of them together never outweigh one argument of one that must be."""


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
    before: frozenset[int]
    worths: Sequence[float | None]
    """Per call, what it is worth here; `None` where it does not belong."""
    most: int

    def precedes(self, other: _Slot) -> bool:
        return self.step in other.before


def align(places: Sequence[Place], *, further: bool = False) -> Alignment:
    """The pairs of greatest total worth in which no call comes before one that it must follow.

    Where `further` calls may be made, one that need not be made is a step only if nothing about it is wrong.
    """
    pairs: Pairs = []
    exact = True
    for slots in _separate(_slots(places, further)):
        if any(one.precedes(other) for one in slots for other in slots):
            found, complete = _in_order(slots)
            exact = exact and complete
        else:
            found = _in_any_order(slots)
        pairs += found
    return Alignment(sorted(pairs, key=lambda pair: pair[1]), exact)


def worth_beyond(columns: int) -> float:
    """What a call that may be made is worth among so many calls."""
    return BEYOND * min(1.0, MANY / max(1, columns))


def _slots(places: Sequence[Place], further: bool) -> list[_Slot]:
    slots: list[_Slot] = []
    for index, place in enumerate(places):
        must = [None if weight is None else weight + PAIRED for weight in place.weights]
        slots.append(_Slot(index, place.before, must, place.least))
        factor, least = worth_beyond(len(must)), 1.0 if further else 0.0
        may = [None if weight is None or weight < least else (weight + PAIRED) * factor for weight in place.weights]
        slots.append(_Slot(index, place.before, may, place.most - place.least))
    return [slot for slot in slots if slot.most and any(worth is not None for worth in slot.worths)]


def _separate(slots: Sequence[_Slot]) -> list[list[_Slot]]:
    """Groups of slots that share neither a call nor an order."""
    groups: list[tuple[list[_Slot], set[int]]] = []
    for slot in slots:
        members = [slot]
        calls = {column for column, worth in enumerate(slot.worths) if worth is not None}
        apart = []
        for others, used in groups:
            if used & calls or any(slot.precedes(other) or other.precedes(slot) for other in others):
                members, calls = others + members, calls | used
            else:
                apart.append((others, used))
        groups = [*apart, (members, calls)]
    return [members for members, _ in groups]


def _in_any_order(slots: Sequence[_Slot]) -> Pairs:
    if len({slot.step for slot in slots}) == 1:
        return _of_one_step(slots)
    length = len(slots[0].worths)
    columns = [column for column in range(length) if any(slot.worths[column] is not None for slot in slots)]
    units = [slot for slot in slots for _ in range(min(slot.most, len(columns)))]
    worths = [[slot.worths[column] or 0.0 for column in columns] for slot in units]
    return [(units[row].step, columns[place]) for row, place in best_assignment(worths) if worths[row][place] > 0.0]


def _of_one_step(slots: Sequence[_Slot]) -> Pairs:
    """The best calls are those that had to be made, the next best the ones that could be; quick for any number."""
    pairs: Pairs = []
    taken: set[int] = set()
    for slot in slots:
        worths = [(worth, -column) for column, worth in enumerate(slot.worths) if worth is not None]
        free = [-place for _, place in sorted(worths, reverse=True) if -place not in taken][: slot.most]
        taken.update(free)
        pairs += [(slot.step, column) for column in free]
    return pairs


_Way = tuple[int, int, "_Way | None"]
_Ways = dict[tuple[int, ...], tuple[float, _Way | None]]
"""Per combination of how often each slot was used, as far as that still matters, the best way there."""


def _in_order(slots: Sequence[_Slot]) -> tuple[Pairs, bool]:
    """A call is left out or makes one further step."""
    later = [[k for k, other in enumerate(slots) if slot.precedes(other)] for slot in slots]
    matters = _Matters(slots, later)
    best: _Ways = {(0,) * len(slots): (0.0, None)}
    exact = True
    for column in range(len(slots[0].worths)):
        fitting = [(k, worth) for k, slot in enumerate(slots) if (worth := slot.worths[column]) is not None]
        if not fitting:
            continue
        reached: _Ways = {}
        for made, (value, way) in best.items():
            _keep(reached, matters.after(column, made), value, way)
            for k, worth in fitting:
                if made[k] < slots[k].most and not any(made[other] for other in later[k]):
                    now = matters.after(column, (*made[:k], made[k] + 1, *made[k + 1 :]))
                    _keep(reached, now, value + worth, (slots[k].step, column, way))
        if len(reached) > COMBINATIONS:
            exact = False
            promise = _promise(slots, later, column)
            reached = dict(sorted(reached.items(), key=lambda item: -item[1][0] - promise(item[0]))[:KEPT])
        best = reached
    _, last = max(best.values(), key=lambda found: found[0])
    return _pairs_of(last), exact


def _keep(ways: _Ways, made: tuple[int, ...], value: float, way: _Way | None) -> None:
    if made not in ways or value > ways[made][0]:
        ways[made] = (value, way)


class _Matters:
    """Tells combinations apart only by what can still change: a limit to be reached, or a step that is now too late."""

    def __init__(self, slots: Sequence[_Slot], later: Sequence[Sequence[int]]) -> None:
        fits = [[column for column, worth in enumerate(slot.worths) if worth is not None] for slot in slots]
        self._counts = [places[-1] if len(places) > slot.most else -1 for slot, places in zip(slots, fits, strict=True)]
        """Per slot, the call up to which it matters how often it was used."""
        self._bars = [
            max((fits[k][-1] for k in range(len(slots)) if slot in later[k]), default=-1) for slot in range(len(slots))
        ]
        """Per slot, the call up to which it matters whether it was used: the last one of those that come before it."""

    def after(self, column: int, made: tuple[int, ...]) -> tuple[int, ...]:
        limits = zip(made, self._counts, self._bars, strict=True)
        return tuple(used if column < counts else min(used, 1) if column < bars else 0 for used, counts, bars in limits)


def _promise(slots: Sequence[_Slot], later: Sequence[Sequence[int]], column: int) -> Callable[[tuple[int, ...]], float]:
    """The most that could still come of a combination; a little more than that where slots want the same calls."""
    left = [sorted((w for w in slot.worths[column + 1 :] if w is not None), reverse=True) for slot in slots]
    sums = [list(accumulate(worths, initial=0.0)) for worths in left]

    def promise(made: tuple[int, ...]) -> float:
        return sum(
            sums[k][min(slot.most - made[k], len(left[k]))]
            for k, slot in enumerate(slots)
            if not any(made[other] for other in later[k])
        )

    return promise


def _pairs_of(way: _Way | None) -> Pairs:
    pairs: Pairs = []
    while way is not None:
        step, column, way = way
        pairs.append((step, column))
    return pairs
