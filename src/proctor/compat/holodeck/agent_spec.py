"""An agent that a file describes, with everything looked up that it is built of: models, tools and servers.

`AgentSpec` is what each of the three builders (`with_claude`, `with_openai_agents`, `with_pydantic_ai`) takes.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from proctor.base.environment import expand_with, unset, variables_in
from proctor.base.errors import Problem, UsageError
from proctor.base.json_data import Json
from proctor.base.positions import Pointer, pointer_text
from proctor.compat.holodeck.models import LLMProvider
from proctor.compat.holodeck.variables import CONCEALED
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
    """Which model embeds, as `find_embeddings` takes it; `None` for the usual one."""
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


def no_answer_message(server: McpSpec) -> str:
    """The message about a server that does not answer."""
    return f"the MCP server {server.name} could not be used: no answer within {server.connect_timeout:g} s"


def tool_name(spec: ToolSpec) -> str:
    """The name under which the model knows a tool."""
    return f"{spec.name}_search" if isinstance(spec, StoreSpec) else spec.name


class Problems:
    """What is wrong with a description, with the place of each problem in it."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, place: Pointer, message: str) -> None:
        self.found.append(Problem(message, where=pointer_text(place)))


def model_spec(model: LLMProvider, place: Pointer, problems: Problems, *, writes: bool = True) -> ModelSpec | None:
    """The model that a block describes; `None` if something is wrong with it.

    An embedding model does not write: it has no temperature to speak of.
    """
    before = len(problems.found)
    for name in () if writes else ("temperature", "max_tokens", "top_p", "api_version"):
        if name in model.model_fields_set and getattr(model, name) is not None:
            problems.add((*place, name), "has no meaning for an embedding model")
    endpoint = None
    if model.endpoint is not None:
        endpoint = web_address(model.endpoint, (*place, "endpoint"), problems)
    key = None
    if model.api_key is not None and model.api_key.get_secret_value():
        key = expand_variables(model.api_key.get_secret_value(), (*place, "api_key"), problems)
    version = model.api_version and expand_variables(model.api_version, (*place, "api_version"), problems)
    if model.auth_provider not in (None, "api_key"):
        wrong = "is not known here; name the service itself as the provider, such as bedrock"
        problems.add((*place, "auth_provider"), wrong)
    if len(problems.found) > before:
        return None
    provider, name = parse_model_name(f"{model.provider}:{model.name}")
    try:
        require_address(provider, endpoint)
    except UsageError as error:
        problems.add((*place, "provider"), _with_names_of_the_file(str(error)))
        return None
    if version is not None and provider not in ("azure", "azure-responses"):
        problems.add((*place, "api_version"), f"has no meaning for {provider}")
    sampling: Any = (model.temperature, model.top_p, model.max_tokens) if writes else (None, None, None)
    return ModelSpec(provider, name, endpoint, key, version or None, *sampling)


def _with_names_of_the_file(message: str) -> str:
    """What judges call `base_url` is called `endpoint` in a model block."""
    return f"cannot be used: {message}".replace("base_url", "endpoint").replace("the judge ", "the model ")


def missing_for(model: ModelSpec) -> str | None:
    """The packages or the key without which the model cannot be asked."""
    service = PROVIDERS[model.provider]
    if not (_is_importable(LIBRARY) and _is_importable(service.module)):
        return f"a model of {model.provider} needs more packages: {service.install_command}"
    return missing_key(model)


def missing_key(model: ModelSpec) -> str | None:
    """The variable to set, if the model cannot be asked without it."""
    service = PROVIDERS[model.provider]
    if model.base_url is not None or model.api_key is not None or not service.keys:
        return None
    instead = () if service.needs_address else service.addresses
    if any(os.environ.get(name) for name in (*service.keys, *instead)):
        return None
    return f"asking {model.provider} needs a key: set {' or '.join(service.keys)}, or write api_key: ${{ITS_NAME}}"


def web_address(text: str, place: Pointer, problems: Problems) -> str | None:
    """An address of the web without a password in it; `None` if it is none."""
    filled = expand_variables(text.strip(), place, problems)
    if filled is None:
        return None
    try:
        parts = urlsplit(filled)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address:
        problems.add(place, "must be an address that begins with http:// or https://")
        return None
    if parts.username or parts.password:
        problems.add(place, "must hold no key or password")
        return None
    return filled.rstrip("/")


def expand_variables(text: str, place: Pointer, problems: Problems) -> str | None:
    """`text` with its variables; `None` if one is not set, or if a secret was written out."""
    if text == CONCEALED:
        problems.add(place, "was written out; put it in an environment variable, and write ${ITS_NAME}")
        return None
    missing = [name for name in variables_in(text) if not os.environ.get(name)]
    for name in missing:
        problems.add(place, unset(name))
    return None if missing else expand_with(text, os.environ.get)


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
