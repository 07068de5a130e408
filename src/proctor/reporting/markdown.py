"""The whole run as one Markdown document: summary, mean scores, then every trial."""

from __future__ import annotations

from typing import TextIO

from proctor.reporting.by_suite import informing, suites_with_trials
from proctor.reporting.judges import correction_lines, judge_lines
from proctor.reporting.markdown_text import MARKS, code, inline, row, table_head
from proctor.reporting.markdown_trial import write_trial
from proctor.reporting.wording import counted, counts_text, duration, money, share, when
from proctor.results.model import Outcome, Run
from proctor.results.verdict import EvaluatorSummary, RunVerdict, SuiteVerdict

TITLES = {
    Outcome.PASSED: "Passed",
    Outcome.FAILED: "Failed",
    Outcome.ERROR: "Errors",
    Outcome.SKIPPED: "Skipped",
    Outcome.PENDING: "Pending",
}


def write(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """Write the report, one trial at a time."""
    _write_header(run, verdict, out)
    _write_summary(run, verdict, out)
    _write_means(run, verdict, out)
    out.write("---\n\n## Test results\n\n")
    for info, judged, trials in suites_with_trials(run, verdict):
        out.write(f"### Suite: {inline(judged.name)} {MARKS[judged.outcome]}\n\n")
        out.write(f"{inline(judged.reason)}{_reliability(judged)}\n\n")
        if info.path:
            out.write(f"File {code(info.path)}, agent {code(info.agent)}\n\n")
        for trial in trials:
            write_trial(trial, out)
    out.write("---\n\n## Report summary\n\n")
    out.write(f"**{MARKS[verdict.outcome]}**: {inline(verdict.reason)} ({counts_text(verdict.counts)})\n")


def _write_header(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    agents = list(dict.fromkeys(info.agent for info in run.suites if info.agent))
    files = list(dict.fromkeys(info.path for info in run.suites if info.path))
    environment = dict(run.environment)
    version = environment.pop("proctor_version", "not recorded")
    out.write(f"# Test report: {inline(', '.join(agents) or 'no agent')}\n\n")
    out.write(f"**{MARKS[verdict.outcome]}**: {inline(verdict.reason)}\n\n")
    for title, values in (
        ("Configuration", [code(file) for file in files]),
        ("Generated", [when(run.started_at if run.finished_at is None else run.finished_at)]),
        ("Run", [code(run.id)]),
        ("Proctor version", [inline(version)]),
        ("Environment", [inline(f"{name.removesuffix('_version')} {value}") for name, value in environment.items()]),
    ):
        if values:
            out.write(f"- **{title}:** {', '.join(values)}\n")
    if run.interrupted:
        out.write("- **Interrupted:** not all planned trials were made\n")
    if run.note:
        out.write(f"- **Note:** {inline(run.note)}\n")
    out.write("\n")


def _write_summary(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    out.write("## Summary\n\n")
    out.write(table_head("Measure", "Value"))
    out.write(row("Total trials", f"{len(run.summaries):,}"))
    for outcome, title in TITLES.items():
        out.write(row(title, f"{verdict.counts.get(outcome, 0):,}"))
    for suite in verdict.suites:
        title = "Pass rate" if len(verdict.suites) == 1 else f"Pass rate of {inline(suite.name)}"
        rate = "not measured" if suite.pass_rate is None else f"{share(suite.pass_rate)} of {_settled(suite)}"
        out.write(row(title, rate))
    if run.finished_at is not None:
        out.write(row("Duration", duration(max(0.0, run.finished_at - run.started_at) * 1000)))
    out.write(row("Agent time", duration(sum(summary.duration_ms for summary in run.summaries))))
    if verdict.tokens is not None:
        out.write(row("Tokens", f"{verdict.tokens:,}"))
    if verdict.cost_usd is not None:
        out.write(row("Cost", money(verdict.cost_usd).replace("<", "&lt;")))
    for model, text in judge_lines(run):
        title = "Not counted" if model == "not counted" else f"Judge {inline(model)}"
        out.write(row(title, inline(text)))
    for text in correction_lines(run):
        out.write(row("Corrected pass rate", inline(text)))
    out.write("\nIntervals in brackets are 95 % intervals. Pass rates count the cases that have a verdict.\n\n")


def _write_means(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    if not any(suite.evaluators for suite in verdict.suites):
        return
    informs = informing(run)
    out.write("### Mean scores\n\n")
    out.write(table_head("Suite", "Evaluator", "Mean score", "Threshold", *TITLES.values()))
    for suite in verdict.suites:
        for item in suite.evaluators:
            out.write(_mean_row(suite.name, item, (suite.name, item.evaluator) in informs))
    out.write("\n")


def _mean_row(suite: str, item: EvaluatorSummary, informs: bool) -> str:
    mean = "not measured" if item.scores is None else str(item.scores)
    threshold = "informs" if informs else "" if item.threshold is None else f"{item.threshold:g}"
    counts = (item.passed, item.failed, item.errors, item.skipped, item.pending)
    return row(inline(suite), inline(item.evaluator), mean, threshold, *(f"{count:,}" for count in counts))


def _settled(suite: SuiteVerdict) -> str:
    return counted(0 if suite.pass_rate is None else suite.pass_rate.count, "case")


def _reliability(suite: SuiteVerdict) -> str:
    if suite.pass_hat_k is None or suite.pass_at_k is None:
        return ""
    k = suite.repeats
    return f"; over {k} repeats, pass^{k} is {suite.pass_hat_k:.2f} and pass@{k} is {suite.pass_at_k:.2f}"
