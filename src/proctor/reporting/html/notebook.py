"""What a notebook shows: a run, a comparison, and a progress bar; every word of an agent is escaped, no script runs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import Any

from proctor.reporting.comparison_report import TITLES, case_name, change_text, side_text, what_differs
from proctor.reporting.explain import explain
from proctor.reporting.html.escaping import badge, code, escape, facts, inline, percent
from proctor.reporting.wording import counted, counts_text, duration, money, share, trial_name
from proctor.results.comparison.comparison import Comparison, Group
from proctor.results.run import Outcome, Run, TrialResult, TrialSummary
from proctor.results.statistics import mean
from proctor.results.verdict import RunVerdict, SuiteVerdict, judge

CASES_SHOWN = 100
FAILURES_SHOWN = 10
FEW_TRIALS = 200
"""The bar of a run with so few is redrawn after each; that of a larger one at most every few tenths of a second."""
SECONDS_BETWEEN_UPDATES = 0.2
VERDICTS = {
    "regression": Outcome.FAILED,
    "improvement": Outcome.PASSED,
    "no difference": Outcome.PASSED,
    "not comparable": Outcome.ERROR,
}
NOT_PASSED = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING)


def run_html(run: Run) -> str:
    """The verdict, each suite with its cases, and why cases did not pass."""
    verdict = judge(run)
    parts = [f"<p><b>{badge(verdict.outcome)}</b> {inline(verdict.reason, 2_000)}</p>\n", facts(_facts(run, verdict))]
    trials: dict[tuple[str, str], list[TrialSummary]] = {}
    for summary in run.summaries:
        trials.setdefault((summary.suite, summary.case_id), []).append(summary)
    parts += [_suite_html(suite, trials) for suite in verdict.suites]
    parts += _failures(run)
    return _framed(parts)


def _facts(run: Run, verdict: RunVerdict) -> Iterator[tuple[str, str]]:
    yield "Trials", f"{len(run.summaries):,} ({counts_text(verdict.counts)})"
    yield "Agent time", duration(sum(summary.duration_ms for summary in run.summaries))
    if verdict.tokens is not None:
        yield "Tokens", f"{verdict.tokens:,}"
    if verdict.cost_usd is not None:
        yield "Cost", escape(money(verdict.cost_usd, estimated=verdict.estimated))
    yield "Run", code(run.id)


def _suite_html(suite: SuiteVerdict, trials: dict[tuple[str, str], list[TrialSummary]]) -> str:
    names = [item.evaluator for item in suite.evaluators]
    rate = "" if suite.pass_rate is None else f" <small>{escape(share(suite.pass_rate))}</small>"
    rows = []
    for case in suite.cases[:CASES_SHOWN]:
        own = trials.get((suite.name, case.case_id), [])
        cells = [badge(case.outcome), f"{case.passed} of {case.trials}", *(_mean_score(own, name) for name in names)]
        rows.append((inline(case.case_id, 120), cells))
    text = f"<h4>{inline(suite.name)} {badge(suite.outcome)}{rate}</h4>\n"
    text += _table(["Case", "Outcome", "Passed", *(inline(name, 80) for name in names)], rows)
    left = len(suite.cases) - CASES_SHOWN
    return text + (f"<p>and {counted(left, 'more case')}</p>\n" if left > 0 else "")


def _mean_score(trials: Sequence[TrialSummary], name: str) -> str:
    scores = [score for trial in trials for score in trial.scores if score.evaluator == name]
    value = mean(score.value for score in scores if score.value is not None)
    return f"{value:.2f}" if value is not None else scores[0].outcome.value if scores else ""


def _failures(run: Run) -> Iterator[str]:
    """The first trials that did not pass, with what a terminal says of them; each case once."""
    wanted: dict[tuple[str, str], tuple[int, int]] = {}
    for summary in run.summaries:
        if summary.outcome in NOT_PASSED:
            wanted.setdefault((summary.suite, summary.case_id), (summary.position, summary.number))
    shown = {position for position, _ in list(wanted.values())[:FAILURES_SHOWN]}
    for trial in run.trials if shown else ():
        if trial.position in shown:
            yield _failure_html(trial)
    if len(wanted) > len(shown):
        yield f"<p>and {counted(len(wanted) - len(shown), 'more case')} that did not pass</p>\n"


def _failure_html(trial: TrialResult) -> str:
    rows = "".join(
        f'<tr><th scope="row">{inline(fact.label)}</th><td><pre>{escape(fact.text)}</pre></td></tr>\n'
        for fact in explain(trial)
    )
    name = inline(trial_name(trial.case.id, trial.number), 120)
    return f"<details><summary>{badge(trial.outcome)} {name}</summary>\n<table>{rows}</table></details>\n"


def comparison_html(comparison: Comparison) -> str:
    """The sentence, the two runs, and the cases by what became of them."""
    parts = [
        f'<p><span class="badge {VERDICTS[comparison.verdict].value}">{escape(comparison.verdict)}</span> '
        f"{inline(comparison.sentence, 2_000)}</p>\n",
        facts((name, inline(side_text(side))) for name, side in _sides(comparison)),
    ]
    for group, cases in comparison.groups.items():
        if not cases:
            continue
        head = f"{TITLES[group]}: {counted(len(cases), 'case')}"
        rows = [
            (inline(case_name(case), 200), [inline(change_text(case)), "<br>".join(map(inline, what_differs(case)))])
            for case in cases[:CASES_SHOWN]
        ]
        opened = "" if group is Group.STILL_PASSING else " open"
        table = _table(["Case", "Passed", "What differs"], rows)
        parts.append(f"<details{opened}><summary>{head}</summary>\n{table}</details>\n")
    return _framed(parts)


def _sides(comparison: Comparison) -> Iterator[tuple[str, Any]]:
    yield "Before", comparison.before
    yield "After", comparison.after


def _table(titles: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table of cells that are HTML already; the first one of a row is its name."""
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>\n' for name, cells in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table>\n"


def _framed(parts: Iterable[str]) -> str:
    css = resources.files("proctor").joinpath("reporting", "assets", "notebook.css").read_text(encoding="utf-8")
    return f'<style>\n{css}</style>\n<div class="proctor">\n{"".join(parts)}</div>\n'


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
        self._show(_framed([f"<p>{badge(verdict.outcome)} {inline(verdict.reason, 2_000)}</p>\n"]))

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
        bar = f'<div class="bar" role="progressbar"><i style="width:{percent(done / planned)}"></i></div>'
        return _framed([f"{bar}<p>{escape(told)}</p>\n"])
