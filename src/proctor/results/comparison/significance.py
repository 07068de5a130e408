"""The statistical tests and intervals behind a comparison of two runs.

The same cases run twice, so the data are pairs, and a test that compares two overall pass rates would be wrong: it
treats the difference between easy and hard cases as noise and misses small changes. If each case ran once, McNemar's
test looks only at the cases that changed. With repeats, a permutation test shuffles the trials within each case, so
that flaky cases need more evidence. The permutations are counted exactly by convolution where that is fast enough, and
sampled otherwise. Plain McNemar p-values are too cautious for few cases, hence the mid-p variant.

Every function takes plain numbers, returns the same result each time, and needs no numerical library.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations
from statistics import NormalDist, fmean, median, stdev

Z_95 = NormalDist().inv_cdf(0.975)

MAX_EXACT_ADDITIONS = 1_000_000
"""The most additions of an exact permutation test; beyond that, permutations are sampled."""

MAX_SPLITS = 1000
"""The most ways to split the trials of one case between the runs that are enumerated; beyond that, they are sampled."""

MAX_DRAWS = 4999
ENOUGH_EXTREME_DRAWS = 100
"""Sampling stops after `MAX_DRAWS` permutations, or once this many are as extreme as the observed one."""

RESAMPLES = 200
MAX_RESAMPLED = 2_000
"""Bootstrap samples behind the interval of a ratio of medians, and the most cases in each."""

Pair = tuple[Sequence[float], Sequence[float]]
"""The values of one case in the first and in the second run; a pass is 1 and a failure 0."""


@dataclass(frozen=True, slots=True)
class SignificanceTest:
    """The probability of a difference at least as large as the observed one if both runs are of the same agent."""

    __test__ = False  # pytest would take it for a class of tests

    method: str
    p_value: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """The size of a difference, with its confidence interval."""

    value: float
    low: float
    high: float
    count: int
    """Number of cases."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """What a resource took per trial in both runs, and the quotient of the two."""

    before: float
    after: float
    effect: Effect


def compare_pairs(pairs: Sequence[Pair], *, seed: int = 0) -> SignificanceTest | None:
    """The right test for the data: McNemar's if each case ran once and passed or failed, otherwise permutations."""
    known = [pair for pair in pairs if pair[0] and pair[1]]
    if not known:
        return None
    if all(len(a) == len(b) == 1 and a[0] in (0, 1) and b[0] in (0, 1) for a, b in known):
        broken = sum(a[0] > b[0] for a, b in known)
        fixed = sum(a[0] < b[0] for a, b in known)
        return SignificanceTest("mcnemar mid-p", mcnemar(broken, fixed), True)
    return permutation_test(known, seed=seed)


def mcnemar(broken: int, fixed: int) -> float:
    """The two-sided mid-p value of McNemar's test: each changed case was as likely to break as to be fixed."""
    changed, fewer = broken + fixed, min(broken, fixed)
    if broken == fixed:
        return 1.0
    here = math.exp(
        math.lgamma(changed + 1) - math.lgamma(fewer + 1) - math.lgamma(changed - fewer + 1) - changed * math.log(2)
    )
    total, term = 0.0, here
    for count in range(fewer, 0, -1):
        term *= count / (changed - count + 1)
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, 2 * total + here)


def permutation_test(pairs: Sequence[Pair], *, seed: int = 0, draws: int = MAX_DRAWS) -> SignificanceTest:
    """Two-sided test of the mean difference over cases; trials are shuffled within their case only."""
    observed = math.fsum(_difference(a, b) for a, b in pairs)
    kinds = Counter(_kind(a, b) for a, b in pairs if len({*a, *b}) > 1)
    limit = abs(observed) - 1e-12 * (abs(observed) + 1)
    if limit <= 0 or not kinds:
        return SignificanceTest("permutation within cases", 1.0, True)
    splits = {kind: _splits(*kind) for kind in kinds if _can_enumerate(*kind)}
    if len(splits) == len(kinds):
        chance = _exact_share(kinds, splits, limit)
        if chance is not None:
            return SignificanceTest("permutation within cases", chance, True)
    return SignificanceTest("permutation within cases", _drawn_share(kinds, splits, limit, seed, draws), False)


CaseKind = tuple[tuple[float, ...], int]
"""All values of a case, sorted, and how many belong to the second run. Cases of one kind have the same shuffles."""


def _kind(a: Sequence[float], b: Sequence[float]) -> CaseKind:
    return tuple(sorted((*a, *b))), len(b)


def _difference(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(b) / len(b) - math.fsum(a) / len(a)


def _is_binary(values: tuple[float, ...]) -> bool:
    return all(value in (0, 1) for value in values)


def _can_enumerate(values: tuple[float, ...], second: int) -> bool:
    return _is_binary(values) or math.comb(len(values), second) <= MAX_SPLITS


def _splits(values: tuple[float, ...], second: int) -> dict[float, float]:
    """Each difference of means that a shuffle can produce, with its probability."""
    first, total = len(values) - second, math.fsum(values)
    probabilities: dict[float, float] = {}
    if _is_binary(values):
        passes = int(total)
        ways = math.comb(len(values), second)
        for here in range(max(0, passes - first), min(passes, second) + 1):
            chance = math.comb(passes, here) * math.comb(len(values) - passes, second - here) / ways
            probabilities[round(here / second - (passes - here) / first, 10)] = chance
        return probabilities
    share = 1 / math.comb(len(values), second)
    for chosen in combinations(values, second):
        taken = math.fsum(chosen)
        difference = round(taken / second - (total - taken) / first, 10)
        probabilities[difference] = probabilities.get(difference, 0.0) + share
    return probabilities


def _exact_share(kinds: Counter[CaseKind], splits: Mapping[CaseKind, dict[float, float]], limit: float) -> float | None:
    """The probability of a sum at least as far from 0, by convolution; `None` if it would take too long."""
    sums, work = {0.0: 1.0}, 0
    for kind, count in kinds.items():
        outcomes = list(splits[kind].items())
        for _ in range(count):
            work += len(sums) * len(outcomes)
            if work > MAX_EXACT_ADDITIONS:
                return None
            further: dict[float, float] = {}
            for total, chance in sums.items():
                for difference, share in outcomes:
                    key = round(total + difference, 8)
                    further[key] = further.get(key, 0.0) + chance * share
            sums = further
    return min(1.0, math.fsum(chance for total, chance in sums.items() if abs(total) >= limit - 1e-6))


def _drawn_share(
    kinds: Counter[CaseKind], splits: Mapping[CaseKind, dict[float, float]], limit: float, seed: int, draws: int
) -> float:
    """The share of sampled permutations at least as far from 0, with early stopping (Besag and Clifford)."""
    rng = random.Random(seed)  # noqa: S311  a fixed seed, so that the result is the same each time
    known = [
        (list(splits[kind]), list(accumulate(splits[kind].values())), count)
        for kind, count in kinds.items()
        if kind in splits
    ]
    drawn = [(kind, count) for kind, count in kinds.items() if kind not in splits]
    extreme = 0
    for number in range(1, draws + 1):
        total = 0.0
        for differences, cumulated, count in known:
            total += math.fsum(rng.choices(differences, cum_weights=cumulated, k=count))
        for (values, second), count in drawn:
            total += math.fsum(_shuffled_difference(values, second, rng) for _ in range(count))
        extreme += abs(total) >= limit - 1e-6
        if extreme >= ENOUGH_EXTREME_DRAWS:
            return extreme / number
    return (extreme + 1) / (draws + 1)


def _shuffled_difference(values: tuple[float, ...], second: int, rng: random.Random) -> float:
    here = math.fsum(rng.sample(values, second))
    return here / second - (math.fsum(values) - here) / (len(values) - second)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values: each can be compared with alpha although there are several tests."""
    adjusted: dict[str, float] = {}
    reached = 0.0
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for at, (name, p_value) in enumerate(ordered):
        reached = max(reached, min(1.0, p_value * (len(ordered) - at)))
        adjusted[name] = reached
    return {name: adjusted[name] for name in p_values}


def mean_difference(pairs: Sequence[Pair], *, confidence: float = 0.95) -> Effect | None:
    """The mean difference (second minus first) over cases of scores from 0 to 1, with Student's interval."""
    differences = [_difference(a, b) for a, b in pairs if a and b]
    if not differences:
        return None
    effect = _student(differences, confidence)
    if len(differences) == 1:  # one case says nothing about how much cases vary
        return Effect(effect.value, -1.0, 1.0, 1)
    if effect.low == effect.high:
        # All cases agree, so the interval would have width 0. This is the largest share of other cases that would
        # still have stayed unseen with this confidence.
        unseen = 1 - (1 - confidence) ** (1 / len(differences))
        low, high = max(-1.0, effect.value - unseen), min(1.0, effect.value + unseen)
        return Effect(effect.value, low, high, len(differences))
    return Effect(effect.value, max(-1.0, effect.low), min(1.0, effect.high), effect.count)


def agreeing_interval(effect: Effect, p_value: float, alpha: float) -> Effect:
    """The effect with an interval that contains 0 exactly if the test does not rule out 0.

    The test is exact and corrected for the number of tests; Student's interval is neither. Next to a p-value of 1, an
    interval of [+0.007, +1.000] would be a second, contradicting answer. So the test decides about 0: if it does not
    rule it out, the interval is extended to 0. If it does, the end near 0 is where the p-value puts it (Miettinen's
    test-based limit: the p-value says how many standard errors the effect is away from 0).
    """
    if p_value > alpha:
        return replace(effect, low=min(effect.low, 0.0), high=max(effect.high, 0.0))
    errors = NormalDist().inv_cdf(1 - max(p_value, 1e-15) / 2)
    near = effect.value * (1 - Z_95 / errors)
    if effect.value > 0:
        return replace(effect, low=effect.low if effect.low > 0 else near)
    return replace(effect, high=effect.high if effect.high < 0 else near) if effect.value < 0 else effect


def ratio_of_means(pairs: Sequence[Pair], *, confidence: float = 0.95) -> Ratio | None:
    """How many times as much of a resource the second run took: the quotient of the means over cases.

    A mean of ratios would be another number than the quotient of the two means that a report prints next to it. The
    interval comes from the deviations of cases from both means (the delta method).
    """
    first, second = _case_means(pairs)
    if not first or fmean(first) <= 0:
        return None
    before, after = fmean(first), fmean(second)
    if after <= 0:
        return Ratio(before, after, Effect(0.0, 0.0, math.inf, len(first)))
    deviations = _student([b / after - a / before for a, b in zip(first, second, strict=True)], confidence)
    return _ratio(before, after, deviations.high - deviations.value, len(first))


def ratio_of_medians(pairs: Sequence[Pair], *, confidence: float = 0.95, seed: int = 0) -> Ratio | None:
    """The same with medians, for times: one slow answer of a provider does not change them.

    The interval comes from a bootstrap over cases. Of more than `MAX_RESAMPLED` cases, that many are drawn each time,
    and the spread is scaled to the number of all.
    """
    first, second = _case_means(pairs)
    if not first or median(first) <= 0:
        return None
    before, after = median(first), median(second)
    if after <= 0:
        return Ratio(before, after, Effect(0.0, 0.0, math.inf, len(first)))
    if len(first) < 2:
        return _ratio(before, after, math.inf, 1)
    source, size = random.Random(seed), min(len(first), MAX_RESAMPLED)  # noqa: S311  not for secrets
    logs = []
    for _ in range(RESAMPLES):
        drawn = source.choices(range(len(first)), k=size)
        one, other = median([first[at] for at in drawn]), median([second[at] for at in drawn])
        if one > 0 and other > 0:
            logs.append(math.log(other / one))
    spread = stdev(logs) * math.sqrt(size / len(first)) if len(logs) > 1 else math.inf
    return _ratio(before, after, student_quantile(confidence, len(first) - 1) * spread, len(first))


def mean_of_cases(values: Sequence[float], *, confidence: float = 0.95) -> Effect | None:
    """The mean of an amount over cases, such as the cost, with Student's interval; `None` without values."""
    if not values:
        return None
    effect = _student(values, confidence)
    if effect.count < 2:
        return replace(effect, low=0.0, high=math.inf)
    return replace(effect, low=max(0.0, effect.low))


def median_of_cases(values: Sequence[float], *, confidence: float = 0.95) -> Effect | None:
    """The median of an amount over cases, such as the time, with an interval; `None` without values.

    The interval lies between two of the values, counted from both ends: each value is above the true median with
    probability one half, whatever the distribution. Fewer than six cases have no 95 % interval.
    """
    if not values:
        return None
    ordered, count = sorted(values), len(values)
    below, tail = 0, 0.5**count if count < 1000 else 0.0
    share = tail
    if count >= 1000:  # the normal approximation, which is exact enough here
        below = max(0, int(count / 2 - NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(count) / 2))
    else:
        while 2 * tail <= 1 - confidence:
            below += 1
            share *= (count - below + 1) / below
            tail += share
    if below == 0:
        return Effect(median(ordered), 0.0, math.inf, count)
    return Effect(median(ordered), ordered[below - 1], ordered[count - below], count)


def _case_means(pairs: Sequence[Pair]) -> tuple[list[float], list[float]]:
    known = [(fmean(a), fmean(b)) for a, b in pairs if a and b]
    return [a for a, _ in known], [b for _, b in known]


def _ratio(before: float, after: float, half: float, count: int) -> Ratio:
    """The quotient, with an interval of `half` on each side of its logarithm; one case has no interval."""
    value = after / before
    if count < 2 or not half < 700:
        return Ratio(before, after, Effect(value, 0.0, math.inf, count))
    return Ratio(before, after, Effect(value, value * math.exp(-half), value * math.exp(half), count))


def _student(values: Sequence[float], confidence: float) -> Effect:
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return Effect(mean, mean, mean, count)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = student_quantile(confidence, count - 1) * math.sqrt(variance / count)
    return Effect(mean, mean - half, mean + half, count)


def student_quantile(confidence: float, freedom: int) -> float:
    """The two-sided quantile of Student's t (Hill 1970, algorithm 396)."""
    tails = 1 - confidence
    if freedom == 1:
        return math.cos(tails * math.pi / 2) / math.sin(tails * math.pi / 2)
    if freedom == 2:
        return math.sqrt(2 / (tails * (2 - tails)) - 2)
    n = float(freedom)
    a = 1 / (n - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * tails) ** (2 / n)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tails / 2)
        y = x * x
        c += 0.3 * (n - 4.5) * (x + 0.6) if freedom < 5 else 0.0
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (n + 1) / (
            n + 2
        ) + 1 / y
    return math.sqrt(n * y)
