"""Build a described agent with the Claude Agent SDK; its functions become tools of a server in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proctor.agents.agent import Agent
from proctor.agents.frameworks.claude_agent_sdk import ClaudeAgent, diagnose_result
from proctor.base.errors import AgentFailed, one_line
from proctor.base.json_data import to_text
from proctor.compat.holodeck.agent_spec import AgentSpec, McpSpec
from proctor.compat.holodeck.claude_code import ClaudeCodeSpec
from proctor.compat.holodeck.tools import AgentTool, build_tools
from proctor.judging.providers import ModelSpec

SERVER_NAME = "holodeck_tools"
"""The name of that server."""


@asynccontextmanager
async def build_agent(spec: AgentSpec) -> AsyncIterator[Agent]:
    """The agent. Claude Code itself starts with each session."""
    agent = ClaudeAgent(build_options(spec), spec.name)
    agent.fingerprint = spec.fingerprint
    yield agent


def build_options(spec: AgentSpec) -> Any:
    """The SDK's options for the agent. The user's own settings are read only if the file says so."""
    from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, create_sdk_mcp_server

    tools = build_tools(spec, _ask)
    servers: dict[str, Any] = {server.name: _server_config(server) for server in spec.servers}
    if tools:
        servers[SERVER_NAME] = create_sdk_mcp_server(SERVER_NAME, tools=[_tool(tool) for tool in tools])
    vendor_options = spec.vendor_options
    schema, tokens = spec.response_schema, vendor_options.thinking_tokens
    claude_code = spec.claude_code or ClaudeCodeSpec(Path.cwd())
    return ClaudeAgentOptions(
        model=spec.model.model,
        system_prompt=spec.instructions,
        tools=list(claude_code.tools),
        mcp_servers=servers,
        allowed_tools=[*_allowed_tools(spec, tools), *claude_code.rules],
        disallowed_tools=[*vendor_options.disallowed_tools, *claude_code.denied],
        permission_mode=claude_code.permission_mode,
        agents={name: AgentDefinition(**agent) for name, agent in claude_code.agents.items()} or None,
        cwd=claude_code.folder,
        max_budget_usd=claude_code.max_budget_usd,
        max_turns=vendor_options.max_turns,
        fallback_model=vendor_options.fallback_model,
        effort=vendor_options.effort,
        thinking=None if tokens is None else {"type": "enabled", "budget_tokens": tokens},
        output_format=None if schema is None else {"type": "json_schema", "schema": dict(schema)},
        setting_sources=list(claude_code.setting_sources),
        env={**_environment(spec.model), **claude_code.environment},
    )


def _allowed_tools(spec: AgentSpec, tools: list[AgentTool]) -> list[str]:
    """The tools that may be used without asking for permission: all that the file gives the agent."""
    allowed = spec.vendor_options.allowed_tools
    function_tools = [f"mcp__{SERVER_NAME}__{tool.name}" for tool in tools]
    if allowed is None:
        return function_tools + [server.prefix.removesuffix("__") for server in spec.servers]
    server_tools = [name for name in allowed if any(name.startswith(server.prefix) for server in spec.servers)]
    return (
        function_tools
        + server_tools
        + [server.prefix.removesuffix("__") for server in spec.servers if server.name in allowed]
    )


def _tool(tool: AgentTool) -> Any:
    from claude_agent_sdk import tool as sdk_tool

    async def call(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            result = await tool.call(arguments)
        except Exception as error:
            return {"content": [{"type": "text", "text": one_line(error)}], "is_error": True}
        return {"content": [{"type": "text", "text": result if isinstance(result, str) else to_text(result)}]}

    return sdk_tool(tool.name, tool.description, dict(tool.schema))(call)


def _server_config(server: McpSpec) -> dict[str, Any]:
    if server.transport == "stdio":
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
    return {"type": server.transport, "url": server.url, "headers": dict(server.headers)}


def _environment(model: ModelSpec) -> dict[str, str]:
    """The variables with the address and key of the model; Ollama has an Anthropic-compatible API at its root."""
    environment: dict[str, str] = {}
    if model.base_url is not None:
        environment["ANTHROPIC_BASE_URL"] = model.base_url.removesuffix("/v1")
    if model.api_key is not None:
        environment["ANTHROPIC_API_KEY"] = model.api_key
    return environment


async def _ask(model: ModelSpec | None, prompt: str) -> str:
    from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

    options = ClaudeAgentOptions(tools=[], setting_sources=[], max_turns=1)
    if model is not None:
        options.model, options.env = model.model, _environment(model)
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            if message.is_error:
                reason = f"the prompt tool got no answer: {message.result}"
                raise AgentFailed(reason, diagnosis=diagnose_result(message))
            return message.result or ""
    raise AgentFailed("the prompt tool got no answer")
