"""The steps of a trajectory and what must come before what, from Python or from what a file says.

Lays the calls that were made against steps in a partial order, so that as much as possible is accounted for.

Exact: steps that cannot get in each other's way are solved apart; those without any order by optimal assignment, the
rest by going through the calls once, with every combination of steps made so far that makes a difference to what
follows. Only when there are more than `COMBINATIONS` of those are the least promising ones dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from proctor.agents.agent import ToolCall
from proctor.base.fields import nearest
from proctor.base.records import record
from proctor.cases.matchers import parse
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.call_comparison import credit, expected_text, mismatches
from proctor.evaluators.tools.matching import Pairs, best_assignment

UNLIMITED = 10**9

_KEYS = ("name", "args", "substring", "extra_args", "id", "after", "optional", "repeat", "any_of", "steps")
_CALL_KEYS = ("name", "args", "substring", "extra_args")


@record
class Step:
    """A call to be made, or one of several: how often, after which others, and with what calls inside it."""

    any_of: tuple[ExpectedCall, ...]
    """The call, or the alternatives of which any will do."""
    id: str
    after: tuple[str, ...] = ()
    """The ids of steps all of whose calls come before any of this one's."""
    at_least: int = 1
    at_most: int = 1
    steps: tuple[Step, ...] = ()
    """Calls made inside this one, where an agent is used as a tool."""

    @property
    def text(self) -> str:
        return " or ".join(expected_text(call) for call in self.any_of)

    def best(self, call: ToolCall) -> ExpectedCall | None:
        """The alternative that a call comes closest to; `None` if it is another tool's."""
        named = [wanted for wanted in self.any_of if wanted.accepts_name(call.name)]
        return max(named, key=lambda wanted: credit(wanted, call), default=None)

    def reasons(self, call: ToolCall) -> list[str]:
        """Why a call is not quite this step."""
        wanted = self.best(call)
        return [] if wanted is None else list(mismatches(wanted, call))


def read_steps(given: Sequence[Any], base: Path | None = None, place: str = "steps") -> tuple[Step, ...]:
    """Steps as Python gives them or as a file writes them; raises `ValueError` that names the step at fault."""
    if isinstance(given, (str, Mapping)) or not isinstance(given, Sequence):
        raise ValueError(f"{place} must be a list of steps")
    steps = [_step(item, index, base, f"{place}[{index}]") for index, item in enumerate(given)]
    _check_ids(steps, place)
    _check_order(steps, place)
    return tuple(steps)


def read_calls(given: Any, base: Path | None, place: str) -> tuple[ExpectedCall, ...]:
    """One call or a list of them."""
    items = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
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
        matchers = None if arguments is None else {name: parse(value, base) for name, value in arguments.items()}
    except ValueError as error:
        raise ValueError(f"{place}.args: {error}") from None
    return ExpectedCall(
        _text(item.get("name"), f"{place}.name"),
        matchers,
        substring=_flag(item, "substring", place),
        extra_arguments=_flag(item, "extra_args", place),
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
            raise ValueError(f"{place}.repeat: {name} must be a whole number from 0, not {bound!r}")
    if most < max(least, 1):
        raise ValueError(f"{place}.repeat allows no call; use `forbid` for tools that may not be called")
    return 0 if _flag(item, "optional", place) else least, most


def _flag(item: Mapping[str, Any], name: str, place: str) -> bool:
    value = item.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{place}.{name} must be true or false, not {value!r}")
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{place} must be text that is not blank, not {value!r}")
    return value


def _no_unknown_keys(item: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    for name in item:
        if name not in known:
            raise ValueError(f"{place} does not know {name!r}{nearest(str(name), known)}")


def _check_ids(steps: Sequence[Step], place: str) -> None:
    ids = [step.id for step in steps]
    for step in steps:
        if ids.count(step.id) > 1:
            raise ValueError(f"{place}: more than one step has the id {step.id!r}")
        for name in step.after:
            if name not in ids:
                raise ValueError(f"{place}: {step.id!r} comes after {name!r}, which is no step{nearest(name, ids)}")


def _check_order(steps: Sequence[Step], place: str) -> None:
    """Steps that wait for each other can never be made."""
    waiting = {step.id: set(step.after) for step in steps}
    while ready := [name for name, before in waiting.items() if not before & waiting.keys()]:
        for name in ready:
            del waiting[name]
    if waiting:
        raise ValueError(f"{place}: {', '.join(map(repr, waiting))} wait for each other")


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
