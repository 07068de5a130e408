"""Ranking and repeatability of a judge: compared with brute force, and honest where there is nothing to say."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.calibration.statistics import auc, retest

SCORED = st.lists(
    st.tuples(st.floats(-5, 5) | st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), min_size=1, max_size=60
)


@given(SCORED)
def test_auc_is_the_share_of_pairs_in_order(rows: list[tuple[float, bool]]) -> None:
    good = [score for score, label in rows if label]
    bad = [score for score, label in rows if not label]
    found = auc([row[0] for row in rows], [row[1] for row in rows])
    if not good or not bad:
        assert found is None
        return
    pairs = [1.0 if one > other else 0.5 if one == other else 0.0 for one in good for other in bad]
    assert found is not None
    assert found.mean == pytest.approx(sum(pairs) / len(pairs))
    assert 0 <= found.low <= found.mean <= found.high <= 1


@given(SCORED)
def test_auc_of_the_opposite_scores_is_the_rest(rows: list[tuple[float, bool]]) -> None:
    labels = [row[1] for row in rows]
    one, other = auc([row[0] for row in rows], labels), auc([-row[0] for row in rows], labels)
    if one is not None and other is not None:
        assert one.mean == pytest.approx(1 - other.mean)


def test_perfect_order_on_few_rows_is_not_certain() -> None:
    found = auc([0.1, 0.2, 0.8, 0.9], [False, False, True, True])
    assert found is not None
    assert (found.mean, found.high) == (1, 1)
    assert found.low < 0.6


def test_the_interval_of_auc_is_delongs() -> None:
    # Computed by hand from the definition: 3 good, 3 bad, 8 of 9 pairs in order.
    found = auc([0.9, 0.8, 0.4, 0.5, 0.2, 0.1], [True, True, True, False, False, False])
    assert found is not None
    assert found.mean == pytest.approx(8 / 9)
    variance = ((1 / 9) ** 2 * 2 + (2 / 9) ** 2) / 2 / 3 * 2
    half = 1.959963984540054 * math.sqrt(variance) / (8 / 81)
    assert found.low == pytest.approx(1 / (1 + math.exp(-(math.log(8) - half))))


def test_flips_are_counted() -> None:
    found = retest([True, True, False, False], [True, False, False, False])
    assert found.flips.mean == 0.25
    assert found.flips.low < 0.25 < found.flips.high


@pytest.mark.parametrize("measure", [retest, auc])
def test_nothing_and_unequal_lengths_are_refused(measure: object) -> None:
    assert callable(measure)
    with pytest.raises(ValueError, match="no rows"):
        measure([], [])
    with pytest.raises(ValueError, match="cannot be compared"):
        measure([True], [True, False])


def test_a_score_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        auc([math.nan, 1.0], [True, False])
