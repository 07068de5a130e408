"""Opens a run in the store: a new one, or the interrupted one that is to be continued."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from proctor.errors import StoreError
from proctor.plain import Json
from proctor.records import record
from proctor.results.keys import case_content, case_key
from proctor.results.model import Outcome
from proctor.results.store import RunRow, Store
from proctor.running.plan import Plan


@record
class Booking:
    """Where a run's results go: its id, its row in the store, and which trials are there already."""

    run_id: str
    started_at: float
    store: Store | None = None
    no: int = 0
    kept: frozenset[tuple[str, str, int]] = frozenset()


def book_new(plan: Plan, store: Store | None, info: dict[str, Json]) -> Booking:
    """A run of its own. Ids sort by time and never meet, also when two runs start in the same second."""
    run_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"
    started_at = time.time()
    if store is None:
        return Booking(run_id, started_at)
    return Booking(run_id, started_at, store, store.add_run(run_id, plan.key, info))


def book_resumed(plan: Plan, store: Store) -> Booking | None:
    """The latest interrupted run of the same plan, or `None`.

    Kept are the trials whose case and agent are what they were, unless they ended in an error: nothing is known then.
    """
    row = _interrupted(plan, store)
    if row is None:
        return None
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
    store.drop_trials(row.no, [found.no for address, found in stored.items() if address not in keep])
    store.move_trials(list(keep.values()))
    store.reopen_run(row.no)
    return Booking(row.id, row.started_at, store, row.no, frozenset(keep))


@contextlib.contextmanager
def running(booking: Booking) -> Iterator[None]:
    """Marks a run as alive while this process works on it; the mark goes with the process, however it ends."""
    if booking.store is None:
        yield
        return
    path = _lock_path(booking.store, booking.run_id)
    with path.open("w") as handle:
        if not _lock(handle):
            raise StoreError(f"run {booking.run_id} is being made by another process")
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()


def _interrupted(plan: Plan, store: Store) -> RunRow | None:
    for row in store.runs():
        if row.plan == plan.key and row.status != "finished" and not _is_alive(store, row.id):
            return row
    return None


def _is_alive(store: Store, run_id: str) -> bool:
    path = _lock_path(store, run_id)
    if not path.exists():
        return False
    with path.open("r+") as handle:
        return not _lock(handle)


def _lock_path(store: Store, run_id: str) -> Path:
    return store.folder / f"{run_id}.running"


def _lock(handle: object) -> bool:
    """Whether this process holds the file now; platforms without such locks trust their users."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[arg-type]
    except OSError:
        return False
    return True
