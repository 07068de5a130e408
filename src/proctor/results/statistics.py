"""Numbers with their uncertainty: intervals for shares and means, and reliability over repeated trials.

Intervals are Wilson's. The textbook interval (mean ± 1.96 standard errors) has width 0 if all values agree, so ten
passes of ten would claim a pass rate of exactly 100 %. Repeats of a case count as one observation, its mean: treating
them as independent would make the interval of a suite too narrow. pass^k and pass@k are computed from all trials of a
case without replacement, C(passed, k) / C(trials, k), instead of raising the observed pass rate to the power k, which
is biased for few trials.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Self

from proctor.results.score import Outcome, ScoreRow
from proctor.results.trial import TrialSummary

PASSED, FAILED, ERROR, SKIPPED, PENDING = Outcome

Z_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of values between 0 and 1, with its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int
    """Number of independent observations."""

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Rate(float):
    """A share or a mean that knows how many observations it rests on; NaN if there are none.

    >>> rate = Rate.of_share(9, 10)
    >>> float(rate), rate.of, round(rate.low, 2), round(rate.high, 2)
    (0.9, 10, 0.6, 0.98)
    """

    of: int
    """Number of independent observations."""
    low: float
    """The lower end of the 95 % interval."""
    high: float
    """The upper end of the 95 % interval."""

    def __new__(cls, value: float, of: int, low: float, high: float) -> Self:
        rate = super().__new__(cls, value)
        rate.of, rate.low, rate.high = of, low, high
        return rate

    @classmethod
    def of_share(cls, part: int, whole: int) -> Self:
        """`part` of `whole`, with Wilson's interval."""
        return cls.of_estimate(share_of(part, whole) if whole else None)

    @classmethod
    def of_estimate(cls, value: Estimate | None) -> Self:
        if value is None:
            return cls(math.nan, 0, 0.0, 1.0)
        return cls(value.mean, value.count, value.low, value.high)

    def __getnewargs__(self) -> tuple[float, int, float, float]:  # type: ignore[override]
        return float(self), self.of, self.low, self.high

    def __repr__(self) -> str:
        return f"Rate({float(self)!r}, of={self.of}, low={self.low:.3f}, high={self.high:.3f})"

    __str__ = float.__repr__


def estimate(values: Sequence[float], *, groups: Sequence[str] | None = None) -> Estimate | None:
    """The mean with Wilson's interval; `None` if there are no values.

    Values between 0 and 1 vary at most as much as passes and failures with the same mean, so the interval is never too
    narrow. With `groups`, the mean of each group counts as one observation, unless there is only one group.
    """
    if not values:
        return None
    observed = list(values)
    if groups is not None and len(set(groups)) > 1:
        observed = _group_means(values, groups)
    mean = fmean(observed)
    low, high = wilson(mean, len(observed))
    return Estimate(mean, low, high, len(observed))


def share_of(part: int, whole: int) -> Estimate:
    """`part` of `whole`, such as the cases that passed, with Wilson's interval."""
    share = part / whole
    return Estimate(share, *wilson(share, whole), whole)


def wilson(share: float, count: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a share observed `count` times."""
    if count <= 0:
        return 0.0, 1.0
    share = min(1.0, max(0.0, share))
    spread = z * z / count
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    low = 0.0 if share == 0 else max(0.0, centre - half)
    high = 1.0 if share == 1 else min(1.0, centre + half)
    return min(low, share), max(high, share)


def pass_hat_k(passed: int, trials: int, k: int) -> float:
    """The probability that `k` trials, drawn from the ones that ran, all pass."""
    return math.comb(passed, k) / math.comb(trials, k)


def pass_at_k(passed: int, trials: int, k: int) -> float:
    """The probability that at least one of `k` trials, drawn from the ones that ran, passes."""
    return 1 - math.comb(trials - passed, k) / math.comb(trials, k)


def mean(values: Iterable[float]) -> float | None:
    """The mean; `None` if there are no values."""
    numbers = list(values)
    return fmean(numbers) if numbers else None


def _group_means(values: Sequence[float], groups: Sequence[str]) -> list[float]:
    members: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return [fmean(group) for group in members.values()]


@dataclass(frozen=True, slots=True)
class EvaluatorSummary:
    """The scores of one evaluator over a whole suite."""

    evaluator: str
    scores: Estimate | None
    passed: int
    failed: int
    errors: int
    skipped: int
    pending: int
    threshold: float | None


@dataclass(frozen=True, slots=True)
class Reliability:
    """What to expect of `k` trials of a case, averaged over the cases."""

    k: int
    pass_hat: float
    """The probability that all of them pass: pass^k."""
    pass_at: float
    """The probability that at least one passes: pass@k."""


def evaluator_summaries(cases: Iterable[Sequence[TrialSummary]]) -> tuple[EvaluatorSummary, ...]:
    """The summary of each evaluator, from the trials of each case."""
    rows: dict[str, list[list[ScoreRow]]] = {}
    for trials in cases:
        of_case: dict[str, list[ScoreRow]] = {}
        for trial in trials:
            for row in trial.scores:
                of_case.setdefault(row.evaluator, []).append(row)
        for name, scores in of_case.items():
            rows.setdefault(name, []).append(scores)
    return tuple(_evaluator_summary(name, cases_of_evaluator) for name, cases_of_evaluator in rows.items())


def _evaluator_summary(name: str, cases: Sequence[Sequence[ScoreRow]]) -> EvaluatorSummary:
    """The summary of one evaluator; repeats of a case are one observation, unless it is the only case."""
    counts = Counter(row.outcome for rows in cases for row in rows)
    measured = [values for rows in cases if (values := [row.value for row in rows if row.value is not None])]
    means = [fmean(values) for values in measured]
    thresholds = {row.threshold for rows in cases for row in rows}
    return EvaluatorSummary(
        evaluator=name,
        scores=estimate(measured[0] if len(measured) == 1 else means),
        passed=counts[PASSED],
        failed=counts[FAILED],
        errors=counts[ERROR],
        skipped=counts[SKIPPED],
        pending=counts[PENDING],
        threshold=thresholds.pop() if len(thresholds) == 1 else None,
    )


def mean_probability(
    by_case: Mapping[str, Sequence[TrialSummary]], repeats: int, probability: Callable[[int, int, int], float]
) -> float | None:
    """`probability(passed, trials, repeats)`, averaged over the cases whose repeats all passed or failed."""
    if repeats < 2:
        return None
    decided = ([t for t in group if t.outcome in (PASSED, FAILED)] for group in by_case.values())
    return mean(
        probability(sum(t.outcome is PASSED for t in group), len(group), repeats)
        for group in decided
        if len(group) == repeats
    )


def reliability_by_trials(by_case: Mapping[str, Sequence[TrialSummary]], repeats: int) -> tuple[Reliability, ...]:
    """The reliability for each k from 1 to the number of repeats, over the cases whose repeats all passed or failed.

    C(passed, k) / C(repeats, k) follows from its value for k - 1, so that no large binomials are computed.
    """
    if repeats < 2:
        return ()
    decided = ([t.outcome is PASSED for t in group if t.outcome in (PASSED, FAILED)] for group in by_case.values())
    cases_by_passes = Counter(sum(passes) for passes in decided if len(passes) == repeats)
    if not cases_by_passes:
        return ()
    all_pass, none_passes = dict.fromkeys(cases_by_passes, 1.0), dict.fromkeys(cases_by_passes, 1.0)
    total = cases_by_passes.total()
    reliability: list[Reliability] = []
    for k in range(1, repeats + 1):
        for passed in cases_by_passes:
            all_pass[passed] *= max(0, passed - k + 1) / (repeats - k + 1)
            none_passes[passed] *= max(0, repeats - passed - k + 1) / (repeats - k + 1)
        hat = math.fsum(all_pass[passed] * count for passed, count in cases_by_passes.items()) / total
        none = math.fsum(none_passes[passed] * count for passed, count in cases_by_passes.items()) / total
        reliability.append(Reliability(k, hat, 1 - none))
    return tuple(reliability)
