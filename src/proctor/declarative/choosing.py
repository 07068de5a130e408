"""Who runs an agent that a file describes: the SDK of its model's vendor where that can be had, else Pydantic AI."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from proctor.agents.model import Agent
from proctor.cases.model import Suite
from proctor.declarative.reading import read_agent
from proctor.declarative.spec import AgentSpec
from proctor.errors import InvalidSuite
from proctor.records import record

Builder = Callable[[AgentSpec], AbstractAsyncContextManager[Agent]]
"""Makes an agent of what a file says, with its servers of tools running as long as the context lasts."""


@record
class Backend:
    """One way to run a declared agent."""

    name: str
    """Its package, as people install it."""
    built: Builder


def backend_for(suite: Suite) -> tuple[AgentSpec, Backend]:
    """Who runs the suite's agent, and the agent as that one reads it; raises `InvalidSuite`."""
    try:
        spec = read_agent(suite, sdk=True)
        backend = vendors_own(spec)
    except InvalidSuite:
        backend = None  # what is wrong is said below, with what Pydantic AI would need
    return (read_agent(suite), _pydantic_ai()) if backend is None else (spec, backend)


def backend_of(spec: AgentSpec) -> Backend:
    """Who runs an agent that was read already."""
    return vendors_own(spec) or _pydantic_ai()


def vendors_own(spec: AgentSpec) -> Backend | None:
    """The vendor's SDK, where it is installed and can do all that is asked."""
    from proctor.declarative.reading_manner import OF_CLAUDE, OF_OPENAI

    if spec.model.provider in OF_OPENAI and _is_installed("agents.run"):
        from proctor.declarative import with_openai_agents

        return None if with_openai_agents.unable(spec) else Backend("openai-agents", with_openai_agents.built)
    if spec.model.provider in OF_CLAUDE - {"bedrock"} and _is_installed("claude_agent_sdk"):
        from proctor.declarative import with_claude

        return None if with_claude.unable(spec) else Backend("claude-agent-sdk", with_claude.built)
    return None


def _pydantic_ai() -> Backend:
    from proctor.declarative.with_pydantic_ai import built

    return Backend("pydantic-ai", built)


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None  # a mere folder of that name has no origin
