"""DeepEval's metrics, each a thin class on one of Proctor's evaluators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from proctor.cases.suite import NamedData
from proctor.compat.deepeval.conversation_metrics import require_limit
from proctor.compat.deepeval.evaluators import Hallucination, ToolCorrectness
from proctor.compat.deepeval.metric_base import ConversationMetric, SingleTurnMetric, judge_named
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


class AnswerRelevancyMetric(SingleTurnMetric):
    """The share of the answer's statements that address the question."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(AnswerRelevancy(model=judge_named(model)), threshold=threshold, **options)


class FaithfulnessMetric(SingleTurnMetric):
    """The share of the answer's claims that the passages bear out (`grounded`), or do not contradict (`contradicted`).

    `grounded` is what people mean by faithful, so it is the default; `penalize_ambiguous_claims=False` asks for the
    other, which DeepEval has as its default.
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
        told = {None: None, True: "grounded", False: "contradicted"}[penalize_ambiguous_claims]
        if mode is not None and told is not None and mode != told:
            raise ValueError(
                f"mode={mode!r} and penalize_ambiguous_claims={penalize_ambiguous_claims} exclude each other"
            )
        chosen: Any = mode or told or "grounded"
        super().__init__(Faithfulness(model=judge_named(model), mode=chosen), threshold=threshold, **options)


class HallucinationMetric(SingleTurnMetric):
    """The share of the passages that the answer does not contradict: `context`, or what was retrieved without it.

    `mode="grounded"` finds what is made up without contradicting anything: the share of the answer's claims that the
    passages bear out.
    """

    needs = ("input", "actual_output", "context|retrieval_context")

    def __init__(
        self, threshold: float | None = 0.5, model: Any = None, mode: str = "contradicted", **options: Any
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode is one of {', '.join(MODES)}, not {mode!r}")
        self.mode = mode
        judge = judge_named(model)
        evaluator = Faithfulness(model=judge) if mode == "grounded" else Hallucination(model=judge)
        super().__init__(evaluator, threshold=threshold, **options)

    def evaluable(self, test_case: Any) -> Evaluable:
        seen = super().evaluable(test_case)
        return replace(seen, retrieval_context=seen.context or seen.retrieval_context)


class ContextualRelevancyMetric(SingleTurnMetric):
    """The share of the passages' statements that are about the question."""

    needs = ("input", "retrieval_context")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(ContextualRelevancy(model=judge_named(model)), threshold=threshold, **options)


class ContextualPrecisionMetric(SingleTurnMetric):
    """Whether useful passages come before useless ones."""

    needs = ("input", "retrieval_context", "expected_output")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(ContextualPrecision(model=judge_named(model)), threshold=threshold, **options)


class ContextualRecallMetric(SingleTurnMetric):
    """The share of the expected answer that could have been written from the passages."""

    needs = ("input", "retrieval_context", "expected_output")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(ContextualRecall(model=judge_named(model)), threshold=threshold, **options)


class ExactMatchMetric(SingleTurnMetric):
    """The answer is the expected one, but for white space around it."""

    needs = ("input", "actual_output", "expected_output")

    def __init__(self, threshold: float | None = 1.0, **options: Any) -> None:
        super().__init__(ExactMatch(strip=True), threshold=threshold, **options)


class PatternMatchMetric(SingleTurnMetric):
    """The answer matches a pattern from end to end, but for white space around it."""

    def __init__(self, pattern: str, ignore_case: bool = False, threshold: float | None = 1.0, **options: Any) -> None:
        super().__init__(Regex(pattern, full=True, ignore_case=ignore_case), threshold=threshold, **options)

    def evaluable(self, test_case: Any) -> Evaluable:
        seen = super().evaluable(test_case)
        return replace(seen, eval_output=(NamedData("output", str(seen.output).strip()),))


class KeywordsMetric(SingleTurnMetric):
    """The answer mentions any of some words and all of others; `1,498` is found in `$1,498.54` and in `1498.54`."""

    def __init__(
        self,
        any_of: Sequence[str] = (),
        all_of: Sequence[str] = (),
        threshold: float | None = 1.0,
        **options: Any,
    ) -> None:
        evaluator = Contains(any_of=tuple(any_of), all_of=tuple(all_of))
        if not evaluator.any_of and not evaluator.all_of:
            raise ValueError("KeywordsMetric needs any_of or all_of")
        super().__init__(evaluator, threshold=threshold, **options)


class JsonCorrectnessMetric(SingleTurnMetric):
    """The answer is JSON that a pydantic model accepts."""

    def __init__(self, expected_schema: Any, threshold: float | None = 1.0, **options: Any) -> None:
        if not callable(getattr(expected_schema, "model_validate_json", None)):
            raise TypeError(f"expected_schema must be a pydantic model, not {expected_schema!r:.80}")

        def json_correctness(evaluable: Evaluable) -> Evaluation:
            try:
                expected_schema.model_validate_json(str(evaluable.output))
            except ValidationError as error:
                problems = error.errors(include_url=False, include_context=False)
                said = "; ".join(f"{'.'.join(map(str, item['loc'])) or 'answer'}: {item['msg']}" for item in problems)
                return Evaluation(0.0, said)
            return Evaluation(1.0, f"the answer is a valid {expected_schema.__name__}")

        super().__init__(json_correctness, threshold=threshold, **options)


class BiasMetric(SingleTurnMetric):
    """The share of the answer's opinions that are not biased."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(Bias(model=judge_named(model)), threshold=threshold, **options)


class ToxicityMetric(SingleTurnMetric):
    """The share of the answer's opinions that are not toxic."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(Toxicity(model=judge_named(model)), threshold=threshold, **options)


class PIILeakageMetric(SingleTurnMetric):
    """The share of what the answer tells that is harmless; 1 if it gives away nothing private."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(PIILeakage(model=judge_named(model)), threshold=threshold, **options)


class PromptAlignmentMetric(SingleTurnMetric):
    """The share of instructions that the answer follows."""

    def __init__(
        self, prompt_instructions: Sequence[str], threshold: float | None = 0.5, model: Any = None, **options: Any
    ) -> None:
        if isinstance(prompt_instructions, str) or not prompt_instructions:
            raise ValueError("prompt_instructions must be a list of instructions")
        evaluator = Expectations(must=tuple(prompt_instructions), model=judge_named(model))
        super().__init__(evaluator, threshold=threshold, **options)


class GEval(SingleTurnMetric):
    """The answer meets criteria of your own, marked by steps that are the same for every test case."""

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
            model=judge_named(model),
            strict_mode=strict_mode,
        )
        super().__init__(evaluator, threshold=threshold, strict_mode=strict_mode, **options)

    @property
    def __name__(self) -> str:
        return f"{self.name} (GEval)"


class Rubric:
    """What an answer is like that deserves a mark of a range."""

    def __init__(self, score_range: tuple[int, int], expected_outcome: str) -> None:
        self.score_range = tuple(score_range)
        self.expected_outcome = expected_outcome


class RoleAdherenceMetric(ConversationMetric):
    """The share of the agent's answers that keep to its role (`chatbot_role`)."""

    needs = ("turns", "chatbot_role")

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(conversation.RoleAdherence(model=judge_named(model)), threshold=threshold, **options)


class KnowledgeRetentionMetric(ConversationMetric):
    """The share of the agent's answers that forget nothing the user has told."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        super().__init__(conversation.KnowledgeRetention(model=judge_named(model)), threshold=threshold, **options)


class ConversationCompletenessMetric(ConversationMetric):
    """The share of the user's intentions that were satisfied by the end."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, **options: Any) -> None:
        evaluator = conversation.ConversationCompleteness(model=judge_named(model))
        super().__init__(evaluator, threshold=threshold, **options)


class TurnRelevancyMetric(ConversationMetric):
    """The share of the agent's answers that respond to what the user said."""

    def __init__(self, threshold: float | None = 0.5, model: Any = None, window_size: int = 10, **options: Any) -> None:
        evaluator = conversation.TurnRelevancy(window=window_size, model=judge_named(model))
        super().__init__(evaluator, threshold=threshold, **options)
