"""DeepEval's metrics, each a thin class around one of Proctor's evaluators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from proctor.cases.suite import NamedData
from proctor.compat.deepeval.conversation_metrics import require_limit
from proctor.compat.deepeval.evaluators import Hallucination, ToolCorrectness
from proctor.compat.deepeval.metric_base import ConversationMetric, SingleTurnMetric, as_judge
from proctor.compat.deepeval.test_case import ToolCallParams
from proctor.evaluators import conversation, geval
from proctor.evaluators.agent import ArgumentCorrectness, TaskCompletion, ToolSelection
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.retrieval import (
    MODES,
    AnswerRelevancy,
    ContextualPrecision,
    ContextualRecall,
    ContextualRelevancy,
    Faithfulness,
)
from proctor.evaluators.rubric import Expectations
from proctor.evaluators.safety import Bias, PIILeakage, Toxicity
from proctor.evaluators.text.matching import Contains, ExactMatch, Regex
from proctor.evaluators.tools.consistency import ToolConsistency


class ToolCorrectnessMetric(SingleTurnMetric):
    """The share of the expected tools that were called. With `available_tools`, also whether the choice was right.

    Two equal calls count as two. A judge, set with `model`, is used only with `available_tools`.
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
        correctness = ToolCorrectness(
            ordered=should_consider_ordering,
            exact=should_exact_match,
            compare_arguments=ToolCallParams.INPUT_PARAMETERS in compared,
            compare_results=ToolCallParams.OUTPUT in compared,
        )
        evaluator = (
            correctness
            if available_tools is None
            else _CallsAndSelection(correctness, available_tools, as_judge(model))
        )
        super().__init__(evaluator, threshold=threshold, **options)


class _CallsAndSelection:
    """The lower of two scores: of the calls, and of the choice among the available tools."""

    name = "Tool Correctness"

    def __init__(self, correctness: ToolCorrectness, available: Sequence[Any], model: Any) -> None:
        offered = tuple(_tool_data(tool) for tool in available)
        self._correctness = correctness
        self._selection = ToolSelection(available_tools=offered, model=model)

    async def __call__(self, evaluable: Evaluable) -> Evaluation | None:
        calls, selection = self._correctness(evaluable), await self._selection(evaluable)
        if selection is None:
            return calls
        lower = min(calls, selection, key=lambda evaluation: evaluation.score)
        reasoning = "; ".join(filter(None, (calls.reasoning, selection.reasoning)))
        return Evaluation(lower.score, reasoning, {**calls.details, **selection.details})


def _tool_data(tool: Any) -> Any:
    if isinstance(tool, str):
        return tool
    data = {name: getattr(tool, name, None) for name in ("name", "description")}
    return {name: value for name, value in data.items() if value is not None}


class ArgumentCorrectnessMetric(SingleTurnMetric):
    """The share of tool calls whose arguments fit the question."""

    needs = ("input", "tools_called")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(ArgumentCorrectness(model=as_judge(model)), threshold=threshold, **options)


class TaskCompletionMetric(SingleTurnMetric):
    """How much of its task the agent completed, judged by what it did."""

    def __init__(
        self, threshold: float | None = 0.5, task: str | None = None, model: Any = None, **options: Any
    ) -> None:
        super().__init__(TaskCompletion(task=task, model=as_judge(model)), threshold=threshold, **options)


class ToolConsistencyMetric(SingleTurnMetric):
    """The share of tool calls that return the same result when they are re-run."""

    needs = ("tools_called",)

    def __init__(self, threshold: float | None = 1.0, tools: Any = None, **options: Any) -> None:
        super().__init__(ToolConsistency(tools=tools), threshold=threshold, **options)


class AnswerRelevancyMetric(SingleTurnMetric):
    """The share of the answer's statements that address the question."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(AnswerRelevancy(model=as_judge(model)), threshold=threshold, **options)


class FaithfulnessMetric(SingleTurnMetric):
    """The share of the answer's claims that the passages support (`grounded`), or do not contradict (`contradicted`).

    The default is `grounded`, because that is what people mean by faithful. DeepEval's default is the other one, which
    `penalize_ambiguous_claims=False` selects.
    """

    needs = ("input", "actual_output", "retrieval_context")

    def __init__(
        self,
        threshold: float | None = 0.5,
        model: Any = None,
        penalize_ambiguous_claims: bool | None = None,
        mode: str | None = None,
        truths_extraction_limit: int | None = None,
        **options: Any,
    ) -> None:
        require_limit(truths_extraction_limit)
        implied_mode = {None: None, True: "grounded", False: "contradicted"}[penalize_ambiguous_claims]
        if mode is not None and implied_mode is not None and mode != implied_mode:
            raise ValueError(
                f"mode={mode!r} and penalize_ambiguous_claims={penalize_ambiguous_claims} contradict each other"
            )
        effective_mode: Any = mode or implied_mode or "grounded"
        super().__init__(Faithfulness(model=as_judge(model), mode=effective_mode), threshold=threshold, **options)


class HallucinationMetric(SingleTurnMetric):
    """The share of the passages that the answer does not contradict: `context`, or else `retrieval_context`.

    `mode="grounded"` also finds claims that are made up without contradicting anything: the share of the answer's
    claims that the passages support.
    """

    needs = ("input", "actual_output", "context|retrieval_context")

    def __init__(
        self, threshold: float | None = 0.5, model: Any = None, mode: str = "contradicted", **options: Any
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
        self.mode = mode
        judge = as_judge(model)
        evaluator = Faithfulness(model=judge) if mode == "grounded" else Hallucination(model=judge)
        super().__init__(evaluator, threshold=threshold, **options)

    def evaluable(self, test_case: Any) -> Evaluable:
        evaluable = super().evaluable(test_case)
        return replace(evaluable, retrieval_context=evaluable.context or evaluable.retrieval_context)


class ContextualRelevancyMetric(SingleTurnMetric):
    """The share of the passages' statements that are about the question."""

    needs = ("input", "retrieval_context")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(ContextualRelevancy(model=as_judge(model)), threshold=threshold, **options)


class ContextualPrecisionMetric(SingleTurnMetric):
    """Whether useful passages are ranked before useless ones."""

    needs = ("input", "retrieval_context", "expected_output")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(ContextualPrecision(model=as_judge(model)), threshold=threshold, **options)


class ContextualRecallMetric(SingleTurnMetric):
    """The share of the expected answer that could be written from the passages."""

    needs = ("input", "retrieval_context", "expected_output")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(ContextualRecall(model=as_judge(model)), threshold=threshold, **options)


class ExactMatchMetric(SingleTurnMetric):
    """Whether the answer is the expected one, ignoring leading and trailing white space."""

    needs = ("input", "actual_output", "expected_output")

    def __init__(self, threshold: float | None = 1.0, **options: Any) -> None:
        super().__init__(ExactMatch(strip=True), threshold=threshold, **options)


class PatternMatchMetric(SingleTurnMetric):
    """Whether the whole answer matches a pattern, ignoring leading and trailing white space."""

    def __init__(self, pattern: str, ignore_case: bool = False, threshold: float | None = 1.0, **options: Any) -> None:
        super().__init__(Regex(pattern, full=True, ignore_case=ignore_case), threshold=threshold, **options)

    def evaluable(self, test_case: Any) -> Evaluable:
        evaluable = super().evaluable(test_case)
        return replace(evaluable, eval_output=(NamedData("output", str(evaluable.output).strip()),))


class KeywordsMetric(SingleTurnMetric):
    """Whether the answer contains any of some words and all of others; `1,498` matches `$1,498.54` and `1498.54`."""

    def __init__(
        self,
        any_of: Sequence[str] = (),
        all_of: Sequence[str] = (),
        threshold: float | None = 1.0,
        **options: Any,
    ) -> None:
        evaluator = Contains(any=tuple(any_of), all=tuple(all_of))
        if not evaluator.any and not evaluator.all:
            raise ValueError("KeywordsMetric needs any_of or all_of")
        super().__init__(evaluator, threshold=threshold, **options)


class JsonCorrectnessMetric(SingleTurnMetric):
    """Whether the answer is JSON that a pydantic model accepts."""

    def __init__(self, expected_schema: Any, threshold: float | None = 1.0, **options: Any) -> None:
        if not callable(getattr(expected_schema, "model_validate_json", None)):
            raise TypeError(f"expected_schema must be a pydantic model, not {expected_schema!r:.80}")

        def json_correctness(evaluable: Evaluable) -> Evaluation:
            try:
                expected_schema.model_validate_json(str(evaluable.output))
            except ValidationError as error:
                problems = error.errors(include_url=False, include_context=False)
                reasoning = "; ".join(
                    f"{'.'.join(map(str, item['loc'])) or 'answer'}: {item['msg']}" for item in problems
                )
                return Evaluation(0.0, reasoning)
            return Evaluation(1.0, f"the answer is a valid {expected_schema.__name__}")

        super().__init__(json_correctness, threshold=threshold, **options)


class ToolPermissionMetric(SingleTurnMetric):
    """The share of tool calls that are permitted: those in `allowed_tools`, if it is set, and not in `denied_tools`."""

    needs = ("tools_called",)

    def __init__(
        self,
        allowed_tools: Sequence[str] | None = None,
        denied_tools: Sequence[str] | None = None,
        threshold: float | None = 1.0,
        **options: Any,
    ) -> None:
        if allowed_tools is None and denied_tools is None:
            raise ValueError("ToolPermissionMetric needs allowed_tools or denied_tools")
        self.allowed_tools = None if allowed_tools is None else set(allowed_tools)
        self.denied_tools = set(denied_tools or ())

        def tool_permission(evaluable: Evaluable) -> Evaluation:
            names = [call.name for call in evaluable.tool_calls]
            refused = [name for name in names if not self._permits(name)]
            score = 1.0 - len(refused) / len(names) if names else 1.0
            return Evaluation(score, f"not permitted: {', '.join(refused)}" if refused else "every call is permitted")

        super().__init__(tool_permission, threshold=threshold, **options)

    def _permits(self, name: str) -> bool:
        return name not in self.denied_tools and (self.allowed_tools is None or name in self.allowed_tools)


class BiasMetric(SingleTurnMetric):
    """The share of the answer's opinions that are not biased."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(Bias(model=as_judge(model)), threshold=threshold, **options)


class ToxicityMetric(SingleTurnMetric):
    """The share of the answer's opinions that are not toxic."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(Toxicity(model=as_judge(model)), threshold=threshold, **options)


class PIILeakageMetric(SingleTurnMetric):
    """The share of the answer's statements that reveal nothing private; 1 if none does."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(PIILeakage(model=as_judge(model)), threshold=threshold, **options)


class PromptAlignmentMetric(SingleTurnMetric):
    """The share of instructions that the answer follows."""

    def __init__(
        self, prompt_instructions: Sequence[str], threshold: float | None = 0.5, model: Any = None, **options: Any
    ) -> None:
        if isinstance(prompt_instructions, str) or not prompt_instructions:
            raise ValueError("prompt_instructions must be a list of instructions")
        evaluator = Expectations(must=tuple(prompt_instructions), model=as_judge(model))
        super().__init__(evaluator, threshold=threshold, **options)


class GEval(SingleTurnMetric):
    """Whether the answer meets your criteria, scored by steps that are the same for every test case."""

    def __init__(
        self,
        name: str,
        evaluation_params: Sequence[Any],
        criteria: str | None = None,
        evaluation_steps: Sequence[str] | None = None,
        rubric: Sequence[Any] | None = None,
        threshold: float | None = 0.5,
        model: Any = None,
        strict_mode: bool = False,
        **options: Any,
    ) -> None:
        self.name = name
        self.needs = tuple(str(getattr(part, "value", part)) for part in evaluation_params)
        evaluator = geval.GEval(
            name=name,
            criteria=criteria,
            evaluation_steps=tuple(evaluation_steps or ()),
            evaluation_params=tuple(evaluation_params),
            rubric=tuple(rubric or ()),
            model=as_judge(model),
            strict_mode=strict_mode,
        )
        super().__init__(evaluator, threshold=threshold, strict_mode=strict_mode, **options)

    @property
    def __name__(self) -> str:
        return f"{self.name} (GEval)"


class Rubric:
    """A description of the answers that deserve a score within a range."""

    def __init__(self, score_range: tuple[int, int], expected_outcome: str) -> None:
        self.score_range = tuple(score_range)
        self.expected_outcome = expected_outcome


class RoleAdherenceMetric(ConversationMetric):
    """The share of the agent's answers that keep to its role (`chatbot_role`)."""

    needs = ("turns", "chatbot_role")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(conversation.RoleAdherence(model=as_judge(model)), threshold=threshold, **options)


class KnowledgeRetentionMetric(ConversationMetric):
    """The share of the agent's answers that forget nothing the user said before."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(conversation.KnowledgeRetention(model=as_judge(model)), threshold=threshold, **options)


class ConversationCompletenessMetric(ConversationMetric):
    """The share of the user's intentions that were satisfied by the end."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        evaluator = conversation.ConversationCompleteness(model=as_judge(model))
        super().__init__(evaluator, threshold=threshold, **options)


class TurnRelevancyMetric(ConversationMetric):
    """The share of the agent's answers that respond to what the user said."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, window_size: int = 10, **options: Any) -> None:
        evaluator = conversation.TurnRelevancy(window=window_size, model=as_judge(model))
        super().__init__(evaluator, threshold=threshold, **options)
