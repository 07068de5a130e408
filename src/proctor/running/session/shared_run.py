"""One run for a whole test session: each trial is made once, by the first test or process that needs it."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.base.errors import StoreError
from proctor.base.event_loops import run_in_kept_loop
from proctor.base.json_data import Json, plain
from proctor.base.records import record
from proctor.cases.suite import Suite
from proctor.results.case_encoding import question_key
from proctor.results.judge_calls import Tally
from proctor.results.run import Run, SuiteInfo, TrialResult
from proctor.results.run_info import DirtyCheck, RunInfo, suite_info
from proctor.results.store import Store, read_run
from proctor.results.verdict import RunVerdict, judge
from proctor.running.engine.execute import execute
from proctor.running.engine.judges import judge_identity
from proctor.running.engine.plan import Plan, PlannedSuite, PlannedTrial, make_plan
from proctor.running.engine.store_writer import OpenRun, exclusive_run
from proctor.running.options import RunOptions
from proctor.running.session.answer_reuse import (
    SessionAnswers,
    SessionId,
    agent_key,
    lock_folder,
    question_lock,
    row_of,
)

Address = tuple[str, str, int]
"""Suite, case, repetition."""

MOST_LOCKS = 100
"""So many questions are locked at once while they are asked: each lock is an open file."""
NEXT_TO_NOTHING_USD = 1e-9
"""A budget that is spent: trials without a cost may still be made, and the next one with a cost is the last."""


@record
class ProcessSummary:
    """What one process of a session has to tell the one that sums it up."""

    suites: Sequence[Mapping[str, Json]]
    reused: Sequence[Sequence[str]] = ()
    """Answers of earlier sessions: what was asked, and by which suite, if by one."""
    notes: Sequence[str] = ()
    begun: bool = False
    """Whether it set about any trial; what was merely collected is no run."""
    asked_again: int = 0
    """Trials that were replaced because pytest ran their test again."""


class SharedRuns:
    """Makes trials of suites on demand and keeps them in one run of the store."""

    def __init__(self, folder: Path, options: RunOptions, session: SessionId, *, reuse: bool = False) -> None:
        self.folder = folder
        self.options = options
        self.answers = SessionAnswers(folder, session, reuse=reuse, keep_secrets=options.keep_secrets)
        self.session = session
        self._suites: dict[str, PlannedSuite] = {}
        self._made: set[Address] = set()
        self._begun = False
        self._store: tuple[Store, int] | None = None
        self._alive = contextlib.ExitStack()
        self._spent_usd = 0.0
        self._notes: list[str] = []
        self._asked_again = 0

    def plan(self, suite: Suite, agent: Any) -> Plan:
        """The trials of a suite, with everything they need ready; raises `InvalidSuite` with every problem."""
        return make_plan([suite], self.options, agent=agent)

    def add_suite(self, suite: PlannedSuite, planned: int) -> None:
        """Make a suite part of the run: its name is its own from now on, and so many of its trials are to be made."""
        known = self._suites.get(suite.suite.name)
        suite.planned = planned if known is None else max(planned, known.planned)
        self._suites[suite.suite.name] = suite

    def known_suite(self, name: str) -> PlannedSuite | None:
        return self._suites.get(name)

    def make(self, trials: Sequence[PlannedTrial]) -> dict[Address, TrialResult]:
        """These trials: made now, unless this session made them before. What could not be made is missing."""
        self._begun = True
        made: dict[Address, TrialResult] = {}
        step = MOST_LOCKS if self.session.several else max(1, len(trials))
        for start in range(0, len(trials), step):
            some = trials[start : start + step]
            with self.answers.locked([_question(trial) for trial in some]):
                known = self._made_before(some)
                missing = [trial for trial in some if address_of(trial) not in known]
                made |= known | (self._execute(missing) if missing else {})
        return made

    def begin_test(self, *, again: bool) -> None:
        """A test that pytest runs `again` asks again; every other test takes what the session has."""
        self.answers.not_before = time.time() if again else 0.0

    def summary(self) -> ProcessSummary:
        suites = tuple(plain(item.info) for item in self._suites.values())
        return ProcessSummary(suites, sorted(self.answers.reused), tuple(self._notes), self._begun, self._asked_again)

    def finish(
        self, summaries: Sequence[ProcessSummary], note: str, *, interrupted: bool
    ) -> tuple[Run, RunVerdict] | None:
        """Sum up what all processes of the session did, and close the run; `None` if no suite was run."""
        suites = _merged(summaries)
        if not suites or not any(summary.begun for summary in summaries):
            return None
        store, no = self._open()
        run = read_run(store, self.session.run_id)
        run.suites, run.note, run.interrupted = suites, note, interrupted
        run.judges, run.finished_at = tuple(Tally(run.trials)), time.time()
        run.git = DirtyCheck(Path.cwd(), run.git).result()
        verdict = judge(run)
        store.finish_run(no, "interrupted" if interrupted else "finished", self._info(run).judged(verdict))
        return run, verdict

    def close(self, *, last: bool) -> None:
        """Let go of files; the last process of a session also clears away what they shared."""
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
            with contextlib.suppress(StoreError):  # one process of several says that the run is alive
                self._alive.enter_context(exclusive_run(store, self.session.run_id))
            self._store = store, row_of(store, self.session.run_id)
        return self._store

    def _made_before(self, trials: Sequence[PlannedTrial]) -> dict[Address, TrialResult]:
        wanted = {address_of(trial) for trial in trials}
        if not self.session.several and wanted.isdisjoint(self._made):
            return {}
        store, no = self._open()
        keys = store.trial_keys(no)
        known = {address: store.trial(keys[address].no) for address in wanted & keys.keys()}
        outdated = [address for address, trial in known.items() if trial.started_at < self.answers.not_before]
        store.drop_trials(no, [keys[address].no for address in outdated])  # the run has what pytest reports: the last
        self._asked_again += len(outdated)
        return {address: trial for address, trial in known.items() if address not in outdated}

    def _execute(self, trials: Sequence[PlannedTrial]) -> dict[Address, TrialResult]:
        store, no = self._open()
        heard = _Heard()
        plan = Plan(tuple({id(trial.suite): trial.suite for trial in trials}.values()), trials, "")
        open_run = OpenRun(self.session.run_id, self.session.started_at, store, no)
        work = execute(plan, self._options(), open_run, listener=heard, earlier=self._recall)
        run, _ = run_in_kept_loop(work, keep_tasks=True)
        for trial in (trial.unmasked or trial for trial in heard.trials.values()):
            self.answers.hear(question_key(trial.case), trial)
        self._made |= heard.trials.keys()
        self._spent_usd += _cost(run, heard.trials)
        if run.interrupted:
            raise KeyboardInterrupt
        if run.note and run.note not in self._notes:
            self._notes.append(run.note)
        return heard.trials

    def _options(self) -> RunOptions:
        """What is left of the budget is all that the next trials may cost."""
        limit = self.options.budget_usd
        if limit is None:
            return self.options
        return replace(self.options, budget_usd=max(limit - self._spent_usd, NEXT_TO_NOTHING_USD))

    def _recall(self, planned: PlannedTrial) -> TrialResult | None:
        found = self.answers.find(
            question_key(planned.case), planned.suite.agent, planned.number, planned.suite.suite.name
        )
        return None if found is None or all(reply.error is not None for reply in found.replies) else found

    def _info(self, run: Run) -> RunInfo:
        return RunInfo(
            suites=run.suites,
            options={
                "fast": self.options.fast,
                "judge": judge_identity(self.options.judge),
                "budget_usd": self.options.budget_usd,
            },
            planned=sum(info.planned for info in run.suites),
            note=run.note,
            judges=tuple(run.judges),
            git=run.git,
        )


class _Heard:
    """Listens to a run for those who asked for its trials."""

    def __init__(self) -> None:
        self.trials: dict[Address, TrialResult] = {}

    def started(self, run: Run, planned: int, kept: int) -> None:
        return

    def trial_done(self, trial: TrialResult) -> None:
        self.trials[trial.suite, trial.case.id, trial.number] = trial

    def finished(self, run: Run, verdict: RunVerdict) -> None:
        return


def address_of(trial: PlannedTrial) -> Address:
    return trial.suite.suite.name, trial.case.id, trial.number


def _question(trial: PlannedTrial) -> str:
    return question_lock(question_key(trial.case), agent_key(trial.suite.agent), trial.number)


def _merged(summaries: Sequence[ProcessSummary]) -> tuple[SuiteInfo, ...]:
    """Each suite once, as the process that planned most of it knows it."""
    found: dict[str, SuiteInfo] = {}
    for data in (suite for summary in summaries for suite in summary.suites):
        info = suite_info(data)
        known = found.get(info.name)
        found[info.name] = info if known is None or info.planned > known.planned else known
    return tuple(info for info in found.values() if info.planned)


def _cost(run: Run, trials: Mapping[Address, TrialResult]) -> float:
    """What was spent on agents and judges, as far as it is known."""
    asked = (trial.usage for trial in trials.values() if not trial.reused)
    agents = sum(usage.cost_usd or 0.0 for usage in asked if usage is not None)
    return agents + sum(judged.cost_usd or 0.0 for judged in run.judges)
