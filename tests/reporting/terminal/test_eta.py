"""What the progress bar says about the time that is left, replayed on recorded runs against a slow provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.reporting.terminal.eta import Forecast, RestEstimator, rest_text

SCHEDULES: dict[str, list[tuple[float, float]]] = json.loads(
    Path(__file__).with_name("recorded_schedules.json").read_text(encoding="utf-8")
)
"""When the 400 trials of a run started and ended, in each setting of `benchmarks/provider.py`."""


def replay(schedule: list[tuple[float, float]]) -> Iterator[tuple[float, int, float, Forecast | None]]:
    """The time, the finished trials, the seconds that were left and the forecast, at 60 times of a recorded run."""
    end = max(stop for _, stop in schedule)
    events = sorted(
        [(start, "start", number) for number, (start, _) in enumerate(schedule)]
        + [(stop, "finish", number) for number, (_, stop) in enumerate(schedule)]
    )
    estimator, place, finished = RestEstimator(len(schedule)), 0, 0
    for step in range(60):
        now = end * step / 60
        while place < len(events) and events[place][0] <= now:
            time, what, number = events[place]
            getattr(estimator, what)(number, time)
            finished += what == "finish"
            place += 1
        yield now, finished, end - now, estimator.forecast(now)


@pytest.mark.parametrize("setting", SCHEDULES)
def test_after_a_tenth_of_the_work_it_never_announces_more_than_three_times_the_true_rest(setting: str) -> None:
    schedule = SCHEDULES[setting]
    for now, finished, rest, forecast in replay(schedule):
        if forecast is not None and not forecast.is_tail and finished >= len(schedule) / 10:
            # Below two seconds the bar says little more than "soon".
            assert forecast.high <= 3 * rest + 2, f"{now:.1f} s: {rest_text(forecast)}, but {rest:.1f} s were left"


@pytest.mark.parametrize("setting", ["generous", "rate", "concurrency"])
def test_the_true_rest_is_nearly_always_within_the_range(setting: str) -> None:
    shown = [
        (rest, forecast)
        for _, _, rest, forecast in replay(SCHEDULES[setting])
        if forecast is not None and not forecast.is_tail
    ]
    hits = [forecast.low * 0.8 - 1 <= rest <= forecast.high * 1.2 + 1 for rest, forecast in shown]
    assert sum(hits) >= 0.8 * len(hits)


def test_slow_trials_at_the_end_are_named_instead_of_a_guess() -> None:
    texts = [rest_text(forecast) for *_, forecast in replay(SCHEDULES["tail"]) if forecast and forecast.is_tail]
    assert texts
    assert all(re.fullmatch(r"\d+ left, slowest running for \d+s", text) for text in texts)


def test_nothing_is_announced_before_there_is_data() -> None:
    estimator = RestEstimator(400)
    for number in range(64):
        estimator.start(number, 0.0)
    assert estimator.forecast(1.0) is None
    for number in range(3):
        estimator.finish(number, 1.0)
    assert estimator.forecast(1.0) is None, "61 others run, and nobody knows how long"


def test_work_in_flight_counts() -> None:
    """Of 40 equal trials on 20 places, the second half runs: a second is left, not the three of the pace so far."""
    estimator = RestEstimator(40)
    for number in range(20):
        estimator.start(number, 0.0)
    for number in range(20):
        estimator.finish(number, 2.0)
        estimator.start(20 + number, 2.0)
    forecast = estimator.forecast(3.0)
    assert forecast is not None
    assert forecast.waiting == 0
    assert (forecast.low, forecast.high) == pytest.approx((1.0, 1.0))
    assert rest_text(forecast) == "1s left"


def test_few_data_make_a_range_and_many_equal_ones_a_number() -> None:
    def text(durations: list[float]) -> str:
        estimator, now = RestEstimator(len(durations) + 20), 0.0
        for number, seconds in enumerate(durations):
            estimator.start(number, now)
            now += seconds
            estimator.finish(number, now)
        forecast = estimator.forecast(now)
        assert forecast is not None
        return rest_text(forecast)

    assert text([2.0] * 50) == "40s left"
    assert re.fullmatch(r"\d+-\d+s left", text([0.5, 1.0, 2.0]))
    assert re.fullmatch(r"up to \d+m left", text([0.5, 1.0, 6.0]))


def test_time_during_which_the_provider_is_down_makes_no_trial_look_slow() -> None:
    def left(pause: float) -> Forecast | None:
        estimator = RestEstimator(100)
        for number in range(10):
            estimator.start(number, 0.0)
        for number in range(10):
            estimator.finish(number, 1.0)
            estimator.start(10 + number, 1.0)
        estimator.pause(1.5)
        estimator.resume(1.5 + pause)
        for number in range(10, 20):
            estimator.finish(number, 2.0 + pause)
        return estimator.forecast(2.0 + pause)

    assert left(0.0) is not None
    assert left(0.0) == left(60.0)


def test_a_run_that_stands_still_says_so_although_nobody_reported_an_outage() -> None:
    estimator = RestEstimator(400)
    for number in range(8):
        estimator.start(number, 0.0)
    for number in range(100):
        estimator.finish(number, 1.0 + number / 10)
        estimator.start(number + 8, 1.0 + number / 10)
    before, during = estimator.forecast(11.0), estimator.forecast(41.0)
    assert before is not None
    assert during is not None
    assert not before.still_for
    assert during.still_for == pytest.approx(30, abs=1)
    assert during.high == pytest.approx(before.high, rel=0.2)
    assert rest_text(during).startswith("no answer for 30s, then ")


def test_trials_that_the_gate_adds_and_equal_trials_that_run_together_are_counted() -> None:
    estimator = RestEstimator(3)
    for _ in range(3):
        estimator.start("same", 0.0)
    for time in (1.0, 2.0, 3.0):
        estimator.finish("same", time)
    assert estimator.forecast(3.0) is None, "nothing is left"
    estimator.start("again", 3.0)
    forecast = estimator.forecast(3.0)
    assert forecast is not None
    assert forecast.left == 1


@given(
    durations=st.lists(st.floats(0, 1e5), min_size=3, max_size=30),
    ages=st.lists(st.floats(0, 1e5), max_size=12),
    waiting=st.integers(0, 5000),
)
def test_a_forecast_is_an_ordered_range_whatever_ran(durations: list[float], ages: list[float], waiting: int) -> None:
    estimator, now = RestEstimator(len(durations) + len(ages) + waiting), 2e5
    for number, seconds in enumerate(durations):
        estimator.start(number, now - seconds)
        estimator.finish(number, now)
    for number, seconds in enumerate(ages):
        estimator.start(("running", number), now - seconds)
    forecast = estimator.forecast(now)
    if forecast is not None:
        assert 0 <= forecast.low <= forecast.high
        assert forecast.left == len(ages) + waiting
        assert rest_text(forecast)
