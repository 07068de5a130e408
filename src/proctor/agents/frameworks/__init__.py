"""Agents written with a framework, recognised by the package that their class comes from.

Each framework has one module, the only one that knows it; it imports the framework inside the functions that need it.
Its `adapt(target, name)` gives an agent, or `None` for an object of the framework that is no agent.
"""

from __future__ import annotations

import importlib
from types import FunctionType, ModuleType
from typing import Any

from proctor.agents.agent import BaseAgent

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
    from proctor.agents.frameworks.factories import made_by

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
