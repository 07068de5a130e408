"""Metrics of what agents do: the tools they call, with what arguments, and whether the task gets done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from proctor.compat.deepeval.base import SingleTurnMetric, judge_named
from proctor.compat.deepeval.test_case import ToolCallParams
from proctor.evaluators.agent.steps import ArgumentCorrectness, ToolSelection
from proctor.evaluators.agent.tasks import TaskCompletion
from proctor.evaluators.model import Evaluable, Evaluation
from proctor.evaluators.tools.consistency import ToolConsistency
from proctor.evaluators.tools.correctness import ToolCorrectness


class ToolCorrectnessMetric(SingleTurnMetric):
    """The share of the expected tools that were called. With `available_tools`, also whether the choice was right.

    Two calls that are alike count as two. Only `available_tools` asks a judge, which `model` then names.
    """

    needs = ("input", "tools_called", "expected_tools")

    def __init__(
        self,
        threshold: float | None = 0.5,
        evaluation_params: Iterable[ToolCallParams] = (),
        should_exact_match: bool = False,
        should_consider_ordering: bool = False,
        available_tools: Sequence[Any] | None = None,
        model: Any = None,
        **options: Any,
    ) -> None:
        compared = {ToolCallParams(part) for part in evaluation_params}
        calling = ToolCorrectness(
            ordered=should_consider_ordering,
            exact=should_exact_match,
            compare_arguments=ToolCallParams.INPUT_PARAMETERS in compared,
            compare_results=ToolCallParams.OUTPUT in compared,
        )
        evaluator = calling if available_tools is None else _Both(calling, available_tools, judge_named(model))
        super().__init__(evaluator, threshold=threshold, **options)


class _Both:
    """The lower of two scores: of the calls, and of the choice among the tools there are."""

    name = "Tool Correctness"

    def __init__(self, calling: ToolCorrectness, available: Sequence[Any], model: Any) -> None:
        offered = tuple(_offer(tool) for tool in available)
        self._calling = calling
        self._selection = ToolSelection(available_tools=offered, model=model)

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        calling, selection = self._calling(evaluable), await self._selection(evaluable)
        if selection is None:
            return calling
        lower = min(calling, selection, key=lambda evaluation: evaluation.score)
        said = "; ".join(filter(None, (calling.reasoning, selection.reasoning)))
        return Evaluation(lower.score, said, {**calling.details, **selection.details})


def _offer(tool: Any) -> Any:
    if isinstance(tool, str):
        return tool
    known = {name: getattr(tool, name, None) for name in ("name", "description")}
    return {name: value for name, value in known.items() if value is not None}


class ArgumentCorrectnessMetric(SingleTurnMetric):
    """The share of tool calls whose arguments are what the question calls for."""

    needs = ("input", "tools_called")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(ArgumentCorrectness(model=judge_named(model)), threshold=threshold, **options)


class TaskCompletionMetric(SingleTurnMetric):
    """How much of its task the agent completed, by what it did."""

    def __init__(
        self, threshold: float | None = 0.5, task: str | None = None, model: Any = None, **options: Any
    ) -> None:
        super().__init__(TaskCompletion(task=task, model=judge_named(model)), threshold=threshold, **options)


class ToolConsistencyMetric(SingleTurnMetric):
    """The share of tool calls that, made again, give what the agent was given."""

    needs = ("tools_called",)

    def __init__(self, threshold: float | None = 1.0, tools: Any = None, **options: Any) -> None:
        super().__init__(ToolConsistency(tools=tools), threshold=threshold, **options)
