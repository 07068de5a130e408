"""Who wants to know how a run goes: the terminal, a progress bar, a test."""

from __future__ import annotations

from typing import Protocol

from proctor.results.model import Run, TrialResult
from proctor.results.verdict import RunVerdict


class Listener(Protocol):
    """Told of everything in order, always from one thread, and of a trial only once it is safely kept."""

    def started(self, run: Run, planned: int, kept: int) -> None:
        """`planned` trials are to be made, of which `kept` are there already."""
        ...

    def trial_done(self, trial: TrialResult) -> None: ...

    def finished(self, run: Run, verdict: RunVerdict) -> None: ...
