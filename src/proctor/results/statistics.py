"""Numbers with their uncertainty: intervals for shares and means, and what repeats say about reliability."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from proctor.results.run import Outcome, ScoreRow, TrialSummary

PASSED, FAILED, ERROR, SKIPPED, PENDING = Outcome

Z_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of values between 0 and 1, with its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int
    """How many independent observations it rests on."""

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def estimate(values: Sequence[float], *, groups: Sequence[str] | None = None) -> Estimate | None:
    """The mean with Wilson's interval; `None` of no values.

    Values between 0 and 1 vary at most as much as a coin of the same mean does, so the interval is never too narrow,
    and unlike a normal one it does not collapse when all values agree. Repeats of one case say more about that case
    than about the next one: with `groups`, each group's mean counts as one observation, unless there is only one group.
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
    """How many of some there are, such as the cases that passed, with Wilson's interval."""
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
    """The chance that `k` trials drawn from those made all pass."""
    return math.comb(passed, k) / math.comb(trials, k)


def pass_at_k(passed: int, trials: int, k: int) -> float:
    """The chance that at least one of `k` trials drawn from those made passes."""
    return 1 - math.comb(trials - passed, k) / math.comb(trials, k)


def mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None


def _group_means(values: Sequence[float], groups: Sequence[str]) -> list[float]:
    members: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return [fmean(group) for group in members.values()]


@dataclass(frozen=True, slots=True)
class EvaluatorSummary:
    """How one evaluator scored over a whole suite."""

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
    """What is to be expected of `k` trials of a case, averaged over the cases."""

    k: int
    pass_hat: float
    """The chance that all of them pass: pass^k."""
    pass_at: float
    """The chance that at least one does: pass@k."""


def evaluator_summaries(cases: Iterable[Sequence[TrialSummary]]) -> tuple[EvaluatorSummary, ...]:
    """How each evaluator scored, given the trials of each case."""
    rows: dict[str, list[list[ScoreRow]]] = {}
    for trials in cases:
        own: dict[str, list[ScoreRow]] = {}
        for trial in trials:
            for row in trial.scores:
                own.setdefault(row.evaluator, []).append(row)
        for name, found in own.items():
            rows.setdefault(name, []).append(found)
    return tuple(_evaluator(name, found) for name, found in rows.items())


def _evaluator(name: str, cases: Sequence[Sequence[ScoreRow]]) -> EvaluatorSummary:
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
    by_case: Mapping[str, Sequence[TrialSummary]], repeats: int, chance: Callable[[int, int, int], float]
) -> float | None:
    """Averaged over the cases that were repeated and measured each time."""
    if repeats < 2:
        return None
    settled = ([t for t in group if t.outcome in (PASSED, FAILED)] for group in by_case.values())
    return mean(
        chance(sum(t.outcome is PASSED for t in group), len(group), repeats)
        for group in settled
        if len(group) == repeats
    )


def reliability_by_trials(by_case: Mapping[str, Sequence[TrialSummary]], repeats: int) -> tuple[Reliability, ...]:
    """For each k from 1 to the repeats, over the same cases; each from the one before, as C(c, k) / C(n, k) is."""
    if repeats < 2:
        return ()
    settled = ([t.outcome is PASSED for t in group if t.outcome in (PASSED, FAILED)] for group in by_case.values())
    alike = Counter(sum(passed) for passed in settled if len(passed) == repeats)
    if not alike:
        return ()
    all_pass, none_passes = dict.fromkeys(alike, 1.0), dict.fromkeys(alike, 1.0)
    found: list[Reliability] = []
    for k in range(1, repeats + 1):
        for passed in alike:
            all_pass[passed] *= max(0, passed - k + 1) / (repeats - k + 1)
            none_passes[passed] *= max(0, repeats - passed - k + 1) / (repeats - k + 1)
        every = alike.total()
        hat = math.fsum(all_pass[passed] * count for passed, count in alike.items()) / every
        none = math.fsum(none_passes[passed] * count for passed, count in alike.items()) / every
        found.append(Reliability(k, hat, 1 - none))
    return tuple(found)
