"""The page that GitHub Actions shows for a step: the verdict, a line per suite, and the first failures."""

from __future__ import annotations

from typing import TextIO

from proctor.reporting.explain import one_line_reason
from proctor.reporting.markdown.escaping import MARKS, inline, row, table_head
from proctor.reporting.markdown.report import write_gate
from proctor.reporting.wording import counted, counts_text, duration, money, share, trial_name
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.verdict import RunVerdict

FAILURES_SHOWN = 20
SUITES_SHOWN = 200
TEXT = 300
"""With these, the page stays far below the 1 MiB that GitHub accepts."""


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the page; only as many trials are read as it takes to find the failures shown."""
    out.write(f"## Proctor: {MARKS[verdict.outcome]}\n\n{inline(verdict.reason, TEXT)}\n\n")
    out.write(f"{_totals(run, verdict)}\n\n")
    _write_suites(verdict, out)
    write_gate(run, verdict, out)
    _write_failures(run, verdict, out)


def _totals(run: Run, verdict: RunVerdict) -> str:
    parts = [f"{counted(len(run.summaries), 'trial')}: {counts_text(verdict.counts)}"]
    if run.finished_at is not None:
        parts.append(duration(max(0.0, run.finished_at - run.started_at) * 1000))
    if verdict.tokens is not None:
        parts.append(counted(verdict.tokens, "token"))
    if verdict.cost_usd is not None:
        parts.append(inline(money(verdict.cost_usd, estimated=verdict.estimated)))
    return " · ".join(parts)


def _write_suites(verdict: RunVerdict, out: TextIO) -> None:
    if not verdict.suites:
        return
    out.write(table_head("Suite", "Verdict", "Cases", "Pass rate [95 %]", "Mean scores"))
    for suite in verdict.suites[:SUITES_SHOWN]:
        rate = "not measured" if suite.pass_rate is None else share(suite.pass_rate)
        means = [f"{item.evaluator} {item.scores.mean:.2f}" for item in suite.evaluators if item.scores is not None]
        cells = (inline(suite.name, TEXT), MARKS[suite.outcome], counts_text(suite.counts), rate)
        out.write(row(*cells, inline(", ".join(means), TEXT)))
    out.write("\n")
    if len(verdict.suites) > SUITES_SHOWN:
        out.write(f"{len(verdict.suites) - SUITES_SHOWN:,} more suites are not shown.\n\n")


def _write_failures(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    total = verdict.counts.get(Outcome.FAILED, 0) + verdict.counts.get(Outcome.ERROR, 0)
    if not total:
        return
    out.write("### What went wrong\n\n")
    for trial in _worst(run):
        name = inline(f"{trial.suite}/{trial_name(trial.case.id, trial.number)}", TEXT)
        reason = inline(one_line_reason(trial, TEXT))
        out.write(f"- {MARKS[trial.outcome]} **{name}**{': ' if reason else ''}{reason}\n")
    if total > FAILURES_SHOWN:
        out.write(f"\nand {total - FAILURES_SHOWN:,} more.\n")
    out.write("\n")


def _worst(run: Run) -> list[TrialResult]:
    """The first failures in the order of the plan, and errors if there is room left."""
    bad = [summary for summary in run.summaries if summary.outcome in (Outcome.FAILED, Outcome.ERROR)]
    bad.sort(key=lambda summary: (summary.outcome is Outcome.ERROR, summary.position))
    wanted = {summary.position: rank for rank, summary in enumerate(bad[:FAILURES_SHOWN])}
    found: dict[int, TrialResult] = {}
    for trial in run.trials:
        if trial.position in wanted:
            found[wanted[trial.position]] = trial
            if len(found) == len(wanted):
                break
    return [found[rank] for rank in sorted(found)]
