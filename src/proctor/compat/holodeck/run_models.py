"""HoloDeck's other data models: stored runs, tool events, and what a `config.yml` or a store holds.

Proctor stores runs in its own store and reads configuration itself. These models are for programs that create, check or
read such data.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, SecretStr, model_validator

from proctor.cases.validation import problem_at
from proctor.compat.holodeck.enums import KeywordIndexProvider, ToolEventType, ToolStatus
from proctor.compat.holodeck.models import Agent, ExecutionConfig, HoloDeckModel, LLMProvider, MCPTool, Text
from proctor.compat.holodeck.test_results import TestReport


class VectorstoreConfig(HoloDeckModel):
    """A vector database in a configuration file."""

    provider: Text
    connection_string: Text
    options: dict[str, Any] | None = None


class DatabaseConfig(HoloDeckModel):
    """The vector database of a tool; each provider has further keys."""

    model_config = ConfigDict(extra="allow")
    provider: Text
    connection_string: str | None = None


class KeywordIndexConfig(HoloDeckModel):
    """Where a tool searches by words."""

    provider: KeywordIndexProvider = KeywordIndexProvider.IN_MEMORY
    endpoint: str | None = None
    index_name: str | None = None
    username: str | None = None
    password: SecretStr | None = None
    api_key: SecretStr | None = None
    verify_certs: bool = True
    timeout_seconds: Annotated[int, Field(ge=1, le=120)] = 10

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.provider is KeywordIndexProvider.OPENSEARCH:
            for name in ("endpoint", "index_name"):
                if not getattr(self, name):
                    raise problem_at((name,), "is needed for OpenSearch")
        return self


class GlobalConfig(HoloDeckModel):
    """A `config.yml`."""

    providers: dict[str, LLMProvider] | None = None
    vectorstores: dict[str, VectorstoreConfig] | None = None
    execution: ExecutionConfig | None = None
    deployment: Any = None
    mcp_servers: list[MCPTool] | None = None


class PromptVersion(HoloDeckModel):
    """Which version of the instructions a run used."""

    version: str
    author: str | None = None
    description: str | None = None
    tags: list[str] = Field(default_factory=list)
    source: Literal["file", "inline"]
    file_path: str | None = None
    body_hash: Annotated[str, Field(pattern="^[a-f0-9]{64}$")]
    extra: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.source == "file") != bool(self.file_path):
            raise problem_at(("file_path",), "is needed if the source is a file, and only then")
        return self


class EvalRunMetadata(HoloDeckModel):
    """What a run was made with."""

    agent_config: Agent
    prompt_version: PromptVersion
    holodeck_version: str
    cli_args: list[str]
    git_commit: str | None = None


class EvalRun(HoloDeckModel):
    """A report together with what the run was made with."""

    report: TestReport
    metadata: EvalRunMetadata

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.report.agent_name != self.metadata.agent_config.name:
            raise problem_at(("report", "agent_name"), "is not the name of the agent in the metadata")
        return self


class ToolExecution(HoloDeckModel):
    """One use of a tool."""

    tool_name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    result: str | None = None
    status: ToolStatus = ToolStatus.PENDING
    execution_time: Annotated[float, Field(ge=0)] | None = None
    error_message: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.status is ToolStatus.FAILED and not self.error_message:
            raise problem_at(("error_message",), "is needed if the status is failed")
        return self


class ToolEvent(HoloDeckModel):
    """Something that happened while a tool was used."""

    event_type: ToolEventType
    tool_name: str
    timestamp: datetime.datetime = Field(default_factory=lambda: datetime.datetime.now(datetime.UTC))
    data: dict[str, Any] = Field(default_factory=dict)
