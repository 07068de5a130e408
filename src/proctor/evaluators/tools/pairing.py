"""Pairs the items of two lists, each at most once, so that the pairs are worth the most on the whole.

`best_pairs` is for lists whose order does not matter, `best_pairs_in_order` for those where it does. Taking the best
pair first, as a simpler rule would, is not optimal and depends on the order of the lists: one expected call that fits
two actual ones may take the only one that another expected call fits. So the best assignment is computed (the Hungarian
algorithm). It is cubic, so a very large matrix, which only an agent that calls tools in a loop makes, is paired row by
row instead; `is_exact` says which of the two happens, and evaluators report it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import add

Pairs = list[tuple[int, int]]
"""(row, column), by row."""
Weights = Sequence[Sequence[float]]
"""Per row and column, what pairing the two is worth: from 0 (they do not go together) to 1."""

MAX_ASSIGNMENT_CELLS = 300 * 300
"""Entries of a matrix for which the best assignment is computed: one of 300 by 300 takes a moment, one of 1,000 by
1,000 would take 20 seconds, in which an agent that calls a tool too often would stop everything."""


def best_pairs(weights: Weights) -> Pairs:
    """The pairs of greatest total weight in any order; rows and columns that go with nothing stay alone.

    In a matrix of more than `MAX_ASSIGNMENT_CELLS` entries each row takes the best column that is left, in order.
    """
    if not is_exact(weights):
        return _row_by_row(weights)
    return [(row, column) for row, column in best_assignment(weights) if weights[row][column] > 0.0]


def is_exact(weights: Weights) -> bool:
    """Whether `best_pairs` finds the best assignment, because the matrix is small enough."""
    return len(weights) * len(weights[0] if weights else ()) <= MAX_ASSIGNMENT_CELLS


def _row_by_row(weights: Weights) -> Pairs:
    """Each row with the best column that no earlier row has, the first of equals."""
    pairs: Pairs = []
    free = list(range(len(weights[0])))
    for row, worths in enumerate(weights):
        column = max(free, key=worths.__getitem__, default=None)
        if column is not None and worths[column] > 0.0:
            pairs.append((row, column))
            free.remove(column)
    return pairs


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
