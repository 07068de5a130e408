"""The agent that an `agent.yaml` describes: built once for a run by its backend, with a session for each trial."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from proctor.agents.agent import Agent, BaseAgent, Session
from proctor.base.errors import AgentFailed, one_line
from proctor.base.json_data import Json, fingerprint
from proctor.cases.suite import Case
from proctor.compat.holodeck.agent_reader import read_agent
from proctor.compat.holodeck.agent_spec import AgentSpec
from proctor.compat.holodeck.backend_choice import CLAUDE, OPENAI, PYDANTIC_AI
from proctor.compat.holodeck.with_claude import build_agent as build_with_claude
from proctor.compat.holodeck.with_openai_agents import build_agent as build_with_openai_agents
from proctor.compat.holodeck.with_pydantic_ai import build_agent as build_with_pydantic_ai

Builder = Callable[[AgentSpec], AbstractAsyncContextManager[Agent]]
"""Builds an agent; its MCP servers run as long as the context lasts."""

BUILDERS: Mapping[str, Builder] = {
    CLAUDE: build_with_claude,
    OPENAI: build_with_openai_agents,
    PYDANTIC_AI: build_with_pydantic_ai,
}


def build(data: Json, base: Path | None) -> DescribedAgent:
    """The agent that `agent: {holodeck: data}` describes; raises `InvalidSuite` with everything that is wrong."""
    spec, backend = read_agent(data, base)
    return DescribedAgent(spec, backend.name)


def check(data: Json, base: Path | None) -> DescribedAgent:
    """The same without loading Python functions: the agent can be checked, and not run."""
    spec, backend = read_agent(data, base, load=False)
    return DescribedAgent(spec, backend.name)


class DescribedAgent(BaseAgent):
    """An agent that its backend builds in `start` and closes in `stop`.

    Both happen in one task of its own: what MCP servers open must be closed by the task that opened it.
    """

    reports_all_tool_calls = True
    reads_files = False
    start_timeout = 60.0
    """Libraries are loaded and servers of tools started once, however little time a trial has."""

    def __init__(self, spec: AgentSpec, backend: str) -> None:
        self.spec = spec
        self.backend = backend
        self.name = f"{spec.name} ({backend})"
        self.fingerprint = fingerprint(spec.fingerprint, backend)
        self._inner: Agent | None = None
        self._life: asyncio.Task[None] | None = None
        self._over: asyncio.Event | None = None

    def __repr__(self) -> str:
        return f"DescribedAgent({self.spec.name}, {self.backend})"

    async def start(self) -> None:
        self._over = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(ready, self._over))
        try:
            await ready
        except asyncio.CancelledError:
            self._life.cancel()
            raise

    async def stop(self) -> None:
        if self._over is not None and self._life is not None:
            self._over.set()
            await self._life

    async def _live(self, ready: asyncio.Future[None], over: asyncio.Event) -> None:
        try:
            async with BUILDERS[self.backend](self.spec) as agent:
                self._inner = agent
                ready.set_result(None)
                await over.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error if isinstance(error, AgentFailed) else AgentFailed(_first_cause(error)))
        finally:
            self._inner = None

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        if self._inner is None:
            raise AgentFailed(f"the agent {self.name} has not been started")
        return self._inner.session(case)


def _first_cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(error)
