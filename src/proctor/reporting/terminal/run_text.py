"""Prints a run as lines of text: its start, one line per trial, why a trial failed, and the summary at the end."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from proctor.reporting.build_findings import GATE_VERDICT_LABELS, gate_lines
from proctor.reporting.explain import BRIEF, FULL, Fact, explain
from proctor.reporting.pending_cases import pending_cases
from proctor.reporting.rerun import rerun_errors_command
from proctor.reporting.terminal.facts import INDENT, print_facts
from proctor.reporting.terminal.screen import Screen, Span, cut_middle, display_width, escape_line
from proctor.reporting.wording import (
    LABELS,
    STYLES,
    count_parts,
    duration,
    flaky_text,
    interval_text,
    judge_title,
    money,
    passed_text,
    plural,
    rate_text,
    reliability_text,
    report_only_evaluators,
    score_texts,
    trial_name,
)
from proctor.results.reasons import headline_reason
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.statistics import EvaluatorSummary
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import CaseVerdict, RunVerdict, SuiteVerdict, suites_of_old_version

INITIAL_NAME_WIDTH = 32
MAX_NAME_WIDTH = 60
MIN_NAME_WIDTH = 24
WIDTH_WITHOUT_NAME = 45
"""Columns that the outcome before a name and the scores after it need."""
WIDTH_WITHOUT_CASE_ID = 30
"""The same in the summary, where only the share of passed trials follows the id of a case."""
MAX_WARNINGS = 20


def print_start(screen: Screen, run: Run, planned: int, stored: int) -> None:
    """Print what is about to run: suites, cases, agents and judge.

    `planned` is the number of trials, `stored` how many of them a resumed run has already.
    """
    suites = [info for info in run.suites if info.planned]
    sources = dict.fromkeys(info.source or info.name for info in suites)
    arms = dict.fromkeys(info.arm for info in suites if info.arm)
    title = next(iter(sources)) if len(sources) == 1 else plural(len(sources), "suite")
    agents = list(dict.fromkeys(info.agent for info in suites if info.agent))
    if len(suites) == 1 and suites[0].reference:
        agents = [suites[0].reference]
    cases = len(run.planned_trials) + max(0, planned - sum(run.planned_trials.values()))
    if len(arms) > 1:  # each case is planned once per arm
        cases //= len(arms)
    parts = [plural(cases, "case")]
    if run.planned_trials or stored or len(arms) > 1:
        parts.append(plural(planned, "trial") + (f" ({stored:,} already stored)" if stored else ""))
    if len(arms) > 1:
        parts.append(f"arms {', '.join(arms)}")
    elif agents:
        parts.append(f"agent {agents[0]}" if len(agents) == 1 else f"{len(agents)} agents")
    if run.configured_judge:
        parts.append(judge_title(run.configured_judge))
    screen.line((title, "bold"), f": {', '.join(parts)}")
    if run.unpriced_note and run.finished_at is None:
        screen.line((f"note: {run.unpriced_note}", "yellow"))
    screen.line()


class NameColumn:
    """The column of trial names: it widens with the longest name printed so far, up to `MAX_NAME_WIDTH`.

    On a terminal, a name that does not fit on the line loses its middle. In a file, names stay whole.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._widest = MAX_NAME_WIDTH
        if screen.width is not None:
            self._widest = max(MIN_NAME_WIDTH, min(MAX_NAME_WIDTH, screen.width - WIDTH_WITHOUT_NAME))
        self._width = min(INITIAL_NAME_WIDTH, self._widest)

    def pad(self, name: str, share: str = "") -> str:
        """The name, and the share of its trials that passed, padded to the width of the column."""
        suffix = f" {share}" if share else ""
        name = _fit_name(self._screen, name, INDENT + len(suffix))
        width = display_width(name) + len(suffix)
        self._width = max(self._width, min(width, self._widest))
        return name + suffix + " " * (self._width - width)


def _fit_name(screen: Screen, name: str, reserved: int) -> str:
    """The name, with its middle cut out if it does not fit on a line next to `reserved` other columns."""
    if screen.width is None or display_width(name) + reserved <= screen.width:
        return name
    return cut_middle(name, max(MIN_NAME_WIDTH, screen.width - reserved), "…" if screen.unicode else "...")


def print_trial(
    screen: Screen, trial: Trial, *, verbose: bool, warnings: Sequence[str], names: NameColumn, reason: str = ""
) -> None:
    """Print one line, with an explanation below if the trial failed, ended in an error, or `verbose` is set.

    `reason` is why it was skipped or is pending, empty if that was printed for an earlier trial.
    """
    screen.line(*_trial_line(trial, names, reason), hang=INDENT)
    explained = verbose or trial.outcome in (Outcome.FAILED, Outcome.ERROR)
    if not explained and not warnings:
        return
    detail = FULL if verbose else BRIEF
    facts = explain(trial, detail) if explained else []
    facts += [Fact("warning", warning, Outcome.ERROR) for warning in warnings]
    if facts:
        print_facts(screen, facts, detail)
        screen.line()


class WarningFilter:
    """Lets each warning through once, and only the first `MAX_WARNINGS`, so that warnings do not bury the failures.

    The reason why trials are skipped or pending is let through once as well.
    """

    def __init__(self) -> None:
        self._printed: set[str] = set()
        self._reasons: set[str] = set()
        self._omitted = 0

    def new_in(self, trial: Trial) -> list[str]:
        """The warnings of a trial that were not printed yet and are to be printed now."""
        new = []
        for warning in trial.warnings:
            if warning in self._printed:
                continue
            if len(self._printed) >= MAX_WARNINGS:
                self._omitted += 1
                continue
            self._printed.add(warning)
            new.append(warning)
        return new

    def new_reason(self, trial: Trial) -> str:
        """Why the trial was skipped or is pending; empty if that was printed already."""
        if trial.outcome not in (Outcome.SKIPPED, Outcome.PENDING):
            return ""
        reason = headline_reason(trial)
        if reason in self._reasons:
            return ""
        self._reasons.add(reason)
        return reason

    def print_omitted(self, screen: Screen) -> None:
        """Print how many warnings were left out, if any were."""
        if self._omitted:
            screen.line(f"{plural(self._omitted, 'more warning')} not shown; the JSON report has all of them")


def line_start(outcome: Outcome, name: str, duration_ms: float, names: NameColumn, share: str = "") -> list[Span]:
    """The start of every line about a trial or a case: outcome, name and time."""
    return [
        (f"{LABELS[outcome]:<{INDENT - 2}}  ", STYLES[outcome]),
        f"{names.pad(escape_line(name), share)}  ",
        (f"{'' if outcome is Outcome.SKIPPED else duration(duration_ms):>6}", "dim"),
    ]


def _trial_line(trial: Trial, names: NameColumn, reason: str) -> list[Span]:
    name = f"{trial.suite}/{trial_name(trial.case.id, trial.number)}"
    spans = line_start(trial.outcome, name, trial.duration_ms, names)
    separator = "  "
    for text, outcome in score_texts(trial.scores):
        spans += [separator, (text, "" if outcome is Outcome.PASSED else STYLES[outcome])]
        separator = ", "
    if reason:
        spans.append((f"  {reason}", "dim"))
    if trial.attempts > 1:
        spans.append((f"  ({trial.attempts} attempts)", "dim"))
    if trial.reused:
        spans.append(("  (from an earlier run)", "dim"))
    return spans


RULE_WIDTH = 72
MAX_NAMES = 100
MAX_LISTED_NAME = 60
SLOW_MS = 1_000


def print_summary(screen: Screen, run: Run, verdict: RunVerdict, *, verbose: bool = False) -> None:
    """Print suites, evaluators, totals, the gate and the verdict; with sparklines of the scores if `verbose`."""
    rule = RULE_WIDTH if screen.width is None else min(RULE_WIDTH, screen.width)
    screen.line((("─" if screen.unicode else "-") * rule, "dim"))
    report_only = report_only_evaluators(run)
    suites = suites_of_new_version(run, verdict)
    for suite in suites:
        _print_suite(screen, suite, report_only, alone=len(suites) == 1)
    if run.compares_agents:
        from proctor.reporting.arms_report import print_arms  # heavy (statistics of comparing), and rare

        print_arms(run, screen)
    if verbose:
        from proctor.reporting.plots import distribution_lines  # only with -v

        for name, picture in distribution_lines(run, unicode=screen.unicode):
            screen.line(f"{name}  {picture}")
    _print_totals(screen, run, verdict)
    _print_endpoints(screen, run, verbose=verbose)
    screen.line()
    _print_gate(screen, run)
    _print_verdict(screen, run, verdict)
    _print_next_commands(screen, run, verdict)
    _print_location(screen, run)


def suites_of_new_version(run: Run, verdict: RunVerdict) -> list[SuiteVerdict]:
    """The suites of a run; of a gate with two versions, without those of the old version."""
    old = suites_of_old_version(run)
    return [suite for suite in verdict.suites if suite.name not in old]


def print_verdicts(screen: Screen, run: Run, verdict: RunVerdict) -> None:
    """Print one line per suite if there are several, and one for the run."""
    suites = suites_of_new_version(run, verdict)
    if len(suites) > 1:
        for suite in suites:
            text = f"{suite.name}: {suite.reason}"
            word = f"{suite.word.upper():<8}"
            screen.line((word, STYLES[suite.outcome]), *_gap(word), text, hang=8)
        screen.line()
    _print_verdict(screen, run, verdict)


def _print_verdict(screen: Screen, run: Run, verdict: RunVerdict) -> None:
    word = f"{verdict.word.upper():<8}"
    screen.line((word, STYLES[verdict.outcome]), *_gap(word), (verdict.reason, "bold"), hang=8)
    if run.interrupted:
        planned = sum(info.planned for info in run.suites)
        hint = "" if "--resume" in verdict.reason else "; continue with --resume"
        text = f"interrupted after {len(run.summaries):,} of {plural(planned, 'trial')}{hint}"
        screen.line(f"{'':<8}{text}", hang=8)
    if command := rerun_errors_command(run, verdict):
        screen.line(f"{'':<8}run only the errors again: ", (command, "bold"), hang=8)


def _gap(word: str) -> list[Span]:
    """Two spaces after a verdict that fills its column."""
    return [] if word.endswith(" ") else ["  "]


def _print_gate(screen: Screen, run: Run) -> None:
    if run.gate is None:
        return
    screen.line((f"gate: {GATE_VERDICT_LABELS[run.gate.verdict]}", STYLES[run.gate.outcome]))
    for line in gate_lines(run):
        style = "dim" if line.outcome is None else STYLES[line.outcome]
        screen.line((f"  {line.label:<18}  ", style), line.text, hang=22)
    screen.line()


def _print_suite(screen: Screen, suite: SuiteVerdict, report_only: set[tuple[str, str]], *, alone: bool) -> None:
    """Print a suite; the verdict of the only suite is that of the run, which comes last."""
    title: list[Span] = [(suite.name, "bold")]
    if not alone:
        title += ["  ", (suite.word.upper(), STYLES[suite.outcome]), f"  {suite.reason}"]
    screen.line(*title)
    _print_case_counts(screen, suite)
    width = max((len(item.evaluator) for item in suite.evaluators), default=0)
    for item in suite.evaluators:
        _print_evaluator(screen, item, min(width, 32), (suite.name, item.evaluator) in report_only)
    if suite.pass_hat_k is not None and suite.pass_at_k is not None:
        k = suite.repeats
        all_pass, any_passes = f"pass^{k} {suite.pass_hat_k:.2f} (all pass)", f"pass@{k} {suite.pass_at_k:.2f}"
        screen.line(f"  {k} trials per case: ", all_pass, ", ", f"{any_passes} (at least one passes)")
    if each := reliability_text(suite.reliability):
        screen.line(f"  {each}")
    _print_failing_cases(screen, suite)
    _print_pending_cases(screen, suite)
    if quarantined := [f"{case.case_id} ({case.outcome.value})" for case in suite.cases if case.quarantined]:
        screen.line("  ", ("quarantined:", "cyan"), f" {', '.join(quarantined)}")
    screen.line()


def _print_failing_cases(screen: Screen, suite: SuiteVerdict) -> None:
    """Print every case that did not pass: in one list, or with repeats one per line with how many trials passed."""
    failing = [case for case in suite.cases if case.outcome in (Outcome.FAILED, Outcome.ERROR) and not case.quarantined]
    bad = sorted(failing, key=lambda case: case.outcome is Outcome.ERROR)
    flaky = [case for case in suite.cases if case.is_flaky and case not in bad] if suite.repeats > 1 else []
    if suite.repeats > 1:
        shown = [*bad, *flaky][:MAX_NAMES]
        names = [_fit_name(screen, case.case_id, WIDTH_WITHOUT_CASE_ID) for case in shown]
        column = min(MAX_NAME_WIDTH, max(map(display_width, names), default=0))
        for name, case in zip(names, shown, strict=True):
            _print_failing_case(screen, f"{name}{' ' * (column - display_width(name))}", case)
    else:
        for outcome in (Outcome.FAILED, Outcome.ERROR):
            if names := [_listed_name(screen, case.case_id) for case in bad[:MAX_NAMES] if case.outcome is outcome]:
                screen.line("  ", (f"{outcome.value}:", STYLES[outcome]), f" {', '.join(names)}")
    if (more := len(bad) + len(flaky) - MAX_NAMES) > 0:
        screen.line(f"  and {plural(more, 'more case')}; all: proctor show --failed")


def _print_pending_cases(screen: Screen, suite: SuiteVerdict) -> None:
    ids = [case.case_id for case in suite.cases if case.outcome is Outcome.PENDING and not case.quarantined]
    if ids:
        more = f" and {plural(len(ids) - MAX_NAMES, 'more case')}" if len(ids) > MAX_NAMES else ""
        names = ", ".join(_listed_name(screen, case_id) for case_id in ids[:MAX_NAMES])
        screen.line("  ", ("pending:", STYLES[Outcome.PENDING]), f" {names}{more}")


def _listed_name(screen: Screen, case_id: str) -> str:
    """The id of a case in a list; on a terminal, a long one loses its middle."""
    if screen.width is None:
        return case_id
    return cut_middle(case_id, min(MAX_LISTED_NAME, screen.width - 6), "…" if screen.unicode else "...")


def _print_failing_case(screen: Screen, name: str, case: CaseVerdict) -> None:
    flaky: list[Span] = ["  ", (flaky_text(case), "magenta")] if case.is_flaky else []
    spans: list[Span] = [f" {name}  ", passed_text(case.passed, case.trials), *flaky]
    screen.line("  ", (f"{LABELS[case.outcome]:<5}", STYLES[case.outcome]), *spans)


def _print_case_counts(screen: Screen, suite: SuiteVerdict) -> None:
    spans: list[Span] = [f"  {plural(len(suite.cases), 'case')}: "]
    for number, (text, outcome) in enumerate(count_parts(suite.counts)):
        spans += [", " if number else "", (text, STYLES[outcome])]
    if suite.pass_rate is not None:
        rate = suite.pass_rate
        spans += ["; ", f"pass rate {rate_text(rate)}", f" {interval_text(rate)}", (" (95% interval)", "dim")]
    screen.line(*spans)


def _print_evaluator(screen: Screen, item: EvaluatorSummary, width: int, is_report_only: bool) -> None:
    mean = "no scores" if item.scores is None else str(item.scores)
    threshold = "report only" if is_report_only else "" if item.threshold is None else f"threshold {item.threshold:g}"
    counts = {
        Outcome.PASSED: item.passed,
        Outcome.FAILED: item.failed,
        Outcome.ERROR: item.errors,
        Outcome.SKIPPED: item.skipped,
        Outcome.PENDING: item.pending,
    }
    spans: list[Span] = [f"  {item.evaluator:<{width}}  {mean:<20}  ", (f"{threshold:<13}  ", "dim")]
    for number, (text, outcome) in enumerate(count_parts(counts)):
        spans += [", " if number else "", (text, STYLES[outcome])]
    column = width + 2 + 2 + 20 + 2 + 13 + 2  # where the counts start: the rest of a long line goes below them
    screen.line(*spans, hang=column if screen.width is not None and column + 12 <= screen.width else 4)


def _print_totals(screen: Screen, run: Run, verdict: RunVerdict) -> None:
    parts = [plural(len(run.summaries), "trial")]
    if run.finished_at is not None:
        parts[0] += f" in {duration(max(0.0, run.finished_at - run.started_at) * 1000)}"
    if verdict.tokens is not None:
        parts.append(plural(verdict.tokens, "token"))
    if verdict.cost_usd is not None:
        parts.append(money(verdict.cost_usd, estimated=verdict.estimated))
    slow = heapq.nlargest(3, _slowest_trials(run), key=lambda summary: summary.duration_ms)
    if slow and slow[0].duration_ms >= SLOW_MS:
        names = [
            f"{trial_name(s.case_id, s.number)} {duration(s.duration_ms)}" for s in slow if s.duration_ms >= SLOW_MS
        ]
        parts.append("slowest: " + ", ".join(names))
    screen.line((" · " if screen.unicode else " | ").join(parts))
    if run.hedging_note:
        screen.line(run.hedging_note)
    if run.masked_note:
        screen.line((f"note: {run.masked_note}", "yellow"))
    _print_judges(screen, run)


def _print_endpoints(screen: Screen, run: Run, *, verbose: bool) -> None:
    for endpoint in run.endpoints:
        name = f"{endpoint.name}: " if len(run.endpoints) > 1 else ""
        if endpoint.text:
            screen.line(f"{name}{endpoint.text}")
        if verbose:
            screen.line(f"  {endpoint.details}")


def _slowest_trials(run: Run) -> Iterable[TrialSummary]:
    """The slowest trial of each case that took long, so that no case is listed twice."""
    slowest: dict[tuple[str, str], TrialSummary] = {}
    for summary in run.summaries:
        if summary.duration_ms >= SLOW_MS:
            other = slowest.get(address := (summary.suite, summary.case_id))
            slowest[address] = summary if other is None or summary.duration_ms > other.duration_ms else other
    return slowest.values()


def _print_judges(screen: Screen, run: Run) -> None:
    if not run.judges and not run.unpriced_note:
        return
    from proctor.reporting.judge_report import judge_caveats, judge_lines  # heavy (calibration), and not for every run

    for model, text in judge_lines(run):
        screen.line(f"{judge_title(model)}: {text}")
    if run.unpriced_note:
        screen.line(run.unpriced_note)
    for title, text in judge_caveats(run):
        screen.line(text if title == "Corrected pass rate" else f"{title.lower()}: {text}")


def _print_next_commands(screen: Screen, run: Run, verdict: RunVerdict) -> None:
    """Print the commands that settle pending cases, each on its own line, so that it can be copied."""
    if (pending := pending_cases(run, verdict)) is None:
        return
    head = f"{pending.title}; "
    for what, command in pending.commands:
        screen.line(f"{'':<8}{head}{what}: ", (command, "bold"), hang=8)
        head = "or "


def _print_location(screen: Screen, run: Run) -> None:
    if run.store is not None:
        option = "" if run.store == ".proctor" else f" --store {run.store}"
        command = f"proctor show {run.id}{option}"
        screen.line((f"{'':<8}saved to {run.store}; show again: ", "dim"), (command, "dim"), hang=8)
