"""Evaluators passed from Python code, and the matrix `[inputs][evaluators]` of their evaluations.

The matrix also has a cell for each missing score: an evaluation whose score is NaN, so that it is neither a pass nor a
zero. Its `details["outcome"]` is `error`, `skipped` or `pending`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from proctor.base.errors import UsageError
from proctor.base.functions import title_of
from proctor.base.json_data import Json, to_json, to_text
from proctor.base.open_checks import Need, OpenCheck
from proctor.cases.evaluator_specs import read_evaluators
from proctor.cases.suite import EvaluatorSpec, Suite
from proctor.cases.threshold import passes
from proctor.evaluators.calling import evaluate
from proctor.evaluators.evaluation import (
    Evaluable,
    Evaluation,
    InvalidScore,
)
from proctor.evaluators.judged_evaluator import JudgeAbstained, evaluator_timeout
from proctor.evaluators.registry import resolve_evaluator
from proctor.judging.call_log import WaitTimer, count_waits
from proctor.results.run import ScoreThreshold
from proctor.results.score import Outcome
from proctor.running.scoring import outcome_of_exception
from proctor.running.settings import NO_OPTIONS, limits_for
from proctor.running.timeouts import Cancelled, TimedOut, Watchdog, run_with_timeout
from proctor.tracing.capture import suppress_tracing

Matrix: TypeAlias = list[list[Evaluation]]
PassCriteria: TypeAlias = Callable[[Matrix], tuple[bool, str]]

MAX_LINES = 40
"""The most lines of one kind in a message."""
MAX_INPUT_CHARS = 80

ABSTAINED = "abstained"
"""The detail of a cell whose judge cannot decide. Other pending cells wait for a person's grade."""
NOTHING_SCORED = "Fail: nothing was scored"


class EvalAssertionError(AssertionError):
    """The pass criteria were not met."""

    def __init__(self, message: str, results: Matrix) -> None:
        super().__init__(message)
        self.results = results
        """`[inputs][evaluators]`; a missing score is NaN, and `details["outcome"]` says why."""


def missing_score(outcome: Outcome, reason: str) -> Evaluation:
    """The cell of a missing score."""
    return Evaluation(math.nan, reason, {"outcome": outcome.value})


def missing_answer(reason: str) -> Evaluation:
    """The cell of a score for a missing answer."""
    return Evaluation(math.nan, reason, {"outcome": Outcome.ERROR.value, "unanswered": True})


def _missing_score_because(error: BaseException) -> Evaluation:
    """The cell of a missing score, from the exception of the evaluator."""
    failure = outcome_of_exception(error)
    cell = missing_score(failure.outcome, failure.reason or "pending")
    return replace(cell, details={**cell.details, ABSTAINED: True}) if isinstance(error, JudgeAbstained) else cell


def outcome_of(cell: Evaluation) -> Outcome | None:
    """The outcome of a missing score; `None` if there is a score."""
    return Outcome(cell.details["outcome"]) if math.isnan(cell.score) else None


def judge_matrix(matrix: Matrix, criteria: PassCriteria) -> tuple[bool, str]:
    """Whether the criteria are met, whatever the missing scores might have been; and a message."""
    if all(outcome_of(cell) is not None for row in matrix for cell in row):
        return False, NOTHING_SCORED if matrix else "Fail: there were no inputs"
    if isinstance(criteria, ScoreThreshold):
        return criteria([[cell for cell in row if outcome_of(cell) is not Outcome.SKIPPED] for row in matrix])
    passed, message = criteria(matrix)
    worst = [_worst_case(row) for row in matrix]
    if passed and worst != matrix:
        passed = criteria(worst)[0]
        message = message if passed else f"Fail: the missing scores might have failed ({message})"
    return passed, message


def best_case(matrix: Matrix) -> Matrix:
    """The matrix if every pending score were the full score."""
    return [
        [replace(cell, score=1.0) if outcome_of(cell) is Outcome.PENDING else cell for cell in row] for row in matrix
    ]


def open_check(matrix: Matrix, titles: Sequence[str], details: str) -> OpenCheck | None:
    """The pending scores of the matrix as a check without a result; `None` if there are none."""
    pending = [
        (title, cell)
        for row in matrix
        for title, cell in zip(titles, row, strict=True)
        if outcome_of(cell) is Outcome.PENDING
    ]
    if not pending:
        return None
    need: Need = "model" if any(ABSTAINED in cell.details for _, cell in pending) else "grade"
    return OpenCheck(tuple(dict.fromkeys(title for title, _ in pending)), need, details)


def _worst_case(row: list[Evaluation]) -> list[Evaluation]:
    """The row if every missing score were zero, except skipped ones in a row that has other scores."""
    outcomes = [outcome_of(cell) for cell in row]
    harmless = Outcome.SKIPPED if None in outcomes else None
    return [
        cell if outcome in (None, harmless) else replace(cell, score=0.0)
        for cell, outcome in zip(row, outcomes, strict=True)
    ]


def explain(
    message: str, matrix: Matrix, questions: Sequence[Evaluable], evaluators: Sequence[str], criteria: PassCriteria
) -> str:
    """The criteria's message, then each input that did not pass, by evaluator, with its score and reason."""
    threshold = criteria.threshold if isinstance(criteria, ScoreThreshold) else 1.0
    lines: dict[str, list[str]] = {"failed": [], "errors": [], "pending": [], "skipped": []}
    for number, (row, question) in enumerate(zip(matrix, questions, strict=True), 1):
        place = f"input {number} ({to_text(to_json(question.input), MAX_INPUT_CHARS)})"
        for kind, text in _row_lines(row, evaluators, threshold):
            lines[kind].append(f"  {place}: {text}")
    parts = [message]
    for kind, texts in lines.items():
        heading = "errors (not counted against the application)" if kind == "errors" else kind
        parts += [f"{heading}:", *texts[:MAX_LINES]] if texts else []
        parts += [f"  and {len(texts) - MAX_LINES} more"] if len(texts) > MAX_LINES else []
    return "\n".join(parts)


def _row_lines(row: list[Evaluation], evaluators: Sequence[str], threshold: float) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for cell, title in zip(row, evaluators, strict=True):
        outcome = outcome_of(cell)
        if outcome is not None and "unanswered" in cell.details:
            return [("errors", cell.reasoning)]
        if outcome is None:
            if not passes(cell.score, threshold, cell.passed):
                lines.append(("failed", f"{title} scored {cell.score:.4g}{_with_reason(cell.reasoning)}"))
        else:
            kind = "errors" if outcome is Outcome.ERROR else outcome.value
            lines.append((kind, f"{title}{_with_reason(cell.reasoning)}"))
    return lines


def _with_reason(reasoning: str) -> str:
    return f": {to_text(' '.join(str(reasoning).split()), 300)}" if reasoning else ""


EvaluatorLike: TypeAlias = "Callable[..., Any] | str | Mapping[str, Json] | EvaluatorSpec"
"""An evaluator, or its name as in files: `"ExactMatch"`, `{"Contains": {"any": ["yes"]}}`, `"checks.py:mine"`."""


@dataclass(frozen=True, slots=True)
class NamedEvaluator:
    """One evaluator, ready to call, and its name in messages."""

    title: str
    call: Callable[..., Any]
    timeout: float
    """Seconds, not counting the time it waits for a free judge."""
    output: str | None = None
    """The named output that it scores."""

    async def evaluate(self, evaluable: Evaluable, watchdog: Watchdog | None = None) -> Evaluation | None:
        """Call the evaluator. Its own model calls are not traced."""
        if watchdog is None:
            with Watchdog() as own:
                return await self.evaluate(evaluable, own)
        selected, waits = self._selected(evaluable), WaitTimer()

        async def call() -> Evaluation | None:
            with suppress_tracing(), count_waits(waits):
                return await evaluate(self.call, selected)

        try:
            return await run_with_timeout(call(), self.timeout, watchdog, lambda: waits.seconds)
        except TimedOut:
            raise evaluator_timeout(self.timeout, waits) from None
        except Cancelled:
            raise InvalidScore("cancelled its own task") from None

    async def cell(self, evaluable: Evaluable, watchdog: Watchdog) -> Evaluation:
        """The evaluation, or the cell of a missing score; never raises, so that other evaluators go on."""
        try:
            evaluation = await self.evaluate(evaluable, watchdog)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return _missing_score_because(error)
        return missing_score(Outcome.SKIPPED, "nothing to compare") if evaluation is None else evaluation

    def _selected(self, evaluable: Evaluable) -> Evaluable:
        if self.output is None:
            return evaluable
        chosen = [item for item in evaluable.eval_output if item.name == self.output]
        if not chosen:
            names = ", ".join(item.name for item in evaluable.eval_output)
            raise InvalidScore(f"needs the output {self.output!r}; the application has {names}")
        return replace(evaluable, eval_output=tuple(chosen[-1:]))


def named_evaluators(evaluators: Sequence[EvaluatorLike]) -> list[NamedEvaluator]:
    """Resolve all evaluators before anything runs; raises `UsageError` for one that cannot be used."""
    if isinstance(evaluators, (str, Mapping, EvaluatorSpec)) or callable(evaluators):
        evaluators = [evaluators]
    return [named_evaluator(item) for item in evaluators]


def named_evaluator(evaluator: EvaluatorLike) -> NamedEvaluator:
    """Resolve one evaluator: look up a name, instantiate a class, or use any other callable."""
    if isinstance(evaluator, (str, Mapping, EvaluatorSpec)):
        [spec] = read_evaluators([evaluator])
        return _from_spec(spec)
    if not callable(evaluator):
        raise UsageError(f"{evaluator!r} is not an evaluator; pass a callable, or a name as in files")
    title = _title(evaluator)
    if isinstance(evaluator, type):
        evaluator = _instance(evaluator)
    return NamedEvaluator(title, evaluator, _timeout(evaluator))


def _timeout(evaluator: Any) -> float:
    """The timeout that the evaluator would have in a suite."""
    limits = limits_for(NO_OPTIONS, Suite("", ()))
    return limits.judged_timeout if getattr(evaluator, "needs_judge", False) else limits.evaluator_timeout


def _from_spec(spec: EvaluatorSpec) -> NamedEvaluator:
    unsupported = {
        "threshold": spec.threshold is not None,
        "report_only": spec.report_only,
        "scope": spec.scope is not None,
    }
    for name, is_set in unsupported.items():
        if is_set:
            raise UsageError(f"evaluator {spec.title!r}: {name!r} has no effect here; use pass_criteria")
    if spec.output_path is not None or spec.retries or spec.optional:
        raise UsageError(f"evaluator {spec.title!r}: output_path, retries and optional only work in suites")
    call = resolve_evaluator(spec).call
    return NamedEvaluator(spec.title, call, spec.timeout or _timeout(call), spec.output)


def _instance(kind: type[Any]) -> Callable[..., Any]:
    try:
        instance = kind()
    except TypeError as error:
        raise UsageError(f"the evaluator {kind.__name__} needs arguments: {error}") from None
    if not callable(instance):
        raise UsageError(f"{kind.__name__} is not an evaluator: it is not callable")
    return instance  # type: ignore[no-any-return]


def _title(evaluator: Any) -> str:
    name = getattr(evaluator, "name", None)
    return name if isinstance(name, str) and name and not hasattr(evaluator, "__name__") else title_of(evaluator)
