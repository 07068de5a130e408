"""HoloDeck's models of an `agent.yaml`: the agent, its tests and metrics, and how they run.

The field names and defaults are HoloDeck's. The models check the shape of the file. Files, keys, packages and features
that Proctor does not support are checked when the agent is built (`agent_reader`).

A wrong tool or test is one problem with its place, so rules about several fields name the key to change.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    SecretStr,
    Strict,
    StrictBool,
    Tag,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from proctor.base.documents import did_you_mean, json_type_name
from proctor.base.environment import VARIABLE
from proctor.base.errors import UsageError
from proctor.base.json_data import Json, fingerprint, to_json
from proctor.base.references import is_reference
from proctor.cases.suite import Suite
from proctor.cases.validation import problem_at
from proctor.compat.holodeck.arg_matchers import ArgMatcher, parse_arg_matcher, to_file_form
from proctor.compat.holodeck.enums import AuthProvider, PermissionMode, ProviderEnum, RAGMetricType
from proctor.compat.holodeck.metric_names import JUDGED, RAG, STANDARD
from proctor.compat.holodeck.variables import MASKED
from proctor.judging.provider_table import parse_model_name

FILE_TYPES = ("image", "pdf", "text", "excel", "word", "powerpoint", "csv")
MAX_FILES = 10
MAX_TOOLS = 50
MAX_RETRIES = 3
MAX_MARK = 5
"""The highest mark on the default scale of HoloDeck's judges."""
DEFAULT_TEMPERATURE = 0.3
DEFAULT_MAX_TOKENS = 1000
"""HoloDeck's defaults for calls to models."""
_RESPONSE_PATH = r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*|\[\d{1,9}\])*"
"""The path of a metric's value in structured output: keys and indices."""


class HoloDeckModel(BaseModel):
    """A model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())
    __test__: ClassVar[bool] = False

    def model_dump_json(self, *, indent: int | None = None, **options: Any) -> str:
        """The model as JSON in ASCII, so that an unpaired surrogate in an answer breaks nothing."""
        return json.dumps(to_json(self.model_dump(**options)), indent=indent)


class ExtensibleModel(HoloDeckModel):
    """A model that ignores `x-` keys, which users may add freely."""

    @model_validator(mode="before")
    @classmethod
    def _without_extensions(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: value for key, value in data.items() if not str(key).startswith("x-")}


def extensions(data: Json) -> dict[str, Json]:
    """The `x-` keys of an object."""
    return {key: value for key, value in data.items() if key.startswith("x-")} if isinstance(data, Mapping) else {}


def _not_blank(text: str) -> str:
    if not text.strip():
        raise problem_at((), "must not be blank")
    return text


def _whole_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _int_if_whole(value: float) -> float:
    """30 instead of 30.0, as in the file."""
    return int(value) if value.is_integer() else value


def _check_seconds(value: float) -> float:
    if value <= 0:
        raise problem_at((), "must be more than 0 seconds")
    return value


Text = Annotated[str, AfterValidator(_not_blank)]
Whole = Annotated[int, BeforeValidator(_whole_number), Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False), AfterValidator(_int_if_whole)]
Seconds = Annotated[Number, AfterValidator(_check_seconds)]
Share = Annotated[Number, Field(ge=0, le=1)]
Count = Annotated[Whole, Field(ge=1)]


class LLMProvider(HoloDeckModel):
    """A model and its settings."""

    provider: ProviderEnum | Text
    name: Text
    temperature: Annotated[Number, Field(ge=0, le=2)] | None = DEFAULT_TEMPERATURE
    max_tokens: Count | None = DEFAULT_MAX_TOKENS
    top_p: Share | None = None
    endpoint: Text | None = None
    api_key: SecretStr | None = None
    """`${NAME}` until the model is called."""
    api_version: Text | None = None
    auth_provider: AuthProvider | None = None

    @field_validator("provider", mode="before")
    @classmethod
    def _check_provider(cls, provider: Any) -> Any:
        """One of HoloDeck's providers becomes the member of its enumeration."""
        if not isinstance(provider, str):
            return provider
        try:
            parse_model_name(f"{provider}:model")
        except UsageError as error:
            raise problem_at((), f"cannot be used: {error}") from None
        return ProviderEnum(provider) if provider in set(ProviderEnum) else provider

    def file_data(self) -> dict[str, Any]:
        """The data in the file, without defaults; instead of the key, the variable that holds it."""
        data = self.model_dump(mode="json", exclude_unset=True)
        if self.api_key is not None:
            variable = next(iter(self.written_key()), None)
            data["api_key"] = self.api_key.get_secret_value() if variable is None else f"${{{variable}}}"
        return data

    def written_key(self) -> dict[str, str]:
        """A key that a program has set, by the name of a variable that stands for it wherever data is stored."""
        key = "" if self.api_key is None else self.api_key.get_secret_value()
        if key in ("", MASKED) or VARIABLE.search(key):
            return {}
        return {f"HOLODECK_API_KEY_{fingerprint(key)[:8].upper()}": key}


# Tests


class FileInput(HoloDeckModel):
    """A file as a test names it."""

    path: Text | None = None
    url: Text | None = None
    type: Literal["image", "pdf", "text", "excel", "word", "powerpoint", "csv"] = Field(
        description=f"one of {', '.join(FILE_TYPES)}"
    )
    description: str | None = None
    pages: list[Any] | None = None
    sheet: Text | None = None
    range: Text | None = None
    cache: StrictBool | None = None

    @field_validator("pages")
    @classmethod
    def _check_pages(cls, pages: list[Any] | None) -> list[Any] | None:
        for index, page in enumerate(pages or ()):
            if isinstance(page, bool) or not isinstance(page, int) or page < 1:
                raise problem_at((index,), "must be a page number, 1 or more")
        return pages

    @model_validator(mode="after")
    def _check_location(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise problem_at((), "needs either 'path' or 'url'")
        return self

    @property
    def name(self) -> str:
        return self.path or self.url or "unnamed"

    @property
    def options(self) -> dict[str, Json]:
        """Which part of the file is read, and whether a download is stored."""
        options = {"pages": self.pages, "sheet": self.sheet, "range": self.range, "cache": self.cache}
        return {key: value for key, value in options.items() if value is not None}


class ExpectedTool(HoloDeckModel):
    """An expected call, with arguments and a count; each argument is read as a matcher."""

    name: Text
    args: dict[str, Any] | None = None
    count: Count = 1

    @field_validator("args")
    @classmethod
    def _read_args(cls, args: dict[str, Any] | None) -> dict[str, ArgMatcher] | None:
        """An object with `fuzzy` or `regex` is a matcher; anything else is the exact value."""
        return None if args is None else {name: parse_arg_matcher(name, value) for name, value in args.items()}

    @field_serializer("args")
    def _write_args(self, args: dict[str, Any] | None) -> dict[str, Json] | None:
        return None if args is None else {name: to_file_form(value) for name, value in args.items()}


def _tool_name_or_object(item: Any) -> Any:
    if isinstance(item, str) and not item.strip():
        raise problem_at((), "must not be blank; write the name of a tool")
    if not isinstance(item, str | Mapping | ExpectedTool):
        raise problem_at((), f"must be a tool's name or an object with 'name', not {json_type_name(item)}")
    return item


def _text_or_object(item: Any) -> str:
    return "text" if isinstance(item, str) else "object"


ToolExpectation = Annotated[
    Annotated[str, Tag("text")] | Annotated[ExpectedTool, Tag("object")],
    Discriminator(_text_or_object),
    BeforeValidator(_tool_name_or_object),
]


BuiltInMetricName = Literal[
    "bleu", "rouge", "meteor", "equality", "numeric", "groundedness", "relevance", "coherence", "fluency"
]


class StandardMetric(HoloDeckModel):
    """A metric that is computed, or for which a judge gives a mark."""

    type: Literal["standard"] = "standard"
    metric: BuiltInMetricName = Field(description=f"one of {', '.join(STANDARD)}")
    threshold: Annotated[Number, Field(ge=0)] | None = None
    enabled: StrictBool = True
    scale: Annotated[Whole, Field(ge=2)] | None = None
    model: LLMProvider | None = None
    fail_on_error: StrictBool = False
    """Only a file that says `false` makes the metric optional; see `is_optional`."""
    retry_on_failure: Annotated[Whole, Field(ge=1, le=MAX_RETRIES)] | None = None
    timeout_ms: Count | None = None
    custom_prompt: Text | None = None
    case_insensitive: StrictBool = False
    strip_whitespace: StrictBool = False
    strip_punctuation: StrictBool = False
    absolute_tolerance: Annotated[Number, Field(ge=0)] = 1e-6
    relative_tolerance: Annotated[Number, Field(ge=0)] = 0.0
    accept_percent: StrictBool = False
    accept_thousands_separators: StrictBool = False
    response_path: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        maximum = (self.scale or MAX_MARK) if self.metric in JUDGED else 1
        if self.threshold is not None and self.threshold > maximum:
            raise problem_at(("threshold",), f"must be at most {maximum}, not {self.threshold:g}")
        if self.response_path is not None and not re.fullmatch(_RESPONSE_PATH, self.response_path):
            wrong = f"{self.response_path!r} is not a path"
            raise problem_at(("response_path",), f"{wrong}; write keys and indices, such as order.items[0].price")
        return self


class GEvalMetric(HoloDeckModel):
    """A metric with the user's own criteria, which a judge applies."""

    type: Literal["geval"] = "geval"
    name: Text
    criteria: Text
    evaluation_steps: list[str] | None = None
    evaluation_params: list[Any] = ["actual_output"]
    strict_mode: StrictBool = False
    threshold: Share | None = None
    enabled: StrictBool = True
    model: LLMProvider | None = None
    fail_on_error: StrictBool = False

    @field_validator("evaluation_params")
    @classmethod
    def _check_params(cls, params: list[Any]) -> list[Any]:
        if params == []:
            raise problem_at((), f"is empty, so the judge would see nothing; use some of {', '.join(JUDGE_INPUTS)}")
        for index, name in enumerate(params):
            if name not in JUDGE_INPUTS:
                raise problem_at((index,), f"must be one of {', '.join(JUDGE_INPUTS)}, not {name!r}")
        return params


class RAGMetric(HoloDeckModel):
    """A metric that compares an answer with the retrieved passages."""

    type: Literal["rag"] = "rag"
    metric_type: RAGMetricType = Field(description=f"one of {', '.join(RAG)}")
    threshold: Share = 0.5
    include_reason: StrictBool = True
    enabled: StrictBool = True
    model: LLMProvider | None = None
    fail_on_error: StrictBool = False


class CodeMetric(HoloDeckModel):
    """A user's function that grades an answer."""

    type: Literal["code"] = "code"
    grader: Text
    name: Text | None = None
    threshold: Share | None = None
    enabled: StrictBool = True
    fail_on_error: StrictBool = False

    @field_validator("grader")
    @classmethod
    def _check_grader(cls, grader: str) -> str:
        if not is_reference(grader) and not _is_module_reference(grader):
            wrong = f"{grader!r} is not a reference"
            raise problem_at((), f"{wrong}; write package.module:function or file.py:function")
        return grader

    @property
    def display_name(self) -> str:
        """The name in reports: `name`, or else the function."""
        return self.name or self.grader.rpartition(":")[2]


def _is_module_reference(text: str) -> bool:
    """Whether it is `g:grade`; elsewhere a module of one letter is taken for a drive."""
    module, colon, name = text.partition(":")
    return bool(colon) and module.isidentifier() and name.isidentifier()


def is_optional(metric: StandardMetric | GEvalMetric | RAGMetric | CodeMetric) -> bool:
    """Whether a metric that crashes is skipped: only if `fail_on_error: false` is written out."""
    return "fail_on_error" in metric.model_fields_set and not metric.fail_on_error


_METRIC_TYPE_BY_KEY = {"metric": "standard", "metric_type": "rag", "grader": "code", "criteria": "geval"}
"""The type of a metric without `type`, by a key that only this type has."""
_METRIC_TYPES = ("standard", "geval", "rag", "code")


def _metric_type(metric: Any) -> str | None:
    if isinstance(metric, HoloDeckModel):
        return str(getattr(metric, "type", ""))
    if not isinstance(metric, Mapping):
        return "standard"
    if metric.get("type") is not None:
        return str(metric["type"])
    return next((kind for key, kind in _METRIC_TYPE_BY_KEY.items() if key in metric), None)


def _check_metric(metric: Any) -> Any:
    if not isinstance(metric, Mapping):
        return metric
    kind = metric.get("type")
    if kind is not None and not isinstance(kind, str):
        raise problem_at(("type",), f"must be text, not {json_type_name(kind)}")
    if kind is not None and kind not in _METRIC_TYPES:
        types = ", ".join(_METRIC_TYPES)
        raise problem_at(("type",), f"must be one of {types}, not {kind!r}{did_you_mean(kind, _METRIC_TYPES)}")
    if _metric_type(metric) is None:
        raise problem_at((), f"needs 'type', one of {', '.join(_METRIC_TYPES)}")
    return metric


Metric = Annotated[
    Annotated[StandardMetric, Tag("standard")]
    | Annotated[GEvalMetric, Tag("geval")]
    | Annotated[RAGMetric, Tag("rag")]
    | Annotated[CodeMetric, Tag("code")],
    Discriminator(_metric_type),
    BeforeValidator(_check_metric),
]

JUDGE_INPUTS = ("input", "actual_output", "expected_output", "context", "retrieval_context")


class EvaluationConfig(HoloDeckModel):
    """The metrics of every test, and the judge of those that do not set their own."""

    metrics: list[Metric] = Field(min_length=1)
    model: LLMProvider | None = None
    optimizer: dict[str, Any] | None = None


class TurnFields(ExtensibleModel):
    """The fields of a message to the agent and of what is expected."""

    input: Text | None = None
    ground_truth: Text | None = None
    expected_tools: list[ToolExpectation] | None = None
    files: list[FileInput] | None = None
    retrieval_context: list[str] | None = None
    evaluations: list[Metric] | None = None

    @field_validator("files")
    @classmethod
    def _check_files(cls, files: list[FileInput] | None) -> list[FileInput] | None:
        if files and len(files) > MAX_FILES:
            raise problem_at((), f"has {len(files)} files; the maximum is {MAX_FILES}")
        return files


class Turn(TurnFields):
    """One message of a conversation."""

    input: Text = Field(description="text")
    turn_config: dict[str, Any] | None = None


class TestCaseModel(TurnFields):
    """One test: a message, or a conversation of `turns`."""

    name: Text | None = None
    turns: list[Turn] | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.turns is None:
            if self.input is None:
                raise problem_at((), "needs 'input' (text)")
            return self
        for name in ("input", "ground_truth", "expected_tools", "files", "retrieval_context"):
            if getattr(self, name) is not None:
                raise problem_at((name,), "cannot be used together with 'turns'; move it into one of them")
        return self


TestCase = TestCaseModel


def _folder_text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


class ExecutionConfig(HoloDeckModel):
    """How tests run. None leaves a setting to the next source: file, project, environment, defaults."""

    file_timeout: Seconds | None = None
    llm_timeout: Seconds | None = None
    """Seconds for all turns of a test together."""
    download_timeout: Seconds | None = None
    cache_enabled: StrictBool | None = None
    cache_dir: Annotated[Text, BeforeValidator(_folder_text)] | None = None
    verbose: StrictBool | None = None
    quiet: StrictBool | None = None
    parallel_test_cases: Count | None = None

    def over(self, other: ExecutionConfig) -> ExecutionConfig:
        """These settings, and those of `other` where these are not set."""
        return ExecutionConfig(**other.model_dump(exclude_none=True) | self.model_dump(exclude_none=True))


# The agent


class Instructions(HoloDeckModel):
    """The system prompt, here or in a file."""

    inline: Text | None = None
    file: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.inline is None) == (self.file is None):
            raise problem_at((), "needs either 'inline' or 'file'")
        return self


def _check_tool_name(name: str) -> str:
    if not (name.isascii() and name.replace("_", "a").isalnum()):
        raise problem_at((), f"must consist of letters, digits and _, not {name!r}")
    return name


class ToolModel(HoloDeckModel):
    """The fields of all tools."""

    name: Annotated[Text, AfterValidator(_check_tool_name)]
    description: str | None = None
    defer_loading: StrictBool = False


def _check_parameters(parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Check a whole JSON Schema, or a description of each parameter by name."""
    if parameters is None or (parameters.get("type") == "object" and isinstance(parameters.get("properties"), dict)):
        return parameters
    for name, item in parameters.items():
        if not isinstance(item, dict):
            raise problem_at((name,), f"must be an object, not {json_type_name(item)}")
    return parameters


Parameters = Annotated[dict[str, Any] | None, AfterValidator(_check_parameters)]


class FunctionTool(ToolModel):
    """A Python function of the project."""

    type: Literal["function"] = "function"
    file: Text
    function: Text
    parameters: Parameters = None

    @field_validator("file")
    @classmethod
    def _check_file(cls, file: str) -> str:
        if not file.endswith(".py"):
            raise problem_at((), f"must be a Python file, not {file!r}")
        return file


class PromptTool(ToolModel):
    """A prompt for a model, with placeholders that the agent fills in."""

    type: Literal["prompt"] = "prompt"
    template: Text | None = None
    file: Text | None = None
    parameters: Parameters = None
    model: LLMProvider | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.template is None) == (self.file is None):
            raise problem_at((), "needs either 'template' or 'file'")
        return self


class VectorstoreTool(ToolModel):
    """Files that are searched by meaning."""

    type: Literal["vectorstore"] = "vectorstore"
    source: Text
    embedding_model: Text | None = None
    embedding_dimensions: Count | None = None
    top_k: Annotated[Whole, Field(ge=1, le=100)] = 5
    min_similarity_score: Annotated[Number, Field(ge=-1, le=1)] | None = None
    chunk_size: Count = 512
    chunk_overlap: Annotated[Whole, Field(ge=0)] | None = None
    vector_field: Any = None
    id_field: Text | None = None
    meta_fields: list[str] | None = None
    meta_prefix: str | None = None
    field_separator: str | None = None
    delimiter: str | None = None
    record_path: Text | None = None
    record_prefix: Any = None
    database: Any = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.chunk_overlap is not None and self.chunk_overlap >= self.chunk_size:
            raise problem_at(("chunk_overlap",), f"must be less than chunk_size, which is {self.chunk_size}")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise problem_at(("delimiter",), "must be one character")
        if not isinstance(self.database, str | dict | None):
            raise problem_at(("database",), "must be a name or an object with 'provider'")
        fields = [self.vector_field] if isinstance(self.vector_field, str) else self.vector_field or []
        if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
            raise problem_at(("vector_field",), "must be a name or a list of names")
        self.vector_field = [name for name in fields if name.strip()]
        return self


class MCPTool(ToolModel):
    """A server of tools that uses the Model Context Protocol."""

    type: Literal["mcp"] = "mcp"
    transport: str = "stdio"
    command: Text | None = None
    args: list[str] = []
    env: dict[str, str] | None = None
    env_file: Text | None = None
    url: Text | None = None
    headers: dict[str, str] | None = None
    timeout: Seconds = 30
    request_timeout: Seconds = 60
    load_tools: StrictBool = True
    load_prompts: StrictBool = False
    is_retrieval: StrictBool = False
    registry_name: str | None = None


class HierarchicalDocumentTool(ToolModel):
    """HoloDeck's search in documents with an outline, which Proctor does not support."""

    model_config = ConfigDict(extra="allow")
    type: Literal["hierarchical_document"] = "hierarchical_document"


TOOL_TYPES = ("function", "mcp", "prompt", "vectorstore")
"""The types of tools that Proctor supports."""


def _check_tool_type(tool: Any) -> Any:
    if not isinstance(tool, Mapping):
        return tool
    kind = tool.get("type")
    if kind is None:
        raise problem_at((), f"needs 'type', one of {', '.join(TOOL_TYPES)}")
    if not isinstance(kind, str):
        raise problem_at(("type",), f"must be text, not {json_type_name(kind)}")
    if kind not in (*TOOL_TYPES, "hierarchical_document"):
        raise problem_at(("type",), unsupported_tool_message(kind))
    return tool


def unsupported_tool_message(kind: str) -> str:
    """The message about a tool of a type that Proctor does not support."""
    types = ", ".join(TOOL_TYPES)
    return f"is {kind!r}, which Proctor does not support; it supports {types}{did_you_mean(kind, TOOL_TYPES)}"


Tool = Annotated[
    Annotated[
        FunctionTool | MCPTool | PromptTool | VectorstoreTool | HierarchicalDocumentTool, Field(discriminator="type")
    ],
    BeforeValidator(_check_tool_type),
]


class ExtendedThinkingConfig(HoloDeckModel):
    """How much a model may think before it answers."""

    enabled: StrictBool = False
    budget_tokens: Annotated[Whole, Field(ge=1_000, le=100_000)] = 10_000


class BashConfig(HoloDeckModel):
    """Whether a Claude agent may run shell commands, and which it may not."""

    enabled: StrictBool = False
    excluded_commands: list[Text] = []
    allow_unsafe: StrictBool = False


class FileSystemConfig(HoloDeckModel):
    """What a Claude agent may do with files in its working folder."""

    read: StrictBool = False
    write: StrictBool = False
    edit: StrictBool = False


class SubagentSpec(HoloDeckModel):
    """Another agent that a Claude agent may hand work to."""

    description: Text
    prompt: Text | None = None
    prompt_file: Text | None = None
    tools: list[str] | None = None
    """The tools it may use; None for all tools of the agent."""
    model: Literal["sonnet", "opus", "haiku", "inherit"] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.prompt is None) == (self.prompt_file is None):
            raise problem_at((), "needs either 'prompt' or 'prompt_file'")
        return self


class OpenAIPermissionsConfig(HoloDeckModel):
    """The tools that an OpenAI agent may and may not use."""

    allowed_tools: list[str] | None = None
    disallowed_tools: list[str] | None = None


class VendorConfig(HoloDeckModel):
    """The keys that the blocks `claude` and `openai` have in common."""

    max_turns: Count | None = None
    effort: Literal["low", "medium", "high", "max"] | None = None
    fallback_model: Text | None = None
    disallowed_tools: list[str] | None = None
    max_budget_usd: Annotated[Number, Field(gt=0)] | None = None
    i_understand_this_is_unsafe: StrictBool = False
    disable_default_hooks: StrictBool = False
    disable_subprocess_env_scrub: StrictBool = False
    max_concurrent_sessions: Annotated[Whole, Field(ge=1, le=500)] | None = None
    session_memory_estimate_mib: Annotated[Whole, Field(ge=50, le=2000)] | None = None


SettingSource = Literal["user", "project", "local", "all"]


class ClaudeConfig(VendorConfig):
    """What a Claude agent may do, and how it thinks. Everything is off unless the file turns it on."""

    working_directory: Text | None = None
    permission_mode: PermissionMode = PermissionMode.manual
    extended_thinking: ExtendedThinkingConfig | None = None
    web_search: StrictBool = False
    bash: BashConfig | None = None
    file_system: FileSystemConfig | None = None
    agents: dict[str, SubagentSpec] | None = None
    allowed_tools: list[str] | None = None
    setting_sources: list[SettingSource] | None = None

    @field_validator("setting_sources")
    @classmethod
    def _check_sources(cls, sources: list[SettingSource] | None) -> list[SettingSource] | None:
        """`[all]` is short for all three; anything else is kept without duplicates."""
        if sources is None or "all" not in sources:
            return sources and list(dict.fromkeys(sources))
        if len(sources) > 1:
            raise problem_at((), "has 'all' and other values; keep one of them")
        return ["user", "project", "local"]

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.permission_mode is PermissionMode.acceptAll and not self.i_understand_this_is_unsafe:
            wrong = "is acceptAll, with which the agent may run any command and change any file"
            hint = "add 'i_understand_this_is_unsafe: true', or allow what it needs with 'bash' and 'file_system'"
            raise problem_at(("permission_mode",), f"{wrong}; {hint}")
        return self


class OpenAIConfig(VendorConfig):
    """Limits and permissions of an OpenAI agent."""

    permissions: OpenAIPermissionsConfig | None = None


Backend = Literal["claude-agent-sdk", "openai-agents", "pydantic-ai"]


class SharedServer(MCPTool):
    """A server that a configuration file gives to every agent; relative paths start from that file's folder."""

    folder: Path


class AgentDescription(HoloDeckModel):
    """The description of the agent: the data under `agent: {holodeck: ...}` in a suite."""

    name: str = "agent"
    model: LLMProvider = Field(description="the model")
    instructions: Instructions = Field(description="with 'inline' or 'file'")
    response_format: Any = None
    tools: list[Tool] | None = None
    embedding_provider: LLMProvider | None = None
    claude: ClaudeConfig | None = None
    openai: OpenAIConfig | None = None
    backend: Backend | None = None
    """The backend, if `model.provider` should not decide it."""
    mcp_servers: list[SharedServer] = []

    @field_validator("tools")
    @classmethod
    def _check_tools(cls, tools: list[ToolModel] | None) -> list[ToolModel] | None:
        return check_tools(tools)


def check_tools(tools: list[ToolModel] | None) -> list[ToolModel] | None:
    """Check that tool names are unique and that there are not too many tools."""
    if tools and len(tools) > MAX_TOOLS:
        raise problem_at((), f"has {len(tools)} tools; the maximum is {MAX_TOOLS}")
    names: set[str] = set()
    for index, tool in enumerate(tools or ()):
        if tool.name in names:
            raise problem_at((index, "name"), f"is used by more than one tool: {tool.name!r}")
        names.add(tool.name)
    return tools


DESCRIPTION_KEYS = (
    "model",
    "instructions",
    "response_format",
    "tools",
    "embedding_provider",
    "claude",
    "openai",
    "backend",
)
"""The keys of a file that describe the agent itself."""


class AgentTests(ExtensibleModel):
    """The part of an `agent.yaml` that tests need. The description of the agent is checked only if it is built."""

    name: Text = Field(description="text")
    description: Text | None = None
    author: Text | None = None
    agent: Text | dict[str, Any] | None = None
    """A reference or an address, as in any suite, instead of a description."""
    depends_on: list[Text] | None = None
    allow_files_from: list[Text] | None = None
    """Two keys of Proctor's own suites, which HoloDeck does not have."""
    model: Any = None
    instructions: Any = None
    response_format: Any = None
    tools: Any = None
    embedding_provider: Any = None
    claude: Any = None
    openai: Any = None
    backend: Any = None
    evaluations: EvaluationConfig | None = None
    execution: ExecutionConfig | None = None
    test_cases: list[TestCaseModel] | None = None
    test_cases_file: Text | None = None
    observability: Any = None
    deployment: Any = None

    @field_validator("agent", mode="before")
    @classmethod
    def _check_agent(cls, agent: Any) -> Any:
        if not isinstance(agent, str | Mapping | None):
            raise problem_at((), f"must be text, not {json_type_name(agent)}")
        return agent


class Agent(AgentTests):
    """A whole `agent.yaml`. A program may shorten or reorder `test_cases` before a run.

    In Python, `model` and `instructions` are required, unless `agent` names an agent. A file may leave them out for a
    program that passes a backend.
    """

    model: LLMProvider | None = None
    instructions: Instructions | None = None
    response_format: dict[str, Any] | str | None = None
    tools: list[Tool] | None = None
    embedding_provider: LLMProvider | None = None
    claude: ClaudeConfig | None = None
    openai: OpenAIConfig | None = None
    backend: Backend | None = None

    @field_validator("tools")
    @classmethod
    def _check_tools(cls, tools: list[ToolModel] | None) -> list[ToolModel] | None:
        return check_tools(tools)

    @model_validator(mode="after")
    def _check_description(self, info: ValidationInfo) -> Self:
        is_file = info.context is not None
        missing = [key for key in ("model", "instructions") if getattr(self, key) is None]
        if missing and self.agent is None and not is_file:
            raise problem_at((), f"needs {' and '.join(map(repr, missing))}, or 'agent'")
        return self

    @property
    def written_keys(self) -> dict[str, str]:
        """The keys that a program has set in the models of the agent, by the variables that stand for them."""
        return _written_keys(self)

    _original_suite: Suite | None = PrivateAttr(None)

    @property
    def original_suite(self) -> Suite | None:
        """The suite of the file that the agent was read from; None if it was created in Python."""
        return self._original_suite

    @original_suite.setter
    def original_suite(self, suite: Suite | None) -> None:
        self._original_suite = suite


def _written_keys(value: Any) -> dict[str, str]:
    if isinstance(value, LLMProvider):
        return value.written_key()
    parts = [item for _, item in value] if isinstance(value, BaseModel) else value if isinstance(value, list) else ()
    return {name: key for part in parts for name, key in _written_keys(part).items()}
