"""An agent as described in a file, with its models, tools and servers looked up.

`AgentSpec` is what the three builders (`claude_backend`, `openai_agents_backend`, `pydantic_ai_backend`) need.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from proctor.base.environment import expand_with, unset_variable_message, variables_in
from proctor.base.errors import Problem, UsageError
from proctor.base.json_data import Json
from proctor.base.positions import Pointer, pointer_text
from proctor.compat.holodeck.models import LLMProvider
from proctor.compat.holodeck.variables import MASKED
from proctor.judging.provider_table import LIBRARY, PROVIDERS, parse_model_name, require_address
from proctor.judging.providers import ModelSpec

if TYPE_CHECKING:
    from proctor.compat.holodeck.claude_code import ClaudeCodeSpec

Transport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A Python function of the project."""

    name: str
    description: str
    function: Callable[..., Any] | None
    """None if the description was only checked, which loads no code."""
    schema: Mapping[str, Json]
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """A prompt for a model, with placeholders that the agent fills in."""

    name: str
    description: str
    template: str
    schema: Mapping[str, Json]
    model: ModelSpec | None = None
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """Files that are searched by meaning."""

    name: str
    description: str
    source: Path
    embeddings: Any = None
    """The embedding model, as `find_embeddings` expects it; None for the default."""
    top_k: int = 5
    min_score: float | None = None
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
    """A server of tools that uses the Model Context Protocol."""

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
    deferred: bool = False

    @property
    def prefix(self) -> str:
        """The prefix of its tools' names, so that two servers never have the same tool name."""
        return f"mcp__{self.name}__"

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefix, and the one that OpenAI's SDK uses."""
        return self.prefix, f"mcp_{self.name}__"


@dataclass(frozen=True, slots=True)
class VendorOptions:
    """The options in the blocks `claude` and `openai`: limits, effort and allowed tools."""

    max_turns: int | None = None
    """How many times the model is asked for one answer, tool calls included."""
    block: str = ""
    """The block of the file, `claude` or `openai`, for messages."""
    effort: str | None = None
    thinking_tokens: int | None = None
    fallback_model: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()

    @property
    def turn_limit_message(self) -> str:
        """Why an agent that used all its turns was stopped."""
        return f"no answer after {self.max_turns} turns; raise {self.block}.max_turns if it needs more"

    def allows(self, tool: str, declared: str | None = None) -> bool:
        """Whether a tool may be used, by the name the model sees or the one in the file."""
        names = {tool, declared} - {None}
        if not names.isdisjoint(self.disallowed_tools):
            return False
        return self.allowed_tools is None or not names.isdisjoint(self.allowed_tools)


ToolSpec = FunctionSpec | PromptSpec | StoreSpec


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent as described in a file."""

    name: str
    model: ModelSpec
    instructions: str
    tools: tuple[ToolSpec, ...] = ()
    servers: tuple[McpSpec, ...] = ()
    response_schema: Mapping[str, Json] | None = None
    claude_code: ClaudeCodeSpec | None = None
    """What Claude Code is started with, if it runs the agent."""
    vendor_options: VendorOptions = VendorOptions()
    fingerprint: str = ""
    """Changes with everything that affects the agent's behavior; contains no secret."""


def no_answer_message(server: McpSpec) -> str:
    """The message about a server that does not answer."""
    return f"the MCP server {server.name} could not be used: no answer within {server.connect_timeout:g} s"


def tool_name(spec: ToolSpec) -> str:
    """The name of a tool that the model sees."""
    return f"{spec.name}_search" if isinstance(spec, StoreSpec) else spec.name


class Problems:
    """The problems of a description, each with its place."""

    def __init__(self) -> None:
        self.items: list[Problem] = []

    def add(self, place: Pointer, message: str) -> None:
        self.items.append(Problem(message, where=pointer_text(place)))


def model_spec(
    model: LLMProvider, place: Pointer, problems: Problems, *, generates_text: bool = True, is_agent: bool = False
) -> ModelSpec | None:
    """The model that a block describes; None if there are problems.

    `generates_text` is False for an embedding model, which has no temperature and the like. Only the agent itself may
    run on Claude Code, which has other ways to log in than an API key.
    """
    before = len(problems.items)
    for name in () if generates_text else ("temperature", "max_tokens", "top_p", "api_version"):
        if name in model.model_fields_set and getattr(model, name) is not None:
            problems.add((*place, name), "does not apply to an embedding model")
    endpoint = None
    if model.endpoint is not None:
        endpoint = web_address(model.endpoint, (*place, "endpoint"), problems)
    key = None
    if model.api_key is not None and model.api_key.get_secret_value():
        key = expand_variables(model.api_key.get_secret_value(), (*place, "api_key"), problems)
    version = model.api_version and expand_variables(model.api_version, (*place, "api_version"), problems)
    if model.auth_provider not in (None, "api_key") and model.provider == "anthropic" and not is_agent:
        message = "applies only to the agent itself; set provider to the service, such as bedrock"
        problems.add((*place, "auth_provider"), message)
    if len(problems.items) > before:
        return None
    provider, name = parse_model_name(f"{model.provider}:{model.name}")
    try:
        require_address(provider, endpoint)
    except UsageError as error:
        problems.add((*place, "provider"), _with_file_keys(str(error)))
        return None
    if version is not None and provider not in ("azure", "azure-responses"):
        problems.add((*place, "api_version"), f"does not apply to {provider}")
    sampling: Any = (model.temperature, model.top_p, model.max_tokens) if generates_text else (None, None, None)
    return ModelSpec(provider, name, endpoint, key, version or None, *sampling)


def _with_file_keys(message: str) -> str:
    """A message about a judge in the words of a model block, where `base_url` is called `endpoint`."""
    return f"cannot be used: {message}".replace("base_url", "endpoint").replace("the judge ", "the model ")


def missing_requirement(model: ModelSpec) -> str | None:
    """The missing packages or key without which the model cannot be called, or None."""
    service = PROVIDERS[model.provider]
    if not (_is_importable(LIBRARY) and _is_importable(service.module)):
        return f"a model of {model.provider} needs more packages: {service.install_command}"
    return missing_key(model)


def missing_key(model: ModelSpec) -> str | None:
    """The variable to set if the model cannot be called without it, or None."""
    service = PROVIDERS[model.provider]
    if model.base_url is not None or model.api_key is not None or not service.keys:
        return None
    instead = () if service.needs_address else service.addresses
    if any(os.environ.get(name) for name in (*service.keys, *instead)):
        return None
    return f"calling {model.provider} needs a key: set {' or '.join(service.keys)}, or write api_key: ${{ITS_NAME}}"


def web_address(text: str, place: Pointer, problems: Problems) -> str | None:
    """An http(s) address without a password in it; None if it is not one."""
    address = expand_variables(text.strip(), place, problems)
    if address is None:
        return None
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address:
        problems.add(place, "must be a URL that starts with http:// or https://")
        return None
    if parts.username or parts.password:
        problems.add(place, "must not contain a key or password")
        return None
    return address.rstrip("/")


def expand_variables(text: str, place: Pointer, problems: Problems) -> str | None:
    """`text` with its variables filled in; None if one is not set, or if a secret was written out."""
    if text == MASKED:
        problems.add(place, "is a secret; put it in an environment variable and write ${ITS_NAME}")
        return None
    missing = [name for name in variables_in(text) if not os.environ.get(name)]
    for name in missing:
        problems.add(place, unset_variable_message(name))
    return None if missing else expand_with(text, os.environ.get)


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
