"""Look up what tools name: Python functions, prompts, files to search and MCP servers, with their JSON Schemas."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from proctor.base.documents import did_you_mean
from proctor.base.environment import read_env_file
from proctor.base.errors import UsageError, one_line
from proctor.base.installation import install_command
from proctor.base.json_data import Json
from proctor.base.positions import Pointer
from proctor.base.references import locate, resolve
from proctor.compat.holodeck.agent_spec import (
    FunctionSpec,
    McpSpec,
    Problems,
    PromptSpec,
    ToolSpec,
    expand_variables,
    missing_requirement,
    model_spec,
    web_address,
)
from proctor.compat.holodeck.models import (
    FunctionTool,
    MCPTool,
    PromptTool,
    ToolModel,
    VectorstoreTool,
    unsupported_tool_message,
)
from proctor.compat.holodeck.passages import read_store
from proctor.judging.providers import ModelSpec

_PLACEHOLDER = r"\{\{\s*\$?(\w+)\s*\}\}"
"""`{{name}}` in a prompt template."""


@dataclass(frozen=True, slots=True)
class ToolReader:
    """Looks up the tools of one agent."""

    problems: Problems
    base: Path
    model: ModelSpec | None
    embedder: ModelSpec | None
    """The model that `embedding_provider` names."""
    load: bool = True
    """Whether functions are loaded, not only located."""
    tools: list[ToolSpec] = field(default_factory=list)
    servers: list[McpSpec] = field(default_factory=list)

    def read(self, tool: ToolModel, place: Pointer) -> None:
        """Look up one tool and add it to `tools` or `servers`."""
        before = len(self.problems.items)
        spec: ToolSpec | None = None
        if isinstance(tool, MCPTool):
            self.read_server(tool, place, self.base)
        elif isinstance(tool, FunctionTool):
            spec = self._function(tool, place)
        elif isinstance(tool, PromptTool):
            spec = self._prompt(tool, place)
        elif isinstance(tool, VectorstoreTool):
            spec = read_store(tool, place, self.base, self.embedder or self.model, self.embedder, self.problems)
        else:
            self.problems.add((*place, "type"), unsupported_tool_message(str(getattr(tool, "type", ""))))
        if spec is not None and len(self.problems.items) == before:
            self.tools.append(spec)

    def _function(self, tool: FunctionTool, place: Pointer) -> FunctionSpec | None:
        reference = f"{tool.file}:{tool.function}"
        if not self.load:
            self._schema(tool, place, None)
            try:
                locate(reference, self.base)
            except UsageError as error:
                self.problems.add((*place, "function"), f"cannot be found: {error}")
            return FunctionSpec(tool.name, tool.description or "", None, {}, tool.defer_loading)
        try:
            function = resolve(reference, self.base)
        except UsageError as error:
            self.problems.add((*place, "function"), f"cannot be found: {error}")
            return None
        if not callable(function):
            self.problems.add((*place, "function"), f"{tool.function} is not a function")
            return None
        schema = function_schema(function) if tool.parameters is None else self._schema(tool, place, function)
        if isinstance(schema, str):
            message = f"{tool.function} has no usable type hints ({schema}); describe its parameters in 'parameters'"
            self.problems.add((*place, "function"), message)
            return None
        description = tool.description or (inspect.getdoc(function) or "").strip()
        return FunctionSpec(tool.name, description, function, schema or {}, tool.defer_loading)

    def _prompt(self, tool: PromptTool, place: Pointer) -> PromptSpec | None:
        template = tool.template
        if tool.file is not None:
            try:
                template = Path(self.base, tool.file).read_text(encoding="utf-8-sig")
            except (OSError, ValueError) as error:
                self.problems.add((*place, "file"), f"names {tool.file}, which cannot be read: {error}")
        model = None
        if tool.model is not None:
            model = model_spec(tool.model, (*place, "model"), self.problems)
            if model is not None and (missing := missing_requirement(model)):
                self.problems.add((*place, "model"), f"cannot be used: {missing}")
        schema = self._schema(tool, place, None)
        if template is None:
            return None
        placeholders = list(dict.fromkeys(_placeholder_pattern().findall(template)))
        if schema is None:
            properties = {placeholder: {"type": "string"} for placeholder in placeholders}
            schema = {
                "type": "object",
                "properties": properties,
                "required": placeholders,
                "additionalProperties": False,
            }
        for placeholder in placeholders:
            if placeholder not in (schema.get("properties") or {}):
                message = f"has {{{{{placeholder}}}}}, which 'parameters' does not describe"
                self.problems.add((*place, "template"), message)
        return PromptSpec(tool.name, tool.description or "", template, schema, model, tool.defer_loading)

    def _schema(
        self, tool: FunctionTool | PromptTool, place: Pointer, function: Callable[..., Any] | None
    ) -> dict[str, Json] | None:
        """The schema in `parameters`: a whole one, or a description of each parameter by name."""
        parameters = tool.parameters
        if parameters is None:
            return None
        if parameters.get("type") == "object" and isinstance(parameters.get("properties"), dict):
            schema = dict(parameters)
        else:
            schema = _schema_by_name(parameters, _required_parameters(function))
        reason = schema_problem(schema)
        if reason is not None:
            self.problems.add((*place, "parameters"), f"is not a JSON Schema: {reason}")
            return None
        return schema

    def read_server(self, tool: MCPTool, place: Pointer, base: Path) -> None:
        """Look up an MCP server; a key that does not apply to its transport is a problem."""
        before = len(self.problems.items)
        spec = _ServerReader(tool, place, base, self.problems).read()
        if spec is not None and len(self.problems.items) == before:
            self.servers.append(spec)


def render(template: str, values: Mapping[str, Json]) -> str:
    """The template with its placeholders filled in; placeholders in a value are not filled in again."""
    return _placeholder_pattern().sub(lambda match: str(values.get(match.group(1), "")), template)


@functools.cache
def _placeholder_pattern() -> re.Pattern[str]:
    return re.compile(_PLACEHOLDER)


TRANSPORTS = ("stdio", "http", "sse")
_STDIO_KEYS = ("command", "args", "env", "env_file")
_HTTP_KEYS = ("url", "headers")


@dataclass(frozen=True, slots=True)
class _ServerReader:
    """Reads one MCP server."""

    tool: MCPTool
    place: Pointer
    base: Path
    problems: Problems

    def read(self) -> McpSpec | None:
        tool = self.tool
        if tool.transport not in TRANSPORTS:
            transports = f"{', '.join(TRANSPORTS)}{did_you_mean(tool.transport, TRANSPORTS)}"
            self._problem(
                "transport", f"is {tool.transport!r}, which Proctor does not support; it supports {transports}"
            )
            return None
        for key in _HTTP_KEYS if tool.transport == "stdio" else _STDIO_KEYS:
            if key in tool.model_fields_set and getattr(tool, key) is not None:
                self._problem(key, f"does not apply to the transport {tool.transport}")
        if not tool.load_tools:
            self._problem("load_tools", "is false, so the agent could not use the server; remove the tool instead")
        if tool.load_prompts:
            self._problem("load_prompts", "is true, but prompts of servers are not supported; remove it")
        if importlib.util.find_spec("mcp") is None:
            self._problem("type", f"is mcp, which needs more packages: {install_command('mcp')}")
        common: Any = {
            "connect_timeout": float(tool.timeout),
            "request_timeout": float(tool.request_timeout),
            "deferred": tool.defer_loading,
        }
        if tool.transport == "stdio":
            return self._stdio_server(common)
        if tool.url is None:
            self.problems.add(self.place, "needs 'url' (the address of the server)")
            return None
        url = web_address(tool.url, (*self.place, "url"), self.problems)
        headers = self._expand("headers", tool.headers or {})
        return McpSpec(tool.name, tool.transport, url=url or "", headers=headers, **common)  # type: ignore[arg-type]

    def _stdio_server(self, common: Any) -> McpSpec | None:
        tool = self.tool
        if tool.command is None:
            self.problems.add(self.place, "needs 'command' (text)")
            return None
        environment = self._environment()
        if not _is_executable(tool.command, self.base, environment):
            self._problem("command", f"names {tool.command}, which is not an executable program")
        return McpSpec(tool.name, "stdio", tool.command, tuple(tool.args), environment, self.base, **common)

    def _environment(self) -> dict[str, str]:
        """The environment of the server: basic variables, then `env_file`, then `env`."""
        variables: dict[str, str] = {}
        file = self.tool.env_file
        if file is not None:
            try:
                variables = read_env_file(self.base / file)
            except UsageError as error:
                reason = str(error).removeprefix(f"{self.base / file}: ")
                self._problem("env_file", f"names {file}, which {reason}")
        return {**base_environment(), **variables, **self._expand("env", self.tool.env or {})}

    def _expand(self, key: str, values: Mapping[str, str]) -> dict[str, str]:
        """The values with their variables filled in."""
        expanded = {n: expand_variables(text, (*self.place, key, n), self.problems) for n, text in values.items()}
        return {name: text for name, text in expanded.items() if text is not None}

    def _problem(self, key: str, message: str) -> None:
        self.problems.add((*self.place, key), message)


def _is_executable(command: str, base: Path, environment: Mapping[str, str]) -> bool:
    """Whether the command can be started: a name is looked up in the server's PATH, a path from its folder."""
    try:
        if Path(command).name != command:
            return os.access(base / command, os.X_OK)
        return shutil.which(command, path=environment.get("PATH")) is not None
    except ValueError:
        return False


def base_environment() -> dict[str, str]:
    """The variables that any program needs; keys and tokens of the user are left out."""
    names = (
        "HOME",
        "LANG",
        "LC_ALL",
        "LOGNAME",
        "PATH",
        "SHELL",
        "SYSTEMROOT",
        "TEMP",
        "TERM",
        "TMP",
        "TMPDIR",
        "USER",
    )
    return {name: os.environ[name] for name in names if name in os.environ}


def schema_problem(schema: Json) -> str | None:
    """Why a JSON Schema is invalid, or None; nothing is fetched."""
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(schema, retriever=_refuse_to_fetch)
    except (jsonschema_rs.ValidationError, ValueError, TypeError, LookupError) as error:
        return str(error).splitlines()[0]
    return None


def schema_error(schema: Mapping[str, Json], value: Json) -> str | None:
    """Why a value does not match a schema, or None."""
    import jsonschema_rs

    error = next(iter(jsonschema_rs.validator_for(dict(schema), retriever=_refuse_to_fetch).iter_errors(value)), None)
    if error is None:
        return None
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    return f"{place.lstrip('.')}: {error.message}" if place else str(error.message)


def _refuse_to_fetch(address: str) -> Any:
    raise LookupError(f"{address} is a remote schema, which is not fetched")


def function_schema(function: Callable[..., Any]) -> dict[str, Json] | str:
    """The schema of a function's parameters, or the reason why there is none."""
    target: Any = function
    try:
        schema = TypeAdapter(target).json_schema()
    except Exception as error:
        return one_line(error).partition("For further information")[0].strip()
    return schema


def _schema_by_name(parameters: Mapping[str, Json], required: frozenset[str] | None) -> dict[str, Json]:
    """A schema from a description of each parameter; `required` are the function's required ones, if known."""
    properties: dict[str, Json] = {}
    required_names: list[str] = []
    for name, item in parameters.items():
        properties[name] = {key: value for key, value in item.items() if not (key == "required" and value in (0, 1))}
        is_required = "default" not in item if required is None else name in required
        if item.get("required", is_required) is True:
            required_names.append(name)
    return {"type": "object", "properties": properties, "required": required_names, "additionalProperties": False}


def _required_parameters(function: Callable[..., Any] | None) -> frozenset[str] | None:
    """The required parameters of a function, or None if unknown."""
    if function is None:
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.default is p.empty)
