"""HoloDeck's evaluator classes. They declare their arguments; Proctor's evaluators compute the scores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from proctor.agents.user_code import call_user_function
from proctor.base.errors import NeedsModel, one_line
from proctor.base.infrastructure import is_transient
from proctor.base.json_data import UNSET, to_text
from proctor.cases.suite import EvaluatorSpec, NamedData
from proctor.cases.threshold import DEFAULT_THRESHOLD, passes, threshold_in_force
from proctor.compat.holodeck.enums import RAGMetricType
from proctor.compat.holodeck.errors import EvaluationError
from proctor.compat.holodeck.eval_kwargs import EvalKwargsBuilder, EvalParam, ParamSpec, read_result
from proctor.compat.holodeck.judge_config import judge_of
from proctor.evaluators.calling import evaluate
from proctor.evaluators.evaluation import (
    UNREADABLE,
    Evaluable,
    Evaluation,
    EvaluationPending,
    InvalidScore,
    NothingToCompare,
)
from proctor.evaluators.judged_evaluator import evaluator_timeout
from proctor.evaluators.registry import shipped_class
from proctor.judging.call_log import WaitTimer, run_with_timeout


@dataclass(frozen=True, slots=True)
class RetryConfig:
    """How often and after how long an evaluator is retried after a network error or an overloaded service."""

    max_retries: int = 3
    base_delay: float = 2.0
    max_delay: float = 60.0
    exponential_base: float = 2.0

    def delay(self, attempt: int) -> float:
        return min(self.max_delay, self.base_delay * self.exponential_base**attempt)


_REFERENCE_PARAMS = frozenset({EvalParam.RESPONSE, EvalParam.GROUND_TRUTH})
_QUESTION_PARAMS = frozenset({EvalParam.ACTUAL_OUTPUT, EvalParam.INPUT})
_RETRIEVAL_PARAMS = _QUESTION_PARAMS | {EvalParam.RETRIEVAL_CONTEXT}


class EvaluationTimeout(EvaluationError, TimeoutError):
    """An evaluator took longer than its `timeout`."""


class PendingEvaluationError(EvaluationError, EvaluationPending):
    """The judge cannot tell, or a person has not graded yet; in a run, the outcome is `pending`."""

    def __init__(self, evaluator: str, cause: EvaluationPending) -> None:
        super().__init__(f"{evaluator}: {cause}")
        self.criteria = cause.criteria
        self.account = getattr(cause, "account", None)


class BaseEvaluator:
    """The base of evaluators: subclass it with `PARAM_SPEC` and `_evaluate_impl`, which returns a dictionary.

    `evaluate` calls `_evaluate_impl` with a limit of `timeout` seconds (None for no limit) and retries network errors.
    """

    PARAM_SPEC: ClassVar[ParamSpec] = ParamSpec(frozenset({EvalParam.RESPONSE}))

    def __init__(self, timeout: float | None = 60.0, retry_config: RetryConfig | None = None) -> None:
        self.timeout = timeout
        self.retry_config = retry_config or RetryConfig()

    @property
    def name(self) -> str:
        return type(self).__name__

    @classmethod
    def get_param_spec(cls) -> ParamSpec:
        return cls.PARAM_SPEC

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        """The score under `score` or the metric's name; `passed` and `reasoning` are optional."""
        raise NotImplementedError(f"{self.name} needs a method _evaluate_impl")

    async def evaluate(self, **kwargs: Any) -> dict[str, Any]:
        """The result of `_evaluate_impl`; raises `EvaluationError`."""
        if self.timeout is None:
            return await self._evaluate_with_retries(kwargs)
        wait_timer = WaitTimer()
        try:
            return await run_with_timeout(lambda: self._evaluate_with_retries(kwargs), self.timeout, wait_timer)
        except EvaluationError:
            raise
        except TimeoutError:
            raise EvaluationTimeout(f"{self.name} {evaluator_timeout(self.timeout, wait_timer)}") from None

    async def _evaluate_with_retries(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        attempts = max(1, self.retry_config.max_retries)
        for attempt in range(1, attempts + 1):
            try:
                return await self._evaluate_impl(**kwargs)
            except (EvaluationError, NotImplementedError, TypeError):
                raise
            except EvaluationPending as error:
                raise PendingEvaluationError(self.name, error) from error
            except Exception as error:
                if not (is_transient(error) or isinstance(error, OSError)):
                    raise EvaluationError(f"{self.name}: {one_line(error)}") from error
                if attempt == attempts:
                    raise EvaluationError(f"{self.name} failed after {attempts} attempts: {one_line(error)}") from error
                await asyncio.sleep(self.retry_config.delay(attempt - 1))
        raise AssertionError("unreachable: every attempt returns or raises")


class ProctorEvaluator(BaseEvaluator):
    """One of Proctor's evaluators with HoloDeck's `evaluate(**kwargs)`."""

    PARAM_SPEC: ClassVar[ParamSpec] = ParamSpec(_REFERENCE_PARAMS)
    evaluator: ClassVar[str]
    """The name of Proctor's evaluator."""
    metric: ClassVar[str]

    def __init__(
        self,
        *,
        threshold: float | None = None,
        timeout: float | None = 60.0,
        retry_config: RetryConfig | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(timeout, retry_config)
        self.threshold = threshold
        self._scorer: Callable[..., Any] = shipped_class(self.evaluator)(**arguments)

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        """The score under `score` and the metric's name, whether it passed, and why."""
        evaluable = _evaluable(kwargs, self.PARAM_SPEC, self.name)
        try:
            evaluation = await evaluate(self._scorer, evaluable)
        except EvaluationPending:
            raise  # also for a missing model
        except (NothingToCompare, InvalidScore, NeedsModel) as error:
            raise EvaluationError(f"{self.name}: {error}") from error
        if evaluation is None:
            raise EvaluationError(f"{self.name}: there was nothing to compare")
        declared = getattr(self._scorer, "default_threshold", DEFAULT_THRESHOLD)
        threshold = threshold_in_force(declared, caller=self.threshold)
        return {
            "metric_name": self.metric,
            "score": evaluation.score,
            self.metric: evaluation.score,
            "threshold": threshold,
            "passed": passes(evaluation.score, threshold, evaluation.passed),
            "reasoning": evaluation.reasoning,
            "details": evaluation.details,
        }


def _evaluable(kwargs: Mapping[str, Any], spec: ParamSpec, name: str) -> Evaluable:
    names = {str(param) for param in EvalParam}
    if unknown := [key for key in kwargs if key not in names]:
        raise TypeError(f"{name}.evaluate has no argument {unknown[0]!r}; it has {', '.join(sorted(names))}")
    if missing := sorted(str(param) for param in spec.required if kwargs.get(param) is None):
        raise EvaluationError(f"{name} needs {', '.join(missing)}")
    answer = kwargs.get("response", kwargs.get("actual_output"))
    question = kwargs.get("query", kwargs.get("input"))
    truth = kwargs.get("ground_truth", kwargs.get("expected_output"))
    context, passages = kwargs.get("context"), kwargs.get("retrieval_context")
    return Evaluable(
        eval_input=() if question is None else (NamedData("input", question),),
        eval_output=(NamedData("output", answer),),
        expectation=UNSET if truth is None else truth,
        context=None if context is None else tuple([context] if isinstance(context, str) else context),
        retrieval_context=None if passages is None else tuple(passages),
    )


class BLEUEvaluator(ProctorEvaluator):
    evaluator, metric = "BLEU", "bleu"


class ROUGEEvaluator(ProctorEvaluator):
    """The score of one variant, and all three under their names."""

    evaluator, metric = "ROUGE", "rouge"

    def __init__(self, *, variant: str = "rougeL", **rest: Any) -> None:
        super().__init__(variant=variant, **rest)
        self.variant = variant

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        result = await super()._evaluate_impl(**kwargs)
        scorers = {variant: shipped_class("ROUGE")(variant=variant) for variant in ("rouge1", "rouge2", "rougeL")}
        evaluable = _evaluable(kwargs, self.PARAM_SPEC, self.name)
        return result | {variant: scorer(evaluable).score for variant, scorer in scorers.items()}


class METEOREvaluator(ProctorEvaluator):
    evaluator, metric = "METEOR", "meteor"


class EqualityEvaluator(ProctorEvaluator):
    evaluator, metric = "Equality", "equality"


class NumericEvaluator(ProctorEvaluator):
    """The result has `error` if the answer is not a number."""

    evaluator, metric = "Numeric", "numeric"

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        result = await super()._evaluate_impl(**kwargs)
        return result | {"error": result["reasoning"] if result["details"].get(UNREADABLE) else None}


class ModelEvaluator(ProctorEvaluator):
    """An evaluator with a judge: `model_config` sets the judge, like `model` in an agent.yaml."""

    def __init__(self, model_config: Any = None, threshold: float | None = None, **rest: Any) -> None:
        model = {} if model_config is None else {"model": judge_of(model_config)}
        super().__init__(threshold=threshold, **model, **rest)


AzureAIEvaluator = ModelEvaluator
DeepEvalBaseEvaluator = ModelEvaluator
"""HoloDeck's bases of judged evaluators; here, one judge works for all of them."""


class GroundednessEvaluator(ModelEvaluator):
    PARAM_SPEC = ParamSpec(
        frozenset({EvalParam.RESPONSE, EvalParam.CONTEXT}), frozenset({EvalParam.QUERY}), uses_context=True
    )
    evaluator, metric = "Groundedness", "groundedness"


class RelevanceEvaluator(ModelEvaluator):
    PARAM_SPEC = ParamSpec(
        frozenset({EvalParam.RESPONSE, EvalParam.QUERY}), frozenset({EvalParam.CONTEXT}), uses_context=True
    )
    evaluator, metric = "Relevance", "relevance"


class CoherenceEvaluator(ModelEvaluator):
    PARAM_SPEC = ParamSpec(frozenset({EvalParam.RESPONSE, EvalParam.QUERY}))
    evaluator, metric = "Coherence", "coherence"


class FluencyEvaluator(ModelEvaluator):
    PARAM_SPEC = ParamSpec(frozenset({EvalParam.RESPONSE, EvalParam.QUERY}))
    evaluator, metric = "Fluency", "fluency"


class GEvalEvaluator(ModelEvaluator):
    PARAM_SPEC = ParamSpec(
        frozenset({EvalParam.ACTUAL_OUTPUT}),
        frozenset({EvalParam.INPUT, EvalParam.EXPECTED_OUTPUT, EvalParam.CONTEXT, EvalParam.RETRIEVAL_CONTEXT}),
    )
    evaluator, metric = "GEval", "geval"


class RAGEvaluator(ModelEvaluator):
    """An evaluator that compares an answer with the retrieved passages."""

    PARAM_SPEC = ParamSpec(_RETRIEVAL_PARAMS, uses_retrieval_context=True)

    def __init__(self, model_config: Any = None, threshold: float = 0.5, include_reason: bool = True, **rest: Any):
        super().__init__(model_config, threshold, **rest)
        self.include_reason = include_reason

    async def _evaluate_impl(self, **kwargs: Any) -> dict[str, Any]:
        result = await super()._evaluate_impl(**kwargs)
        return result if self.include_reason else {**result, "reasoning": ""}


class FaithfulnessEvaluator(RAGEvaluator):
    evaluator, metric = "Faithfulness", "faithfulness"


class ContextualRelevancyEvaluator(RAGEvaluator):
    evaluator, metric = "ContextualRelevancy", "contextual_relevancy"


class ContextualPrecisionEvaluator(RAGEvaluator):
    PARAM_SPEC = ParamSpec(_RETRIEVAL_PARAMS | {EvalParam.EXPECTED_OUTPUT}, uses_retrieval_context=True)
    evaluator, metric = "ContextualPrecision", "contextual_precision"


class ContextualRecallEvaluator(RAGEvaluator):
    PARAM_SPEC = ParamSpec(_RETRIEVAL_PARAMS | {EvalParam.EXPECTED_OUTPUT}, uses_retrieval_context=True)
    evaluator, metric = "ContextualRecall", "contextual_recall"


class AnswerRelevancyEvaluator(RAGEvaluator):
    PARAM_SPEC = ParamSpec(_QUESTION_PARAMS)
    evaluator, metric = "AnswerRelevancy", "answer_relevancy"


class RAGEvaluatorConstructor(Protocol):
    """The constructor of the RAG evaluators."""

    def __call__(
        self, model_config: Any = None, threshold: float = 0.5, include_reason: bool = True, **rest: Any
    ) -> RAGEvaluator: ...


RAG_EVALUATOR_MAP: dict[RAGMetricType, RAGEvaluatorConstructor] = {
    RAGMetricType.FAITHFULNESS: FaithfulnessEvaluator,
    RAGMetricType.CONTEXTUAL_RELEVANCY: ContextualRelevancyEvaluator,
    RAGMetricType.CONTEXTUAL_PRECISION: ContextualPrecisionEvaluator,
    RAGMetricType.CONTEXTUAL_RECALL: ContextualRecallEvaluator,
    RAGMetricType.ANSWER_RELEVANCY: AnswerRelevancyEvaluator,
}


_EVALUATOR_CLASSES = (
    BLEUEvaluator,
    ROUGEEvaluator,
    METEOREvaluator,
    EqualityEvaluator,
    NumericEvaluator,
    GroundednessEvaluator,
    RelevanceEvaluator,
    CoherenceEvaluator,
    FluencyEvaluator,
    GEvalEvaluator,
    FaithfulnessEvaluator,
    ContextualRelevancyEvaluator,
    ContextualPrecisionEvaluator,
    ContextualRecallEvaluator,
    AnswerRelevancyEvaluator,
)


def build_evaluator(spec: EvaluatorSpec) -> BaseEvaluator | None:
    """The evaluator of a metric, for a program to call; None for a user's function."""
    evaluator_class: Any = next((kind for kind in _EVALUATOR_CLASSES if kind.evaluator == spec.name), None)
    if evaluator_class is None:
        return None
    arguments = dict(spec.arguments)
    if "model" in arguments:
        arguments["model_config"] = arguments.pop("model")
    if spec.threshold is not None:
        arguments["threshold"] = spec.threshold
    evaluator: BaseEvaluator = evaluator_class(**arguments)
    return evaluator


def scoring_function(evaluator: Any, metric: str, threshold: float | None = None) -> Callable[..., Any]:
    """An evaluator that a program passes in, as a function for the engine.

    Without a threshold, its own `passed` decides. It is not called if a required argument is not known.
    """
    if not hasattr(evaluator, "evaluate"):
        return evaluator  # type: ignore[no-any-return]

    async def score(evaluable: Evaluable) -> Evaluation:
        arguments = _kwargs(evaluator, evaluable)
        required = evaluator.get_param_spec().required
        if missing := sorted(str(param) for param in required if str(param) not in arguments):
            raise NothingToCompare(f"it requires {', '.join(missing)}, which the test does not have")
        result = await call_user_function(evaluator.evaluate, **arguments)
        return read_result(result, metric, decides=threshold is None)

    return score


def _kwargs(evaluator: Any, evaluable: Evaluable) -> dict[str, Any]:
    truth = evaluable.expectation
    passages = evaluable.retrieval_context
    builder = EvalKwargsBuilder(
        agent_response=_text(evaluable.output) or "",
        input_query=_text(evaluable.input),
        ground_truth=None if truth is UNSET else _text(truth),
        file_content="\n\n".join(evaluable.context or passages or ()) or None,
        retrieval_context=None if passages is None else list(passages),
    )
    return builder.build_for(evaluator)


def _text(value: Any) -> str | None:
    return None if value is None else to_text(value)
