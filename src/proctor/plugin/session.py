"""A pytest session that tests agents: its trials, the objects that tests share, and the hooks of pytest.

Trials run in batches although pytest runs one test after another: an agent that takes seconds to answer gets several
inputs in parallel, as under `proctor test`. When the first item of a batch is set up, the whole batch runs, and the
other items find their trials ready.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.agents.agent import BaseAgent
from proctor.agents.resolve import resolve_agent
from proctor.base.errors import StoreError
from proctor.base.event_loops import close_session_loops
from proctor.base.json_data import canonical, to_json
from proctor.cases.identity import TrialAddress
from proctor.cases.suite import Suite
from proctor.plugin.items import AgentlessItem, TrialItem
from proctor.plugin.pending_tests import pending_mode
from proctor.plugin.session_report import complete_report, print_summary
from proctor.plugin.session_run import ProcessSummary, SessionRun, TrialKey
from proctor.plugin.settings import AGENT_HINT, SessionSettings
from proctor.plugin.startup import SESSION
from proctor.plugin.trial_output import TrialError
from proctor.reporting.terminal.screen import escape_line
from proctor.reporting.wording import plural
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict
from proctor.running.assertions.agent_runner import AgentRun
from proctor.running.plan import Plan, PlannedSuite, PlannedTrial

BATCH_FACTOR = 4
"""The size of a batch, in multiples of `parallel`: enough to keep agents busy, small enough to see progress."""


def session_of(config: pytest.Config) -> ProctorSession:
    """The session, which is created for the first suite or fixture that needs it; raises `UsageError`."""
    if SESSION not in config.stash:
        session = config.stash[SESSION] = ProctorSession(config)
        config.pluginmanager.register(session, "proctor-session")
    return config.stash[SESSION]


class ProctorSession:
    """A session, registered as a separate plugin, so that sessions without agents have none of its hooks."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = SessionSettings(config)
        self.runs = SessionRun(
            self.settings.folder, self.settings.options, self.settings.session, reuse=self.settings.reuse
        )
        self._summaries: list[ProcessSummary] = []
        """Of all processes that have ended."""
        self._last_run: AgentRun | None = None
        """The run that the current test used last."""
        self._result: tuple[Run, RunVerdict] | None = None
        self._problem = ""
        """Why the results could not be summarized."""
        self._red_because = ""
        """Why the session fails although no test did."""
        self._agents: dict[str, BaseAgent] = {}
        self._waiting: dict[str, dict[TrialAddress, PlannedTrial]] = {}
        """By suite: the trials of collected items that have not run yet, in the order of the items."""
        self._ready: dict[TrialAddress, Trial] = {}
        """Trials that ran with their batch; each is removed when its item takes it."""

    def trial_of(self, planned: PlannedTrial) -> Trial:
        """The trial of an item, which runs together with those of the next items; raises `TrialError`."""
        if planned.address not in self._ready:
            self._ready |= self.runs.run_trials(self._batch(planned))
        trial = self._ready.pop(planned.address, None)
        if trial is None:
            notes = self.runs.summary().notes
            raise TrialError(notes[-1] if notes else "the trial was not run")
        return trial

    def plan(self, suite: Suite, agent: Any) -> Plan:
        """The trials of a suite with `agent`, or else with the suite's own; raises `InvalidSuite`."""
        plan = self.runs.plan(suite, agent)
        if agent is None:
            self._agents.setdefault(_agent_key(suite), plan.suites[0].agent)
        return plan

    def agent_of(self, suite: Suite) -> BaseAgent:
        """The agent of a suite; the same object every time, since an agent may load parts of itself while it runs."""
        key = _agent_key(suite)
        if key not in self._agents:
            self._agents[key] = resolve_agent(suite.agent, suite.base)
        return self._agents[key]

    def add_suite(self, planned: PlannedSuite, trials: Iterable[TrialKey]) -> PlannedSuite:
        """Add a suite and these of its trials to the session's run; returns it with a unique name."""
        other = self.runs.suite_named(planned.suite.name)
        if other is not None and other.suite.path != planned.suite.path:
            name = f"{planned.suite.name} ({self._location(planned.suite)})"
            planned = replace(planned, suite=replace(planned.suite, name=name))
        return self.runs.add_suite(planned, trials)

    def set_last_run(self, run: AgentRun) -> None:
        """Remember the run that a test uses, to show it if the test fails."""
        self._last_run = run

    def receive_summary(self, text: str) -> None:
        """Add the summary that another process of the session sent when it ended."""
        self._summaries.append(ProcessSummary(**json.loads(text)))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Set the position of each trial and the number of trials of each suite, now that the selection is final."""
        self.runs.without_agent = sum(isinstance(item, AgentlessItem) for item in session.items)
        by_suite: dict[tuple[Path | None, str], list[TrialItem]] = {}
        for position, item in enumerate(session.items):
            if isinstance(item, TrialItem):
                item.planned = replace(item.planned, position=position)
                suite = item.planned.suite.suite
                by_suite.setdefault((suite.path, suite.name), []).append(item)
        for items in by_suite.values():
            planned = self.add_suite(
                items[0].planned.suite, [(item.planned.case.id, item.planned.number) for item in items]
            )
            for item in items:
                item.planned = replace(item.planned, suite=planned)
            self._waiting[planned.suite.name] = {item.planned.address: item.planned for item in items}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._last_run = None
        self.runs.begin_test(again=getattr(item, "execution_count", 1) > 1)  # as pytest-rerunfailures counts

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        complete_report(report, item, call, self._last_run)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Send the summary to the main process or, in the main process, finish the run."""
        summary = self.runs.summary()
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["proctor"] = json.dumps(to_json(summary))  # as ASCII, which every connection can carry
            return
        self._summaries.append(summary)
        interrupted = session.exitstatus == pytest.ExitCode.INTERRUPTED
        try:
            self._result = self.runs.finish(self._summaries, self._note(session), interrupted=interrupted)
        except StoreError as error:
            self._problem = str(error)
        is_chosen = self.settings.options.fast or pending_mode(self.config) == "skip"
        if session.exitstatus == pytest.ExitCode.OK and not is_chosen and (reason := self._no_result_because()):
            # pytest is green if all tests are skipped or expected to fail; a suite of such cases is not.
            self._red_because = f"pytest fails: {reason}; --proctor-pending=skip accepts that"
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        print_summary(terminalreporter, self._result, self._summaries, self.settings.folder, self._problem)
        if self._red_because:
            terminalreporter.write_line(escape_line(self._red_because), red=True)

    def pytest_unconfigure(self) -> None:
        self.runs.close(last=not self.settings.session.has_other_processes)
        close_session_loops()

    def _no_result_because(self) -> str:
        """Why no case of a suite has a result although no test failed; empty if there is one, or no suite was run."""
        if self._result is not None:
            verdict = self._result[1]
            return "" if verdict.outcome is Outcome.PASSED else verdict.reason
        without_agent = sum(summary.without_agent for summary in self._summaries)
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if not without_agent or terminal is None or any(terminal.stats.get(name) for name in ("passed", "xpassed")):
            return ""
        return f"{plural(without_agent, 'case')} had no agent, and nothing else passed; {AGENT_HINT}"

    def _note(self, session: pytest.Session) -> str:
        """Why not all trials ran, if that is known."""
        notes = [note for summary in self._summaries for note in summary.notes]
        stopped = session.shouldfail or session.shouldstop
        return notes[0] if notes else f"pytest {stopped}" if isinstance(stopped, str) else ""

    def _batch(self, planned: PlannedTrial) -> list[PlannedTrial]:
        """The trial and those after it, or the trial alone if pytest may stop early or other processes run some."""
        waiting = self._waiting.get(planned.suite.suite.name, {})
        if self._runs_one_by_one() or planned.address not in waiting:
            return [planned]
        trials = list(waiting.values())
        begin = list(waiting).index(planned.address)
        batch = trials[begin : begin + BATCH_FACTOR * planned.suite.limits.parallel]
        for trial in batch:
            del waiting[trial.address]
        return batch

    def _runs_one_by_one(self) -> bool:
        options = ("maxfail", "stepwise", "usepdb", "setuponly")
        return self.settings.session.has_other_processes or any(self.config.getoption(name, None) for name in options)

    def _location(self, suite: Suite) -> str:
        path, root = suite.path, self.config.rootpath
        if path is None:
            return "in Python"
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _agent_key(suite: Suite) -> str:
    return canonical([to_json(suite.agent), str(suite.base)])
