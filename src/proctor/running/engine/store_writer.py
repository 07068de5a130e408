"""Writes trials to the store before they are reported, and opens the run they belong to: a new one or a resumed one."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from proctor.base.errors import StoreError
from proctor.base.guard import CHILD, allow_at_least
from proctor.base.json_data import fingerprint, plain
from proctor.base.processes import FileLock
from proctor.base.records import record
from proctor.base.threads import CLOCK, end_fork_of
from proctor.cases.suite import Case, EvaluatorSpec
from proctor.results.case_encoding import planned_key
from proctor.results.database import BUSY_SECONDS
from proctor.results.encoding import TrialMasker, mask_case
from proctor.results.run import Outcome, Score, TrialResult, TrialSummary, no_summaries
from proctor.results.run_info import RunInfo, RunRow
from proctor.results.store import Store, TrialKey
from proctor.running.engine.ask import Answer
from proctor.running.engine.plan import Plan, PlannedSuite, PlannedTrial
from proctor.running.options import Listener
from proctor.version import __version__

Address = tuple[str, str, int]
"""Suite, case and number of a trial."""
SPACING_SECONDS = 0.002
"""Writes come at least this far apart: one alone goes out at once, many share a transaction."""


class TrialWriter:
    """Writes what finished together as one batch, then tells the listener."""

    def __init__(
        self,
        store: Store | None,
        run: int,
        listener: Listener | None,
        on_failure: Callable[[BaseException], None],
        *,
        keep_secrets: bool = False,
    ) -> None:
        self.summaries = no_summaries()
        self.listener_error: BaseException | None = None
        self._store = store
        self._masker = None if keep_secrets else TrialMasker()
        self._run = run
        self._listener = listener
        self._on_failure = on_failure
        self._pending: list[TrialResult] = []
        self._unsaved: list[TrialResult] = []
        self._handle: asyncio.Handle | None = None
        self._flushed_at = 0.0
        self._pid = os.getpid()

    def add(self, trial: TrialResult) -> None:
        self._pending.append(trial if self._masker is None else self._masker.trial(trial))
        if self._handle is None:
            loop = asyncio.get_running_loop()
            self._handle = loop.call_at(self._flushed_at + SPACING_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what is pending. A store that fails keeps the results in memory, so that reports still have them."""
        self._handle = None
        self._flushed_at = asyncio.get_running_loop().time()
        batch, self._pending = self._pending, []
        if not batch:
            return
        if self._store is None or self._unsaved:
            self._unsaved.extend(batch)
        else:
            try:
                end_fork_of(self._pid)  # a fork that an agent made has no business with the database
                if CHILD.page is not None:
                    allow_at_least(BUSY_SECONDS)
                self._store.add_trials(self._run, batch, masked=self._masker is not None)
            except StoreError as error:
                self._unsaved.extend(batch)
                self._on_failure(error)
        self.summaries.extend(TrialSummary.of(trial) for trial in batch)
        for trial in batch:
            self._tell(trial)

    def _tell(self, trial: TrialResult) -> None:
        """A listener that breaks is told no more; what it should have heard of is kept all the same."""
        if self._listener is None or self.listener_error is not None:
            return
        try:
            self._listener.trial_done(trial)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.listener_error = error
            self._on_failure(error)

    def check(self) -> str:
        """What to tell where results that were kept are gone, so that the verdict is all that is left of the run."""
        try:
            if self._store is not None:
                self._store.check_present()
        except StoreError as error:
            return f"{error}; the results are only in this report"
        return ""

    def trials(self) -> Any:
        """All trials in the order of the plan, as often as one likes."""
        return _Trials(self._store, self._run, self._unsaved)


class _Trials:
    """What the store has and what it could not take."""

    def __init__(self, store: Store | None, run: int, unsaved: list[TrialResult]) -> None:
        self._store = store
        self._run = run
        self._unsaved = unsaved

    def __iter__(self) -> Iterator[TrialResult]:
        kept = iter(()) if self._store is None else self._store.trials(self._run)
        unsaved = sorted(self._unsaved, key=_position)
        yield from heapq.merge(kept, unsaved, key=_position)


def _position(trial: TrialResult) -> int:
    return trial.position


@record
class OpenRun:
    """Where a run's results go: its id, its row in the store, and which trials are there already."""

    run_id: str
    started_at: float
    store: Store | None = None
    no: int = 0
    kept: Collection[int] = frozenset()
    """The positions in the plan of trials that are there already."""
    answers: Mapping[Address, TrialResult] = field(default_factory=dict)
    """Answers that are there already, but must be scored anew."""
    lock: FileLock | None = None
    """Held from the start, so that no other process takes the run for an interrupted one."""
    name: str = ""
    """What the user calls the run."""


def start_run(plan: Plan, store: Store | None, info: RunInfo, *, name: str = "") -> OpenRun:
    """A run of its own. Ids sort by time and never meet, also when two runs start in the same second."""
    run_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
    started_at = CLOCK.time()
    if store is None:
        return OpenRun(run_id, started_at, name=name)
    lock = _take(store, run_id)
    no = store.add_run(run_id, plan.key, info, name=name)
    return OpenRun(run_id, started_at, store, no, lock=lock, name=name)


def resume_run(plan: Plan, store: Store) -> OpenRun | None:
    """The latest interrupted run of the same plan, or `None`.

    Kept are the trials whose case and agent are what they were, unless they ended in an error: nothing is known then.
    If evaluators or criteria have changed, the answers are kept and scored anew.
    """
    adopted = _interrupted(plan, store)
    if adopted is None:
        return None
    row, lock = adopted
    kept: dict[int, int] = {}
    moves: list[tuple[int, int]] = []
    left: dict[Address, TrialKey] = {}
    dropped: list[int] = []
    for planned, found in _pairs(plan, store.iterate_keys(row.no), left):
        keys = {planned_key(case) for case in (planned.case, mask_case(planned.case))}
        unchanged = found.case_key in keys and found.agent == planned.suite.agent_fingerprint
        if not unchanged or found.outcome == Outcome.ERROR:
            dropped.append(found.no)
            continue
        kept[planned.position] = found.no
        if found.position != planned.position:
            moves.append((planned.position, found.no))
    answers: dict[Address, TrialResult] = {}
    if row.info.scoring != scoring_key(plan.suites):
        heard = (store.trial(no) for no in kept.values())
        answers = {(trial.suite, trial.case.id, trial.number): trial for trial in heard}
        dropped += kept.values()
        kept, moves = {}, []
    store.drop_trials(row.no, [*dropped, *(key.no for key in left.values())])
    store.move_trials(moves)
    store.reopen_run(row.no)
    return OpenRun(row.id, row.started_at, store, row.no, kept, answers, lock, row.name)


def _pairs(
    plan: Plan, stored: Iterator[tuple[Address, TrialKey]], left: dict[Address, TrialKey]
) -> Iterator[tuple[PlannedTrial, TrialKey]]:
    """Each planned trial that is there already, with its key; `left` keeps those that are not planned any more.

    In an unchanged plan both come in the same order, so that a million need not be held to be paired.
    """
    stood = next(stored, None)
    for planned in plan.trials:
        while stood is not None and stood[1].position <= planned.position:
            if stood[1].position == planned.position and stood[0] == planned.address:
                yield planned, stood[1]
            else:
                left[stood[0]] = stood[1]
            stood = next(stored, None)
    left.update([] if stood is None else [stood, *stored])
    for planned in plan.trials if left else ():
        moved = left.pop(planned.address, None)
        if moved is not None:
            yield planned, moved


@contextlib.contextmanager
def running(open_run: OpenRun) -> Iterator[None]:
    """Marks a run as alive while this process works on it; the mark goes with the process, however it ends."""
    try:
        yield
    finally:
        if open_run.lock is not None:
            open_run.lock.remove()


@contextlib.contextmanager
def exclusive_run(store: Store, run_id: str) -> Iterator[None]:
    """Keeps other processes from changing a run meanwhile; raises `StoreError` where one is at it."""
    lock = _take(store, run_id)
    if lock is None:
        raise StoreError(f"run {run_id} is being worked on by another process; try again when that has ended")
    with running(OpenRun(run_id, 0.0, store, lock=lock)):
        yield


def status_of(store: Store, row: RunRow) -> str:
    """`finished`, `running`, `interrupted`, or `died` where the process had no time to say anything."""
    if row.status != "running":
        return row.status
    path = store.folder / f"{row.id}.running"
    if not path.exists():
        return "died"
    lock = FileLock(path)
    if not lock.acquire(wait=False):
        return "running"
    lock.release()
    return "died"


def _interrupted(plan: Plan, store: Store) -> tuple[RunRow, FileLock] | None:
    """The latest unfinished run of the same plan that no process is working on, and the lock that keeps it so."""
    for row in store.runs():
        if row.plan != plan.key or row.status == "finished":
            continue
        lock = _take(store, row.id)
        if lock is None:
            continue
        now = store.find_run(row.id)  # it may have been finished while its lock was waited for
        if now.status != "finished":
            return now, lock
        lock.release()
    return None


def _take(store: Store, run_id: str) -> FileLock | None:
    """The lock of a run, or `None` while another process holds it."""
    lock = FileLock(store.folder / f"{run_id}.running")
    return lock if lock.acquire(wait=False) else None


def environment() -> Mapping[str, str]:
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
                plain(item.suite.criteria),
                sorted({(b.fingerprint, b.threshold) for b in item.bound.values()}),
            ]
            for item in suites
        ]
    )


def evaluator_keys(plan: Plan, *, fast: bool) -> dict[str, dict[str, str]]:
    """By suite and case: changes when the same answer could get another outcome. The case "" stands for most."""
    found: dict[str, dict[str, str]] = {}
    for item in plan.suites:
        alike = sorted(item.cases.scored_alike.items(), key=lambda pair: -len(pair[1]))
        keys = [_evaluators_key(item, [item.cases.specs[ids] for ids in lists], fast) for lists, _ in alike]
        own = found[item.suite.name] = {"": keys[0]}
        for key, (_, places) in zip(keys, alike, strict=True):
            if key != keys[0]:
                own |= {item.suite.cases[at].id: key for at in places}
    return found


def _evaluators_key(item: PlannedSuite, lists: Iterable[tuple[EvaluatorSpec, ...]], fast: bool) -> str:
    return fingerprint(
        item.suite.criteria.threshold,
        item.suite.criteria.trials == "mean",
        [
            [
                [bound.title, bound.fingerprint, bound.threshold, bound.spec.gates]
                for bound in item.evaluators(specs)
                if not (fast and bound.needs_judge)
            ]
            for specs in lists
        ],
    )


def result_of(
    planned: PlannedTrial,
    answer: Answer,
    scores: tuple[Score, ...] = (),
    warnings: tuple[str, ...] = (),
    *,
    reused: bool = False,
) -> TrialResult:
    return TrialResult(
        suite=planned.suite.suite.name,
        case=case_of(planned, answer),
        number=planned.number,
        position=planned.position,
        outcome=answer.outcome or Outcome.ERROR,
        reason=answer.reason,
        replies=answer.replies,
        scores=scores,
        started_at=answer.started_at,
        duration_ms=answer.duration_ms,
        attempts=answer.attempts,
        agent=planned.suite.agent_fingerprint,
        warnings=(*answer.warnings, *warnings),
        reused=reused,
        spans=answer.spans,
    )


def case_of(planned: PlannedTrial, answer: Answer) -> Case:
    """The case with what was said, where a simulated user said it."""
    return planned.case if answer.turns is None else replace(planned.case, turns=answer.turns)
