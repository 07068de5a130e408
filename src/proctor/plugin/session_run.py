"""One run for a whole test session: each trial runs once, for the first test or process that needs it.

Trials are executed by the engine, as under `proctor test`; this file decides which ones. Several processes of one
session (pytest-xdist) share the run and its store. Before a process sends a question to an agent, it takes the lock of
the question and checks whether another process has stored the answer meanwhile; without that, each process would send
every question.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from proctor.base.errors import StoreError
from proctor.base.event_loops import run_in_session_loop
from proctor.base.json_data import Json, to_json
from proctor.cases.identity import TrialAddress, question_key
from proctor.cases.suite import Suite
from proctor.judging.choosing import judge_record
from proctor.plugin.session_answers import SessionAnswers, SessionId, lock_folder, lock_key, session_row
from proctor.results.judge_usage import JudgeUsage
from proctor.results.run import Run, RunStatus
from proctor.results.store.encoding import CODEC
from proctor.results.store.store import Store
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial
from proctor.results.verdict import RunVerdict, record_verdict, verdict
from proctor.running.common_problem import CommonProblems, stop_note
from proctor.running.execution import execute
from proctor.running.plan import Plan, PlannedSuite, PlannedTrial, make_plan
from proctor.running.resume import OpenRun, exclusive_run
from proctor.running.settings import RunOptions

MAX_LOCKS = 100
"""The number of questions that are locked at a time: each lock is an open file."""
EXHAUSTED_BUDGET_USD = 1e-9
"""A budget that is spent: trials without a cost can still run, and the next one with a cost is the last."""


TrialKey: TypeAlias = tuple[str, int]
"""The id of a case and the number of a trial, which identify a trial in a suite."""


@dataclass(frozen=True, slots=True)
class ProcessSummary:
    """The results of one process of a session, for the process that prints the summary."""

    suites: Sequence[Mapping[str, Json]]
    reused: Sequence[Sequence[str]] = ()
    """Answers of earlier sessions: the lock key, and the suite that used the answer, if it was one."""
    notes: Sequence[str] = ()
    has_run_trials: bool = False
    """Whether it ran any trial; collecting suites alone does not make a run."""
    rerun_trials: int = 0
    """The number of trials that were replaced because pytest re-ran their test."""
    planned: Mapping[str, Sequence[Sequence[str | int]]] = field(default_factory=dict)
    """Per suite, the trials that the process asked for: the id of the case and the number of the trial."""
    without_agent: int = 0
    """The number of cases that were skipped because their suite has no agent."""


class SessionRun:
    """Runs trials of suites on demand and stores them in one run."""

    def __init__(self, folder: Path, options: RunOptions, session: SessionId, *, reuse: bool = False) -> None:
        self.folder = folder
        self.options = options
        self.answers = SessionAnswers(folder, session, reuse=reuse, keep_secrets=options.keep_secrets)
        self.session = session
        self._suites: dict[str, PlannedSuite] = {}
        self._planned: dict[str, set[TrialKey]] = {}
        """Per suite, the trials that tests of this process asked for."""
        self._done: set[TrialAddress] = set()
        self._has_run_trials = False
        self._store: tuple[Store, int] | None = None
        self._alive = contextlib.ExitStack()
        self._spent_usd = 0.0
        self._notes: list[str] = []
        self._problems = CommonProblems()
        self._rerun_trials = 0
        self.without_agent = 0
        """The number of collected cases whose suite has no agent."""

    def plan(self, suite: Suite, agent: Any) -> Plan:
        """The trials of a suite, ready to run; raises `InvalidSuite` with every problem."""
        return make_plan([suite], self.options, agent=agent)

    def add_suite(self, suite: PlannedSuite, trials: Iterable[TrialKey]) -> PlannedSuite:
        """Make these trials of a suite part of the run; no other suite may use its name from now on.

        Returns the suite with the number of its trials in the run.
        """
        planned = self._planned.setdefault(suite.suite.name, set())
        planned.update(trials)
        counted = replace(suite, planned=len(planned))
        self._suites[suite.suite.name] = counted
        return counted

    def suite_named(self, name: str) -> PlannedSuite | None:
        return self._suites.get(name)

    def run_trials(self, trials: Sequence[PlannedTrial]) -> dict[TrialAddress, Trial]:
        """The results of these trials, which run now unless they ran before in this session.

        A trial that could not run because the budget is spent, or because all trials before it hit the same problem, is
        missing.
        """
        self._has_run_trials = True
        done: dict[TrialAddress, Trial] = {}
        step = MAX_LOCKS if self.session.has_other_processes else max(1, len(trials))
        for start in range(0, len(trials), step):
            batch = trials[start : start + step]
            with self.answers.locked([_lock_key(trial) for trial in batch]):
                stored = self._stored_trials(batch)
                missing = [trial for trial in batch if trial.address not in stored]
                done |= stored | (self._execute(missing) if missing else {})
        return done

    def begin_test(self, *, again: bool) -> None:
        """A test that pytest re-runs (`again`) calls the agent again; every other test uses the session's answers."""
        self.answers.min_started_at = time.time() if again else 0.0
        if again:
            self._problems = CommonProblems()

    def summary(self) -> ProcessSummary:
        suites = tuple(to_json(item.info) for item in self._suites.values())
        planned = {name: sorted(trials) for name, trials in self._planned.items()}
        return ProcessSummary(
            suites,
            sorted(self.answers.reused),
            tuple(self._notes),
            self._has_run_trials,
            self._rerun_trials,
            planned,
            self.without_agent,
        )

    def finish(
        self, summaries: Sequence[ProcessSummary], note: str, *, interrupted: bool
    ) -> tuple[Run, RunVerdict] | None:
        """Finish the run with the summaries of all processes; returns `None` if no suite was run."""
        suites = _merge_suites(summaries)
        if not suites or not any(summary.has_run_trials for summary in summaries):
            return None
        store, _ = self._open()
        run = store.find_run(self.session.run_id)
        run.suites, run.note, run.interrupted = suites, note, interrupted
        run.status = RunStatus.INTERRUPTED if interrupted else RunStatus.FINISHED
        run.judges, run.finished_at = tuple(JudgeUsage(run.trials)), time.time()
        run.planned = sum(info.planned for info in suites)
        run.options = {
            "fast": self.options.fast,
            "judge": judge_record(self.options.judge),
            "budget_usd": self.options.budget_usd,
        }
        run_verdict = verdict(run)
        record_verdict(run, run_verdict)
        store.finish_run(run)
        return run, run_verdict

    def close(self, *, last: bool) -> None:
        """Close files; the last process of a session also removes the locks that all shared."""
        self.answers.close()
        self._alive.close()
        if self._store is not None:
            self._store[0].close()
            self._store = None
        if last:
            shutil.rmtree(lock_folder(self.folder, self.session.run_id), ignore_errors=True)

    def _open(self) -> tuple[Store, int]:
        if self._store is None:
            store = Store(self.folder)
            with contextlib.suppress(StoreError):  # one process of several marks the run as running
                self._alive.enter_context(exclusive_run(store, self.session.run_id))
            self._store = store, session_row(store, self.session.run_id)
        return self._store

    def _stored_trials(self, trials: Sequence[PlannedTrial]) -> dict[TrialAddress, Trial]:
        """The trials that the session has already. Those from before a re-run of their test are deleted."""
        addresses = {trial.address for trial in trials}
        if not self.session.has_other_processes and addresses.isdisjoint(self._done):
            return {}
        store, no = self._open()
        keys = store.stored_trials(no)
        stored = {address: store.trial(keys[address].no) for address in addresses & keys.keys()}
        outdated = [address for address, trial in stored.items() if trial.started_at < self.answers.min_started_at]
        store.drop_trials(
            no, [keys[address].no for address in outdated]
        )  # pytest reports the last one, so the run has the last one
        self._rerun_trials += len(outdated)
        return {address: trial for address, trial in stored.items() if address not in outdated}

    def _execute(self, trials: Sequence[PlannedTrial]) -> dict[TrialAddress, Trial]:
        trials = [trial for trial in trials if not self._problems.of(trial.suite.suite.name)]
        if not trials:  # they would fail the same way as those before them; the note of the run says so
            return {}
        store, no = self._open()
        collector = _Collector()
        plan = Plan(tuple(dict.fromkeys(trial.suite for trial in trials)), tuple(trials), "")
        open_run = OpenRun(Run(self.session.run_id, self.session.started_at, no=no), store)
        work = execute(
            plan, self._options(), open_run, listener=collector, earlier=self._recall, problems=self._problems
        )
        run, _ = run_in_session_loop(work)
        for trial in (trial.original or trial for trial in collector.trials.values()):
            self.answers.remember(question_key(trial.case), trial)
        self._done |= collector.trials.keys()
        self._spent_usd += _cost(run, collector.trials)
        if run.interrupted:
            raise KeyboardInterrupt
        note = self._stop_note(plan) or run.note
        if note and note not in self._notes:
            self._notes.append(note)
        return collector.trials

    def _stop_note(self, plan: Plan) -> str:
        """Why the rest of a suite is not run, if it is not; the engine knows only the trials of one batch."""
        for name in (item.suite.name for item in plan.suites):
            others = len(self._planned.get(name, ())) - sum(address[0] == name for address in self._done)
            if (problem := self._problems.of(name)) and others > 0:
                return stop_note(problem, others)
        return ""

    def _options(self) -> RunOptions:
        """The options with the rest of the budget."""
        limit = self.options.budget_usd
        if limit is None:
            return self.options
        return replace(self.options, budget_usd=max(limit - self._spent_usd, EXHAUSTED_BUDGET_USD))

    def _recall(self, planned: PlannedTrial) -> Trial | None:
        answer = self.answers.find(
            question_key(planned.case), planned.suite.agent, planned.number, planned.suite.suite.name
        )
        return None if answer is None or all(reply.error is not None for reply in answer.replies) else answer


class _Collector:
    """A listener that collects the trials of a run."""

    def __init__(self) -> None:
        self.trials: dict[TrialAddress, Trial] = {}

    def started(self, run: Run, planned: int, stored: int) -> None:
        return

    def trial_done(self, trial: Trial) -> None:
        self.trials[trial.suite, trial.case.id, trial.number] = trial

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        return


def _lock_key(trial: PlannedTrial) -> str:
    return lock_key(question_key(trial.case), trial.suite.agent.identity, trial.number)


def _merge_suites(summaries: Sequence[ProcessSummary]) -> tuple[SuiteInfo, ...]:
    """Each suite once, with the number of trials that any process planned."""
    suites: dict[str, SuiteInfo] = {}
    planned: dict[str, set[tuple[str | int, ...]]] = {}
    for summary in summaries:
        for data in summary.suites:
            info = CODEC.decode(SuiteInfo, data)
            suites.setdefault(info.name, info)
        for name, trials in summary.planned.items():
            planned.setdefault(name, set()).update(map(tuple, trials))
    counted = (replace(info, planned=len(planned.get(name, ()))) for name, info in suites.items())
    return tuple(info for info in counted if info.planned)


def _cost(run: Run, trials: Mapping[TrialAddress, Trial]) -> float:
    """The cost of agents and judges, as far as it is known."""
    usages = (trial.usage for trial in trials.values() if not trial.reused)
    agents = sum(usage.cost_usd or 0.0 for usage in usages if usage is not None)
    return agents + sum(judge.cost_usd or 0.0 for judge in run.judges)
