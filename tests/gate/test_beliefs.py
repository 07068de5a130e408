from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.gate.beliefs import ANY_RATE, BaselineRecord, SuitePrior

PASTS = st.integers(0, 12).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


@settings(deadline=None)
@given(st.lists(PASTS, max_size=8), PASTS)
def test_beliefs_are_chances_and_a_better_past_promises_more(
    pasts: list[tuple[int, int]], past: tuple[int, int]
) -> None:
    rates = SuitePrior(pasts)
    passes, trials = past
    belief = rates.belief(passes, trials)

    assert math.fsum(weight for weight, _, _ in belief.parts) == pytest.approx(1)
    assert 0 < belief.mean < 1
    for row, n in zip(belief.sequence_probabilities(4), range(5), strict=True):
        assert math.fsum(math.comb(n, count) * chance for count, chance in enumerate(row)) == pytest.approx(1)
    if passes < trials:
        assert rates.belief(passes + 1, trials).mean >= belief.mean - 1e-9


def test_a_long_past_is_believed_and_a_short_one_is_drawn_to_the_suite() -> None:
    rates = SuitePrior([(10, 10)] * 30 + [(7, 10)] * 10 + [(600, 1000), (1, 2)])

    assert rates.belief(600, 1000).mean == pytest.approx(0.6, abs=0.01)
    assert rates.belief(1, 2).mean > 0.6
    assert ANY_RATE.updated(1, 1).mean == pytest.approx(0.5)


def test_more_passes_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="11 passes of 10 trials"):
        BaselineRecord(10, 11)
