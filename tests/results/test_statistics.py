from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.results.statistics import Estimate, estimate, mean, pass_at_k, pass_hat_k, wilson

SHARES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("passed", "trials", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),
        (3, 3, 0.4385, 1.0),
        (0, 3, 0.0, 0.5615),
        (50, 100, 0.4038, 0.5962),
        (0, 10, 0.0, 0.2775),
        (1, 1, 0.2065, 1.0),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
    ],
)
def test_intervals_are_those_of_the_literature(passed: int, trials: int, low: float, high: float) -> None:
    assert wilson(passed / trials, trials) == pytest.approx((low, high), abs=6e-5)


@given(SHARES, st.integers(1, 10**9))
def test_an_interval_contains_its_mean_and_stays_between_0_and_1(share: float, count: int) -> None:
    low, high = wilson(share, count)

    assert 0.0 <= low <= share <= high <= 1.0


@given(SHARES, SHARES, st.integers(1, 10_000))
def test_a_higher_share_has_a_higher_interval(one: float, other: float, count: int) -> None:
    below, above = sorted((one, other))

    assert wilson(below, count)[0] <= wilson(above, count)[0] + 1e-12
    assert wilson(below, count)[1] <= wilson(above, count)[1] + 1e-12


@given(SHARES, st.integers(1, 10_000))
def test_more_observations_give_a_narrower_interval(share: float, count: int) -> None:
    low, high = wilson(share, count)
    more_low, more_high = wilson(share, count + 1)

    assert more_high - more_low <= high - low + 1e-12


@given(SHARES, st.integers(1, 1000))
def test_failing_is_the_mirror_of_passing(share: float, count: int) -> None:
    low, high = wilson(share, count)

    assert wilson(1 - share, count) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_nothing_observed_says_nothing() -> None:
    assert wilson(0.5, 0) == (0.0, 1.0)
    assert estimate([]) is None
    assert mean([]) is None


def draws(passed: int, trials: int, k: int) -> list[tuple[bool, ...]]:
    made = [True] * passed + [False] * (trials - passed)
    return list(itertools.combinations(made, k))


@pytest.mark.parametrize("trials", range(1, 8))
def test_reliability_is_what_counting_every_draw_gives(trials: int) -> None:
    for passed in range(trials + 1):
        for k in range(1, trials + 1):
            every = draws(passed, trials, k)
            assert pass_hat_k(passed, trials, k) == pytest.approx(sum(map(all, every)) / len(every))
            assert pass_at_k(passed, trials, k) == pytest.approx(sum(map(any, every)) / len(every))


@given(st.lists(SHARES, min_size=1, max_size=50))
def test_an_estimate_is_the_mean_with_an_interval_around_it(values: list[float]) -> None:
    found = estimate(values)

    assert found is not None
    assert found.count == len(values)
    assert found.mean == pytest.approx(math.fsum(values) / len(values))
    assert found.low <= found.mean <= found.high


@given(st.lists(SHARES, min_size=2, max_size=10), st.integers(1, 20))
def test_repeats_of_a_case_make_no_interval_narrower(values: list[float], repeats: int) -> None:
    cases = [f"case-{number}" for number in range(len(values))]
    once = estimate(values, groups=cases)
    often = estimate(values * repeats, groups=cases * repeats)

    assert once is not None
    assert often is not None
    assert often.count == once.count == len(values)
    assert (often.mean, often.low, often.high) == pytest.approx((once.mean, once.low, once.high))


def test_a_case_with_many_repeats_weighs_no_more_than_one_with_few() -> None:
    found = estimate([1.0, 1.0, 1.0, 0.0], groups=["a", "a", "a", "b"])

    assert found is not None
    assert (found.mean, found.count) == (0.5, 2)


def test_repeats_of_the_only_case_count_each() -> None:
    found = estimate([1.0, 0.0, 1.0], groups=["a", "a", "a"])

    assert found is not None
    assert found.count == 3


def test_values_and_groups_that_do_not_match_are_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"zip"):
        estimate([1.0, 0.0], groups=["a", "b", "c"])


def test_an_estimate_can_be_read() -> None:
    assert str(Estimate(0.8, 0.49016, 0.94331, 10)) == "0.800 [0.490, 0.943]"
