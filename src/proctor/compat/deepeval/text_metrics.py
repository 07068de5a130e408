"""Metrics that need no model: the same text, a pattern, keywords, JSON of a known shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from proctor.cases.model import NamedData
from proctor.compat.deepeval.base import SingleTurnMetric
from proctor.evaluators.model import Evaluable, Evaluation
from proctor.evaluators.text.matching import Contains, ExactMatch, Regex


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
            from pydantic import ValidationError

            try:
                expected_schema.model_validate_json(str(evaluable.output))
            except ValidationError as error:
                problems = error.errors(include_url=False, include_context=False)
                said = "; ".join(f"{'.'.join(map(str, item['loc'])) or 'answer'}: {item['msg']}" for item in problems)
                return Evaluation(0.0, said)
            return Evaluation(1.0, f"the answer is a valid {expected_schema.__name__}")

        super().__init__(json_correctness, threshold=threshold, **options)
