"""The statistics behind the gate: what is known of each pass rate, and the tests of a suspect and of a suite."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

UNUSUAL = 0.05
"""The share of cases that may have any rate: it keeps an odd case of a uniform suite from being drawn to the others."""

CERTAIN = tuple((float(weight), 1.0) for weight in (10, 25, 60, 150, 400))
VARYING = tuple((mean * size, (1 - mean) * size) for mean in (0.3, 0.5, 0.7, 0.8, 0.9) for size in (2.5, 7.0, 25.0))
SHARES = (0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
NEGLIGIBLE = 1e-6


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class _Mixture:
    """One way the rates of a suite may be distributed, and how believable it is."""

    weight: float
    shares: tuple[tuple[int, float], ...]
    """Position among the components, and its share of the cases."""


COMPONENTS = (*CERTAIN, *VARYING, (1.0, 1.0))


class UsualRates:
    """The beliefs about all cases of a suite, learned from all their recorded trials together.

    The rates of a suite are modelled as a mixture: a share of nearly certain cases, a share of cases that vary, and a
    few that follow neither. Which mixture it is, is not known: every one of a grid of mixtures is weighed by how well
    it explains the recorded trials of the whole suite. A case's own rate is never taken for known, however often it was
    recorded.
    """

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


BROKEN = RateBelief(((1.0, 0.4, 2.0),))
"""The rate of a case that broke: most often close to 0, sometimes up to a half."""

DRIFT = 0.1
"""The drop, in points of the pass rate, for which the suite-level test weighs failures best."""

EXACT_UP_TO = 60
"""With so many cases that ever failed the suite-level chance is counted out; with more it is approximated."""


class SuspectTest:
    """How much the fresh trials of a suspect speak for a broken case, and how often chance alone speaks as loud.

    The score is the log of a likelihood ratio: a broken case over a case as usual. `tail` gives the chance that the
    score of an unchanged case *ever* reaches a height within the allowed trials, so every look is paid for.
    """

    def __init__(self, usual: RateBelief, trials: int) -> None:
        self.trials = trials
        self._chances = usual.sequences(trials)
        broken = _broken_sequences(trials)
        self.scores = [_log_ratios(*rows) for rows in zip(broken, self._chances, strict=True)]
        """`[n][passes]`: the score after `n` fresh trials."""
        self._tails: dict[float, float] = {}

    def reachable(self, trials: int, passes: int) -> float:
        """The highest score that is still ahead: every further trial fails."""
        return max(self.scores[n][passes] for n in range(trials, self.trials + 1))

    def heights(self) -> Iterable[float]:
        """All scores that some course of trials can have."""
        return (score for row in self.scores[1:] for score in row)

    def tail(self, height: float) -> float:
        """The chance that an unchanged case reaches the height at any look."""
        if height not in self._tails:
            self._tails[height] = self._crossing(height - 1e-9)
        return self._tails[height]

    def _crossing(self, height: float) -> float:
        # `ways`: how many sequences lead to so many passes without having crossed; all of them are equally likely
        ways, crossed = [1], 0.0
        for n in range(1, self.trials + 1):
            scores, chances = self.scores[n], self._chances[n]
            reached = [0] * (n + 1)
            for passes, count in enumerate(ways):
                reached[passes] += count
                reached[passes + 1] += count
            for passes, count in enumerate(reached):
                if count and scores[passes] >= height:
                    crossed += count * chances[passes]
                    reached[passes] = 0
            ways = reached
        return min(1.0, crossed)


def _log_ratios(broken: list[float], usual: list[float]) -> list[float]:
    """More passes never speak louder for a broken case, whatever the tails of the two beliefs would say."""
    ratios = [math.log(one / max(other, 1e-300)) for one, other in zip(broken, usual, strict=True)]
    return list(accumulate(ratios, min))


@lru_cache(maxsize=64)
def _broken_sequences(trials: int) -> list[list[float]]:
    return BROKEN.sequences(trials)


def any_reaches(tests: Counter[SuspectTest], height: float) -> float:
    """The chance that at least one of these suspects reaches the height although none has changed."""
    none = 0.0
    for test, count in tests.items():
        tail = test.tail(height)
        if tail >= 1:
            return 1.0
        none += count * math.log1p(-tail)
    return -math.expm1(none)


def critical_height(tests: Counter[SuspectTest], alpha: float) -> float:
    """The lowest score that any of these unchanged suspects reaches with a chance of at most `alpha`."""
    heights = sorted({height for test in tests for height in test.heights()})
    at = bisect_left(heights, True, key=lambda height: any_reaches(tests, height) <= alpha)
    return heights[at] if at < len(heights) else math.inf


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """What the suite-level test knows of one case: its past, and the first outcomes of this run."""

    passes: int
    trials: int
    now_passes: int
    now_trials: int


class DriftTest:
    """Whether a suite fails more often than usual, though perhaps no single case can be proven.

    Were nothing changed, the failures of a case would fall on its recorded and its new trials as a shuffle lets them.
    This holds whatever the rates are, so nothing is assumed about them. Failures of cases that seldom fail weigh more.
    """

    def __init__(self, cases: Iterable[SuiteCase]) -> None:
        kinds: Counter[tuple[int, int, int]] = Counter()
        self.observed = 0
        self.failing = 0
        """How many cases failed in this run."""
        for case in cases:
            self.failing += case.now_passes < case.now_trials
            trials = case.trials + case.now_trials
            failures = trials - case.passes - case.now_passes
            kinds[trials, failures, case.now_trials] += 1
            self.observed += failure_weight(failures, trials) * (case.now_trials - case.now_passes)
        self._terms = [(count, _shuffled(*kind)) for kind, count in kinds.items() if kind[1] > 0]

    @cached_property
    def worse(self) -> float:
        """The chance of failing at least as much as observed, were nothing changed."""
        return self._at_least(self.observed, 1)

    @cached_property
    def better(self) -> float:
        """The chance of failing at most as much as observed, were nothing changed."""
        return self._at_least(-self.observed, -1)

    def _at_least(self, observed: int, sign: int) -> float:
        terms = [(count, [(sign * height, chance) for height, chance in chances]) for count, chances in self._terms]
        if sum(count for count, _ in terms) <= EXACT_UP_TO:
            return _exact_tail(terms, observed)
        return _saddlepoint_tail(terms, observed - 0.5)


Terms = list[tuple[int, list[tuple[int, float]]]]
"""How many cases, and for each of them the weighted failures with their chances."""


def failure_weight(failures: int, trials: int) -> int:
    """The weight of a failure: the log of the odds ratio between a rate and one `DRIFT` lower, in whole quarters."""
    rate = 1 - (failures + 0.2) / (trials + 0.4)
    lower = max(rate - DRIFT, 0.02)
    return max(1, round(4 * math.log((1 - lower) / (1 - rate) * rate / lower)))


def _shuffled(trials: int, failures: int, now: int) -> list[tuple[int, float]]:
    """The weighted failures that fall on the new trials, with their chances."""
    weight = failure_weight(failures, trials)
    ways = math.comb(trials, now)
    return [
        (weight * count, math.comb(failures, count) * math.comb(trials - failures, now - count) / ways)
        for count in range(max(0, now + failures - trials), min(now, failures) + 1)
    ]


def _exact_tail(terms: Terms, observed: float) -> float:
    sums = {0: 1.0}
    for count, outcomes in terms:
        for _ in range(count):
            further: dict[int, float] = {}
            for total, chance in sums.items():
                for height, share in outcomes:
                    further[total + height] = further.get(total + height, 0.0) + chance * share
            sums = further
    return min(1.0, math.fsum(chance for total, chance in sums.items() if total >= observed))


def _saddlepoint_tail(terms: Terms, observed: float) -> float:
    """Lugannani and Rice's formula, which is exact to a few per cent of the chance with so many cases."""
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
    """Where the tilted mean equals the observed value: Newton's steps, kept inside a bracket."""
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
        shift = max(point * height for height, _ in outcomes)
        total = first = second = 0.0
        for height, chance in outcomes:
            tilted = chance * math.exp(point * height - shift)
            total += tilted
            first += tilted * height
            second += tilted * height * height
        centre = first / total
        value += count * (shift + math.log(total))
        slope += count * centre
        curvature += count * (second / total - centre * centre)
    return value, slope, curvature


def _normal_tail(value: float) -> float:
    return 0.5 * math.erfc(value / math.sqrt(2))


def _density(value: float) -> float:
    return math.exp(-value * value / 2) / math.sqrt(2 * math.pi)
