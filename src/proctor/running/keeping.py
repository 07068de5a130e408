"""Keeps every finished trial before anybody is told of it, and remembers what could not be kept."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator
from typing import Any

from proctor.errors import StoreError
from proctor.results.model import TrialResult, TrialSummary
from proctor.results.store import Store
from proctor.running.listening import Listener

SPACING_SECONDS = 0.002
"""Writes come at least this far apart: one alone goes out at once, many share a transaction."""


class Keeper:
    """Writes what finished together as one batch, then tells the listener."""

    def __init__(
        self, store: Store | None, run: int, listener: Listener | None, on_failure: Callable[[Exception], None]
    ) -> None:
        self.summaries: list[TrialSummary] = []
        self.listener_error: Exception | None = None
        self._store = store
        self._run = run
        self._listener = listener
        self._on_failure = on_failure
        self._pending: list[TrialResult] = []
        self._unsaved: list[TrialResult] = []
        self._handle: asyncio.Handle | None = None
        self._flushed_at = 0.0

    def add(self, trial: TrialResult) -> None:
        self._pending.append(trial)
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
        except Exception as error:
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
