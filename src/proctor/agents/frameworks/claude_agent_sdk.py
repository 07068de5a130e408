"""Claude Agent SDK: options are the agent; each trial has a client, and a Claude Code process, of its own."""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from proctor.agents.agent import BaseSession, Reply, Usage
from proctor.agents.sessions import CallLog, FrameworkAgent, text_of
from proctor.agents.toolbox import answer_async, is_doubled
from proctor.base.errors import AgentFailed
from proctor.base.json_data import fingerprint, plain, show
from proctor.base.references import describe
from proctor.cases.suite import Case, Turn

ClientFactory = Callable[[Any], Any]
"""Makes a ClaudeSDKClient from options, for users who bring a transport of their own."""

_BUSY = frozenset({408, 429, 500, 502, 503, 504, 529})


def adapt(target: Any, name: str) -> FrameworkAgent | None:
    """An agent that runs what ClaudeAgentOptions describe."""
    from claude_agent_sdk import ClaudeAgentOptions

    return ClaudeAgent(target, name or "claude") if isinstance(target, ClaudeAgentOptions) else None


class ClaudeAgent(FrameworkAgent):
    """Options, and how a client is made from them."""

    tells_cost = True

    def __init__(self, options: Any, name: str = "claude", client: ClientFactory | None = None) -> None:
        super().__init__(options, name, _fingerprint(options))
        self._client = client

    def check(self, case: Case) -> str | None:
        if case.doubles and not _own_servers(self.target):
            return "only tools of an in-process MCP server (create_sdk_mcp_server) can be doubled"
        return None

    def session(self, case: Case) -> ClaudeSession:
        return ClaudeSession(self.target, case, self._client)


class ClaudeSession(BaseSession):
    """One client, which remembers the turns of one case."""

    def __init__(self, options: Any, case: Case, client: ClientFactory | None) -> None:
        super().__init__(case)
        self._options = options
        self._make = client
        self._servers = _own_servers(options)
        self._refused: list[str] = []
        self._spent = Usage()

    async def open(self) -> None:
        from claude_agent_sdk import ClaudeSDKClient

        options = self._apart()
        self._client = ClaudeSDKClient(options) if self._make is None else self._make(options)
        await self._client.connect()

    async def close(self) -> None:
        await self._client.disconnect()

    async def send(self, turn: Turn) -> Reply:
        from claude_agent_sdk import AssistantMessage, ResultMessage, UserMessage

        calls = Calls(self._servers)
        answers: set[str] = set()
        await self._client.query(text_of(turn))
        async for message in self._client.receive_messages():
            if isinstance(message, (AssistantMessage, UserMessage)):
                calls.read(message)
            if isinstance(message, AssistantMessage):
                answers.add(message.message_id or str(len(answers)))
            if isinstance(message, ResultMessage) and not _is_aside(message):
                return self._reply(message, calls, len(answers))
        raise AgentFailed("the conversation ended without a result")

    def _reply(self, result: Any, calls: Calls, model_calls: int) -> Reply:
        if self._refused:
            raise AgentFailed(
                f"the case doubles {', '.join(self._refused)}, which Claude Code runs itself: it was refused"
            )
        if result.is_error:
            told = result.result or "; ".join(result.errors or ()) or "no reason was given"
            raise AgentFailed(f"{result.subtype}: {told}", transient=result.api_error_status in _BUSY)
        structured = plain(result.structured_output)
        text = result.result or ("" if structured is None else show(structured))
        return Reply(text, calls.log.calls, self._usage(result, model_calls), structured=structured)

    def _usage(self, result: Any, model_calls: int) -> Usage:
        """The SDK tells costs and tokens by model for the whole session so far, but tokens alone for the turn."""
        before, self._spent = self._spent, _totals(result)
        cost = _since(self._spent.cost_usd, before.cost_usd)
        if self._spent.input_tokens is None:
            return Usage(*_tokens(result.usage), cost, model_calls)
        given = _since(self._spent.input_tokens, before.input_tokens)
        return Usage(given, _since(self._spent.output_tokens, before.output_tokens), cost, model_calls)

    def _apart(self) -> Any:
        """Options with which no trial goes on with a session that is another's."""
        changed: dict[str, Any] = {"session_id": None, "continue_conversation": False}
        if self._options.resume is not None:
            changed["fork_session"] = True
        if self.case.doubles:
            changed |= self._doubling()
        return dataclasses.replace(self._options, **changed)

    def _doubling(self) -> dict[str, Any]:
        from claude_agent_sdk import HookMatcher

        servers = {
            name: {**config, "instance": DoublingServer(config["instance"])} if name in self._servers else config
            for name, config in self._options.mcp_servers.items()
        }
        hooks = dict(self._options.hooks or {})
        hooks["PreToolUse"] = [*hooks.get("PreToolUse", ()), HookMatcher(hooks=[self._refuse_what_cannot_be_doubled])]
        return {"mcp_servers": servers, "hooks": hooks}

    async def _refuse_what_cannot_be_doubled(self, call: Any, *_: Any) -> dict[str, Any]:
        name = call["tool_name"]
        if short_name(name, self._servers) != name or name not in self.case.doubles:
            return {}
        self._refused.append(name)
        said = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
        return {"hookSpecificOutput": {**said, "permissionDecisionReason": "this tool cannot be doubled"}}


class Calls:
    """The calls of one turn as messages tell of them; those of a subagent are inside the call that started it."""

    def __init__(self, servers: frozenset[str]) -> None:
        self.log = CallLog()
        self._servers = servers
        self._within: dict[str, contextvars.Context] = {}

    def read(self, message: Any) -> None:
        for block in message.content if isinstance(message.content, list) else ():
            if hasattr(block, "tool_use_id"):
                self._end(block)
            elif hasattr(block, "input"):
                self._begin(block, message.parent_tool_use_id)
            elif isinstance(text := getattr(block, "text", None), str):
                self.log.said += text

    def _begin(self, block: Any, parent: str | None) -> None:
        around = self._within.get(parent or "")
        within = contextvars.copy_context() if around is None else around.copy()
        within.run(self.log.begin, block.id, short_name(block.name, self._servers), block.input)
        self._within[block.id] = within

    def _end(self, block: Any) -> None:
        within = self._within.get(block.tool_use_id)
        if within is None:
            return
        said = _said(block.content)
        if getattr(block, "is_error", False):
            within.run(self.log.end, block.tool_use_id, error=said if isinstance(said, str) else show(said))
        else:
            within.run(self.log.end, block.tool_use_id, said)


def short_name(name: str, servers: frozenset[str]) -> str:
    """The name that the application gave a tool of its own, without the address that Claude Code knows it by."""
    for server in servers:
        if name.startswith(f"mcp__{server}__"):
            return name.removeprefix(f"mcp__{server}__")
    return name


def _said(content: Any) -> Any:
    """The text of a result, where it is nothing but text."""
    parts = plain(content)
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) and "text" in part for part in parts):
        return parts
    return "\n".join(str(part["text"]) for part in parts)


def _own_servers(options: Any) -> frozenset[str]:
    servers = options.mcp_servers
    if not isinstance(servers, Mapping):
        return frozenset()
    return frozenset(
        name for name, config in servers.items() if isinstance(config, Mapping) and config.get("type") == "sdk"
    )


def _is_aside(result: Any) -> bool:
    """The end of a turn that the user did not ask for, such as the report of a background task."""
    return bool(result.origin) and result.origin.get("kind") not in (None, "human")


def _totals(result: Any) -> Usage:
    models = list((result.model_usage or {}).values())
    if not models:
        return Usage(cost_usd=result.total_cost_usd)
    read = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    given = sum(int(model.get(key) or 0) for model in models for key in read)
    return Usage(given, sum(int(model.get("outputTokens") or 0) for model in models), result.total_cost_usd)


def _tokens(usage: Any) -> tuple[int | None, int | None]:
    if not isinstance(usage, Mapping) or "input_tokens" not in usage:
        return None, None
    read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(int(usage.get(key) or 0) for key in read), usage.get("output_tokens")


def _since(now: Any, before: Any) -> Any:
    return now if now is None or before is None or now < before else now - before


def _fingerprint(options: Any) -> str:
    """What makes two agents behave alike: prompt, models, tools, servers by name, and subagents."""
    told = [options.system_prompt, options.model, options.fallback_model, options.max_turns, options.permission_mode]
    tools = [options.tools, options.allowed_tools, options.disallowed_tools]
    servers = sorted(options.mcp_servers) if isinstance(options.mcp_servers, Mapping) else str(options.mcp_servers)
    return fingerprint(plain(told), plain(tools), servers, plain(options.agents), plain(options.output_format))


class DoublingServer:
    """Stands before a server and passes everything on but calls of tools that are doubled."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def run(self, read: Any, write: Any, *args: Any, **kwargs: Any) -> None:
        import anyio
        from mcp.shared.memory import create_client_server_memory_streams

        streams = create_client_server_memory_streams()
        async with streams as ((_, inwards), (passed_on, _unused)), anyio.create_task_group() as tasks:
            tasks.start_soon(self._sort, read, write, inwards, tasks)
            await self._server.run(passed_on, write, *args, **kwargs)
            tasks.cancel_scope.cancel()

    async def _sort(self, read: Any, write: Any, inwards: Any, tasks: Any) -> None:
        async with inwards:
            async for message in read:
                request = _doubled_call(message)
                if request is None:
                    await inwards.send(message)
                else:
                    tasks.start_soon(_answer, message, request, write)


def _doubled_call(message: Any) -> Any:
    """The request, if it is a call of a tool that is doubled; older versions of mcp wrap it once more."""
    told = getattr(message, "message", None)
    request: Any = getattr(told, "root", told)
    if getattr(request, "method", None) != "tools/call" or not isinstance(request.params, dict):
        return None
    return request if is_doubled(str(request.params.get("name"))) else None


async def _answer(message: Any, request: Any, write: Any) -> None:
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCResponse

    try:
        said = await answer_async(request.params["name"], request.params.get("arguments") or {})
        text, failed = said if isinstance(said, str) else show(said), False
    except Exception as error:
        text, failed = describe(error), True
    result = {"content": [{"type": "text", "text": text}], "isError": failed}
    response: Any = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
    wrapped = type(message.message)(response) if hasattr(message.message, "root") else response
    await write.send(SessionMessage(wrapped))
