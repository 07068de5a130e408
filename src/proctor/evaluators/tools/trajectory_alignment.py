"""Finds the calls that make the steps of a trajectory, so that as many as possible are accounted for.

Exact: groups of steps that cannot affect each other are solved apart; those without any order by optimal assignment,
the others by a dynamic programme over the calls, whose states are the numbers of calls that each step has so far.
Only if there are more than `MOST_STATES` of those are the least promising ones dropped, and the result says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from proctor.base.records import record
from proctor.evaluators.tools.matching import Pairs, best_pairs

MOST_STATES = 20_000
KEPT_STATES = 4_000
"""How many of too many states are kept: those with the highest upper bound."""

SAME_TOOL = 1e-6
"""Worth of pairing a call with the step of its tool although none of its arguments is right."""

OPTIONAL = 1e-4
"""Worth of an optional call relative to a required one."""
MANY_CALLS = 100
"""With more calls than this an optional one is worth less, so that all of them never outweigh a required argument."""


@record
class StepWeights:
    """A step as the search needs it: what each call is worth as this step, and the bounds."""

    weights: Sequence[float | None]
    """Per call, what it is worth as this step, from 0 to 1; `None` for a call of another tool."""
    before: frozenset[int]
    """Indices of the steps that come earlier, directly or not."""
    least: int
    most: int


@record
class Alignment:
    """Which call makes which step."""

    pairs: Pairs
    """(step, call) indices, by call."""
    exact: bool = True


@record
class _Slot:
    """The required calls of a step, or its optional ones."""

    step: int
    before: frozenset[int]
    worths: Sequence[float | None]
    """Per call, what it is worth here; `None` for a call that does not fit."""
    most: int

    def precedes(self, other: _Slot) -> bool:
        return self.step in other.before


def align(steps: Sequence[StepWeights], *, further: bool = False) -> Alignment:
    """The pairs of greatest total worth in which no call comes before one that it must follow.

    Where `further` calls are allowed, an optional call is a step only if nothing about it is wrong.
    """
    pairs: Pairs = []
    exact = True
    for slots in _separate(_slots(steps, further)):
        if any(one.precedes(other) for one in slots for other in slots):
            found, complete = _in_order(slots)
            exact = exact and complete
        else:
            found = _in_any_order(slots)
        pairs += found
    return Alignment(sorted(pairs, key=lambda pair: pair[1]), exact)


def optional_worth(columns: int) -> float:
    """What an optional call is worth among `columns` calls."""
    return OPTIONAL * min(1.0, MANY_CALLS / max(1, columns))


def _slots(steps: Sequence[StepWeights], further: bool) -> list[_Slot]:
    slots: list[_Slot] = []
    for index, step in enumerate(steps):
        must = [None if weight is None else weight + SAME_TOOL for weight in step.weights]
        slots.append(_Slot(index, step.before, must, step.least))
        factor, least = optional_worth(len(must)), 1.0 if further else 0.0
        may = [None if weight is None or weight < least else (weight + SAME_TOOL) * factor for weight in step.weights]
        slots.append(_Slot(index, step.before, may, step.most - step.least))
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
    return [(units[row].step, columns[place]) for row, place in best_pairs(worths)]


def _of_one_step(slots: Sequence[_Slot]) -> Pairs:
    """The best calls are the required ones, the next best the optional ones; a matrix of thousands is avoided."""
    pairs: Pairs = []
    taken: set[int] = set()
    for slot in slots:
        worths = [(worth, -column) for column, worth in enumerate(slot.worths) if worth is not None]
        free = [-negative for _, negative in sorted(worths, reverse=True) if -negative not in taken][: slot.most]
        taken.update(free)
        pairs += [(slot.step, column) for column in free]
    return pairs


_Path = tuple[int, int, "_Path | None"]
"""The last pair (step, call) and the path before it."""
_States = dict[tuple[int, ...], tuple[float, _Path | None]]
"""Per number of calls in each slot, as far as it still matters, the greatest worth and its path."""


def _in_order(slots: Sequence[_Slot]) -> tuple[Pairs, bool]:
    """Dynamic programme over the calls: skip a call or assign it to a slot."""
    later = [[k for k, other in enumerate(slots) if slot.precedes(other)] for slot in slots]
    reducer = _StateReducer(slots, later)
    best: _States = {(0,) * len(slots): (0.0, None)}
    exact = True
    for column in range(len(slots[0].worths)):
        fitting = [(k, worth) for k, slot in enumerate(slots) if (worth := slot.worths[column]) is not None]
        if not fitting:
            continue
        reached: _States = {}
        for made, (value, path) in best.items():
            _keep_best(reached, reducer.reduce(column, made), value, path)
            for k, worth in fitting:
                if made[k] < slots[k].most and not any(made[other] for other in later[k]):
                    now = reducer.reduce(column, (*made[:k], made[k] + 1, *made[k + 1 :]))
                    _keep_best(reached, now, value + worth, (slots[k].step, column, path))
        if len(reached) > MOST_STATES:
            exact = False
            bound = _upper_bound(slots, later, column)
            reached = dict(sorted(reached.items(), key=lambda item: -item[1][0] - bound(item[0]))[:KEPT_STATES])
        best = reached
    _, last = max(best.values(), key=lambda found: found[0])
    return _pairs_of(last), exact


def _keep_best(states: _States, made: tuple[int, ...], value: float, path: _Path | None) -> None:
    if made not in states or value > states[made][0]:
        states[made] = (value, path)


class _StateReducer:
    """Merges states that differ only in what no longer matters, which keeps their number small."""

    def __init__(self, slots: Sequence[_Slot], later: Sequence[Sequence[int]]) -> None:
        fits = [[column for column, worth in enumerate(slot.worths) if worth is not None] for slot in slots]
        self._counts = [
            columns[-1] if len(columns) > slot.most else -1 for slot, columns in zip(slots, fits, strict=True)
        ]
        """Per slot, the call up to which it matters how often it was used."""
        self._blocks = [
            max((fits[k][-1] for k in range(len(slots)) if slot in later[k]), default=-1) for slot in range(len(slots))
        ]
        """Per slot, the call up to which it matters whether it was used: later no earlier step can be made anyway."""

    def reduce(self, column: int, made: tuple[int, ...]) -> tuple[int, ...]:
        limits = zip(made, self._counts, self._blocks, strict=True)
        return tuple(
            used if column < counts else min(used, 1) if column < blocks else 0 for used, counts, blocks in limits
        )


def _upper_bound(
    slots: Sequence[_Slot], later: Sequence[Sequence[int]], column: int
) -> Callable[[tuple[int, ...]], float]:
    """The most that a state can still gain; more than that where several slots want the same calls."""
    left = [sorted((w for w in slot.worths[column + 1 :] if w is not None), reverse=True) for slot in slots]
    sums = [list(accumulate(worths, initial=0.0)) for worths in left]

    def bound(made: tuple[int, ...]) -> float:
        return sum(
            sums[k][min(slot.most - made[k], len(left[k]))]
            for k, slot in enumerate(slots)
            if not any(made[other] for other in later[k])
        )

    return bound


def _pairs_of(path: _Path | None) -> Pairs:
    pairs: Pairs = []
    while path is not None:
        step, column, path = path
        pairs.append((step, column))
    return pairs
