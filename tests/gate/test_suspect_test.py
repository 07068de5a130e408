from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.gate.beliefs import SuitePrior
from proctor.gate.suspect_test import BaselineCaseTest, ScoreTable, critical_score, probability_any_crosses

PASTS = st.integers(0, 12).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


@settings(deadline=None, max_examples=60)
@given(PASTS, st.lists(PASTS, max_size=6), st.floats(-3, 8))
def test_the_chance_to_reach_a_score_agrees_with_trying_every_course(
    past: tuple[int, int], others: list[tuple[int, int]], height: float
) -> None:
    usual = SuitePrior([past, *others]).belief(*past).updated(0, 1)
    test = ScoreTable(usual, 5)
    chances = usual.sequence_probabilities(5)[5]
    total = 0.0
    for course in itertools.product((0, 1), repeat=5):
        if any(test.scores[n][sum(course[:n])] >= height for n in range(1, 6)):
            total += chances[sum(course)]

    assert test.crossing_probability(height) == pytest.approx(total, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(PASTS, st.lists(PASTS, max_size=6))
def test_further_failures_of_a_suspect_speak_louder_and_further_passes_do_not(
    past: tuple[int, int], others: list[tuple[int, int]]
) -> None:
    past = (max(past[0], past[1] - past[0]), past[1])
    test = ScoreTable(SuitePrior([past, *others]).belief(*past).updated(0, 1), 8)

    for n, row in enumerate(test.scores):
        assert row == sorted(row, reverse=True)
        assert test.reachable(n, 0) == pytest.approx(test.scores[8][0])


@settings(deadline=None, max_examples=40)
@given(st.lists(PASTS, min_size=1, max_size=6), st.floats(0.001, 0.2))
def test_the_critical_score_keeps_alpha_over_all_suspects(pasts: list[tuple[int, int]], alpha: float) -> None:
    rates = SuitePrior(pasts)
    tests = Counter(ScoreTable(rates.belief(*past).updated(0, 1), 6) for past in pasts)
    height = critical_score(tests, alpha)

    assert height == math.inf or probability_any_crosses(tests, height) <= alpha


def test_a_suspect_keeps_its_highest_score_and_ends_at_its_limit() -> None:
    table = ScoreTable(SuitePrior([(10, 10)] * 20).belief(10, 10).updated(0, 1), 3)
    test = BaselineCaseTest(table)
    assert test.highest_score is None and test.score == 0.0

    test.record("new", False)
    test.record("new", False)
    highest = test.score
    assert highest > 0 and test.reachable_score > highest
    test.record("new", True)
    test.record("new", False)  # beyond the trials that the probabilities hold for

    assert test.is_exhausted
    assert test.highest_score == highest == table.scores[2][0]
    assert test.score == table.scores[3][1]
    assert test.next_arms() == ("new",)
