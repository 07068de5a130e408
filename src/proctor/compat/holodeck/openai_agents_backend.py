"""Build a described agent with the OpenAI Agents SDK, for models that OpenAI's client can call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from proctor.agents.agent import Agent
from proctor.agents.frameworks import FrameworkAgent
from proctor.agents.frameworks.openai_agents import OpenAiAgents, OpenAiSession, ReportingInvoker
from proctor.agents.reply import Reply
from proctor.agents.tools import InvalidArguments
from proctor.agents.turn_recorder import TurnRecorder
from proctor.base.errors import AgentFailed, one_line
from proctor.base.json_data import Json, to_text
from proctor.cases.suite import Turn
from proctor.compat.holodeck.agent_spec import AgentSpec, McpSpec, VendorOptions, no_answer_message
from proctor.compat.holodeck.tool_reader import schema_error
from proctor.compat.holodeck.tools import AgentTool, Ask, build_tools
from proctor.judging.providers import NO_KEY, ModelSpec


@asynccontextmanager
async def build_agent(spec: AgentSpec) -> AsyncIterator[Agent]:
    """The agent with its client and servers of tools, until the context ends."""
    from agents import Agent as SdkAgent

    async with AsyncExitStack() as stack:
        model = await _model(spec.model, stack)
        target = SdkAgent(
            name=spec.name,
            instructions=spec.instructions,
            model=model,
            model_settings=_settings(spec.model, spec.vendor_options),
            tools=[_tool(tool) for tool in build_tools(spec, _prompt_function(model))],
            mcp_servers=[await _connect(server, spec.vendor_options, stack) for server in spec.servers],
            mcp_config={"include_server_in_tool_names": True},
            output_type=None if spec.response_schema is None else _output_schema(spec.response_schema),
        )
        yield FrameworkAgent(_DescribedAdapter(target, spec.vendor_options), spec.name, spec.fingerprint)


class _DescribedAdapter(OpenAiAgents):
    """An adapter with the limit of turns in the file."""

    def __init__(self, target: Any, options: VendorOptions) -> None:
        super().__init__(target)
        self.max_turns = options.max_turns
        self._options = options

    async def send(self, session: OpenAiSession, turn: Turn, recorder: TurnRecorder) -> Reply:
        from agents.exceptions import MaxTurnsExceeded

        try:
            return await super().send(session, turn, recorder)
        except MaxTurnsExceeded:
            raise AgentFailed(self._options.turn_limit_message) from None


async def _model(spec: ModelSpec, stack: AsyncExitStack) -> Any:
    """The model with the chat API, which every OpenAI-compatible server supports."""
    from openai import AsyncAzureOpenAI, AsyncOpenAI

    from agents import OpenAIChatCompletionsModel

    key = spec.api_key or (NO_KEY if spec.base_url is not None else None)
    client: Any
    if spec.provider.startswith("azure"):
        client = AsyncAzureOpenAI(azure_endpoint=spec.base_url or "", api_key=key, api_version=spec.api_version)
    else:
        client = AsyncOpenAI(base_url=spec.base_url, api_key=key)
    await stack.enter_async_context(client)
    return OpenAIChatCompletionsModel(spec.model, client)


def _settings(model: ModelSpec, vendor_options: VendorOptions) -> Any:
    from openai.types import Reasoning

    from agents import ModelSettings

    effort: Any = {"max": "xhigh"}.get(vendor_options.effort or "", vendor_options.effort)
    reasoning = None if effort is None else Reasoning(effort=effort)
    return ModelSettings(
        temperature=model.temperature, top_p=model.top_p, max_tokens=model.max_tokens, reasoning=reasoning
    )


def _tool(tool: AgentTool) -> Any:
    from agents import FunctionTool

    async def invoke(context: Any, arguments: str) -> Json:
        try:
            values = json.loads(arguments or "{}")
        except ValueError:
            raise InvalidArguments("they are not valid JSON") from None
        result = await tool.call(values if isinstance(values, Mapping) else {})
        return result if isinstance(result, str) else to_text(result)

    return FunctionTool(
        tool.name, tool.description, dict(tool.schema), ReportingInvoker(invoke), strict_json_schema=False
    )


def _prompt_function(default_model: Any) -> Ask:
    """The function that sends a prompt tool's prompt to a model."""
    from agents import Agent as SdkAgent
    from agents import RunConfig, Runner

    async def ask(model: ModelSpec | None, prompt: str) -> str:
        async with AsyncExitStack() as stack:
            sdk_model = default_model if model is None else await _model(model, stack)
            settings: Any = {} if model is None else {"model_settings": _settings(model, VendorOptions())}
            helper = SdkAgent(name="prompt", model=sdk_model, **settings)
            result = await Runner.run(helper, prompt, run_config=RunConfig(tracing_disabled=True))
            return str(result.final_output)

    return ask


def _output_schema(schema: Mapping[str, Json]) -> Any:
    """Structured output with any JSON Schema; the SDK would otherwise need a Python type."""
    from agents.exceptions import ModelBehaviorError

    from agents import AgentOutputSchemaBase

    class OutputSchema(AgentOutputSchemaBase):  # type: ignore[misc]
        def is_plain_text(self) -> bool:
            return False

        def name(self) -> str:
            return "reply"

        def json_schema(self) -> dict[str, Any]:
            return dict(schema)

        def is_strict_json_schema(self) -> bool:
            return False

        def validate_json(self, json_str: str) -> Any:
            try:
                answer = json.loads(json_str)
            except ValueError:
                raise ModelBehaviorError("the reply is not valid JSON") from None
            problem = schema_error(schema, answer)
            if problem is not None:
                raise ModelBehaviorError(f"the reply does not match its schema: {problem}")
            return answer

    return OutputSchema()


async def _connect(server: McpSpec, vendor_options: VendorOptions, stack: AsyncExitStack) -> Any:
    """A connected MCP server that offers only the allowed tools."""
    from agents.mcp import MCPServerSse, MCPServerStdio, MCPServerStreamableHttp

    def allowed(context: Any, tool: Any) -> bool:
        names = (f"{prefix}{tool.name}" for prefix in server.prefixes)
        return all(vendor_options.allows(name, server.name) for name in names)

    common: Any = {
        "name": server.name,
        "cache_tools_list": True,
        "client_session_timeout_seconds": server.request_timeout,
        "tool_filter": allowed,
    }
    if server.transport == "stdio":
        params: Any = {"command": server.command, "args": list(server.args), "env": dict(server.env)}
        params |= {} if server.cwd is None else {"cwd": server.cwd}
        connection: Any = MCPServerStdio(params, **common)
    else:
        kind = MCPServerSse if server.transport == "sse" else MCPServerStreamableHttp
        params = {"url": server.url, "headers": dict(server.headers), "timeout": server.connect_timeout}
        connection = kind(params, **common)
    try:
        async with asyncio.timeout(server.connect_timeout):
            return await stack.enter_async_context(connection)
    except TimeoutError:
        raise AgentFailed(no_answer_message(server)) from None
    except Exception as error:
        raise AgentFailed(f"the MCP server {server.name} could not be used: {one_line(error)}") from None
