"""Pairs the items of two lists, each at most once, so that the pairs are worth the most on the whole.

`best_pairs` is for lists whose order does not matter, `best_pairs_in_order` for those where it does. Taking the best
pair first, as a simpler rule would, is not optimal and depends on the order of the lists.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import add

Pairs = list[tuple[int, int]]
"""(row, column), by row."""
Weights = Sequence[Sequence[float]]
"""Per row and column, what pairing the two is worth: from 0 (they do not go together) to 1."""

MOST_ASSIGNED = 90_000
"""Entries of a matrix of different weights for which the best assignment is found: one of 300 by 300 takes a moment,
one of 1,000 by 1,000 would take 20 seconds, in which an agent that calls a tool too often would stop everything."""


def best_pairs(weights: Weights) -> Pairs:
    """The pairs of greatest total weight in any order; rows and columns that go with nothing stay alone.

    Exact where all pairs are worth the same, whatever the size, and else up to `MOST_ASSIGNED` entries. In a larger
    matrix as many pairs of the greatest weight as possible are made first, and then the best assignment of the rest;
    if that is still too large, the best pair first.
    """
    found = sorted({weight for row in _different(weights) for weight in row if weight > 0.0}, reverse=True)
    if not found:
        return []
    if len(found) == 1:
        return most_pairs(_columns_worth(weights, found[0]))
    if is_exact(weights):
        return _positive(weights, list(range(len(weights))), list(range(len(weights[0]))))
    first = most_pairs(_columns_worth(weights, found[0]))
    rows, columns = _left(len(weights), (r for r, _ in first)), _left(len(weights[0]), (c for _, c in first))
    if len(rows) * len(columns) <= MOST_ASSIGNED:
        return sorted(first + _positive(weights, rows, columns))
    return sorted(first + _best_first(weights, rows, columns))


def is_exact(weights: Weights) -> bool:
    """Whether a matrix is small enough for the best assignment of different weights."""
    return len(weights) * len(weights[0] if weights else ()) <= MOST_ASSIGNED


def _columns_worth(weights: Weights, worth: float) -> list[list[int]]:
    """Per row, the columns with this weight; rows that are one object are gone through once."""
    columns = {id(row): [column for column, weight in enumerate(row) if weight == worth] for row in _different(weights)}
    return [columns[id(row)] for row in weights]


def _different(weights: Weights) -> Iterable[Sequence[float]]:
    return {id(row): row for row in weights}.values()


def _left(count: int, taken: Iterable[int]) -> list[int]:
    used = set(taken)
    return [index for index in range(count) if index not in used]


def _positive(weights: Weights, rows: list[int], columns: list[int]) -> Pairs:
    part = [[weights[row][column] for column in columns] for row in rows]
    return [(rows[r], columns[c]) for r, c in best_assignment(part) if part[r][c] > 0.0]


def _best_first(weights: Weights, rows: list[int], columns: list[int]) -> Pairs:
    worth = [(-weights[row][column], row, column) for row in rows for column in columns if weights[row][column] > 0.0]
    used_rows: set[int] = set()
    used_columns: set[int] = set()
    pairs: Pairs = []
    for _, row, column in sorted(worth):
        if row not in used_rows and column not in used_columns:
            used_rows.add(row)
            used_columns.add(column)
            pairs.append((row, column))
    return pairs


def most_pairs(fits: Sequence[Sequence[int]]) -> Pairs:
    """As many pairs as there can be, where `fits` has the columns that go with each row (Hopcroft and Karp)."""
    row_of: dict[int, int] = {}
    column_of: dict[int, int] = {}
    for row, columns in enumerate(fits):
        free = next((column for column in columns if column not in row_of), None)
        if free is not None:
            row_of[free], column_of[row] = row, free
    while levels := _levels(fits, row_of, column_of):
        for row in [row for row in range(len(fits)) if row not in column_of and fits[row]]:
            _augment(fits, row, levels, row_of, column_of)
    return sorted(column_of.items())


def _levels(fits: Sequence[Sequence[int]], row_of: dict[int, int], column_of: dict[int, int]) -> dict[int, int]:
    """Per row that a chain of exchanges reaches, how many it takes; nothing where no chain ends at a free column."""
    reached = [row for row in range(len(fits)) if row not in column_of and fits[row]]
    levels = dict.fromkeys(reached, 0)
    seen: set[int] = set()
    ends = False
    while reached and not ends:
        further: list[int] = []
        for row in reached:
            for column in fits[row]:
                if column in seen:
                    continue
                seen.add(column)
                if column not in row_of:
                    ends = True
                elif row_of[column] not in levels:
                    levels[row_of[column]] = levels[row] + 1
                    further.append(row_of[column])
        reached = further
    return levels if ends else {}


def _augment(
    fits: Sequence[Sequence[int]], first: int, levels: dict[int, int], row_of: dict[int, int], column_of: dict[int, int]
) -> None:
    """Follow the levels to a free column and exchange along the way; rows that lead nowhere lose their level."""
    path = [(first, iter(fits[first]))]
    chosen: list[int] = []
    while path:
        row, columns = path[-1]
        for column in columns:
            holder = row_of.get(column)
            if holder is None:
                for (own, _), taken in zip(path, [*chosen, column], strict=True):
                    row_of[taken], column_of[own] = own, taken
                return
            if levels.get(holder) == levels[row] + 1:
                chosen.append(column)
                path.append((holder, iter(fits[holder])))
                break
        else:
            levels[row] = -1
            path.pop()
            if chosen:
                chosen.pop()


def best_pairs_in_order(weights: Weights) -> Pairs:
    """The pairs of greatest total weight of which no two cross: a weighted longest common subsequence.

    A first row and first column that are worth 1 together belong together: whatever else one of them could be paired
    with is worth no more, and the other then stays alone. The same holds for the last ones; the rest is compared.
    """
    columns = len(weights[0]) if weights else 0
    start, end, shorter = 0, 0, min(len(weights), columns)
    while start < shorter and weights[start][start] == 1.0:
        start += 1
    while end < shorter - start and weights[-1 - end][columns - 1 - end] == 1.0:
        end += 1
    middle = [row[start : columns - end] for row in weights[start : len(weights) - end]]
    pairs = [(index, index) for index in range(start)]
    pairs += [(row + start, column + start) for row, column in _common_subsequence(middle)]
    return pairs + [(len(weights) - back, columns - back) for back in range(end, 0, -1)]


def _common_subsequence(weights: Weights) -> Pairs:
    columns = len(weights[0]) if weights else 0
    best = [[0.0] * (columns + 1)]
    for row in weights:
        above = best[-1]
        best.append(
            list(accumulate(map(max, above[1:], map(add, above, row)), max, initial=0.0)) if any(row) else above
        )
    pairs: Pairs = []
    index, column = len(weights), columns
    while index and column:
        value = best[index][column]
        if value == best[index][column - 1]:
            column -= 1
        elif value == best[index - 1][column]:
            index -= 1
        else:
            index, column = index - 1, column - 1
            pairs.append((index, column))
    pairs.reverse()
    return pairs


def best_assignment(scores: Weights) -> Pairs:
    """The pairs of greatest total score, as many as the shorter side has, also those with a score of 0 or less.

    Exact (the Hungarian algorithm, cubic in the smaller side) and the same for the same scores. Pairs come by row.
    """
    rows = len(scores)
    columns = len(scores[0]) if rows else 0
    if any(len(row) != columns for row in scores):
        raise ValueError("scores must be a rectangle: every row as long as the first")
    if not all(math.isfinite(score) for row in scores for score in row):
        raise ValueError("scores must be finite numbers")
    if not columns:
        return []
    if rows <= columns:
        return _assign([[-score for score in row] for row in scores])
    turned = _assign([[-row[column] for row in scores] for column in range(columns)])
    return sorted((row, column) for column, row in turned)


def _assign(costs: list[list[float]]) -> Pairs:
    """Cheapest assignment of every row of a matrix that is at least as wide as it is high.

    Rows enter one at a time, each along the cheapest path of exchanges; `row_price` and `column_price` are the dual
    potentials that keep every reduced cost from being negative. Column `width` is where the entering row stands.
    """
    width = len(costs[0])
    row_price = [0.0] * len(costs)
    column_price = [0.0] * (width + 1)
    row_of = [-1] * (width + 1)
    for entering in range(len(costs)):
        row_of[width] = entering
        came_from = _cheapest_path(costs, row_price, column_price, row_of)
        column = came_from[width]
        while column != width:
            previous = came_from[column]
            row_of[column] = row_of[previous]
            column = previous
    return sorted((row_of[column], column) for column in range(width) if row_of[column] >= 0)


def _cheapest_path(
    costs: list[list[float]], row_price: list[float], column_price: list[float], row_of: list[int]
) -> list[int]:
    """Each reached column's predecessor on the way to a free column, which is kept at the last index."""
    width = len(costs[0])
    slack = [math.inf] * width
    came_from = [width] * (width + 1)
    reached = [width]
    open_columns = list(range(width))
    column = width
    while row_of[column] >= 0:
        row = row_of[column]
        row_costs, price = costs[row], row_price[row]
        step, nearest = math.inf, -1
        for candidate in open_columns:
            reduced = row_costs[candidate] - price - column_price[candidate]
            if reduced < slack[candidate]:
                slack[candidate] = reduced
                came_from[candidate] = column
            # Of equally near columns a free one ends the search; without this, ties make it visit them all.
            free_at_last = slack[candidate] == step and row_of[candidate] < 0 <= row_of[nearest]
            if slack[candidate] < step or free_at_last:
                step, nearest = slack[candidate], candidate
        for passed in reached:
            row_price[row_of[passed]] += step
            column_price[passed] -= step
        for candidate in open_columns:
            slack[candidate] -= step
        column = nearest
        reached.append(column)
        open_columns.remove(column)
    came_from[width] = column
    return came_from
