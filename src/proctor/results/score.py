"""Scores and outcomes: what one evaluator says about an answer, and what that means for a trial, a case or a run."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import SupportsIndex, overload

from proctor.base.deprecation import renamed_fields
from proctor.base.documents import did_you_mean
from proctor.base.errors import MissingKey
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


JUDGE_DETAIL = "judge"
"""Key in `Score.details` of the judge's name, calls and usage."""
GRADED_BY = "graded_by"
"""Key in `Score.details` of the person who graded it."""
MASKED_TEXT = "masked_text"
"""Key in `Score.details` if the evaluator reads a text in which secrets are masked: where the score comes from."""
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

    @property
    def passed(self) -> bool:
        """Whether the outcome is `passed`."""
        return self.outcome is Outcome.PASSED


class Scores(tuple[Score, ...]):
    """The scores of a trial, by position or by the name of the evaluator: `scores[0]`, `scores["polite"]`.

    An evaluator that scored several turns has several scores; its name then gives the worst of them.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Score: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Score, ...]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> Score | tuple[Score, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        own = [score for score in self if score.evaluator == key]
        if not own:
            names = dict.fromkeys(score.evaluator for score in self)
            hint = did_you_mean(key, names) or (f"; there are {', '.join(names)}" if names else "; there are none")
            raise MissingKey(f"no score of {key!r}{hint}")
        return min(own, key=lambda score: score.outcome.rank)


NO_SCORES = Scores()


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The part of a score that verdicts and tables need."""

    evaluator: str
    outcome: Outcome
    value: float | None
    threshold: float | None
    report_only: bool
