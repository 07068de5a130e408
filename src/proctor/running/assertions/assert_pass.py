"""Evaluation from Python: call an application with inputs, score it, and raise if the scores are too low.

The functions are coroutines; each has a version ending in `_sync` for code without an event loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from proctor.base.errors import AgentFailed, ProctorError, UsageError, one_line
from proctor.base.event_loops import sync_version
from proctor.base.json_data import UNSET
from proctor.base.open_checks import record_open_check
from proctor.cases.suite import Settings, Suite
from proctor.evaluators.calling import evaluate
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.results.run import ScoreThreshold
from proctor.running.agent_lifecycle import AgentNotStarted
from proctor.running.assertions.agent_runtime import AgentRuntime
from proctor.running.assertions.observed_call import (
    Application,
    ApplicationInput,
    FromTrace,
    NothingToEvaluate,
    evaluable_of,
    input_of,
)
from proctor.running.assertions.score_matrix import (
    EvalAssertionError,
    EvaluatorLike,
    Matrix,
    NamedEvaluator,
    PassCriteria,
    best_case,
    explain,
    judge_matrix,
    missing_answer,
    named_evaluator,
    named_evaluators,
    open_check,
)
from proctor.running.settings import RunOptions, TrialLimits, limits_for
from proctor.tracing.instrumentation import listen_to_opentelemetry

PARALLEL_VARIABLES = ("PROCTOR_PARALLEL", "PIXIE_RUNNABLE_CONCURRENCY")

DEFAULT_CRITERIA = ScoreThreshold()


async def run_and_evaluate(
    evaluator: EvaluatorLike,
    runnable: Callable[..., Any],
    eval_input: Any,
    *,
    expected_output: Any = UNSET,
    from_trace: FromTrace | None = None,
    timeout: float | None = None,
) -> Evaluation | None:
    """Call `runnable(eval_input)` and evaluate the result; `None` if there is nothing to compare.

    The evaluator gets the outputs that `runnable` names with `wrap()`, else the output of its outermost span;
    `from_trace` chooses another. Raises what `runnable` raises, `AgentFailed` if it takes longer than `timeout` seconds
    (300 by default, as in a suite), and `ValueError` if there is nothing to evaluate.
    """
    named = named_evaluator(evaluator)
    item = input_of(eval_input)
    item = replace(item, evaluable=replace(item.evaluable, expectation=expected_output))
    application = Application(runnable)
    limits = assertion_limits(timeout, parallel=1)
    listen_to_opentelemetry()
    async with AgentRuntime(application, limits.timeout) as runtime:
        await runtime.start()
        call = await application.observe(item, limits, runtime.watchdog)
    call.raise_problem()
    return await named.evaluate(evaluable_of(item.evaluable, call, from_trace))


async def assert_pass(
    runnable: Callable[..., Any],
    eval_inputs: Sequence[Any],
    evaluators: Sequence[EvaluatorLike],
    *,
    evaluables: Sequence[Evaluable] | None = None,
    pass_criteria: PassCriteria | None = None,
    from_trace: FromTrace | None = None,
    parallel: int | None = None,
    timeout: float | None = None,
) -> None:
    """Call `runnable` for each input, score each with every evaluator, and raise `EvalAssertionError` if the criteria
    (by default `ScoreThreshold()`) are not met.

    An evaluable that has an `eval_output` is scored without a call. `parallel` inputs run at the same time, each for at
    most `timeout` seconds. The defaults are those of a suite: 8 (or the variable PROCTOR_PARALLEL) and 300. A call that
    fails for a transient reason, such as a rate limit, is repeated as in a suite.
    """
    inputs = list(eval_inputs)
    initial = [None] * len(inputs) if evaluables is None else list(evaluables)
    if len(initial) != len(inputs):
        raise ValueError(f"evaluables length ({len(initial)}) must match eval_inputs length ({len(inputs)})")
    items = [input_of(value, item) for value, item in zip(inputs, initial, strict=True)]
    assertion = BatchAssertion(runnable, named_evaluators(evaluators), from_trace, assertion_limits(timeout, parallel))
    await assertion.check(items, pass_criteria or DEFAULT_CRITERIA)


evaluate_sync = sync_version(evaluate, __name__)
run_and_evaluate_sync = sync_version(run_and_evaluate, __name__)
assert_pass_sync = sync_version(assert_pass, __name__)


class BatchAssertion:
    """One application, called with many inputs in parallel, and the evaluators that score each call."""

    def __init__(
        self,
        runnable: Callable[..., Any],
        evaluators: Sequence[NamedEvaluator],
        from_trace: FromTrace | None,
        limits: TrialLimits,
    ) -> None:
        self._application = Application(runnable)
        self._evaluators = evaluators
        self._from_trace = from_trace
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.fixed_parallel)

    async def check(self, items: Sequence[ApplicationInput], criteria: PassCriteria) -> None:
        """Call and score everything, then decide; raises `EvalAssertionError`.

        If only pending scores are in the way, a running test of pytest goes on and is pending at its end.
        """
        matrix: Matrix = []
        problem = ""
        try:
            async with AgentRuntime(self._application, self._limits.timeout) as runtime:
                matrix += await asyncio.gather(*(self._row(item, runtime) for item in items))
        except AgentFailed as error:  # it did not stop properly; the scores are complete
            problem = str(error)
        passed, message = judge_matrix(matrix, criteria)
        if passed and not problem:
            return
        titles = [named.title for named in self._evaluators]
        lines = [explain(message, matrix, [item.evaluable for item in items], titles, criteria), problem]
        text = "\n".join(filter(None, lines))
        check = open_check(matrix, titles, text)
        could_pass = check is not None and not problem and judge_matrix(best_case(matrix), criteria)[0]
        if check is None or not could_pass or not record_open_check(check):
            raise EvalAssertionError(text, matrix)

    async def _row(self, item: ApplicationInput, runtime: AgentRuntime) -> list[Evaluation]:
        async with self._slots:
            observed = item.evaluable if item.evaluable.eval_output else await self._observe(item, runtime)
            if isinstance(observed, str):
                return [missing_answer(observed) for _ in self._evaluators]
            return list(await asyncio.gather(*(named.cell(observed, runtime.watchdog) for named in self._evaluators)))

    async def _observe(self, item: ApplicationInput, runtime: AgentRuntime) -> Evaluable | str:
        """The call as the input of evaluators, or why there is nothing to evaluate."""
        listen_to_opentelemetry()
        try:
            await runtime.start()
        except AgentNotStarted as error:
            return str(error)
        call = await self._application.observe(item, self._limits, runtime.watchdog)
        if call.problem:
            return call.problem
        try:
            return evaluable_of(item.evaluable, call, self._from_trace)
        except (NothingToEvaluate, ProctorError) as error:
            return str(error)
        except Exception as error:
            return f"from_trace raised {one_line(error)}"


def assertion_limits(timeout: float | None, parallel: int | None) -> TrialLimits:
    """The limits of a suite without settings, with those of the call, else of the environment."""
    if parallel is None:
        parallel = _parallel_of_environment()
    elif isinstance(parallel, bool) or not isinstance(parallel, int) or parallel < 1:
        raise UsageError(f"parallel must be a whole number of at least 1, not {parallel!r}")
    return limits_for(RunOptions(overrides=Settings(parallel=parallel, timeout=timeout)), Suite("assert_pass", ()))


def _parallel_of_environment() -> int | None:
    for name in PARALLEL_VARIABLES:
        text = os.environ.get(name)
        if text:
            if not text.strip().isdecimal() or int(text) < 1:
                raise UsageError(f"{name} must be a whole number of at least 1, not {text!r}")
            return int(text)
    return None
