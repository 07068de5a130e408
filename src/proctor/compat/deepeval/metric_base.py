"""What every metric is to DeepEval's users: something that measures a test case and remembers what it found."""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import replace
from typing import Any, Self

from proctor.base.errors import JudgeFailed, NeedsModel, ProctorError
from proctor.base.event_loops import run_in_kept_loop
from proctor.base.fields import nearest
from proctor.base.json_data import show
from proctor.base.threads import is_loop_running, run_sync
from proctor.cases.suite import passes
from proctor.compat.deepeval.evaluables import evaluable_of
from proctor.compat.deepeval.models import is_model, judge_of_model
from proctor.evaluators.evaluation import Evaluable, Evaluation, EvaluationPending, NothingToCompare
from proctor.evaluators.judged_evaluator import ModelLeftOut
from proctor.judging.context import current_judge_context, judge_context
from proctor.running.python_api.scorers import scorer_of


class DeepEvalError(Exception):
    """The base of DeepEval's errors."""


class MissingTestCaseParamsError(DeepEvalError):
    """A test case lacks what a metric needs."""


class BaseMetric:
    """The base of metrics: your own set `score`, `success` and `reason` in `measure` or `a_measure`."""

    threshold: float | None = 0.5
    score: float | None = None
    reason: str | None = None
    success: bool | None = None
    error: str | None = None
    skipped: bool = False
    """Whether there was nothing to measure."""
    pending: bool = False
    """Whether it is skipped because the judge cannot tell, so that a model or a person has to."""
    strict_mode: bool = False
    async_mode: bool = True
    include_reason: bool = True
    verbose_mode: bool = False
    evaluation_model: str | None = None
    evaluation_cost: float | None = None
    verbose_logs: str | None = None
    flaky: bool = False
    """Whether it only reports: a flaky metric never decides about a test case."""

    def measure(self, test_case: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no measure")

    async def a_measure(self, test_case: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no a_measure")

    def is_successful(self) -> bool | None:
        """`None` where there is no verdict: nothing was measured, or no threshold says what is enough."""
        if self.error is not None:
            return False
        if self.threshold is None:
            self.success = None
        if self.score is None or self.threshold is None:
            return self.success
        self.success = passes(self.score, self.threshold)
        return self.success

    @property
    def __name__(self) -> str:
        return title_of(type(self).__qualname__.rpartition(".")[2])


class BaseConversationalMetric(BaseMetric):
    """The base of metrics that look at conversations."""


class ProctorMetric(BaseMetric):
    """A metric that one of Proctor's evaluators measures. Nothing is asked of a model before it is needed."""

    needs: tuple[str, ...] = ("input", "actual_output")
    """The fields a test case must have; `a|b` is met by either."""
    left_out: bool = False
    """Whether nothing was measured because the user left out what needs a model."""

    def __new__(cls, *args: Any, **given: Any) -> Self:
        known = _keywords(cls)  # type: ignore[arg-type]  # mypy takes type[Self] for unhashable
        for name in given:
            if name not in known:
                raise TypeError(f"{cls.__name__} takes no {name!r}{nearest(name, known)}")
        return super().__new__(cls)

    def __init__(
        self,
        evaluator: Any,
        *,
        threshold: float | None = 0.5,
        strict_mode: bool = False,
        include_reason: bool = True,
        async_mode: bool = True,
        verbose_mode: bool = False,
        flaky: bool = False,
    ) -> None:
        self.flaky = flaky
        self.threshold = 1.0 if strict_mode else _threshold(threshold)
        self.strict_mode = strict_mode
        self.include_reason = include_reason
        self.async_mode = async_mode
        self.verbose_mode = verbose_mode
        self._scorer = scorer_of(evaluator)

    def measure(self, test_case: Any) -> float | None:
        """The score, which is kept with its reason; `None` where there is nothing to measure (`skipped`)."""
        __tracebackhide__ = True
        try:
            return _in_a_thread(self, test_case) if is_loop_running() else run_in_kept_loop(self.a_measure(test_case))
        except ProctorError as error:
            raise error.with_traceback(None) from None  # a wrong setting is one message, not our source

    async def a_measure(self, test_case: Any) -> float | None:
        """The same, for code that has an event loop."""
        self.score = self.reason = self.success = self.error = self.verbose_logs = None
        self.evaluation_model = self.evaluation_cost = None
        self.skipped = self.left_out = self.pending = False
        try:
            require(self, test_case)
            evaluation = await self._evaluation(self.evaluable(test_case))
        except ModelLeftOut as left_out:
            self._skip(left_out)
            self.left_out = True
            raise skipped_test(str(left_out)) from None
        except (NothingToCompare, EvaluationPending) as nothing:
            self._skip(nothing)
            return None
        except Exception as error:
            self.error, self.success = str(error) or type(error).__name__, False
            raise
        self._keep(evaluation)
        return self.score

    def evaluable(self, test_case: Any) -> Evaluable:
        """What the evaluator sees."""
        return evaluable_of(test_case)

    async def _evaluation(self, evaluable: Evaluable) -> Evaluation:
        try:
            with judge_context(replace(current_judge_context(), threshold=self.threshold)):
                found = await self._scorer.evaluate(evaluable)
        except NeedsModel as error:
            raise JudgeFailed(f"{str(error).partition(';')[0]}; name one: model= or PROCTOR_JUDGE") from None
        if found is None:
            raise NothingToCompare("it had nothing to compare")
        return found

    def _keep(self, evaluation: Evaluation) -> None:
        score = evaluation.score
        self.score = 0.0 if self.strict_mode and not passes(score, 1.0) else score
        self.reason = evaluation.reasoning if self.include_reason else None
        judge = evaluation.details.get("judge") or {}
        self.evaluation_model = judge.get("model")
        self.evaluation_cost = judge.get("usage", {}).get("cost_usd")
        self.verbose_logs = _logs(self, evaluation)
        self.is_successful()
        if self.verbose_mode:
            print(self.verbose_logs)  # noqa: T201  what verbose_mode asks for

    def _skip(self, nothing: NothingToCompare | EvaluationPending) -> None:
        self.skipped = True
        self.pending = isinstance(nothing, EvaluationPending)
        self.reason = str(nothing) if self.include_reason else None


@functools.cache
def _keywords(kind: type) -> frozenset[str]:
    """The keywords that a metric takes, its own and those of all metrics."""
    made = [method for cls in kind.__mro__ if (method := vars(cls).get("__init__")) is not None]
    taken = (name for method in made for name in inspect.signature(method).parameters)
    return frozenset(taken) - {"self", "options", "args", "kwargs"}


def skipped_test(reason: str) -> Exception:
    """What pytest and unittest take for a test that is skipped."""
    from unittest import SkipTest

    return SkipTest(reason)


def require(metric: ProctorMetric, test_case: Any) -> None:
    """Raises `MissingTestCaseParamsError` for what the test case lacks; an empty answer is an answer."""
    from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase

    kind = LLMTestCase if isinstance(metric, SingleTurnMetric) else ConversationalTestCase
    if not isinstance(test_case, kind):
        raise TypeError(f"{metric.__name__} measures a {kind.__name__}, not a {type(test_case).__name__}")
    missing = [need for need in metric.needs if all(getattr(test_case, name) is None for name in need.split("|"))]
    if missing:
        named = " and ".join(f"{need.replace('|', ' or ')}" for need in missing)
        raise MissingTestCaseParamsError(f"{metric.__name__} needs {named}, which the test case does not have")


class SingleTurnMetric(ProctorMetric):
    """Measures an `LLMTestCase`."""


class ConversationMetric(ProctorMetric, BaseConversationalMetric):
    """Measures a `ConversationalTestCase`."""

    needs: tuple[str, ...] = ("turns",)


def title_of(class_name: str) -> str:
    """The title of a metric: `AnswerRelevancyMetric` is Answer Relevancy."""
    bare = class_name.removesuffix("Metric") or class_name
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", bare)


def judge_named(model: Any) -> Any:
    """The judge: `openai:gpt-5-mini`, `embedded`, a Judge. A name without a provider is OpenAI's, as in DeepEval."""
    if model is None or (callable(getattr(model, "ask", None)) and isinstance(getattr(model, "name", None), str)):
        return model
    if is_model(model):
        return judge_of_model(model)
    if not isinstance(model, (str, dict)):
        raise TypeError(
            f"model must be a name such as 'openai:gpt-5-mini', an object of options, a DeepEvalBaseLLM or a Judge, "
            f"not a {type(model).__name__}"
        )
    return f"openai:{model}" if isinstance(model, str) and ":" not in model and model != "embedded" else model


def _threshold(given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1:
        raise ValueError(f"threshold must be a number from 0 to 1, not {given!r}")
    return float(given)


def _logs(metric: ProctorMetric, evaluation: Evaluation) -> str:
    lines = [f"{metric.__name__}: {metric.score:.4g} (threshold {metric.threshold}) {evaluation.reasoning}".rstrip()]
    details = {name: value for name, value in evaluation.details.items() if name != "judge"}
    return "\n".join([*lines, *(f"  {name}: {show(value)}" for name, value in details.items())])


def _in_a_thread(metric: ProctorMetric, test_case: Any) -> float | None:
    """For a metric of the user that calls `measure` from inside an event loop."""
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    from proctor.judging.context import current_judge_context, judge_context
    from proctor.judging.judge_factory import SharedJudges

    def measure() -> float | None:
        with judge_context(replace(current_judge_context(), judges=SharedJudges())):  # those of this loop wait for it
            return run_sync(metric.a_measure(test_case))

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(contextvars.copy_context().run, measure).result()
