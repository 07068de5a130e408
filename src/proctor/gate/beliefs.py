"""The pass rate of a case, as far as its baseline shows it.

The obvious estimate, passes divided by trials, is wrong where it matters most: ten passes of ten do not make a rate of
100 %, yet with that rate a single failure would prove a regression. So a rate is never a number here but a
`RateBelief`: a mixture of Beta distributions, which says how likely each rate is. Few recorded trials leave a wide
belief, many leave a narrow one.

Ten of ten means more in a suite where nearly every case always passes than in one where all cases vary. `SuitePrior`
learns that from the recorded trials of the whole suite: it takes a grid of mixtures (a share of nearly certain cases, a
share of varying cases, a few outliers that may have any rate), weights each by how well it explains the recorded
trials, and averages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

MIN_SCORES = 5
SCORE_DEVIATIONS = 3.0
SCORE_MARGIN = 0.1
"""A score is far below the baseline if it is this many standard deviations, and at least this much, below the mean of
the recorded scores, and at least `MIN_SCORES` were recorded."""

OUTLIER_SHARE = 0.05
"""The share of cases that may have any rate, so that the belief about an unusual case is not pulled to the others."""

# The grid of mixtures: Beta parameters of nearly certain cases, of cases that vary, and the shares of the former.
CERTAIN = tuple((float(weight), 1.0) for weight in (10, 25, 60, 150, 400))
VARYING = tuple((mean * size, (1 - mean) * size) for mean in (0.3, 0.5, 0.7, 0.8, 0.9) for size in (2.5, 7.0, 25.0))
SHARES = (0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
NEGLIGIBLE = 1e-6


@dataclass(frozen=True, slots=True)
class BaselineRecord:
    """The trials of a case in its baseline."""

    trials: int
    passes: int
    score_mean: float | None = None
    score_deviation: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.passes <= self.trials:
            raise ValueError(f"{self.passes} passes of {self.trials} trials is impossible")

    @property
    def lowest_expected_score(self) -> float | None:
        """Lower scores are far below the baseline; `None` if too few scores were recorded."""
        if self.score_mean is None or self.score_deviation is None or self.trials < MIN_SCORES:
            return None
        return self.score_mean - max(SCORE_MARGIN, SCORE_DEVIATIONS * self.score_deviation)


@dataclass(frozen=True, slots=True)
class RateBelief:
    """A belief about one pass rate: a weighted mixture of Beta distributions."""

    parts: tuple[tuple[float, float, float], ...]
    """Weight, and the two parameters of the Beta distribution (1 + passes and 1 + failures, roughly)."""

    @property
    def mean(self) -> float:
        return math.fsum(weight * a / (a + b) for weight, a, b in self.parts)

    def updated(self, passes: int, failures: int) -> RateBelief:
        """The belief after more trials."""
        weighted = [
            (weight * _probability(a, b, passes, failures), a + passes, b + failures) for weight, a, b in self.parts
        ]
        return _normalize(weighted)

    def sequence_probabilities(self, trials: int) -> list[list[float]]:
        """`[n][passes]`: the probability of one particular sequence of `n` outcomes with that many passes."""
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
"""The belief about a rate of which nothing is known."""


@dataclass(frozen=True, slots=True)
class _Mixture:
    """One possible distribution of the rates of a suite, and its weight."""

    weight: float
    shares: tuple[tuple[int, float], ...]
    """The position of each component in `COMPONENTS`, and its share of the cases."""


COMPONENTS = (*CERTAIN, *VARYING, (1.0, 1.0))


class SuitePrior:
    """The distribution of the rates in a suite, learned from the recorded trials of all its cases."""

    def __init__(self, records: Iterable[tuple[int, int]]) -> None:
        """`records`: passes and trials of each case."""
        counts = Counter(records)
        self._fits = {record: _fit(*record) for record in counts}
        self._mixtures = _weighted_mixtures(counts, self._fits)
        self._beliefs: dict[tuple[int, int], RateBelief] = {}

    def belief(self, passes: int, trials: int) -> RateBelief:
        """The belief about the rate of a case with this many passes and trials in its baseline."""
        record = (passes, trials)
        if record not in self._beliefs:
            fit = self._fits.setdefault(record, _fit(passes, trials))
            weights = [0.0] * len(COMPONENTS)
            for mixture in self._mixtures:
                (one, share), (other, rest), (anything, few) = mixture.shares
                here, there, odd = share * fit[one], rest * fit[other], few * fit[anything]
                scale = mixture.weight / (here + there + odd)
                weights[one] += scale * here
                weights[other] += scale * there
                weights[anything] += scale * odd
            parts = [(w, a + passes, b + trials - passes) for w, (a, b) in zip(weights, COMPONENTS, strict=True)]
            self._beliefs[record] = _normalize(parts)
        return self._beliefs[record]


def _weighted_mixtures(
    counts: Counter[tuple[int, int]], fits: dict[tuple[int, int], tuple[float, ...]]
) -> list[_Mixture]:
    """The mixtures of the grid with their posterior weights, without those of negligible weight."""
    records = [(count, fits[record]) for record, count in counts.items()]
    anything = len(COMPONENTS) - 1
    weighed: list[tuple[float, tuple[tuple[int, float], ...]]] = []
    for certain in range(len(CERTAIN)):
        for varying in range(len(CERTAIN), anything):
            for share in SHARES:
                here, there = (1 - OUTLIER_SHARE) * share, (1 - OUTLIER_SHARE) * (1 - share)
                explained = 0.0
                for count, fit in records:
                    explained += count * math.log(
                        here * fit[certain] + there * fit[varying] + OUTLIER_SHARE * fit[anything]
                    )
                weighed.append((explained, ((certain, here), (varying, there), (anything, OUTLIER_SHARE))))
    best = max(explained for explained, _ in weighed)
    likely = [(math.exp(explained - best), shares) for explained, shares in weighed if explained > best - 7]
    total = math.fsum(weight for weight, _ in likely)
    return [_Mixture(weight / total, shares) for weight, shares in likely]


@lru_cache(maxsize=4096)
def _fit(passes: int, trials: int) -> tuple[float, ...]:
    """How well each component explains a record, relative to the best of them."""
    logs = [_log_probability(a, b, passes, trials - passes) for a, b in COMPONENTS]
    best = max(logs)
    return tuple(max(math.exp(value - best), 1e-300) for value in logs)


def _probability(a: float, b: float, passes: int, failures: int) -> float:
    return math.exp(_log_probability(a, b, passes, failures))


def _log_probability(a: float, b: float, passes: int, failures: int) -> float:
    """Log of the probability of one particular sequence of outcomes under a Beta-distributed rate."""
    return (
        math.lgamma(a + passes)
        - math.lgamma(a)
        + math.lgamma(b + failures)
        - math.lgamma(b)
        - math.lgamma(a + b + passes + failures)
        + math.lgamma(a + b)
    )


def _normalize(parts: Sequence[tuple[float, float, float]]) -> RateBelief:
    most = max(weight for weight, _, _ in parts)
    likely = [part for part in parts if part[0] > most * NEGLIGIBLE]
    total = math.fsum(weight for weight, _, _ in likely)
    return RateBelief(tuple((weight / total, a, b) for weight, a, b in likely))
