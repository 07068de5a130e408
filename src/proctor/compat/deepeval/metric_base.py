"""What every metric is to DeepEval's users: something that measures a test case and remembers what it found."""

from __future__ import annotations

import contextvars
import functools
import inspect
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self
from unittest import SkipTest

from proctor.agents.reply import Reply, Usage
from proctor.agents.reply import ToolCall as Call
from proctor.base.documents import did_you_mean
from proctor.base.errors import JudgeFailed, NeedsModel, ProctorError
from proctor.base.event_loops import is_loop_running, run_in_session_loop, run_sync
from proctor.base.json_data import UNSET, to_json, to_text
from proctor.cases.matchers import Equals
from proctor.cases.suite import ExpectedCall, NamedData
from proctor.cases.suite import Turn as Asked
from proctor.cases.threshold import passes
from proctor.compat.deepeval.models import is_model, judge_of_model
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall, Turn
from proctor.evaluators.evaluation import Evaluable, Evaluation, EvaluationPending, Exchange, NothingToCompare
from proctor.evaluators.judged_evaluator import SkippedByFast
from proctor.judging.judge import OLD_RULES_NAME, RULES, is_judge
from proctor.judging.judges import Judges
from proctor.judging.session import current_session, judge_session
from proctor.running.assertions.score_matrix import named_evaluator


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
    _own_verdict: bool | None = None
    """What the evaluator behind it decided, whatever its score."""
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
        self.success = passes(self.score, self.threshold, self._own_verdict)
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
                raise TypeError(f"{cls.__name__} takes no {name!r}{did_you_mean(name, known)}")
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
        self._scorer = named_evaluator(evaluator)

    def measure(self, test_case: Any) -> float | None:
        """The score, which is kept with its reason; `None` where there is nothing to measure (`skipped`)."""
        __tracebackhide__ = True
        try:
            return (
                _in_a_thread(self, test_case) if is_loop_running() else run_in_session_loop(self.a_measure(test_case))
            )
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
        except SkippedByFast as left_out:
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
            with judge_session(replace(current_session(), threshold=self.threshold)):
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
        self._own_verdict = evaluation.passed
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
    return SkipTest(reason)


def require(metric: ProctorMetric, test_case: Any) -> None:
    """Raises `MissingTestCaseParamsError` for what the test case lacks; an empty answer is an answer."""
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
    """The judge: `openai:gpt-5-mini`, `rules`, a Judge. A name without a provider is OpenAI's, as in DeepEval."""
    if model is None or is_judge(model):
        return model
    if is_model(model):
        return judge_of_model(model)
    if not isinstance(model, (str, dict)):
        raise TypeError(
            f"model must be a name such as 'openai:gpt-5-mini', an object of options, a DeepEvalBaseLLM or a Judge, "
            f"not a {type(model).__name__}"
        )
    is_bare = isinstance(model, str) and ":" not in model and model not in (RULES, OLD_RULES_NAME)
    return f"openai:{model}" if is_bare else model


def _threshold(given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1:
        raise ValueError(f"threshold must be a number from 0 to 1, not {given!r}")
    return float(given)


def _logs(metric: ProctorMetric, evaluation: Evaluation) -> str:
    lines = [f"{metric.__name__}: {metric.score:.4g} (threshold {metric.threshold}) {evaluation.reasoning}".rstrip()]
    details = {name: value for name, value in evaluation.details.items() if name != "judge"}
    return "\n".join([*lines, *(f"  {name}: {to_text(value)}" for name, value in details.items())])


def _in_a_thread(metric: ProctorMetric, test_case: Any) -> float | None:
    """For a metric of the user that calls `measure` from inside an event loop."""

    def measure() -> float | None:
        with judge_session(replace(current_session(), judges=Judges())):  # those of this loop wait for it
            return run_sync(metric.a_measure(test_case))

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(contextvars.copy_context().run, measure).result()


def evaluable_of(case: Any) -> Evaluable:
    """What is to be evaluated of a test case; raises `TypeError` for anything else."""
    if isinstance(case, LLMTestCase):
        return _single(case)
    if isinstance(case, ConversationalTestCase):
        return _conversation(case)
    raise TypeError(f"a test case is an LLMTestCase or a ConversationalTestCase, not {type(case).__name__}")


def _single(case: LLMTestCase) -> Evaluable:
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
        turns=(Exchange(Asked(case.input), reply),),
        usage=_usage(case),
        duration_ms=None if case.completion_time is None else case.completion_time * 1000,
    )


def _usage(case: LLMTestCase) -> Usage | None:
    usage = Usage(case.input_token_count, case.output_token_count, case.token_cost)
    return None if usage == Usage() else usage


def _conversation(case: ConversationalTestCase) -> Evaluable:
    exchanges = _exchanges(case.turns)
    told = {"scenario": case.scenario, "chatbot_role": case.chatbot_role, "user_description": case.user_description}
    metadata = {name: value for name, value in told.items() if value is not None} | to_json(case.metadata or {})
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
    """What the user said up to each answer, and the answer; messages without an answer at the end are left out."""
    found: list[Exchange] = []
    asked: list[str] = []
    for turn in turns:
        if turn.role == "user":
            asked.append(turn.content)
            continue
        passages = None if turn.retrieval_context is None else tuple(turn.retrieval_context)
        reply = Reply(turn.content, _calls(turn.tools_called), retrieval_context=passages)
        found.append(Exchange(Asked("\n".join(asked), metadata=to_json(turn.metadata or {})), reply))
        asked = []
    return found


def _calls(tools: Sequence[ToolCall] | None) -> tuple[Call, ...]:
    return tuple(Call(tool.name, to_json(tool.input_parameters or {}), to_json(tool.output)) for tool in tools or ())


def _expected(tools: Sequence[ToolCall] | None) -> tuple[ExpectedCall, ...] | None:
    """Parameters that are not given say nothing; those that are given are meant as they stand."""
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


def _literal(given: dict[str, Any]) -> dict[str, Any]:
    return {name: Equals(to_json(value)) for name, value in given.items()}
