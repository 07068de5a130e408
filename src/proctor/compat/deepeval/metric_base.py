"""DeepEval's base classes for metrics. A metric measures a test case and stores the result in itself."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any, Self, TypeVar
from unittest import SkipTest

from proctor.agents.reply import Reply, Usage
from proctor.agents.reply import ToolCall as ProctorToolCall
from proctor.base.documents import did_you_mean
from proctor.base.errors import NeedsModel, ProctorError, UsageError
from proctor.base.event_loops import is_loop_running, run_blocking, run_in_session_loop
from proctor.base.json_data import UNSET, to_json, to_text
from proctor.base.open_checks import OpenCheck, place_of, record_open_check
from proctor.cases.matchers import Equals
from proctor.cases.suite import ExpectedCall, NamedData
from proctor.cases.suite import Turn as ProctorTurn
from proctor.cases.threshold import passes
from proctor.compat.deepeval.models import is_model, model_judge
from proctor.compat.deepeval.provider_models import ProviderModel
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall, Turn
from proctor.evaluators.evaluation import Evaluable, Evaluation, EvaluationPending, Exchange, NothingToCompare
from proctor.evaluators.judged_evaluator import FAST_NOTE, SkippedByFast
from proctor.judging.judge import OLD_RULES_NAME, RULES, is_judge
from proctor.judging.judges import Judges
from proctor.judging.session import current_session, judge_session
from proctor.running.assertions.score_matrix import named_evaluator

T = TypeVar("T")


class DeepEvalError(Exception):
    """The base of DeepEval's errors."""


class MissingTestCaseParamsError(DeepEvalError):
    """A test case lacks a field that a metric needs."""


class BaseMetric:
    """The base of metrics. Your own set `score`, `success` and `reason` in `measure` or `a_measure`."""

    threshold: float | None = 0.5
    score: float | None = None
    """A `PendingScore` if it is pending: no comparison with a number holds. None if nothing was measured."""
    reason: str | None = None
    success: bool | None = None
    """None if nothing was measured, it is pending, or there is no threshold."""
    error: str | None = None
    skipped: bool = False
    """Whether there was nothing to measure, or the result is pending."""
    pending: bool = False
    """Whether the judge cannot tell, so that a model or a person must decide."""
    strict_mode: bool = False
    async_mode: bool = True
    include_reason: bool = True
    verbose_mode: bool = False
    evaluation_model: str | None = None
    evaluation_cost: float | None = None
    verbose_logs: str | None = None
    _own_passed: bool | None = None
    """The evaluator's own decision, which takes precedence over the score."""
    flaky: bool = False
    """Whether it is only reported and never fails a test case."""

    def measure(self, test_case: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method measure")

    async def a_measure(self, test_case: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method a_measure")

    def is_successful(self) -> bool | None:
        """Whether the metric passed; None without a score or a threshold, and if it is pending."""
        if self.threshold is None or self.pending:
            self.success = None
            if isinstance(self.score, PendingScore):
                self.score.record(sys._getframe(1))
            return None
        if self.error is not None:
            return False
        if self.score is None:
            return self.success
        self.success = passes(self.score, self.threshold, self._own_passed)
        return self.success

    @property
    def __name__(self) -> str:
        return metric_title(type(self).__qualname__.rpartition(".")[2])


class BaseConversationalMetric(BaseMetric):
    """The base of metrics for conversations."""


class ProctorMetric(BaseMetric):
    """A metric scored by one of Proctor's evaluators. No model is called before the metric runs."""

    needs: tuple[str, ...] = ("input", "actual_output")
    """The fields that a test case must have; `a|b` means either."""
    skipped_without_model: bool = False
    """Whether it was skipped because the user excluded metrics that need a model."""
    _success: bool | None = None

    @property
    def success(self) -> bool | None:
        """Whether the metric passed; None if nothing was measured, it is pending, or there is no threshold."""
        if isinstance(self.score, PendingScore):
            self.score.record(sys._getframe(1))
        return self._success

    @success.setter
    def success(self, success: bool | None) -> None:
        self._success = success

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        keywords = _keywords(cls)  # type: ignore[arg-type]  # mypy takes type[Self] for unhashable
        for name in kwargs:
            if name not in keywords:
                raise TypeError(f"{cls.__name__} has no parameter {name!r}{did_you_mean(name, keywords)}")
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
        self.threshold = 1.0 if strict_mode else _check_threshold(threshold)
        self.strict_mode = strict_mode
        self.include_reason = include_reason
        self.async_mode = async_mode
        self.verbose_mode = verbose_mode
        self._scorer = named_evaluator(evaluator)

    def measure(self, test_case: Any, **internal: Any) -> float | None:
        """Measure a test case, store the score and reason, and return the score.

        A `SkippedScore` if there was nothing to measure; a `PendingScore` if the judge cannot tell. DeepEval's own
        parameters, such as `_show_indicator`, have no effect.
        """
        __tracebackhide__ = True
        _refuse_parameters(internal)
        try:
            return run_from_sync(lambda: self.a_measure(test_case))
        except ProctorError as error:
            raise error.with_traceback(None) from None  # a wrong setting is one message, without our stack frames

    async def a_measure(self, test_case: Any, **internal: Any) -> float | None:
        """`measure` for code with an event loop."""
        _refuse_parameters(internal)
        self.score = self.reason = self.success = self.error = self.verbose_logs = None
        self.evaluation_model = self.evaluation_cost = None
        self.skipped = self.skipped_without_model = self.pending = False
        try:
            require_params(self, test_case)
            _refuse_images(test_case)
            evaluation = await self._evaluation(self.evaluable(test_case))
        except SkippedByFast as skipped_without_model:
            self._skip(skipped_without_model)
            self.skipped_without_model = True
            raise skipped_test(str(skipped_without_model)) from None
        except (NothingToCompare, EvaluationPending) as cause:
            self._skip(cause)
            return self.score
        except Exception as error:
            self.error, self.success = str(error) or type(error).__name__, False
            raise
        self._store_result(evaluation)
        return self.score

    def evaluable(self, test_case: Any) -> Evaluable:
        """What the evaluator sees of a test case."""
        return to_evaluable(test_case)

    async def _evaluation(self, evaluable: Evaluable) -> Evaluation:
        try:
            with judge_session(replace(current_session(), threshold=self.threshold)):
                evaluation = await self._scorer.evaluate(evaluable)
        except NeedsModel as error:
            if current_session().sources.skip_models:
                raise SkippedByFast(f"{str(error).partition(';')[0]}; {FAST_NOTE}") from None
            raise EvaluationPending(
                f"{str(error).partition(';')[0]}; set one with model=, PROCTOR_JUDGE or, in pytest, --proctor-judge"
            ) from None
        if evaluation is None:
            raise NothingToCompare("there was nothing to compare")
        return evaluation

    def _store_result(self, evaluation: Evaluation) -> None:
        score = evaluation.score
        self.score = 0.0 if self.strict_mode and not passes(score, 1.0) else score
        self.reason = evaluation.reasoning if self.include_reason else None
        self._own_passed = evaluation.passed
        judge = evaluation.details.get("judge") or {}
        self.evaluation_model = judge.get("model")
        self.evaluation_cost = judge.get("usage", {}).get("cost_usd")
        self.verbose_logs = _verbose_logs(self, evaluation)
        self.is_successful()
        if self.verbose_mode:
            print(self.verbose_logs)  # noqa: T201  requested by verbose_mode

    def _skip(self, cause: NothingToCompare | EvaluationPending) -> None:
        self.skipped = True
        self.pending = isinstance(cause, EvaluationPending)
        self.reason = str(cause) if self.include_reason else None
        self.score = set_pending(self, str(cause)) if self.pending else SkippedScore(evaluator_name(self), str(cause))


@functools.cache
def _keywords(kind: type) -> frozenset[str]:
    """The keywords of a metric's constructor, its own and those of all metrics."""
    constructors = [method for cls in kind.__mro__ if (method := vars(cls).get("__init__")) is not None]
    names = (name for method in constructors for name in inspect.signature(method).parameters)
    return frozenset(names) - {"self", "options", "args", "kwargs"}


def skipped_test(reason: str) -> Exception:
    """The exception that makes pytest and unittest skip a test."""
    return SkipTest(reason)


def require_params(metric: ProctorMetric, test_case: Any) -> None:
    """Raise `MissingTestCaseParamsError` if the test case lacks a field; an empty answer is an answer."""
    kind = LLMTestCase if isinstance(metric, SingleTurnMetric) else ConversationalTestCase
    if not isinstance(test_case, kind):
        raise TypeError(f"{metric.__name__} measures a {kind.__name__}, not a {type(test_case).__name__}")
    missing = [need for need in metric.needs if all(getattr(test_case, name) is None for name in need.split("|"))]
    if missing:
        names = " and ".join(f"{need.replace('|', ' or ')}" for need in missing)
        raise MissingTestCaseParamsError(f"{metric.__name__} needs {names} in the test case")


class SingleTurnMetric(ProctorMetric):
    """A metric for an `LLMTestCase`."""


class ConversationMetric(ProctorMetric, BaseConversationalMetric):
    """A metric for a `ConversationalTestCase`."""

    needs: tuple[str, ...] = ("turns",)


def metric_title(class_name: str) -> str:
    """The title of a metric class: Answer Relevancy for `AnswerRelevancyMetric`."""
    bare = class_name.removesuffix("Metric") or class_name
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", bare)


def as_judge(model: Any) -> Any:
    """The judge for `model`: `openai:gpt-5-mini`, `rules`, a Judge, or a DeepEval model.

    A name without a provider is OpenAI's, as in DeepEval.
    """
    if model is None or is_judge(model):
        return model
    if isinstance(model, ProviderModel):
        return model.judge()
    if is_model(model):
        return model_judge(model)
    if not isinstance(model, (str, dict)):
        raise TypeError(
            f"model must be a name such as 'openai:gpt-5-mini', a dict of options, a DeepEvalBaseLLM or a Judge, "
            f"not a {type(model).__name__}"
        )
    is_bare = isinstance(model, str) and ":" not in model and model not in (RULES, OLD_RULES_NAME)
    return f"openai:{model}" if is_bare else model


def _check_threshold(threshold: Any) -> float | None:
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be a number from 0 to 1, not {threshold!r}")
    return float(threshold)


def _verbose_logs(metric: ProctorMetric, evaluation: Evaluation) -> str:
    lines = [f"{metric.__name__}: {metric.score:.4g} (threshold {metric.threshold}) {evaluation.reasoning}".rstrip()]
    details = {name: value for name, value in evaluation.details.items() if name != "judge"}
    return "\n".join([*lines, *(f"  {name}: {to_text(value)}" for name, value in details.items())])


def run_from_sync(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, for synchronous code, also of a test that has a running event loop."""
    if not is_loop_running():
        return run_in_session_loop(work())
    # The judges of the running loop are blocked until this returns.
    with judge_session(replace(current_session(), judges=Judges())):
        return run_blocking(work())


class PendingScore(float):
    """The score of a pending metric: NaN, so that neither `score >= 0.7` nor `score < 0.3` holds.

    That alone would let `if score < 0.7: pytest.fail()` and `assert score != 0` pass. So the running test is pending as
    soon as there is such a score, and arithmetic gives another one. A comparison is recorded, too: an assertion that
    fails because of it is not a failure, and the score may have been measured outside of the test.
    """

    def __new__(cls, value: object = math.nan, metric: str = "", reason: str = "") -> Self:
        return super().__new__(cls, math.nan)

    def __init__(self, value: object = math.nan, metric: str = "", reason: str = "") -> None:
        self.metric = metric
        self.reason = reason

    def __getnewargs__(self) -> tuple[float, str, str]:  # type: ignore[override]  # what __new__ takes here
        return math.nan, self.metric, self.reason

    def record(self, frame: FrameType | None = None) -> None:
        """Leave the running test pending, unless `evaluate` or `assert_test` decides.

        `frame` is the user's code that looks at the score.
        """
        if _PENDING_INSIDE.get() is None:
            text = f"{self.metric}: {self.reason}"
            place = None if frame is None else place_of(frame)
            record_open_check(OpenCheck((self.metric,), "model", text, place=place))

    def _compare(self, other: object) -> bool:
        self.record(sys._getframe(1))
        return False

    def __ne__(self, other: object) -> bool:
        self.record(sys._getframe(1))
        return True

    def __bool__(self) -> bool:
        self.record(sys._getframe(1))
        return True

    def _compute(self, *others: object) -> PendingScore:
        return self

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = _compare
    __hash__ = float.__hash__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _compute
    __neg__ = __abs__ = __round__ = _compute  # type: ignore[assignment]


class SkippedScore(float):
    """The score of a metric that had nothing to measure: NaN, which cannot be compared.

    `score >= 0.7` would be a `TypeError` for None, which says nothing about the metric, and `score < 0.7` would be
    false for NaN, so that a test passes although nothing was measured.
    """

    def __new__(cls, metric: str = "", reason: str = "") -> Self:
        return super().__new__(cls, math.nan)

    def __init__(self, metric: str = "", reason: str = "") -> None:
        self.metric = metric
        self.reason = reason

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # what __new__ takes here
        return self.metric, self.reason

    def _compare(self, other: object) -> bool:
        raise AssertionError(f"skipped: {self.metric}: {self.reason}")

    __lt__ = __le__ = __gt__ = __ge__ = _compare


_PENDING_INSIDE: contextvars.ContextVar[list[BaseMetric] | None] = contextvars.ContextVar("pending", default=None)


@contextlib.contextmanager
def collect_pending_metrics() -> Iterator[list[BaseMetric]]:
    """While active, pending metrics are listed, and the caller decides what that means for the test."""
    metrics: list[BaseMetric] = []
    token = _PENDING_INSIDE.set(metrics)
    try:
        yield metrics
    finally:
        _PENDING_INSIDE.reset(token)


def set_pending(metric: BaseMetric, reason: str) -> PendingScore:
    """The score of a metric that has just been found pending; so is the running test, whatever it does with it."""
    score = PendingScore(metric=evaluator_name(metric), reason=reason)
    inside = _PENDING_INSIDE.get()
    if inside is None:
        score.record()
    else:
        inside.append(metric)
    return score


def evaluator_name(metric: BaseMetric) -> str:
    """The name of Proctor's evaluator behind a metric; the metric's own name if it is not one of Proctor's."""
    return metric._scorer.title if isinstance(metric, ProctorMetric) else metric.__name__


IMAGE = re.compile(r"\[DEEPEVAL:(?:IMAGE|PDF):[0-9a-f]{32}\]")
"""The placeholder of an image in a text."""


def to_evaluable(case: Any) -> Evaluable:
    """A test case as evaluators see it; raises `TypeError` for anything else."""
    if isinstance(case, LLMTestCase):
        return _from_case(case)
    if isinstance(case, ConversationalTestCase):
        return _from_conversation(case)
    raise TypeError(f"a test case must be an LLMTestCase or a ConversationalTestCase, not {type(case).__name__}")


def _refuse_parameters(internal: Mapping[str, Any]) -> None:
    """Raise `TypeError` for a parameter that is not one of DeepEval's internal ones."""
    for name in internal:
        if not name.startswith("_"):
            raise TypeError(f"measure() has no parameter {name!r}")


def _refuse_images(case: Any) -> None:
    if any(IMAGE.search(text) for text in _texts(case)):
        raise UsageError("the test case has an image (MLLMImage), and Proctor scores text; describe the image in words")


def _texts(case: Any) -> Iterator[str]:
    """The texts of a test case that a metric may read."""
    for part in (case, *(getattr(case, "turns", None) or ())):
        for name in ("input", "content", "actual_output", "expected_output", "context", "retrieval_context"):
            value = getattr(part, name, None)
            yield from [value] if isinstance(value, str) else value or ()


def _from_case(case: LLMTestCase) -> Evaluable:
    calls = _calls(case.tools_called)
    reply = Reply(case.actual_output or "", tool_calls=calls)
    return Evaluable(
        eval_input=(NamedData("input", case.input),),
        eval_output=(NamedData("output", case.actual_output or ""),),
        expectation=UNSET if case.expected_output is None else case.expected_output,
        eval_metadata=to_json({**(case.custom_column_key_values or {}), **(case.metadata or {})}) or None,
        description=case.name,
        tool_calls=calls,
        expected_tool_calls=_expected(case.expected_tools),
        context=None if case.context is None else tuple(case.context),
        retrieval_context=None if case.retrieval_context is None else tuple(case.retrieval_context),
        turns=(Exchange(ProctorTurn(case.input), reply),),
        usage=_usage(case),
        duration_ms=None if case.completion_time is None else case.completion_time * 1000,
    )


def _usage(case: LLMTestCase) -> Usage | None:
    usage = Usage(case.input_token_count, case.output_token_count, case.token_cost)
    return None if usage == Usage() else usage


def _from_conversation(case: ConversationalTestCase) -> Evaluable:
    exchanges = _exchanges(case.turns)
    fields = {"scenario": case.scenario, "chatbot_role": case.chatbot_role, "user_description": case.user_description}
    metadata = {name: value for name, value in fields.items() if value is not None} | to_json(case.metadata or {})
    passages = [passage for turn in case.turns for passage in turn.retrieval_context or ()]
    return Evaluable(
        eval_input=(NamedData("input", [exchange.turn.input for exchange in exchanges]),),
        eval_output=(NamedData("output", exchanges[-1].reply.text if exchanges else ""),),
        expectation=UNSET if case.expected_outcome is None else case.expected_outcome,
        eval_metadata=metadata or None,
        description=case.name,
        tool_calls=tuple(call for exchange in exchanges for call in exchange.reply.tool_calls),
        context=None if case.context is None else tuple(case.context),
        retrieval_context=tuple(passages) or None,
        turns=tuple(exchanges),
    )


def _exchanges(turns: Sequence[Turn]) -> list[Exchange]:
    """Pairs of user messages and answer; messages without an answer at the end are left out."""
    exchanges: list[Exchange] = []
    messages: list[str] = []
    for turn in turns:
        if turn.role == "user":
            messages.append(turn.content)
            continue
        passages = None if turn.retrieval_context is None else tuple(turn.retrieval_context)
        reply = Reply(turn.content, _calls(turn.tools_called), retrieval_context=passages)
        exchanges.append(Exchange(ProctorTurn("\n".join(messages), metadata=to_json(turn.metadata or {})), reply))
        messages = []
    return exchanges


def _calls(tools: Sequence[ToolCall] | None) -> tuple[ProctorToolCall, ...]:
    return tuple(
        ProctorToolCall(tool.name, to_json(tool.input_parameters or {}), to_json(tool.output)) for tool in tools or ()
    )


def _expected(tools: Sequence[ToolCall] | None) -> tuple[ExpectedCall, ...] | None:
    """The expected calls with literal parameters; if a call has none, any parameters match."""
    if tools is None:
        return None
    return tuple(
        ExpectedCall(
            tool.name,
            None if tool.input_parameters is None else _literal(tool.input_parameters),
            result=UNSET if tool.output is None else to_json(tool.output),
        )
        for tool in tools
    )


def _literal(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: Equals(to_json(value)) for name, value in parameters.items()}
