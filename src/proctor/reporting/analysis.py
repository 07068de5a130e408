"""What a run says on a second look: where scores spread, what failures have in common, what varies, what costs most.

No model is asked: the same run always gives the same analysis.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence

from proctor.agents.agent import Usage
from proctor.base.records import record
from proctor.reporting.clusters import Cluster, Clustering
from proctor.results.run import Outcome, Run, ScoreRow, TrialSummary
from proctor.results.statistics import Estimate, estimate, mean
from proctor.results.verdict import RunVerdict

MOST_LISTED = 10


@record
class EvaluatorStatistics:
    """How one evaluator scored a suite; intervals count each case once."""

    suite: str
    evaluator: str
    counts: dict[Outcome, int]
    pass_rate: Estimate | None
    mean: Estimate | None
    minimum: float | None
    maximum: float | None
    deviation: float | None
    """The standard deviation of the scores; `None` of fewer than two."""
    threshold: float | None


@record
class CaseCost:
    """What one trial of a case takes on average."""

    suite: str
    case_id: str
    trials: int
    mean_ms: float
    longest_ms: float
    tokens: float | None
    cost_usd: float | None


@record
class FlakyCase:
    """A case that passed in some trials and failed in others."""

    suite: str
    case_id: str
    passed: int
    failed: int
    evaluators: tuple[str, ...]
    """Those that changed their mind."""


@record
class Totals:
    """Time, tokens and money of the whole run."""

    trials: int
    outcomes: dict[Outcome, int]
    elapsed_ms: float | None
    agent_ms: float
    mean_ms: float | None
    median_ms: float | None
    p95_ms: float | None
    usage: Usage | None
    tokens: int | None
    cost_usd: float | None


@record
class Analysis:
    """Everything there is to say without asking a model."""

    run: str
    outcome: Outcome
    reason: str
    suites: tuple[str, ...]
    totals: Totals
    evaluators: tuple[EvaluatorStatistics, ...]
    clusters: tuple[Cluster, ...]
    flaky: tuple[FlakyCase, ...]
    repeated: int
    """How many cases were tried more than once, and so could vary."""
    slowest: tuple[CaseCost, ...]
    dearest: tuple[CaseCost, ...]
    """By cost, or by tokens where no cost is known."""


def analyse(run: Run, verdict: RunVerdict) -> Analysis:
    """Look at a finished run; reads its trials once, one at a time."""
    clustering = Clustering()
    usage: Usage | None = None
    for trial in run.trials:
        clustering.add(trial)
        if (own := trial.usage) is not None:
            usage = own if usage is None else usage + own
    by_case: dict[tuple[str, str], list[TrialSummary]] = {}
    for summary in run.summaries:
        by_case.setdefault((summary.suite, summary.case_id), []).append(summary)
    costs = [_case_cost(trials) for trials in by_case.values()]
    return Analysis(
        run=run.id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        suites=tuple(suite.name for suite in verdict.suites),
        totals=_totals(run, verdict, usage),
        evaluators=tuple(_evaluators(run.summaries)),
        clusters=clustering.clusters(),
        flaky=tuple(
            sorted(filter(None, map(_flaky, by_case.values())), key=lambda case: abs(case.passed - case.failed))
        ),
        repeated=sum(len(trials) > 1 for trials in by_case.values()),
        slowest=_most(costs, lambda cost: cost.mean_ms),
        dearest=_most(costs, _price(costs)),
    )


def _totals(run: Run, verdict: RunVerdict, usage: Usage | None) -> Totals:
    times = sorted(_finite(summary.duration_ms for summary in run.summaries))
    elapsed = None if run.finished_at is None else max(0.0, run.finished_at - run.started_at) * 1000
    return Totals(
        trials=len(run.summaries),
        outcomes=verdict.counts,
        elapsed_ms=elapsed,
        agent_ms=math.fsum(times),
        mean_ms=mean(times),
        median_ms=_quantile(times, 0.5),
        p95_ms=_quantile(times, 0.95),
        usage=usage,
        tokens=verdict.tokens,
        cost_usd=verdict.cost_usd,
    )


def _evaluators(summaries: Iterable[TrialSummary]) -> Iterable[EvaluatorStatistics]:
    rows: dict[tuple[str, str], list[tuple[str, ScoreRow]]] = {}
    for summary in summaries:
        for row in summary.scores:
            rows.setdefault((summary.suite, row.evaluator), []).append((summary.case_id, row))
    for (suite, evaluator), group in rows.items():
        yield _statistics(suite, evaluator, group)


def _statistics(suite: str, evaluator: str, rows: Sequence[tuple[str, ScoreRow]]) -> EvaluatorStatistics:
    settled = [(case, row) for case, row in rows if row.outcome in (Outcome.PASSED, Outcome.FAILED)]
    scored = [(case, row.value) for case, row in rows if row.value is not None and math.isfinite(row.value)]
    values = [value for _, value in scored]
    thresholds = {row.threshold for _, row in rows}
    return EvaluatorStatistics(
        suite=suite,
        evaluator=evaluator,
        counts={outcome: sum(row.outcome is outcome for _, row in rows) for outcome in Outcome},
        pass_rate=estimate(
            [float(row.outcome is Outcome.PASSED) for _, row in settled], groups=[case for case, _ in settled]
        ),
        mean=estimate(values, groups=[case for case, _ in scored]),
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        deviation=_deviation(values),
        threshold=thresholds.pop() if len(thresholds) == 1 else None,
    )


def _deviation(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of all do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _case_cost(trials: Sequence[TrialSummary]) -> CaseCost:
    times = _finite(trial.duration_ms for trial in trials)
    return CaseCost(
        suite=trials[0].suite,
        case_id=trials[0].case_id,
        trials=len(trials),
        mean_ms=mean(times) or 0.0,
        longest_ms=max(times, default=0.0),
        tokens=mean(trial.tokens for trial in trials if trial.tokens is not None),
        cost_usd=mean(_finite(trial.cost_usd for trial in trials if trial.cost_usd is not None)),
    )


def _price(costs: Iterable[CaseCost]) -> Callable[[CaseCost], float | None]:
    if any(cost.cost_usd is not None for cost in costs):
        return lambda cost: cost.cost_usd
    return lambda cost: cost.tokens


def _most(costs: Sequence[CaseCost], measure: Callable[[CaseCost], float | None]) -> tuple[CaseCost, ...]:
    known = [(amount, cost) for cost in costs if (amount := measure(cost))]
    return tuple(cost for _, cost in heapq.nlargest(MOST_LISTED, known, key=lambda pair: pair[0]))


def _flaky(trials: Sequence[TrialSummary]) -> FlakyCase | None:
    outcomes = [trial.outcome for trial in trials]
    passed, failed = outcomes.count(Outcome.PASSED), outcomes.count(Outcome.FAILED)
    if not passed or not failed:
        return None
    verdicts: dict[str, set[bool]] = {}
    for trial in trials:
        failing = {row.evaluator for row in trial.scores if row.outcome is Outcome.FAILED}
        for row in trial.scores:
            if row.outcome in (Outcome.PASSED, Outcome.FAILED):
                verdicts.setdefault(row.evaluator, set()).add(row.evaluator not in failing)
    changed = tuple(name for name, seen in verdicts.items() if len(seen) > 1)
    return FlakyCase(trials[0].suite, trials[0].case_id, passed, failed, changed)


def _finite(numbers: Iterable[float]) -> list[float]:
    return [number for number in numbers if math.isfinite(number)]
