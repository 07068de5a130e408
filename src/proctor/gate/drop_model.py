"""How believable it is that all pass rates of a suite dropped. It leads the search for such a drop and proves nothing.

Running the whole suite on both versions again and again would find every drop, at many trials per case. So after each
round the gate asks: how much better does "every rate is lower by ten points" explain the outcomes so far than "nothing
changed"? If these odds are low, it stops. A wrong answer here costs trials or power, but never a false alarm, since the
verdict comes from `pair_evidence`.

The rates of the cases are not known. They come from a grid of fifteen rates; how large the share of each of them is in
this suite is fitted to the outcomes (expectation maximisation, a few steps from the usual shares). With a baseline,
today's level may differ from that of the recorded days: the odds are averaged over shifts of the log odds of all rates,
the same for both versions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

RATES = (0.02, 0.08, 0.2, 0.35, 0.5, 0.6, 0.7, 0.78, 0.85, 0.9, 0.94, 0.965, 0.982, 0.993, 0.998)
USUAL_SHARES = (0.02, 0.02, 0.03, 0.04, 0.05, 0.05, 0.06, 0.06, 0.07, 0.08, 0.10, 0.12, 0.12, 0.10, 0.08)
LOG_PASS = tuple(math.log(rate) for rate in RATES)
LOG_FAIL = tuple(math.log1p(-rate) for rate in RATES)

DAYS = (-2.0, -1.2, -0.5, 0.0, 0.5, 1.2, 2.0)
_DENSITIES = tuple(
    math.exp(-(day**2) / 2) * width for day, width in zip(DAYS, (0.75, 0.75, 0.6, 0.5, 0.6, 0.75, 0.75), strict=True)
)
DAY_WEIGHTS = tuple(density / math.fsum(_DENSITIES) for density in _DENSITIES)
"""Shifts of today's log odds, in standard deviations of a day, with the weight of each."""

FIT_STEPS, FIT_WEIGHT = 8, 3.0
"""Steps of the fit, and how many cases the usual shares count as."""


class VersionCounts(NamedTuple):
    """The outcomes of a case: of the new version, of the old version, and in the baseline."""

    new_passes: int = 0
    new_failures: int = 0
    old_passes: int = 0
    old_failures: int = 0
    baseline_passes: int = 0
    baseline_failures: int = 0

    @property
    def passes(self) -> int:
        return self.new_passes + self.old_passes + self.baseline_passes

    @property
    def failures(self) -> int:
        return self.new_failures + self.old_failures + self.baseline_failures


def drop_odds(cases: Iterable[VersionCounts], drop: float, day_deviation: float) -> float:
    """The odds of "every rate is lower by `drop`" against "nothing changed".

    `day_deviation` is how far today's level may lie from that of the baseline, as a standard deviation of the log odds.
    """
    kinds = Counter(cases)
    has_baseline = any(kind.baseline_passes or kind.baseline_failures for kind in kinds)
    shifts = [day_deviation * day for day in DAYS] if has_baseline else [0.0]
    weights = DAY_WEIGHTS if has_baseline else (1.0,)
    same, dropped = [], []
    for shift in shifts:
        usual = [_shifted(rate, -shift) for rate in RATES]
        lower = [min(max(_shifted(max(rate - drop, 0.004), shift), 0.002), 0.9985) for rate in usual]
        same.append(_explained(kinds, RATES, usual))
        dropped.append(_explained(kinds, lower, usual))
    best = max(*same, *dropped)
    chance_same = math.fsum(weight * math.exp(log - best) for weight, log in zip(weights, same, strict=True))
    chance_dropped = math.fsum(weight * math.exp(log - best) for weight, log in zip(weights, dropped, strict=True))
    return chance_dropped / max(chance_same, 1e-300)


def trial_variance(cases: Iterable[VersionCounts]) -> float:
    """The variance of one trial of a case drawn at random, if both versions and the baseline have the same rates."""
    totals = Counter((case.passes, case.failures) for case in cases)
    logs = [
        (count, [passes * p + failures * f for p, f in zip(LOG_PASS, LOG_FAIL, strict=True)])
        for (passes, failures), count in totals.items()
    ]
    shares, _ = _fit_shares(logs)
    return math.fsum(share * rate * (1 - rate) for share, rate in zip(shares, RATES, strict=True))


def _explained(kinds: Counter[VersionCounts], new_rates: Sequence[float], usual_rates: Sequence[float]) -> float:
    """How well the outcomes are explained if a case with rate `RATES[i]` today has these rates as new version and on
    a usual day: the logarithm of their probability with the best shares of the rates.
    """
    new = [(math.log(rate), math.log1p(-rate)) for rate in new_rates]
    usual = [(math.log(rate), math.log1p(-rate)) for rate in usual_rates]
    logs = [
        (
            count,
            [
                kind.new_passes * new_pass
                + kind.new_failures * new_fail
                + kind.old_passes * old_pass
                + kind.old_failures * old_fail
                + kind.baseline_passes * usual_pass
                + kind.baseline_failures * usual_fail
                for (new_pass, new_fail), old_pass, old_fail, (usual_pass, usual_fail) in zip(
                    new, LOG_PASS, LOG_FAIL, usual, strict=True
                )
            ],
        )
        for kind, count in kinds.items()
    ]
    return _fit_shares(logs)[1]


def _fit_shares(logs: Sequence[tuple[int, Sequence[float]]]) -> tuple[list[float], float]:
    """The shares of the rates that explain the outcomes best, and the logarithm of how well they do.

    `logs`: for each kind of case, how many there are, and the log probability of its outcomes at each rate.
    """
    total = sum(count for count, _ in logs)
    best = [max(row) for _, row in logs]
    fits = [(count, [math.exp(log - most) for log in row]) for (count, row), most in zip(logs, best, strict=True)]
    shares = list(USUAL_SHARES)
    for _ in range(FIT_STEPS):
        sums = [FIT_WEIGHT * share for share in USUAL_SHARES]
        for count, fit in fits:
            parts = [chance * share for chance, share in zip(fit, shares, strict=True)]
            scale = count / sum(parts)
            sums = [so_far + scale * part for so_far, part in zip(sums, parts, strict=True)]
        shares = [value / (total + FIT_WEIGHT) for value in sums]
    explained = math.fsum(
        count * (math.log(sum(chance * share for chance, share in zip(fit, shares, strict=True))) + most)
        for (count, fit), most in zip(fits, best, strict=True)
    )
    return shares, explained


def _shifted(rate: float, shift: float) -> float:
    """The rate after a shift of its log odds."""
    rate = min(max(rate, 1e-4), 1 - 1e-4)
    return 1 / (1 + (1 - rate) / rate * math.exp(-shift))
