"""The end of a run on a screen: what each suite says, with its uncertainty, and the verdict."""

from __future__ import annotations

import heapq

from proctor.reporting.terminal.screen import Screen, Span
from proctor.reporting.wording import (
    STYLES,
    count_parts,
    counted,
    duration,
    informing,
    money,
    reliability_text,
    share,
    trial_name,
)
from proctor.results.run import Outcome, Run
from proctor.results.verdict import EvaluatorSummary, RunVerdict, SuiteVerdict

RULE_WIDTH = 72
NAMES_SHOWN = 8
SLOW_MS = 1_000


def tell_summary(screen: Screen, run: Run, verdict: RunVerdict) -> None:
    """Everything a person wants to know once all trials are made."""
    screen.line((("─" if screen.unicode else "-") * RULE_WIDTH, "dim"))
    informs = informing(run)
    for suite in verdict.suites:
        _tell_suite(screen, suite, informs, alone=len(verdict.suites) == 1)
    _tell_totals(screen, run, verdict)
    screen.line()
    _tell_verdict(screen, run, verdict)
    _tell_whereabouts(screen, run)


def tell_verdicts(screen: Screen, run: Run, verdict: RunVerdict) -> None:
    """One line per suite where there are several, and one for the run."""
    if len(verdict.suites) > 1:
        for suite in verdict.suites:
            screen.line((f"{suite.outcome.upper():<8}", STYLES[suite.outcome]), f"{suite.name}: {suite.reason}")
        screen.line()
    _tell_verdict(screen, run, verdict)


def _tell_verdict(screen: Screen, run: Run, verdict: RunVerdict) -> None:
    screen.line((f"{verdict.outcome.upper():<8}", STYLES[verdict.outcome]), (verdict.reason, "bold"))
    if run.interrupted:
        planned = sum(info.planned for info in run.suites)
        hint = "" if "--resume" in verdict.reason else "; --resume goes on from there"
        screen.line(f"{'':<8}interrupted after {len(run.summaries):,} of {counted(planned, 'trial')}{hint}")


def _tell_suite(screen: Screen, suite: SuiteVerdict, informs: set[tuple[str, str]], *, alone: bool) -> None:
    """Alone, a suite's verdict is the run's, which comes last."""
    title: list[Span] = [(suite.name, "bold")]
    if not alone:
        title += ["  ", (suite.outcome.upper(), STYLES[suite.outcome]), f"  {suite.reason}"]
    screen.line(*title)
    _tell_cases(screen, suite)
    width = max((len(item.evaluator) for item in suite.evaluators), default=0)
    for item in suite.evaluators:
        _tell_evaluator(screen, item, min(width, 32), (suite.name, item.evaluator) in informs)
    if suite.pass_hat_k is not None and suite.pass_at_k is not None:
        screen.line(
            f"  over {suite.repeats} repeats  pass^{suite.repeats} {suite.pass_hat_k:.2f} (all of them pass), "
            f"pass@{suite.repeats} {suite.pass_at_k:.2f} (at least one does)"
        )
    if each := reliability_text(suite.reliability):
        screen.line(f"  {each}")
    for outcome in (Outcome.FAILED, Outcome.ERROR):
        names = [case.case_id for case in suite.cases if case.outcome is outcome]
        if names:
            more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
            screen.line("  ", (f"{outcome.value}:", STYLES[outcome]), f" {', '.join(names[:NAMES_SHOWN])}{more}")
    screen.line()


def _tell_cases(screen: Screen, suite: SuiteVerdict) -> None:
    spans: list[Span] = [f"  {counted(len(suite.cases), 'case')}: "]
    for number, (text, outcome) in enumerate(count_parts(suite.counts)):
        spans += [", " if number else "", (text, STYLES[outcome])]
    if suite.pass_rate is not None:
        spans += [f"; pass rate {share(suite.pass_rate)}", (" (95% interval)", "dim")]
    screen.line(*spans)


def _tell_evaluator(screen: Screen, item: EvaluatorSummary, width: int, informs: bool) -> None:
    mean = "not measured" if item.scores is None else str(item.scores)
    threshold = "informs" if informs else "" if item.threshold is None else f"needs {item.threshold:g}"
    counts = {
        Outcome.PASSED: item.passed,
        Outcome.FAILED: item.failed,
        Outcome.ERROR: item.errors,
        Outcome.SKIPPED: item.skipped,
        Outcome.PENDING: item.pending,
    }
    spans: list[Span] = [f"  {item.evaluator:<{width}}  {mean:<20}  ", (f"{threshold:<11}  ", "dim")]
    for number, (text, outcome) in enumerate(count_parts(counts)):
        spans += [", " if number else "", (text, STYLES[outcome])]
    screen.line(*spans)


def _tell_totals(screen: Screen, run: Run, verdict: RunVerdict) -> None:
    parts = [counted(len(run.summaries), "trial")]
    if run.finished_at is not None:
        parts[0] += f" in {duration(max(0.0, run.finished_at - run.started_at) * 1000)}"
    if verdict.tokens is not None:
        parts.append(counted(verdict.tokens, "token"))
    if verdict.cost_usd is not None:
        parts.append(money(verdict.cost_usd))
    slow = heapq.nlargest(3, run.summaries, key=lambda summary: summary.duration_ms)
    if slow and slow[0].duration_ms >= SLOW_MS:
        named = [
            f"{trial_name(s.case_id, s.number)} {duration(s.duration_ms)}" for s in slow if s.duration_ms >= SLOW_MS
        ]
        parts.append("slowest " + ", ".join(named))
    screen.line((" · " if screen.unicode else " | ").join(parts))
    _tell_judges(screen, run)


def _tell_judges(screen: Screen, run: Run) -> None:
    if not run.judges and not run.uncounted:
        return
    from proctor.reporting.judge_report import correction_lines, judge_lines

    for model, text in judge_lines(run):
        screen.line(text if model == "not counted" else f"judge {model}: {text}")
    for text in correction_lines(run):
        screen.line(text)


def _tell_whereabouts(screen: Screen, run: Run) -> None:
    if run.store is not None:
        elsewhere = "" if run.store == ".proctor" else f" --store {run.store}"
        screen.line((f"{'':<8}kept in {run.store}; see it again with: proctor show {run.id}{elsewhere}", "dim"))
