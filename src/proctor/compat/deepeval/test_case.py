"""DeepEval's test cases: input, actual output and expectations, under DeepEval's names."""

from __future__ import annotations

import copy
import enum
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from proctor.agents.reply import ToolCall as ProctorToolCall
from proctor.base.documents import did_you_mean
from proctor.base.json_data import to_json, to_text

__all__ = [
    "ConversationalTestCase",
    "LLMTestCase",
    "LLMTestCaseParams",
    "MultiTurnParams",
    "SingleTurnParams",
    "ToolCall",
    "ToolCallParams",
    "ToolCallType",
    "Turn",
    "TurnParams",
]


class DeepEvalModel(BaseModel):
    """The base of DeepEval's models: fields in both spellings, and a suggestion for an unknown one."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", validate_assignment=True, strict=False
    )
    __test__: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _drop_unknown_nulls(cls, data: Any) -> Any:
        """Drop unknown fields that are null; DeepEval writes every field it has to its files."""
        if not isinstance(data, Mapping):
            return data
        names = {*cls.model_fields, *map(to_camel, cls.model_fields), *cls._aliases()}
        unknown = [
            _unknown_field_message(cls, str(name))
            for name, value in data.items()
            if value is not None and name not in names
        ]
        if unknown:
            raise PydanticCustomError("unknown_field", "{problems}", {"problems": "; ".join(unknown)})
        return {name: value for name, value in data.items() if value is not None or name in names}

    @classmethod
    def _aliases(cls) -> set[str]:
        aliases = [field.validation_alias for field in cls.model_fields.values()]
        return {str(word) for alias in aliases if isinstance(alias, AliasChoices) for word in alias.choices}

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in type(self).model_fields and not hasattr(type(self), name):
            raise AttributeError(_unknown_field_message(type(self), name))
        super().__setattr__(name, value)


def _unknown_field_message(kind: type[BaseModel], name: str) -> str:
    return f"{kind.__name__} has no field {name!r}{did_you_mean(name, kind.model_fields)}"


class WithMetadata(DeepEvalModel):
    """A model with `metadata`, which can also be read and written under its older name `additional_metadata`."""

    @property
    def additional_metadata(self) -> dict[str, Any] | None:
        return getattr(self, "metadata", None)

    @additional_metadata.setter
    def additional_metadata(self, value: dict[str, Any] | None) -> None:
        self.metadata = value


def _to_tool_call(value: Any) -> Any:
    """A tool call from a name, one of Proctor's calls, or a mapping with `arguments`."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, ProctorToolCall):
        return {"name": value.name, "input_parameters": dict(value.arguments), "output": value.result}
    if isinstance(value, Mapping) and "arguments" in value:
        return {("input_parameters" if key == "arguments" else key): item for key, item in value.items()}
    return value


def _to_texts(value: Any) -> Any:
    """Passages as text; data becomes JSON."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        return value
    return [item if isinstance(item, str) else to_text(to_json(item)) for item in value]


class ToolCallType(enum.Enum):
    """The source of a tool; calls that differ only in this are equal."""

    FUNCTION = "FUNCTION"
    MCP = "MCP"


class ToolCall(DeepEvalModel):
    """A tool call; equal to another with the same name, parameters and output."""

    name: str
    type: ToolCallType = ToolCallType.FUNCTION
    description: str | None = None
    reasoning: str | None = None
    output: Any = None
    input_parameters: dict[str, Any] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCall) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self.name)  # equal parameters may be written differently: True, 1 and 1.0

    def __repr__(self) -> str:
        texts = {"name": self.name, "description": self.description, "reasoning": self.reasoning}
        data = {"input_parameters": self.input_parameters, "output": self.output}
        parts = [f"{name}={json.dumps(text, ensure_ascii=False)}" for name, text in texts.items() if text is not None]
        parts += [f"{name}={value!r}" for name, value in data.items() if value is not None]
        return f"ToolCall({', '.join(parts)})"

    def _identity(self) -> tuple[Any, ...]:
        return self.name, self.input_parameters, self.output


Tools = list[Annotated[ToolCall, BeforeValidator(_to_tool_call)]]
Passages = Annotated[list[str], BeforeValidator(_to_texts)]


def _check_types(data: Any, texts: Sequence[str], lists: Mapping[str, str]) -> Any:
    """Raise `TypeError` for a text or a list that is something else, as DeepEval does; pydantic checks the rest."""
    for name in texts if isinstance(data, Mapping) else ():
        for key in (name, to_camel(name)):
            if data.get(key) is not None and not isinstance(data[key], str):
                raise TypeError(f"'{name}' must be a string, not {type(data[key]).__name__}")
    for name, items in lists.items() if isinstance(data, Mapping) else ():
        for key in (name, to_camel(name)):
            if data.get(key) is not None and not isinstance(data[key], list | tuple):
                raise TypeError(f"'{name}' must be None or a list of {items}, not {type(data[key]).__name__}")
    return data


class LLMTestCase(WithMetadata):
    """An input and its output, with what was expected."""

    @model_validator(mode="before")
    @classmethod
    def _check_field_types(cls, data: Any) -> Any:
        passages, tools = "strings", "`ToolCall`"
        lists = {"context": passages, "retrieval_context": passages, "tools_called": tools, "expected_tools": tools}
        return _check_types(data, ("input", "actual_output", "expected_output"), lists)

    input: str
    actual_output: str | None = None
    expected_output: str | None = None
    context: Passages | None = None
    retrieval_context: Passages | None = None
    metadata: dict[str, Any] | None = Field(
        default=None, validation_alias=AliasChoices("metadata", "additional_metadata", "additionalMetadata")
    )
    tools_called: Tools | None = None
    expected_tools: Tools | None = None
    comments: str | None = None
    token_cost: float | None = None
    input_token_count: int | None = None
    output_token_count: int | None = None
    completion_time: float | None = None
    name: str | None = None
    tags: list[str] | None = None
    custom_column_key_values: dict[str, str] | None = None
    """Other columns of a dataset; evaluators see them in the metadata."""
    flaky: bool = False
    """Whether `assert_test` only warns if it fails."""
    mcp_servers: list[Any] | None = None
    """This and the other MCP fields are data of yours; no metric here reads them."""
    mcp_tools_called: list[Any] | None = None
    mcp_resources_called: list[Any] | None = None
    mcp_prompts_called: list[Any] | None = None
    trace_dict: dict[str, Any] | None = None


class Turn(WithMetadata):
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    content: str
    user_id: str | None = None
    retrieval_context: Passages | None = None
    tools_called: Tools | None = None
    metadata: dict[str, Any] | None = Field(
        default=None, validation_alias=AliasChoices("metadata", "additional_metadata", "additionalMetadata")
    )
    mcp_tools_called: list[Any] | None = None
    mcp_resources_called: list[Any] | None = None
    mcp_prompts_called: list[Any] | None = None


class ConversationalTestCase(WithMetadata):
    """A conversation."""

    @model_validator(mode="before")
    @classmethod
    def _check_field_types(cls, data: Any) -> Any:
        _check_types(data, (), {"context": "strings", "turns": "`Turn`"})
        turns = data.get("turns") if isinstance(data, Mapping) else None
        if turns is not None and not turns:
            raise TypeError("'turns' must not be empty")
        if wrong := [turn for turn in turns or () if not isinstance(turn, Turn | Mapping)]:
            raise TypeError(f"'turns' must be a list of `Turn`, and one is a {type(wrong[0]).__name__}")
        return data

    turns: Annotated[list[Turn], BeforeValidator(copy.deepcopy)] = Field(min_length=1)
    scenario: str | None = None
    context: Passages | None = None
    name: str | None = None
    user_description: str | None = None
    expected_outcome: str | None = None
    chatbot_role: str | None = None
    metadata: dict[str, Any] | None = Field(
        default=None, validation_alias=AliasChoices("metadata", "additional_metadata", "additionalMetadata")
    )
    comments: str | None = None
    tags: list[str] | None = None
    flaky: bool = False
    mcp_servers: list[Any] | None = None


class LLMTestCaseParams(enum.Enum):
    """The parts of a test case that criteria may be about."""

    INPUT = "input"
    ACTUAL_OUTPUT = "actual_output"
    EXPECTED_OUTPUT = "expected_output"
    CONTEXT = "context"
    RETRIEVAL_CONTEXT = "retrieval_context"
    TOOLS_CALLED = "tools_called"
    EXPECTED_TOOLS = "expected_tools"
    METADATA = "metadata"
    MCP_SERVERS = "mcp_servers"
    MCP_TOOLS_CALLED = "mcp_tools_called"
    MCP_RESOURCES_CALLED = "mcp_resources_called"
    MCP_PROMPTS_CALLED = "mcp_prompts_called"


SingleTurnParams = LLMTestCaseParams


class MultiTurnParams(enum.Enum):
    """The parts of a conversation that criteria may be about."""

    ROLE = "role"
    CONTENT = "content"
    METADATA = "metadata"
    TAGS = "tags"
    SCENARIO = "scenario"
    EXPECTED_OUTCOME = "expected_outcome"
    CONTEXT = "context"
    USER_DESCRIPTION = "user_description"
    RETRIEVAL_CONTEXT = "retrieval_context"
    CHATBOT_ROLE = "chatbot_role"
    TOOLS_CALLED = "tools_called"


TurnParams = MultiTurnParams


class ToolCallParams(enum.Enum):
    """The parts of a tool call that are compared in addition to its name."""

    INPUT_PARAMETERS = "input_parameters"
    OUTPUT = "output"
