from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.gate.power import PlannedCase, detectable_drop, power, required_effort
from proctor.gate.suite_test import BaselineSuiteTest, CaseCounts


@given(st.floats(0.01, 1), st.integers(1, 5))
def test_more_repeats_more_cases_and_larger_drops_are_seen_more_often(drop: float, repeats: int) -> None:
    cases = [PlannedCase(0.98, 10)] * 15 + [PlannedCase(0.7, 10)] * 5
    seen = power(cases, drop, repeats)

    assert power(cases, drop, repeats + 1) >= seen - 1e-9
    assert power(cases, drop, repeats, copies=2) >= seen - 1e-9
    assert power(cases, min(1.0, drop * 1.5), repeats) >= seen - 1e-9


def test_the_smallest_drop_is_seen_with_the_asked_chance() -> None:
    cases = [PlannedCase(0.98, 10)] * 35 + [PlannedCase(0.7, 10)] * 15
    drop = detectable_drop(cases, 1)

    assert drop is not None and 0.03 < drop < 0.15
    assert power(cases, drop, 1) == pytest.approx(0.8, abs=0.001)
    assert detectable_drop([PlannedCase(0.3, 1)], 1) is None
    assert detectable_drop([], 1) is None


def test_what_has_to_be_added_is_enough_and_one_less_is_not() -> None:
    cases = [PlannedCase(0.95, 20)] * 20
    added = required_effort(cases, 0.05, 1)

    assert added.repeats and added.cases
    assert power(cases, 0.05, added.repeats) >= 0.8 > power(cases, 0.05, added.repeats - 1)
    copies = 1 + added.cases // 20
    assert power(cases, 0.05, 1, copies=copies) >= 0.8 > power(cases, 0.05, 1, copies=copies - 1)


def test_repeats_alone_cannot_make_up_for_a_short_past() -> None:
    added = required_effort([PlannedCase(0.7, 2)] * 5, 0.05, 1)

    assert added.repeats is None
    assert added.cases


def test_the_planned_chance_is_about_what_the_suite_level_test_reaches() -> None:
    rng = random.Random(8)
    rates = [0.97] * 35 + [0.7] * 15
    seen = 0
    for _ in range(300):
        cases = []
        for rate in rates:
            past = sum(rng.random() < rate for _ in range(20))
            cases.append(CaseCounts(past, 20, int(rng.random() < rate - 0.1), 1))
        seen += BaselineSuiteTest(cases).p_worse <= 0.05

    planned = power([PlannedCase(rate, 20) for rate in rates], 0.1, 1)
    assert seen / 300 == pytest.approx(planned, abs=0.12)
