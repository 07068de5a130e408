"""HoloDeck's backends: what runs an agent behind `invoke_once` and `create_session`, chosen or brought along."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from proctor.agents.agent import Agent, BaseAgent, with_defaults
from proctor.agents.reply import Reply
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, ProctorError, one_line
from proctor.base.json_data import fingerprint, show
from proctor.base.threads import call_in_thread, is_async
from proctor.cases.formats.holodeck.configuration import agent_env_files
from proctor.cases.formats.holodeck.test_cases import is_conversation
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case, Suite, Turn
from proctor.compat.holodeck.test_results import (
    BackendError,
    BackendInitError,
    BackendSessionError,
    BackendTimeoutError,
    ExecutionResult,
    TokenUsage,
    reply_of,
    result_of,
)
from proctor.declared.agent_reader import describes_agent
from proctor.declared.declared_agent import Backend, DeclaredAgent, backend_for, backend_of, retrieved
from proctor.declared.description import AgentSpec, FunctionSpec

__all__ = [
    "AgentBackend",
    "AgentSession",
    "BackendAgent",
    "BackendError",
    "BackendInitError",
    "BackendSelector",
    "BackendSessionError",
    "BackendTimeoutError",
    "ExecutionResult",
    "ProctorBackend",
    "ProctorSession",
    "TokenUsage",
]


@runtime_checkable
class AgentSession(Protocol):
    """One conversation with an agent."""

    async def prepare(self) -> None: ...

    async def send(self, message: str) -> ExecutionResult: ...

    def send_streaming(self, message: str) -> AsyncGenerator[str, None]: ...

    async def close(self) -> None: ...


@runtime_checkable
class AgentBackend(Protocol):
    """Runs an agent."""

    async def initialize(self) -> None: ...

    async def invoke_once(self, message: str, context: list[dict[str, Any]] | None = None) -> ExecutionResult: ...

    async def create_session(self, *, eager_connect: bool = True) -> AgentSession: ...

    async def teardown(self) -> None: ...


class ProctorBackend:
    """Any agent that Proctor can examine, as a backend."""

    def __init__(self, agent: Agent) -> None:
        self.agent = with_defaults(agent)
        self._started = False

    async def initialize(self) -> None:
        """Once; calling it again changes nothing."""
        if self._started:
            return
        try:
            await self.agent.start()
        except ProctorError as error:
            raise BackendInitError(str(error)) from error
        self._started = True

    async def invoke_once(self, message: str, context: list[dict[str, Any]] | None = None) -> ExecutionResult:
        """One message to an agent that knows nothing of others; `context` is said before it."""
        session = await self.create_session()
        try:
            told = [str(item.get("content", "")) for item in context or () if item.get("content")]
            return await session.send("\n\n".join([*told, message]))
        except BackendSessionError as error:
            return ExecutionResult("", is_error=True, error_reason=str(error))
        finally:
            await session.close()

    async def create_session(self, *, eager_connect: bool = True) -> ProctorSession:
        """A conversation; without `eager_connect` it is opened with the first message."""
        await self.initialize()
        session = ProctorSession(self.agent)
        if eager_connect:
            await session.prepare()
        return session

    async def teardown(self) -> None:
        if self._started:
            await self.agent.stop()
        self._started = False


class ProctorSession:
    """One conversation with such an agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._opened: Any = None
        self._session: Any = None
        self._said = 0

    async def prepare(self) -> None:
        if self._session is None:
            try:
                self._opened = self._agent.session(Case("session", (Turn(""),)))
                self._session = await self._opened.__aenter__()
            except Exception as error:
                raise BackendSessionError(_told(error)) from error

    async def send(self, message: str) -> ExecutionResult:
        await self.prepare()
        try:
            reply = await self._session.send(Turn(message))
        except Exception as error:
            raise BackendSessionError(_told(error)) from error
        self._said += 1
        return result_of(reply, self._said)

    async def send_streaming(self, message: str) -> AsyncGenerator[str, None]:
        """The answer as one piece: agents are examined by what they say in the end."""
        yield (await self.send(message)).response

    async def close(self) -> None:
        if self._session is not None:
            opened, self._session = self._opened, None
            await opened.__aexit__(None, None, None)


class BackendAgent(BaseAgent):
    """Any backend as an agent that Proctor can examine; one that was brought along is used as it is."""

    takes_files = False

    def __init__(self, backend: AgentBackend, name: str = "", spec: AgentSpec | None = None) -> None:
        self.backend = backend
        self.name = name or type(backend).__name__
        self.fingerprint = fingerprint(self.name, type(backend).__qualname__, spec.fingerprint if spec else "")
        self._spec = spec

    async def start(self) -> None:
        if hasattr(self.backend, "initialize"):
            await _done(self.backend.initialize)

    async def stop(self) -> None:
        await close(self.backend)

    @asynccontextmanager
    async def session(self, case: Case) -> AsyncIterator[_BackendConversation]:
        """A case of one message is asked by `invoke_once`, as HoloDeck does, any other in a session."""
        if not is_conversation(case) and case.scenario is None:
            yield _BackendConversation(self.backend.invoke_once, self._spec)
            return
        session = await _done(self.backend.create_session)
        try:
            yield _BackendConversation(session.send, self._spec)
        finally:
            if hasattr(session, "close"):
                await _done(session.close)


async def close(backend: Any) -> None:
    """Tear a backend down, where it can be."""
    if hasattr(backend, "teardown"):
        await _done(backend.teardown)


async def _done(step: Any, *given: Any) -> Any:
    """What a method of a backend comes to; one that is not async must not keep the others waiting."""
    if is_async(step):
        return await step(*given)
    found = await call_in_thread(step, *given)
    return await found if inspect.isawaitable(found) else found


class _BackendConversation:
    def __init__(self, send: Any, spec: AgentSpec | None) -> None:
        self._send = send
        self._spec = spec
        self._passages: list[str] = []

    async def send(self, turn: Turn) -> Reply:
        message = turn.input if isinstance(turn.input, str) else show(turn.input)
        reply = reply_of(await _done(self._send, message))
        if self._spec is None:
            return reply
        found = retrieved(reply.tool_calls, self._spec)
        self._passages += [passage for passage in found if passage not in self._passages]
        return replace(reply, retrieval_context=tuple(found or self._passages) or None)


class BackendSelector:
    """Chooses who runs an agent by its `model.provider` and by what is installed."""

    @staticmethod
    async def select(agent: Any, tool_instances: Mapping[str, Any] | None = None, mode: str = "test") -> ProctorBackend:
        """A backend for an agent.yaml, its suite or its spec; it is ready to be asked.

        `tool_instances` replaces functions of the file by name. `mode` is `test`, the only one there is here.
        """
        if mode != "test":
            raise BackendInitError(f"there is no mode {mode!r} here; agents are only tested")
        suite = _suite_of(agent)
        with environment_from(agent_env_files(suite.base) if isinstance(suite, Suite) else []):
            spec, backend = _chosen(suite)
            chosen = ProctorBackend(DeclaredAgent(_with_instances(spec, tool_instances or {}), backend))
            await chosen.initialize()
        return chosen


def _chosen(suite: Suite | AgentSpec) -> tuple[AgentSpec, Backend]:
    try:
        return (suite, backend_of(suite)) if isinstance(suite, AgentSpec) else backend_for(suite)
    except InvalidSuite as error:
        raise BackendInitError(str(error)) from error


def _suite_of(agent: Any) -> Any:
    if isinstance(agent, (Suite, AgentSpec)):
        suite: Any = agent
    elif isinstance(agent, (str, Path)):
        try:
            [suite] = load([agent])
        except InvalidSuite as error:
            raise BackendInitError(str(error)) from error
    else:
        suite = getattr(agent, "suite", None)
    if isinstance(suite, Suite) and not describes_agent(suite):
        raise BackendInitError(f"{suite.name} describes no agent: it has no 'model'")
    if not isinstance(suite, (Suite, AgentSpec)):
        raise BackendInitError(f"a backend is chosen for an agent.yaml or what was read from it, not {agent!r:.80}")
    return suite


def _with_instances(spec: AgentSpec, instances: Mapping[str, Any]) -> AgentSpec:
    unknown = set(instances) - {tool.name for tool in spec.tools if isinstance(tool, FunctionSpec)}
    if unknown:
        raise BackendInitError(f"no function of {spec.name} is called {', '.join(sorted(unknown))}")
    tools = (
        replace(tool, function=instances[tool.name])
        if isinstance(tool, FunctionSpec) and tool.name in instances
        else tool
        for tool in spec.tools
    )
    return replace(spec, tools=tuple(tools))


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, ProctorError) else one_line(error)
