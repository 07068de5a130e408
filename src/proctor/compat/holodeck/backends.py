"""HoloDeck's backends, which run an agent behind `invoke_once` and `create_session`; a program may bring its own."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from proctor.agents.agent import Agent, BaseAgent, as_base_agent
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, ProctorError, UnreadableReply, one_line
from proctor.base.json_data import Json, fingerprint, to_json, to_text
from proctor.base.threads import is_async, run_in_thread
from proctor.cases.formats.loading import load
from proctor.cases.suite import Case, Suite, Turn
from proctor.compat.holodeck.agent import HoloDeckAgent
from proctor.compat.holodeck.agent_reader import read_agent
from proctor.compat.holodeck.agent_spec import AgentSpec, FunctionSpec
from proctor.compat.holodeck.errors import BackendInitError, BackendSessionError
from proctor.compat.holodeck.models import Agent as AgentModel
from proctor.compat.holodeck.reader import NAME, agent_suite, is_conversation
from proctor.compat.holodeck.test_results import TokenUsage


@dataclass
class ExecutionResult:
    """The result of one message."""

    response: str
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_results: list[dict[str, Any]] = field(default_factory=list)
    token_usage: TokenUsage = field(default_factory=TokenUsage.zero)
    structured_output: Any | None = None
    num_turns: int = 1
    is_error: bool = False
    error_reason: str | None = None
    thinking: str = ""


def to_execution_result(reply: Reply, turns: int = 1) -> ExecutionResult:
    """A reply as HoloDeck's result; a call and its result have the same `call_id`."""
    calls = [
        {"name": c.name, "arguments": dict(c.arguments), "call_id": _call_id(c, i)}
        for i, c in enumerate(reply.tool_calls)
    ]
    results = [
        {
            "name": c.name,
            "result": c.error if c.error is not None else c.result,
            "call_id": _call_id(c, i),
            "is_error": c.error is not None,
        }
        for i, c in enumerate(reply.tool_calls)
    ]
    return ExecutionResult(reply.text, calls, results, _tokens(reply.usage), reply.structured, turns)


def to_reply(result: Any) -> Reply:
    """A backend's result as a reply; an error is kept with whatever answer there is."""
    if not hasattr(result, "response"):
        raise UnreadableReply(f"the backend returned {type(result).__name__} instead of an ExecutionResult")
    error = None
    if getattr(result, "is_error", False):
        error = str(getattr(result, "error_reason", None) or "the backend gave no reason")
    pairs, _ = paired_calls(_list_field(result, "tool_calls"), _list_field(result, "tool_results"))
    calls = tuple(call for call, _ in pairs)
    tokens: Any = getattr(result, "token_usage", None)
    input_tokens, output_tokens = getattr(tokens, "prompt_tokens", None), getattr(tokens, "completion_tokens", None)
    usage = Usage(input_tokens, output_tokens) if input_tokens or output_tokens else None
    structured = to_json(getattr(result, "structured_output", None))
    if not isinstance(result.response, str | None):
        raise UnreadableReply(f"the response of the backend must be a string, not {type(result.response).__name__}")
    return Reply(result.response or "", calls, usage, structured=structured, raw=result, error=error)


def paired_calls(
    calls: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]
) -> tuple[list[tuple[ToolCall, bool]], list[dict[str, Any]]]:
    """Each call and whether it has a result, then the results that belong to no call."""
    left = _ToolResults(list(results))
    pairs = []
    for call in calls:
        result = left.take(str(call.get("name", "")), call.get("call_id"))
        pairs.append((_tool_call(call, result or {}), result is not None))
    return pairs, left.items


def _list_field(result: Any, name: str) -> list[dict[str, Any]]:
    """A field that must be a list of dictionaries."""
    items = getattr(result, name, None) or []
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, dict) for item in items):
        raise UnreadableReply(f"the {name} of the backend must be a list of dictionaries, not {items!r:.80}")
    return list(items)


class _ToolResults:
    """Results of tools, found by the call's id, or else by name in their order."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        self.items = list(results)

    def take(self, name: str, call_id: Any) -> dict[str, Any] | None:
        matches = [item for item in self.items if call_id is not None and item.get("call_id") == call_id]
        matches = matches or [item for item in self.items if item.get("name") == name and item.get("call_id") is None]
        if not matches:
            return None
        self.items.remove(matches[0])
        return matches[0]


def _tool_call(call: dict[str, Any], tool_result: dict[str, Any]) -> ToolCall:
    name, call_id = str(call.get("name", "")), call.get("call_id")
    arguments: Json = to_json(call.get("arguments", call.get("args")))
    result, failed = to_json(tool_result.get("result")), bool(tool_result.get("is_error"))
    error = (result if isinstance(result, str) else to_text(result)) if failed else None
    id_text = None if call_id is None else str(call_id)
    return ToolCall.parse(name, arguments, result=None if failed else result, error=error, id=id_text)


def _call_id(call: ToolCall, index: int) -> str:
    return call.id or f"{call.name}-{index + 1}"


def _tokens(usage: Usage | None) -> TokenUsage:
    prompt, completion = (usage.input_tokens or 0, usage.output_tokens or 0) if usage is not None else (0, 0)
    return TokenUsage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


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
    """Any agent that Proctor can test, as a backend."""

    def __init__(self, agent: Agent) -> None:
        self.agent = as_base_agent(agent)
        self._started = False

    async def initialize(self) -> None:
        """Start the agent; calling it again has no effect."""
        if self._started:
            return
        try:
            await self.agent.start()
        except ProctorError as error:
            raise BackendInitError(str(error)) from error
        self._started = True

    async def invoke_once(self, message: str, context: list[dict[str, Any]] | None = None) -> ExecutionResult:
        """Send one message in a new session, after the texts in `context`."""
        session = await self.create_session()
        try:
            before = [str(item.get("content", "")) for item in context or () if item.get("content")]
            return await session.send("\n\n".join([*before, message]))
        except BackendSessionError as error:
            return ExecutionResult("", is_error=True, error_reason=str(error))
        finally:
            await session.close()

    async def create_session(self, *, eager_connect: bool = True) -> ProctorBackendSession:
        """Start a conversation; without `eager_connect`, the first message opens it."""
        await self.initialize()
        session = ProctorBackendSession(self.agent)
        if eager_connect:
            await session.prepare()
        return session

    async def teardown(self) -> None:
        if self._started:
            await self.agent.stop()
        self._started = False


class ProctorBackendSession:
    """One conversation with an agent that Proctor can test."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._context: Any = None
        self._session: Any = None
        self._turns = 0

    async def prepare(self) -> None:
        if self._session is None:
            try:
                self._context = self._agent.session(Case(id="session", turns=(Turn(""),)))
                self._session = await self._context.__aenter__()
            except Exception as error:
                raise BackendSessionError(_error_text(error)) from error

    async def send(self, message: str) -> ExecutionResult:
        await self.prepare()
        try:
            reply = await self._session.send(Turn(message))
        except Exception as error:
            raise BackendSessionError(_error_text(error)) from error
        self._turns += 1
        return to_execution_result(reply, self._turns)

    async def send_streaming(self, message: str) -> AsyncGenerator[str, None]:
        """The answer in one piece; agents are tested by their final answers."""
        yield (await self.send(message)).response

    async def close(self) -> None:
        if self._session is not None:
            opened, self._session = self._context, None
            await opened.__aexit__(None, None, None)


class BackendAgent(BaseAgent):
    """Any backend as an agent that Proctor can test, including one that a program passes in."""

    reads_files = False

    def __init__(self, backend: AgentBackend, name: str = "", timeout: float | None = None) -> None:
        self.backend = backend
        self._timeout = timeout
        self.name = name or type(backend).__name__
        self.fingerprint = fingerprint(self.name, type(backend).__qualname__, "")
        self.tokens: dict[tuple[str, int], TokenUsage] = {}
        """The backend's own token counts, including its caches, by case id and turn index."""
        self.errors: dict[tuple[str, int], str] = {}
        """What the backend raised, in HoloDeck's words, by case id and turn index."""

    async def start(self) -> None:
        if hasattr(self.backend, "initialize"):
            await _call(self.backend.initialize)

    async def stop(self) -> None:
        await close_backend(self.backend)

    @asynccontextmanager
    async def session(self, case: Case) -> AsyncIterator[_BackendConversation]:
        """A case with one message uses `invoke_once`, as HoloDeck does; any other uses a session."""
        if not is_conversation(case) and case.scenario is None:
            yield _BackendConversation(self, self.backend.invoke_once, case.id, self._single_error)
            return
        session = await _call(self.backend.create_session)
        try:
            yield _BackendConversation(self, session.send, case.id, _turn_error)
        finally:
            if hasattr(session, "close"):
                await _call(session.close)

    def _single_error(self, error: Exception) -> str:
        """HoloDeck's words for what `invoke_once` raised."""
        if isinstance(error, TimeoutError):
            return "Agent invocation timeout" + (f" after {self._timeout:g}s" if self._timeout else "")
        return f"Agent invocation error: {error}"


def _turn_error(error: Exception) -> str | None:
    """HoloDeck's word for a turn that took too long; anything else is described with its place in the user's code."""
    return "timeout" if isinstance(error, TimeoutError) else None


async def close_backend(backend: Any) -> None:
    """Tear a backend down if it has `teardown`."""
    if hasattr(backend, "teardown"):
        await _call(backend.teardown)


async def _call(method: Any, *arguments: Any) -> Any:
    """Call a method of a backend; one that is not async runs in a thread."""
    if is_async(method):
        return await method(*arguments)
    result = await run_in_thread(method, *arguments)
    return await result if inspect.isawaitable(result) else result


class _BackendConversation:
    """Sends the turns of a case and records the tokens that the backend counted, and what it raised."""

    def __init__(
        self, agent: BackendAgent, send: Any, case_id: str, describe: Callable[[Exception], str | None]
    ) -> None:
        self._agent = agent
        self._send = send
        self._case_id = case_id
        self._describe = describe
        self._turns = 0

    async def send(self, turn: Turn) -> Reply:
        place = self._case_id, self._turns
        self._turns += 1
        message = turn.input if isinstance(turn.input, str) else to_text(turn.input)
        self._agent.errors.pop(place, None)  # of an earlier attempt
        try:
            result = await _call(self._send, message)
        except Exception as error:
            if description := self._describe(error):
                self._agent.errors[place] = description
            raise
        tokens = getattr(result, "token_usage", None)
        if isinstance(tokens, TokenUsage) and tokens != TokenUsage.zero():
            self._agent.tokens[place] = tokens
        return to_reply(result)


class BackendSelector:
    """Chooses the backend of an agent by its `model.provider` and the installed SDKs."""

    @staticmethod
    async def select(agent: Any, tool_instances: Mapping[str, Any] | None = None, mode: str = "test") -> ProctorBackend:
        """A started backend for an `agent.yaml`, or for an agent or suite read from one.

        `tool_instances` replaces functions of the file by name. `mode` must be `test`.
        """
        if mode != "test":
            raise BackendInitError(f"mode must be 'test', not {mode!r}")
        suite = _to_suite(agent)
        description = suite.agent.get(NAME) if isinstance(suite.agent, Mapping) else None
        if description is None:
            raise BackendInitError(f"{suite.name} does not describe an agent: add 'model'")
        with environment_from(suite.env_files, agent.written_keys if isinstance(agent, AgentModel) else None):
            try:
                spec, choice = read_agent(description, suite.base)
            except InvalidSuite as error:
                problems = [suite.located(problem) for problem in error.problems]
                raise BackendInitError(str(InvalidSuite(problems))) from error
            backend = ProctorBackend(HoloDeckAgent(_with_instances(spec, tool_instances or {}), choice.name))
            await backend.initialize()
        return backend


def _to_suite(agent: Any) -> Suite:
    if isinstance(agent, Suite):
        return agent
    if isinstance(agent, AgentModel):
        return agent_suite(agent)
    if not isinstance(agent, (str, Path)):
        raise BackendInitError(f"agent must be an agent.yaml, or an Agent or suite read from one, not {agent!r:.80}")
    try:
        [suite] = load([agent])
    except InvalidSuite as error:
        raise BackendInitError(str(error)) from error
    return suite


def _with_instances(spec: AgentSpec, instances: Mapping[str, Any]) -> AgentSpec:
    unknown = set(instances) - {tool.name for tool in spec.tools if isinstance(tool, FunctionSpec)}
    if unknown:
        raise BackendInitError(f"{spec.name} has no function called {', '.join(sorted(unknown))}")
    tools = (
        replace(tool, function=instances[tool.name])
        if isinstance(tool, FunctionSpec) and tool.name in instances
        else tool
        for tool in spec.tools
    )
    return replace(spec, tools=tuple(tools))


def _error_text(error: BaseException) -> str:
    return str(error) if isinstance(error, ProctorError) else one_line(error)
