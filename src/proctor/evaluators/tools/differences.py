"""Describes the differences between expected and actual tool calls, in words and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.calls import actual_text, expected_text, mismatches, wrong_arguments
from proctor.evaluators.tools.pairing import Pairs, Weights, best_pairs

_MAX_COMPARED = 20
"""How many missing and extra calls are compared to find likely mistakes. Nobody would read more."""
_MAX_PHRASES = 8

Reasons = Callable[[ExpectedCall, ToolCall], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences between two lists of calls, apart from the pairs that match."""

    expected: Sequence[ExpectedCall]
    actual: Sequence[ToolCall]
    pairs: Pairs
    """(expected, actual) indices that match."""
    different: list[tuple[int, int, list[str]]]
    """Calls of an expected tool with other arguments, and the differences."""
    out_of_order: Pairs
    missing: dict[int, int]
    """How many times each expected call is missing."""
    extra: list[int]

    def explain(self, *, extra_allowed: bool = False) -> str:
        """All differences in one line, the most serious first; other calls that are allowed come last."""
        phrases = [self._missing_call(index, count) for index, count in self.missing.items()]
        phrases += [f"{self.actual[column].name}: {', '.join(why)}" for _, column, why in self.different]
        phrases += [] if extra_allowed else self._calls("extra", self.extra)
        phrases += self._calls("out of order", [column for _, column in self.out_of_order])
        phrases += self._calls("also called", self.extra) if extra_allowed else []
        return one_line(phrases)

    def _missing_call(self, index: int, count: int) -> str:
        """`missing pay()`, or if some of several expected calls were made: `expected 3 calls of pay, got 2`."""
        call, text = self.expected[index], expected_text(self.expected[index])
        if call.count > count:
            return f"expected {call.count} calls of {text}, got {call.count - count}"
        return f"missing {times(text, count)}"

    def details(self, *, extra_allowed: bool = False, places: Sequence[int] | None = None) -> dict[str, Any]:
        """All differences as plain data. `places` has the original index of each call, if some were ignored."""
        data = self._as_compared()
        data["faults"] = [*self._faults(extra_allowed)]
        return data if places is None else with_original_indices(data, places)

    def _faults(self, extra_allowed: bool) -> Iterator[Fault]:
        """The faults for reports, the most serious first."""
        for index in self.missing:
            yield fault("missing", self.expected[index].name, call=expected_text(self.expected[index]))
        for index, column, why in self.different:
            wrong = wrong_arguments(self.expected[index], self.actual[column])
            call = expected_text(self.expected[index])
            yield fault("arguments", self.actual[column].name, column, call=call, arguments=wrong, reasons=why)
        for _, column in self.out_of_order:
            yield fault("order", self.actual[column].name, column)
        if not extra_allowed:
            yield from (fault("extra", self.actual[column].name, column) for column in self.extra)

    def _as_compared(self) -> dict[str, Any]:
        return {
            "pairs": [list(pair) for pair in self.pairs],
            "missing": [
                {"expected": i, "name": self.expected[i].name, "count": n, "call": expected_text(self.expected[i])}
                for i, n in self.missing.items()
            ],
            "extra": [
                {"actual": column, "name": self.actual[column].name, "call": actual_text(self.actual[column])}
                for column in self.extra
            ],
            "out_of_order": [list(pair) for pair in self.out_of_order],
            "different": [{"expected": i, "actual": column, "reasons": why} for i, column, why in self.different],
        }

    def _calls(self, what: str, columns: Sequence[int]) -> list[str]:
        texts = Counter(actual_text(self.actual[column]) for column in columns)
        return [f"{what} {times(text, count)}" for text, count in texts.items()]


Fault = dict[str, Any]
"""`kind` (missing, extra, order, arguments, forbidden), `tool` and, if known, `actual` (the index of the call), `call`
(the expected call), `arguments` (what is wrong, by argument) and `reasons`."""


def fault(kind: str, tool: str, actual: int | None = None, **rest: Any) -> Fault:
    """One mistake of the agent, for reports."""
    result: Fault = {"kind": kind, "tool": tool}
    if actual is not None:
        result["actual"] = actual
    return result | {name: value for name, value in rest.items() if value}


def with_original_indices(data: dict[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """The details with the indices that calls have among all calls, not only among the compared ones."""
    moved = dict(data)
    for name in ("pairs", "out_of_order"):
        moved[name] = [[index, places[column]] for index, column in data[name]]
    for name in ("different", "extra", "faults"):
        moved[name] = [with_original_index(item, places) for item in data[name]]
    return moved


def with_expected_indices(data: dict[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """The details with the indices that expected calls have among all expected ones, not only among the compared."""
    moved = dict(data)
    for name in ("pairs", "out_of_order"):
        moved[name] = [[places[index], column] for index, column in data[name]]
    for name in ("different", "missing"):
        moved[name] = [{**item, "expected": places[item["expected"]]} for item in data[name]]
    if "satisfied" in data:
        moved["satisfied"] = [places[index] for index in data["satisfied"]]
    return moved


def with_original_index(item: Fault, places: Sequence[int]) -> Fault:
    """A fault with the index that its call has among all calls."""
    return {**item, "actual": places[item["actual"]]} if "actual" in item else item


def differences(
    expected: Sequence[ExpectedCall],
    actual: Sequence[ToolCall],
    pairs: Pairs,
    fit: Weights = (),
    reasons: Reasons = mismatches,
) -> Differences:
    """Classify the calls that are in no pair. With `fit`, matches that came out of order are a separate class."""
    missing = Counter({index: call.count for index, call in enumerate(expected)})
    missing.subtract(index for index, _ in pairs)
    paired = {column for _, column in pairs}
    extra = [column for column in range(len(actual)) if column not in paired]
    out_of_order: Pairs = []
    different: list[tuple[int, int, list[str]]] = []
    if extra and any(count > 0 for count in missing.values()):
        out_of_order = _remove_paired(_out_of_order(missing, extra, fit) if fit else [], missing, extra)
        likely = _remove_paired(_likely_mistakes(expected, actual, missing, extra, reasons), missing, extra)
        different = [(index, column, list(reasons(expected[index], actual[column]))) for index, column in likely]
    return Differences(
        expected, actual, pairs, different, out_of_order, {i: n for i, n in missing.items() if n > 0}, extra
    )


def _remove_paired(pairs: Pairs, missing: Counter[int], extra: list[int]) -> Pairs:
    for index, column in pairs:
        missing[index] -= 1
        extra.remove(column)
    return pairs


def _missing_units(missing: Counter[int], most: int) -> list[int]:
    return [index for index, count in missing.items() for _ in range(min(count, most))]


def _out_of_order(missing: Counter[int], extra: list[int], fit: Weights) -> Pairs:
    waiting = _missing_units(missing, len(extra))
    weights = [[fit[index][column] for column in extra] for index in waiting]
    return [(waiting[unit], extra[place]) for unit, place in best_pairs(weights)]


def _likely_mistakes(
    expected: Sequence[ExpectedCall],
    actual: Sequence[ToolCall],
    missing: Counter[int],
    extra: list[int],
    reasons: Reasons,
) -> Pairs:
    """Missing and extra calls of the same tool, paired so that the fewest arguments differ."""
    names = {actual[column].name for column in extra}
    waiting = [
        index for index in _missing_units(missing, _MAX_COMPARED) if any(map(expected[index].accepts_name, names))
    ]
    del waiting[_MAX_COMPARED:]
    likely = [c for c in extra if any(expected[index].accepts_name(actual[c].name) for index in waiting)][
        :_MAX_COMPARED
    ]
    scores = [[_likeness(expected[index], actual[column], reasons) for column in likely] for index in waiting]
    return [(waiting[unit], likely[place]) for unit, place in best_pairs(scores)]


def _likeness(expected: ExpectedCall, call: ToolCall, reasons: Reasons) -> float:
    """Higher for fewer differences; 0 for another tool, or if nothing differs."""
    differing = sum(1 for _ in reasons(expected, call)) if expected.accepts_name(call.name) else 0
    return 1.0 / (1 + differing) if differing else 0.0


def one_line(phrases: Sequence[str]) -> str:
    """The first phrases in one line, and how many more there are."""
    more = [f"and {len(phrases) - _MAX_PHRASES} more"] if len(phrases) > _MAX_PHRASES else []
    return "; ".join([*phrases[:_MAX_PHRASES], *more])


def times(text: str, count: int) -> str:
    """A call and its number."""
    return text if count == 1 else f"{text} ×{count}"


def other_calls(count: int) -> str:
    """The number of calls that are not expected."""
    return f"{count} other call{'' if count == 1 else 's'}"
