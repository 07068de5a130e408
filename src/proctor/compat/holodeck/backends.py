"""HoloDeck's backends: what runs an agent behind `invoke_once` and `create_session`, chosen or brought along."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
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
from proctor.compat.holodeck.agent import DescribedAgent
from proctor.compat.holodeck.agent_reader import read_agent
from proctor.compat.holodeck.agent_spec import AgentSpec, FunctionSpec
from proctor.compat.holodeck.models import Agent as AgentModel
from proctor.compat.holodeck.reader import NAME, is_conversation, suite_of
from proctor.compat.holodeck.test_results import TokenUsage


class BackendError(ProctorError):
    """A backend could not do what it is for."""


class BackendInitError(BackendError):
    """A backend could not be made: a package, a key or the description of the agent is missing or wrong."""


class BackendSessionError(BackendError):
    """A conversation could not go on."""

    breaks_session = True
    """Two of these in a row end the conversation; after one, the next turn is still sent."""


class BackendTimeoutError(BackendError):
    """A backend took too long."""


@dataclass
class ExecutionResult:
    """What came back for one message."""

    response: str
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_results: list[dict[str, Any]] = field(default_factory=list)
    token_usage: TokenUsage = field(default_factory=TokenUsage.zero)
    structured_output: Any | None = None
    num_turns: int = 1
    is_error: bool = False
    error_reason: str | None = None
    thinking: str = ""


def result_of(reply: Reply, turns: int = 1) -> ExecutionResult:
    """A reply in HoloDeck's shape; calls and results share an id, and need not be paired by position."""
    calls = [
        {"name": c.name, "arguments": dict(c.arguments), "call_id": _id(c, i)} for i, c in enumerate(reply.tool_calls)
    ]
    results = [
        {
            "name": c.name,
            "result": c.error if c.error is not None else c.result,
            "call_id": _id(c, i),
            "is_error": c.error is not None,
        }
        for i, c in enumerate(reply.tool_calls)
    ]
    return ExecutionResult(reply.text, calls, results, _tokens(reply.usage), reply.structured, turns)


def reply_of(result: Any) -> Reply:
    """A backend's result as a reply; where it says that something went wrong, with what there is of an answer."""
    if not hasattr(result, "response"):
        raise UnreadableReply(f"the backend returned {type(result).__name__}, which is no ExecutionResult")
    error = None
    if getattr(result, "is_error", False):
        error = str(getattr(result, "error_reason", None) or "the backend gave no reason")
    answers = _Answers(_list_field(result, "tool_results"))
    calls = tuple(_tool_call(call, answers) for call in _list_field(result, "tool_calls"))
    spent: Any = getattr(result, "token_usage", None)
    given, written = getattr(spent, "prompt_tokens", None), getattr(spent, "completion_tokens", None)
    usage = Usage(given, written) if given or written else None
    structured = to_json(getattr(result, "structured_output", None))
    if not isinstance(result.response, str | None):
        raise UnreadableReply(f"the response of the backend is {type(result.response).__name__}, not str")
    return Reply(result.response or "", calls, usage, structured=structured, raw=result, error=error)


def _list_field(result: Any, name: str) -> list[dict[str, Any]]:
    items = getattr(result, name, None) or []
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, dict) for item in items):
        raise UnreadableReply(f"the {name} of the backend are not a list of dictionaries: {items!r:.80}")
    return list(items)


class _Answers:
    """Results of tools, found by the call's id, else the next one of the same name."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        self._left = list(results)

    def take(self, name: str, identity: Any) -> dict[str, Any] | None:
        fits = [item for item in self._left if identity is not None and item.get("call_id") == identity]
        fits = fits or [item for item in self._left if item.get("name") == name and item.get("call_id") is None]
        if not fits:
            return None
        self._left.remove(fits[0])
        return fits[0]


def _tool_call(call: dict[str, Any], answers: _Answers) -> ToolCall:
    name, identity = str(call.get("name", "")), call.get("call_id")
    given: Json = to_json(call.get("arguments", call.get("args")))
    answer = answers.take(name, identity) or {}
    result, failed = to_json(answer.get("result")), bool(answer.get("is_error"))
    error = (result if isinstance(result, str) else to_text(result)) if failed else None
    mark = None if identity is None else str(identity)
    return ToolCall.parse(name, given, result=None if failed else result, error=error, id=mark)


def _id(call: ToolCall, index: int) -> str:
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
            before = [str(item.get("content", "")) for item in context or () if item.get("content")]
            return await session.send("\n\n".join([*before, message]))
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
        self._turns = 0

    async def prepare(self) -> None:
        if self._session is None:
            try:
                self._opened = self._agent.session(Case("session", (Turn(""),)))
                self._session = await self._opened.__aenter__()
            except Exception as error:
                raise BackendSessionError(_error_text(error)) from error

    async def send(self, message: str) -> ExecutionResult:
        await self.prepare()
        try:
            reply = await self._session.send(Turn(message))
        except Exception as error:
            raise BackendSessionError(_error_text(error)) from error
        self._turns += 1
        return result_of(reply, self._turns)

    async def send_streaming(self, message: str) -> AsyncGenerator[str, None]:
        """The answer as one piece: agents are tested by what they say in the end."""
        yield (await self.send(message)).response

    async def close(self) -> None:
        if self._session is not None:
            opened, self._session = self._opened, None
            await opened.__aexit__(None, None, None)


class BackendAgent(BaseAgent):
    """Any backend as an agent that Proctor can test; one that a program passes is used as it is."""

    reads_files = False

    def __init__(self, backend: AgentBackend, name: str = "") -> None:
        self.backend = backend
        self.name = name or type(backend).__name__
        self.fingerprint = fingerprint(self.name, type(backend).__qualname__, "")
        self.tokens: dict[tuple[str, int], TokenUsage] = {}
        """As the backend counted them, with those of its caches, by the id of the case and the index of the turn."""

    async def start(self) -> None:
        if hasattr(self.backend, "initialize"):
            await _call(self.backend.initialize)

    async def stop(self) -> None:
        await close(self.backend)

    @asynccontextmanager
    async def session(self, case: Case) -> AsyncIterator[_BackendConversation]:
        """A case of one message is asked by `invoke_once`, as HoloDeck does, any other in a session."""
        if not is_conversation(case) and case.scenario is None:
            yield _BackendConversation(self.backend.invoke_once, case.id, self.tokens)
            return
        session = await _call(self.backend.create_session)
        try:
            yield _BackendConversation(session.send, case.id, self.tokens)
        finally:
            if hasattr(session, "close"):
                await _call(session.close)


async def close(backend: Any) -> None:
    """Tear a backend down, if it can be."""
    if hasattr(backend, "teardown"):
        await _call(backend.teardown)


async def _call(method: Any, *arguments: Any) -> Any:
    """What a method of a backend returns; one that is not async must not keep the others waiting."""
    if is_async(method):
        return await method(*arguments)
    result = await run_in_thread(method, *arguments)
    return await result if inspect.isawaitable(result) else result


class _BackendConversation:
    def __init__(self, send: Any, case_id: str, tokens: dict[tuple[str, int], TokenUsage]) -> None:
        self._send = send
        self._case_id = case_id
        self._tokens = tokens
        self._turns = 0

    async def send(self, turn: Turn) -> Reply:
        place = self._case_id, self._turns
        self._turns += 1
        message = turn.input if isinstance(turn.input, str) else to_text(turn.input)
        result = await _call(self._send, message)
        spent = getattr(result, "token_usage", None)
        if isinstance(spent, TokenUsage) and spent != TokenUsage.zero():
            self._tokens[place] = spent
        return reply_of(result)


class BackendSelector:
    """Chooses what runs an agent by its `model.provider` and by what is installed."""

    @staticmethod
    async def select(agent: Any, tool_instances: Mapping[str, Any] | None = None, mode: str = "test") -> ProctorBackend:
        """A backend for an `agent.yaml`, or for what was read from it; it is ready to be asked.

        `tool_instances` replaces functions of the file by name. `mode` is `test`, the only one there is here.
        """
        if mode != "test":
            raise BackendInitError(f"there is no mode {mode!r} here; agents are only tested")
        suite = _suite_of(agent)
        description = suite.agent.get(NAME) if isinstance(suite.agent, Mapping) else None
        if description is None:
            raise BackendInitError(f"{suite.name} describes no agent: it has no 'model'")
        with environment_from(suite.env_files):
            try:
                spec, choice = read_agent(description, suite.base)
            except InvalidSuite as error:
                problems = [suite.located(problem) for problem in error.problems]
                raise BackendInitError(str(InvalidSuite(problems))) from error
            chosen = ProctorBackend(DescribedAgent(_with_instances(spec, tool_instances or {}), choice.name))
            await chosen.initialize()
        return chosen


def _suite_of(agent: Any) -> Suite:
    if isinstance(agent, Suite):
        return agent
    if isinstance(agent, AgentModel):
        return suite_of(agent)
    if not isinstance(agent, (str, Path)):
        raise BackendInitError(f"a backend is chosen for an agent.yaml or what was read from it, not {agent!r:.80}")
    try:
        [suite] = load([agent])
    except InvalidSuite as error:
        raise BackendInitError(str(error)) from error
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


def _error_text(error: BaseException) -> str:
    return str(error) if isinstance(error, ProctorError) else one_line(error)
