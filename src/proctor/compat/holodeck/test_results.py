"""HoloDeck's models of results: tests, turns, metrics and the report on a run.

They also have outcomes other than pass and fail, which HoloDeck's models leave out.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from proctor.compat.holodeck.models import FileInput, HoloDeckModel

UNMATCHED = -1
"""The `matched_call_index` if no call matches."""


class TokenUsage(HoloDeckModel):
    """The tokens that an answer took."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0

    @classmethod
    def zero(cls) -> TokenUsage:
        return cls()

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(**{name: getattr(self, name) + getattr(other, name) for name in TokenUsage.model_fields})


class ToolInvocation(HoloDeckModel):
    """A tool call as graders and reports see it: a copy, which a grader may change."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)
    result: Any = None
    bytes: int = 0
    """The size of the result as text."""
    duration_ms: float | None = None
    error: str | None = None


class MetricResult(HoloDeckModel):
    """The result of one metric."""

    metric_name: str
    kind: str = "standard"
    """`standard`, `rag`, `geval` or `code`."""
    score: float | None = None
    """Between 0 and 1; None if the metric could not be measured, which is not a score of 0."""
    threshold: float | None = None
    passed: bool | None = None
    """None if the metric is report only, or could not be measured."""
    scale: str | None = "0-1"
    error: str | None = None
    retry_count: int | None = 0
    evaluation_time_ms: int | None = None
    model_used: str | None = None
    reasoning: str | None = None
    outcome: str = ""
    """`passed`, `failed`, `error`, `skipped` or `pending`."""


class ProcessedFileInput(HoloDeckModel):
    """A file of a test and the result of reading it."""

    original: FileInput
    markdown_content: str | None = None
    """The text sent to the agent; None if the file was not read or the text was not stored."""
    metadata: dict[str, Any] | None = None
    cached_path: str | None = None
    processing_time_ms: int | None = None
    error: str | None = None


class TurnResult(HoloDeckModel):
    """One turn of a conversation."""

    turn_index: int = 0
    input: str = ""
    response: str | None = None
    ground_truth: str | None = None
    expected_tools: list[Any] | None = None
    tool_calls: list[str] = Field(default_factory=list)
    tool_invocations: list[ToolInvocation] = Field(default_factory=list)
    tools_matched: bool | None = None
    arg_match_details: list[dict[str, Any]] | None = None
    metric_results: list[MetricResult] = Field(default_factory=list)
    passed: bool = False
    execution_time_ms: int = 0
    token_usage: TokenUsage | None = None
    errors: list[str] = Field(default_factory=list)
    skipped: bool = False
    """The conversation ended before this turn."""
    grader_details: dict[str, Any] | None = None
    processed_files: list[ProcessedFileInput] = Field(default_factory=list)


class TestResult(HoloDeckModel):
    """One test, with its turns combined."""

    test_name: str | None = None
    test_input: str = ""
    processed_files: list[ProcessedFileInput] = Field(default_factory=list)
    agent_response: str | None = None
    tool_calls: list[str] = Field(default_factory=list)
    tool_invocations: list[ToolInvocation] = Field(default_factory=list)
    expected_tools: list[Any] | None = None
    tools_matched: bool | None = None
    arg_match_details: list[dict[str, Any]] | None = None
    metric_results: list[MetricResult] = Field(default_factory=list)
    ground_truth: str | None = None
    passed: bool = False
    execution_time_ms: int | None = 0
    errors: list[str] = Field(default_factory=list)
    reason: str = ""
    """Why the test failed or has no result; empty if every turn was answered."""
    timestamp: str = ""
    token_usage: TokenUsage | None = None
    turns: list[TurnResult] | None = None
    grader_details: dict[str, Any] | None = None
    outcome: str = ""
    """`passed`, `failed`, or why there is no result: `error`, `skipped`, `pending`."""
    warnings: list[str] = Field(default_factory=list)
    attempts: int = 1
    """How often the agent was called, retries included; `warnings` says why."""


class ReportSummary(HoloDeckModel):
    """Counts and means over all tests.

    `failed` counts every test that did not pass; `unmeasured` counts those of them that have no result.
    """

    total_tests: int = 0
    passed: int = 0
    failed: int = 0
    pass_rate: float = 0.0
    """In percent."""
    total_duration_ms: int = 0
    """From the start of the run to its end, however many tests ran in parallel."""
    metrics_evaluated: dict[str, int] = Field(default_factory=dict)
    average_scores: dict[str, float] = Field(default_factory=dict)
    """Over all scores, including zeros."""
    unmeasured: int = 0


class TestReport(HoloDeckModel):
    """The report on a run."""

    agent_name: str
    agent_config_path: str = ""
    results: list[TestResult] = Field(default_factory=list)
    summary: ReportSummary = Field(default_factory=ReportSummary)
    timestamp: str = ""
    holodeck_version: str = ""
    """The name and version of the program that ran the tests."""
    environment: dict[str, str] = Field(default_factory=dict)
    outcome: str = ""
    """The verdict of the run."""
    reason: str = ""
    warnings: list[str] = Field(default_factory=list)
