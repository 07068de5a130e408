"""The items that pytest runs: one for each trial of a suite, and one for each case that has no agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import ProctorError
from proctor.base.open_checks import record_open_check
from proctor.cases.quarantine_file import is_expired
from proctor.cases.suite import Case
from proctor.plugin.settings import AGENT_HINT
from proctor.plugin.trial_output import (
    TrialError,
    TrialFailed,
    answer_lines,
    case_line,
    failure_repr,
    failure_text,
    print_lines,
    terminal_symbols,
    tool_lines,
    trial_text,
)
from proctor.reporting.terminal.screen import escape_control, escape_line
from proctor.results.open_results import open_check_of
from proctor.results.reasons import headline_reason, score_value
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.running.plan import PlannedTrial


def _location(item: pytest.Item, case: Case) -> tuple[Path, int, str]:
    """The location of an item in pytest's reports: the file and line of its case, counted from 0."""
    position = case.position
    if position is None:
        return item.path, 0, item.name
    return position.path, (position.line or 1) - 1, item.name


class AgentlessItem(pytest.Item):
    """A case of a suite without an agent; it is skipped."""

    case: Case

    @classmethod
    def of(cls, parent: pytest.Collector, name: str, case: Case) -> AgentlessItem:
        item: AgentlessItem = cls.from_parent(parent, name=name)
        item.case = case
        return item

    def runtest(self) -> None:
        raise pytest.skip.Exception(f"the suite has no agent; {AGENT_HINT}", _use_item_location=True)

    def reportinfo(self) -> tuple[Path, int, str]:
        return _location(self, self.case)


class TrialItem(pytest.Item):
    """One trial of one case. It runs in pytest's setup phase, where a problem is an error and not a failure."""

    planned: PlannedTrial
    run: Callable[[PlannedTrial], Trial]
    """Runs the trial, or returns the session's result of it; raises `TrialError`."""
    trial: Trial | None = None

    @classmethod
    def of(
        cls, parent: pytest.Collector, name: str, planned: PlannedTrial, run: Callable[[PlannedTrial], Trial]
    ) -> TrialItem:
        item: TrialItem = cls.from_parent(parent, name=name)
        item.planned, item.run = planned, run
        case = planned.case
        item.extra_keyword_matches.update([*case.tags, planned.suite.suite.name, case.description, case.id])
        return item

    def setup(self) -> None:
        if self.config.getoption("setuponly", False):
            return
        self.trial = trial = self.run(self.planned)
        self.user_properties += junit_properties(trial)
        if self.config.getoption("capture") != "no":  # otherwise it was shown already
            for title, text in trial.captured.sections():
                self.add_report_section("call", title, escape_control(text))
        self._apply_quarantine(trial)
        if trial.outcome is Outcome.ERROR:
            raise TrialError(headline_reason(trial), trial)
        if trial.outcome is Outcome.SKIPPED:
            raise pytest.skip.Exception(headline_reason(trial), _use_item_location=True)

    def _apply_quarantine(self, trial: Trial) -> None:
        """What does not pass in quarantine is an expected failure. After its date the item is an error in any case."""
        quarantine = self.planned.case.quarantine
        if quarantine is None:
            return
        note = f"in quarantine until {quarantine.until}: {quarantine.reason}"
        if is_expired(quarantine):
            raise TrialError(
                f"its quarantine has expired; fix the case and remove the quarantine, or extend it ({note})", trial
            )
        if trial.outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING):
            pytest.xfail(note)

    def runtest(self) -> None:
        if self.trial is None:
            return
        if self.trial.outcome is Outcome.PASSED or self.config.getoption("capture") == "no":
            print_trial(self.trial)
        if self.trial.outcome is Outcome.FAILED:
            raise TrialFailed(self.trial)
        if self.trial.outcome is Outcome.PENDING:
            text = trial_text(self.trial, verbose=self.config.get_verbosity() > 0)
            record_open_check(open_check_of([self.trial], text))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        error = excinfo.value
        if isinstance(error, ProctorError):
            error = TrialError(str(error))
        if not isinstance(error, (TrialFailed, TrialError)):
            return super().repr_failure(excinfo)
        text = failure_text(error, verbose=self.config.get_verbosity() > 0)
        path, line, _ = self.reportinfo()
        return failure_repr(text, str(error), path, line + 1)

    def reportinfo(self) -> tuple[Path, int, str]:
        return _location(self, self.planned.case)


def print_trial(trial: Trial) -> None:
    """Print the tool calls, the answer and the scores, for `-s` and `-rA`."""
    symbols = terminal_symbols()
    print_lines(
        case_line(trial.case.id, trial.number, symbols), *tool_lines(trial, symbols), *answer_lines(trial, symbols)
    )
    if trial.outcome is Outcome.PASSED:
        print_lines(f"{symbols['ok']} {', '.join(f'{score.evaluator} {score_value(score)}' for score in trial.scores)}")


def junit_properties(trial: Trial) -> list[tuple[str, object]]:
    """The outcome and the scores, for pytest's JUnit report."""
    properties: list[tuple[str, object]] = [
        ("proctor.outcome", trial.outcome.value),
        ("proctor.suite", escape_line(trial.suite)),
    ]
    for score in trial.scores:
        turn = "" if score.turn is None else f".turn{score.turn + 1}"
        properties.append((escape_line(f"proctor.score.{score.evaluator}{turn}"), score_value(score)))
    usage = trial.usage
    if usage is not None and usage.cost_usd is not None:
        properties.append(("proctor.cost_usd", usage.cost_usd))
    return [*properties, ("proctor.reused", "yes")] if trial.reused else properties
