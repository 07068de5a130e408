"""Python functions as tools of a chat model: described by their signatures, called with what the model wrote."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.agents.invoking import invoke_as, is_async
from proctor.errors import UsageError
from proctor.plain import Json
from proctor.records import record
from proctor.references import describe, resolve, source_fingerprint

_NAME = r"[A-Za-z0-9_-]{1,64}"
"""What chat interfaces allow."""


@record
class ChatTool:
    """Something a model may call; where it comes from does not matter to those who call it."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    """A JSON Schema of an object."""
    call: Callable[[Mapping[str, Json]], Awaitable[Any]]
    fingerprint: str = ""
    function: Callable[..., Any] | None = None
    """The code behind it, where there is some here: evaluators call it again."""

    @property
    def offer(self) -> Json:
        """How it is put to the model."""
        told = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": told}


def read_tools(references: Sequence[str], base: Path | None) -> tuple[ChatTool, ...]:
    """The tools that references name: a function each, or a list of functions."""
    tools: list[ChatTool] = []
    for reference in references:
        target = resolve(reference, base)
        functions = target if isinstance(target, (list, tuple)) else [target]
        tools += [tool_of(function, reference) for function in functions]
    names = [tool.name for tool in tools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two tools are called {', '.join(twice)}; a model tells tools apart by their names")
    return tuple(tools)


def tool_of(function: Any, where: str = "") -> ChatTool:
    """Raises `UsageError` where a model could not call it."""
    name = getattr(function, "__name__", type(function).__name__)
    place = where or name
    if not callable(function) or isinstance(function, type):
        raise UsageError(f"{place} is no function that could be a tool")
    if not re.fullmatch(_NAME, name):
        raise UsageError(f"{place}: {name!r} is no name for a tool; define it with letters, digits and _")
    called: Any = function if inspect.isroutine(function) else function.__call__
    try:
        from pydantic import TypeAdapter, validate_call

        schema, checked = TypeAdapter(called).json_schema(), validate_call(called)
    except Exception as error:
        raise UsageError(f"{place} cannot be a tool: {describe(error)}") from None
    if schema.get("type") != "object":
        raise UsageError(
            f"{place} cannot be a tool: a model gives arguments by name, and it takes some by position only"
        )
    call = functools.partial(_call, checked, is_async(function))
    return ChatTool(name, inspect.getdoc(function) or "", schema, call, source_fingerprint(function), function)


async def _call(function: Callable[..., Any], asynchronous: bool, arguments: Mapping[str, Json]) -> Any:
    return await invoke_as(asynchronous, function, (), arguments)
