"""Stores each finished trial, then reports it.

The order is guaranteed: mask, one transaction, then the listener. So a trial that a report shows is on disk, whatever
happens next. Trials that finish within a few milliseconds share a transaction. If the store fails, for example because
the disk is full, results stay in memory for the report, and the run stops. If the listener fails, trials are still
stored, and its error is raised at the end.
"""

from __future__ import annotations

import asyncio
import heapq
import os
from collections.abc import Callable, Collection, Iterable

from proctor.base.errors import StoreError
from proctor.base.guard import extend_deadline
from proctor.base.threads import exit_if_forked
from proctor.cases.identity import CaseAddress
from proctor.results.masking import TrialMasker
from proctor.results.store.database import BUSY_SECONDS
from proctor.results.store.store import Store
from proctor.results.trial import Trial, Trials, TrialSummary
from proctor.running.settings import Listener

SPACING_SECONDS = 0.002
"""The least time between two writes: a single trial is written immediately, many share a transaction."""


class TrialWriter:
    """Stores trials that finish together as one batch, then reports them to the listener."""

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
        self._pending: list[Trial] = []
        self._unsaved: list[Trial] = []
        self._unsaved_by_case: dict[CaseAddress, list[Trial]] = {}
        self._indexed = 0
        """How many of the unsaved trials are in `_unsaved_by_case`."""
        self._handle: asyncio.Handle | None = None
        self._flushed_at = 0.0
        self._pid = os.getpid()

    def add(self, trial: Trial) -> None:
        self._pending.append(trial if self._masker is None else self._masker.trial(trial))
        if self._handle is None:
            loop = asyncio.get_running_loop()
            self._handle = loop.call_at(self._flushed_at + SPACING_SECONDS, self.flush)

    def flush(self) -> None:
        """Store the pending trials. If the store fails, they stay in memory for the reports."""
        self._handle = None
        self._flushed_at = asyncio.get_running_loop().time()
        batch, self._pending = self._pending, []
        if not batch:
            return
        if self._store is None or self._unsaved:
            self._unsaved.extend(batch)
        else:
            try:
                exit_if_forked(self._pid)  # a process that the agent forked must not use the database
                extend_deadline(BUSY_SECONDS)
                self._store.add_trials(self._run, batch, masked=self._masker is not None)
            except StoreError as error:
                self._unsaved.extend(batch)
                self._on_failure(error)
        self.summaries.extend(TrialSummary.of(trial) for trial in batch)
        for trial in batch:
            self._report(trial)

    def _report(self, trial: Trial) -> None:
        """Call the listener; if it raises, it is not called again."""
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
        """A note for the run if the store does not have its trials: it was deleted or damaged; else empty."""
        try:
            if self._store is not None:
                self._store.check_trials(self._run, len(self.summaries) - len(self._unsaved))
        except StoreError as error:
            return f"{error}; the results are only in this report"
        return ""

    def trials(self) -> Trials:
        """All trials in the order of the plan."""
        return Trials(self._read, lambda: len(self.summaries))

    def _read(self, cases: Collection[CaseAddress] | None) -> Iterable[Trial]:
        """The stored trials and the unsaved ones, in order; only those of `cases` if they are given."""
        stored = iter(()) if self._store is None else self._store.trials(self._run, cases)
        unsaved = self._unsaved if cases is None else self._unsaved_of(cases)
        return heapq.merge(stored, sorted(unsaved, key=_position), key=_position)

    def _unsaved_of(self, cases: Collection[CaseAddress]) -> list[Trial]:
        """The unsaved trials of these cases. A run in memory looks them up case by case, so they are indexed."""
        for trial in self._unsaved[self._indexed :]:
            self._unsaved_by_case.setdefault((trial.suite, trial.case.id), []).append(trial)
        self._indexed = len(self._unsaved)
        return [trial for case in cases for trial in self._unsaved_by_case.get(case, ())]


def _position(trial: Trial) -> int:
    return trial.position
