"""What pytest shows of a trial that did not pass: everything a person needs, and no traceback of Proctor's own."""

from __future__ import annotations

from pathlib import Path

from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback

from proctor.reporting.explain import BRIEF, FULL, as_text, explain, one_line_reason
from proctor.reporting.terminal.screen import one_line, visible
from proctor.results.run import Outcome, TrialResult

INSTRUMENT = "Nothing is known about the agent: the instrument or the infrastructure broke."
REUSED = "The answer is from an earlier session, since agent and question are unchanged (--proctor-reuse)."


class TrialFailed(Exception):
    """The agent did not pass."""

    def __init__(self, trial: TrialResult) -> None:
        super().__init__(one_line_reason(trial))
        self.trial = trial


class TrialBroken(Exception):
    """Nothing could be measured; says why, and has the trial if there was one."""

    def __init__(self, reason: str, trial: TrialResult | None = None) -> None:
        super().__init__(reason)
        self.trial = trial


def failure_text(error: TrialFailed | TrialBroken, *, verbose: bool) -> str:
    """The whole story, for the terminal and for JUnit."""
    trial = error.trial
    if trial is None:
        return f"{INSTRUMENT}\n{visible(str(error))}\n"
    lines = [title_of(trial)]
    if trial.outcome is Outcome.ERROR:
        lines.append(INSTRUMENT)
    lines.append(story_of(trial, verbose=verbose))
    if trial.reused:
        lines.append(REUSED)
    return "\n".join(lines) + "\n"


def title_of(trial: TrialResult) -> str:
    """Which trial it is, on one line whatever it is called."""
    return one_line(f"{trial.suite}/{trial.case.id}: {trial.outcome.value}")


def story_of(trial: TrialResult, *, verbose: bool) -> str:
    """Question, answer, tool calls, scores and reasons, in two columns."""
    return visible(as_text(explain(trial, FULL if verbose else BRIEF)))


def shown(text: str, message: str, path: Path, line: int) -> ExceptionChainRepr:
    """A representation that goes through pytest's reports, also from another process, with its one-line message."""
    told = ReprTraceback([ReprEntryNative([text])], extraline=None, style="native")
    place = ReprFileLocation(str(path), line, one_line(message))
    return ExceptionChainRepr([(told, place, None)])
