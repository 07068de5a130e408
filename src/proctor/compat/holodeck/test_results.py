"""The report of a run as HoloDeck lays it out, with what it leaves out: outcomes that are neither pass nor fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any, ClassVar, Self, cast

from proctor.base.errors import UsageError
from proctor.base.fields import nearest
from proctor.base.json_data import Json, plain
from proctor.base.records import record
from proctor.compat.holodeck.backend_results import TokenUsage
from proctor.evaluators.foreign.grader import ToolInvocation

UNMATCHED = -1
"""What `matched_call_index` is where no call fits."""


class _Model:
    """What HoloDeck's models can do beside having fields: be had as data, and be made from data."""

    __slots__ = ()

    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Any = None,
        exclude: Any = None,
        exclude_none: bool = False,
        exclude_defaults: bool = False,
    ) -> dict[str, Any]:
        """The fields as plain data, which JSON can hold in either `mode`; `include` and `exclude` name fields."""
        if mode not in ("python", "json"):
            raise UsageError(f"mode must be python or json, not {mode!r}")
        names = [f.name for f in fields(cast(Any, self)) if include is None or f.name in include]
        usual = _defaults(type(self)) if exclude_defaults else {}
        shown = {n: plain(getattr(self, n)) for n in names if n not in (exclude or ())}
        shown = {n: value for n, value in shown.items() if n not in usual or plain(usual[n]) != value}
        return cast(dict[str, Any], _without_none(shown)) if exclude_none else shown

    def model_dump_json(self, *, indent: int | None = None, **rest: Any) -> str:
        return json.dumps(self.model_dump(**rest), indent=indent)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed; its lists are its own if it is `deep`."""
        import copy

        made = copy.deepcopy(self) if deep else self
        changed: Self = replace(cast(Any, made), **(update or {}))
        return changed

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """The object that data describes; raises `ValueError` where a field is missing, unknown or of another type."""
        if isinstance(data, cls):
            return data
        from pydantic import TypeAdapter

        known = [f.name for f in fields(cast(Any, cls))]
        for name in data if isinstance(data, Mapping) else ():
            if name not in known:
                raise ValueError(f"{cls.__name__} has no field {name!r}{nearest(str(name), known)}")
        return TypeAdapter(cls).validate_python(data)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        return cls.model_validate(json.loads(text))


def _defaults(cls: type) -> dict[str, Any]:
    """The fields that need not be given, with what they are then."""
    required = {f.name: None for f in fields(cast(Any, cls)) if _is_required(f)}
    blank = cls(**required)
    return {f.name: getattr(blank, f.name) for f in fields(cast(Any, cls)) if f.name not in required}


def _is_required(item: Any) -> bool:
    from dataclasses import MISSING

    return item.default is MISSING and item.default_factory is MISSING


def _without_none(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


@record
class MetricResult(_Model):
    """What one metric said."""

    metric_name: str
    kind: str = "standard"
    """`standard`, `rag`, `geval` or `code`."""
    score: float | None = None
    """Between 0 and 1; `None` where the metric could not be measured, which is not a score of 0."""
    threshold: float | None = None
    passed: bool | None = None
    """`None` where the metric only informs, or could not be measured."""
    scale: str | None = "0-1"
    error: str | None = None
    retry_count: int | None = 0
    evaluation_time_ms: int | None = None
    model_used: str | None = None
    reasoning: str | None = None
    outcome: str = ""
    """`passed`, `failed`, `error`, `skipped` or `pending`."""


@record
class FileInput(_Model):
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
class ProcessedFileInput(_Model):
    """A file of a test, and what came of reading it."""

    original: FileInput
    markdown_content: str | None = None
    """What the agent was told of it; `None` where it was not read, or is not known any more."""
    metadata: dict[str, Json] | None = None
    cached_path: str | None = None
    processing_time_ms: int | None = None
    error: str | None = None


@record
class TurnResult(_Model):
    """One turn of a conversation."""

    turn_index: int = 0
    input: str = ""
    response: str | None = None
    ground_truth: str | None = None
    expected_tools: list[Json] | None = None
    tool_calls: list[str] = field(default_factory=list)
    tool_invocations: list[ToolInvocation] = field(default_factory=list)
    tools_matched: bool | None = None
    arg_match_details: list[dict[str, Json]] | None = None
    metric_results: list[MetricResult] = field(default_factory=list)
    passed: bool = False
    execution_time_ms: int = 0
    token_usage: TokenUsage | None = None
    errors: list[str] = field(default_factory=list)
    skipped: bool = False
    """The conversation ended before this turn."""
    grader_details: dict[str, Json] | None = None
    processed_files: list[ProcessedFileInput] = field(default_factory=list)


@record
class TestResult(_Model):
    """One test: its turns taken together."""

    __test__: ClassVar[bool] = False
    """Not a test of pytest's."""
    test_name: str | None = None
    test_input: str = ""
    processed_files: list[ProcessedFileInput] = field(default_factory=list)
    agent_response: str | None = None
    tool_calls: list[str] = field(default_factory=list)
    tool_invocations: list[ToolInvocation] = field(default_factory=list)
    expected_tools: list[Json] | None = None
    tools_matched: bool | None = None
    arg_match_details: list[dict[str, Json]] | None = None
    metric_results: list[MetricResult] = field(default_factory=list)
    ground_truth: str | None = None
    passed: bool = False
    execution_time_ms: int | None = 0
    errors: list[str] = field(default_factory=list)
    timestamp: str = ""
    token_usage: TokenUsage | None = None
    turns: list[TurnResult] | None = None
    grader_details: dict[str, Json] | None = None
    outcome: str = ""
    """`passed` or `failed`, or why neither is known: `error`, `skipped`, `pending`."""
    warnings: list[str] = field(default_factory=list)
    attempts: int = 1
    """How often the agent was asked or a turn was sent again, the first time included; `warnings` say why."""


@record
class ReportSummary(_Model):
    """Counts and means over all tests. `failed` counts whatever did not pass; `unmeasured` how many of these have no
    verdict at all."""

    total_tests: int = 0
    passed: int = 0
    failed: int = 0
    pass_rate: float = 0.0
    """Of 100."""
    total_duration_ms: int = 0
    """From the beginning of the run to its end, however many tests ran at once."""
    metrics_evaluated: dict[str, int] = field(default_factory=dict)
    average_scores: dict[str, float] = field(default_factory=dict)
    """Over every score, those of 0 included."""
    unmeasured: int = 0


@record
class TestReport(_Model):
    """All there is to say of a run."""

    __test__: ClassVar[bool] = False
    agent_name: str
    agent_config_path: str = ""
    results: list[TestResult] = field(default_factory=list)
    summary: ReportSummary = field(default_factory=ReportSummary)
    timestamp: str = ""
    holodeck_version: str = ""
    """What ran the tests, by name and version."""
    environment: dict[str, str] = field(default_factory=dict)
    outcome: str = ""
    """The verdict on the whole run."""
    reason: str = ""
    warnings: list[str] = field(default_factory=list)
