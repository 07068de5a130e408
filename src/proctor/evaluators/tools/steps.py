"""The steps of a trajectory: read them from a file, and align an agent's calls with them.

The steps form a partial order: a step may name others that must come before it. `align` finds the assignment of calls
to steps with the greatest total worth in which no call comes before one that it must follow. Greedy assignment is
wrong: a call may match two steps, and taking the first one can make a later step impossible. Steps without an order
are an ordinary assignment (`pairing.py`). For the others, a dynamic program walks the calls once and either skips a
call or gives it to a step. Its state is the number of calls per step, reduced to what can still matter. If there are
too many states, only the most promising are kept, and the result is marked as not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.base.documents import did_you_mean
from proctor.base.source import pointer_text
from proctor.cases.matchers import InvalidMatcher, parse_arguments
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.calls import credit, expected_text
from proctor.evaluators.tools.pairing import Pairs, best_pairs

UNLIMITED = 10**9

_KEYS = ("name", "args", "substring", "extra_args", "id", "after", "optional", "repeat", "any_of", "steps")
_CALL_KEYS = ("name", "args", "substring", "extra_args")


@dataclass(frozen=True, slots=True)
class Step:
    """A call that the agent should make, or one of several alternatives."""

    any_of: tuple[ExpectedCall, ...]
    """The call, or alternatives of which any one counts."""
    id: str
    after: tuple[str, ...] = ()
    """The ids of steps that must be complete before this one."""
    at_least: int = 1
    at_most: int = 1
    steps: tuple[Step, ...] = ()
    """Calls made inside this one, if an agent is used as a tool."""

    @property
    def text(self) -> str:
        return " or ".join(expected_text(call) for call in self.any_of)

    def best(self, call: ToolCall) -> ExpectedCall | None:
        """The alternative that is most similar to a call; `None` if the call is of another tool."""
        candidates = [expected for expected in self.any_of if expected.accepts_name(call.name)]
        return max(candidates, key=lambda expected: credit(expected, call), default=None)


def read_steps(value: Sequence[Any], base: Path | None = None, place: str = "steps") -> tuple[Step, ...]:
    """Steps from Python objects or from a file; raises `ValueError` that names the wrong step."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise ValueError(f"{place} must be a list of steps")
    steps = [_step(item, index, base, f"{place}[{index}]") for index, item in enumerate(value)]
    _check_ids(steps, place)
    _check_order(steps, place)
    return tuple(steps)


def read_calls(value: Any, base: Path | None, place: str) -> tuple[ExpectedCall, ...]:
    """One call or a list of them."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return tuple(_call(item, base, f"{place}[{index}]") for index, item in enumerate(items))


def _step(item: Any, index: int, base: Path | None, place: str) -> Step:
    if isinstance(item, Step):
        return item if item.id else replace(item, id=f"#{index + 1}")
    if isinstance(item, (str, ExpectedCall)):
        call = _call(item, base, place)
        return Step((call,), f"#{index + 1}", at_least=call.count, at_most=call.count)
    if not isinstance(item, Mapping):
        raise ValueError(f"{place} must be the name of a tool or an object, not {type(item).__name__}")
    _no_unknown_keys(item, _KEYS, place)
    if ("name" in item) == ("any_of" in item):
        raise ValueError(f"{place} needs either 'name' or 'any_of'")
    if "any_of" in item:
        calls = read_calls(item["any_of"], base, f"{place}.any_of")
        if not calls or any(key in item for key in ("args", "substring", "extra_args")):
            raise ValueError(f"{place}.any_of needs at least one call, each with its own arguments")
    else:
        calls = (_call({key: item[key] for key in _CALL_KEYS if key in item}, base, place),)
    at_least, at_most = _bounds(item, place)
    after = item.get("after") or ()
    return Step(
        any_of=calls,
        id=_text(item.get("id", f"#{index + 1}"), f"{place}.id"),
        after=tuple(_text(name, f"{place}.after") for name in (after if isinstance(after, (list, tuple)) else [after])),
        at_least=at_least,
        at_most=at_most,
        steps=read_steps(item["steps"], base, f"{place}.steps") if item.get("steps") else (),
    )


def _call(item: Any, base: Path | None, place: str) -> ExpectedCall:
    if isinstance(item, ExpectedCall):
        return item
    if isinstance(item, str):
        return ExpectedCall(_text(item, place))
    if not isinstance(item, Mapping):
        raise ValueError(f"{place} must be the name of a tool or an object, not {type(item).__name__}")
    _no_unknown_keys(item, _CALL_KEYS, place)
    arguments = item.get("args")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ValueError(f"{place}.args must be an object")
    try:
        matchers = None if arguments is None else parse_arguments(arguments, base)
    except InvalidMatcher as error:
        pointer = (f"{place}.args", *error.pointer)
        raise InvalidMatcher(f"{pointer_text(pointer)}: {error}", pointer) from None
    return ExpectedCall(
        _text(item.get("name"), f"{place}.name"),
        matchers,
        substring=_flag(item, "substring", place),
        extra_args=_flag(item, "extra_args", place),
    )


def _bounds(item: Mapping[str, Any], place: str) -> tuple[int, int]:
    """How often: once, `repeat: 3`, `repeat: {at_least: 1, at_most: 3}`; `optional` allows none as well."""
    repeat = item.get("repeat", 1)
    if isinstance(repeat, Mapping):
        _no_unknown_keys(repeat, ("at_least", "at_most"), f"{place}.repeat")
        least, most = repeat.get("at_least", 1), repeat.get("at_most", UNLIMITED)
    else:
        least = most = repeat
    for name, bound in (("at_least", least), ("at_most", most)):
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
            raise ValueError(f"{place}.repeat: {name} must be a whole number of at least 0, not {bound!r}")
    if most < max(least, 1):
        raise ValueError(f"{place}.repeat allows no calls; use `forbid` for forbidden tools")
    return 0 if _flag(item, "optional", place) else least, most


def _flag(item: Mapping[str, Any], name: str, place: str) -> bool:
    value = item.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{place}.{name} must be true or false, not {value!r}")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{place} must be a non-empty string, not {value!r}")
    return value


def _no_unknown_keys(item: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for name in item:
        if name not in known:
            raise ValueError(f"{place} has an unknown key {name!r}{did_you_mean(str(name), known)}")


def _check_ids(steps: Sequence[Step], place: str) -> None:
    ids = [step.id for step in steps]
    for step in steps:
        if ids.count(step.id) > 1:
            raise ValueError(f"{place}: more than one step has the id {step.id!r}")
        for name in step.after:
            if name not in ids:
                raise ValueError(
                    f"{place}: {step.id!r} comes after {name!r}, which is not a step{did_you_mean(name, ids)}"
                )


def _check_order(steps: Sequence[Step], place: str) -> None:
    """Refuse steps that wait for each other, which can never be made."""
    waiting = {step.id: set(step.after) for step in steps}
    while ready := [name for name, before in waiting.items() if not before & waiting.keys()]:
        for name in ready:
            del waiting[name]
    if waiting:
        raise ValueError(f"{place}: {', '.join(map(repr, waiting))} wait for each other")


MAX_STATES = 20_000
PRUNED_STATES = 4_000
"""The number of states that are kept if there are too many: those with the highest upper bound."""

SAME_TOOL_WORTH = 1e-6
"""The worth of pairing a call with a step of the same tool if none of its arguments is right."""

OPTIONAL_WORTH = 1e-4
"""The worth of an optional call relative to a required one."""
MANY_CALLS = 100
"""With more calls than this, optional ones are worth less, so that together they never outweigh a required one."""


@dataclass(frozen=True, slots=True)
class StepMatches:
    """A step for the search: the worth of each call as this step, and how many calls it takes."""

    weights: Sequence[float | None]
    """Per call, its worth as this step, from 0 to 1; `None` for a call of another tool."""
    before: frozenset[int]
    """Indices of the steps that must come before, directly or not."""
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which call makes which step."""

    pairs: Pairs
    """(step, call) indices, by call."""
    exact: bool = True


@dataclass(frozen=True, slots=True)
class _Slot:
    """The required calls of a step, or its optional ones."""

    step: int
    before: frozenset[int]
    worths: Sequence[float | None]
    """Per call, its worth here; `None` if it does not match."""
    most: int

    def precedes(self, other: _Slot) -> bool:
        return self.step in other.before


def align(steps: Sequence[StepMatches], *, further: bool = False) -> Alignment:
    """The pairs of greatest total worth in which no call comes before one that it must follow.

    If `further` calls are allowed, a call counts as an optional step only if it matches fully.
    """
    pairs: Pairs = []
    exact = True
    for slots in _independent_groups(_slots(steps, further)):
        if any(one.precedes(other) for one in slots for other in slots):
            slot_pairs, complete = _pairs_in_order(slots)
            exact = exact and complete
        else:
            slot_pairs = _pairs_in_any_order(slots)
        pairs += slot_pairs
    return Alignment(sorted(pairs, key=lambda pair: pair[1]), exact)


def optional_worth(columns: int) -> float:
    """The worth of an optional call among `columns` calls."""
    return OPTIONAL_WORTH * min(1.0, MANY_CALLS / max(1, columns))


def _slots(steps: Sequence[StepMatches], further: bool) -> list[_Slot]:
    slots: list[_Slot] = []
    for index, step in enumerate(steps):
        must = [None if weight is None else weight + SAME_TOOL_WORTH for weight in step.weights]
        slots.append(_Slot(index, step.before, must, step.least))
        factor, least = optional_worth(len(must)), 1.0 if further else 0.0
        may = [
            None if weight is None or weight < least else (weight + SAME_TOOL_WORTH) * factor for weight in step.weights
        ]
        slots.append(_Slot(index, step.before, may, step.most - step.least))
    return [slot for slot in slots if slot.most and any(worth is not None for worth in slot.worths)]


def _independent_groups(slots: Sequence[_Slot]) -> list[list[_Slot]]:
    """Groups of slots that have no call and no order in common, which can be solved separately."""
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


def _pairs_in_any_order(slots: Sequence[_Slot]) -> Pairs:
    if len({slot.step for slot in slots}) == 1:
        return _pairs_of_one_step(slots)
    length = len(slots[0].worths)
    columns = [column for column in range(length) if any(slot.worths[column] is not None for slot in slots)]
    units = [slot for slot in slots for _ in range(min(slot.most, len(columns)))]
    worths = [[slot.worths[column] or 0.0 for column in columns] for slot in units]
    return [(units[row].step, columns[place]) for row, place in best_pairs(worths)]


def _pairs_of_one_step(slots: Sequence[_Slot]) -> Pairs:
    """The best calls are the required ones, the next best the optional ones. This avoids a matrix of thousands."""
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
"""Per number of calls in each slot (reduced to what still matters), the greatest worth and its path."""


def _pairs_in_order(slots: Sequence[_Slot]) -> tuple[Pairs, bool]:
    """Dynamic program over the calls: skip a call or assign it to a slot. Also returns whether that is exact."""
    later = [[k for k, other in enumerate(slots) if slot.precedes(other)] for slot in slots]
    reducer = _StateReducer(slots, later)
    best: _States = {(0,) * len(slots): (0.0, None)}
    exact = True
    for column in range(len(slots[0].worths)):
        fitting = [(k, worth) for k, slot in enumerate(slots) if (worth := slot.worths[column]) is not None]
        if not fitting:
            continue
        reached: _States = {}
        for counts, (value, path) in best.items():
            _keep_best(reached, reducer.reduce(column, counts), value, path)
            for k, worth in fitting:
                if counts[k] < slots[k].most and not any(counts[other] for other in later[k]):
                    now = reducer.reduce(column, (*counts[:k], counts[k] + 1, *counts[k + 1 :]))
                    _keep_best(reached, now, value + worth, (slots[k].step, column, path))
        if len(reached) > MAX_STATES:
            exact = False
            bound = _upper_bound(slots, later, column)
            reached = dict(sorted(reached.items(), key=lambda item: -item[1][0] - bound(item[0]))[:PRUNED_STATES])
        best = reached
    _, last = max(best.values(), key=lambda state: state[0])
    return _pairs_of(last), exact


def _keep_best(states: _States, counts: tuple[int, ...], value: float, path: _Path | None) -> None:
    if counts not in states or value > states[counts][0]:
        states[counts] = (value, path)


class _StateReducer:
    """Merges states that differ only in what no longer matters, to keep their number small."""

    def __init__(self, slots: Sequence[_Slot], later: Sequence[Sequence[int]]) -> None:
        fits = [[column for column, worth in enumerate(slot.worths) if worth is not None] for slot in slots]
        self._counts = [
            columns[-1] if len(columns) > slot.most else -1 for slot, columns in zip(slots, fits, strict=True)
        ]
        """Per slot, the call up to which it matters how often it was used."""
        self._blocks = [
            max((fits[k][-1] for k in range(len(slots)) if slot in later[k]), default=-1) for slot in range(len(slots))
        ]
        """Per slot, the last call for which it matters whether the slot was used: later, no earlier step can match."""

    def reduce(self, column: int, used: tuple[int, ...]) -> tuple[int, ...]:
        limits = zip(used, self._counts, self._blocks, strict=True)
        return tuple(
            count if column < counts else min(count, 1) if column < blocks else 0 for count, counts, blocks in limits
        )


def _upper_bound(
    slots: Sequence[_Slot], later: Sequence[Sequence[int]], column: int
) -> Callable[[tuple[int, ...]], float]:
    """An upper bound of what a state can still gain. It is too high if several slots need the same calls."""
    left = [sorted((w for w in slot.worths[column + 1 :] if w is not None), reverse=True) for slot in slots]
    sums = [list(accumulate(worths, initial=0.0)) for worths in left]

    def bound(counts: tuple[int, ...]) -> float:
        return sum(
            sums[k][min(slot.most - counts[k], len(left[k]))]
            for k, slot in enumerate(slots)
            if not any(counts[other] for other in later[k])
        )

    return bound


def _pairs_of(path: _Path | None) -> Pairs:
    pairs: Pairs = []
    while path is not None:
        step, column, path = path
        pairs.append((step, column))
    return pairs
