"""Who judges at present: set by the engine for each evaluator it calls, found from the environment otherwise."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from proctor.judging.panel import Panel
from proctor.records import record

if TYPE_CHECKING:
    from proctor.judging.budget import Budget
    from proctor.judging.recall import Recall

EMBEDDED = "embedded"
"""The judge that needs no model, and judges where nobody named another."""

VARIABLE = "PROCTOR_JUDGE"


class Chambers(Protocol):
    """Where judges are made: what they share (cache, limits, budget) lives there."""

    def panel(self, named: Any) -> Panel:
        """Whoever `named` means: `provider:model`, a mapping with options, a Judge, a Panel. Raises `UsageError`."""
        ...


@record
class Sitting:
    """What holds while one evaluator is at work."""

    chambers: Chambers
    judge: Any = EMBEDDED
    """Who judges unless the evaluator names its own."""
    threshold: float | None = None
    """The line the score will be held against; `None` leaves it to the evaluator."""
    recall: Recall | None = None
    """Where embeddings are found again; `None` where nothing outlives the process."""
    budget: Budget | None = None
    """What embeddings are paid from."""


_SITTING: ContextVar[Sitting | None] = ContextVar("proctor_sitting", default=None)


@contextmanager
def sitting(present: Sitting) -> Iterator[None]:
    """Let evaluators called inside ask the judge of `present`."""
    token = _SITTING.set(present)
    try:
        yield
    finally:
        _SITTING.reset(token)


def engine_sitting() -> Sitting | None:
    """That of the engine, if it is the engine that calls."""
    return _SITTING.get()


def present_sitting() -> Sitting:
    """The engine's, or for an evaluator called on its own, the judge named in the environment."""
    return _SITTING.get() or Sitting(_own_chambers(), os.environ.get(VARIABLE) or EMBEDDED)


@functools.cache
def _own_chambers() -> Chambers:
    from proctor.judging.chambers import SharedChambers

    return SharedChambers()
