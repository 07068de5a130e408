"""Metrics of conversations, of harm, and of criteria of your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.compat.deepeval.base import ConversationMetric, SingleTurnMetric, judge_named
from proctor.evaluators.agent import conversation
from proctor.evaluators.rubric import geval
from proctor.evaluators.rubric.expectations import Expectations
from proctor.evaluators.safety.harm import Bias, Toxicity
from proctor.evaluators.safety.pii import PIILeakage


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
