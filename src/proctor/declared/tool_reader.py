"""Reads `tools`: Python functions, prompts, files to search and MCP servers, with the JSON Schemas they name."""

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

from proctor.base.documents import Document, Fields, kind, nearest
from proctor.base.environment import read_env_file
from proctor.base.errors import UsageError, one_line
from proctor.base.json_data import Json
from proctor.base.references import locate, resolve
from proctor.base.source import Pointer
from proctor.cases.formats.holodeck.configuration import ProviderDefaults
from proctor.declared.description import (
    FunctionSpec,
    McpSpec,
    PromptSpec,
    StoreSpec,
    ToolSpec,
    filled,
    missing_for,
    read_address,
    read_model,
)
from proctor.declared.passage_search import read_store
from proctor.judging.providers import ModelSpec

MOST_TOOLS = 50
TYPES = ("function", "mcp", "prompt", "vectorstore")
_GAP = r"\{\{\s*\$?(\w+)\s*\}\}"


@dataclass(frozen=True, slots=True)
class ToolReader:
    """What the tools of one file have in common."""

    document: Document
    base: Path
    model: ModelSpec | None
    embedder: ModelSpec | None
    """Whom `embedding_provider` names."""
    defaults: ProviderDefaults
    load: bool = True
    """Whether functions are loaded, and not only located."""
    found: list[ToolSpec] = field(default_factory=list)
    servers: list[McpSpec] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def read(self, tools: list[Json], pointer: Pointer) -> None:
        if len(tools) > MOST_TOOLS:
            self.document.problem(pointer, f"has {len(tools)} tools; {MOST_TOOLS} are the most")
        for index, item in enumerate(tools):
            self.read_one(item, (*pointer, index))

    def read_one(self, tool: Json, pointer: Pointer) -> None:
        fields = Fields(self.document, tool, pointer)
        if fields.valid:
            self._tool(fields)

    def _tool(self, fields: Fields) -> None:
        name = fields.text("name", required=True, blank=False) or ""
        if name and not _is_name(name):
            fields.problem("name", f"must be made of letters, digits and _, not {name!r}")
        if name in self.names:
            fields.problem("name", f"is given to more than one tool: {name!r}")
        self.names.add(name)
        sort = fields.text("type", required=True)
        if sort not in TYPES:
            if sort is not None:
                near = nearest(sort, TYPES)
                fields.problem("type", f"is {sort!r}, which Proctor does not run; it runs {', '.join(TYPES)}{near}")
            return
        before = len(self.document.problems)
        made = self._of_type(sort, fields, name)
        fields.done()
        if len(self.document.problems) > before or made is None:
            return
        if isinstance(made, McpSpec):
            self.servers.append(made)
        else:
            self.found.append(made)

    def _of_type(self, sort: str, fields: Fields, name: str) -> ToolSpec | McpSpec | None:
        description = fields.text("description", "") or ""
        deferred = bool(fields.flag("defer_loading", False))
        if sort == "function":
            return self._function(fields, name, description, deferred)
        if sort == "prompt":
            return self._prompt(fields, name, description, deferred)
        if sort == "mcp":
            return read_mcp(fields, name, self.base, deferred)
        return self._store(fields, name, description, deferred)

    def _function(self, fields: Fields, name: str, description: str, deferred: bool) -> FunctionSpec | None:
        file = fields.text("file", required=True, blank=False)
        called = fields.text("function", required=True, blank=False)
        if not self.load:
            read_parameters(fields, None)
            if file is not None and called is not None:
                self._locate(fields, file, called)
            return FunctionSpec(name, description, None, {}, deferred)
        function = None if file is None or called is None else self._resolved(fields, file, called)
        given = read_parameters(fields, function)
        if function is None:
            return None
        schema = schema_of(function) if given is None else given
        if isinstance(schema, str):
            fields.problem("function", f"{called} does not say what it takes ({schema}); describe it in 'parameters'")
            return None
        told = description or _summary(function)
        return FunctionSpec(name, told, function, schema, deferred)

    def _locate(self, fields: Fields, file: str, called: str) -> None:
        try:
            if _is_python_file(fields, file):
                locate(f"{file}:{called}", self.base)
        except UsageError as error:
            fields.problem("function", f"cannot be found: {error}")

    def _resolved(self, fields: Fields, file: str, called: str) -> Callable[..., Any] | None:
        if not _is_python_file(fields, file):
            return None
        try:
            function = resolve(f"{file}:{called}", self.base)
        except UsageError as error:
            fields.problem("function", f"cannot be found: {error}")
            return None
        if not callable(function):
            fields.problem("function", f"{called} is not a function")
            return None
        return function  # type: ignore[no-any-return]

    def _prompt(self, fields: Fields, name: str, description: str, deferred: bool) -> PromptSpec | None:
        template = read_inline_or_file(fields, "template", self.base)
        schema = read_parameters(fields, None)
        block = fields.inside("model")
        model = None
        if block is not None and block.valid:
            model = self.other_model(fields, "model")
        if template is None:
            return None
        gaps = list(dict.fromkeys(_gap().findall(template)))
        if schema is None:
            properties = {gap: {"type": "string"} for gap in gaps}
            schema = {"type": "object", "properties": properties, "required": gaps, "additionalProperties": False}
        known = schema.get("properties") or {}
        for gap in gaps:
            if gap not in known:
                fields.problem("template", f"has {{{{{gap}}}}}, which 'parameters' does not describe")
        return PromptSpec(name, description, template, schema, model, deferred)

    def other_model(self, fields: Fields, key: str) -> ModelSpec | None:
        """A model of a tool's own, with what is known of its provider."""
        data = fields.take(key)
        model = read_model(Fields(self.document, {**self.defaults(data), **data}, fields.at(key)))
        if model is not None and (missing := missing_for(model)):
            fields.problem(key, f"cannot be asked: {missing}")
        return model

    def _store(self, fields: Fields, name: str, description: str, deferred: bool) -> StoreSpec | None:
        return read_store(fields, name, description, self.base, self.embedder or self.model, self.embedder, deferred)


def read_inline_or_file(fields: Fields, inline: str, base: Path) -> str | None:
    """A text that stands in the file itself, or in another."""
    text, elsewhere = fields.text(inline, blank=False), fields.text("file", blank=False)
    if (fields.take(inline) is None) == (fields.take("file") is None):
        fields.document.problem(fields.pointer, f"needs either {inline!r} or 'file'")
        return None
    if elsewhere is None:
        return None if text is None else str(text)
    try:
        return Path(base, elsewhere).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        fields.problem("file", f"names {elsewhere}, which cannot be read: {error}")
        return None


def render(template: str, values: Mapping[str, Json]) -> str:
    """The template with its gaps filled; what a value says is not looked at again."""
    return _gap().sub(lambda found: str(values.get(found.group(1), "")), template)


@functools.cache
def _gap() -> re.Pattern[str]:
    return re.compile(_GAP)


def _is_name(text: str) -> bool:
    return text.isascii() and text.replace("_", "a").isalnum()


def _summary(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").strip()


TRANSPORTS = ("stdio", "http", "sse")
_STARTED = ("command", "args", "env", "env_file")
_REACHED = ("url", "headers")


def read_mcp(fields: Fields, name: str, base: Path, deferred: bool) -> McpSpec | None:
    """The server; what has no meaning for its transport is a problem, so that no file relies on it."""
    transport = fields.text("transport", "stdio")
    if transport not in TRANSPORTS:
        fields.problem(
            "transport",
            f"is {transport!r}, which Proctor does not speak; it speaks {', '.join(TRANSPORTS)}"
            f"{nearest(transport, TRANSPORTS)}",
        )
        fields.rest()
        return None
    for key in _REACHED if transport == "stdio" else _STARTED:
        if fields.take(key) is not None:
            fields.problem(key, f"has no meaning for a server reached by {transport}")
    if fields.flag("load_tools", True) is False:
        fields.problem("load_tools", "is false, so the server would be of no use; remove the tool instead")
    if fields.flag("load_prompts", False):
        fields.problem("load_prompts", "is true, and prompts of servers are not put to an agent here; remove it")
    fields.text("registry_name")
    spec: Any = {
        "retrieval": bool(fields.flag("is_retrieval", False)),
        "connect_timeout": _seconds(fields, "timeout", 30.0),
        "request_timeout": _seconds(fields, "request_timeout", 60.0),
        "deferred": deferred,
    }
    if importlib.util.find_spec("mcp") is None:
        fields.problem("type", "is mcp, which needs more packages: pip install 'proctor[mcp]'")
    if transport == "stdio":
        command = fields.text("command", required=True, blank=False) or ""
        environment = _environment(fields, base)
        if command and not _is_program(command, base, environment):
            fields.problem("command", f"names {command}, which is not a program that can be started here")
        return McpSpec(name, "stdio", command, fields.texts("args", ()), environment, base, **spec)
    url = read_address(fields, "url")
    if fields.take("url") is None:
        fields.document.problem(fields.pointer, "needs 'url' (where the server is)")
    return McpSpec(name, transport, url=url or "", headers=_texts(fields, "headers"), **spec)


def _is_program(command: str, base: Path, environment: Mapping[str, str]) -> bool:
    """A name is looked for where the server's own PATH leads, a path from the folder it is started in."""
    try:
        if Path(command).name != command:
            return os.access(base / command, os.X_OK)
        return shutil.which(command, path=environment.get("PATH")) is not None
    except ValueError:
        return False


def _environment(fields: Fields, base: Path) -> dict[str, str]:
    """What the server finds in its environment beside the ordinary: the file first, then what is written here."""
    found: dict[str, str] = {}
    elsewhere = fields.text("env_file", blank=False)
    if elsewhere is not None:
        try:
            found = read_env_file(base / elsewhere)
        except UsageError as error:
            reason = str(error).removeprefix(f"{base / elsewhere}: ")
            fields.problem("env_file", f"names {elsewhere}, which {reason}")
    return {**ordinary_environment(), **found, **_texts(fields, "env")}


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


def _texts(fields: Fields, name: str) -> dict[str, str]:
    """An object of texts, with variables that are looked up now."""
    given = fields.mapping(name, {})
    inside = Fields(fields.document, given, fields.at(name))
    found: dict[str, str] = {}
    for key in given:
        text = inside.text(key)
        value = None if text is None else filled(inside, key, text)
        if value is not None:
            found[key] = value
    return found


def _seconds(fields: Fields, name: str, usual: float) -> float:
    value: float = fields.number(name, usual)
    if value <= 0:
        fields.problem(name, "must be more than 0 seconds")
    return value


def schema_problem(schema: Json) -> str | None:
    """Why a schema is none; nothing is fetched to find out."""
    import jsonschema_rs

    try:
        jsonschema_rs.validator_for(schema, retriever=_never)
    except (jsonschema_rs.ValidationError, ValueError, TypeError, LookupError) as error:
        return str(error).splitlines()[0]
    return None


def misfit(schema: Mapping[str, Json], value: Json) -> str | None:
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


def _is_python_file(fields: Fields, file: str) -> bool:
    if not file.endswith(".py"):
        fields.problem("file", f"must be a Python file, not {file!r}")
        return False
    return True


def read_parameters(fields: Fields, function: Callable[..., Any] | None) -> dict[str, Json] | None:
    """`parameters` as a schema: a whole one, or a description of each parameter by its name."""
    given = fields.mapping("parameters")
    if given is None:
        return None
    if given.get("type") == "object" and isinstance(given.get("properties"), dict):
        schema = dict(given)
    else:
        schema = _by_name(fields, given, _without_default(function))
    reason = schema_problem(schema)
    if reason is not None:
        fields.problem("parameters", f"is not a JSON Schema: {reason}")
        return None
    return schema


def _by_name(fields: Fields, given: Mapping[str, Json], needed: frozenset[str] | None) -> dict[str, Json]:
    properties: dict[str, Json] = {}
    required: list[str] = []
    for name, item in given.items():
        if not isinstance(item, dict):
            fields.document.problem((*fields.at("parameters"), name), f"must be an object, not {kind(item)}")
            continue
        properties[name] = {key: value for key, value in item.items() if not (key == "required" and value in (0, 1))}
        usually = "default" not in item if needed is None else name in needed
        if item.get("required", usually) is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _without_default(function: Callable[..., Any] | None) -> frozenset[str] | None:
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
