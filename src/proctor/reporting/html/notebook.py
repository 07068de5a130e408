"""What a notebook shows: a run, a comparison, and a progress bar. Text of agents is escaped, and no script runs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.reporting import explain
from proctor.reporting.comparison_report import comparison_view
from proctor.reporting.failing_cases import FAILED_OR_ERROR
from proctor.reporting.html import environment
from proctor.reporting.html.run_view import NamedValue
from proctor.reporting.pending_cases import pending_cases
from proctor.reporting.wording import counts_text, duration, money, pass_rate_text, trial_counts_text, trial_name
from proctor.results.comparison.comparison import Comparison
from proctor.results.run import Run
from proctor.results.score import Outcome, worst_outcome
from proctor.results.statistics import mean
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import CaseVerdict, RunVerdict, SuiteVerdict, verdict

MAX_CASES = 100
MAX_FAILURES = 10
FEW_TRIALS = 200
"""With at most this many trials, the progress bar is redrawn after each; with more, a few times per second."""
SECONDS_BETWEEN_UPDATES = 0.2


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """The mean score of an evaluator for a case, and the worst outcome of its scores, which colours the cell."""

    text: str = ""
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """The cases of a suite, those that did not pass first, each with the mean of every evaluator."""

    name: str
    outcome: Outcome
    rate: str
    evaluators: Sequence[str]
    rows: Sequence[tuple[CaseVerdict, Sequence[ScoreCell]]]
    more: int


def run_html(run: Run) -> str:
    """The verdict, why cases did not pass, and each suite with its cases."""
    run_verdict = verdict(run)
    trials: dict[tuple[str, str], list[TrialSummary]] = {}
    for summary in run.summaries:
        trials.setdefault((summary.suite, summary.case_id), []).append(summary)
    failures, more = _failures(run)
    return environment.render_for_others(
        "reporting/templates/notebook_run.html",
        outcome=run_verdict.outcome,
        reason=run_verdict.reason,
        facts=_facts(run, run_verdict),
        suites=[_suite_table(suite, trials) for suite in run_verdict.suites],
        failures=failures,
        more_failures=more,
        pending=pending_cases(run, run_verdict),
    )


def _facts(run: Run, verdict: RunVerdict) -> list[NamedValue]:
    facts = [
        NamedValue("Trials", f"{len(run.summaries):,} ({trial_counts_text(run, verdict)})"),
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
    # Sorting is stable: cases with the same outcome stay in the order of the plan.
    for case in sorted(suite.cases, key=lambda case: case.outcome.rank)[:MAX_CASES]:
        own = trials.get((suite.name, case.case_id), [])
        rows.append((case, [_mean_score(own, name) for name in names]))
    rate = "" if suite.pass_rate is None else pass_rate_text(suite.pass_rate)
    return SuiteTable(suite.name, suite.outcome, rate, names, rows, max(0, len(suite.cases) - MAX_CASES))


def _mean_score(trials: Sequence[TrialSummary], name: str) -> ScoreCell:
    scores = [score for trial in trials for score in trial.scores if score.evaluator == name]
    if not scores:
        return ScoreCell()
    value = mean(score.value for score in scores if score.value is not None)
    worst = worst_outcome(score.outcome for score in scores)
    return ScoreCell(scores[0].outcome.value if value is None else f"{value:.2f}", worst)


def _failures(run: Run) -> tuple[list[tuple[Outcome, str, list[explain.Fact]]], int]:
    """One trial of each of the worst cases that did not pass, explained as on a terminal; and how many more.

    Failures come before errors. Pending cases are listed once, not explained one by one.
    """
    first: dict[tuple[str, str], TrialSummary] = {}
    for summary in sorted(run.summaries, key=lambda summary: (summary.outcome.rank, summary.position)):
        if summary.outcome in FAILED_OR_ERROR:
            first.setdefault((summary.suite, summary.case_id), summary)
    positions = [summary.position for summary in list(first.values())[:MAX_FAILURES]]
    failures = [
        (trial.position, (trial.outcome, trial_name(trial.case.id, trial.number), explain.explain(trial)))
        for trial in (run.trials if positions else ())
        if trial.position in positions
    ]
    failures.sort(key=lambda item: positions.index(item[0]))
    return [view for _, view in failures], len(first) - len(positions)


def comparison_html(comparison: Comparison) -> str:
    """The conclusion, the two runs, and the cases by what changed."""
    view = comparison_view(comparison, limit=MAX_CASES)
    return environment.render_for_others("reporting/templates/notebook_comparison.html", comparison=view)


def is_notebook() -> bool:
    """Whether the code runs in a notebook, which can show HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class NotebookProgress:
    """A listener that shows a progress bar below the cell, and the verdict in its place when the run ends."""

    def __init__(self) -> None:
        self._counts: Counter[Outcome] = Counter()
        self._planned = self._stored = 0
        self._shown_at = 0.0
        self._display: Any = None

    def started(self, run: Run, planned: int, stored: int) -> None:
        from IPython.display import HTML, display

        self._planned, self._stored, self._shown_at = planned, stored, time.monotonic()
        self._display = display(HTML(self._bar()), display_id=True)

    def trial_done(self, trial: Trial) -> None:
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
        done = self._stored + self._counts.total()
        planned = max(1, self._planned, done)
        text = f"{done:,} of {planned:,} trials"
        text += f": {counts_text(self._counts)}" if self._counts else ""
        return _progress(None, text, done / planned)


def _progress(outcome: Outcome | None, reason: str, share: float = 0.0) -> str:
    return environment.render_for_others(
        "reporting/templates/notebook_progress.html", outcome=outcome, reason=reason, share=share
    )
