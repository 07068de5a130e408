"""What a file says of an agent, read and checked: everything needed to build it, whatever it is built with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import NOTHING
from proctor.judging.providers import ModelSpec

Transport = Literal["stdio", "http", "sse"]


@record
class FunctionSpec:
    """A Python function of the project."""

    name: str
    description: str
    function: Callable[..., Any]
    schema: Mapping[str, Json]
    deferred: bool = False


@record
class PromptSpec:
    """A question to a model, with gaps that the agent fills."""

    name: str
    description: str
    template: str
    schema: Mapping[str, Json]
    model: ModelSpec | None = None
    deferred: bool = False


@record
class StoreSpec:
    """Files to be searched by meaning."""

    name: str
    description: str
    source: Path
    embeddings: Any = None
    """Which model embeds, as `embeddings_of` takes it; `None` for the usual one."""
    top_k: int = 5
    least_score: float | None = None
    chunk_size: int = 512
    chunk_overlap: int = 50
    dimensions: int | None = None
    records: RecordSpec | None = None
    deferred: bool = False


@record
class RecordSpec:
    """How records of a JSON or CSV file become passages."""

    text_fields: tuple[str, ...] = ()
    id_field: str | None = None
    meta_fields: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    """The keys that lead to the list of records."""
    meta_prefix: str = ""
    separator: str = "\n"
    delimiter: str = ","


@record
class McpSpec:
    """A server of tools that speaks the Model Context Protocol."""

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default=NOTHING, repr=False)
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default=NOTHING, repr=False)
    connect_timeout: float = 30.0
    request_timeout: float = 60.0
    retrieval: bool = False
    deferred: bool = False

    @property
    def prefix(self) -> str:
        """How the names of its tools begin, so that those of two servers never meet."""
        return f"mcp__{self.name}__"

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The same, and as OpenAI's SDK has it."""
        return self.prefix, f"mcp_{self.name}__"


@record
class VendorOptions:
    """What the blocks `claude` and `openai` say: limits, effort and which tools may be used."""

    max_turns: int | None = None
    effort: str | None = None
    thinking_tokens: int | None = None
    fallback_model: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()

    def allows(self, tool: str, declared: str | None = None) -> bool:
        """Whether a tool may be used, named as the model knows it or as the file does."""
        names = {tool, declared} - {None}
        if not names.isdisjoint(self.disallowed_tools):
            return False
        return self.allowed_tools is None or not names.isdisjoint(self.allowed_tools)


ToolSpec = FunctionSpec | PromptSpec | StoreSpec


@record
class AgentSpec:
    """An agent as a file describes it."""

    name: str
    model: ModelSpec
    instructions: str
    tools: tuple[ToolSpec, ...] = ()
    servers: tuple[McpSpec, ...] = ()
    response_schema: Mapping[str, Json] | None = None
    vendor_options: VendorOptions = VendorOptions()
    fingerprint: str = ""
    """Changes with everything that makes the agent behave otherwise, and holds no secret."""

    def is_retrieval(self, tool: str) -> bool:
        """Whether a tool's results are passages that an answer may rest on."""
        stores = {tool_name(spec) for spec in self.tools if isinstance(spec, StoreSpec)}
        return tool in stores or any(tool.startswith(s.prefixes) for s in self.servers if s.retrieval)


def no_answer_message(server: McpSpec) -> str:
    """The message about a server that does not answer."""
    return f"the MCP server {server.name} could not be used: no answer within {server.connect_timeout:g} s"


def tool_name(spec: ToolSpec) -> str:
    """The name under which the model knows a tool."""
    return f"{spec.name}_search" if isinstance(spec, StoreSpec) else spec.name
