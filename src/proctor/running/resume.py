"""Opens the run that trials belong to: a new one, or an interrupted one that is continued.

A run is alive while a process holds the lock on `<run>.running` in the store; the lock goes with the process, however
that ends. To resume is to find the latest unfinished run with the same plan key whose lock is free, and to compare its
trials with the plan, trial by trial:

- its case and its agent are what they were, and it did not end in an error: it stays;
- its case or agent changed, it ended in an error, or it is not planned any more: it is dropped and, if it is planned,
  run again;
- evaluators or criteria changed: the answers stay and are scored again, and the agent is not asked.

It is not enough to count the trials that are there: a suite may have changed since, and then half of the results would
be about one agent and half about another.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from proctor.base.errors import StoreError
from proctor.base.json_data import fingerprint, to_json
from proctor.base.locks import FileLock
from proctor.cases.identity import TrialAddress, case_key_before_simulation
from proctor.results.masking import mask_case
from proctor.results.run import Outcome, Run, RunStatus, TrialResult
from proctor.results.store.store import Store, StoredTrial
from proctor.running.plan import CaseEvaluators, Plan, PlannedSuite, PlannedTrial
from proctor.version import __version__


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Where a run's results go: its id, its row in the store, and which trials are stored already."""

    run: Run
    """What is known of the run; the engine goes on filling it."""
    store: Store | None = None
    stored: Collection[int] = frozenset()
    """The positions in the plan of trials that are in the store already."""
    answers: Mapping[TrialAddress, TrialResult] = field(default_factory=dict)
    """Answers that are in the store already, but must be scored again."""
    lock: FileLock | None = None
    """Held from the start, so that no other process mistakes the run for an interrupted one."""


def new_run_id() -> str:
    """Ids sort by time and never collide, also when two runs start in the same second."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"


def start_run(run: Run, store: Store | None) -> OpenRun:
    """Open a new run."""
    run.status = RunStatus.RUNNING
    if store is None:
        return OpenRun(run)
    run.store = str(store.folder)
    lock = _try_lock(store, run.id)
    store.add_run(run)
    return OpenRun(run, store, lock=lock)


def resume_run(run: Run, plan: Plan, store: Store) -> OpenRun | None:
    """Open the latest interrupted run of the same plan, or return `None` if there is none.

    `run` is the run as it would be if it began now; it goes on under the id and the name of the interrupted one.
    """
    adopted = _find_interrupted_run(plan, store)
    if adopted is None:
        return None
    row, lock = adopted
    keys = store.stored_trials(row.no)
    stays: dict[int, int] = {}
    moves: list[tuple[int, int]] = []
    for planned in plan.trials:
        key = keys.get(planned.address)
        if key is None or key.outcome == Outcome.ERROR or not _is_unchanged(planned, key):
            continue
        stays[planned.position] = key.no
        if key.position != planned.position:
            moves.append((planned.position, key.no))
    answers: dict[TrialAddress, TrialResult] = {}
    if row.scoring != scoring_key(plan.suites):
        answered = (store.trial(no) for no in stays.values())
        answers = {(trial.suite, trial.case.id, trial.number): trial for trial in answered}
        stays, moves = {}, []
    numbers = set(stays.values())
    store.drop_trials(row.no, [key.no for key in keys.values() if key.no not in numbers])
    store.reposition_trials(moves)
    store.reopen_run(row.no)
    run.id, run.no, run.started_at, run.name = row.id, row.no, row.started_at, row.name
    run.status, run.store = RunStatus.RUNNING, row.store
    return OpenRun(run, store, stays, answers, lock)


def _is_unchanged(planned: PlannedTrial, key: StoredTrial) -> bool:
    """Whether a stored trial is about the case and the agent of the plan; the store may have masked the case."""
    if key.agent != planned.suite.agent_fingerprint:
        return False
    return any(key.case_key == case_key_before_simulation(case) for case in (planned.case, mask_case(planned.case)))


@contextlib.contextmanager
def holding_lock(open_run: OpenRun) -> Iterator[None]:
    """Hold the lock of a run while this process works on it."""
    try:
        yield
    finally:
        if open_run.lock is not None:
            open_run.lock.remove()


@contextlib.contextmanager
def exclusive_run(store: Store, run_id: str) -> Iterator[None]:
    """Keep other processes from changing a run meanwhile; raises `StoreError` if one is working on it."""
    lock = _try_lock(store, run_id)
    if lock is None:
        raise StoreError(f"run {run_id} is being worked on by another process; try again when that has ended")
    try:
        yield
    finally:
        lock.remove()


def _find_interrupted_run(plan: Plan, store: Store) -> tuple[Run, FileLock] | None:
    """The latest unfinished run of the same plan that no process works on, and its lock, which is now ours."""
    for row in store.runs():
        if row.plan != plan.key or row.status is RunStatus.FINISHED:
            continue
        lock = _try_lock(store, row.id)
        if lock is None:
            continue
        now = store.find_run(row.id)  # it may have been finished while its lock was waited for
        if now.status is not RunStatus.FINISHED:
            return now, lock
        lock.release()
    return None


def _try_lock(store: Store, run_id: str) -> FileLock | None:
    """The lock of a run, or `None` while another process holds it."""
    lock = FileLock(store.lock_path(run_id))
    return lock if lock.acquire(wait=False) else None


def run_environment() -> Mapping[str, str]:
    """What a run was made with; nothing that names a person, a machine or a secret."""
    return {
        "proctor_version": __version__,
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "os": f"{os.uname().sysname} {os.uname().machine}" if hasattr(os, "uname") else sys.platform,
    }


def scoring_key(suites: Iterable[PlannedSuite]) -> str:
    """Changes when the same answers could get other scores or another verdict: evaluators, thresholds, criteria."""
    return fingerprint(
        [
            [
                item.suite.name,
                to_json(item.suite.criteria),
                sorted({(bound.fingerprint, bound.threshold) for bound in item.evaluators}),
            ]
            for item in suites
        ]
    )


def scoring_keys(plan: Plan, *, fast: bool) -> dict[str, dict[str, str]]:
    """By suite and case: changes when the same answer could get another outcome. The case "" stands for most."""
    of_cases: dict[PlannedSuite, dict[str, CaseEvaluators]] = {item: {} for item in plan.suites}
    for trial in plan.trials:
        of_cases[trial.suite][trial.case.id] = trial.evaluators
    found: dict[str, dict[str, str]] = {}
    for item, evaluators in of_cases.items():
        keys = {each: _evaluators_key(item, each, fast) for each in dict.fromkeys(evaluators.values())}
        commonest = keys[Counter(evaluators.values()).most_common(1)[0][0]]
        others = {case: keys[each] for case, each in evaluators.items() if keys[each] != commonest}
        found[item.suite.name] = {"": commonest, **others}
    return found


def _evaluators_key(item: PlannedSuite, evaluators: CaseEvaluators, fast: bool) -> str:
    return fingerprint(
        item.suite.criteria.trials == "mean",
        [
            [
                [bound.title, bound.fingerprint, bound.threshold, not bound.spec.report_only]
                for bound in bounds
                if not (fast and bound.needs_judge)
            ]
            for bounds in evaluators.lists()
        ],
    )
