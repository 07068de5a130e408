"""HoloDeck's code graders: users' functions that are called with a `GraderContext`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.agents.reply import ToolCall
from proctor.agents.user_code import call_user_function
from proctor.base.errors import UsageError, one_line
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import UNSET, Json, to_json, to_text
from proctor.base.references import resolve
from proctor.cases.threshold import DEFAULT_THRESHOLD, passes, threshold_in_force
from proctor.compat.holodeck.test_results import MetricResult, ToolInvocation
from proctor.evaluators.declaration import ScoreSettings, evaluator
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, InvalidScore, to_evaluation


@dataclass(frozen=True, slots=True)
class GraderContext:
    """Everything that a grader sees of one turn."""

    turn_input: str
    agent_response: str
    ground_truth: str | None = None
    tool_invocations: tuple[ToolInvocation, ...] = ()
    retrieval_context: tuple[str, ...] | None = None
    turn_index: int = 0
    test_case_name: str | None = None
    turn_config: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class GraderResult:
    """A grader's result, if a score alone is not enough."""

    score: float
    passed: bool | None = None
    """Overrides the score and the threshold; None leaves the decision to them."""
    reason: str | None = None
    details: Mapping[str, Any] | None = None


@evaluator(family="code", example={"grader": "checks.py:grade"})
@dataclass(frozen=True, slots=True)
class CodeGrader(ScoreSettings):
    """The score that a function of yours returns for a `GraderContext`.

    The function is called with HoloDeck's `GraderContext` (`turn_input`, `agent_response`, `ground_truth`,
    `tool_invocations`, `retrieval_context`, `turn_index`, `test_case_name`, `turn_config`). It returns true, false, a
    number, or an object with `score` and optionally `passed` (which then decides), `reason` and `details`. Sync or
    async. Returning nothing is an `error`.
    """

    grader: str
    """`module.path:function` or `file.py:function`."""
    base: Path | None = None
    function: Callable[[GraderContext], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.grader, str):
            raise UsageError(f"grader must be a reference such as graders:check, not {self.grader!r}")
        function = resolve(self.grader, self.base)
        if not callable(function):
            raise UsageError(f"{self.grader!r} is a {type(function).__name__}, which cannot be called")
        object.__setattr__(self, "function", function)

    @staticmethod
    def reference_in(arguments: Mapping[str, Any]) -> str:
        """The reference to the function that these arguments name; validation uses it without loading code."""
        return str(arguments.get("grader", ""))

    @property
    def version(self) -> str:
        """Changes with the grader's code."""
        return source_fingerprint(self.function)

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        return read_result(await call_user_function(self.function, grader_context(evaluable)))


def grader_context(evaluable: Evaluable) -> GraderContext:
    """The grader's view of what an evaluator sees."""
    truth = evaluable.expectation
    return GraderContext(
        turn_input=_text(evaluable.input),
        agent_response=_text(evaluable.output),
        ground_truth=None if truth is UNSET or truth is None else _text(truth),
        tool_invocations=tuple(invocation(call) for call in evaluable.tool_calls),
        retrieval_context=evaluable.retrieval_context,
        turn_index=max(0, len(evaluable.turns) - 1),
        test_case_name=evaluable.description or None,
        turn_config=to_json(evaluable.turn_metadata) or None,
    )


def build_grader_context(
    *,
    turn_input: str,
    agent_response: str,
    ground_truth: str | None = None,
    tool_invocations: Iterable[ToolInvocation] = (),
    retrieval_context: Iterable[str] | None = None,
    turn_index: int = 0,
    test_case_name: str | None = None,
    turn_config: dict[str, Json] | None = None,
) -> GraderContext:
    """A context for calling a grader directly."""
    return GraderContext(
        turn_input,
        agent_response,
        ground_truth,
        tuple(tool_invocations),
        None if retrieval_context is None else tuple(retrieval_context),
        turn_index,
        test_case_name,
        turn_config or {},
    )


def invoke_grader(
    fn: Callable[[GraderContext], Any], ctx: GraderContext, *, metric_name: str, threshold: float | None = None
) -> tuple[MetricResult, dict[str, Any] | None, Exception | None]:
    """The result of a grader, its details, and the exception if it raised one; outside of a run, which never needs it.

    Whatever goes wrong is the `error` of the result, with a score of 0, as in HoloDeck.
    """
    started, raised, error = time.perf_counter(), None, None
    evaluation = Evaluation(0.0, passed=False)
    try:
        evaluation = _with_passed(read_result(_with_plain_details(fn(ctx))), threshold)
    except InvalidScore as problem:
        error = f"the grader's result is unsupported: it {problem}"
    except Exception as problem:
        raised, error = problem, one_line(problem)
    result = MetricResult(
        metric_name=metric_name,
        kind="code",
        score=evaluation.score,
        threshold=threshold,
        passed=evaluation.passed,
        error=error,
        evaluation_time_ms=round((time.perf_counter() - started) * 1000),
        reasoning=evaluation.reasoning or None,
    )
    return result, dict(evaluation.details) or None, raised


def _with_passed(evaluation: Evaluation, threshold: float | None) -> Evaluation:
    passed = passes(evaluation.score, threshold_in_force(DEFAULT_THRESHOLD, caller=threshold), evaluation.passed)
    return replace(evaluation, passed=passed)


def _with_plain_details(result: Any) -> Any:
    """A grader's result, whose details must be JSON."""
    try:
        json.dumps(getattr(result, "details", None))
    except (TypeError, ValueError) as error:
        raise InvalidScore(f"has details that are not JSON-serializable: {error}") from None
    return result


def invocation(call: ToolCall) -> ToolInvocation:
    """A call as a grader sees it."""
    size = 0 if call.result is None else len(_text(call.result).encode("utf-8", "surrogatepass"))
    return ToolInvocation.model_construct(
        name=call.name,
        args=to_json(call.arguments),
        result=to_json(call.result),
        bytes=size,
        duration_ms=call.duration_ms,
        error=call.error,
    )


def _text(value: Json) -> str:
    return "" if value is None else to_text(value)


def read_result(result: Any) -> Evaluation:
    """The evaluation that a grader returned; unlike other evaluators, a grader must return a result."""
    if result is None:
        raise InvalidScore("returned nothing; a grader returns True, False, a number or a GraderResult")
    if not hasattr(result, "score"):
        return _require_evaluation(result)
    reason = getattr(result, "reason", None) or getattr(result, "reasoning", None) or ""
    details = _details(getattr(result, "details", None))
    evaluation = _require_evaluation(Evaluation(result.score, str(reason), details))
    passed = getattr(result, "passed", None)
    return evaluation if passed is None else replace(evaluation, passed=bool(passed))


def _require_evaluation(verdict: Any) -> Evaluation:
    evaluation = to_evaluation(verdict)
    if evaluation is None:
        raise InvalidScore("returned nothing")
    return evaluation


def _details(details: Any) -> dict[str, Any]:
    if details is None:
        return {}
    return to_json(details) if isinstance(details, Mapping) else {"details": to_json(details)}
