"""The plain lines of a run: one for each trial with the reason for what failed, and the summary at its end."""

from __future__ import annotations

import heapq
import sys
import textwrap
from collections.abc import Iterator, Sequence

from proctor.agents.agent import ToolCall
from proctor.base.json_data import show
from proctor.reporting.explain import BRIEF, FULL, Detail, Fact, answer, explain, length_told, shorten, why_open
from proctor.reporting.terminal.screen import Screen, Span, cells, encodable, one_line, visible
from proctor.reporting.wording import (
    SHORT,
    STYLES,
    count_parts,
    counted,
    duration,
    flaky_text,
    informing,
    money,
    reliability_text,
    score_texts,
    share,
    trial_name,
)
from proctor.results.run import Outcome, Run, TrialResult
from proctor.results.verdict import EvaluatorSummary, RunVerdict, SuiteVerdict

INDENT = 7
NAME_WIDTH = 32
WIDEST_NAME = 60
WIDEST_LABEL = 26
WARNINGS_SHOWN = 20


def tell_start(screen: Screen, run: Run, planned: int, kept: int) -> None:
    """What is about to happen."""
    suites = run.suites
    where = suites[0].name if len(suites) == 1 else counted(len(suites), "suite")
    agents = list(dict.fromkeys(info.agent for info in suites if info.agent))
    whom = f" with {agents[0]}" if len(agents) == 1 else f" with {len(agents)} agents" if agents else ""
    before = f", of which {kept:,} are there already" if kept else ""
    screen.line((where, "bold"), f"{whom}: {counted(planned, 'trial')}{before}")
    if run.uncounted and run.finished_at is None:
        screen.line((f"note: {run.uncounted}", "yellow"))
    screen.line()


class NameColumn:
    """Keeps what follows the names of trials in line: it grows with the names met so far, up to a point."""

    def __init__(self) -> None:
        self._width = NAME_WIDTH

    def padded(self, name: str) -> str:
        width = cells(name)
        self._width = max(self._width, min(width, WIDEST_NAME))
        return name + " " * (self._width - width)


def tell_trial(
    screen: Screen, trial: TrialResult, *, verbose: bool, warnings: Sequence[str], names: NameColumn
) -> None:
    """One line, with an explanation below if the trial went wrong or everything is asked for."""
    screen.line(*_trial_line(trial, names))
    detail = FULL if verbose else BRIEF
    explained = verbose or trial.outcome in (Outcome.FAILED, Outcome.ERROR)
    facts = explain(trial, detail) if explained else []
    facts += [Fact("warning", warning, Outcome.ERROR) for warning in warnings]
    if facts:
        tell_facts(screen, facts, detail)
        screen.line()


def tell_facts(screen: Screen, facts: Sequence[Fact], detail: Detail) -> None:
    """Facts in two columns: the word that introduces each, and its text."""
    column = min(WIDEST_LABEL, max((len(fact.label) for fact in facts), default=0)) + 2
    room = None if screen.width is None else max(30, screen.width - INDENT - column)
    for fact in facts:
        style = "dim" if fact.outcome is None else STYLES[fact.outcome]
        label: Span = (f"{' ' * INDENT}{visible(fact.label):<{column}}", style)
        if len(fact.label) > column - 2:
            screen.line(label)
            label = " " * (INDENT + column)
        for line in _text_lines(fact.text, room, detail.lines):
            screen.line(label, line)
            label = " " * (INDENT + column)


class Warnings:
    """Says each warning once, and the first few only, so that five thousand alike do not bury the failures."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._unsaid = 0

    def fresh(self, trial: TrialResult) -> list[str]:
        """The warnings of a trial that have not been said yet."""
        fresh = []
        for warning in trial.warnings:
            if warning in self._said:
                continue
            if len(self._said) >= WARNINGS_SHOWN:
                self._unsaid += 1
                continue
            self._said.add(warning)
            fresh.append(warning)
        return fresh

    def tell_rest(self, screen: Screen) -> None:
        if self._unsaid:
            screen.line(f"{counted(self._unsaid, 'more warning')} not shown; the JSON report has all of them")


def _trial_line(trial: TrialResult, names: NameColumn) -> list[Span]:
    spans: list[Span] = [
        (f"{SHORT[trial.outcome]:<{INDENT - 2}}  ", STYLES[trial.outcome]),
        f"{names.padded(one_line(f'{trial.suite}/{trial_name(trial.case.id, trial.number)}'))}  ",
        (f"{'' if trial.outcome is Outcome.SKIPPED else duration(trial.duration_ms):>6}", "dim"),
    ]
    separator = "  "
    for text, outcome in score_texts(trial.scores):
        spans += [separator, (text, "" if outcome is Outcome.PASSED else STYLES[outcome])]
        separator = ", "
    if trial.outcome in (Outcome.SKIPPED, Outcome.PENDING) and (reason := why_open(trial)):
        spans.append((f"  {reason}", "dim"))
    if trial.attempts > 1:
        spans.append((f"  ({trial.attempts} attempts)", "dim"))
    if trial.reused:
        spans.append(("  (from an earlier run)", "dim"))
    return spans


def _text_lines(text: str, room: int | None, most: int) -> list[str]:
    lines = visible(text).expandtabs(4).split("\n")
    if room is not None:
        lines = [piece for line in lines for piece in textwrap.wrap(line, room, replace_whitespace=False) or [""]]
    if len(lines) > most:
        lines = [*lines[:most], length_told(text) or f"... ({counted(len(lines) - most, 'more line')})"]
    return lines


SIGNS = {"case": "🤖", "tool": "🔧", "ok": "✅", "bad": "❌", "answer": "💬"}
PLAIN_SIGNS = {"case": ">", "tool": "*", "ok": "[ok]", "bad": "[x]", "answer": "-"}

LONGEST = 500


def case_line(case_id: str, number: int, signs: dict[str, str]) -> str:
    return f"{signs['case']} Running test case: {trial_name(case_id, number)}"


def tool_lines(trial: TrialResult, signs: dict[str, str]) -> Iterator[str]:
    """Every call with its arguments and result; that there was none is worth a line as well."""
    calls = [call for reply in trial.replies for call in reply.tool_calls]
    if not calls and trial.replies:
        yield f"{signs['tool']} No tool was called"
    for call in calls:
        yield f"{signs['tool']} Tool: {call.name}"
        yield from _call_lines(call)


def answer_lines(trial: TrialResult, signs: dict[str, str]) -> Iterator[str]:
    """What was answered, or why there is no answer."""
    if trial.replies:
        yield f"{signs['answer']} {shorten(answer(trial.replies[-1]), LONGEST) or '(an empty answer)'}"
    if trial.reason:
        yield f"{signs['bad']} {shorten(trial.reason, LONGEST)}"


def present_signs() -> dict[str, str]:
    """Signs that can be shown now, and later on the terminal if what is printed is kept until then."""
    for stream in (sys.stdout, sys.__stdout__):
        encoding = getattr(stream, "encoding", None)
        if encoding is not None and encodable("".join(SIGNS.values()), encoding) != "".join(SIGNS.values()):
            return PLAIN_SIGNS
    return SIGNS


def tell(*lines: str) -> None:
    """Print lines, whatever they hold and whatever the terminal can show."""
    encoding = getattr(sys.stdout, "encoding", None)
    for line in lines:
        print(encodable(visible(line), encoding))  # noqa: T201  tests capture it, or show it with -s


def _call_lines(call: ToolCall) -> Iterator[str]:
    if call.raw_arguments is not None:
        yield f"   Arguments, which are not a JSON object: {shorten(call.raw_arguments, LONGEST)}"
    elif call.arguments:
        yield "   Arguments:"
        yield from (f"     - {name}: {shorten(show(value), LONGEST)}" for name, value in call.arguments.items())
    else:
        yield "   Arguments: none"
    if call.error is not None:
        yield f"   Raised: {shorten(call.error, LONGEST)}"
    elif call.result is not None:
        yield f"   Result: {shorten(show(call.result), LONGEST)}"


RULE_WIDTH = 72
NAMES_SHOWN = 8
SLOW_MS = 1_000


def tell_summary(screen: Screen, run: Run, verdict: RunVerdict, *, verbose: bool = False) -> None:
    """Everything a person wants to know once all trials are made; with pictures of distributions if `verbose`."""
    screen.line((("─" if screen.unicode else "-") * RULE_WIDTH, "dim"))
    informs = informing(run)
    for suite in verdict.suites:
        _tell_suite(screen, suite, informs, alone=len(verdict.suites) == 1)
    if run.compares_agents:
        from proctor.reporting.agents_report import show_agents

        show_agents(run, screen)
    if verbose:
        from proctor.reporting.distributions import distribution_lines

        for name, picture in distribution_lines(run, unicode=screen.unicode):
            screen.line(f"{name}  {picture}")
    _tell_totals(screen, run, verdict)
    screen.line()
    _tell_gate(screen, run)
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
    word = "INCONCLUSIVE  " if run.gate is not None and run.gate.verdict == "inconclusive" else verdict.outcome.upper()
    screen.line((f"{word:<8}", STYLES[verdict.outcome]), (verdict.reason, "bold"))
    if run.interrupted:
        planned = sum(info.planned for info in run.suites)
        hint = "" if "--resume" in verdict.reason else "; --resume goes on from there"
        screen.line(f"{'':<8}interrupted after {len(run.summaries):,} of {counted(planned, 'trial')}{hint}")


def _tell_gate(screen: Screen, run: Run) -> None:
    if run.gate is None:
        return
    from proctor.reporting.gate_report import VERDICTS, gate_lines

    screen.line((f"gate: {VERDICTS[run.gate.verdict]}", STYLES[run.gate.outcome]))
    for line in gate_lines(run):
        style = "dim" if line.outcome is None else STYLES[line.outcome]
        screen.line((f"  {line.label:<18}  ", style), line.text)
    screen.line()


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
    for case in [case for case in suite.cases if case.is_flaky][:NAMES_SHOWN]:
        screen.line("  ", (flaky_text(case), "magenta"), f" {case.case_id}")
    for outcome in (Outcome.FAILED, Outcome.ERROR):
        names = [case.case_id for case in suite.cases if case.outcome is outcome and not case.quarantined]
        if names:
            more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
            screen.line("  ", (f"{outcome.value}:", STYLES[outcome]), f" {', '.join(names[:NAMES_SHOWN])}{more}")
    if resting := [f"{case.case_id} ({case.outcome.value})" for case in suite.cases if case.quarantined]:
        screen.line("  ", ("in quarantine:", "cyan"), f" {', '.join(resting)}")
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
        parts.append(money(verdict.cost_usd, estimated=verdict.estimated))
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
