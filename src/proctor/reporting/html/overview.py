"""The top of the HTML report: each suite with its pass rate, each evaluator with its mean, and the grid of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from proctor.reporting.build_findings import VERDICTS, gate_lines
from proctor.reporting.failing_cases import WORST_FIRST, DistinctReason, failing_cases
from proctor.reporting.html.escaping import GLYPHS, badge, code, facts, gauge, inline, percent
from proctor.reporting.wording import count_parts, counted, flaky_text, informing, reliability_text
from proctor.results.run import Outcome, Run, ScoreRow, SuiteInfo, TrialSummary
from proctor.results.statistics import Estimate, EvaluatorSummary, mean
from proctor.results.verdict import CaseVerdict, RunVerdict, SuiteVerdict

CASES_WITH_REASONS = 200
REASONS_SHOWN = 5
ROWS_SHOWN = 5_000
"""Cases of a suite in its table, the worst first: a browser takes long to lay out more."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Which trials the page tells in full: links lead to these alone."""

    positions: frozenset[int] | None = None
    """`None` for all."""

    def __contains__(self, position: int) -> bool:
        return self.positions is None or position in self.positions

    def link(self, position: int, words: str, attributes: str = "") -> str:
        """The words, as a link to the trial where it is on the page."""
        return f'<a{attributes} href="#{anchor(position)}">{words}</a>' if position in self else words


EVERYTHING = Shown()


def write_grids(run: Run, verdict: RunVerdict, out: TextIO, shown: Shown = EVERYTHING) -> dict[tuple[str, str], int]:
    """A table per suite; returns the number of each case's row, by which its trials are found again."""
    trials: dict[tuple[str, str], list[TrialSummary]] = {}
    for summary in run.summaries:
        trials.setdefault((summary.suite, summary.case_id), []).append(summary)
    rows = {key: number for number, key in enumerate(trials)}
    out.write('<section id="cases">\n<h2>Cases</h2>\n')
    for suite in verdict.suites:
        if suite.cases:
            _write_grid(suite, trials, rows, out, shown)
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
    shown: Shown,
) -> None:
    names = [item.evaluator for item in suite.evaluators]
    name = inline(suite.name)
    out.write(f'<div class="scroll" role="region" aria-label="Cases of {name}" tabindex="0">\n<table class="grid">\n')
    heads = "".join(f'<th scope="col">{inline(evaluator, 80)}</th>' for evaluator in names)
    repeats = '<th scope="col">Trials</th>' if suite.repeats > 1 else ""
    out.write(f'<caption>{name}</caption>\n<thead><tr><th scope="col">Case</th><th scope="col">Outcome</th>')
    out.write(f"{repeats}{heads}</tr></thead>\n<tbody>\n")
    for case in sorted(suite.cases, key=lambda case: WORST_FIRST.index(case.outcome))[:ROWS_SHOWN]:
        own = trials[suite.name, case.case_id]
        out.write(
            f'<tr data-row="{rows[suite.name, case.case_id]}"><th scope="row">'
            f"{shown.link(own[0].position, inline(case.case_id, 120))}</th>"
            f"<td>{badge(case.outcome)}{_notes(case)}</td>"
        )
        if repeats:
            out.write(f'<td class="strip">{"".join(_dot(summary, shown) for summary in own)}</td>')
        scores: dict[str, list[ScoreRow]] = {}
        for summary in own:
            for score in summary.scores:
                scores.setdefault(score.evaluator, []).append(score)
        out.write("".join(score_cell(scores.get(evaluator, ())) for evaluator in names))
        out.write("</tr>\n")
    out.write("</tbody>\n</table>\n</div>\n")
    if (more := len(suite.cases) - ROWS_SHOWN) > 0:
        out.write(f'<p class="cut">and {counted(more, "more case")}, none worse than these.</p>\n')


def _notes(case: CaseVerdict) -> str:
    """That a case both passed and failed, and that it decides nothing."""
    flaky = f' <strong class="flaky">{flaky_text(case)}</strong>' if case.is_flaky else ""
    return f"{flaky}{' <small>in quarantine</small>' if case.quarantined else ''}"


def write_failures(run: Run, verdict: RunVerdict, out: TextIO, shown: Shown = EVERYTHING) -> None:
    """Every case that went wrong, once: how many of its trials, each distinct reason, and a link to an example."""
    cases = failing_cases(run, verdict, most_reasons=CASES_WITH_REASONS)
    if not cases:
        return
    out.write('<section id="failures">\n<h2>What went wrong</h2>\n<ul class="failures">\n')
    for case in cases:
        flaky = ' <strong class="flaky">flaky</strong>' if case.is_flaky else ""
        name = inline(f"{case.suite}/{case.case_id}", 200)
        out.write(f"<li>{badge(case.outcome)} <b>{name}</b> {case.share}{flaky}")
        out.write("".join(_reason(reason, shown) for reason in case.reasons[:REASONS_SHOWN]))
        if more := len(case.reasons) - REASONS_SHOWN:
            out.write(f"<br>and {counted(more, 'more reason')}" if more > 0 else "")
        out.write("</li>\n")
    out.write("</ul>\n</section>\n")


def _reason(reason: DistinctReason, shown: Shown) -> str:
    times = f"{counted(reason.trials, 'time')}: " if reason.trials > 1 else ""
    return f"<br>{times}{shown.link(reason.position, inline(reason.text) or reason.outcome.value)}"


def write_gate(run: Run, out: TextIO) -> None:
    """What the gate found, where the run was gated."""
    if run.gate is None:
        return
    out.write(f'<section id="gate">\n<h2>Gate: {VERDICTS[run.gate.verdict].lower()}</h2>\n')
    out.write(f'<p class="reason">{inline(run.gate.reason, 2_000)}</p>\n')
    out.write(facts((inline(line.label), inline(line.text, 2_000)) for line in gate_lines(run)))
    out.write("</section>\n")


def _dot(summary: TrialSummary, shown: Shown) -> str:
    words = f"trial {summary.number} {summary.outcome.value}"
    attributes = f' class="dot {summary.outcome.value}" title="{words}" aria-label="{words}"'
    if summary.position not in shown:
        return f'<span role="img"{attributes}>{GLYPHS[summary.outcome]}</span>'
    return shown.link(summary.position, GLYPHS[summary.outcome], attributes)


def score_cell(scores: Sequence[ScoreRow]) -> str:
    """The mean over repeats and turns, and how it ended: as the worst of them did."""
    if not scores:
        return '<td class="cell absent"><span class="quiet" title="does not score this case">·</span></td>'
    outcomes = [score.outcome for score in scores]
    outcome = next(outcome for outcome in WORST_FIRST if outcome in outcomes)
    value = mean(score.value for score in scores if score.value is not None)
    told = outcome.value if value is None else f"{value:.2f}"
    made = len(scores) - outcomes.count(Outcome.SKIPPED)
    share = f" <small>{outcomes.count(Outcome.PASSED)}/{made}</small>" if made > 1 else ""
    informs = "" if any(score.gates for score in scores) else ' <small title="decides nothing">informs</small>'
    bar = "" if value is None else f' style="--v:{percent(value)}"'
    unseen = "" if value is None else f'<span class="unseen"> {outcome.value}</span>'
    sign = f'<span aria-hidden="true">{GLYPHS[outcome]}</span>'
    return f'<td class="cell {outcome.value}"{bar}>{sign} {told}{share}{informs}{unseen}</td>'


def write_suites(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """One card per suite."""
    out.write('<section id="suites">\n<h2>Suites</h2>\n<div class="cards">\n')
    for info, judged in zip(run.suites, verdict.suites, strict=True):
        _write_suite(info, judged, out)
    if not run.suites:
        out.write('<p class="none">No suite was run.</p>\n')
    out.write("</div>\n</section>\n")


def write_evaluators(run: Run, verdict: RunVerdict, out: TextIO) -> None:
    """One table of all evaluators, suite by suite."""
    out.write('<section id="evaluators">\n<h2>Evaluators</h2>\n')
    if any(suite.evaluators for suite in verdict.suites):
        several, informs = len(verdict.suites) > 1, informing(run)
        titles = (["Suite"] if several else []) + ["Evaluator", "Mean score", "Needs", *map(_title, Outcome)]
        out.write('<div class="scroll" role="region" aria-label="Evaluators" tabindex="0">\n<table class="means">\n')
        heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
        out.write(f"<thead><tr>{heads}</tr></thead>\n<tbody>\n")
        for suite in verdict.suites:
            for item in suite.evaluators:
                told = suite.name if several else None
                _write_evaluator(told, item, (suite.name, item.evaluator) in informs, out)
        out.write("</tbody>\n</table>\n</div>\n")
    else:
        out.write('<p class="none">Nothing was scored.</p>\n')
    out.write("</section>\n")


def _title(outcome: Outcome) -> str:
    return "Errors" if outcome is Outcome.ERROR else outcome.value.capitalize()


def _write_suite(info: SuiteInfo, judged: SuiteVerdict, out: TextIO) -> None:
    out.write(
        f'<article class="card {judged.outcome.value}">\n<h3>{inline(judged.name)} {badge(judged.outcome)}</h3>\n'
        f'<p class="reason">{inline(judged.reason, 2_000)}</p>\n'
    )
    _write_rate(judged.pass_rate, info.criteria.pct, out)
    total = sum(judged.counts.values())
    if total:
        parts = "".join(
            f'<i class="{outcome.value}" style="width:{percent(count / total)}"></i>'
            for outcome, count in judged.counts.items()
            if count
        )
        out.write(f'<p class="shares" aria-hidden="true">{parts}</p>\n')
    words = "".join(
        f'<li class="{outcome.value}"><span aria-hidden="true">{GLYPHS[outcome]}</span> {text}</li>'
        for text, outcome in count_parts(judged.counts)
    )
    out.write(f'<ul class="counts">{words or "<li>nothing was run</li>"}</ul>\n')
    out.write(facts(_suite_facts(info, judged)))
    out.write("</article>\n")


def _write_rate(rate: Estimate | None, pct: float, out: TextIO) -> None:
    if rate is None:
        out.write('<p class="rate"><b>–</b> <span>pass rate not measured</span></p>\n')
        return
    out.write(
        f'<p class="rate"><b>{rate.mean:.1%}</b> <span>pass rate of {counted(rate.count, "case")}, '
        f"95&#8239;% interval [{rate.low:.1%}, {rate.high:.1%}]</span>{gauge(rate, None if pct == 1 else pct)}</p>\n"
    )


def _suite_facts(info: SuiteInfo, judged: SuiteVerdict) -> list[tuple[str, str]]:
    pairs = []
    if judged.pass_hat_k is not None and judged.pass_at_k is not None:
        k = judged.repeats
        pairs.append((f"pass^{k}", f"{judged.pass_hat_k:.2f} <small>all {k} repeats pass</small>"))
        pairs.append((f"pass@{k}", f"{judged.pass_at_k:.2f} <small>at least one does</small>"))
    if each := reliability_text(judged.reliability):
        pairs.append(("By number of trials", inline(each)))
    rules = {"all": "every trial", "any": "any trial", "majority": "most trials", "mean": "mean scores"}
    if judged.repeats > 1:
        pairs.append(("A case passes on", rules[info.criteria.trials]))
    pairs.append(("Agent", code(info.agent)))
    if info.path:
        pairs.append(("File", code(info.path)))
    return pairs


def _write_evaluator(suite: str | None, item: EvaluatorSummary, informs: bool, out: TextIO) -> None:
    threshold = None if informs else item.threshold
    cells = "" if suite is None else f"<td>{inline(suite)}</td>"
    cells += f'<th scope="row">{inline(item.evaluator)}</th>'
    if item.scores is None:
        cells += '<td class="none">not measured</td>'
    else:
        interval = f"<small>[{item.scores.low:.3f}, {item.scores.high:.3f}]</small>"
        cells += f"<td><b>{item.scores.mean:.3f}</b> {interval}{gauge(item.scores, threshold)}</td>"
    cells += f"<td>{'informs' if informs else 'varies' if threshold is None else f'{threshold:g}'}</td>"
    counts = (item.passed, item.failed, item.errors, item.skipped, item.pending)
    for outcome, count in zip(Outcome, counts, strict=True):
        cells += f'<td class="number {outcome.value}">{count:,}</td>' if count else '<td class="number">0</td>'
    out.write(f"<tr>{cells}</tr>\n")
