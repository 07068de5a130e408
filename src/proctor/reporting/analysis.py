"""Analyzes a run: the causes of failures, the spread of scores, flaky cases, and what is slow or expensive.

`analyze` computes it without a model; `write_markdown` and `analysis_data` present it (`proctor show --analyze`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import TextIO

from proctor.agents.reply import Usage
from proctor.base.json_data import Json, to_json
from proctor.reporting.failure_causes import FailureCause, FailureCauses, TrialReference
from proctor.reporting.markdown.escaping import code, inline
from proctor.reporting.wording import counts_text, duration, money, pass_rate_text, plural, trial_name
from proctor.results.run import Run
from proctor.results.score import Outcome, ScoreRow
from proctor.results.statistics import Estimate, estimate, mean
from proctor.results.trial import TrialSummary
from proctor.results.verdict import CaseVerdict, RunVerdict, verdict_word

MAX_LISTED_CASES = 10


@dataclass(frozen=True, slots=True)
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
    """The standard deviation of the scores; `None` for fewer than two."""
    threshold: float | None


@dataclass(frozen=True, slots=True)
class CaseCost:
    """The average time, tokens and cost of one trial of a case."""

    suite: str
    case_id: str
    trials: int
    mean_ms: float
    longest_ms: float
    tokens: float | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class FlakyCase:
    """A case that passed in some trials and failed in others."""

    suite: str
    case_id: str
    passed: int
    failed: int
    evaluators: tuple[str, ...]
    """Those that passed in some trials and failed in others."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Time, tokens and cost of the whole run."""

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


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of a run. The fields are also the keys of its JSON."""

    run: str
    outcome: Outcome
    reason: str
    suites: tuple[str, ...]
    totals: Totals
    evaluators: tuple[EvaluatorStatistics, ...]
    clusters: tuple[FailureCause, ...]
    flaky: tuple[FlakyCase, ...]
    repeated: int
    """How many cases ran more than once."""
    slowest: tuple[CaseCost, ...]
    most_expensive: tuple[CaseCost, ...]
    """By cost, or by tokens if no cost is known."""


def analyze(run: Run, verdict: RunVerdict) -> Analysis:
    """Analyze a finished run, reading its trials once, one at a time."""
    causes = FailureCauses()
    usage: Usage | None = None
    for trial in run.trials:
        causes.add(trial)
        if (trial_usage := trial.usage) is not None:
            usage = trial_usage if usage is None else usage + trial_usage
    by_case: dict[tuple[str, str], list[TrialSummary]] = {}
    for summary in run.summaries:
        by_case.setdefault((summary.suite, summary.case_id), []).append(summary)
    costs = [_case_cost(trials) for trials in by_case.values()]
    cases = (case for suite in verdict.suites for case in suite.cases)
    flaky = [_flaky(case, by_case[case.suite, case.case_id]) for case in cases if case.is_flaky]
    return Analysis(
        run=run.id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        suites=tuple(suite.name for suite in verdict.suites),
        totals=_totals(run, verdict, usage),
        evaluators=tuple(_evaluators(run.summaries)),
        clusters=causes.causes(),
        flaky=tuple(sorted(flaky, key=lambda case: abs(case.passed - case.failed))),
        repeated=sum(len(trials) > 1 for trials in by_case.values()),
        slowest=_top_cases(costs, lambda cost: cost.mean_ms),
        most_expensive=_top_cases(costs, _cost_measure(costs)),
    )


def analysis_data(analysis: Analysis) -> dict[str, Json]:
    """The analysis as JSON."""
    data = to_json(analysis)
    data["outcome"] = verdict_word(analysis.outcome)
    return {**data, "dearest": data["most_expensive"]}  # "dearest": the name of earlier releases


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
    decided = [(case, row) for case, row in rows if row.outcome in (Outcome.PASSED, Outcome.FAILED)]
    scored = [(case, row.value) for case, row in rows if row.value is not None and math.isfinite(row.value)]
    values = [value for _, value in scored]
    thresholds = {row.threshold for _, row in rows}
    return EvaluatorStatistics(
        suite=suite,
        evaluator=evaluator,
        counts={outcome: sum(row.outcome is outcome for _, row in rows) for outcome in Outcome},
        pass_rate=estimate(
            [float(row.outcome is Outcome.PASSED) for _, row in decided], groups=[case for case, _ in decided]
        ),
        mean=estimate(values, groups=[case for case, _ in scored]),
        minimum=min(values, default=None),
        maximum=max(values, default=None),
        deviation=stdev(values) if len(values) > 1 else None,
        threshold=thresholds.pop() if len(thresholds) == 1 else None,
    )


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed."""
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


def _cost_measure(costs: Iterable[CaseCost]) -> Callable[[CaseCost], float | None]:
    if any(cost.cost_usd is not None for cost in costs):
        return lambda cost: cost.cost_usd
    return lambda cost: cost.tokens


def _top_cases(costs: Sequence[CaseCost], measure: Callable[[CaseCost], float | None]) -> tuple[CaseCost, ...]:
    ranked = [(amount, cost) for cost in costs if (amount := measure(cost))]
    return tuple(cost for _, cost in heapq.nlargest(MAX_LISTED_CASES, ranked, key=lambda pair: pair[0]))


def _flaky(case: CaseVerdict, trials: Sequence[TrialSummary]) -> FlakyCase:
    results: dict[str, set[bool]] = {}
    for trial in trials:
        failing = {row.evaluator for row in trial.scores if row.outcome is Outcome.FAILED}
        for row in trial.scores:
            if row.outcome in (Outcome.PASSED, Outcome.FAILED):
                results.setdefault(row.evaluator, set()).add(row.evaluator not in failing)
    varying = tuple(name for name, values in results.items() if len(values) > 1)
    return FlakyCase(case.suite, case.case_id, case.passed, case.failed, varying)


def _finite(numbers: Iterable[float]) -> list[float]:
    return [number for number in numbers if math.isfinite(number)]


MAX_COLUMN_WIDTH = 48
"""A column is as wide as its longest cell up to this; longer cells stick out."""
MAX_CAUSES = 20


def write_markdown(analysis: Analysis, out: TextIO) -> None:
    """Write the whole analysis."""
    out.write(f"# Analysis of run {inline(analysis.run)}\n\n")
    out.write(f"**{verdict_word(analysis.outcome).upper()}**: {inline(analysis.reason)}\n\n")
    named = len(analysis.suites) > 1
    _write_totals(analysis.totals, out)
    _write_causes(analysis, named, out)
    _write_evaluators(analysis.evaluators, named, out)
    _write_flaky(analysis, named, out)
    _write_costs("Slowest cases", analysis.slowest, named, out)
    _write_costs("Most expensive cases", analysis.most_expensive, named, out)


def _write_totals(totals: Totals, out: TextIO) -> None:
    out.write("## Totals\n\n")
    lines = [("Trials", f"{totals.trials:,} ({counts_text(totals.outcomes)})")]
    if totals.elapsed_ms is not None:
        lines.append(("Time", duration(totals.elapsed_ms)))
    times = (("mean", totals.mean_ms), ("median", totals.median_ms), ("95th percentile", totals.p95_ms))
    spread = ", ".join(f"{name} {duration(value)}" for name, value in times if value is not None)
    lines.append(("Agent time", duration(totals.agent_ms) + (f"; per trial: {spread}" if spread else "")))
    if totals.tokens is not None:
        lines.append(("Tokens", _tokens(totals)))
    if totals.usage is not None and totals.usage.model_calls is not None:
        lines.append(("Model calls", f"{totals.usage.model_calls:,}"))
    if totals.cost_usd is not None:
        per_trial = f"; {money(totals.cost_usd / totals.trials)} per trial" if totals.trials else ""
        lines.append(("Cost", _cell(f"{money(totals.cost_usd)}{per_trial}")))
    out.writelines(f"- **{name}:** {text}\n" for name, text in lines)
    out.write("\n")


def _tokens(totals: Totals) -> str:
    usage = totals.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return f"{totals.tokens:,}"
    return f"{totals.tokens:,} ({usage.input_tokens:,} in, {usage.output_tokens:,} out)"


def _write_causes(analysis: Analysis, named: bool, out: TextIO) -> None:
    out.write("## Failures by cause\n\n")
    if not analysis.clusters:
        out.write("No failures and no errors.\n\n")
        return
    count = sum(cause.trials for cause in analysis.clusters)
    causes = plural(len(analysis.clusters), "cause")
    out.write(f"{plural(count, 'trial')} did not pass, for {causes}.\n\n")
    for number, cause in enumerate(analysis.clusters[:MAX_CAUSES], 1):
        _write_cause(number, cause, named, out)
    if len(analysis.clusters) > MAX_CAUSES:
        rest = analysis.clusters[MAX_CAUSES:]
        out.write(f"And {plural(len(rest), 'more cause')} ({plural(sum(c.trials for c in rest), 'trial')}).\n\n")


def _write_cause(number: int, cause: FailureCause, named: bool, out: TextIO) -> None:
    title = f"{cause.tool} {cause.cause}" if cause.tool and _is_of_tool(cause) else cause.cause
    size = f"{plural(cause.trials, 'trial')} of {plural(cause.cases, 'case')}"
    out.write(f"### {number}. {inline(title) or 'no reason'}: {size}\n\n")
    lines = [("Outcome", cause.outcome.value)]
    if cause.evaluators:
        lines.append(("Evaluators", inline(", ".join(cause.evaluators))))
    if cause.tool:
        lines.append(("Tool", inline(cause.tool)))
    if cause.turn is not None:
        lines.append(("Turn", str(cause.turn + 1)))
    more = cause.trials - len(cause.examples)
    examples = ", ".join(_trial(name, named) for name in cause.examples)
    lines.append(("Trials", f"{examples} and {more:,} more" if more else examples))
    if cause.sample:
        lines.append(("Example", code(cause.sample)))
    out.writelines(f"- **{name}:** {text}\n" for name, text in lines)
    out.write("\n")


def _is_of_tool(cause: FailureCause) -> bool:
    return cause.cause.startswith(("was ", "raised "))


def _trial(name: TrialReference, named: bool) -> str:
    place = trial_name(name.case_id, name.number)
    return inline(f"{name.suite}/{place}" if named else place)


def _write_evaluators(evaluators: Sequence[EvaluatorStatistics], named: bool, out: TextIO) -> None:
    out.write("## Evaluators\n\n")
    if not evaluators:
        out.write("No scores.\n\n")
        return
    heads = ["Suite", "Evaluator", "Pass rate", "Mean score", "Min", "Max", "Std dev", "Threshold", "Not scored"]
    rows = [
        [
            inline(item.suite) if named else "",
            inline(item.evaluator),
            "" if item.pass_rate is None else pass_rate_text(item.pass_rate),
            "" if item.mean is None else str(item.mean),
            *(_number(value) for value in (item.minimum, item.maximum, item.deviation)),
            "varies" if item.threshold is None else f"{item.threshold:g}",
            _unscored_text(item),
        ]
        for item in evaluators
    ]
    _write_table(heads, rows, out)
    out.write("Numbers in brackets are 95 % intervals, in which each case counts once, however many trials it has.\n\n")


def _unscored_text(item: EvaluatorStatistics) -> str:
    counts = {outcome: item.counts[outcome] for outcome in (Outcome.ERROR, Outcome.SKIPPED, Outcome.PENDING)}
    return counts_text(counts) if any(counts.values()) else ""


def _write_flaky(analysis: Analysis, named: bool, out: TextIO) -> None:
    out.write("## Flaky cases\n\n")
    if not analysis.repeated:
        out.write("Every case ran once; `--repeat` shows which ones are flaky.\n\n")
        return
    if not analysis.flaky:
        out.write(f"None: {plural(analysis.repeated, 'case')} had the same outcome in every trial.\n\n")
        return
    rows = []
    for case in analysis.flaky:
        passed = f"{case.passed}/{case.passed + case.failed}"
        suite = inline(case.suite) if named else ""
        rows.append([suite, inline(case.case_id), passed, inline(", ".join(case.evaluators))])
    _write_table(["Suite", "Case", "Passed", "Evaluators that vary"], rows, out)


def _write_costs(title: str, costs: Sequence[CaseCost], named: bool, out: TextIO) -> None:
    if not costs:
        return
    out.write(f"## {title}\n\n")
    rows = [
        [
            inline(cost.suite) if named else "",
            inline(cost.case_id),
            f"{cost.trials:,}",
            duration(cost.mean_ms),
            duration(cost.longest_ms),
            "" if cost.tokens is None else f"{cost.tokens:,.0f}",
            "" if cost.cost_usd is None else _cell(money(cost.cost_usd)),
        ]
        for cost in costs
    ]
    _write_table(["Suite", "Case", "Trials", "Mean time", "Longest", "Tokens", "Cost"], rows, out)


def _write_table(heads: Sequence[str], rows: Sequence[Sequence[str]], out: TextIO) -> None:
    """Write a Markdown table without the columns that are empty in every row."""
    columns = [index for index in range(len(heads)) if any(row[index] for row in rows)]
    widths = {i: min(MAX_COLUMN_WIDTH, max(len(heads[i]), *(len(row[i]) for row in rows))) for i in columns}

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |\n"

    out.write(line(heads[i].ljust(widths[i]) for i in columns))
    out.write(line("-" * widths[i] for i in columns))
    out.writelines(line(row[i].ljust(widths[i]) for i in columns) for row in rows)
    out.write("\n")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _cell(text: str) -> str:
    return text.replace("<", "&lt;")
