"""One run for a whole test session: each trial is made once, by whoever needs it first, in whichever process."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.base.errors import StoreError
from proctor.base.event_loop import run_sync
from proctor.base.json_data import Json, plain
from proctor.base.records import record
from proctor.cases.suite import Criteria, Suite
from proctor.results.encoding import question_key
from proctor.results.judge_calls import Tally
from proctor.results.run import Run, SuiteInfo, TrialResult
from proctor.results.store import Store, read_run
from proctor.results.verdict import RunVerdict, judge
from proctor.running.engine.execute import execute
from proctor.running.engine.judges import telling
from proctor.running.engine.plan import Plan, PlannedSuite, PlannedTrial, make_plan
from proctor.running.engine.store_writer import Booking, alone_with
from proctor.running.options import RunOptions
from proctor.running.session.answer_reuse import SessionAnswers, Sharing, lock_folder, locked, mark_of, row_of, turn_key

Address = tuple[str, str, int]
"""Suite, case, repetition."""

MOST_TURNS = 100
"""So many questions are held at once while they are asked: each takes an open file."""
NEXT_TO_NOTHING_USD = 1e-9
"""A budget that is spent: trials without a cost may still be made, and the next one with a cost is the last."""


@record
class Outline:
    """What one process of a session has to tell the one that sums it up."""

    suites: Sequence[Mapping[str, Json]]
    reused: Sequence[Sequence[str]] = ()
    """Answers of earlier sessions: what was asked, and by which suite, if by one."""
    notes: Sequence[str] = ()
    begun: bool = False
    """Whether it set about any trial; what was merely collected is no run."""


class SharedRuns:
    """Makes trials of suites on demand and keeps them in one run of the store."""

    def __init__(self, folder: Path, options: RunOptions, sharing: Sharing, *, fresh: bool = False) -> None:
        self.folder = folder
        self.options = options
        self.answers = SessionAnswers(folder, sharing, fresh=fresh, keep_secrets=options.keep_secrets)
        self.sharing = sharing
        self._suites: dict[str, PlannedSuite] = {}
        self._made: set[Address] = set()
        self._begun = False
        self._store: tuple[Store, int] | None = None
        self._alive = contextlib.ExitStack()
        self._spent_usd = 0.0
        self._notes: list[str] = []

    def plan(self, suite: Suite, agent: Any) -> Plan:
        """The trials of a suite, with everything they need ready; raises `InvalidSuite` with every problem."""
        return make_plan([suite], self.options, agent=agent)

    def enlist(self, suite: PlannedSuite, planned: int) -> None:
        """Make a suite part of the run: its name is its own from now on, and so many of its trials are to be made."""
        known = self._suites.get(suite.suite.name)
        suite.planned = planned if known is None else max(planned, known.planned)
        self._suites[suite.suite.name] = suite

    def enlisted(self, name: str) -> PlannedSuite | None:
        return self._suites.get(name)

    def make(self, trials: Sequence[PlannedTrial], *, all_at_once: bool = False) -> dict[Address, TrialResult]:
        """These trials: made now, unless this session made them before. What could not be made is missing.

        `all_at_once` keeps other processes from making any of the suite meanwhile.
        """
        self._begun = True
        with contextlib.ExitStack() as turns:
            for name in sorted({trial.suite.suite.name for trial in trials}):
                turns.enter_context(self._turn(f"suite {name}", all_at_once))
            made = self._made_before(trials)
            missing = [trial for trial in trials if address_of(trial) not in made]
            for question in sorted(map(_question, missing))[:MOST_TURNS]:
                turns.enter_context(self._turn(question, True))
            if missing:
                made |= self._execute(missing)
        return made

    def outline(self) -> Outline:
        suites = tuple(plain(item.info) for item in self._suites.values())
        return Outline(suites, sorted(self.answers.reused), tuple(self._notes), self._begun)

    def finish(self, outlines: Sequence[Outline], note: str, *, interrupted: bool) -> tuple[Run, RunVerdict] | None:
        """Sum up what all processes of the session did, and close the run; `None` if no suite was run."""
        suites = _merged(outlines)
        if not suites or not any(outline.begun for outline in outlines):
            return None
        store, no = self._open()
        run = read_run(store, self.sharing.run_id)
        run.suites, run.note, run.interrupted = suites, note, interrupted
        run.judges, run.finished_at = tuple(Tally(run.trials)), time.time()
        verdict = judge(run)
        store.finish_run(no, "interrupted" if interrupted else "finished", self._info(run, verdict))
        return run, verdict

    def close(self, *, last: bool) -> None:
        """Let go of files; the last process of a session also clears away what they shared."""
        self.answers.close()
        self._alive.close()
        if self._store is not None:
            self._store[0].close()
            self._store = None
        if last:
            shutil.rmtree(lock_folder(self.folder, self.sharing.run_id), ignore_errors=True)

    @contextlib.contextmanager
    def _turn(self, key: str, alone: bool) -> Iterator[None]:
        if not self.sharing.several:
            yield
            return
        with self.answers.lock_file(key) as handle:
            locked(handle, exclusive=alone, wait=True)
            yield

    def _open(self) -> tuple[Store, int]:
        if self._store is None:
            store = Store(self.folder)
            with contextlib.suppress(StoreError):  # one process of several says that the run is alive
                self._alive.enter_context(alone_with(store, self.sharing.run_id))
            self._store = store, row_of(store, self.sharing.run_id)
        return self._store

    def _made_before(self, trials: Sequence[PlannedTrial]) -> dict[Address, TrialResult]:
        wanted = {address_of(trial) for trial in trials}
        if not self.sharing.several and wanted.isdisjoint(self._made):
            return {}
        store, no = self._open()
        keys = store.trial_keys(no)
        return {address: store.trial(keys[address].no) for address in wanted & keys.keys()}

    def _execute(self, trials: Sequence[PlannedTrial]) -> dict[Address, TrialResult]:
        store, no = self._open()
        heard = _Heard()
        plan = Plan(tuple({id(trial.suite): trial.suite for trial in trials}.values()), trials, "")
        booking = Booking(self.sharing.run_id, self.sharing.started_at, store, no)
        run, _ = run_sync(execute(plan, self._options(), booking, listener=heard, recall=self._recall))
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
        return None if found is None or not found.replies else found

    def _info(self, run: Run, verdict: RunVerdict) -> dict[str, Json]:
        outcome = {"outcome": verdict.outcome.value, "reason": verdict.reason, "exit_code": verdict.exit_code}
        return {
            "suites": [plain(info) for info in run.suites],
            "options": {
                "fast": self.options.fast,
                "judge": telling(self.options.judge),
                "budget_usd": self.options.budget_usd,
            },
            "planned": sum(info.planned for info in run.suites),
            "verdict": outcome,
            "counts": {name.value: count for name, count in verdict.counts.items()},
            "note": run.note,
            "judges": plain(run.judges),
        }


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
    return turn_key(question_key(trial.case), mark_of(trial.suite.agent), trial.number)


def _merged(outlines: Sequence[Outline]) -> tuple[SuiteInfo, ...]:
    """Each suite once, as whoever planned most of it knows it."""
    found: dict[str, SuiteInfo] = {}
    for data in (suite for outline in outlines for suite in outline.suites):
        info = SuiteInfo(**{**data, "criteria": Criteria(**data["criteria"])})
        known = found.get(info.name)
        found[info.name] = info if known is None or info.planned > known.planned else known
    return tuple(info for info in found.values() if info.planned)


def _cost(run: Run, trials: Mapping[Address, TrialResult]) -> float:
    """What was spent on agents and judges, as far as it is known."""
    asked = (trial.usage for trial in trials.values() if not trial.reused)
    agents = sum(usage.cost_usd or 0.0 for usage in asked if usage is not None)
    return agents + sum(judged.cost_usd or 0.0 for judged in run.judges)
