"""What evaluators return."""

from __future__ import annotations

import math
import numbers
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from proctor.base.json_data import UNSET, to_text
from proctor.base.open_checks import Undecided
from proctor.evaluators.evaluable import Evaluable as Evaluable
from proctor.evaluators.evaluable import Exchange as Exchange
from proctor.evaluators.evaluable import collapse as collapse


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of one evaluator on one answer."""

    score: float
    """Between 0 and 1; higher is better."""
    reasoning: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    passed: bool | None = None
    """Whether it passed, if the evaluator decides that itself; `None` compares the score with the threshold."""


EvaluatorResult: TypeAlias = Evaluation | bool | int | float | None
"""What an evaluator may return. `None` means that there was nothing to compare."""


class NothingToCompare(Exception):
    """Raised by an evaluator if the case or the answer lacks what it needs. The outcome is `skipped`."""


class EvaluationPending(Undecided):
    """Raised by an evaluator that needs a grade from a person or an agent. The outcome is `pending`."""

    def __init__(self, reason: str = "", *, criteria: str = "") -> None:
        super().__init__(reason)
        self.criteria = criteria
        """What the grader should look for."""


class Evaluator(Protocol):
    """Any callable, sync or async, that takes an `Evaluable` (and `trace=`, if it needs the trace).

    It may also have these attributes: `default_threshold` (0.5), `scope` ("turn" or "case"), `version`, `needs_judge`.
    """

    def __call__(self, evaluable: Evaluable, /) -> EvaluatorResult | Awaitable[EvaluatorResult]: ...


UNREADABLE = "unreadable"
"""The detail of a score of 0 for an answer in which there was nothing to compare, such as a number."""
UNCLAMPED = "unclamped_score"
"""The detail that holds the original score if it was out of range."""


class InvalidScore(Exception):
    """An evaluator returned something that is not a score. The outcome is `error`."""


def clamp_notice(evaluation: Evaluation) -> str:
    """The warning for the author of an evaluator whose score was out of range."""
    return f"an evaluator returned the score {evaluation.details[UNCLAMPED]:g}; clamped to {evaluation.score:g}"


def to_evaluation(verdict: Any) -> Evaluation | None:
    """The result of an evaluator as an `Evaluation`: a bool is 1 or 0, and a score out of range is clamped."""
    if verdict is None:
        return None
    if isinstance(verdict, Evaluation):
        return _in_range(verdict)
    if is_real_number(verdict):
        return _in_range(Evaluation(float(verdict)))
    if _is_evaluation_like(verdict):
        details: Any = getattr(verdict, "details", None)
        passed = getattr(verdict, "passed", None)
        own = passed if isinstance(passed, bool) else None
        return _in_range(Evaluation(verdict.score, str(verdict.reasoning), details, own))
    shown = to_text(verdict, 40) if not isinstance(verdict, str) else repr(verdict[:40])
    raise InvalidScore(
        f"returned {shown} ({type(verdict).__name__}); return True, False, a number from 0 to 1, or an Evaluation"
    )


def is_real_number(value: Any) -> bool:
    """Whether it is a bool or a real number, also a Decimal, a Fraction or one of numpy.

    The type decides, because a mock object has every attribute, and can be converted to 1.0.
    """
    kind = type(value)
    if issubclass(kind, (numbers.Real, Decimal)):
        return True
    return kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")


def _is_evaluation_like(verdict: Any) -> bool:
    return hasattr(verdict, "score") and isinstance(getattr(verdict, "reasoning", UNSET), (str, type(None)))


def _in_range(evaluation: Evaluation) -> Evaluation:
    score: Any = evaluation.score
    if evaluation.passed is not None and not isinstance(evaluation.passed, bool):
        raise InvalidScore(f"returned passed={evaluation.passed!r}; it must be True, False or None")
    if evaluation.details is None:
        evaluation = replace(evaluation, details={})
    if not isinstance(evaluation.details, Mapping):
        shown = to_text(evaluation.details, 40)
        raise InvalidScore(f"returned details={shown} ({type(evaluation.details).__name__}); they must be a dict")
    if not is_real_number(score):
        raise InvalidScore(f"returned the score {score!r}; a score must be a number between 0 and 1")
    number = float(score)
    if not math.isfinite(number):
        shown = "NaN" if math.isnan(number) else "an infinite score"
        raise InvalidScore(f"returned {shown}; a score must be a number between 0 and 1")
    if 0.0 <= number <= 1.0:
        return evaluation if type(score) is float else replace(evaluation, score=number)
    clamped = min(1.0, max(0.0, number))
    return replace(evaluation, score=clamped, details={**evaluation.details, UNCLAMPED: number})
