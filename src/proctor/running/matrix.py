"""The matrix `[inputs][evaluators]` of what was found, and whether it passes.

What could not be measured has a place in it as well: an evaluation whose score is not a number, so that it is neither a
pass nor a zero. Its `details["outcome"]` says `error`, `skipped` or `pending`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from proctor.evaluators.model import Evaluable, Evaluation
from proctor.plain import plain, show
from proctor.results.model import Outcome
from proctor.results.thresholds import ScoreThreshold

Matrix: TypeAlias = list[list[Evaluation]]
PassCriteria: TypeAlias = Callable[[Matrix], tuple[bool, str]]

LONGEST = 40
"""Lines of one kind that a message has."""
SHOWN = 80

NOTHING_MEASURED = "Fail: nothing was measured"


class EvalAssertionError(AssertionError):
    """The pass criteria were not met."""

    def __init__(self, message: str, results: Matrix) -> None:
        super().__init__(message)
        self.results = results
        """`[inputs][evaluators]`; what could not be measured has the score NaN, and `details["outcome"]` says why."""


def unmeasured(outcome: Outcome, reason: str) -> Evaluation:
    """The place of a score that there is not."""
    return Evaluation(math.nan, reason, {"outcome": outcome.value})


def unanswered(reason: str) -> Evaluation:
    """The place of a score for an answer that there is not."""
    return Evaluation(math.nan, reason, {"outcome": Outcome.ERROR.value, "unanswered": True})


def outcome_of(cell: Evaluation) -> Outcome | None:
    """Why there is no score; `None` where there is one."""
    return Outcome(cell.details["outcome"]) if math.isnan(cell.score) else None


def judge_matrix(matrix: Matrix, criteria: PassCriteria) -> tuple[bool, str]:
    """Whether the criteria are met, however what could not be measured might have turned out."""
    if all(outcome_of(cell) is not None for row in matrix for cell in row):
        return False, NOTHING_MEASURED if matrix else "Fail: there were no inputs"
    if isinstance(criteria, ScoreThreshold):
        return criteria([[cell for cell in row if outcome_of(cell) is not Outcome.SKIPPED] for row in matrix])
    passed, message = criteria(matrix)
    worst = [_at_worst(row) for row in matrix]
    if passed and worst != matrix:
        passed = criteria(worst)[0]
        message = message if passed else f"Fail: what could not be measured might have failed ({message})"
    return passed, message


def _at_worst(row: list[Evaluation]) -> list[Evaluation]:
    """A skip beside real scores says nothing against a row; a row of nothing but skips has nothing to say for it."""
    outcomes = [outcome_of(cell) for cell in row]
    harmless = Outcome.SKIPPED if None in outcomes else None
    return [
        cell if outcome in (None, harmless) else replace(cell, score=0.0)
        for cell, outcome in zip(row, outcomes, strict=True)
    ]


def explain(
    message: str, matrix: Matrix, questions: Sequence[Evaluable], evaluators: Sequence[str], criteria: PassCriteria
) -> str:
    """The criteria's own sentence, then each input that did not pass, by evaluator, with its score and why."""
    threshold = criteria.threshold if isinstance(criteria, ScoreThreshold) else 1.0
    lines: dict[str, list[str]] = {"failed": [], "errors": [], "pending": [], "skipped": []}
    for number, (row, question) in enumerate(zip(matrix, questions, strict=True), 1):
        place = f"input {number} ({show(plain(question.input), SHOWN)})"
        for kind, text in _row_lines(row, evaluators, threshold):
            lines[kind].append(f"  {place}: {text}")
    parts = [message]
    for kind, found in lines.items():
        heading = "errors, which say nothing about the application" if kind == "errors" else kind
        parts += [f"{heading}:", *found[:LONGEST]] if found else []
        parts += [f"  and {len(found) - LONGEST} more"] if len(found) > LONGEST else []
    return "\n".join(parts)


def _row_lines(row: list[Evaluation], evaluators: Sequence[str], threshold: float) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for cell, title in zip(row, evaluators, strict=True):
        outcome = outcome_of(cell)
        if outcome is not None and "unanswered" in cell.details:
            return [("errors", cell.reasoning)]
        if outcome is None:
            if cell.score < threshold:
                found.append(("failed", f"{title} scored {cell.score:.4g}{_because(cell.reasoning)}"))
        else:
            kind = "errors" if outcome is Outcome.ERROR else outcome.value
            found.append((kind, f"{title}{_because(cell.reasoning)}"))
    return found


def _because(reasoning: str) -> str:
    return f": {show(' '.join(str(reasoning).split()), 300)}" if reasoning else ""
