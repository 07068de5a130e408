"""Metrics of answers and of what was retrieved for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from proctor.compat.deepeval.base import SingleTurnMetric, judge_named
from proctor.evaluators.model import Evaluable
from proctor.evaluators.rag.answers import MODES, AnswerRelevancy, Faithfulness, Hallucination
from proctor.evaluators.rag.retrieval import ContextualPrecision, ContextualRecall, ContextualRelevancy


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
        **options: Any,
    ) -> None:
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
