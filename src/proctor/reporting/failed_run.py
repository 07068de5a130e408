"""Why a run did not pass, as text: for `AssertionError`s and for pytest."""

from __future__ import annotations

from dataclasses import replace

from proctor.reporting.explain import BRIEF, FULL, as_text, explain
from proctor.reporting.terminal.screen import escape_control, escape_line
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.trial import Trial

MAX_CASES = 20
"""How many cases are explained; the others are named only by their number."""


def failure_message(run: Run) -> str:
    """The verdict, and for each case that did not pass its input, expectation, answer and reason."""
    cases = [case for case in run.cases if case.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
    parts = [escape_line(str(run.verdict))]
    parts += [f"{trial_title(case.trial)}\n{trial_details(case.trial)}" for case in cases[:MAX_CASES]]
    if len(cases) > MAX_CASES:
        parts.append(f"and {len(cases) - MAX_CASES:,} more cases that did not pass")
    return "\n\n".join(parts)


def trial_title(trial: Trial) -> str:
    """The suite, case and outcome of a trial on one line."""
    return escape_line(f"{trial.suite}/{trial.case.id}: {trial.outcome.value}")


def trial_details(trial: Trial, *, verbose: bool = False, printed: bool = True) -> str:
    """Input, output, tool calls, scores and reasons in two columns; also what was `printed`."""
    detail = FULL if verbose else BRIEF
    return escape_control(as_text(explain(trial, detail if printed else replace(detail, output_lines=0))))


def reply_details(trial: Trial) -> str:
    """The same for a reply whose question is not known."""
    return escape_control(as_text([fact for fact in explain(trial, BRIEF) if fact.label != "input"]))
