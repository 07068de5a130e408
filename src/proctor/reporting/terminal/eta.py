"""How long the rest of a run takes, as a range, from what has finished and from what is running now.

The obvious estimate, the time so far divided by the finished trials, is wrong in two ways. It counts nothing that is in
flight, so a run whose first 64 answers are about to come seems to take forever. And trials that finish first are short
ones, so it says nothing about the slow trials that decide when a run ends.

Instead the rest of the run is played through a number of times. The trials that run now keep their places; as soon as
one ends, a waiting trial takes its place. How long a trial takes is drawn from those that finished lately, in which a
trial that still runs counts as longer than its age (the estimator of Kaplan and Meier), and a trial that has run longer
than any other may take as long again. Each play draws its own sample of the finished trials, so that few data make a
wide range. The range is from the 10th to the 90th percentile of the ends, and goes up to what the pace of the last
answers says, since the provider may have begun to slow the run down. Retries and waiting for a place are part of the
time of a trial.

While the provider is down no trial gets older: `pause` stops the clock. It also stops if nobody says so, but no trial
ends for ten times the mean gap although many run: a client may wait for its provider on its own.
"""

from __future__ import annotations

import heapq
import math
import random
import threading
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate

MIN_FINISHED = 3
"""So many trials must have finished before there is an estimate."""
PLAYS = 16
RECENT = 100
"""The least number of finished trials that are remembered; with many places, twice as many as there are places."""
MAX_PLAYED = 128
"""So many waiting trials are played one by one; of more, the others take their average share of the places."""
STALL_SECONDS = 3.0
STALL_FACTOR = 10.0
STALL_PLACES = 4
"""A run stands still if no trial ended for so long, and for so many times the usual gap, while so many run."""
TAIL_SECONDS = 5.0
"""Trials that have run for less are no tail, however short the others were."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is left of a run: how many trials, and how many seconds they take."""

    left: int
    waiting: int
    """Trials that have not started."""
    slowest: float
    """How many seconds the oldest running trial has run."""
    low: float
    high: float
    is_tail: bool
    """Whether only trials are left that have run longer than nearly all others: nobody can say when they end."""
    still_for: float = 0.0
    """For how many seconds the run has stood still; `low` and `high` count from when it goes on."""


class RestEstimator:
    """Follows a run and forecasts the rest. All methods take the time of any one clock; threads may share it."""

    def __init__(self, planned: int) -> None:
        self.planned = planned
        self._finished = 0
        self._durations: deque[float] = deque(maxlen=4 * RECENT)
        self._ends: deque[float] = deque(maxlen=RECENT // 2)
        self._running: dict[Hashable, deque[float]] = {}
        self._count_running = 0
        self._paused_at: float | None = None
        self._paused_seconds = 0.0
        self._lock = threading.Lock()

    def start(self, trial: Hashable, now: float) -> None:
        """A trial starts; trials that are equal may run at the same time."""
        with self._lock:
            self._running.setdefault(trial, deque()).append(self._active(now))
            self._count_running += 1
            self.planned = max(self.planned, self._finished + self._count_running)  # the gate adds trials as it goes

    def finish(self, trial: Hashable, now: float, seconds: float = 0.0) -> None:
        """A trial ended; `seconds` is how long it took if nobody said when it started."""
        with self._lock:
            self._paused_seconds += self._stall(self._active(now))
            active = self._active(now)
            starts = self._running.get(trial)
            if starts:
                seconds = max(0.0, active - starts.popleft())
                self._count_running -= 1
            if not starts:
                self._running.pop(trial, None)
            self._durations.append(seconds)
            self._ends.append(active)
            self._finished += 1
            self.planned = max(self.planned, self._finished + self._count_running)

    def pause(self, now: float) -> None:
        """The provider is down: no trial gets anywhere until `resume`."""
        with self._lock:
            if self._paused_at is None:
                self._paused_at = now

    def resume(self, now: float) -> None:
        with self._lock:
            if self._paused_at is not None:
                self._paused_seconds += now - self._paused_at
                self._paused_at = None

    def forecast(self, now: float) -> Forecast | None:
        """What is left, or None if too little has finished to say."""
        with self._lock:
            left = self.planned - self._finished
            if not left or self._finished < max(MIN_FINISHED, self._count_running // 4):
                return None
            active = self._active(now)
            stall = self._stall(active)
            still_for = stall if self._paused_at is None else now - self._paused_at
            active -= stall
            ages = sorted(max(0.0, active - start) for starts in self._running.values() for start in starts)
            durations = list(self._durations)[-max(RECENT, 2 * len(ages)) :]
            pace = self._mean_gap()
        waiting = max(0, left - len(ages))
        sources = (random.Random(number) for number in range(PLAYS))  # noqa: S311  the same forecast for the same run
        ends = sorted(_play(ages, durations, waiting, source) for source in sources)
        low, high = ends[PLAYS // 10], ends[-1 - PLAYS // 10]
        if waiting:
            high = max(high, left * pace)
        slowest = ages[-1] if ages else 0.0
        usual = sorted(durations)[int(0.95 * len(durations))]
        is_tail = not waiting and slowest > max(TAIL_SECONDS, usual)
        return Forecast(left, waiting, slowest, low, high, is_tail, still_for)

    def _active(self, now: float) -> float:
        """The time without pauses."""
        return (now if self._paused_at is None else self._paused_at) - self._paused_seconds

    def _mean_gap(self) -> float:
        """The usual time between the ends of two trials, lately."""
        return (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1) if len(self._ends) > 1 else 0.0

    def _stall(self, active: float) -> float:
        """For how long the run has stood still: no trial ended although many run and others wait."""
        if self._count_running < STALL_PLACES or self._finished + self._count_running >= self.planned or not self._ends:
            return 0.0
        gap, usual = active - self._ends[-1], self._mean_gap()
        return gap - usual if gap > max(STALL_SECONDS, STALL_FACTOR * usual) else 0.0


def _play(ages: Sequence[float], durations: Sequence[float], waiting: int, source: random.Random) -> float:
    """When the last trial ends if the rest of the run is played once."""
    values, cumulative = _distribution(source.choices(durations, k=len(durations)), ages)

    def draw(age: float) -> float:
        """How long a trial takes in all that has run for `age`."""
        first = bisect_right(values, age) if age else 0
        if first == len(values):
            return age * (1 + source.random())  # longer than all others: perhaps as long again
        before = cumulative[first - 1] if first else 0.0
        weight = before + source.random() * (cumulative[-1] - before)
        return values[min(bisect_right(cumulative, weight), len(values) - 1)]

    places = [draw(age) - age for age in ages] or [0.0]
    if waiting > MAX_PLAYED:
        # The played trials are the last ones; those before them keep all places busy for the same time.
        mean = sum(value * weight for value, weight in zip(values, _steps(cumulative), strict=True)) / cumulative[-1]
        shift = (waiting - MAX_PLAYED) * mean / len(places)
        places = [place + shift for place in places]
    heapq.heapify(places)
    end = max(places)
    for _ in range(min(waiting, MAX_PLAYED)):
        finish = places[0] + draw(0.0)
        heapq.heapreplace(places, finish)
        end = max(end, finish)
    return end


def _distribution(durations: Sequence[float], ages: Sequence[float]) -> tuple[list[float], list[float]]:
    """Durations with their cumulative probabilities, by Kaplan and Meier: a running trial lasts longer than its age.

    What remains beyond the longest finished trial goes to one and a half times the age of the oldest running one.
    """
    counts = Counter(durations)
    at_risk = len(durations) + len(ages)
    survival, censored = 1.0, 0
    values, weights = [], []
    for value in sorted(counts):
        while censored < len(ages) and ages[censored] < value:
            censored += 1
            at_risk -= 1
        step = survival * counts[value] / at_risk
        survival -= step
        at_risk -= counts[value]
        values.append(value)
        weights.append(step)
    if survival > 1e-9 and ages and ages[-1] >= values[-1]:
        values.append(1.5 * ages[-1])
        weights.append(survival)
    return values, list(accumulate(weights))


def _steps(cumulative: Sequence[float]) -> list[float]:
    return [value - before for value, before in zip(cumulative, [0.0, *cumulative[:-1]], strict=True)]


def rest_text(forecast: Forecast) -> str:
    """`13s left`, `10-25s left`, `up to 3m left`, or who is still running if nobody can say."""
    if forecast.is_tail:
        return f"{forecast.left:,} left, slowest running for {span_text(forecast.slowest)}"
    text = f"{_range_text(forecast.low, forecast.high)} left"
    return f"no answer for {span_text(forecast.still_for)}, then {text}" if forecast.still_for else text


def _range_text(low: float, high: float) -> str:
    """One number if the ends are close, otherwise both, in one unit."""
    if high <= 1.3 * low or high < 2:
        return span_text(max(1.0, (low + high) / 2))
    size, unit = (1, "s") if high < 90 else (60, "m") if high < 5400 else (3600, "h")
    first, last = math.floor(low / size), math.ceil(high / size)
    return f"{first}-{last}{unit}" if first else f"up to {last}{unit}"


def span_text(seconds: float) -> str:
    """`24s`, `3m`, `1h 20m`: as exact as a forecast can be."""
    if seconds < 90:
        return f"{math.ceil(seconds)}s"
    minutes = round(seconds / 60)
    return f"{minutes}m" if minutes < 90 else f"{minutes // 60}h {minutes % 60:02d}m"
