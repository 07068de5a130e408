"""The tools of a described agent as functions: Python functions, prompts that a model answers, searches in files."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from proctor.agents.tools import InvalidArguments, bind_arguments
from proctor.base.json_data import Json, to_json
from proctor.base.threads import run_in_thread
from proctor.compat.holodeck.agent_spec import AgentSpec, FunctionSpec, PromptSpec, StoreSpec, ToolSpec, tool_name
from proctor.compat.holodeck.passages import VectorStore
from proctor.compat.holodeck.tool_reader import render, schema_error
from proctor.judging.providers import ModelSpec

Ask = Callable[[ModelSpec | None, str], Awaitable[str]]
"""Sends a prompt to a model (the agent's own if it is None) and returns the answer."""

_QUERY_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to look for, in plain words."}},
    "required": ["query"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool that is ready to call; it raises `InvalidArguments` for arguments that do not match its schema."""

    name: str
    description: str
    schema: Mapping[str, Json]
    call: Callable[[Mapping[str, Any]], Awaitable[Json]]
    deferred: bool = False


def build_tools(spec: AgentSpec, ask: Ask) -> list[AgentTool]:
    """The tools that the agent may use. They live as long as the run, with everything they store in memory."""
    allowed = [tool for tool in spec.tools if spec.vendor_options.allows(tool_name(tool), tool.name)]
    return [_build(tool, ask) for tool in allowed]


def _build(spec: ToolSpec, ask: Ask) -> AgentTool:
    schema = _QUERY_SCHEMA if isinstance(spec, StoreSpec) else spec.schema
    work: Any = _function_call(spec) if isinstance(spec, FunctionSpec) else None
    if isinstance(spec, PromptSpec):
        work = _prompt_call(spec, ask)
    elif isinstance(spec, StoreSpec):
        work = _search_call(spec)
    return AgentTool(tool_name(spec), spec.description, schema, _with_schema_check(schema, work), spec.deferred)


def _with_schema_check(schema: Mapping[str, Json], work: Any) -> Any:
    """Check arguments against the schema first; the model sees the error and can try again."""

    async def call(arguments: Mapping[str, Any]) -> Json:
        problem = schema_error(schema, to_json(arguments))
        if problem is not None:
            raise InvalidArguments(problem)
        return to_json(await work(arguments))

    return call


def _function_call(spec: FunctionSpec) -> Any:
    function = spec.function
    if function is None:
        raise ValueError(f"the tool {spec.name} was only checked, and its function was not loaded")

    async def call(arguments: Mapping[str, Any]) -> Any:
        positional, keywords = bind_arguments(function, arguments)
        if inspect.iscoroutinefunction(function):
            return await function(*positional, **keywords)
        result = await run_in_thread(function, *positional, **keywords)
        return await result if inspect.isawaitable(result) else result

    return call


def _prompt_call(spec: PromptSpec, ask: Ask) -> Any:
    async def call(arguments: Mapping[str, Any]) -> str:
        return await ask(spec.model, render(spec.template, arguments))

    return call


def _search_call(spec: StoreSpec) -> Any:
    store = VectorStore(spec)

    async def call(arguments: Mapping[str, Any]) -> list[dict[str, Json]]:
        return await store.search(arguments["query"])

    return call
