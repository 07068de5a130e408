"""A pytest session in which agents are examined: its settings, what it runs and shares, and what it says in the end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.agents.agent import BaseAgent
from proctor.agents.resolving import resolve_agent
from proctor.base.event_loops import close_kept_loops
from proctor.base.json_data import canonical, plain
from proctor.cases.suite import Suite
from proctor.cli.configuration import read_configuration
from proctor.plugin.startup import SESSION, sharing_of
from proctor.results.run import Run, TrialResult
from proctor.results.verdict import RunVerdict
from proctor.running.engine.plan import Plan, PlannedSuite
from proctor.running.python_api.agent_runner import AgentRun
from proctor.running.session.answer_reuse import SessionId
from proctor.running.session.shared_run import Address, ProcessSummary, SharedRuns, address_of

WANTED = "give one with --proctor-agent app.py:agent, or with proctor_agent in pytest's ini file"


class SessionSettings:
    """Everything a session was told; agents are looked up when they are needed."""

    def __init__(self, config: pytest.Config) -> None:
        known = read_configuration(config.rootpath)
        variables = ExitStack()
        variables.enter_context(known.environment())
        config.add_cleanup(variables.close)
        chosen = config.getoption("proctor_store")
        self.config = config
        self.reuse: bool = config.getoption("proctor_reuse") or config.getini("proctor_reuse")
        self.folder = Path.cwd() / chosen if chosen else config.rootpath / known.store(None)
        self.options = known.run_options(judge=config.getoption("proctor_judge"), fast=config.getoption("proctor_fast"))
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        given = worker.get("proctor")
        self.session = SessionId(**(given or sharing_of(config)), several=given is not None)

    @functools.cached_property
    def agent(self) -> BaseAgent | None:
        """Instead of the agents that suites name."""
        given = self.config.getoption("proctor_agent")
        return resolve_agent(given, Path.cwd()) if given else None

    @functools.cached_property
    def usual_agent(self) -> BaseAgent | None:
        """For suites that name none."""
        usual = self.config.getini("proctor_agent")
        return resolve_agent(usual, self.config.rootpath) if usual else None

    def has_agent_for(self, named: Any) -> bool:
        return named is not None or self.agent is not None or self.usual_agent is not None

    def agent_for(self, named: Any) -> BaseAgent | None:
        """The agent to be asked instead of the one that a suite names; `None` leaves it to the suite."""
        return self.agent or (None if named is not None else self.usual_agent)


if TYPE_CHECKING:
    from proctor.plugin.collecting import TrialItem

BATCHES = 4
"""So many times what may run at once is begun together: enough to keep agents busy, little enough to see progress."""


def session_of(config: pytest.Config) -> ProctorSession:
    """The session, begun with the first suite or fixture that needs it; raises `UsageError`."""
    if SESSION not in config.stash:
        session = config.stash[SESSION] = ProctorSession(config)
        config.pluginmanager.register(session, "proctor-session")
    return config.stash[SESSION]


class ProctorSession:
    """Registered as a plugin of its own, so that sessions without agents have none of its hooks."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = SessionSettings(config)
        self.runs = SharedRuns(
            self.settings.folder, self.settings.options, self.settings.session, reuse=self.settings.reuse
        )
        self.summaries: list[ProcessSummary] = []
        """What other processes told."""
        self.looked_at: AgentRun | None = None
        """The run that the present test looked at last."""
        self.result: tuple[Run, RunVerdict] | None = None
        self.trouble = ""
        self._agents: dict[str, BaseAgent] = {}
        self._waiting: dict[int, list[TrialItem]] = {}
        self._made: dict[Address, TrialResult] = {}

    def trial_of(self, item: TrialItem) -> TrialResult:
        """The trial of an item; what comes after it in the same suite is begun together with it."""
        from proctor.plugin.trial_output import TrialBroken

        address = address_of(item.planned)
        if address not in self._made:
            self._made |= self.runs.make([other.planned for other in self._batch(item)])
        trial = self._made.pop(address, None)
        if trial is None:
            notes = self.runs.summary().notes
            raise TrialBroken(notes[-1] if notes else "the trial was not made")
        return trial

    def plan(self, suite: Suite, agent: Any) -> Plan:
        """The trials of a suite, put to `agent` or else to the one that it names; raises `InvalidSuite`."""
        plan = self.runs.plan(suite, agent)
        if agent is None:
            self._agents.setdefault(_reference(suite), plan.suites[0].agent)
        return plan

    def agent_of(self, suite: Suite) -> BaseAgent:
        """The agent that a suite names; the same one all along, since it may load more of itself once it is asked."""
        reference = _reference(suite)
        if reference not in self._agents:
            self._agents[reference] = resolve_agent(suite.agent, suite.base)
        return self._agents[reference]

    def add_suite(self, planned: PlannedSuite, trials: int) -> None:
        """Make a suite part of the session's run, under a name that no other suite there has."""
        name, known = planned.suite.name, self.runs.known_suite(planned.suite.name)
        if known is not None and known.suite.path != planned.suite.path:
            name = f"{name} ({self._place(planned.suite)})"
            planned.suite = replace(planned.suite, name=name)
        self.runs.add_suite(planned, trials)

    def look_at(self, run: AgentRun) -> None:
        self.looked_at = run

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What is selected is known now: give each trial its place in the run."""
        from proctor.plugin.collecting import TrialItem

        for position, item in enumerate(session.items):
            if isinstance(item, TrialItem):
                item.planned = replace(item.planned, position=position)
                self._waiting.setdefault(id(item.planned.suite), []).append(item)
        for items in self._waiting.values():
            self.add_suite(items[0].planned.suite, len(items))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.looked_at = None
        self.runs.begin_test(again=getattr(item, "execution_count", 1) > 1)  # as pytest-rerunfailures counts

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        from proctor.plugin.session_report import complete_report

        report = yield
        complete_report(report, item, call, self.looked_at)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        from proctor.plugin.session_report import close_session

        close_session(self, session)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        from proctor.plugin.session_report import tell_session

        tell_session(self, terminalreporter)

    def pytest_unconfigure(self) -> None:
        self.runs.close(last=not self.settings.session.several)
        close_kept_loops()

    def _batch(self, item: TrialItem) -> list[TrialItem]:
        """The item alone where each failure matters at once, or where other processes take the others."""
        waiting = self._waiting.get(id(item.planned.suite), [])
        if self._is_step_by_step() or item not in waiting:
            return [item]
        begin = waiting.index(item)
        size = BATCHES * item.planned.suite.limits.parallel
        batch = waiting[begin : begin + size]
        self._waiting[id(item.planned.suite)] = waiting[:begin] + waiting[begin + size :]
        return batch

    def _is_step_by_step(self) -> bool:
        asked: Callable[[str], Any] = lambda name: self.config.getoption(name, None)  # noqa: E731
        return self.settings.session.several or any(map(asked, ("maxfail", "stepwise", "usepdb", "setuponly")))

    def _place(self, suite: Suite) -> str:
        path, root = suite.path, self.config.rootpath
        if path is None:
            return "in Python"
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _reference(suite: Suite) -> str:
    return canonical([plain(suite.agent), str(suite.base)])
