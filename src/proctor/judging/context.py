"""The context in which an evaluator asks a judge: who judges, from which threshold a score passes, what is left out.

It is a context variable, so that evaluators of concurrent trials never see each other's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from proctor.base.json_data import object_or_text
from proctor.judging.judge import EMBEDDED
from proctor.judging.judge_cache import JudgeCache
from proctor.judging.limits import Budget
from proctor.judging.panel import Panel

VARIABLE = "PROCTOR_JUDGE"
FAST_VARIABLE = "PROCTOR_FAST"
"""Set by pytest's `--proctor-fast` for evaluators that tests call directly."""


class JudgeFactory(Protocol):
    """Makes judges from their names, and holds what they share: cache, rate limits, budget."""

    def panel(self, named: Any) -> Panel:
        """The judges of `named`: `provider:model`, a mapping with options, a Judge or a Panel. Raises `UsageError`."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeContext:
    """What holds while the engine calls one evaluator."""

    judges: JudgeFactory
    judge: Any = EMBEDDED
    """The judge, unless the evaluator names its own."""
    threshold: float | None = None
    """The threshold that the score will be compared with; `None` leaves it to the evaluator."""
    cache: JudgeCache | None = None
    """Where embeddings are kept; `None` where nothing outlives the process."""
    budget: Budget | None = None
    """What embeddings are paid from."""
    leaves_out_models: bool = field(default_factory=lambda: os.environ.get(FAST_VARIABLE) == "1")
    """Whether pytest was told to leave out what needs a model."""
    is_final: bool = False
    """Whether `judge` is asked even if the evaluator names its own: the command line names it."""


_CONTEXT: ContextVar[JudgeContext | None] = ContextVar("proctor_judge_context", default=None)


@contextmanager
def judge_context(context: JudgeContext) -> Iterator[None]:
    """Let evaluators called inside ask the judge of `context`."""
    token = _CONTEXT.set(context)
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def engine_judge_context() -> JudgeContext | None:
    """The context that the engine set; `None` for an evaluator that a user calls directly."""
    return _CONTEXT.get()


def judge_in_force() -> Any:
    """The judge that the engine set, or for an evaluator that a user calls directly, the one of the environment."""
    present = _CONTEXT.get()
    if present is not None:
        return present.judge
    return object_or_text(os.environ.get(VARIABLE) or EMBEDDED, f"{VARIABLE}: the judge")
