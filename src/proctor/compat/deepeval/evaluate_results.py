"""What `evaluate` returns, the configs it takes, and the summary of a test case that did not pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from proctor.compat.deepeval.metric_base import evaluable_of
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, ToolCall, Turn
from proctor.evaluators.evaluation import Evaluable
from proctor.reporting.explain import BRIEF, Fact, as_text, call_text, expected_call_text, shorten
from proctor.reporting.terminal.screen import escape_control


@dataclass
class MetricData:
    """What one metric said of one test case."""

    name: str
    threshold: float | None
    success: bool | None
    """`None` where there is no verdict: nothing to measure, or no threshold."""
    score: float | None = None
    reason: str | None = None
    strict_mode: bool = False
    evaluation_model: str | None = None
    error: str | None = None
    evaluation_cost: float | None = None
    verbose_logs: str | None = None
    skipped: bool = False
    flaky: bool = False
    """Whether it only reports, whatever it found."""
    pending: bool = False
    """Whether it is skipped because the judge cannot tell."""

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
    """One test case and what all metrics said of it."""

    __test__: ClassVar[bool] = False
    name: str
    success: bool | None
    """`None` where nothing failed and a judge could not tell: neither a pass nor a failure."""
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
    """All test cases, in the order they were given."""

    test_results: list[TestResult] = field(default_factory=list)
    identifier: str | None = None
    hyperparameters: dict[str, Any] | None = None


@dataclass(frozen=True)
class AsyncConfig:
    """How many test cases are measured at once; one after the other if not `run_async`."""

    run_async: bool = True
    max_concurrent: int = 20
    throttle_value: float = 0
    """Seconds between the beginnings of two test cases."""

    def __post_init__(self) -> None:
        if isinstance(self.throttle_value, bool) or not isinstance(self.throttle_value, (int, float)):
            raise ValueError(f"throttle_value must be a number of seconds, not {self.throttle_value!r}")
        if isinstance(self.max_concurrent, bool) or not isinstance(self.max_concurrent, int) or self.max_concurrent < 1:
            raise ValueError(f"max_concurrent must be a whole number and at least 1, not {self.max_concurrent!r}")


@dataclass(frozen=True)
class DisplayConfig:
    """Whether results are printed, and which."""

    print_results: bool = True
    display_option: Literal["all", "failing", "passing"] = "all"
    show_indicator: bool = True
    """Whether a metric says that it is under way; here none does, so that both values are honoured."""
    verbose_mode: bool | None = None
    """Whether every metric prints what it found; `None` leaves it to the metric."""

    def __post_init__(self) -> None:
        if self.display_option not in ("all", "failing", "passing"):
            raise ValueError(f"display_option must be all, failing or passing, not {self.display_option!r}")


@dataclass(frozen=True)
class CacheConfig:
    """Whether replies of judges are kept in the store (`.proctor`), and taken from there."""

    write_cache: bool = True
    use_cache: bool = False


@dataclass(frozen=True)
class ErrorConfig:
    """What a metric that could not measure means for its test case. Either way, all the others are measured."""

    ignore_errors: bool = False
    """Whether the others decide alone; without any other, nothing passes."""
    skip_on_missing_params: bool = False
    """Whether a test case that lacks what a metric needs is skipped by it, which is no error."""


def verdict(found: list[MetricData], errors: ErrorConfig) -> bool | None:
    """A test case passes if something was measured, nothing failed, and nothing broke, unless that is ignored.

    `None`: nothing failed, and a judge could not tell.
    """
    firm = [data for data in found if not data.flaky]
    decided = [data.success for data in firm if data.error is None and data.success is not None]
    broken = any(data.error is not None for data in firm) and not errors.ignore_errors
    if any(data.pending for data in firm) and all(decided) and not broken:
        return None
    return bool(decided) and all(decided) and not broken


def case_summary(case: Any) -> str:
    """Question, answer, tool calls with arguments and results, and passages, in two columns."""
    facts = _turns(case.turns) if isinstance(case, ConversationalTestCase) else _exchange(case)
    return escape_control(as_text([Fact(fact.label, shorten(fact.text, BRIEF.value)) for fact in facts]))


def _exchange(case: LLMTestCase) -> Iterator[Fact]:
    seen = evaluable_of(case)
    yield Fact("input", case.input)
    if case.expected_output is not None:
        yield Fact("expected", case.expected_output)
    if case.actual_output is not None:
        yield Fact("got", case.actual_output or "(an empty answer)")
    if seen.expected_tool_calls:
        yield Fact("expected calls", _lines(expected_call_text(call, BRIEF.value) for call in seen.expected_tool_calls))
    if case.tools_called is not None:
        yield Fact("calls", _calls(seen))
    for label in ("context", "retrieval_context"):
        if getattr(case, label):
            yield Fact(label.replace("_", " "), _lines(getattr(case, label)))


def _turns(turns: Iterable[Turn]) -> Iterator[Fact]:
    for turn in turns:
        yield Fact(turn.role, turn.content)
        if turn.tools_called:
            yield Fact("calls", _calls(evaluable_of(ConversationalTestCase(turns=[turn]))))


def _calls(seen: Evaluable) -> str:
    return _lines(call_text(call, BRIEF.result) for call in seen.tool_calls) or "none"


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts)
