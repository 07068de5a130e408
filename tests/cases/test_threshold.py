"""Which threshold holds, and when a score passes."""

from __future__ import annotations

import itertools

import pytest

from proctor.cases.threshold import passes, threshold_in_force

PLACES = {"caller": 0.1, "suite": 0.2, "entry": 0.3}


@pytest.mark.parametrize(
    "places", [chosen for count in range(4) for chosen in itertools.combinations(PLACES, count)], ids="+".join
)
def test_the_first_place_that_sets_a_threshold_wins(places: tuple[str, ...]) -> None:
    given = {place: PLACES[place] for place in places}
    assert threshold_in_force(0.9, **given) == (next(iter(given.values())) if given else 0.9)


def test_a_threshold_of_zero_is_a_threshold() -> None:
    assert threshold_in_force(0.9, entry=0) == 0.0


@pytest.mark.parametrize(("score", "verdict", "passed"), [(0.4, None, False), (0.4, True, True), (0.9, False, False)])
def test_an_evaluators_own_verdict_decides_whatever_the_score(score: float, verdict: bool | None, passed: bool) -> None:
    assert passes(score, 0.5, verdict) is passed
