"""Runs a grader function written for HoloDeck's context object, sync or async, as an evaluator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from proctor.agents.agent import ToolCall
from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json, plain, show
from proctor.base.records import record
from proctor.base.references import resolve, source_fingerprint
from proctor.base.threads import call_in_thread, is_async
from proctor.evaluators.evaluation import BadVerdict, Evaluable, Evaluation, read_verdict


@record
class ToolInvocation:
    """A tool call as a grader sees it: a copy, so that a grader may do with it what it likes."""

    name: str
    args: dict[str, Json] = field(default_factory=dict)
    result: Json = None
    bytes: int = 0
    """The size of the result as text."""
    duration_ms: float | None = None
    error: str | None = None


@record
class GraderContext:
    """Everything a grader is told about one turn."""

    turn_input: str
    agent_response: str
    ground_truth: str | None = None
    tool_invocations: tuple[ToolInvocation, ...] = ()
    retrieval_context: tuple[str, ...] | None = None
    turn_index: int = 0
    test_case_name: str | None = None
    turn_config: dict[str, Json] | None = None


@record
class GraderResult:
    """What a grader may return when a bare score does not say enough."""

    score: float
    passed: bool | None = None
    """Decides the outcome whatever the score and the threshold; `None` leaves it to them."""
    reason: str | None = None
    details: Mapping[str, Any] | None = None


@record
class CodeGrader:
    """Whatever the named function, given a `GraderContext`, makes of the answer."""

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

    @property
    def version(self) -> str:
        """Changes with the code of the grader."""
        return source_fingerprint(self.function)

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        context = grader_context(evaluable)
        if is_async(self.function):
            result = await self.function(context)
        else:
            result = await call_in_thread(self.function, context)
            if inspect.isawaitable(result):
                result = await result
        return read_result(result)


def grader_context(evaluable: Evaluable) -> GraderContext:
    """What a grader is told, taken from what an evaluator sees."""
    truth = evaluable.expectation
    return GraderContext(
        turn_input=_text(evaluable.input),
        agent_response=_text(evaluable.output),
        ground_truth=None if truth is UNSET or truth is None else _text(truth),
        tool_invocations=tuple(invocation(call) for call in evaluable.tool_calls),
        retrieval_context=evaluable.retrieval_context,
        turn_index=max(0, len(evaluable.turns) - 1),
        test_case_name=evaluable.description or None,
        turn_config=plain(evaluable.turn_metadata) or None,
    )


def invocation(call: ToolCall) -> ToolInvocation:
    """A call as a grader sees it."""
    size = 0 if call.result is None else len(_text(call.result).encode("utf-8", "surrogatepass"))
    return ToolInvocation(call.name, plain(call.arguments), plain(call.result), size, call.duration_ms, call.error)


def _text(value: Json) -> str:
    return "" if value is None else show(value)


def read_result(result: Any) -> Evaluation:
    """The Evaluation a grader means; unlike other evaluators a grader has to say something."""
    if result is None:
        raise BadVerdict("returned nothing; a grader returns True, False, a number or a GraderResult")
    if not hasattr(result, "score"):
        return _scored(result)
    reason = getattr(result, "reason", None) or getattr(result, "reasoning", None) or ""
    details = _details(getattr(result, "details", None))
    evaluation = _scored(Evaluation(result.score, str(reason), details))
    passed = getattr(result, "passed", None)
    if passed is None:
        return evaluation
    # The threshold is not known here: only the ends of the scale are on the right side of every one.
    decided = {**evaluation.details, "passed": bool(passed), "grader_score": evaluation.score}
    return Evaluation(1.0 if passed else 0.0, evaluation.reasoning, decided)


def _scored(verdict: Any) -> Evaluation:
    evaluation = read_verdict(verdict)
    if evaluation is None:
        raise BadVerdict("returned nothing")
    return evaluation


def _details(details: Any) -> dict[str, Any]:
    if details is None:
        return {}
    return plain(details) if isinstance(details, Mapping) else {"details": plain(details)}
