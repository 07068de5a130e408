"""The analysis of a run as Markdown whose tables line up, so that it reads well on a terminal too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from proctor.reporting.analysis import Analysis, CaseCost, EvaluatorStatistics, Totals
from proctor.reporting.clusters import Cluster, TrialName
from proctor.reporting.markdown.escaping import code, inline
from proctor.reporting.wording import counted, counts_text, duration, money, share, trial_name
from proctor.results.run import Outcome

WIDEST_PADDED = 48
"""A column grows with its longest cell up to this; longer cells stick out alone."""
MOST_CLUSTERS = 20


def write_markdown(analysis: Analysis, out: TextIO) -> None:
    """Write the whole analysis."""
    out.write(f"# Analysis of run {inline(analysis.run)}\n\n")
    out.write(f"**{analysis.outcome.value.upper()}**: {inline(analysis.reason)}\n\n")
    named = len(analysis.suites) > 1
    _write_totals(analysis.totals, out)
    _write_clusters(analysis, named, out)
    _write_evaluators(analysis.evaluators, named, out)
    _write_flaky(analysis, named, out)
    _write_costs("Slowest cases", analysis.slowest, named, out)
    _write_costs("Most expensive cases", analysis.dearest, named, out)


def _write_totals(totals: Totals, out: TextIO) -> None:
    out.write("## Totals\n\n")
    lines = [("Trials", f"{totals.trials:,} ({counts_text(totals.outcomes)})")]
    if totals.elapsed_ms is not None:
        lines.append(("Time", duration(totals.elapsed_ms)))
    times = (("mean", totals.mean_ms), ("median", totals.median_ms), ("95 % within", totals.p95_ms))
    spread = ", ".join(f"{name} {duration(value)}" for name, value in times if value is not None)
    lines.append(("Agent time", duration(totals.agent_ms) + (f"; a trial: {spread}" if spread else "")))
    if totals.tokens is not None:
        lines.append(("Tokens", _tokens(totals)))
    if totals.usage is not None and totals.usage.model_calls is not None:
        lines.append(("Model calls", f"{totals.usage.model_calls:,}"))
    if totals.cost_usd is not None:
        each = f"; {money(totals.cost_usd / totals.trials)} a trial" if totals.trials else ""
        lines.append(("Cost", _cell(f"{money(totals.cost_usd)}{each}")))
    out.writelines(f"- **{name}:** {text}\n" for name, text in lines)
    out.write("\n")


def _tokens(totals: Totals) -> str:
    usage = totals.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return f"{totals.tokens:,}"
    return f"{totals.tokens:,} ({usage.input_tokens:,} in, {usage.output_tokens:,} out)"


def _write_clusters(analysis: Analysis, named: bool, out: TextIO) -> None:
    out.write("## What went wrong\n\n")
    if not analysis.clusters:
        out.write("Nothing failed and nothing broke.\n\n")
        return
    wrong = sum(cluster.trials for cluster in analysis.clusters)
    ways = counted(len(analysis.clusters), "way")
    out.write(f"{counted(wrong, 'trial')} went wrong in {ways}.\n\n")
    for number, cluster in enumerate(analysis.clusters[:MOST_CLUSTERS], 1):
        _write_cluster(number, cluster, named, out)
    if len(analysis.clusters) > MOST_CLUSTERS:
        rest = analysis.clusters[MOST_CLUSTERS:]
        out.write(f"And {counted(len(rest), 'more way')} ({counted(sum(c.trials for c in rest), 'trial')}).\n\n")


def _write_cluster(number: int, cluster: Cluster, named: bool, out: TextIO) -> None:
    cause = f"{cluster.tool} {cluster.cause}" if cluster.tool and _is_of_tool(cluster) else cluster.cause
    size = f"{counted(cluster.trials, 'trial')} of {counted(cluster.cases, 'case')}"
    out.write(f"### {number}. {inline(cause) or 'no reason given'}: {size}\n\n")
    lines = [("Outcome", cluster.outcome.value)]
    if cluster.evaluators:
        lines.append(("Evaluators", inline(", ".join(cluster.evaluators))))
    if cluster.tool:
        lines.append(("Tool", inline(cluster.tool)))
    if cluster.turn is not None:
        lines.append(("Turn", str(cluster.turn + 1)))
    more = cluster.trials - len(cluster.examples)
    examples = ", ".join(_trial(name, named) for name in cluster.examples)
    lines.append(("Trials", f"{examples} and {more:,} more" if more else examples))
    if cluster.sample:
        lines.append(("For example", code(cluster.sample)))
    out.writelines(f"- **{name}:** {text}\n" for name, text in lines)
    out.write("\n")


def _is_of_tool(cluster: Cluster) -> bool:
    return cluster.cause.startswith(("was ", "raised "))


def _trial(name: TrialName, named: bool) -> str:
    place = trial_name(name.case_id, name.number)
    return inline(f"{name.suite}/{place}" if named else place)


def _write_evaluators(evaluators: Sequence[EvaluatorStatistics], named: bool, out: TextIO) -> None:
    out.write("## Evaluators\n\n")
    if not evaluators:
        out.write("Nothing was scored.\n\n")
        return
    heads = ["Evaluator", "Pass rate", "Mean score", "Least", "Most", "Std dev", "Needs", "Not scored"]
    rows = []
    for item in evaluators:
        cells = [
            inline(item.evaluator),
            "" if item.pass_rate is None else share(item.pass_rate),
            "" if item.mean is None else str(item.mean),
            *(_number(value) for value in (item.minimum, item.maximum, item.deviation)),
            "varies" if item.threshold is None else f"{item.threshold:g}",
            _unscored(item),
        ]
        rows.append([inline(item.suite), *cells] if named else cells)
    _write_table(["Suite", *heads] if named else heads, rows, out)
    out.write("Brackets hold 95 % intervals, in which each case counts once however often it was repeated.\n\n")


def _unscored(item: EvaluatorStatistics) -> str:
    open_ = {outcome: item.counts[outcome] for outcome in (Outcome.ERROR, Outcome.SKIPPED, Outcome.PENDING)}
    return counts_text(open_) if any(open_.values()) else ""


def _write_flaky(analysis: Analysis, named: bool, out: TextIO) -> None:
    out.write("## Cases that vary\n\n")
    if not analysis.repeated:
        out.write("No case was repeated; `--repeat` shows which ones vary.\n\n")
        return
    if not analysis.flaky:
        out.write(f"None: {counted(analysis.repeated, 'case')} ended the same way every time.\n\n")
        return
    rows = []
    for case in analysis.flaky:
        passed = f"{case.passed} of {case.passed + case.failed}"
        cells = [inline(case.case_id), passed, inline(", ".join(case.evaluators))]
        rows.append([inline(case.suite), *cells] if named else cells)
    heads = ["Case", "Passed", "Evaluators that changed"]
    _write_table(["Suite", *heads] if named else heads, rows, out)


def _write_costs(title: str, costs: Sequence[CaseCost], named: bool, out: TextIO) -> None:
    if not costs:
        return
    out.write(f"## {title}\n\n")
    rows = []
    for cost in costs:
        cells = [
            inline(cost.case_id),
            f"{cost.trials:,}",
            duration(cost.mean_ms),
            duration(cost.longest_ms),
            "" if cost.tokens is None else f"{cost.tokens:,.0f}",
            "" if cost.cost_usd is None else _cell(money(cost.cost_usd)),
        ]
        rows.append([inline(cost.suite), *cells] if named else cells)
    heads = ["Case", "Trials", "Mean time", "Longest", "Tokens", "Cost"]
    _write_table(["Suite", *heads] if named else heads, rows, out)


def _write_table(heads: Sequence[str], rows: Sequence[Sequence[str]], out: TextIO) -> None:
    """Columns that are empty throughout are left out."""
    kept = [index for index in range(len(heads)) if any(row[index] for row in rows)]
    widths = {i: min(WIDEST_PADDED, max(len(heads[i]), *(len(row[i]) for row in rows))) for i in kept}

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |\n"

    out.write(line(heads[i].ljust(widths[i]) for i in kept))
    out.write(line("-" * widths[i] for i in kept))
    out.writelines(line(row[i].ljust(widths[i]) for i in kept) for row in rows)
    out.write("\n")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _cell(text: str) -> str:
    return text.replace("<", "&lt;")
