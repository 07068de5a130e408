"""The configs and results of `evaluate`, and the summary of a test case that did not pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from proctor.base.open_checks import OpenCheck
from proctor.compat.deepeval.metric_base import to_evaluable
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall, Turn
from proctor.evaluators.evaluation import Evaluable
from proctor.reporting.explain import BRIEF, Fact, as_text, call_text, expected_call_text, shorten
from proctor.reporting.terminal.screen import escape_control


@dataclass
class MetricData:
    """The result of one metric for one test case."""

    name: str
    threshold: float | None
    success: bool | None
    """None if there is no result: nothing to measure, pending, or no threshold."""
    score: float | None = None
    """A `PendingScore` if it is pending: no comparison with a number holds."""
    reason: str | None = None
    strict_mode: bool = False
    evaluation_model: str | None = None
    error: str | None = None
    evaluation_cost: float | None = None
    verbose_logs: str | None = None
    skipped: bool = False
    flaky: bool = False
    """Whether it is only reported and never fails a test case."""
    pending: bool = False
    """Whether the judge cannot tell, so that a model or a person must decide."""
    evaluator: str = ""
    """The evaluator behind the metric."""

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.name} (error: {self.error})"
        if self.pending:
            return f"{self.name} (pending: {self.reason or 'the judge cannot tell'})"
        if self.skipped or self.score is None:
            return f"{self.name} (skipped: {self.reason or 'nothing to measure'})"
        strict = ", strict" if self.strict_mode else ""
        reason = f", reason: {self.reason}" if self.reason else ""
        flaky = ", flaky" if self.flaky else ""
        return f"{self.name} (score: {self.score:.4g}, threshold: {self.threshold}{strict}{flaky}{reason})"


@dataclass
class TestResult:
    """One test case and the results of its metrics."""

    __test__: ClassVar[bool] = False
    name: str
    success: bool | None
    """None if nothing failed but a judge could not tell."""
    metrics_data: list[MetricData]
    conversational: bool
    index: int
    input: str | None = None
    actual_output: str | None = None
    expected_output: str | None = None
    context: list[str] | None = None
    retrieval_context: list[str] | None = None
    tools_called: list[ToolCall] | None = None
    expected_tools: list[ToolCall] | None = None
    turns: list[Turn] | None = None
    metadata: dict[str, Any] | None = None


@dataclass
class EvaluationResult:
    """The results of all test cases, in their order."""

    test_results: list[TestResult] = field(default_factory=list)
    identifier: str | None = None
    hyperparameters: dict[str, Any] | None = None


@dataclass(frozen=True)
class AsyncConfig:
    """How many test cases run in parallel; one after the other without `run_async`."""

    run_async: bool = True
    max_concurrent: int = 20
    throttle_value: float = 0
    """Seconds between the starts of two test cases."""

    def __post_init__(self) -> None:
        if isinstance(self.throttle_value, bool) or not isinstance(self.throttle_value, (int, float)):
            raise ValueError(f"throttle_value must be a number of seconds, not {self.throttle_value!r}")
        if isinstance(self.max_concurrent, bool) or not isinstance(self.max_concurrent, int) or self.max_concurrent < 1:
            raise ValueError(f"max_concurrent must be a whole number, 1 or more, not {self.max_concurrent!r}")


@dataclass(frozen=True)
class DisplayConfig:
    """Whether results are printed, and which."""

    print_results: bool = True
    display_option: Literal["all", "failing", "passing"] = "all"
    show_indicator: bool = True
    """Has no effect: Proctor prints no progress indicator for a metric."""
    verbose_mode: bool | None = None
    """Whether every metric prints its details; None leaves it to the metric."""
    inspect_after_run: bool = False
    """Has no effect: `proctor view` shows runs."""

    def __post_init__(self) -> None:
        if self.display_option not in ("all", "failing", "passing"):
            raise ValueError(f"display_option must be all, failing or passing, not {self.display_option!r}")


@dataclass(frozen=True)
class CacheConfig:
    """Whether judge replies are written to the store (`.proctor`) and read from it."""

    write_cache: bool = True
    use_cache: bool = False


@dataclass(frozen=True)
class ErrorConfig:
    """What an error in a metric means for its test case. The other metrics run in any case."""

    ignore_errors: bool = False
    """Whether the other metrics decide alone; if there are none, the test case does not pass."""
    skip_on_missing_params: bool = False
    """Whether a metric is skipped, instead of an error, if the test case lacks what it needs."""


def case_success(metrics: list[MetricData], errors: ErrorConfig) -> bool | None:
    """Whether a test case passes: at least one metric has a result, and none failed or broke.

    Errors do not count if `errors` says to ignore them. None if nothing failed but a judge could not tell.
    """
    deciding = [data for data in metrics if not data.flaky]
    successes = [data.success for data in deciding if data.error is None and data.success is not None]
    broken = any(data.error is not None for data in deciding) and not errors.ignore_errors
    if any(data.pending for data in deciding) and all(successes) and not broken:
        return None
    return bool(successes) and all(successes) and not broken


def open_check(metrics: Sequence[MetricData], case: Any) -> OpenCheck | None:
    """The pending metrics that decide, as a check without a result; None if there are none."""
    names = tuple(dict.fromkeys(data.evaluator or data.name for data in metrics if data.pending and not data.flaky))
    return OpenCheck(names, "model", details(metrics, case)) if names else None


def details(metrics: Sequence[MetricData], case: Any) -> str:
    """What each metric that did not pass says, and the test case."""
    groups = {
        "failed": [data for data in metrics if data.error is None and data.success is False],
        "error (not a failure of the application)": [data for data in metrics if data.error is not None],
        "pending": [data for data in metrics if data.pending],
        "skipped": [data for data in metrics if data.error is None and data.skipped and not data.pending],
    }
    lines = [f"{title}: {data}" for title, items in groups.items() for data in items] or ["no metric had a result"]
    return "\n".join([*lines, "", case_summary(case)])


def case_summary(case: Any) -> str:
    """The input, answer, tool calls with arguments and results, and passages of a test case, in two columns."""
    facts = _turns(case.turns) if isinstance(case, ConversationalTestCase) else _exchange(case)
    return escape_control(as_text([Fact(fact.label, shorten(fact.text, BRIEF.value)) for fact in facts]))


def _exchange(case: LLMTestCase) -> Iterator[Fact]:
    evaluable = to_evaluable(case)
    yield Fact("input", case.input)
    if case.expected_output is not None:
        yield Fact("expected", case.expected_output)
    if case.actual_output is not None:
        yield Fact("output", case.actual_output or "(empty)")
    if evaluable.expected_tool_calls:
        yield Fact(
            "expected calls", _lines(expected_call_text(call, BRIEF.value) for call in evaluable.expected_tool_calls)
        )
    if case.tools_called is not None:
        yield Fact("calls", _calls(evaluable))
    for label in ("context", "retrieval_context"):
        if getattr(case, label):
            yield Fact(label.replace("_", " "), _lines(getattr(case, label)))


def _turns(turns: Iterable[Turn]) -> Iterator[Fact]:
    for turn in turns:
        yield Fact(turn.role, turn.content)
        if turn.tools_called:
            yield Fact("calls", _calls(to_evaluable(ConversationalTestCase(turns=[turn]))))


def _calls(evaluable: Evaluable) -> str:
    return _lines(call_text(call, BRIEF.result) for call in evaluable.tool_calls) or "none"


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts)
