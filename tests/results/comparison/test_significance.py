from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean, median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.results.comparison import significance
from proctor.results.comparison.significance import (
    Effect,
    Pair,
    Ratio,
    agreeing_interval,
    compare_pairs,
    holm,
    mcnemar,
    mean_difference,
    permutation_test,
    ratio_of_means,
    ratio_of_medians,
    student_quantile,
)

OUTCOMES = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=3)
SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.4, 1.0]), min_size=1, max_size=3)


def mid_p_by_counting(broken: int, fixed: int) -> float:
    """Every way the changed cases can break or be fixed, counted one by one."""
    ways = [sum(way) for way in itertools.product((0, 1), repeat=broken + fixed)]
    fewer = min(broken, fixed)
    below = sum(count < fewer for count in ways) / len(ways)
    equal = sum(count == fewer for count in ways) / len(ways)
    return min(1.0, 2 * (below + equal / 2))


def share_by_shuffling_in_all_ways(pairs: list[tuple[list[float], list[float]]]) -> float:
    """Every assignment of trials to runs, within each case, tried one by one."""
    differences = []
    for a, b in pairs:
        values = [*a, *b]
        ways = []
        for chosen in itertools.combinations(range(len(values)), len(b)):
            second = [values[at] for at in chosen]
            first = [value for at, value in enumerate(values) if at not in chosen]
            ways.append(sum(second) / len(second) - sum(first) / len(first))
        differences.append(ways)
    observed = abs(sum(sum(b) / len(b) - sum(a) / len(a) for a, b in pairs))
    sums = [abs(sum(way)) for way in itertools.product(*differences)]
    return sum(total >= observed - 1e-9 for total in sums) / len(sums)


@given(st.integers(0, 6), st.integers(0, 6))
def test_mcnemar_agrees_with_counting_every_outcome(broken: int, fixed: int) -> None:
    assert mcnemar(broken, fixed) == pytest.approx(mid_p_by_counting(broken, fixed))


def test_mcnemar_gives_the_values_of_the_literature() -> None:
    assert mcnemar(1, 7) == pytest.approx(0.0391, abs=5e-5)  # Fagerland, Lydersen and Laake 2013, airway data
    assert mcnemar(0, 5) == pytest.approx(1 / 32)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_has_no_favourite_and_more_changes_one_way_are_stronger(broken: int, fixed: int) -> None:
    assert mcnemar(broken, fixed) == mcnemar(fixed, broken)
    assert mcnemar(max(broken, fixed) + 1, min(broken, fixed)) <= mcnemar(broken, fixed) + 1e-12


def test_mcnemar_stands_ten_thousands_of_changes() -> None:
    assert mcnemar(10_000, 10_000) == 1.0
    assert 0.0 < mcnemar(10_300, 10_000) < 0.05
    assert mcnemar(20_000, 10_000) < 1e-100


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(OUTCOMES, OUTCOMES), min_size=1, max_size=3))
def test_permutations_of_outcomes_agree_with_trying_every_one(pairs: list[tuple[list[float], list[float]]]) -> None:
    result = permutation_test(pairs)

    assert result.exact
    assert result.p_value == pytest.approx(share_by_shuffling_in_all_ways(pairs))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=3))
def test_permutations_of_scores_agree_with_trying_every_one(pairs: list[tuple[list[float], list[float]]]) -> None:
    assert permutation_test(pairs).p_value == pytest.approx(share_by_shuffling_in_all_ways(pairs))


def test_drawn_permutations_agree_with_counted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    pairs = [
        ([rng.choice([0.0, 1.0]) for _ in range(3)], [float(rng.random() < 0.75) for _ in range(3)]) for _ in range(30)
    ]
    exact = permutation_test(pairs)
    monkeypatch.setattr(significance, "MAX_EXACT_ADDITIONS", 0)
    drawn = permutation_test(pairs)

    assert exact.exact and not drawn.exact
    assert drawn.p_value == pytest.approx(exact.p_value, abs=4 * math.sqrt(exact.p_value / 1000))
    assert drawn == permutation_test(pairs)


def test_scores_of_many_repeats_are_drawn_and_a_clear_difference_is_found() -> None:
    rng = random.Random(2)
    pairs = [([rng.gauss(0.7, 0.1) for _ in range(12)], [rng.gauss(0.5, 0.1) for _ in range(12)]) for _ in range(3)]
    result = permutation_test(pairs, draws=999)

    assert not result.exact
    assert result.p_value == pytest.approx(1 / 1000)


def test_two_runs_that_agree_do_not_differ() -> None:
    assert permutation_test([([1.0, 0.0], [0.0, 1.0])] * 4).p_value == 1.0
    assert compare_pairs([([1.0], [1.0])] * 4).p_value == 1.0  # type: ignore[union-attr]
    assert compare_pairs([([], [1.0])]) is None


def test_the_test_fits_the_data() -> None:
    assert compare_pairs([([1.0], [0.0])] * 6).method == "mcnemar mid-p"  # type: ignore[union-attr]
    assert compare_pairs([([1.0], [0.5])] * 6).method == "permutation within cases"  # type: ignore[union-attr]
    assert compare_pairs([([1.0, 1.0], [0.0])] * 6).method == "permutation within cases"  # type: ignore[union-attr]


@pytest.mark.parametrize("repeats", [1, 3])
def test_two_runs_of_one_agent_are_seldom_told_apart(repeats: int) -> None:
    rng = random.Random(repeats)
    told = 0
    for _ in range(400):
        rates = [rng.betavariate(60, 1) if rng.random() < 0.7 else rng.betavariate(5, 2) for _ in range(30)]
        runs = [[[float(rng.random() < rate) for _ in range(repeats)] for rate in rates] for _ in range(2)]
        told += compare_pairs(list(zip(*runs, strict=True))).p_value <= 0.05  # type: ignore[union-attr]

    assert told / 400 <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 400)


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=6))
def test_holm_keeps_the_order_and_never_makes_a_p_value_smaller(p_values: dict[str, float]) -> None:
    adjusted = holm(p_values)

    assert list(adjusted) == list(p_values)
    for one, other in itertools.product(p_values, repeat=2):
        assert p_values[one] <= adjusted[one] <= 1.0
        if p_values[one] < p_values[other]:
            assert adjusted[one] <= adjusted[other]


def test_holm_gives_the_textbook_values() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})


@pytest.mark.parametrize(
    ("freedom", "value"),
    [(1, 12.706), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (10, 2.2281), (30, 2.0423), (1000, 1.9623)],
)
def test_student_quantiles_are_those_of_the_table(freedom: int, value: float) -> None:
    assert student_quantile(0.95, freedom) == pytest.approx(value, abs=6e-4)


def test_an_interval_of_a_mean_difference_holds_the_truth_as_often_as_it_says() -> None:
    rng = random.Random(3)
    held = 0
    for _ in range(500):
        pairs = [([rng.uniform(0.4, 1.0)], [rng.uniform(0.3, 0.9)]) for _ in range(12)]
        found = mean_difference(pairs)
        assert found
        held += found.low <= -0.1 <= found.high

    assert 0.92 <= held / 500 <= 0.98


def test_cases_that_all_agree_still_leave_doubt() -> None:
    few, many = mean_difference([([1.0], [1.0])] * 3), mean_difference([([1.0], [1.0])] * 300)

    assert few and many
    assert few.low < many.low < 0 < many.high < few.high


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=8))
def test_a_mean_difference_lies_in_its_interval_and_changes_its_sign_with_the_order(
    pairs: list[tuple[list[float], list[float]]],
) -> None:
    found, turned = mean_difference(pairs), mean_difference([(b, a) for a, b in pairs])

    assert found and turned
    assert -1 <= found.low <= found.value + 1e-9 and found.value - 1e-9 <= found.high <= 1
    assert turned.value == pytest.approx(-found.value, abs=1e-9)
    assert turned.low == pytest.approx(-found.high, abs=1e-9)


RESOURCES: list[Pair] = [([100.0], [210.0]), ([10.0, 30.0], [38.0]), ([5.0], [10.0]), ([0.0], [7.0]), ([], [7.0])]


@pytest.mark.parametrize(("quotient", "center"), [(ratio_of_means, fmean), (ratio_of_medians, median)])
def test_a_ratio_is_the_quotient_of_the_numbers_that_are_printed(
    quotient: Callable[[Sequence[Pair]], Ratio | None], center: Callable[[Sequence[float]], float]
) -> None:
    found = quotient(RESOURCES)

    assert found and found.effect.count == 4
    assert found.before == pytest.approx(center([100.0, 20.0, 5.0, 0.0]))
    assert found.after == pytest.approx(center([210.0, 38.0, 10.0, 7.0]))
    assert found.effect.value == pytest.approx(found.after / found.before)
    assert found.effect.low < found.effect.value < found.effect.high
    assert quotient([([0.0], [1.0])]) is None
    one, gone = quotient([([1.0], [2.0])]), quotient([([3.0], [0.0]), ([3.0], [0.0])])
    assert one and one.effect.high == math.inf
    assert gone and gone.effect.value == 0.0


def test_one_slow_answer_does_not_make_an_agent_slower() -> None:
    pairs = [([100.0 + n], [100.0 + n]) for n in range(20)]
    pairs[7] = ([107.0], [60_000.0])

    found = ratio_of_medians(pairs)

    assert found and found.effect.value == pytest.approx(1.0, rel=0.01)
    assert found.effect.low <= 1 <= found.effect.high


@pytest.mark.parametrize("quotient", [ratio_of_means, ratio_of_medians])
def test_an_interval_of_a_ratio_holds_the_truth_about_as_often_as_it_says(
    quotient: Callable[[Sequence[Pair]], Ratio | None],
) -> None:
    source, hits = random.Random(3), 0
    for _ in range(100):
        pairs = [([size := source.lognormvariate(5, 1)], [2 * size * source.lognormvariate(0, 0.3)]) for _ in range(30)]
        found = quotient(pairs)
        assert found
        # The mean of the factor is a little above 2: exp(0.3 ** 2 / 2) = 1.046.
        truth = 2 * 1.046 if quotient is ratio_of_means else 2
        hits += found.effect.low <= truth <= found.effect.high
    assert hits >= 85


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.floats(0, 1))
def test_an_interval_holds_zero_exactly_if_the_test_does_not_rule_it_out(ends: list[float], p_value: float) -> None:
    low, value, high = sorted(ends)
    found = agreeing_interval(Effect(value, low, high, 5), p_value, 0.04)

    assert found.low <= found.value <= found.high
    if p_value > 0.04:
        assert found.low <= 0 <= found.high
    elif found.value:
        assert not found.low <= 0 <= found.high


def test_one_case_has_no_interval_to_speak_of() -> None:
    found = mean_difference([([0.0], [0.957])])
    assert found
    assert (found.low, found.high) == (-1.0, 1.0)
