"""What the sections of a run's page show: suites, evaluators, the table of cases, failures, gate, agents and judges.

The HTML report and the viewer render these with the same templates. They differ in where a trial links to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from proctor.cases.identity import CaseAddress
from proctor.judging.judge import is_rule_based
from proctor.reporting.build_findings import GATE_VERDICT_LABELS, gate_lines
from proctor.reporting.failing_cases import failing_cases
from proctor.reporting.judge_report import judge_caveats, judge_lines, judge_text
from proctor.reporting.wording import (
    count_parts,
    flaky_text,
    plural,
    reliability_text,
    report_only_evaluators,
    shown_path,
)
from proctor.results.run import Run
from proctor.results.score import Outcome, ScoreRow, worst_outcome
from proctor.results.statistics import Estimate, EvaluatorSummary, mean
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import TrialSummary
from proctor.results.verdict import CaseVerdict, RunVerdict, SuiteVerdict

MAX_CASES_WITH_REASONS = 200
MAX_REASONS = 5
MAX_GRID_ROWS = 5_000
"""Maximum cases in the table of a suite, the worst first: a browser takes long to lay out more."""

Link = Callable[[int], str]
"""The address of a trial by its position, or "" if there is none."""


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A name with its value, as the head of a page or a card shows it."""

    name: str
    text: str
    note: str = ""
    """Small print after the text."""
    is_code: bool = False
    limit: int = 500
    """Maximum characters of the text."""


def agents_text(suites: Sequence[SuiteInfo]) -> str:
    """The names of the agents under test."""
    return ", ".join(dict.fromkeys(info.agent for info in suites if info.agent)) or "no agent"


@dataclass(frozen=True, slots=True)
class GateView:
    """What the gate found."""

    verdict: str
    reason: str
    facts: Sequence[NamedValue]


def gate_view(run: Run) -> GateView | None:
    """What the gate found, or `None` for a run without a gate."""
    if run.gate is None:
        return None
    facts = [NamedValue(line.label, line.text, limit=2_000) for line in gate_lines(run)]
    return GateView(GATE_VERDICT_LABELS[run.gate.verdict].lower(), run.gate.reason, facts)


def judge_facts(run: Run, *, with_caveats: bool = True) -> list[NamedValue]:
    """The judges of a run and what they did; with caveats, for which every trial may have to be read."""
    lines = judge_lines(run) if with_caveats else [(judge.model, judge_text(judge)) for judge in run.judges]
    facts = [NamedValue("Judge", f"{'rule-based' if is_rule_based(model) else model}: {text}") for model, text in lines]
    if run.unpriced_note:
        facts.append(NamedValue("Cost not counted", run.unpriced_note))
    if run.hedging_note:
        facts.append(NamedValue("Asked twice", run.hedging_note))
    if run.masked_note:
        facts.append(NamedValue("Masked text", run.masked_note))
    caveats = judge_caveats(run) if with_caveats else ()
    return facts + [NamedValue(title, text, limit=1_000) for title, text in caveats]


@dataclass(frozen=True, slots=True)
class SuiteCard:
    """A suite with its pass rate and counts."""

    name: str
    outcome: Outcome
    reason: str
    pass_rate: Estimate | None
    required: float | None
    """The share of cases that must pass, if not all of them."""
    shares: Sequence[tuple[Outcome, float]]
    counts: Sequence[tuple[str, Outcome]]
    facts: Sequence[NamedValue]


def suite_cards(run: Run, verdict: RunVerdict) -> list[SuiteCard]:
    cards = []
    for info, suite_verdict in zip(run.suites, verdict.suites, strict=True):
        total = sum(suite_verdict.counts.values())
        shares = [(outcome, count / total) for outcome, count in suite_verdict.counts.items() if count]
        required = None if info.criteria.pct == 1 else info.criteria.pct
        counts = count_parts(suite_verdict.counts)
        facts = _suite_facts(info, suite_verdict)
        cards.append(
            SuiteCard(
                suite_verdict.name,
                suite_verdict.outcome,
                suite_verdict.reason,
                suite_verdict.pass_rate,
                required,
                shares,
                counts,
                facts,
            )
        )
    return cards


def _suite_facts(info: SuiteInfo, suite_verdict: SuiteVerdict) -> list[NamedValue]:
    facts = []
    if suite_verdict.pass_hat_k is not None and suite_verdict.pass_at_k is not None:
        k = suite_verdict.repeats
        facts.append(NamedValue(f"pass^{k}", f"{suite_verdict.pass_hat_k:.2f}", f"all {k} trials pass"))
        facts.append(NamedValue(f"pass@{k}", f"{suite_verdict.pass_at_k:.2f}", "at least one passes"))
    if each := reliability_text(suite_verdict.reliability):
        facts.append(NamedValue("By number of trials", each))
    rules = {
        "all": "all trials pass",
        "any": "any trial passes",
        "majority": "most trials pass",
        "mean": "mean scores pass",
    }
    if suite_verdict.repeats > 1:
        facts.append(NamedValue("A case passes if", rules[info.criteria.trials]))
    facts.append(NamedValue("Agent", info.agent, is_code=True))
    if info.path:
        facts.append(NamedValue("File", shown_path(info.path), is_code=True))
    return facts


@dataclass(frozen=True, slots=True)
class FailureView:
    """A case that did not pass, with its distinct reasons."""

    outcome: Outcome
    name: str
    share: str
    is_flaky: bool
    reasons: Sequence[tuple[str, str, str]]
    """How often, the reason, and the link to an example."""
    more: int


def failure_views(run: Run, verdict: RunVerdict, link: Link) -> list[FailureView]:
    """Every case that did not pass, or of which a trial did not."""
    views = []
    for case in failing_cases(run, verdict, max_with_reasons=MAX_CASES_WITH_REASONS):
        reasons = [
            (
                f"{plural(reason.trials, 'time')}: " if reason.trials > 1 else "",
                reason.text or reason.outcome.value,
                link(reason.position),
            )
            for reason in case.reasons[:MAX_REASONS]
        ]
        name = f"{case.suite}/{case.case_id}"
        more = max(0, len(case.reasons) - MAX_REASONS)
        views.append(FailureView(case.outcome, name, case.share, case.is_flaky, reasons, more))
    return views


@dataclass(frozen=True, slots=True)
class EvaluatorView:
    """An evaluator of a suite: its mean score, its threshold, and the outcomes of its scores."""

    suite: str
    name: str
    scores: Estimate | None
    threshold: float | None
    threshold_text: str
    counts: Sequence[tuple[Outcome, int]]


def evaluator_views(run: Run, verdict: RunVerdict) -> list[EvaluatorView]:
    report_only = report_only_evaluators(run)
    return [
        _evaluator(suite.name, item, (suite.name, item.evaluator) in report_only)
        for suite in verdict.suites
        for item in suite.evaluators
    ]


def _evaluator(suite: str, item: EvaluatorSummary, is_report_only: bool) -> EvaluatorView:
    threshold = None if is_report_only else item.threshold
    text = "report only" if is_report_only else "varies" if threshold is None else f"{threshold:g}"
    counts = zip(Outcome, (item.passed, item.failed, item.errors, item.skipped, item.pending), strict=True)
    return EvaluatorView(suite, item.evaluator, item.scores, threshold, text, list(counts))


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """The scores of one evaluator for a case, over its trials and turns."""

    outcome: Outcome
    """The worst outcome."""
    text: str
    value: float | None
    """The mean."""
    share: str
    """How many passed, if there are several scores."""
    report_only: bool


def score_cell(scores: Sequence[ScoreRow]) -> ScoreCell | None:
    """The scores of one evaluator for a case, or `None` if it does not score the case."""
    if not scores:
        return None
    outcomes = [score.outcome for score in scores]
    outcome = worst_outcome(outcomes)
    value = mean(score.value for score in scores if score.value is not None)
    text = outcome.value if value is None else f"{value:.2f}"
    counted_scores = len(scores) - outcomes.count(Outcome.SKIPPED)
    share = f"{outcomes.count(Outcome.PASSED)}/{counted_scores}" if counted_scores > 1 else ""
    return ScoreCell(outcome, text, value, share, all(score.report_only for score in scores))


def score_cells(trials: Sequence[TrialSummary], evaluators: Sequence[str]) -> list[ScoreCell | None]:
    """One cell per evaluator, over all trials of a case."""
    scores: dict[str, list[ScoreRow]] = {}
    for trial in trials:
        for score in trial.scores:
            scores.setdefault(score.evaluator, []).append(score)
    return [score_cell(scores.get(name, ())) for name in evaluators]


@dataclass(frozen=True, slots=True)
class Dot:
    """A trial as a symbol in a row, with its link."""

    number: int
    outcome: Outcome
    href: str


@dataclass(frozen=True, slots=True)
class GridRow:
    """A case in the table of its suite."""

    number: int
    """The number by which the script finds the trials of the case."""
    case: CaseVerdict
    flaky: str
    href: str
    dots: Sequence[Dot]
    cells: Sequence[ScoreCell | None]


@dataclass(frozen=True, slots=True)
class Grid:
    """The cases of a suite by evaluator."""

    suite: str
    evaluators: Sequence[str]
    has_repeats: bool
    rows: Iterator[GridRow]
    more: int
    """How many cases are not listed."""


def row_numbers(run: Run) -> dict[CaseAddress, int]:
    """The row number of each case, by which the page's script finds its trials."""
    cases = dict.fromkeys((summary.suite, summary.case_id) for summary in run.summaries)
    return {address: number for number, address in enumerate(cases)}


def grids(run: Run, verdict: RunVerdict, numbers: dict[CaseAddress, int], link: Link) -> Iterator[Grid]:
    """One table per suite that has cases."""
    trials: dict[CaseAddress, list[TrialSummary]] = {}
    for summary in run.summaries:
        trials.setdefault((summary.suite, summary.case_id), []).append(summary)
    for suite in verdict.suites:
        if suite.cases:
            names = [item.evaluator for item in suite.evaluators]
            rows = _grid_rows(suite, names, trials, numbers, link)
            yield Grid(suite.name, names, suite.repeats > 1, rows, max(0, len(suite.cases) - MAX_GRID_ROWS))


def _grid_rows(
    suite: SuiteVerdict,
    evaluators: Sequence[str],
    trials: dict[CaseAddress, list[TrialSummary]],
    numbers: dict[CaseAddress, int],
    link: Link,
) -> Iterator[GridRow]:
    for case in sorted(suite.cases, key=lambda case: case.outcome.rank)[:MAX_GRID_ROWS]:
        address = suite.name, case.case_id
        case_trials = trials[address]
        dots = [Dot(summary.number, summary.outcome, link(summary.position)) for summary in case_trials]
        flaky = flaky_text(case) if case.is_flaky else ""
        yield GridRow(
            numbers[address], case, flaky, link(case_trials[0].position), dots, score_cells(case_trials, evaluators)
        )
