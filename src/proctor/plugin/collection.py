"""Suites as pytest sees them: a file, its cases, and an item for each trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from proctor.base.errors import InvalidSuite, ProctorError
from proctor.cases.formats.loading import load_file
from proctor.cases.suite import Case, Suite
from proctor.plugin.items import AgentlessItem, TrialItem
from proctor.plugin.session import ProctorSession, session_of
from proctor.plugin.settings import AGENT_HINT
from proctor.plugin.startup import named_files
from proctor.reporting.terminal.screen import escape_line


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
                yield from make_items(self, suites[0], session)
            else:
                yield from (SuitePart.of(self, suite) for suite in suites)
        except InvalidSuite as error:
            raise self.CollectError(_problem_lines(error)) from None
        except (ProctorError, OSError) as error:
            raise self.CollectError(f"{self.path}: {error}") from None


class SuitePart(pytest.Collector):
    """One of several suites in a file, or a suite in a test module."""

    suite: Suite

    @classmethod
    def of(cls, parent: pytest.Collector, suite: Suite, name: str | None = None) -> SuitePart:
        part: SuitePart = cls.from_parent(parent, name=_node_name(suite.name) if name is None else name)
        part.suite = suite
        return part

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        try:
            yield from make_items(self, self.suite, session_of(self.config))
        except InvalidSuite as error:
            raise self.CollectError(_problem_lines(error)) from None
        except ProctorError as error:
            raise self.CollectError(f"{self.path}: {error}") from None


def collect_suite(parent: pytest.Collector, name: str, suite: object) -> SuitePart | None:
    """The collector of a suite in a test module, if pytest would collect a function with this name."""
    if not isinstance(suite, Suite) or not isinstance(parent, pytest.Module | pytest.Class):
        return None
    if not parent.funcnamefilter(name):
        return None
    return SuitePart.of(parent, replace(suite, path=suite.path or parent.path), name)


def make_items(parent: pytest.Collector, suite: Suite, session: ProctorSession) -> Iterator[pytest.Item]:
    """An item for each trial. Without an agent, a suite that the command line names is an error; others are skipped."""
    own = suite.agent if suite.agent is not None else suite.arms or None
    if not session.settings.has_agent_for(own):
        if parent.path in named_files(parent.config):
            raise parent.CollectError(f"{parent.path}: the suite has no agent; {AGENT_HINT}")
        yield from (AgentlessItem.of(parent, name, case) for name, case in _with_node_names(suite.cases))
        return
    plan = session.plan(suite, session.settings.agent_for(own))
    if versions := [item for item in plan.suites if item.process is not None and item.process.ref]:
        arm = versions[0].agent_name
        raise parent.CollectError(f"{parent.path}: the arm {arm} is a git reference, which `proctor test` can run")
    names = {case.id: name for name, case in _with_node_names(suite.cases)}
    repeated = {trial.case.id for trial in plan.trials if trial.number > 1}
    for trial in plan.trials:
        name = names[trial.case.id] + (f"[{trial.suite.agent_name}]" if trial.suite.source else "")
        title = f"{name}[{trial.number}]" if trial.case.id in repeated else name
        yield TrialItem.of(parent, title, trial, session.trial_of)


def _with_node_names(cases: Sequence[Case]) -> Iterator[tuple[str, Case]]:
    """Each case with a unique name that is valid in a node id."""
    names: set[str] = set()
    for case in cases:
        name, number = _node_name(case.id), 2
        while name in names:
            name, number = f"{_node_name(case.id)}#{number}", number + 1
        names.add(name)
        yield name, case


def _node_name(text: str) -> str:
    return escape_line(text).replace("::", ":")


def _problem_lines(error: InvalidSuite) -> str:
    return "\n".join(escape_line(str(problem)) for problem in error.problems)
