"""How much of the expected tool use happened: a share between 0 and 1, with credit for partly right arguments.

Pairs calls so that their arguments earn the most credit on the whole, comparing no more of them than it must.

Credit is the share of arguments that are as expected. Where every argument is given literally, one minus credit is a
distance that obeys the triangle inequality, so that pairing identical calls first never costs anything.


Whether an agent's tools still answer what the agent was given: an answer is only as good as what it rests on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from math import fsum

from proctor.agents.agent import ToolCall
from proctor.base.json_data import UNSET
from proctor.base.records import record
from proctor.cases.matchers import same
from proctor.cases.suite import ExpectedCall
from proctor.evaluators.argument_checks import require_flags
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.tools.call_comparison import (
    credit,
    expected_calls,
    fitting_names,
    literal,
    literal_key,
    mismatches,
    repeated,
    value_key,
)
from proctor.evaluators.tools.differences import Differences, differences
from proctor.evaluators.tools.matching import (
    Pairs,
    best_assignment,
    columns_of,
    heaviest_in_order,
    most_pairs,
    most_pairs_in_order,
)


def most_credit(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall], rows: Sequence[int]) -> Pairs:
    """The pairs of the relation `rows` that earn the most, in any order."""
    pairs: Pairs = []
    for members, columns in _islands(rows):
        identical = _identical(expected, actual, members, columns, rows)
        pairs += identical
        taken = {index for index, _ in identical}
        left = columns & ~sum(1 << column for _, column in identical)
        waiting = [index for index in members if index not in taken]
        if waiting and left:
            pairs += _assign(expected, actual, waiting, list(columns_of(left)), rows)
    return sorted(pairs)


def most_credit_in_order(expected: Sequence[ExpectedCall], actual: Sequence[ToolCall], rows: Sequence[int]) -> Pairs:
    """The pairs of the relation `rows` that earn the most without two of them crossing."""
    first, last = 0, 0
    most = min(len(expected), len(actual))
    while first < most and _worth(expected, actual, rows, first, first) == 1.0:
        first += 1
    rows_end, columns_end = len(expected), len(actual)
    while last < most - first and _worth(expected, actual, rows, rows_end - 1 - last, columns_end - 1 - last) == 1.0:
        last += 1
    weights = [
        [_worth(expected, actual, rows, index, column) for column in range(first, columns_end - last)]
        for index in range(first, rows_end - last)
    ]
    middle = [(first + index, first + column) for index, column in heaviest_in_order(weights)]
    head = [(index, index) for index in range(first)]
    return head + middle + [(rows_end - back, columns_end - back) for back in range(last, 0, -1)]


def _worth(
    expected: Sequence[ExpectedCall], actual: Sequence[ToolCall], rows: Sequence[int], index: int, column: int
) -> float:
    return credit(expected[index], actual[column]) if rows[index] >> column & 1 else 0.0


def _islands(rows: Sequence[int]) -> list[tuple[list[int], int]]:
    """The parts of a relation that have nothing to do with each other, such as the calls of different tools."""
    islands: list[tuple[list[int], int]] = []
    for index, row in enumerate(rows):
        if not row:
            continue
        members, columns, apart = [index], row, []
        for island in islands:
            if island[1] & row:
                members, columns = island[0] + members, island[1] | columns
            else:
                apart.append(island)
        islands = [*apart, (members, columns)]
    return islands


def _identical(
    expected: Sequence[ExpectedCall],
    actual: Sequence[ToolCall],
    members: Sequence[int],
    columns: int,
    rows: Sequence[int],
) -> Pairs:
    """Expected calls with the actual ones that are the same, if all of the island can be compared in this way."""
    if any(rows[index] != columns for index in members):
        return []
    keys = [literal_key(expected[index]) for index in members]
    if None in keys:
        return []
    unused: dict[Hashable, list[int]] = {}
    for column in columns_of(columns):
        if actual[column].raw_arguments is None:
            try:
                unused.setdefault(value_key(actual[column].arguments), []).append(column)
            except TypeError:
                return []
    pairs: Pairs = []
    for index, key in zip(members, keys, strict=True):
        if same_calls := unused.get(key):
            pairs.append((index, same_calls.pop(0)))
    return pairs


def _assign(
    expected: Sequence[ExpectedCall],
    actual: Sequence[ToolCall],
    members: Sequence[int],
    columns: Sequence[int],
    rows: Sequence[int],
) -> Pairs:
    weights = [[_worth(expected, actual, rows, index, column) for column in columns] for index in members]
    found = _at_their_best(weights)
    if found is None:
        found = best_assignment(weights)
    return [(members[row], columns[place]) for row, place in found if weights[row][place] > 0.0]


def _at_their_best(weights: list[list[float]]) -> Pairs | None:
    """An assignment that needs no weighing up: all weights are 0 or 1, or everyone on one side gets the best there is.

    Common, because credit takes few values, and far from cubic.
    """
    if all(weight in (0.0, 1.0) for line in weights for weight in line):
        return most_pairs([_where(line, 1.0) for line in weights])
    if len(weights) <= len(weights[0]):
        pairs = most_pairs([_where(line, max(line)) for line in weights])
        return pairs if len(pairs) == len(weights) else None
    turned = list(zip(*weights, strict=True))
    pairs = most_pairs([_where(line, max(line)) for line in turned])
    return [(row, column) for column, row in pairs] if len(pairs) == len(turned) else None


def _where(line: Sequence[float], value: float) -> int:
    return sum(1 << place for place, weight in enumerate(line) if weight == value)


@record
class ToolCorrectness:
    """The share of the expected tool calls that were made; further calls cost nothing unless `exact`."""

    ordered: bool = False
    """Whether only calls that come in the expected order count."""
    exact: bool = False
    """Whether anything but the expected calls, all of them, in their order and nothing else, scores 0."""
    compare_arguments: bool = False
    """Whether a call counts only as far as its arguments are the expected ones."""
    compare_results: bool = False
    """Whether a call counts only if its result is the expected one, where one is given."""

    def __post_init__(self) -> None:
        require_flags(
            ordered=self.ordered,
            exact=self.exact,
            compare_arguments=self.compare_arguments,
            compare_results=self.compare_results,
        )

    def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected, actual = expected_calls(evaluable), evaluable.tool_calls
        if not expected:
            reason = "tools were called and none was to be" if actual else "no tool was to be called, and none was"
            return Evaluation(float(not actual), reason, differences(expected, actual, []).details())
        rows = self._rows(expected, actual)
        units = repeated(expected, len(actual))
        found = self._pair([expected[index] for index in units], actual, [rows[index] for index in units])
        pairs = [(units[unit], column) for unit, column in found]
        earned = [credit(expected[i], actual[c]) if self.compare_arguments else 1.0 for i, c in pairs]
        left = differences(expected, actual, pairs, rows if self.ordered or self.exact else (), self._reasons)
        return self._verdict(left, earned)

    def _rows(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall]) -> list[int]:
        rows = fitting_names(expected, actual)
        if self.compare_results:
            for index, call in enumerate(expected):
                if call.result is not UNSET:
                    fits = (c for c in columns_of(rows[index]) if same(call.result, actual[c].result))
                    rows[index] = sum(1 << column for column in fits)
        return rows

    def _pair(self, expected: Sequence[ExpectedCall], actual: Sequence[ToolCall], rows: Sequence[int]) -> Pairs:
        if self.exact:
            return [(index, index) for index, row in enumerate(rows) if row >> index & 1]
        if self.compare_arguments:
            return (most_credit_in_order if self.ordered else most_credit)(expected, actual, rows)
        return most_pairs_in_order(rows) if self.ordered else most_pairs(rows)

    def _verdict(self, left: Differences, earned: list[float]) -> Evaluation:
        wanted = sum(call.count for call in left.expected)
        share = fsum(earned) / wanted if wanted else 1.0
        details = {**left.details(), "credit": earned}
        if share == 1.0 and not (self.exact and len(left.actual) > wanted):
            return Evaluation(1.0, f"all {wanted} expected calls were made", details)
        partly = [pair for pair, worth in zip(left.pairs, earned, strict=True) if worth < 1.0]
        phrases = [left.explain(extra_allowed=not self.exact)]
        for index, column in partly[:8]:
            call = left.actual[column]
            phrases.append(f"{call.name}: {', '.join(self._reasons(left.expected[index], call))}")
        return Evaluation(0.0 if self.exact else share, "; ".join(filter(None, phrases)), details)

    def _reasons(self, expected: ExpectedCall, call: ToolCall) -> Iterator[str]:
        if self.compare_arguments:
            yield from mismatches(expected, call)
        if self.compare_results and expected.result is not UNSET and not same(expected.result, call.result):
            yield f"result expected {literal(expected.result)}, got {literal(call.result)}"
