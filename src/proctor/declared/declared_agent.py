"""A declared agent: built once for a run, with a session for each trial.

It is run by the SDK of its model's vendor where that is installed and can do all that is asked, else by Pydantic AI.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from proctor.agents.agent import Agent, BaseAgent, Session
from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import AgentFailed, InvalidSuite, one_line
from proctor.base.json_data import Json, fingerprint, parsed, show
from proctor.cases.suite import Case, Suite, Turn
from proctor.declared import with_claude, with_openai_agents, with_pydantic_ai
from proctor.declared.agent_reader import OF_CLAUDE, OF_OPENAI, read_agent
from proctor.declared.description import AgentSpec

Builder = Callable[[AgentSpec], AbstractAsyncContextManager[Agent]]
"""Makes an agent of what a file says; its MCP servers run as long as the context lasts."""


@dataclass(frozen=True, slots=True)
class Backend:
    """One way to run a declared agent."""

    name: str
    """Its package, as people install it."""
    built: Builder


def backend_for(suite: Suite, *, load: bool = True) -> tuple[AgentSpec, Backend]:
    """The agent's description and the backend that runs it; raises `InvalidSuite`.

    Without `load` the description is checked, and the functions that it names are located but not loaded.
    """
    try:
        spec = read_agent(suite, sdk=True, load=load)
        backend = vendor_backend(spec)
    except InvalidSuite:
        backend = None  # what is wrong is said below, with what Pydantic AI would need
    return (read_agent(suite, load=load), _pydantic_ai()) if backend is None else (spec, backend)


def backend_of(spec: AgentSpec) -> Backend:
    """The backend for an agent that was read already."""
    return vendor_backend(spec) or _pydantic_ai()


def vendor_backend(spec: AgentSpec) -> Backend | None:
    """The vendor's SDK, where it is installed and can do all that is asked."""
    if spec.model.provider in OF_OPENAI and _is_installed("agents.run"):
        return None if with_openai_agents.unable(spec) else Backend("openai-agents", with_openai_agents.built)
    if spec.model.provider in OF_CLAUDE - {"bedrock"} and _is_installed("claude_agent_sdk"):
        return None if with_claude.unable(spec) else Backend("claude-agent-sdk", with_claude.built)
    return None


def _pydantic_ai() -> Backend:
    return Backend("pydantic-ai", with_pydantic_ai.built)


def _is_installed(module: str) -> bool:
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin is not None  # a mere folder of that name has no origin


def declared_agent(suite: Suite, *, load: bool = True) -> DeclaredAgent:
    """The agent that a suite's file describes; raises `InvalidSuite` with everything that is wrong with it."""
    return DeclaredAgent(*backend_for(suite, load=load))


class DeclaredAgent(BaseAgent):
    """An agent made by its backend in `start`, and unmade in `stop`.

    Both happen in one task of its own: what MCP servers open must be closed by the task that opened it.
    """

    sees_calls = True
    takes_files = False
    start_seconds = 60.0
    """Libraries are loaded and servers of tools begun once, however little time a trial has."""

    def __init__(self, spec: AgentSpec, backend: Backend) -> None:
        self.spec = spec
        self.name = spec.name
        self.fingerprint = fingerprint(spec.fingerprint, backend.name)
        self._backend = backend
        self._inner: Agent | None = None
        self._life: asyncio.Task[None] | None = None
        self._over: asyncio.Event | None = None

    def __repr__(self) -> str:
        return f"DeclaredAgent({self.name}, {self._backend.name})"

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
            async with self._backend.built(self.spec) as agent:
                self._inner = agent
                ready.set_result(None)
                await over.wait()
        except Exception as error:
            if ready.done():
                raise
            told = error if isinstance(error, AgentFailed) else AgentFailed(_first_cause(error))
            ready.set_exception(told)
        finally:
            self._inner = None

    def session(self, case: Case) -> DeclaredSession:
        if self._inner is None:
            raise AgentFailed(f"the agent {self.name} has not been started")
        return DeclaredSession(self._inner.session(case), self.spec)


class DeclaredSession:
    """One conversation; the passages its tools retrieved are returned with the answer."""

    def __init__(self, inner: AbstractAsyncContextManager[Session], spec: AgentSpec) -> None:
        self._opening = inner
        self._spec = spec
        self._passages: list[str] = []

    async def __aenter__(self) -> DeclaredSession:
        self._session = await self._opening.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._opening.__aexit__(*raised)

    async def send(self, turn: Turn) -> Reply:
        """A turn that retrieves nothing rests on what earlier ones retrieved."""
        reply = await self._session.send(turn)
        found = retrieved(reply.tool_calls, self._spec)
        self._passages += [passage for passage in found if passage not in self._passages]
        return replace(reply, retrieval_context=tuple(found or self._passages) or None)


def retrieved(calls: Iterable[ToolCall], spec: AgentSpec) -> list[str]:
    """What tools that retrieve gave back: a text as it is, each item of a list, the text of a passage."""
    found: list[str] = []
    for call in calls:
        if call.error is None and spec.is_retrieval(call.name):
            result = _unpacked(call.result)
            items = result if isinstance(result, list) else [result]
            found += [text for text in map(_as_passage, items) if text]
    return found


def _unpacked(result: Json) -> Json:
    """Some SDKs take nothing but text, in which a list of passages is JSON."""
    return parsed(result) if isinstance(result, str) and result.startswith("[") else result


def _as_passage(item: Json) -> str:
    if isinstance(item, dict) and isinstance(item.get("text"), str):
        return str(item["text"])
    return "" if item is None else item if isinstance(item, str) else show(item)


def _first_cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(error)
