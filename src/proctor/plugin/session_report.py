"""The output of a session: details of failed tests, and a summary of all suites at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.plugin.items import TrialItem
from proctor.plugin.session_run import ProcessSummary
from proctor.reporting.failed_run import trial_details
from proctor.reporting.judge_report import judge_lines
from proctor.reporting.terminal.screen import escape_line, escape_unencodable
from proctor.reporting.wording import STYLES, counts_text, money, pass_rate_text, plural
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict, SuiteVerdict
from proctor.running.assertions.agent_runner import AgentRun


def complete_report(
    report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[None], last_run: AgentRun | None
) -> None:
    """Set the agent's time as the duration of a trial, and add the last run of a failed test."""
    if isinstance(item, TrialItem):
        if call.excinfo is not None and report.when == "setup" and report.failed:
            report.longrepr = item.repr_failure(call.excinfo)  # pytest itself calls it only for the call phase
        if item.trial is not None and report.when in ("setup", "call"):
            report.duration = item.trial.duration_ms / 1000 if report.when == "setup" else 0.0
    elif report.when == "call" and report.failed and last_run is not None:
        trial = last_run.trial
        report.sections.append((f"case {escape_line(trial.case.id)}", trial_details(trial, verbose=True)))


def print_summary(
    terminal: Any,
    result: tuple[Run, RunVerdict] | None,
    summaries: Sequence[ProcessSummary],
    folder: Path,
    problem: str,
) -> None:
    """Print the short section at the end of pytest's output; nothing if no agent was tested."""
    reused = _count_reused(summaries)
    reused_line = f"{plural(reused, 'answer')} reused from earlier sessions (--proctor-reuse)" if reused else ""
    reruns = sum(summary.rerun_trials for summary in summaries)
    lines: list[tuple[str, dict[str, bool]]] = []
    if result is not None:
        run, verdict = result
        lines += [(_suite_line(suite), {}) for suite in verdict.suites]
        lines += [(_totals(verdict), {}), *((text, {}) for text in _judge_lines(run))]
        lines += [(reused_line, {})] if reused_line else []
        lines += [(f"{plural(reruns, 'trial')} re-run by pytest; the last answer counts", {})] if reruns else []
        lines += [(str(verdict), _markup(verdict))]
        if verdict.counts[Outcome.ERROR]:
            lines.append(("run only what did not pass again: pytest --last-failed", {}))
        lines += [(f"saved to {folder}; show again: proctor show {run.id}", {})]
    elif reused_line:
        lines.append((reused_line, {}))
    if problem:
        lines.append((f"the results could not be summarized: {problem}", {"red": True}))
    if lines:
        terminal.section("proctor", sep="-")
    encoding = getattr(terminal._tw._file, "encoding", None)
    for text, markup in lines:
        terminal.line(escape_unencodable(escape_line(text), encoding), **markup)


def _count_reused(summaries: Sequence[ProcessSummary]) -> int:
    """The number of reused answers; one that a suite and tests use, in any process, counts once."""
    reused = {(question, suite) for summary in summaries for question, suite in summary.reused}
    by_suites = {question for question, suite in reused if suite}
    return sum(1 for question, suite in reused if suite or question not in by_suites)


def _suite_line(suite: SuiteVerdict) -> str:
    rate = "" if suite.pass_rate is None else f"; pass rate {pass_rate_text(suite.pass_rate)} (95% interval)"
    return f"{suite.name}: {counts_text(suite.counts)}{rate}"


def _totals(verdict: RunVerdict) -> str:
    parts = [plural(sum(verdict.counts.values()), "trial")]
    parts += [] if verdict.tokens is None else [plural(verdict.tokens, "token")]
    parts += [] if verdict.cost_usd is None else [money(verdict.cost_usd, estimated=verdict.estimated)]
    return ", ".join(parts)


def _judge_lines(run: Run) -> list[str]:
    lines = [f"judge {model}: {text}" for model, text in judge_lines(run)]
    return [*lines, run.unpriced_note] if run.unpriced_note else lines


def _markup(verdict: RunVerdict) -> dict[str, bool]:
    return {word: True for word in STYLES[verdict.outcome].split() if word in ("bold", "red", "green", "yellow")}
