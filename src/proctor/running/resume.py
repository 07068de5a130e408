"""Opens the run that trials belong to: a new one, or one to resume.

A process that works on a run holds the lock on `<run>.running` in the store; the operating system releases it when the
process ends. Resuming finds the latest run with the same plan key and a free lock that is unfinished, or the latest of
all if it finished but trials of it ended in errors. It compares the trials of that run with the plan:

- a trial with an unchanged case and agent that did not end in an error is kept;
- a trial whose case or agent changed, that ended in an error, or that is not in the plan any more is deleted and, if it
  is in the plan, run again; if the agent had answered, and only an evaluator ended in an error, its answer is scored
  again;
- if evaluators or criteria changed, answers are kept and scored again, without calling the agent.

The obvious version, counting the stored trials and running the rest, is wrong: the suite or the agent may have changed,
and then half of the results would be about one agent and half about another.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from proctor.agents.opened_files import has_changed
from proctor.base.errors import StoreError
from proctor.base.json_data import fingerprint, to_json
from proctor.base.locks import FileLock
from proctor.cases.identity import TrialAddress, case_key_before_simulation
from proctor.results.masking import has_other_secret, mask_case
from proctor.results.run import Run, RunStatus
from proctor.results.score import Outcome
from proctor.results.store.store import Store, StoredTrial
from proctor.results.trial import Trial
from proctor.running.plan import CaseEvaluators, Plan, PlannedSuite, PlannedTrial
from proctor.version import __version__


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run whose results are being written: the run, its store, and the trials that are already stored."""

    run: Run
    """The run so far; the engine fills it in."""
    store: Store | None = None
    stored: Collection[int] = frozenset()
    """The positions in the plan of trials that are already stored."""
    answers: Mapping[TrialAddress, Trial] = field(default_factory=dict)
    """Stored answers that must be scored again."""
    lock: FileLock | None = None
    """Held from the start, so that other processes do not take the run for an interrupted one."""


def new_run_id() -> str:
    """A new run id, such as `20260131-235959-7f3a0c`.

    Ids sort by time, also within one second: the first four digits of the suffix are the fraction of the second, the
    last two are random, for runs that start at the same moment.
    """
    seconds, fraction = divmod(time.time_ns(), 1_000_000_000)
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime(seconds))
    return f"{moment}-{fraction * 0x10000 // 1_000_000_000:04x}{os.urandom(1).hex()}"


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
    """Open the latest run of the same plan that is unfinished or has errors, or return `None` if there is none.

    `run` is a new run of the plan; it gets the id, the start and the name of the earlier one.
    """
    resumable = _find_resumable_run(plan, store)
    if resumable is None:
        return None
    row, lock = resumable
    keys = store.stored_trials(row.no)
    unchanged: dict[int, int] = {}
    moves: list[tuple[int, int]] = []
    answers: dict[TrialAddress, Trial] = {}
    for planned in plan.trials:
        key = keys.get(planned.address)
        if key is None or not _is_unchanged(planned, key):
            continue
        if key.outcome == Outcome.ERROR:
            trial = store.trial(key.no)
            if _agent_answered(trial):
                answers[planned.address] = trial
            continue
        if has_changed(key.files_read) is not None:
            continue
        unchanged[planned.position] = key.no
        if key.position != planned.position:
            moves.append((planned.position, key.no))
    if row.scoring != scoring_key(plan.suites):
        answered = (store.trial(no) for no in unchanged.values())
        answers |= {(trial.suite, trial.case.id, trial.number): trial for trial in answered}
        unchanged, moves = {}, []
    numbers = set(unchanged.values())
    store.drop_trials(row.no, [key.no for key in keys.values() if key.no not in numbers])
    store.reposition_trials(moves)
    store.reopen_run(row.no)
    run.id, run.no, run.started_at, run.name = row.id, row.no, row.started_at, row.name
    run.status, run.store = RunStatus.RUNNING, row.store
    return OpenRun(run, store, unchanged, answers, lock)


def _is_unchanged(planned: PlannedTrial, key: StoredTrial) -> bool:
    """Whether a stored trial has the case and the agent of the plan; the stored case may be masked."""
    if key.agent != planned.suite.agent_fingerprint:
        return False
    if has_other_secret(planned.case, key.masked_case):
        return False
    return any(key.case_key == case_key_before_simulation(case) for case in (planned.case, mask_case(planned.case)))


@contextlib.contextmanager
def holding_lock(open_run: OpenRun) -> Iterator[None]:
    """Release the lock of a run on exit."""
    try:
        yield
    finally:
        if open_run.lock is not None:
            open_run.lock.remove()


@contextlib.contextmanager
def exclusive_run(store: Store, run_id: str) -> Iterator[None]:
    """Lock a run, so that no other process changes it; raises `StoreError` if another process has locked it."""
    lock = _try_lock(store, run_id)
    if lock is None:
        raise StoreError(f"another process is using run {run_id}; try again when it has finished")
    try:
        yield
    finally:
        lock.remove()


def _agent_answered(trial: Trial) -> bool:
    """Whether the agent answered every turn, so that the error of a trial is one of its evaluators."""
    return not trial.ended_early and bool(trial.replies) and all(reply.error is None for reply in trial.replies)


def _find_resumable_run(plan: Plan, store: Store) -> tuple[Run, FileLock] | None:
    """The latest run of the same plan that is unfinished, or that has errors and no later run; and its lock, acquired.

    No process may use it.
    """
    is_latest = True
    for row in store.runs():
        if row.plan != plan.key:
            continue
        has_errors = is_latest and row.status is RunStatus.FINISHED and _has_errors(store, row)
        is_latest = False
        if row.status is RunStatus.FINISHED and not has_errors:
            continue
        lock = _try_lock(store, row.id)
        if lock is None:
            continue
        now = store.find_run(row.id)  # another process may have finished it before we got the lock
        if now.status is not RunStatus.FINISHED or has_errors:
            return now, lock
        lock.release()
    return None


def _has_errors(store: Store, run: Run) -> bool:
    return any(summary.outcome is Outcome.ERROR for summary in store.summaries(run.no))


def _try_lock(store: Store, run_id: str) -> FileLock | None:
    """Acquire the lock of a run, or return `None` if another process holds it."""
    lock = FileLock(store.lock_path(run_id))
    return lock if lock.acquire(wait=False) else None


def run_environment() -> Mapping[str, str]:
    """The versions that a run uses; nothing that identifies a person or a machine."""
    return {
        "proctor_version": __version__,
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "os": f"{os.uname().sysname} {os.uname().machine}" if hasattr(os, "uname") else sys.platform,
    }


def scoring_key(suites: Iterable[PlannedSuite]) -> str:
    """A fingerprint of what scores answers: evaluators, thresholds, criteria."""
    return fingerprint(
        [
            [
                item.suite.name,
                to_json(item.suite.criteria),
                sorted({(evaluator.fingerprint, evaluator.threshold) for evaluator in item.evaluators}),
            ]
            for item in suites
        ]
    )


def scoring_keys(plan: Plan, *, fast: bool) -> dict[str, dict[str, str]]:
    """Fingerprints of the evaluators, by suite and case; the key "" is for all cases that are not listed."""
    of_cases: dict[PlannedSuite, dict[str, CaseEvaluators]] = {item: {} for item in plan.suites}
    for trial in plan.trials:
        of_cases[trial.suite][trial.case.id] = trial.evaluators
    keys_by_suite: dict[str, dict[str, str]] = {}
    for item, evaluators in of_cases.items():
        if not evaluators:  # a version of the agent that runs only what the gate requests
            continue
        keys = {each: _evaluators_key(item, each, fast) for each in dict.fromkeys(evaluators.values())}
        most_common = keys[Counter(evaluators.values()).most_common(1)[0][0]]
        others = {case: keys[each] for case, each in evaluators.items() if keys[each] != most_common}
        keys_by_suite[item.suite.name] = {"": most_common, **others}
    return keys_by_suite


def _evaluators_key(item: PlannedSuite, evaluators: CaseEvaluators, fast: bool) -> str:
    return fingerprint(
        item.suite.criteria.trials == "mean",
        [
            [
                [evaluator.title, evaluator.fingerprint, evaluator.threshold, not evaluator.spec.report_only]
                for evaluator in group
                if not (fast and evaluator.needs_model)
            ]
            for group in evaluators.lists()
        ],
    )
