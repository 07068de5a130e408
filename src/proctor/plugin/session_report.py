"""What a session says: of a test that failed, and of all suites in the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from proctor.base.errors import StoreError
from proctor.base.json_data import plain
from proctor.plugin.collecting import TrialItem
from proctor.plugin.trial_output import story_of
from proctor.reporting.judge_report import judge_lines
from proctor.reporting.terminal.screen import encodable, one_line
from proctor.reporting.wording import STYLES, counted, counts_text, money, share
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict, SuiteVerdict
from proctor.running.python_api.agent_runner import AgentRun
from proctor.running.session.shared_run import ProcessSummary

if TYPE_CHECKING:
    from proctor.plugin.session import ProctorSession


def complete_report(
    report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[None], looked_at: AgentRun | None
) -> None:
    """The agent's own time for a trial; for a test that failed, the run it was looking at."""
    if isinstance(item, TrialItem):
        if call.excinfo is not None and report.when == "setup" and report.failed:
            report.longrepr = item.repr_failure(call.excinfo)  # which pytest itself asks only for the test proper
        if item.trial is not None and report.when in ("setup", "call"):
            report.duration = item.trial.duration_ms / 1000 if report.when == "setup" else 0.0
    elif report.when == "call" and report.failed and looked_at is not None:
        trial = looked_at.trial
        report.sections.append((f"case {one_line(trial.case.id)}", story_of(trial, verbose=True)))


def close_session(session: ProctorSession, of_pytest: pytest.Session) -> None:
    """A process among several tells the first one what it did; that one sums up."""
    summary = session.runs.summary()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["proctor"] = json.dumps(plain(summary))  # as ASCII: what processes tell each other must be encodable
        return
    session.summaries.append(summary)
    interrupted = of_pytest.exitstatus == pytest.ExitCode.INTERRUPTED
    try:
        note = _note(session, of_pytest)
        session.result = session.runs.finish(session.summaries, note, interrupted=interrupted)
    except StoreError as error:
        session.trouble = str(error)


def _note(session: ProctorSession, of_pytest: pytest.Session) -> str:
    """Why not every trial was made, where that is known."""
    notes = [note for summary in session.summaries for note in summary.notes]
    stopped = of_pytest.shouldfail or of_pytest.shouldstop
    return notes[0] if notes else f"pytest {stopped}" if isinstance(stopped, str) else ""


def tell_session(session: ProctorSession, terminal: Any) -> None:
    """The short section at the end of pytest's output."""
    reused = _reused(session.summaries)
    again = f"{counted(reused, 'answer')} reused from earlier sessions (--proctor-reuse)" if reused else ""
    reruns = sum(summary.asked_again for summary in session.summaries)
    lines: list[tuple[str, dict[str, bool]]] = []
    if session.result is not None:
        run, verdict = session.result
        lines += [(_suite_line(suite), {}) for suite in verdict.suites]
        lines += [(_totals(verdict), {}), *((text, {}) for text in _judges(run))]
        lines += [(again, {})] if again else []
        lines += [(f"{counted(reruns, 'trial')} asked again by reruns; the last answer counts", {})] if reruns else []
        lines += [(f"{verdict.outcome.upper()}  {verdict.reason}", _markup(verdict))]
        lines += [(f"kept in {session.settings.folder}; see it again with: proctor show {run.id}", {})]
    elif again:
        lines.append((again, {}))
    if session.trouble:
        lines.append((f"the results could not be summed up: {session.trouble}", {"red": True}))
    if lines:
        terminal.section("proctor", sep="-")
    encoding = getattr(terminal._tw._file, "encoding", None)
    for text, markup in lines:
        terminal.line(encodable(one_line(text), encoding), **markup)


def _reused(summaries: Sequence[ProcessSummary]) -> int:
    """How many answers were not asked for again; one that a suite and tests look at, in any process, is one."""
    taken = {(question, suite) for summary in summaries for question, suite in summary.reused}
    by_suites = {question for question, suite in taken if suite}
    return sum(1 for question, suite in taken if suite or question not in by_suites)


def _suite_line(suite: SuiteVerdict) -> str:
    rate = "" if suite.pass_rate is None else f"; pass rate {share(suite.pass_rate)} (95% interval)"
    return f"{suite.name}: {counts_text(suite.counts)}{rate}"


def _totals(verdict: RunVerdict) -> str:
    parts = [counted(sum(verdict.counts.values()), "trial")]
    parts += [] if verdict.tokens is None else [counted(verdict.tokens, "token")]
    parts += [] if verdict.cost_usd is None else [money(verdict.cost_usd, estimated=verdict.estimated)]
    return ", ".join(parts)


def _judges(run: Run) -> list[str]:
    return [text if model == "not counted" else f"judge {model}: {text}" for model, text in judge_lines(run)]


def _markup(verdict: RunVerdict) -> dict[str, bool]:
    return {word: True for word in STYLES[verdict.outcome].split() if word in ("bold", "red", "green", "yellow")}


def receive_summary(session: ProctorSession, told: str) -> None:
    """What a process that has ended did."""
    session.summaries.append(ProcessSummary(**json.loads(told)))
