"""Scores and outcomes: what one evaluator says about an answer, and what that means for a trial, a case or a run."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from proctor.base.deprecation import renamed_fields
from proctor.base.json_data import Json


class Outcome(enum.StrEnum):
    """The result of a trial, a case or a score. Only `passed` and `failed` say something about the agent."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """The infrastructure or an evaluator broke, so nothing is known about the agent."""
    SKIPPED = "skipped"
    """There was nothing to compare, or the case is skipped on purpose."""
    PENDING = "pending"
    """Needs a person or a model to decide."""

    @property
    def rank(self) -> int:
        """How bad it is: 0 for a failure, the highest number for a skip."""
        return _WORST_FIRST.index(self)


_WORST_FIRST = (Outcome.FAILED, Outcome.ERROR, Outcome.PENDING, Outcome.PASSED, Outcome.SKIPPED)


def worst_outcome(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of the outcomes, in the order failed, error, pending, passed, skipped; skipped if there are none."""
    return min(outcomes, key=lambda outcome: outcome.rank, default=Outcome.SKIPPED)


MEAN_OVER_TURNS = "mean_over_turns"
"""Key in `Score.details` if the evaluator's mean over turns decides: that mean, for this trial."""


@renamed_fields({}, inverted={"gates": "report_only"})
@dataclass(frozen=True, slots=True)
class Score:
    """The result of one evaluator for one turn, or for the whole conversation."""

    evaluator: str
    outcome: Outcome
    value: float | None = None
    threshold: float | None = None
    reasoning: str = ""
    """Why this score; for `error`, `skipped` and `pending`, why there is none."""
    turn: int | None = None
    """The index of the turn, or `None` for the whole conversation."""
    report_only: bool = False
    """Whether the score is reported without affecting the outcome."""
    details: Mapping[str, Json] = field(default_factory=dict)
    fingerprint: str = ""
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The part of a score that verdicts and tables need."""

    evaluator: str
    outcome: Outcome
    value: float | None
    threshold: float | None
    report_only: bool
