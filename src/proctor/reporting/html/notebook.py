"""What a notebook shows: a run, a comparison, and a progress bar; every word of an agent is escaped, no script runs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.reporting import explain
from proctor.reporting.comparison_report import comparison_view
from proctor.reporting.html import environment
from proctor.reporting.html.run_view import NamedValue
from proctor.reporting.wording import counts_text, duration, money, pass_rate_text, trial_name
from proctor.results.comparison.comparison import Comparison
from proctor.results.run import Outcome, Run, TrialResult, TrialSummary
from proctor.results.statistics import mean
from proctor.results.verdict import CaseVerdict, RunVerdict, SuiteVerdict, verdict

MAX_CASES = 100
MAX_FAILURES = 10
FEW_TRIALS = 200
"""The bar of a run with so few is redrawn after each; that of a larger one at most every few tenths of a second."""
SECONDS_BETWEEN_UPDATES = 0.2
NOT_PASSED = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING)


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """The cases of a suite, each with the mean of every evaluator."""

    name: str
    outcome: Outcome
    rate: str
    evaluators: Sequence[str]
    rows: Sequence[tuple[CaseVerdict, Sequence[str]]]
    more: int


def run_html(run: Run) -> str:
    """The verdict, each suite with its cases, and why cases did not pass."""
    found = verdict(run)
    trials: dict[tuple[str, str], list[TrialSummary]] = {}
    for summary in run.summaries:
        trials.setdefault((summary.suite, summary.case_id), []).append(summary)
    failures, more = _failures(run)
    return environment.render(
        "reporting/templates/notebook_run.html",
        outcome=found.outcome,
        reason=found.reason,
        facts=_facts(run, found),
        suites=[_suite_table(suite, trials) for suite in found.suites],
        failures=failures,
        more_failures=more,
    )


def _facts(run: Run, verdict: RunVerdict) -> list[NamedValue]:
    facts = [
        NamedValue("Trials", f"{len(run.summaries):,} ({counts_text(verdict.counts)})"),
        NamedValue("Agent time", duration(sum(summary.duration_ms for summary in run.summaries))),
    ]
    if verdict.tokens is not None:
        facts.append(NamedValue("Tokens", f"{verdict.tokens:,}"))
    if verdict.cost_usd is not None:
        facts.append(NamedValue("Cost", money(verdict.cost_usd, estimated=verdict.estimated)))
    return [*facts, NamedValue("Run", run.id, is_code=True)]


def _suite_table(suite: SuiteVerdict, trials: Mapping[tuple[str, str], Sequence[TrialSummary]]) -> SuiteTable:
    names = [item.evaluator for item in suite.evaluators]
    rows = []
    for case in suite.cases[:MAX_CASES]:
        own = trials.get((suite.name, case.case_id), [])
        rows.append((case, [_mean_score(own, name) for name in names]))
    rate = "" if suite.pass_rate is None else pass_rate_text(suite.pass_rate)
    return SuiteTable(suite.name, suite.outcome, rate, names, rows, max(0, len(suite.cases) - MAX_CASES))


def _mean_score(trials: Sequence[TrialSummary], name: str) -> str:
    scores = [score for trial in trials for score in trial.scores if score.evaluator == name]
    value = mean(score.value for score in scores if score.value is not None)
    return f"{value:.2f}" if value is not None else scores[0].outcome.value if scores else ""


def _failures(run: Run) -> tuple[list[tuple[Outcome, str, list[explain.Fact]]], int]:
    """The first trials that did not pass, with what a terminal says of them, each case once; and how many more."""
    first: dict[tuple[str, str], int] = {}
    for summary in run.summaries:
        if summary.outcome in NOT_PASSED:
            first.setdefault((summary.suite, summary.case_id), summary.position)
    shown = set(list(first.values())[:MAX_FAILURES])
    found = [
        (trial.outcome, trial_name(trial.case.id, trial.number), explain.explain(trial))
        for trial in (run.trials if shown else ())
        if trial.position in shown
    ]
    return found, len(first) - len(shown)


def comparison_html(comparison: Comparison) -> str:
    """The sentence, the two runs, and the cases by what became of them."""
    view = comparison_view(comparison, most=MAX_CASES)
    return environment.render("reporting/templates/notebook_comparison.html", comparison=view)


def is_notebook() -> bool:
    """Whether the code runs in a cell of a notebook, which shows HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class NotebookProgress:
    """A bar below the cell while the run lasts; the verdict takes its place when the run ends."""

    def __init__(self) -> None:
        self._counts: Counter[Outcome] = Counter()
        self._planned = self._kept = 0
        self._shown_at = 0.0
        self._display: Any = None

    def started(self, run: Run, planned: int, kept: int) -> None:
        from IPython.display import HTML, display

        self._planned, self._kept, self._shown_at = planned, kept, time.monotonic()
        self._display = display(HTML(self._bar()), display_id=True)

    def trial_done(self, trial: TrialResult) -> None:
        self._counts[trial.outcome] += 1
        if self._planned <= FEW_TRIALS or time.monotonic() - self._shown_at >= SECONDS_BETWEEN_UPDATES:
            self._show(self._bar())

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        self._show(_progress(verdict.outcome, verdict.reason))

    def _show(self, text: str) -> None:
        from IPython.display import HTML

        self._shown_at = time.monotonic()
        if self._display is not None:
            self._display.update(HTML(text))

    def _bar(self) -> str:
        done = self._kept + self._counts.total()
        planned = max(1, self._planned, done)
        told = f"{done:,} of {planned:,} trials"
        told += f": {counts_text(self._counts)}" if self._counts else ""
        return _progress(None, told, done / planned)


def _progress(outcome: Outcome | None, reason: str, share: float = 0.0) -> str:
    return environment.render("reporting/templates/notebook_progress.html", outcome=outcome, reason=reason, share=share)
