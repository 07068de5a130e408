"""Agents written with somebody's framework, recognised by where their class comes from.

One module per framework, the only one that knows it; it imports the framework inside the functions that need it. Each
has `adapt(target, name)`, which gives an Agent, or `None` for an object of the framework that is no agent.
"""

from __future__ import annotations

import importlib
from typing import Any

from proctor.agents.model import Agent

MODULES = {
    "agno": "agno",
    "google.adk": "google_adk",
    "agents": "openai_agents",
    "pydantic_ai": "pydantic_ai",
    "langgraph": "langchain",
    "langchain": "langchain",
    "langchain_core": "langchain",
    "llama_index": "llama_index",
    "smolagents": "smolagents",
    "claude_agent_sdk": "claude_agent_sdk",
}
"""By the package in which a class or one of its bases is defined."""


def adapted(target: Any, name: str) -> Agent | None:
    """The agent behind an object of a known framework; `None` for everything else."""
    for kind in type(target).__mro__:
        module = _module(getattr(kind, "__module__", ""))
        if module is not None:
            agent = importlib.import_module(f"{__name__}.{module}").adapt(target, name)
            if agent is not None:
                return agent  # type: ignore[no-any-return]
    return None


def _module(home: str) -> str | None:
    return next((module for root, module in MODULES.items() if home == root or home.startswith(f"{root}.")), None)
