"""Writes trials to the store before they are reported, and opens the run they belong to: a new one or a resumed one."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from proctor.base.errors import StoreError
from proctor.base.guard import CHILD, allow_at_least
from proctor.base.processes import FileLock
from proctor.base.records import record
from proctor.base.threads import CLOCK, end_fork_of
from proctor.results.case_encoding import planned_key
from proctor.results.database import BUSY_SECONDS
from proctor.results.encoding import TrialMasker, mask_case
from proctor.results.run import Outcome, TrialResult, TrialSummary
from proctor.results.run_info import RunInfo, RunRow
from proctor.results.store import Store
from proctor.running.engine.plan import Plan, scoring_key
from proctor.running.options import Listener
from proctor.version import __version__

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
        self.summaries: list[TrialSummary] = []
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
                self._store.add_trials(self._run, batch)
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
    kept: frozenset[tuple[str, str, int]] = frozenset()
    answers: Mapping[tuple[str, str, int], TrialResult] = field(default_factory=dict)
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
    stored = store.trial_keys(row.no)
    keep: dict[tuple[str, str, int], tuple[int, int]] = {}
    for planned in plan.trials:
        address = (planned.suite.suite.name, planned.case.id, planned.number)
        found = stored.get(address)
        if found is None:
            continue
        keys = {planned_key(case) for case in (planned.case, mask_case(planned.case))}
        unchanged = found.case_key in keys and found.agent == planned.suite.agent_fingerprint
        if unchanged and found.outcome != Outcome.ERROR:
            keep[address] = (planned.position, found.no)
    answers: dict[tuple[str, str, int], TrialResult] = {}
    if row.info.scoring != scoring_key(plan.suites):
        answers = {address: store.trial(no) for address, (_, no) in keep.items()}
        keep.clear()
    store.drop_trials(row.no, [found.no for address, found in stored.items() if address not in keep])
    store.move_trials(list(keep.values()))
    store.reopen_run(row.no)
    return OpenRun(row.id, row.started_at, store, row.no, frozenset(keep), answers, lock, row.name)


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
