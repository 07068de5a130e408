"""Cases down, evaluators across: where a suite is weak, at one glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from proctor.reporting.html_text import GLYPHS, badge, inline, percent
from proctor.results.model import Outcome, Run, TrialSummary
from proctor.results.statistics import mean
from proctor.results.verdict import RunVerdict, ScoreRow, SuiteVerdict

WORST_FIRST = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING, Outcome.PASSED, Outcome.SKIPPED)


def write_grids(run: Run, verdict: RunVerdict, out: TextIO) -> dict[tuple[str, str], int]:
    """A table per suite; returns the number of each case's row, by which its trials are found again."""
    trials: dict[tuple[str, str], list[TrialSummary]] = {}
    for summary in run.summaries:
        trials.setdefault((summary.suite, summary.case_id), []).append(summary)
    rows = {key: number for number, key in enumerate(trials)}
    out.write('<section id="cases">\n<h2>Cases</h2>\n')
    for suite in verdict.suites:
        if suite.cases:
            _write_grid(suite, trials, rows, out)
    if not trials:
        out.write('<p class="none">No case was run.</p>\n')
    out.write("</section>\n")
    return rows


def anchor(position: int) -> str:
    """The place of a trial on the page."""
    return f"trial-{position}"


def _write_grid(
    suite: SuiteVerdict,
    trials: dict[tuple[str, str], list[TrialSummary]],
    rows: dict[tuple[str, str], int],
    out: TextIO,
) -> None:
    names = [item.evaluator for item in suite.evaluators]
    name = inline(suite.name)
    out.write(f'<div class="scroll" role="region" aria-label="Cases of {name}" tabindex="0">\n<table class="grid">\n')
    heads = "".join(f'<th scope="col">{inline(evaluator, 80)}</th>' for evaluator in names)
    repeats = '<th scope="col">Trials</th>' if suite.repeats > 1 else ""
    out.write(f'<caption>{name}</caption>\n<thead><tr><th scope="col">Case</th><th scope="col">Outcome</th>')
    out.write(f"{repeats}{heads}</tr></thead>\n<tbody>\n")
    for case in suite.cases:
        own = trials[suite.name, case.case_id]
        out.write(
            f'<tr data-row="{rows[suite.name, case.case_id]}"><th scope="row">'
            f'<a href="#{anchor(own[0].position)}">{inline(case.case_id, 120)}</a></th><td>{badge(case.outcome)}</td>'
        )
        if repeats:
            out.write(f'<td class="strip">{"".join(_dot(summary) for summary in own)}</td>')
        scores: dict[str, list[ScoreRow]] = {}
        for summary in own:
            for score in summary.scores:
                scores.setdefault(score[0], []).append(score)
        out.write("".join(_cell(scores.get(evaluator, ())) for evaluator in names))
        out.write("</tr>\n")
    out.write("</tbody>\n</table>\n</div>\n")


def _dot(summary: TrialSummary) -> str:
    words = f"trial {summary.number} {summary.outcome.value}"
    return (
        f'<a class="dot {summary.outcome.value}" href="#{anchor(summary.position)}" title="{words}" '
        f'aria-label="{words}">{GLYPHS[summary.outcome]}</a>'
    )


def _cell(scores: Sequence[ScoreRow]) -> str:
    """The mean over repeats and turns, and how it ended: as the worst of them did."""
    if not scores:
        return '<td class="cell absent"><span class="quiet" title="does not score this case">·</span></td>'
    outcomes = [score[1] for score in scores]
    outcome = next(outcome for outcome in WORST_FIRST if outcome in outcomes)
    value = mean(score[2] for score in scores if score[2] is not None)
    told = outcome.value if value is None else f"{value:.2f}"
    made = len(scores) - outcomes.count(Outcome.SKIPPED)
    share = f" <small>{outcomes.count(Outcome.PASSED)}/{made}</small>" if made > 1 else ""
    informs = "" if any(score[4] for score in scores) else ' <small title="decides nothing">informs</small>'
    bar = "" if value is None else f' style="--v:{percent(value)}"'
    unseen = "" if value is None else f'<span class="unseen"> {outcome.value}</span>'
    sign = f'<span aria-hidden="true">{GLYPHS[outcome]}</span>'
    return f'<td class="cell {outcome.value}"{bar}>{sign} {told}{share}{informs}{unseen}</td>'
