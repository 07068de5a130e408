"""Reads `tools`: Python functions, prompts, files to search, and servers of tools."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from proctor.cases.fields import Document, Fields, nearest
from proctor.cases.formats.holodeck_config import ProviderDefaults
from proctor.cases.source import Pointer
from proctor.declarative.reading_mcp import read_mcp
from proctor.declarative.reading_model import missing_for, read_model
from proctor.declarative.reading_stores import read_store
from proctor.declarative.schemas import read_parameters, schema_of
from proctor.declarative.spec import FunctionSpec, McpSpec, PromptSpec, StoreSpec, ToolSpec
from proctor.errors import UsageError
from proctor.judging.providers import ModelSpec
from proctor.plain import Json
from proctor.records import record
from proctor.references import resolve

MOST_TOOLS = 50
TYPES = ("function", "mcp", "prompt", "vectorstore")
_GAP = r"\{\{\s*\$?(\w+)\s*\}\}"


@record
class ToolReader:
    """What the tools of one file have in common."""

    document: Document
    base: Path
    model: ModelSpec | None
    embedder: ModelSpec | None
    """Whom `embedding_provider` names."""
    defaults: ProviderDefaults
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

    def _resolved(self, fields: Fields, file: str, called: str) -> Callable[..., Any] | None:
        if not file.endswith(".py"):
            fields.problem("file", f"must be a Python file, not {file!r}")
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
