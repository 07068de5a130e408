"""Says what differs between the expected and the actual tool calls, as a sentence to act on and as data."""

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
"""Missing and extra calls that are compared with each other to find the likely mistake; more would not be read."""
_MAX_PHRASES = 8

Reasons = Callable[[ExpectedCall, ToolCall], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs between two lists of calls, apart from the pairs that fit."""

    expected: Sequence[ExpectedCall]
    actual: Sequence[ToolCall]
    pairs: Pairs
    """(expected, actual) indices that fit."""
    different: list[tuple[int, int, list[str]]]
    """Calls of an expected tool, and why they are not the expected call."""
    out_of_order: Pairs
    missing: dict[int, int]
    """How often each expected call is missing."""
    extra: list[int]

    def explain(self, *, extra_allowed: bool = False) -> str:
        """All differences in one line, the most serious first."""
        phrases = [f"missing {times(expected_text(self.expected[i]), n)}" for i, n in self.missing.items()]
        phrases += self._calls("also called" if extra_allowed else "extra", self.extra)
        phrases += self._calls("out of order", [column for _, column in self.out_of_order])
        phrases += [f"{self.actual[column].name}: {', '.join(why)}" for _, column, why in self.different]
        return one_line(phrases)

    def details(self, *, extra_allowed: bool = False, places: Sequence[int] | None = None) -> dict[str, Any]:
        """All differences as plain data; `places` has the index of each call where some were left out."""
        data = self._as_compared()
        data["faults"] = [*self._faults(extra_allowed)]
        return data if places is None else with_original_indices(data, places)

    def _faults(self, extra_allowed: bool) -> Iterator[Fault]:
        """What went wrong, the most serious first, as reports need it."""
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
"""`kind` (missing, extra, order, arguments, forbidden), `tool`, and, where they are known, `actual` (the index of the
call), `call` (what was expected), `arguments` (why, by argument) and `reasons`."""


def fault(kind: str, tool: str, actual: int | None = None, **rest: Any) -> Fault:
    """One thing that an evaluator of tool calls holds against the agent."""
    found: Fault = {"kind": kind, "tool": tool}
    if actual is not None:
        found["actual"] = actual
    return found | {name: value for name, value in rest.items() if value}


def with_original_indices(data: dict[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """Details of a comparison of some calls, with the indices that these have among all."""
    moved = dict(data)
    for name in ("pairs", "out_of_order"):
        moved[name] = [[index, places[column]] for index, column in data[name]]
    for name in ("different", "extra", "faults"):
        moved[name] = [with_original_index(item, places) for item in data[name]]
    return moved


def with_original_index(item: Fault, places: Sequence[int]) -> Fault:
    """What is said of a call, with the index that it has among all calls."""
    return {**item, "actual": places[item["actual"]]} if "actual" in item else item


def differences(
    expected: Sequence[ExpectedCall],
    actual: Sequence[ToolCall],
    pairs: Pairs,
    fit: Weights = (),
    reasons: Reasons = mismatches,
) -> Differences:
    """Sort out the calls that are in no pair; with `fit`, those that would fit but came out of order are told apart."""
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
    """Missing and extra calls of one tool, paired so that as little as possible differs."""
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
    """More for fewer differences; nothing for another tool, or where there is no difference to tell."""
    differing = sum(1 for _ in reasons(expected, call)) if expected.accepts_name(call.name) else 0
    return 1.0 / (1 + differing) if differing else 0.0


def one_line(phrases: Sequence[str]) -> str:
    """The first phrases, and how many more there are."""
    more = [f"and {len(phrases) - _MAX_PHRASES} more"] if len(phrases) > _MAX_PHRASES else []
    return "; ".join([*phrases[:_MAX_PHRASES], *more])


def times(text: str, count: int) -> str:
    """A call and how often it is meant."""
    return text if count == 1 else f"{text} ×{count}"
