"""Looks up what tools name: Python functions, prompts, files to search and MCP servers, with their JSON Schemas."""

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
    missing_for,
    model_spec,
    web_address,
)
from proctor.compat.holodeck.models import (
    FunctionTool,
    MCPTool,
    PromptTool,
    ToolModel,
    VectorstoreTool,
    unsupported_tool,
)
from proctor.compat.holodeck.passages import read_store
from proctor.judging.providers import ModelSpec
from proctor.version import install_command

_GAP = r"\{\{\s*\$?(\w+)\s*\}\}"


@dataclass(frozen=True, slots=True)
class ToolReader:
    """Looks up the tools of one agent."""

    problems: Problems
    base: Path
    model: ModelSpec | None
    embedder: ModelSpec | None
    """The model that `embedding_provider` names."""
    load: bool = True
    """Whether functions are loaded, and not only located."""
    found: list[ToolSpec] = field(default_factory=list)
    servers: list[McpSpec] = field(default_factory=list)

    def read(self, tool: ToolModel, place: Pointer) -> None:
        """Look up one tool and add it to those that were found."""
        before = len(self.problems.found)
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
            self.problems.add((*place, "type"), unsupported_tool(str(getattr(tool, "type", ""))))
        if spec is not None and len(self.problems.found) == before:
            self.found.append(spec)

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
        schema = schema_of(function) if tool.parameters is None else self._schema(tool, place, function)
        if isinstance(schema, str):
            wrong = f"{tool.function} does not say what it takes ({schema}); describe it in 'parameters'"
            self.problems.add((*place, "function"), wrong)
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
            if model is not None and (missing := missing_for(model)):
                self.problems.add((*place, "model"), f"cannot be asked: {missing}")
        schema = self._schema(tool, place, None)
        if template is None:
            return None
        gaps = list(dict.fromkeys(_gap().findall(template)))
        if schema is None:
            properties = {gap: {"type": "string"} for gap in gaps}
            schema = {"type": "object", "properties": properties, "required": gaps, "additionalProperties": False}
        for gap in gaps:
            if gap not in (schema.get("properties") or {}):
                wrong = f"has {{{{{gap}}}}}, which 'parameters' does not describe"
                self.problems.add((*place, "template"), wrong)
        return PromptSpec(tool.name, tool.description or "", template, schema, model, tool.defer_loading)

    def _schema(
        self, tool: FunctionTool | PromptTool, place: Pointer, function: Callable[..., Any] | None
    ) -> dict[str, Json] | None:
        """`parameters` as a schema: a whole one, or a description of each parameter by its name."""
        given = tool.parameters
        if given is None:
            return None
        if given.get("type") == "object" and isinstance(given.get("properties"), dict):
            schema = dict(given)
        else:
            schema = _schema_by_name(given, _required_parameters(function))
        reason = schema_problem(schema)
        if reason is not None:
            self.problems.add((*place, "parameters"), f"is not a JSON Schema: {reason}")
            return None
        return schema

    def read_server(self, tool: MCPTool, place: Pointer, base: Path) -> None:
        """Look up an MCP server; a key that has no meaning for its transport is a problem."""
        before = len(self.problems.found)
        spec = _ServerReader(tool, place, base, self.problems).read()
        if spec is not None and len(self.problems.found) == before:
            self.servers.append(spec)


def render(template: str, values: Mapping[str, Json]) -> str:
    """The template with its gaps filled; what a value says is not looked at again."""
    return _gap().sub(lambda found: str(values.get(found.group(1), "")), template)


@functools.cache
def _gap() -> re.Pattern[str]:
    return re.compile(_GAP)


TRANSPORTS = ("stdio", "http", "sse")
_STDIO_KEYS = ("command", "args", "env", "env_file")
_HTTP_KEYS = ("url", "headers")


@dataclass(frozen=True, slots=True)
class _ServerReader:
    tool: MCPTool
    place: Pointer
    base: Path
    problems: Problems

    def read(self) -> McpSpec | None:
        tool = self.tool
        if tool.transport not in TRANSPORTS:
            known = f"{', '.join(TRANSPORTS)}{did_you_mean(tool.transport, TRANSPORTS)}"
            self._problem("transport", f"is {tool.transport!r}, which Proctor does not speak; it speaks {known}")
            return None
        for key in _HTTP_KEYS if tool.transport == "stdio" else _STDIO_KEYS:
            if key in tool.model_fields_set and getattr(tool, key) is not None:
                self._problem(key, f"has no meaning for a server reached by {tool.transport}")
        if not tool.load_tools:
            self._problem("load_tools", "is false, so the server would be of no use; remove the tool instead")
        if tool.load_prompts:
            self._problem("load_prompts", "is true, and prompts of servers are not put to an agent here; remove it")
        if importlib.util.find_spec("mcp") is None:
            self._problem("type", f"is mcp, which needs more packages: {install_command('mcp')}")
        common: Any = {
            "connect_timeout": float(tool.timeout),
            "request_timeout": float(tool.request_timeout),
            "deferred": tool.defer_loading,
        }
        if tool.transport == "stdio":
            return self._started(common)
        if tool.url is None:
            self.problems.add(self.place, "needs 'url' (where the server is)")
            return None
        url = web_address(tool.url, (*self.place, "url"), self.problems)
        headers = self._filled("headers", tool.headers or {})
        return McpSpec(tool.name, tool.transport, url=url or "", headers=headers, **common)  # type: ignore[arg-type]

    def _started(self, common: Any) -> McpSpec | None:
        tool = self.tool
        if tool.command is None:
            self.problems.add(self.place, "needs 'command' (text)")
            return None
        environment = self._environment()
        if not _is_program(tool.command, self.base, environment):
            self._problem("command", f"names {tool.command}, which is not a program that can be started here")
        return McpSpec(tool.name, "stdio", tool.command, tuple(tool.args), environment, self.base, **common)

    def _environment(self) -> dict[str, str]:
        """What the server finds in its environment beside the ordinary: the file first, then what is written here."""
        found: dict[str, str] = {}
        file = self.tool.env_file
        if file is not None:
            try:
                found = read_env_file(self.base / file)
            except UsageError as error:
                reason = str(error).removeprefix(f"{self.base / file}: ")
                self._problem("env_file", f"names {file}, which {reason}")
        return {**ordinary_environment(), **found, **self._filled("env", self.tool.env or {})}

    def _filled(self, key: str, values: Mapping[str, str]) -> dict[str, str]:
        """Texts with their variables, which are looked up now."""
        filled = {n: expand_variables(text, (*self.place, key, n), self.problems) for n, text in values.items()}
        return {name: text for name, text in filled.items() if text is not None}

    def _problem(self, key: str, message: str) -> None:
        self.problems.add((*self.place, key), message)


def _is_program(command: str, base: Path, environment: Mapping[str, str]) -> bool:
    """A name is looked for where the server's own PATH leads, a path from the folder it is started in."""
    try:
        if Path(command).name != command:
            return os.access(base / command, os.X_OK)
        return shutil.which(command, path=environment.get("PATH")) is not None
    except ValueError:
        return False


def ordinary_environment() -> dict[str, str]:
    """What any program needs to run; keys and tokens of the person who runs the tests stay where they are."""
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
    """Why a schema is none; nothing is fetched to find out."""
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(schema, retriever=_never)
    except (jsonschema_rs.ValidationError, ValueError, TypeError, LookupError) as error:
        return str(error).splitlines()[0]
    return None


def schema_error(schema: Mapping[str, Json], value: Json) -> str | None:
    """Why a value does not fit a schema."""
    import jsonschema_rs

    error = next(iter(jsonschema_rs.validator_for(dict(schema), retriever=_never).iter_errors(value)), None)
    if error is None:
        return None
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    return f"{place.lstrip('.')}: {error.message}" if place else str(error.message)


def _never(address: str) -> Any:
    raise LookupError(f"{address} is elsewhere, and schemas are not fetched")


def schema_of(function: Callable[..., Any]) -> dict[str, Json] | str:
    """What a function takes, or why that cannot be said."""
    target: Any = function
    try:
        found = TypeAdapter(target).json_schema()
    except Exception as error:
        return one_line(error).partition("For further information")[0].strip()
    return found


def _schema_by_name(given: Mapping[str, Json], required: frozenset[str] | None) -> dict[str, Json]:
    """A schema from a description of each parameter; `required` are those that the function needs, if known."""
    properties: dict[str, Json] = {}
    needed: list[str] = []
    for name, item in given.items():
        properties[name] = {key: value for key, value in item.items() if not (key == "required" and value in (0, 1))}
        usually = "default" not in item if required is None else name in required
        if item.get("required", usually) is True:
            needed.append(name)
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def _required_parameters(function: Callable[..., Any] | None) -> frozenset[str] | None:
    """The parameters a function cannot do without; `None` where it does not say."""
    if function is None:
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters if p.default is p.empty)
