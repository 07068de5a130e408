"""The agent that an `agent.yaml` describes: built once per run by its backend, with a session for each trial."""

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
from proctor.compat.holodeck.claude_backend import build_agent as build_with_claude
from proctor.compat.holodeck.openai_agents_backend import build_agent as build_with_openai_agents
from proctor.compat.holodeck.pydantic_ai_backend import build_agent as build_with_pydantic_ai

Builder = Callable[[AgentSpec], AbstractAsyncContextManager[Agent]]
"""Builds an agent; its MCP servers run as long as the context is open."""

BUILDERS: Mapping[str, Builder] = {
    CLAUDE: build_with_claude,
    OPENAI: build_with_openai_agents,
    PYDANTIC_AI: build_with_pydantic_ai,
}
"""The builder of each backend."""


def build_agent(data: Json, base: Path | None) -> HoloDeckAgent:
    """The agent that `agent: {holodeck: data}` describes; raises `InvalidSuite` with all problems."""
    spec, backend = read_agent(data, base)
    return HoloDeckAgent(spec, backend.name)


def check_agent(data: Json, base: Path | None) -> HoloDeckAgent:
    """Like `build_agent`, but without loading Python functions: the agent can be checked, but not run."""
    spec, backend = read_agent(data, base, load=False)
    return HoloDeckAgent(spec, backend.name)


class HoloDeckAgent(BaseAgent):
    """An agent that its backend builds in `start` and closes in `stop`.

    Both happen in one separate task, because MCP connections must be closed by the task that opened them.
    """

    reports_all_tool_calls = True
    reads_files = False
    start_timeout = 60.0
    """Seconds to load libraries and start MCP servers, whatever the time limit of a trial."""

    def __init__(self, spec: AgentSpec, backend: str) -> None:
        self.spec = spec
        self.backend = backend
        self.name = f"{spec.name} ({backend})"
        self.fingerprint = fingerprint(spec.fingerprint, backend)
        self.starts_processes = backend == CLAUDE
        self._inner: Agent | None = None
        self._lifetime: asyncio.Task[None] | None = None
        self._stopping: asyncio.Event | None = None

    def __repr__(self) -> str:
        return f"HoloDeckAgent({self.spec.name}, {self.backend})"

    async def start(self) -> None:
        self._stopping = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lifetime = asyncio.create_task(self._run(ready, self._stopping))
        try:
            await ready
        except asyncio.CancelledError:
            self._lifetime.cancel()
            raise

    async def stop(self) -> None:
        if self._stopping is not None and self._lifetime is not None:
            self._stopping.set()
            await self._lifetime

    async def _run(self, ready: asyncio.Future[None], stopping: asyncio.Event) -> None:
        """Build the agent, report it ready, and close it when `stop` is called."""
        try:
            async with BUILDERS[self.backend](self.spec) as agent:
                self._inner = agent
                ready.set_result(None)
                await stopping.wait()
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
    """The message of the first exception in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(error)
