"""Says what differs between the expected and the actual tool calls, as a sentence to act on and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from proctor.agents.agent import ToolCall
from proctor.base.records import record
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.tools.call_comparison import actual_text, expected_text, mismatches
from proctor.evaluators.tools.matching import Pairs, best_assignment, most_pairs

_COMPARED = 20
"""Leftover calls that are compared with each other for the likeliest mistake; more would not be read."""
_PHRASES = 8

Reasons = Callable[[ExpectedCall, ToolCall], Iterable[str]]


@record
class Differences:
    """What is left of two lists of calls once every pair that fits is set aside."""

    expected: Sequence[ExpectedCall]
    actual: Sequence[ToolCall]
    pairs: Pairs
    """(expected, actual) positions that fit."""
    different: list[tuple[int, int, list[str]]]
    """Calls of an expected tool, and why they are not the expected call."""
    out_of_order: Pairs
    missing: dict[int, int]
    """How often each expected call is missing."""
    extra: list[int]

    def explain(self, *, extra_allowed: bool = False) -> str:
        """All of it in one line, the gravest first."""
        phrases = [f"missing {_times(expected_text(self.expected[i]), n)}" for i, n in self.missing.items()]
        phrases += self._calls("also called" if extra_allowed else "extra", self.extra)
        phrases += self._calls("out of order", [column for _, column in self.out_of_order])
        phrases += [f"{self.actual[column].name}: {', '.join(why)}" for _, column, why in self.different]
        if len(phrases) > _PHRASES:
            phrases = [*phrases[:_PHRASES], f"and {len(phrases) - _PHRASES} more"]
        return "; ".join(phrases)

    def details(self) -> dict[str, Any]:
        """All of it as plain data."""
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
        return [f"{what} {_times(text, count)}" for text, count in texts.items()]


def differences(
    expected: Sequence[ExpectedCall],
    actual: Sequence[ToolCall],
    pairs: Pairs,
    rows: Sequence[int] = (),
    reasons: Reasons = mismatches,
) -> Differences:
    """Sort out what `pairs` leaves over; given the relation `rows`, calls that only came at the wrong time are told."""
    missing = Counter({index: call.count for index, call in enumerate(expected)})
    missing.subtract(index for index, _ in pairs)
    paired = {column for _, column in pairs}
    extra = [column for column in range(len(actual)) if column not in paired]
    moved: Pairs = []
    different: list[tuple[int, int, list[str]]] = []
    if extra and any(count > 0 for count in missing.values()):
        moved = _set_aside(_moved(missing, extra, rows) if rows else [], missing, extra)
        likely = _set_aside(_likely_mistakes(expected, actual, missing, extra, reasons), missing, extra)
        different = [(index, column, list(reasons(expected[index], actual[column]))) for index, column in likely]
    return Differences(expected, actual, pairs, different, moved, {i: n for i, n in missing.items() if n > 0}, extra)


def _set_aside(pairs: Pairs, missing: Counter[int], extra: list[int]) -> Pairs:
    for index, column in pairs:
        missing[index] -= 1
        extra.remove(column)
    return pairs


def _waiting(missing: Counter[int], most: int) -> list[int]:
    return [index for index, count in missing.items() for _ in range(min(count, most))]


def _moved(missing: Counter[int], extra: list[int], rows: Sequence[int]) -> Pairs:
    left = sum(1 << column for column in extra)
    waiting = _waiting(missing, len(extra))
    return [(waiting[unit], column) for unit, column in most_pairs([rows[index] & left for index in waiting])]


def _likely_mistakes(
    expected: Sequence[ExpectedCall],
    actual: Sequence[ToolCall],
    missing: Counter[int],
    extra: list[int],
    reasons: Reasons,
) -> Pairs:
    """Missing and extra calls of one tool, paired so that as little as possible differs."""
    names = {actual[column].name for column in extra}
    waiting = [index for index in _waiting(missing, _COMPARED) if any(map(expected[index].accepts_name, names))]
    del waiting[_COMPARED:]
    likely = [c for c in extra if any(expected[index].accepts_name(actual[c].name) for index in waiting)][:_COMPARED]
    scores = [[_likeness(expected[index], actual[column], reasons) for column in likely] for index in waiting]
    pairs = best_assignment(scores)
    return [(waiting[unit], likely[place]) for unit, place in pairs if scores[unit][place] > 0.0]


def _likeness(expected: ExpectedCall, call: ToolCall, reasons: Reasons) -> float:
    """More for fewer differences; nothing for another tool, or where there is no difference to tell."""
    differing = sum(1 for _ in reasons(expected, call)) if expected.accepts_name(call.name) else 0
    return 1.0 / (1 + differing) if differing else 0.0


def _times(text: str, count: int) -> str:
    return text if count == 1 else f"{text} ×{count}"
