"""What HoloDeck's backends and reports consist of, to and from the replies that Proctor works with.

The models say what HoloDeck's leave out: outcomes that are neither pass nor fail.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Self, cast

from pydantic import TypeAdapter

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.documents import nearest
from proctor.base.errors import ProctorError, UnreadableReply, UsageError
from proctor.base.json_data import Json, plain, show
from proctor.evaluators.foreign import ToolInvocation


class HoloDeckModel:
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
        made = copy.deepcopy(self) if deep else self
        changed: Self = replace(cast(Any, made), **(update or {}))
        return changed

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """The object that data describes; raises `ValueError` where a field is missing, unknown or of another type."""
        if isinstance(data, cls):
            return data
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
    return item.default is MISSING and item.default_factory is MISSING


def _without_none(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


UNMATCHED = -1
"""What `matched_call_index` is where no call fits."""


@dataclass(frozen=True, slots=True)
class MetricResult(HoloDeckModel):
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


@dataclass(frozen=True, slots=True)
class FileInput(HoloDeckModel):
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


@dataclass(frozen=True, slots=True)
class ProcessedFileInput(HoloDeckModel):
    """A file of a test, and what came of reading it."""

    original: FileInput
    markdown_content: str | None = None
    """What the agent was told of it; `None` where it was not read, or is not known any more."""
    metadata: dict[str, Json] | None = None
    cached_path: str | None = None
    processing_time_ms: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TurnResult(HoloDeckModel):
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


@dataclass(frozen=True, slots=True)
class TestResult(HoloDeckModel):
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


@dataclass(frozen=True, slots=True)
class ReportSummary(HoloDeckModel):
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


@dataclass(frozen=True, slots=True)
class TestReport(HoloDeckModel):
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


class BackendError(ProctorError):
    """A backend could not do what it is for."""


class BackendInitError(BackendError):
    """A backend could not be made: a package, a key or the description of the agent is missing or wrong."""


class BackendSessionError(BackendError):
    """A conversation could not go on."""

    breaks_session = True
    """Two of these in a row end the conversation; after one, the next turn is still sent."""


class BackendTimeoutError(BackendError):
    """A backend took too long."""


@dataclass(frozen=True)
class TokenUsage(HoloDeckModel):
    """How many tokens an answer took."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0

    @classmethod
    def zero(cls) -> TokenUsage:
        return cls()

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.total_tokens + other.total_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
        )


@dataclass
class ExecutionResult:
    """What came back for one message."""

    response: str
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_results: list[dict[str, Any]] = field(default_factory=list)
    token_usage: TokenUsage = field(default_factory=TokenUsage.zero)
    structured_output: Any | None = None
    num_turns: int = 1
    is_error: bool = False
    error_reason: str | None = None
    thinking: str = ""


def result_of(reply: Reply, turns: int = 1) -> ExecutionResult:
    """A reply in HoloDeck's shape; calls and results share an id, and need not be paired by position."""
    calls = [
        {"name": c.name, "arguments": dict(c.arguments), "call_id": _id(c, i)} for i, c in enumerate(reply.tool_calls)
    ]
    results = [
        {
            "name": c.name,
            "result": c.error if c.error is not None else c.result,
            "call_id": _id(c, i),
            "is_error": c.error is not None,
        }
        for i, c in enumerate(reply.tool_calls)
    ]
    return ExecutionResult(reply.text, calls, results, _tokens(reply.usage), reply.structured, turns)


def reply_of(result: Any) -> Reply:
    """A backend's result as a reply; where it says that something went wrong, with what there is of an answer."""
    if not hasattr(result, "response"):
        raise UnreadableReply(f"the backend returned {type(result).__name__}, which is no ExecutionResult")
    error = None
    if getattr(result, "is_error", False):
        error = str(getattr(result, "error_reason", None) or "the backend gave no reason")
    answers = _Answers(_told(result, "tool_results"))
    calls = tuple(_call(call, answers) for call in _told(result, "tool_calls"))
    spent: Any = getattr(result, "token_usage", None)
    given, written = getattr(spent, "prompt_tokens", None), getattr(spent, "completion_tokens", None)
    usage = Usage(given, written) if given or written else None
    structured = plain(getattr(result, "structured_output", None))
    if not isinstance(result.response, str | None):
        raise UnreadableReply(f"the response of the backend is {type(result.response).__name__}, not str")
    return Reply(result.response or "", calls, usage, structured=structured, raw=result, error=error)


def _told(result: Any, name: str) -> list[dict[str, Any]]:
    told = getattr(result, name, None) or []
    if not isinstance(told, (list, tuple)) or not all(isinstance(item, dict) for item in told):
        raise UnreadableReply(f"the {name} of the backend are not a list of dictionaries: {told!r:.80}")
    return list(told)


class _Answers:
    """Results of tools, found by the call's id, else the next one of the same name."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        self._left = list(results)

    def take(self, name: str, identity: Any) -> dict[str, Any] | None:
        fits = [item for item in self._left if identity is not None and item.get("call_id") == identity]
        fits = fits or [item for item in self._left if item.get("name") == name and item.get("call_id") is None]
        if not fits:
            return None
        self._left.remove(fits[0])
        return fits[0]


def _call(call: dict[str, Any], answers: _Answers) -> ToolCall:
    name, identity = str(call.get("name", "")), call.get("call_id")
    given: Json = plain(call.get("arguments", call.get("args")))
    answer = answers.take(name, identity) or {}
    result, failed = plain(answer.get("result")), bool(answer.get("is_error"))
    error = (result if isinstance(result, str) else show(result)) if failed else None
    mark = None if identity is None else str(identity)
    return ToolCall.parse(name, given, result=None if failed else result, error=error, id=mark)


def _id(call: ToolCall, index: int) -> str:
    return call.id or f"{call.name}-{index + 1}"


def _tokens(usage: Usage | None) -> TokenUsage:
    given, written = (usage.input_tokens or 0, usage.output_tokens or 0) if usage is not None else (0, 0)
    return TokenUsage(given, written, given + written)
