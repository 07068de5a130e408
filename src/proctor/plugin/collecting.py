"""Suites as pytest sees them: a file, its cases, an item for each trial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import InvalidSuite, ProctorError
from proctor.cases.formats.loading import load_file
from proctor.cases.suite import Case, Suite
from proctor.plugin.session import WANTED, ProctorSession, session_of
from proctor.plugin.startup import named_files
from proctor.plugin.trial_output import (
    TrialBroken,
    TrialFailed,
    answer_lines,
    case_line,
    failure_text,
    present_signs,
    shown,
    tell,
    tool_lines,
)
from proctor.reporting.explain import one_line_reason, why_open
from proctor.reporting.terminal.screen import one_line
from proctor.reporting.wording import score_value
from proctor.results.run import Outcome, TrialResult
from proctor.running.engine.plan import PlannedTrial


class SuiteFile(pytest.File):
    """A file of one or more suites."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        try:
            session = session_of(self.config)
            suites = load_file(self.path)
            for suite in suites:
                for warning in suite.warnings:
                    self.warn(pytest.PytestWarning(str(warning)))
            if len(suites) == 1:
                yield from items_of(self, suites[0], session)
            else:
                yield from (SuitePart.of(self, suite) for suite in suites)
        except InvalidSuite as error:
            raise self.CollectError(_listed(error)) from None
        except (ProctorError, OSError) as error:
            raise self.CollectError(f"{self.path}: {error}") from None


class SuitePart(pytest.Collector):
    """One of several suites in a file."""

    suite: Suite

    @classmethod
    def of(cls, parent: SuiteFile, suite: Suite) -> SuitePart:
        part: SuitePart = cls.from_parent(parent, name=_node_name(suite.name))
        part.suite = suite
        return part

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        try:
            yield from items_of(self, self.suite, session_of(self.config))
        except InvalidSuite as error:
            raise self.CollectError(_listed(error)) from None
        except ProctorError as error:
            raise self.CollectError(f"{self.path}: {error}") from None


def items_of(parent: pytest.Collector, suite: Suite, session: ProctorSession) -> Iterator[pytest.Item]:
    """One item for each trial; a suite that was merely found lying there and has no agent is skipped, not wrong."""
    own = suite.agent if suite.agent is not None else suite.agents or None
    if not session.settings.has_agent_for(own):
        if parent.path in named_files(parent.config):
            raise parent.CollectError(f"{parent.path}: names no agent; {WANTED}")
        yield from (AgentlessItem.from_parent(parent, name=name) for name, _ in _named(suite.cases))
        return
    plan = session.plan(suite, session.settings.agent_for(own))
    names = {case.id: name for name, case in _named(suite.cases)}
    repeated = {trial.case.id for trial in plan.trials if trial.number > 1}
    for trial in plan.trials:
        name = names[trial.case.id] + (f"[{trial.suite.agent_name}]" if trial.suite.source else "")
        yield TrialItem.of(parent, f"{name}[{trial.number}]" if trial.case.id in repeated else name, trial)


class AgentlessItem(pytest.Item):
    """A case without an agent to ask."""

    def runtest(self) -> None:
        raise pytest.skip.Exception(f"the suite names no agent; {WANTED}", _use_item_location=True)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class TrialItem(pytest.Item):
    """One trial of one case. It is made while pytest sets the item up, so that what breaks there is an error."""

    planned: PlannedTrial
    trial: TrialResult | None = None

    @classmethod
    def of(cls, parent: pytest.Collector, name: str, planned: PlannedTrial) -> TrialItem:
        item: TrialItem = cls.from_parent(parent, name=name)
        item.planned = planned
        case = planned.case
        item.extra_keyword_matches.update([*case.tags, planned.suite.suite.name, case.description, case.id])
        return item

    def setup(self) -> None:
        if self.config.getoption("setuponly", False):
            return
        self.trial = trial = session_of(self.config).trial_of(self)
        self.user_properties += properties_of(trial)
        self._heed_quarantine(trial)
        if trial.outcome is Outcome.ERROR:
            raise TrialBroken(one_line_reason(trial), trial)
        if trial.outcome in (Outcome.SKIPPED, Outcome.PENDING):
            words = [trial.outcome.value if trial.outcome is Outcome.PENDING else "", why_open(trial)]
            raise pytest.skip.Exception(": ".join(filter(None, words)), _use_item_location=True)

    def _heed_quarantine(self, trial: TrialResult) -> None:
        """What goes wrong in quarantine is an expected failure; past its date the item fails, whatever happened."""
        quarantine = self.planned.case.quarantine
        if quarantine is None:
            return
        from proctor.cases.quarantine_file import is_over

        told = f"in quarantine until {quarantine.until}: {quarantine.reason}"
        if is_over(quarantine):
            raise TrialBroken(f"its quarantine is over; mend the case and lift it, or extend it ({told})", trial)
        if trial.outcome in (Outcome.FAILED, Outcome.ERROR):
            pytest.xfail(told)

    def runtest(self) -> None:
        if self.trial is None:
            return
        if self.trial.outcome is Outcome.PASSED or self.config.getoption("capture") == "no":
            show_trial(self.trial)
        if self.trial.outcome is Outcome.FAILED:
            raise TrialFailed(self.trial)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        error = excinfo.value
        if isinstance(error, ProctorError):
            error = TrialBroken(str(error))
        if not isinstance(error, (TrialFailed, TrialBroken)):
            return super().repr_failure(excinfo)
        text = failure_text(error, verbose=self.config.get_verbosity() > 0)
        return shown(text, str(error), self.path, self.reportinfo()[1] + 1)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, (self.planned.case.line or 1) - 1, self.name


def show_trial(trial: TrialResult) -> None:
    """Print what happened, for `-s` and `-rA`."""
    signs = present_signs()
    tell(case_line(trial.case.id, trial.number, signs), *tool_lines(trial, signs), *answer_lines(trial, signs))
    if trial.outcome is Outcome.PASSED:
        tell(f"{signs['ok']} {', '.join(f'{score.evaluator} {score_value(score)}' for score in trial.scores)}")


def properties_of(trial: TrialResult) -> list[tuple[str, object]]:
    """For pytest's own JUnit report: the outcome in Proctor's words, and the scores."""
    found: list[tuple[str, object]] = [
        ("proctor.outcome", trial.outcome.value),
        ("proctor.suite", one_line(trial.suite)),
    ]
    for score in trial.scores:
        turn = "" if score.turn is None else f".turn{score.turn + 1}"
        found.append((one_line(f"proctor.score.{score.evaluator}{turn}"), score_value(score)))
    usage = trial.usage
    if usage is not None and usage.cost_usd is not None:
        found.append(("proctor.cost_usd", usage.cost_usd))
    return [*found, ("proctor.reused", "yes")] if trial.reused else found


def _named(cases: Sequence[Case]) -> Iterator[tuple[str, Case]]:
    """Each case with a name that a node id can hold, no two alike."""
    taken: set[str] = set()
    for case in cases:
        name, number = _node_name(case.id), 2
        while name in taken:
            name, number = f"{_node_name(case.id)}#{number}", number + 1
        taken.add(name)
        yield name, case


def _node_name(text: str) -> str:
    return one_line(text).replace("::", ":")


def _listed(error: InvalidSuite) -> str:
    return "\n".join(_lines(map(str, error.problems)))


def _lines(problems: Iterable[str]) -> list[str]:
    return [one_line(problem) for problem in problems]
