"""What a file says of an agent, read and checked, whatever it is built with; and the reader of its `model` blocks."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from proctor.base.documents import Fields
from proctor.base.environment import expand_with, unset
from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.cases.formats.holodeck.variables import CONCEALED
from proctor.judging.provider_table import LIBRARY, PROVIDERS, parse_model_name, require_address
from proctor.judging.providers import ModelSpec

Transport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A Python function of the project."""

    name: str
    description: str
    function: Callable[..., Any] | None
    """`None` if the description was only checked, which loads no code."""
    schema: Mapping[str, Json]
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """A question to a model, with gaps that the agent fills."""

    name: str
    description: str
    template: str
    schema: Mapping[str, Json]
    model: ModelSpec | None = None
    deferred: bool = False


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class McpSpec:
    """A server of tools that speaks the Model Context Protocol."""

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


TEMPERATURE = 0.3
MAX_TOKENS = 1000
"""What HoloDeck asks models with by default."""
SAMPLED = ("temperature", "max_tokens", "top_p")
"""What is said of models that write."""


def read_model(fields: Fields, *, sampled: bool = True) -> ModelSpec | None:
    """The model a block describes; `None` where something is wrong with it, which its document is told.

    An embedding model is not `sampled`: it has no temperature to speak of.
    """
    before = len(fields.document.problems)
    provider, name = (
        fields.text("provider", required=True, blank=False),
        fields.text("name", required=True, blank=False),
    )
    for unfit in () if sampled else (*SAMPLED, "api_version"):
        if fields.take(unfit) is not None:
            fields.problem(unfit, "has no meaning for an embedding model")
    temperature = fields.number("temperature", TEMPERATURE if sampled else None, least=0, most=2)
    if fields.has("temperature") and fields.take("temperature") is None:
        temperature = None
    longest = fields.integer("max_tokens", MAX_TOKENS if sampled else None, least=1)
    if fields.has("max_tokens") and fields.take("max_tokens") is None:
        longest = None
    top_p = fields.number("top_p", least=0, most=1)
    endpoint = read_address(fields, "endpoint")
    key = read_secret(fields, "api_key")
    version = fields.text("api_version", blank=False)
    if fields.text("auth_provider") not in (None, "api_key"):
        fields.problem("auth_provider", "is not known here; name the service itself as the provider, such as bedrock")
    fields.done()
    if provider is None or name is None or len(fields.document.problems) > before:
        return None
    try:
        provider, name = parse_model_name(f"{provider}:{name}")
        require_address(provider, endpoint)
    except UsageError as error:
        fields.problem("provider", _as_here(str(error)))
        return None
    if version is not None and provider not in ("azure", "azure-responses"):
        fields.problem("api_version", f"has no meaning for {provider}")
    return ModelSpec(provider, name, endpoint, key, version, temperature, top_p, longest)


def _as_here(message: str) -> str:
    """What judges call `base_url` is called `endpoint` in a model block."""
    return f"cannot be used: {message}".replace("base_url", "endpoint").replace("the judge ", "the model ")


def missing_for(model: ModelSpec) -> str | None:
    """What has to be there before the model can be asked, and is not."""
    service = PROVIDERS[model.provider]
    if not (_is_there(LIBRARY) and _is_there(service.module)):
        extra = service.extra
        wanted = f"pydantic-ai-slim[{extra[1:]}]" if extra.startswith("+") else f"proctor[{extra}]"
        return f"asking {model.provider} needs more packages: pip install '{wanted}'"
    return missing_key(model)


def missing_key(model: ModelSpec) -> str | None:
    """The variable to set, where the model cannot be asked without."""
    service = PROVIDERS[model.provider]
    if model.base_url is not None or model.api_key is not None or not service.keys:
        return None
    instead = () if service.needs_address else service.addresses
    if any(os.environ.get(name) for name in (*service.keys, *instead)):
        return None
    return f"asking {model.provider} needs a key: set {' or '.join(service.keys)}, or write api_key: ${{ITS_NAME}}"


def read_address(fields: Fields, name: str) -> str | None:
    """An address of the web, without a key in it."""
    given = fields.text(name, blank=False)
    if given is None:
        return None
    try:
        parts = urlsplit(given.strip())
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        fields.problem(name, "must be an address that begins with http:// or https://")
        return None
    if parts.username or parts.password:
        fields.problem(name, "must hold no key or password")
        return None
    return str(given.strip().rstrip("/"))


def read_secret(fields: Fields, name: str) -> str | None:
    """The value of `${NAME}`, looked up now; one that was written out is not known any more."""
    given = fields.text(name)
    return None if not given else filled(fields, name, given)


def filled(fields: Fields, name: str, text: str) -> str | None:
    """`text` with its variables; a problem where one is not set, or where a secret was written out."""
    if text == CONCEALED:
        fields.problem(name, "was written out; put it in an environment variable, and write ${ITS_NAME}")
        return None

    def value(variable: str) -> str:
        known = os.environ.get(variable)
        if not known:
            fields.problem(name, unset(variable))
        return known or ""

    return expand_with(text, value)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
