"""Pairs calls so that their arguments earn the most credit on the whole, comparing no more of them than it must.

Credit is the share of arguments that are as expected. Where every argument is given literally, one minus credit is a
distance that obeys the triangle inequality, so that pairing identical calls first never costs anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from proctor.agents.model import ToolCall
from proctor.cases.model import ExpectedCall
from proctor.evaluators.tools.assignment import best_assignment
from proctor.evaluators.tools.calls import credit, literal_key, value_key
from proctor.evaluators.tools.pairing import Pairs, columns_of, heaviest_in_order, most_pairs


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
