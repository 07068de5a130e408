"""Opens a run in the store: a new one, or the interrupted one that is to be continued."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import IO

from proctor.errors import StoreError
from proctor.plain import Json
from proctor.records import record
from proctor.results.keys import case_content, case_key
from proctor.results.model import Outcome, TrialResult
from proctor.results.store import RunRow, Store
from proctor.running.plan import Plan, scoring_key


@record
class Booking:
    """Where a run's results go: its id, its row in the store, and which trials are there already."""

    run_id: str
    started_at: float
    store: Store | None = None
    no: int = 0
    kept: frozenset[tuple[str, str, int]] = frozenset()
    answers: Mapping[tuple[str, str, int], TrialResult] = field(default_factory=dict)
    """Answers that are there already, but must be scored anew."""
    lock: IO[str] | None = None
    """Held from the moment on at which another process could think the run is nobody's."""


def book_new(plan: Plan, store: Store | None, info: dict[str, Json]) -> Booking:
    """A run of its own. Ids sort by time and never meet, also when two runs start in the same second."""
    run_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
    started_at = time.time()
    if store is None:
        return Booking(run_id, started_at)
    lock = _take(store, run_id)
    return Booking(run_id, started_at, store, store.add_run(run_id, plan.key, info), lock=lock)


def book_resumed(plan: Plan, store: Store) -> Booking | None:
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
        unchanged = (
            found.case_key == case_key(case_content(planned.case)) and found.agent == planned.suite.agent_fingerprint
        )
        if unchanged and found.outcome != Outcome.ERROR:
            keep[address] = (planned.position, found.no)
    answers: dict[tuple[str, str, int], TrialResult] = {}
    if row.info.get("scoring") != scoring_key(plan.suites):
        answers = {address: store.trial(no) for address, (_, no) in keep.items()}
        keep.clear()
    store.drop_trials(row.no, [found.no for address, found in stored.items() if address not in keep])
    store.move_trials(list(keep.values()))
    store.reopen_run(row.no)
    return Booking(row.id, row.started_at, store, row.no, frozenset(keep), answers, lock)


@contextlib.contextmanager
def running(booking: Booking) -> Iterator[None]:
    """Marks a run as alive while this process works on it; the mark goes with the process, however it ends."""
    try:
        yield
    finally:
        if booking.lock is not None:
            with contextlib.suppress(OSError):
                Path(booking.lock.name).unlink()
            booking.lock.close()


@contextlib.contextmanager
def alone_with(store: Store, run_id: str) -> Iterator[None]:
    """Keeps other processes from changing a run meanwhile; raises `StoreError` where one is at it."""
    lock = _take(store, run_id)
    if lock is None:
        raise StoreError(f"run {run_id} is being worked on by another process; try again when that has ended")
    with running(Booking(run_id, 0.0, store, lock=lock)):
        yield


def status_of(store: Store, row: RunRow) -> str:
    """`finished`, `running`, or `interrupted`, also where the process had no time to say so."""
    if row.status != "running":
        return row.status
    lock = store.folder / f"{row.id}.running"
    if not lock.exists():
        return "interrupted"
    with lock.open() as handle:
        return "interrupted" if _lock(handle) else "running"


def _interrupted(plan: Plan, store: Store) -> tuple[RunRow, IO[str]] | None:
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
        lock.close()
    return None


def _take(store: Store, run_id: str) -> IO[str] | None:
    """The lock of a run, or `None` while another process holds it."""
    path = store.folder / f"{run_id}.running"
    try:
        handle = path.open("w")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error}") from error
    if _lock(handle):
        return handle
    handle.close()
    return None


def _lock(handle: IO[str]) -> bool:
    """Whether this process holds the file now; platforms without such locks trust their users."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
