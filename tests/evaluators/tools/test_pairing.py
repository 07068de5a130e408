"""Pairing two lists so that the pairs are worth the most on the whole."""

from __future__ import annotations

import itertools
import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.tools import pairing
from proctor.evaluators.tools.pairing import best_assignment, best_pairs, best_pairs_in_order

quarters = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
weight_tables = st.integers(0, 4).flatmap(
    lambda columns: st.lists(st.lists(quarters, min_size=columns, max_size=columns), max_size=4)
)
scores = st.floats(-2, 2) | st.sampled_from([0.0, 0.5, 1.0])
matrices = st.tuples(st.integers(1, 5), st.integers(1, 5)).flatmap(
    lambda shape: st.lists(st.lists(scores, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0])
)


def heaviest_by_trying(weights: list[list[float]]) -> float:
    columns = len(weights[0]) if weights else 0
    best = 0.0
    for size in range(1, min(len(weights), columns) + 1):
        for rows in combinations(range(len(weights)), size):
            for places in combinations(range(columns), size):
                best = max(best, sum(weights[row][place] for row, place in zip(rows, places, strict=True)))
    return best


@given(weight_tables)
def test_no_order_preserving_arrangement_weighs_more(weights: list[list[float]]) -> None:
    pairs = best_pairs_in_order(weights)
    assert sum(weights[row][column] for row, column in pairs) == heaviest_by_trying(weights)
    assert all(weights[row][column] > 0 for row, column in pairs)
    assert all(left[0] < right[0] and left[1] < right[1] for left, right in pairwise(pairs))


@given(weight_tables.filter(lambda weights: weights and weights[0]))
def test_in_any_order_only_pairs_that_go_together_are_made(weights: list[list[float]]) -> None:
    pairs = best_pairs(weights)
    assert all(weights[row][column] > 0 for row, column in pairs)
    assert sum(weights[row][column] for row, column in pairs) == best_total(weights)


def best_total(matrix: list[list[float]]) -> float:
    if len(matrix) > len(matrix[0]):
        matrix = [list(column) for column in zip(*matrix, strict=True)]
    ways = itertools.permutations(range(len(matrix[0])), len(matrix))
    return max(sum(row[column] for row, column in zip(matrix, way, strict=True)) for way in ways)


@given(matrices)
def test_no_other_pairing_has_a_greater_total(matrix: list[list[float]]) -> None:
    pairs = best_assignment(matrix)
    assert len(pairs) == min(len(matrix), len(matrix[0]))
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert pairs == sorted(pairs)
    assert sum(matrix[row][column] for row, column in pairs) == pytest.approx(best_total(matrix), abs=1e-9)


def test_the_best_single_pair_is_given_up_for_a_better_whole() -> None:
    assert best_assignment([[1.0, 0.9], [0.9, 0.0]]) == [(0, 1), (1, 0)]


def test_equal_scores_pair_in_order_every_time() -> None:
    assert best_assignment([[1.0] * 3] * 3) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("matrix", [[], [[]], [[], []]])
def test_nothing_pairs_with_nothing(matrix: list[list[float]]) -> None:
    assert best_assignment(matrix) == []


def test_a_ragged_matrix_is_refused() -> None:
    with pytest.raises(ValueError, match="rectangle"):
        best_assignment([[1.0], [1.0, 2.0]])


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        best_assignment([[score]])


def test_a_few_hundred_items_are_paired_exactly() -> None:
    size = 200
    matrix = [[float((row * 7 + column * 13) % 101) / 101 for column in range(size)] for row in range(size)]
    matrix = [
        [1.0 if column == (row * 3 + 1) % size else 0.9 * s for column, s in enumerate(r)]
        for row, r in enumerate(matrix)
    ]
    assert best_assignment(matrix) == [(row, (row * 3 + 1) % size) for row in range(size)]


zeros_and_ones = st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=5, max_size=5), min_size=1, max_size=7)


@given(zeros_and_ones)
def test_taking_the_first_that_fits_never_makes_more_pairs(weights: list[list[float]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairing, "MAX_ASSIGNMENT_CELLS", 0)
        in_order = best_pairs(weights)
    assert all(weights[row][column] == 1.0 for row, column in in_order)
    assert len({column for _, column in in_order}) == len(in_order)
    assert len(best_pairs(weights)) >= len(in_order)
