"""The test for a suite-wide regression: does the whole suite fail more often, even if no single case can be proven?

Comparing the overall pass rate with that of the baseline would be wrong: cases have different rates and different
numbers of recorded trials, and a binomial test of the total ignores both. Instead, if nothing changed, the failures of
a case fall on its recorded and its new trials like a random shuffle. That is true for any rate, so nothing is assumed
about the rates. The number of failures among the new trials, over all cases, is compared with all ways to shuffle
within cases. A failure of a case that rarely fails is stronger evidence, so failures are weighted; the weight comes
from all trials of a case, recorded and new, and is the same for every shuffle. With few cases the probability is
computed exactly, with many it is approximated (`_saddlepoint_tail`).

`SuiteTest` is all that the decision needs to know of such a test.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

WEIGHTED_DROP = 0.1
"""The drop in pass rates for which the weights of failures are best."""

EXACT_UP_TO = 60
"""Up to this many cases with failures, the probability is exact; with more it is approximated."""


class SuiteTest(Protocol):
    """One look at the suite as a whole."""

    @property
    def failing(self) -> int:
        """How many cases failed in this run."""

    @property
    def p_worse(self) -> float:
        """The probability of failing at least as much as observed if nothing changed."""

    @property
    def p_better(self) -> float:
        """The probability of failing at most as much as observed if nothing changed."""


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """The outcomes of one case: those in its baseline, and the first ones of this run."""

    passes: int
    trials: int
    now_passes: int
    now_trials: int


class BaselineSuiteTest:
    """Compares the new trials of a suite with its baseline: a `SuiteTest` that runs the new version only."""

    def __init__(self, cases: Iterable[CaseCounts], *, weighted: bool = True) -> None:
        """If not `weighted`, all failures count the same: then the test is about their number."""
        kinds: Counter[tuple[int, int, int, int]] = Counter()
        self.observed = 0
        self.failing = 0
        for case in cases:
            self.failing += case.now_passes < case.now_trials
            trials = case.trials + case.now_trials
            failures = trials - case.passes - case.now_passes
            weight = failure_weight(failures, trials) if weighted else 1
            self.observed += weight * (case.now_trials - case.now_passes)
            if failures:
                kinds[trials, failures, case.now_trials, weight] += 1
        self._terms = [(count, _failure_distribution(*kind)) for kind, count in kinds.items()]

    @cached_property
    def p_worse(self) -> float:
        return self._at_least(self.observed, 1)

    @cached_property
    def p_better(self) -> float:
        return self._at_least(-self.observed, -1)

    def _at_least(self, observed: int, sign: int) -> float:
        terms = [(count, [(sign * weighted, chance) for weighted, chance in chances]) for count, chances in self._terms]
        if sum(count for count, _ in terms) <= EXACT_UP_TO:
            return _exact_tail(terms, observed)
        return _saddlepoint_tail(terms, observed - 0.5)


Terms = list[tuple[int, list[tuple[int, float]]]]
"""The number of similar cases, and for each of them the possible weighted failures with their probabilities."""


def failure_weight(failures: int, trials: int) -> int:
    """The weight of a failure: the log odds ratio between the rate and one lower by `WEIGHTED_DROP`, in quarters."""
    rate = 1 - (failures + 0.2) / (trials + 0.4)
    lower = max(rate - WEIGHTED_DROP, 0.02)
    return max(1, round(4 * math.log((1 - lower) / (1 - rate) * rate / lower)))


def _failure_distribution(trials: int, failures: int, now: int, weight: int) -> list[tuple[int, float]]:
    """The weighted failures that a shuffle can put among the new trials, with their probabilities."""
    ways = math.comb(trials, now)
    return [
        (weight * count, math.comb(failures, count) * math.comb(trials - failures, now - count) / ways)
        for count in range(max(0, now + failures - trials), min(now, failures) + 1)
    ]


def _exact_tail(terms: Terms, observed: float) -> float:
    sums = {0: 1.0}
    for count, outcomes in terms:
        for _ in range(count):
            shifted: dict[int, float] = {}
            for total, chance in sums.items():
                for weighted, share in outcomes:
                    shifted[total + weighted] = shifted.get(total + weighted, 0.0) + chance * share
            sums = shifted
    return min(1.0, math.fsum(chance for total, chance in sums.items() if total >= observed))


def _saddlepoint_tail(terms: Terms, observed: float) -> float:
    """Lugannani and Rice's formula; with this many cases its relative error is a few percent."""
    _, mean, variance = _cumulants(terms, 0.0)
    if variance <= 0:
        return 1.0
    point = _saddle(terms, observed, (observed - mean) / variance)
    value, _, curvature = _cumulants(terms, point)
    signed = math.copysign(math.sqrt(max(0.0, 2 * (point * observed - value))), point)
    scaled = point * math.sqrt(curvature)
    if abs(signed) < 1e-3 or abs(scaled) < 1e-3:  # the formula divides by zero at the mean
        return _normal_tail((observed - mean) / math.sqrt(variance))
    return min(1.0, max(0.0, _normal_tail(signed) + _density(signed) * (1 / scaled - 1 / signed)))


def _saddle(terms: Terms, observed: float, guess: float) -> float:
    """The point where the tilted mean equals the observed value: Newton's method inside a bracket."""
    low, high = -10.0, 10.0
    point = max(low, min(high, guess))
    for _ in range(60):
        _, slope, curvature = _cumulants(terms, point)
        gap = slope - observed
        if abs(gap) < 1e-7 * (1 + abs(observed)):
            break
        low, high = (low, point) if gap > 0 else (point, high)
        step = point - gap / curvature if curvature > 0 else low
        point = step if low < step < high else (low + high) / 2
    return point


def _cumulants(terms: Terms, point: float) -> tuple[float, float, float]:
    """The cumulant generating function of the weighted failures, with its first two derivatives."""
    value = slope = curvature = 0.0
    for count, outcomes in terms:
        shift = max(point * weighted for weighted, _ in outcomes)
        total = first = second = 0.0
        for weighted, chance in outcomes:
            tilted = chance * math.exp(point * weighted - shift)
            total += tilted
            first += tilted * weighted
            second += tilted * weighted * weighted
        center = first / total
        value += count * (shift + math.log(total))
        slope += count * center
        curvature += count * (second / total - center * center)
    return value, slope, curvature


def _normal_tail(value: float) -> float:
    return 0.5 * math.erfc(value / math.sqrt(2))


def _density(value: float) -> float:
    return math.exp(-value * value / 2) / math.sqrt(2 * math.pi)
