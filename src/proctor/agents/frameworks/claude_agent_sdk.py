"""The Claude Agent SDK. The options are the agent; each trial has its own client and Claude Code process.

Claude Code runs its tools in its own process and reports them in messages, so calls are recorded from messages. Only
the tools of in-process MCP servers can be mocked: a server in front of the user's answers the calls of mocked tools. A
mocked tool that Claude Code would run itself is denied by a hook, and the trial fails with the reason.
"""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from proctor.agents.frameworks import Adapter, FrameworkAgent
from proctor.agents.reply import Reply, Usage
from proctor.agents.reply_reader import as_text
from proctor.agents.tool_mocks import is_mocked, mock_result_async
from proctor.agents.turn_recorder import TurnRecorder
from proctor.base.diagnosis import Diagnosis
from proctor.base.errors import AgentFailed, one_line
from proctor.base.infrastructure import diagnose_output, diagnose_status
from proctor.base.json_data import Json, to_json, to_text
from proctor.cases.suite import Case, Turn

ClientFactory = Callable[[Any], Any]
"""Makes a ClaudeSDKClient from options, for users with their own transport."""


@dataclasses.dataclass(slots=True)
class ClaudeSession:
    """One client, which has the conversation of one case."""

    servers: frozenset[str]
    """The names of in-process servers."""
    client: Any = None
    denied: list[str] = dataclasses.field(default_factory=list)
    """Mocked tools that were denied because Claude Code would have run them itself."""
    usage: Usage = dataclasses.field(default_factory=Usage)
    """The usage of the session so far, because the SDK reports totals."""


class ClaudeAgentSdk(Adapter):
    """Runs ClaudeAgentOptions with a client per conversation."""

    name, title, packages = "claude_agent_sdk", "the Claude Agent SDK", ("claude-agent-sdk",)
    modules = ("claude_agent_sdk",)
    takes = "ClaudeAgentOptions"
    reports_cost = True
    starts_processes = True

    def __init__(self, target: Any, client: ClientFactory | None = None) -> None:
        super().__init__(target)
        self._client = client

    @classmethod
    def accepts(cls, target: Any) -> bool:
        from claude_agent_sdk import ClaudeAgentOptions

        return isinstance(target, ClaudeAgentOptions)

    @property
    def agent_name(self) -> str:
        return "claude"

    def describe(self) -> Json:
        """Prompt, models, tools, servers by name, and subagents."""
        options = self.target
        servers = sorted(options.mcp_servers) if isinstance(options.mcp_servers, Mapping) else str(options.mcp_servers)
        return to_json(
            [
                [options.system_prompt, options.model, options.fallback_model],
                [options.max_turns, options.permission_mode],
                [options.tools, options.allowed_tools, options.disallowed_tools],
                [servers, options.agents, options.output_format],
            ]
        )

    def check(self, case: Case) -> str | None:
        if case.mocks and not _in_process_servers(self.target):
            return "only tools of an in-process MCP server (create_sdk_mcp_server) can be mocked"
        return None

    async def open(self, case: Case) -> ClaudeSession:
        from claude_agent_sdk import ClaudeSDKClient

        session = ClaudeSession(_in_process_servers(self.target))
        options = self._fresh_session_options(session, case)
        session.client = ClaudeSDKClient(options) if self._client is None else self._client(options)
        await session.client.connect()
        return session

    async def close(self, session: ClaudeSession) -> None:
        await session.client.disconnect()

    async def send(self, session: ClaudeSession, turn: Turn, recorder: TurnRecorder) -> Reply:
        from claude_agent_sdk import AssistantMessage, ResultMessage, UserMessage

        messages = MessageReader(session.servers, recorder)
        model_calls: set[str] = set()
        problem: str | None = None
        await session.client.query(as_text(turn))
        async for message in session.client.receive_messages():
            if isinstance(message, (AssistantMessage, UserMessage)):
                messages.read(message)
            if isinstance(message, AssistantMessage):
                model_calls.add(message.message_id or str(len(model_calls)))
                problem = message.error
            if isinstance(message, ResultMessage) and not _is_background_turn(message):
                return _reply(session, message, len(model_calls), problem)
        raise AgentFailed("the conversation ended without a result")

    def _fresh_session_options(self, session: ClaudeSession, case: Case) -> Any:
        """The options with changes so that no trial continues the session of another one."""
        changes: dict[str, Any] = {"session_id": None, "continue_conversation": False}
        if self.target.resume is not None:
            changes["fork_session"] = True
        if case.mocks:
            changes |= self._mocking_options(session, case)
        return dataclasses.replace(self.target, **changes)

    def _mocking_options(self, session: ClaudeSession, case: Case) -> dict[str, Any]:
        from claude_agent_sdk import HookMatcher

        async def deny_unmockable_tool(call: Any, *_: Any) -> dict[str, Any]:
            name = call["tool_name"]
            if short_name(name, session.servers) != name or name not in case.mocks:
                return {}
            session.denied.append(name)
            decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
            return {"hookSpecificOutput": {**decision, "permissionDecisionReason": "this tool cannot be mocked"}}

        servers = {
            name: {**config, "instance": MockingMcpServer(config["instance"])} if name in session.servers else config
            for name, config in self.target.mcp_servers.items()
        }
        hooks = dict(self.target.hooks or {})
        hooks["PreToolUse"] = [*hooks.get("PreToolUse", ()), HookMatcher(hooks=[deny_unmockable_tool])]
        return {"mcp_servers": servers, "hooks": hooks}


class ClaudeAgent(FrameworkAgent):
    """Options as an agent, for users who make the client themselves, for example with their own transport."""

    def __init__(self, options: Any, name: str = "claude", client: ClientFactory | None = None) -> None:
        super().__init__(ClaudeAgentSdk(options, client), name)


def _reply(session: ClaudeSession, result: Any, model_calls: int, problem: str | None) -> Reply:
    if session.denied:
        raise AgentFailed(
            f"the case mocks {', '.join(session.denied)}, which Claude Code runs itself, so the call was denied"
        )
    if result.subtype == "error_max_turns":
        raise AgentFailed(f"no answer after {result.num_turns} turns, the limit that max_turns sets")
    if result.is_error or problem in ("authentication_failed", "billing_error"):
        reason = result.result or "; ".join(result.errors or ()) or "no reason was given"
        raise AgentFailed(f"{result.subtype}: {reason}", diagnosis=diagnose_result(result, problem))
    structured = to_json(result.structured_output)
    text = result.result or ("" if structured is None else to_text(structured))
    return Reply(text, usage=_turn_usage(session, result, model_calls), structured=structured)


_PROBLEM_STATUSES = {"authentication_failed": 401, "billing_error": 402, "rate_limit": 429, "server_error": 500}
"""The HTTP status that Claude Code's name of a problem stands for."""


def diagnose_result(result: Any, problem: str | None = None) -> Diagnosis:
    """Whose failure a result with an error is; `problem` is the name of it in the last message of the model."""
    text = "\n".join([*(result.errors or ()), result.result or ""])
    said = diagnose_output(text)
    status = diagnose_status(result.api_error_status or _PROBLEM_STATUSES.get(problem or ""), text)
    return status if said.is_agent else said


def _turn_usage(session: ClaudeSession, result: Any, model_calls: int) -> Usage:
    """The usage of a turn. The SDK reports the cost and the tokens by model as totals, but plain tokens per turn."""
    before, session.usage = session.usage, _totals(result)
    total = session.usage
    cost = _difference(total.cost_usd, before.cost_usd)
    if total.input_tokens is None:
        return Usage(*_tokens(result.usage), cost, model_calls)
    input_tokens = _difference(total.input_tokens, before.input_tokens)
    return Usage(input_tokens, _difference(total.output_tokens, before.output_tokens), cost, model_calls)


class MessageReader:
    """Records the calls of one turn from messages. The parent of a subagent's calls is the call that started it."""

    def __init__(self, servers: frozenset[str], recorder: TurnRecorder) -> None:
        self._servers = servers
        self._recorder = recorder
        self._open: dict[str, tuple[contextvars.Context, int]] = {}
        """By the vendor's id of a call: the context inside it, and the recorder's key."""
        self._text = ""

    def read(self, message: Any) -> None:
        for block in message.content if isinstance(message.content, list) else ():
            if hasattr(block, "tool_use_id"):
                self._end(block)
            elif hasattr(block, "input"):
                self._begin(block, message.parent_tool_use_id)
            elif isinstance(text := getattr(block, "text", None), str):
                self._text += text
                self._recorder.set_partial(self._text)

    def _begin(self, block: Any, parent: str | None) -> None:
        outer = self._open.get(parent or "")
        context = contextvars.copy_context() if outer is None else outer[0].copy()
        name = short_name(block.name, self._servers)
        self._open[block.id] = context, context.run(self._recorder.begin_call, name, block.input, id=block.id)

    def _end(self, block: Any) -> None:
        if block.tool_use_id not in self._open:
            return
        context, key = self._open[block.tool_use_id]
        result = _tool_text(block.content)
        if getattr(block, "is_error", False):
            context.run(self._recorder.end_call, key, error=result if isinstance(result, str) else to_text(result))
        else:
            context.run(self._recorder.end_call, key, result)


def short_name(name: str, servers: frozenset[str]) -> str:
    """The name of a tool without the prefix that Claude Code adds for an in-process server."""
    for server in servers:
        if name.startswith(f"mcp__{server}__"):
            return name.removeprefix(f"mcp__{server}__")
    return name


def _tool_text(content: Any) -> Any:
    """The text of a result if it consists of text only, else its parts."""
    parts = to_json(content)
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) and "text" in part for part in parts):
        return parts
    return "\n".join(str(part["text"]) for part in parts)


def _in_process_servers(options: Any) -> frozenset[str]:
    """The names of the servers that run in this process."""
    servers = options.mcp_servers
    if not isinstance(servers, Mapping):
        return frozenset()
    return frozenset(
        name for name, config in servers.items() if isinstance(config, Mapping) and config.get("type") == "sdk"
    )


def _is_background_turn(result: Any) -> bool:
    """Whether it ends a turn that the user did not start, such as the report of a background task."""
    return bool(result.origin) and result.origin.get("kind") not in (None, "human")


def _totals(result: Any) -> Usage:
    models = list((result.model_usage or {}).values())
    if not models:
        return Usage(cost_usd=result.total_cost_usd)
    input_keys = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    input_tokens = sum(int(model.get(key) or 0) for model in models for key in input_keys)
    return Usage(input_tokens, sum(int(model.get("outputTokens") or 0) for model in models), result.total_cost_usd)


def _tokens(usage: Any) -> tuple[int | None, int | None]:
    if not isinstance(usage, Mapping) or "input_tokens" not in usage:
        return None, None
    input_keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(int(usage.get(key) or 0) for key in input_keys), usage.get("output_tokens")


def _difference(total: Any, before: Any) -> Any:
    """The difference of two totals; a total that became smaller was counted from zero again."""
    return total if total is None or before is None or total < before else total - before


class MockingMcpServer:
    """A server in front of another one: it answers calls of mocked tools and passes everything else on."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def run(self, read: Any, write: Any, *args: Any, **kwargs: Any) -> None:
        import anyio
        from mcp.shared.memory import create_client_server_memory_streams

        streams = create_client_server_memory_streams()
        async with streams as ((_, to_server), (server_input, _unused)), anyio.create_task_group() as tasks:
            tasks.start_soon(self._route, read, write, to_server, tasks)
            await self._server.run(server_input, write, *args, **kwargs)
            tasks.cancel_scope.cancel()

    async def _route(self, read: Any, write: Any, to_server: Any, tasks: Any) -> None:
        """Answer calls of mocked tools, and pass all other messages to the server."""
        async with to_server:
            async for message in read:
                request = _mocked_call(message)
                if request is None:
                    await to_server.send(message)
                else:
                    tasks.start_soon(_answer_with_mock, message, request, write)


def _mocked_call(message: Any) -> Any:
    """The request in a message if it is a call of a mocked tool; older versions of mcp wrap it twice."""
    outer = getattr(message, "message", None)
    request: Any = getattr(outer, "root", outer)
    if getattr(request, "method", None) != "tools/call" or not isinstance(request.params, dict):
        return None
    return request if is_mocked(str(request.params.get("name"))) else None


async def _answer_with_mock(message: Any, request: Any, write: Any) -> None:
    """Answer a call with its mock. It is not recorded here, because the messages of Claude Code report it."""
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCResponse

    try:
        value = await mock_result_async(request.params["name"], request.params.get("arguments") or {})
        text, is_error = value if isinstance(value, str) else to_text(value), False
    except Exception as error:
        text, is_error = one_line(error), True
    result = {"content": [{"type": "text", "text": text}], "isError": is_error}
    response: Any = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
    wrapped = type(message.message)(response) if hasattr(message.message, "root") else response
    await write.send(SessionMessage(wrapped))
