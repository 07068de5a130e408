"""Pairs two lists under a yes-or-no relation, in any order or in order; exact, and quick enough for thousands of calls.

A relation is one whole number per row: bit `j` says that the row goes with column `j`. `best_assignment` answers the
weighted question; here, where a pair fits or does not, whole rows are worked on at once and nothing is cubic.


Pairs two groups so that the pairs fit best on the whole, which taking the best pair first does not achieve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

Pairs = list[tuple[int, int]]


def columns_of(row: int) -> Iterator[int]:
    """The columns a row goes with, from left to right."""
    while row:
        lowest = row & -row
        yield lowest.bit_length() - 1
        row ^= lowest


class Matching:
    """Grows one row at a time; a row that has a place may move to make room, but never loses it."""

    __slots__ = ("_column_of", "_row_of", "_rows", "_taken")

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._column_of: dict[int, int] = {}
        self._row_of: dict[int, int] = {}
        self._taken = 0

    def place(self, row: int, columns: int) -> bool:
        """Find `row` a column, along a shortest chain of moves; `False` when no arrangement has room for it."""
        self._rows[row] = columns
        reached_from: dict[int, int] = {}
        unseen = -1
        queue = [row]
        for current in queue:
            reachable = self._rows[current] & unseen
            if free := reachable & ~self._taken:
                self._move(current, (free & -free).bit_length() - 1, reached_from)
                return True
            unseen &= ~reachable
            for column in columns_of(reachable):
                reached_from[column] = current
                queue.append(self._row_of[column])
        del self._rows[row]
        return False

    def remove(self, row: int) -> None:
        """Give up the place of `row`."""
        column = self._column_of.pop(row)
        del self._row_of[column], self._rows[row]
        self._taken &= ~(1 << column)

    def pairs(self) -> Pairs:
        return sorted(self._column_of.items())

    def _move(self, row: int, column: int, reached_from: dict[int, int]) -> None:
        self._taken |= 1 << column
        while True:
            left = self._column_of.get(row)
            self._column_of[row], self._row_of[column] = column, row
            if left is None:
                return
            row, column = reached_from[left], left


def most_pairs(rows: Sequence[int]) -> Pairs:
    """As many pairs as any arrangement has, each row and column at most once."""
    matching = Matching()
    for index, row in enumerate(rows):
        matching.place(index, row)
    return matching.pairs()


def most_pairs_in_order(rows: Sequence[int]) -> Pairs:
    """As many pairs as can be had without two of them crossing: the longest common subsequence, bit-parallel."""
    steps: list[int] = []
    flat = -1
    for row in rows:
        both = flat & row
        flat = (flat + both) | (flat & ~row)
        steps.append(flat)
    pairs: Pairs = []
    index, column = len(rows), max((row.bit_length() for row in rows), default=0)
    while index and column:
        if steps[index - 1] >> (column - 1) & 1:
            column -= 1
            continue
        index -= 1
        if not index or steps[index - 1] >> (column - 1) & 1:
            column -= 1
            pairs.append((index, column))
    pairs.reverse()
    return pairs


def heaviest_in_order(weights: Sequence[Sequence[float]]) -> Pairs:
    """The pairs of greatest total weight of which no two cross. Weights are between 0 and 1."""
    columns = len(weights[0]) if weights else 0
    best = [[0.0] * (columns + 1)]
    for row in weights:
        above, here, left = best[-1], [0.0], 0.0
        for column, weight in enumerate(row):
            left = max(left, above[column + 1], above[column] + weight)
            here.append(left)
        best.append(here)
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


def best_assignment(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """The (row, column) pairs of greatest total score; each row and column at most once, as many pairs as fit.

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


def _assign(costs: list[list[float]]) -> list[tuple[int, int]]:
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
