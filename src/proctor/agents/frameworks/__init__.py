"""Agents written with a framework, recognised by the package that their class comes from, or made by a function."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from types import FunctionType, ModuleType
from typing import Any

from proctor.agents.agent import BaseAgent, Session
from proctor.agents.sessions import closure_values
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.references import describe, source_fingerprint
from proctor.cases.suite import Case

MODULES = {
    "agno": "agno",
    "google.adk": "google_adk",
    "agents": "openai_agents",
    "pydantic_ai": "pydantic_ai",
    "langgraph": "langchain",
    "langchain": "langchain",
    "langchain_core": "langchain",
    "llama_index": "llama_index",
    "workflows": "llama_index",
    "smolagents": "smolagents",
    "claude_agent_sdk": "claude_agent_sdk",
}
"""By the package in which a class or one of its bases is defined."""

TAKEN = {
    "agno": "of Agno, name an Agent or a Team",
    "google_adk": "of Google ADK, name an agent, an App or a Runner",
    "openai_agents": "of the OpenAI Agents SDK, name an Agent",
    "pydantic_ai": "of Pydantic AI, name an Agent",
    "langchain": "of LangChain and LangGraph, name an agent, a graph, a chain or a chat model",
    "llama_index": "of LlamaIndex, name an agent or a workflow, or a function that asks the engine or the model",
    "smolagents": "of smolagents, name a ToolCallingAgent or a CodeAgent",
    "claude_agent_sdk": "of the Claude Agent SDK, name ClaudeAgentOptions",
}
"""By adapter: what to name as the agent."""

PACKAGES = {
    "agno": ("agno",),
    "google_adk": ("google-adk",),
    "openai_agents": ("openai-agents",),
    "pydantic_ai": ("pydantic-ai-slim",),
    "langchain": ("langchain", "langgraph"),
    "llama_index": ("llama-index-core",),
    "smolagents": ("smolagents",),
    "claude_agent_sdk": ("claude-agent-sdk",),
}
"""By adapter: what is installed with pip."""


def adapted(target: Any, name: str) -> BaseAgent | None:
    """The agent behind an object of a known framework, or that a function makes; `None` for everything else."""

    for module in _modules(type(target)):
        agent = importlib.import_module(f"{__name__}.{module}").adapt(target, name)
        if agent is not None:
            return agent  # type: ignore[no-any-return]
    return made_by(target, name)


def advice(target: Any) -> str:
    """What to name instead of an object of a known framework that is no agent."""
    kind = target if isinstance(target, type) else type(target)
    return next((f": {TAKEN[module]}" for module in _modules(kind)), "")


def is_at_home(value: Any) -> bool:
    """Whether a value in the user's code belongs to a known framework."""
    if isinstance(value, ModuleType):
        return _module(value.__name__) is not None
    if isinstance(value, FunctionType):
        return _module(value.__module__ or "") is not None
    return bool(_modules(value if isinstance(value, type) else type(value)))


def _modules(kind: type[Any]) -> list[str]:
    homes = [_module(str(getattr(base, "__module__", ""))) for base in kind.__mro__]
    return list(dict.fromkeys(module for module in homes if module is not None))


def _module(home: str) -> str | None:
    return next((module for root, module in MODULES.items() if home == root or home.startswith(f"{root}.")), None)


def made_by(function: Any, name: str) -> BaseAgent | None:
    """The agent that a function without parameters makes; `None` if it has any, or has to do with no framework.

    Such a function could not be told the question; and one that mentions no framework is not called to find out.
    """
    if not isinstance(function, FunctionType) or inspect.signature(function).parameters:
        return None
    if not _concerns_a_framework(function):
        return None
    if inspect.iscoroutinefunction(function):
        return AwaitedAgent(function, name or function.__name__)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return None
    return _adapted(_called(function), name or function.__name__)


class AwaitedAgent(BaseAgent):
    """An agent that an async function makes, in the loop in which it is asked."""

    takes_files = False

    def __init__(self, make: Callable[[], Any], name: str) -> None:
        self.name = name
        self.fingerprint = source_fingerprint(make)
        self.target: Any = None
        """What was made; `toolbox` looks for tools here."""
        self._make = make
        self._agent: BaseAgent | None = None

    def __repr__(self) -> str:
        return f"AwaitedAgent({self.name})"

    async def start(self) -> None:
        self.target = await self._make()
        self._agent = _adapted(self.target, self.name)
        if self._agent is None:
            kind = type(self.target).__name__
            raise AgentFailed(f"{self.name} takes no question, and what it makes is no agent but {kind}")
        await self._agent.start()

    async def stop(self) -> None:
        if self._agent is not None:
            await self._agent.stop()

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        if self._agent is None:
            raise AgentFailed(f"{self.name} has not been started, so there is no agent yet")
        return self._agent.session(case)


def _adapted(target: Any, name: str) -> BaseAgent | None:

    return None if isinstance(target, FunctionType) else adapted(target, name)


def _called(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        raise UsageError(f"{function.__name__} could not make an agent: {describe(error)}") from error


def _concerns_a_framework(function: FunctionType) -> bool:
    """Whether its code names something of a framework; one that asks Proctor for its input is an application."""

    mentioned = list(_mentioned(function, []))
    return any(map(is_at_home, mentioned)) and not any(map(_is_ours, mentioned))


def _mentioned(function: FunctionType, above: list[FunctionType]) -> Iterator[Any]:
    """What its code names, and that of the functions beside it which it calls; what it imports itself, by name."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        yield ModuleType(name) if value is None else value
        beside = isinstance(value, FunctionType) and value.__globals__ is function.__globals__
        if isinstance(value, FunctionType) and beside and value not in above:
            yield from _mentioned(value, [*above, function])
    yield from closure_values(function)


def _is_ours(value: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(home).partition(".")[0] == "proctor"
