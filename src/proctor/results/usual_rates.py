"""What the recorded trials of a suite say about the pass rate of each of its cases, with the doubt that is left.

The rates of a suite are modelled as a mixture: a share of nearly certain cases, a share of cases that vary, and a few
that follow neither. Which mixture it is, is not known: every one of a grid of mixtures is weighed by how well it
explains the recorded trials of the whole suite. A case's own rate is never taken for known, however often it was
recorded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from proctor.base.records import record

UNUSUAL = 0.05
"""The share of cases that may have any rate: it keeps an odd case of a uniform suite from being drawn to the others."""

CERTAIN = tuple((float(weight), 1.0) for weight in (10, 25, 60, 150, 400))
VARYING = tuple((mean * size, (1 - mean) * size) for mean in (0.3, 0.5, 0.7, 0.8, 0.9) for size in (2.5, 7.0, 25.0))
SHARES = (0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
NEGLIGIBLE = 1e-6


@record
class RateBelief:
    """What is believed about one pass rate: a weighted mixture of Beta distributions."""

    parts: tuple[tuple[float, float, float], ...]
    """Weight, and the two parameters of the Beta distribution (1 + passes and 1 + failures, roughly)."""

    @property
    def mean(self) -> float:
        return math.fsum(weight * a / (a + b) for weight, a, b in self.parts)

    def after(self, passes: int, failures: int) -> RateBelief:
        """The belief after further trials."""
        weighted = [(weight * _chance(a, b, passes, failures), a + passes, b + failures) for weight, a, b in self.parts]
        return _normalised(weighted)

    def sequences(self, trials: int) -> list[list[float]]:
        """`[n][passes]`: the chance of one particular sequence of `n` outcomes with so many passes, up to `trials`."""
        table = [[0.0] * (n + 1) for n in range(trials + 1)]
        for weight, a, b in self.parts:
            row = [weight]
            for n in range(trials + 1):
                known = table[n]
                for passes, value in enumerate(row):
                    known[passes] += value
                total = a + b + n
                further = [row[passes] * (b + n - passes) / total for passes in range(n + 1)]
                further.append(row[n] * (a + n) / total)
                row = further
        return table


ANY_RATE = RateBelief(((1.0, 1.0, 1.0),))
"""Belief about a rate of which nothing is known."""


@record
class _Mixture:
    """One way the rates of a suite may be distributed, and how believable it is."""

    weight: float
    shares: tuple[tuple[int, float], ...]
    """Position among the components, and its share of the cases."""


COMPONENTS = (*CERTAIN, *VARYING, (1.0, 1.0))


class UsualRates:
    """The beliefs about all cases of a suite, learned from all their recorded trials together."""

    def __init__(self, pasts: Iterable[tuple[int, int]]) -> None:
        """`pasts`: passes and trials of each case."""
        counted = Counter(pasts)
        self._fits = {past: _fit(*past) for past in counted}
        self._mixtures = _weighed(counted, self._fits)
        self._beliefs: dict[tuple[int, int], RateBelief] = {}

    def belief(self, passes: int, trials: int) -> RateBelief:
        """What is believed about the rate of a case with this past."""
        past = (passes, trials)
        if past not in self._beliefs:
            fit = self._fits.setdefault(past, _fit(passes, trials))
            weights = [0.0] * len(COMPONENTS)
            for mixture in self._mixtures:
                (one, share), (other, rest), (anything, few) = mixture.shares
                here, there, odd = share * fit[one], rest * fit[other], few * fit[anything]
                scale = mixture.weight / (here + there + odd)
                weights[one] += scale * here
                weights[other] += scale * there
                weights[anything] += scale * odd
            parts = [(w, a + passes, b + trials - passes) for w, (a, b) in zip(weights, COMPONENTS, strict=True)]
            self._beliefs[past] = _normalised(parts)
        return self._beliefs[past]


def _weighed(counted: Counter[tuple[int, int]], fits: dict[tuple[int, int], tuple[float, ...]]) -> list[_Mixture]:
    """Every mixture of the grid with its posterior weight; those that explain next to nothing are left out."""
    pasts = [(count, fits[past]) for past, count in counted.items()]
    anything = len(COMPONENTS) - 1
    found: list[tuple[float, tuple[tuple[int, float], ...]]] = []
    for certain in range(len(CERTAIN)):
        for varying in range(len(CERTAIN), anything):
            for share in SHARES:
                here, there = (1 - UNUSUAL) * share, (1 - UNUSUAL) * (1 - share)
                explained = 0.0
                for count, fit in pasts:
                    explained += count * math.log(here * fit[certain] + there * fit[varying] + UNUSUAL * fit[anything])
                found.append((explained, ((certain, here), (varying, there), (anything, UNUSUAL))))
    best = max(explained for explained, _ in found)
    kept = [(math.exp(explained - best), shares) for explained, shares in found if explained > best - 7]
    total = math.fsum(weight for weight, _ in kept)
    return [_Mixture(weight / total, shares) for weight, shares in kept]


@lru_cache(maxsize=4096)
def _fit(passes: int, trials: int) -> tuple[float, ...]:
    """How well each component explains a past, relative to the best of them."""
    logs = [_log_chance(a, b, passes, trials - passes) for a, b in COMPONENTS]
    best = max(logs)
    return tuple(max(math.exp(value - best), 1e-300) for value in logs)


def _chance(a: float, b: float, passes: int, failures: int) -> float:
    return math.exp(_log_chance(a, b, passes, failures))


def _log_chance(a: float, b: float, passes: int, failures: int) -> float:
    """Log of the chance of one particular sequence under a Beta-distributed rate."""
    return (
        math.lgamma(a + passes)
        - math.lgamma(a)
        + math.lgamma(b + failures)
        - math.lgamma(b)
        - math.lgamma(a + b + passes + failures)
        + math.lgamma(a + b)
    )


def _normalised(parts: Sequence[tuple[float, float, float]]) -> RateBelief:
    most = max(weight for weight, _, _ in parts)
    kept = [part for part in parts if part[0] > most * NEGLIGIBLE]
    total = math.fsum(weight for weight, _, _ in kept)
    return RateBelief(tuple((weight / total, a, b) for weight, a, b in kept))
