from __future__ import annotations

from itertools import combinations, pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.tools.matching import Matching, columns_of, heaviest_in_order, most_pairs, most_pairs_in_order

relations = st.lists(st.integers(0, 31), max_size=5)
quarters = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
weight_tables = st.integers(0, 4).flatmap(
    lambda columns: st.lists(st.lists(quarters, min_size=columns, max_size=columns), max_size=4)
)


def most_by_trying(rows: list[int]) -> int:
    width = max(5, len(rows))
    return max(
        (
            sum(row >> column & 1 for row, column in zip(rows, order, strict=False))
            for order in permutations(range(width))
        ),
        default=0,
    )


def heaviest_by_trying(weights: list[list[float]]) -> float:
    columns = len(weights[0]) if weights else 0
    best = 0.0
    for size in range(1, min(len(weights), columns) + 1):
        for rows in combinations(range(len(weights)), size):
            for places in combinations(range(columns), size):
                best = max(best, sum(weights[row][place] for row, place in zip(rows, places, strict=True)))
    return best


@given(relations)
def test_no_arrangement_has_more_pairs(rows: list[int]) -> None:
    pairs = most_pairs(rows)
    assert len(pairs) == most_by_trying(rows)
    assert all(rows[row] >> column & 1 for row, column in pairs)
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)


@given(relations)
def test_no_order_preserving_arrangement_has_more_pairs(rows: list[int]) -> None:
    pairs = most_pairs_in_order(rows)
    width = max((row.bit_length() for row in rows), default=0)
    weights = [[float(row >> column & 1) for column in range(width)] for row in rows]
    assert len(pairs) == heaviest_by_trying(weights)
    assert all(rows[row] >> column & 1 for row, column in pairs)
    assert all(left[0] < right[0] and left[1] < right[1] for left, right in pairwise(pairs))


@given(weight_tables)
def test_no_order_preserving_arrangement_weighs_more(weights: list[list[float]]) -> None:
    pairs = heaviest_in_order(weights)
    assert sum(weights[row][column] for row, column in pairs) == heaviest_by_trying(weights)
    assert all(weights[row][column] > 0 for row, column in pairs)
    assert all(left[0] < right[0] and left[1] < right[1] for left, right in pairwise(pairs))


@given(st.sets(st.integers(0, 300)))
def test_a_row_lists_its_columns_from_left_to_right(columns: set[int]) -> None:
    assert list(columns_of(sum(1 << column for column in columns))) == sorted(columns)


def test_a_placed_row_moves_but_never_loses_its_place() -> None:
    matching = Matching()
    assert matching.place(0, 0b11)
    assert matching.place(1, 0b01)
    assert matching.pairs() == [(0, 1), (1, 0)]
    assert not matching.place(2, 0b11)
    assert matching.pairs() == [(0, 1), (1, 0)]


def test_a_removed_row_leaves_its_place_to_others() -> None:
    matching = Matching()
    matching.place(0, 0b1)
    matching.remove(0)
    assert matching.place(1, 0b1)
    assert matching.pairs() == [(1, 0)]


def test_a_chain_of_a_thousand_moves_is_no_problem() -> None:
    rows = [0b11 << index for index in range(1000)] + [0b1]
    assert len(most_pairs(rows)) == 1001
