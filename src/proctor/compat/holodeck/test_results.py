"""The report of a run as HoloDeck lays it out, with what it leaves out: outcomes that are neither pass nor fail."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from proctor.base.json_data import Json, plain
from proctor.base.records import record
from proctor.compat.holodeck.backend_results import TokenUsage
from proctor.evaluators.foreign.grader import ToolInvocation


class _Dumped:
    """What can be had as plain data, as HoloDeck's models can."""

    __slots__ = ()

    def model_dump(self) -> dict[str, Any]:
        return dict(plain(self))

    def model_dump_json(self, indent: int | None = None) -> str:
        return json.dumps(self.model_dump(), indent=indent)


@record
class MetricResult(_Dumped):
    """What one metric said."""

    metric_name: str
    kind: str
    """`standard`, `rag`, `geval` or `code`."""
    score: float | None
    """Between 0 and 1; `None` where the metric could not be measured, which is not a score of 0."""
    threshold: float | None = None
    passed: bool | None = None
    """`None` where the metric only informs, or could not be measured."""
    scale: str = "0-1"
    error: str | None = None
    retry_count: int = 0
    evaluation_time_ms: int | None = None
    model_used: str | None = None
    reasoning: str | None = None
    outcome: str = ""
    """`passed`, `failed`, `error`, `skipped` or `pending`."""


@record
class FileInput(_Dumped):
    """A file as a test names it."""

    path: str | None = None
    url: str | None = None
    type: str | None = None
    description: str | None = None
    pages: list[int] | None = None
    sheet: str | None = None
    range: str | None = None
    cache: bool | None = None

    @property
    def name(self) -> str:
        return self.path or self.url or "unnamed"


@record
class ProcessedFileInput(_Dumped):
    """A file of a test, and what came of reading it."""

    original: FileInput
    markdown_content: str | None = None
    """What the agent was told of it; `None` where it was not read, or is not known any more."""
    metadata: dict[str, Json] | None = None
    cached_path: str | None = None
    processing_time_ms: int | None = None
    error: str | None = None


@record
class TurnResult(_Dumped):
    """One turn of a conversation."""

    turn_index: int
    input: str
    response: str | None = None
    ground_truth: str | None = None
    expected_tools: list[Json] | None = None
    tool_calls: tuple[str, ...] = ()
    tool_invocations: tuple[ToolInvocation, ...] = ()
    tools_matched: bool | None = None
    arg_match_details: list[dict[str, Json]] | None = None
    metric_results: tuple[MetricResult, ...] = ()
    passed: bool = False
    execution_time_ms: int = 0
    token_usage: TokenUsage | None = None
    errors: tuple[str, ...] = ()
    skipped: bool = False
    """The conversation ended before this turn."""
    grader_details: dict[str, Json] | None = None
    processed_files: tuple[ProcessedFileInput, ...] = ()


@record
class TestResult(_Dumped):
    """One test: its turns taken together."""

    __test__: ClassVar[bool] = False
    """Not a test of pytest's."""
    test_name: str
    test_input: str
    processed_files: tuple[ProcessedFileInput, ...] = ()
    agent_response: str | None = None
    tool_calls: tuple[str, ...] = ()
    tool_invocations: tuple[ToolInvocation, ...] = ()
    expected_tools: list[Json] | None = None
    tools_matched: bool | None = None
    arg_match_details: list[dict[str, Json]] | None = None
    metric_results: tuple[MetricResult, ...] = ()
    ground_truth: str | None = None
    passed: bool = False
    execution_time_ms: int = 0
    errors: tuple[str, ...] = ()
    timestamp: str = ""
    token_usage: TokenUsage | None = None
    turns: tuple[TurnResult, ...] | None = None
    grader_details: dict[str, Json] | None = None
    outcome: str = ""
    """`passed` or `failed`, or why neither is known: `error`, `skipped`, `pending`."""
    warnings: tuple[str, ...] = ()


@record
class ReportSummary(_Dumped):
    """Counts and means over all tests. `failed` counts whatever did not pass; `unmeasured` how many of these have no
    verdict at all."""

    total_tests: int
    passed: int
    failed: int
    pass_rate: float
    """Of 100."""
    total_duration_ms: int
    """From the beginning of the run to its end, however many tests ran at once."""
    metrics_evaluated: dict[str, int]
    average_scores: dict[str, float]
    """Over every score, those of 0 included."""
    unmeasured: int = 0


@record
class TestReport(_Dumped):
    """All there is to say of a run."""

    __test__: ClassVar[bool] = False
    agent_name: str
    agent_config_path: str
    results: tuple[TestResult, ...]
    summary: ReportSummary
    timestamp: str
    holodeck_version: str
    """What ran the tests, by name and version."""
    environment: dict[str, str]
    outcome: str = ""
    """The verdict on the whole run."""
    reason: str = ""
    warnings: tuple[str, ...] = ()
