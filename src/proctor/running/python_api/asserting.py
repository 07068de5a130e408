"""Evaluation from Python: run an application on inputs, score what was seen, and raise if that is not good enough.

The verbs are coroutines; each has a twin ending in `_sync` for code that has no event loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.base.errors import ProctorError, UsageError
from proctor.base.event_loops import without_loop
from proctor.base.json_data import UNSET
from proctor.base.references import describe
from proctor.evaluators.datasets import DatasetStore
from proctor.evaluators.evaluation import Evaluable, Evaluation, evaluate
from proctor.results.run import ScoreThreshold
from proctor.running.python_api.run_application import (
    Application,
    FromTrace,
    NothingSeen,
    Question,
    evaluable_of,
    question_of,
    question_of_entry,
)
from proctor.running.python_api.scorers import (
    ABSTAINED,
    EvalAssertionError,
    EvaluatorLike,
    PassCriteria,
    Scorer,
    at_best,
    explain,
    inconclusive,
    judge_matrix,
    scorer_of,
    scorers_of,
    unanswered,
)

PARALLEL = 4
PARALLEL_VARIABLES = ("PROCTOR_PARALLEL", "PIXIE_RUNNABLE_CONCURRENCY")

DEFAULT_CRITERIA = ScoreThreshold()


async def run_and_evaluate(
    evaluator: EvaluatorLike,
    runnable: Callable[..., Any],
    eval_input: Any,
    *,
    expected_output: Any = UNSET,
    from_trace: FromTrace | None = None,
) -> Evaluation | None:
    """Call `runnable(eval_input)` once, and evaluate what was seen of it; `None` if there was nothing to compare.

    Evaluated are the outputs it named with `wrap()`, else what came out of its outermost span; `from_trace` chooses
    another. Raises `ValueError` if nothing was to be seen.
    """
    scorer = scorer_of(evaluator)
    question = question_of(eval_input)
    question = replace(question, known=replace(question.known, expectation=expected_output))
    application = Application(runnable)
    await application.start()
    try:
        sighting = await application.watch(question)
    finally:
        await application.stop()
    return await scorer.evaluate(evaluable_of(question.known, sighting, from_trace))


async def assert_pass(
    runnable: Callable[..., Any],
    eval_inputs: Sequence[Any],
    evaluators: Sequence[EvaluatorLike],
    *,
    evaluables: Sequence[Evaluable] | None = None,
    pass_criteria: PassCriteria | None = None,
    from_trace: FromTrace | None = None,
    parallel: int | None = None,
) -> None:
    """Call `runnable` once for each input, score each with every evaluator, and raise `EvalAssertionError` if the
    criteria (by default `ScoreThreshold()`) are not met.

    An evaluable that has an `eval_output` is scored as it is, without a call. `parallel` inputs are run at once.
    """
    inputs = list(eval_inputs)
    known = [None] * len(inputs) if evaluables is None else list(evaluables)
    if len(known) != len(inputs):
        raise ValueError(f"evaluables length ({len(known)}) must match eval_inputs length ({len(inputs)})")
    questions = [question_of(value, item) for value, item in zip(inputs, known, strict=True)]
    examination = Examination(runnable, scorers_of(evaluators), from_trace, _limit(parallel))
    await examination.hold(questions, pass_criteria or DEFAULT_CRITERIA)


async def assert_dataset_pass(
    runnable: Callable[..., Any],
    dataset_name: str,
    evaluators: Sequence[EvaluatorLike],
    *,
    dataset_dir: str | Path | None = None,
    pass_criteria: PassCriteria | None = None,
    from_trace: FromTrace | None = None,
    parallel: int | None = None,
) -> None:
    """`assert_pass` for every entry of a dataset; `FileNotFoundError` if there is none of that name.

    `runnable` is given an entry's arguments by name if it takes them, as `proctor test` does; else its `eval_input`.
    """
    dataset = DatasetStore(dataset_dir).get(dataset_name)
    entries = zip(dataset.cases, dataset.items, strict=True)
    questions = [question_of_entry(runnable, case, item) for case, item in entries]
    examination = Examination(runnable, scorers_of(evaluators), from_trace, _limit(parallel))
    await examination.hold(questions, pass_criteria or DEFAULT_CRITERIA)


evaluate_sync = without_loop(evaluate, __name__)
run_and_evaluate_sync = without_loop(run_and_evaluate, __name__)
assert_pass_sync = without_loop(assert_pass, __name__)
assert_dataset_pass_sync = without_loop(assert_dataset_pass, __name__)


class Examination:
    """One application, asked many questions, a few at a time."""

    def __init__(
        self, runnable: Callable[..., Any], scorers: Sequence[Scorer], from_trace: FromTrace | None, parallel: int
    ) -> None:
        self._application = Application(runnable)
        self._scorers = scorers
        self._from_trace = from_trace
        self._gate = asyncio.Semaphore(parallel)
        self._trouble = ""
        """Why the application cannot be asked at all."""

    async def hold(self, questions: Sequence[Question], criteria: PassCriteria) -> None:
        """Ask everything and score everything before anything is judged."""
        if any(not question.known.eval_output for question in questions):
            self._trouble = await _trouble(self._application.start())
        rows = asyncio.gather(*(self._row(question) for question in questions))
        try:
            matrix = list(await rows)
        finally:
            afterwards = await _trouble(self._application.stop())
        passed, message = judge_matrix(matrix, criteria)
        if passed and not afterwards:
            return
        titles = [scorer.title for scorer in self._scorers]
        lines = [explain(message, matrix, [question.known for question in questions], titles, criteria), afterwards]
        text = "\n".join(filter(None, lines))
        abstained = any(ABSTAINED in cell.details for row in matrix for cell in row)
        if abstained and not afterwards and judge_matrix(at_best(matrix), criteria)[0]:
            inconclusive(text)
            return
        raise EvalAssertionError(text, matrix)

    async def _row(self, question: Question) -> list[Evaluation]:
        async with self._gate:
            seen = question.known if question.known.eval_output else await self._seen(question)
            if isinstance(seen, str):
                return [unanswered(seen) for _ in self._scorers]
            return list(await asyncio.gather(*(scorer.cell(seen) for scorer in self._scorers)))

    async def _seen(self, question: Question) -> Evaluable | str:
        """What is to be evaluated, or why there is nothing."""
        if self._trouble:
            return self._trouble
        try:
            sighting = await self._application.watch(question)
        except Exception as error:
            return _said("the runnable", error)
        try:
            return evaluable_of(question.known, sighting, self._from_trace)
        except NothingSeen as error:
            return str(error)
        except Exception as error:
            return _said("from_trace", error)


async def _trouble(step: Coroutine[Any, Any, None]) -> str:
    try:
        await step
    except Exception as error:
        return _said("the runnable", error)
    return ""


def _said(who: str, error: Exception) -> str:
    if isinstance(error, ProctorError):
        return f"{who} {error}" if str(error).startswith(("raised ", "cancelled ")) else str(error)
    return f"{who} raised {describe(error)}"


def _limit(parallel: int | None) -> int:
    """How many inputs are run at once: as said in the call, else in the environment, else a few."""
    origin, said = "parallel", str(PARALLEL) if parallel is None else str(parallel)
    if parallel is None:
        origin, said = next(
            ((name, value) for name in PARALLEL_VARIABLES if (value := os.environ.get(name))), (origin, said)
        )
    if not said.strip().isdecimal() or int(said) < 1:
        raise UsageError(f"{origin} must be a whole number and at least 1, not {said!r}")
    return int(said)
