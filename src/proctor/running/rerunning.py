"""Calls an agent's tools again with the agent's own arguments, to learn what they really give back."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from proctor.agents.invoking import invoke
from proctor.agents.model import ToolCall
from proctor.errors import UsageError
from proctor.references import describe
from proctor.running.agent_runs import as_passage

Tools: TypeAlias = "Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]]"
"""By name, or functions that go by their own names."""


def tools_by_name(tools: Tools) -> dict[str, Callable[..., Any]]:
    """The tools as a table; raises `UsageError` for one that cannot be called or has no name."""
    named = tools.items() if isinstance(tools, Mapping) else [(getattr(tool, "__name__", ""), tool) for tool in tools]
    table: dict[str, Callable[..., Any]] = {}
    for name, tool in named:
        if not name or not callable(tool):
            raise UsageError(f"{tool!r} is no tool: give functions, or a mapping of names to functions")
        table[name] = tool
    return table


async def call_again(calls: Sequence[ToolCall], tools: Mapping[str, Callable[..., Any]]) -> list[str]:
    """What each call gives now, in order; a tool that is not known keeps what it gave then, one that raises says so."""
    return [as_passage(await _result(call, tools.get(call.name))) for call in calls]


async def _result(call: ToolCall, tool: Callable[..., Any] | None) -> Any:
    if tool is None:
        return call.result if call.error is None else {"error": call.error}
    if call.raw_arguments is not None:
        return {"error": f"the arguments are not a JSON object: {call.raw_arguments}"}
    try:
        return await invoke(tool, **_arguments(tool, call.arguments))
    except Exception as error:
        return {"error": describe(error)}


def _arguments(tool: Callable[..., Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """By name as the tool takes them; a tool of one object, such as `LoanRequest`, gets that object made of them."""
    try:
        inspect.signature(tool).bind(**given)
    except ValueError:
        return given  # a builtin that does not say what it takes
    except TypeError:
        made = _made(tool, given)
        if made is None:
            raise
        return made
    return given


def _made(tool: Callable[..., Any], given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    needed = [p for p in inspect.signature(tool).parameters.values() if p.default is p.empty]
    if len(needed) != 1:
        return None
    kind = typing.get_type_hints(tool).get(needed[0].name)
    return {needed[0].name: kind(**given)} if isinstance(kind, type) else None
