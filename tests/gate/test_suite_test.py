from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.gate import suite_test
from proctor.gate.suite_test import BaselineSuiteTest, CaseCounts

PASTS = st.integers(0, 12).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


CASES = st.tuples(PASTS, st.integers(1, 2), st.integers(0, 2)).map(
    lambda drawn: CaseCounts(drawn[0][0], drawn[0][1], min(drawn[1], drawn[2]), drawn[1])
)


def share_by_shuffling(cases: list[CaseCounts]) -> float:
    """Every way the failures of each case can fall on its recorded and its new trials, tried one by one."""
    ways = []
    observed = 0
    for case in cases:
        trials = case.trials + case.now_trials
        failures = trials - case.passes - case.now_passes
        weight = suite_test.failure_weight(failures, trials)
        observed += weight * (case.now_trials - case.now_passes)
        ways.append(
            [
                weight * sum(at < failures for at in now)
                for now in itertools.combinations(range(trials), case.now_trials)
            ]
        )
    sums = [sum(way) for way in itertools.product(*ways)]
    return sum(total >= observed for total in sums) / len(sums)


@settings(deadline=None, max_examples=50)
@given(st.lists(CASES.filter(lambda case: case.trials <= 5), min_size=1, max_size=3))
def test_the_suite_level_chance_agrees_with_trying_every_shuffle(cases: list[CaseCounts]) -> None:
    assert BaselineSuiteTest(cases).p_worse == pytest.approx(share_by_shuffling(cases))


@given(st.lists(CASES, min_size=1, max_size=30), st.integers(0, 29))
def test_one_more_failure_never_makes_a_suite_look_better(cases: list[CaseCounts], at: int) -> None:
    at %= len(cases)
    case = cases[at]
    if case.now_passes and case.now_trials == 1 and case.passes == case.trials:
        worse = CaseCounts(case.passes, case.trials, 0, 1)
        assert (
            BaselineSuiteTest([*cases[:at], worse, *cases[at + 1 :]]).p_worse <= BaselineSuiteTest(cases).p_worse + 1e-9
        )


@pytest.mark.parametrize("failing", [0.08, 0.12, 0.2])
def test_the_approximation_for_large_suites_agrees_with_counting(
    failing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(7)
    cases = []
    for _ in range(200):
        rate = rng.betavariate(8, 1)
        cases.append(CaseCounts(sum(rng.random() < rate for _ in range(10)), 10, int(rng.random() > failing), 1))
    approximate = BaselineSuiteTest(cases)
    worse, better = approximate.p_worse, approximate.p_better
    monkeypatch.setattr(suite_test, "EXACT_UP_TO", 1000)
    exact = BaselineSuiteTest(cases)

    assert worse == pytest.approx(exact.p_worse, rel=0.08)
    assert better == pytest.approx(exact.p_better, rel=0.08)
