"""Build a described agent with Pydantic AI, which can call every provider."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.agents.agent import Agent
from proctor.agents.frameworks import FrameworkAgent
from proctor.agents.frameworks.pydantic_ai import PydanticAi, PydanticAiSession
from proctor.agents.reply import Reply
from proctor.agents.tools import InvalidArguments
from proctor.agents.turn_recorder import TurnRecorder
from proctor.base.errors import AgentFailed, one_line
from proctor.base.masking import mask
from proctor.cases.suite import Turn
from proctor.compat.holodeck.agent_spec import AgentSpec, McpSpec, no_answer_message
from proctor.compat.holodeck.tool_reader import schema_error
from proctor.compat.holodeck.tools import AgentTool, Ask, build_tools
from proctor.judging.provider_errors import endpoint_failure
from proctor.judging.providers import ModelSpec, build_model

ANTHROPIC_PROVIDERS = ("anthropic", "bedrock")
"""The providers whose models accept no temperature while thinking."""
EFFORTS = {"low": "low", "medium": "medium", "high": "high", "max": "xhigh"}
"""Pydantic AI's word for each effort."""


@asynccontextmanager
async def build_agent(spec: AgentSpec) -> AsyncIterator[Agent]:
    """The agent with its model's connections and servers of tools, until the context ends."""
    from pydantic_ai import Agent as PydanticAgent

    async with AsyncExitStack() as stack:
        model, primary_model = await _model(spec, stack)
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proctor-mcp-")))
        agent: Any = PydanticAgent(
            model,
            name=spec.name,
            instructions=spec.instructions,
            model_settings=_settings(spec, primary_model),
            tools=[_tool(tool) for tool in build_tools(spec, _prompt_function(model))],
            toolsets=[await _connect(server, spec, stack, logs) for server in spec.servers],
            **_output(spec),
        )
        if spec.response_schema is not None:
            agent.output_validator(_schema_validator(spec))
        await stack.enter_async_context(agent)
        yield FrameworkAgent(_DescribedAdapter(_with_turn_limit(agent, spec), spec), spec.name, spec.fingerprint)


class _DescribedAdapter(PydanticAi):
    """An adapter for which an unreachable model service is an infrastructure error, and no answer is an empty one."""

    def __init__(self, target: Any, spec: AgentSpec) -> None:
        super().__init__(target)
        self._model = spec.model
        self._options = spec.vendor_options

    async def send(self, session: PydanticAiSession, turn: Turn, recorder: TurnRecorder) -> Reply:
        from pydantic_ai import capture_run_messages
        from pydantic_ai.exceptions import (
            FallbackExceptionGroup,
            ModelAPIError,
            UnexpectedModelBehavior,
            UsageLimitExceeded,
        )

        try:
            with capture_run_messages() as messages:
                return await super().send(session, turn, recorder)
        except UsageLimitExceeded:
            raise AgentFailed(self._options.turn_limit_message) from None
        except UnexpectedModelBehavior:
            if not _is_empty_answer(messages):
                raise
            return Reply("")
        except (ModelAPIError, FallbackExceptionGroup) as error:
            last: Any = error.exceptions[-1] if isinstance(error, FallbackExceptionGroup) else error
            failure = endpoint_failure(last)
            words = mask(f"{self._model.name} {failure}", [self._model.api_key or ""])
            raise AgentFailed(words, diagnosis=failure.diagnosis) from None


def _is_empty_answer(messages: list[Any]) -> bool:
    """Whether the model's last message has neither words nor calls; the library asks again, and then gives up."""
    last = next((message for message in reversed(messages) if message.kind == "response"), None)
    return last is not None and not any(getattr(p, "content", "") or p.part_kind == "tool-call" for p in last.parts)


async def _model(spec: AgentSpec, stack: AsyncExitStack) -> tuple[Any, Any]:
    """The model to call, and the model that the file names; they differ if there is a fallback model."""
    model = await stack.enter_async_context(_plain_model(spec.model))
    if spec.vendor_options.fallback_model is None:
        return model, model
    from pydantic_ai.models.fallback import FallbackModel

    other = await stack.enter_async_context(_plain_model(replace(spec.model, model=spec.vendor_options.fallback_model)))
    return FallbackModel(model, other), model


def _plain_model(spec: ModelSpec) -> Any:
    """A model that gets exactly the instructions in the file.

    The library would otherwise explain system messages in mid-conversation to models without them; none are sent here.
    """
    model = build_model(spec)
    model.profile = {**model.profile, "supports_inline_system_prompts": True}
    return model


def _settings(spec: AgentSpec, model: Any) -> Any:
    """The model settings in the file, without a temperature for models that accept none."""
    model_spec = spec.model
    settings: dict[str, Any] = {
        "temperature": model_spec.temperature,
        "top_p": model_spec.top_p,
        "max_tokens": model_spec.max_tokens,
    }
    if _always_thinks(model):
        settings |= {"temperature": None, "top_p": None}
    if spec.vendor_options.effort is not None:
        settings["thinking"] = EFFORTS[spec.vendor_options.effort]
    if spec.vendor_options.thinking_tokens is not None:
        settings["anthropic_thinking"] = {"type": "enabled", "budget_tokens": spec.vendor_options.thinking_tokens}
    if model_spec.provider in ANTHROPIC_PROVIDERS and not settings.keys().isdisjoint(
        ("thinking", "anthropic_thinking")
    ):
        settings |= {"temperature": None, "top_p": None}
    return {name: value for name, value in settings.items() if value is not None}


def _always_thinks(model: Any) -> bool:
    """Whether the model always thinks, or accepts no sampling settings."""
    profile = model.profile
    return bool(profile.get("thinking_always_enabled") or profile.get("anthropic_disallows_sampling_settings"))


def _output(spec: AgentSpec) -> dict[str, Any]:
    if spec.response_schema is None:
        return {}
    from pydantic_ai import StructuredDict

    return {"output_type": StructuredDict(dict(spec.response_schema), name="reply")}


def _schema_validator(spec: AgentSpec) -> Any:
    """A validator that asks the model to try again if its reply does not match the schema."""
    from pydantic_ai import ModelRetry

    def check(answer: Any) -> Any:
        problem = schema_error(spec.response_schema or {}, answer)
        if problem is not None:
            raise ModelRetry(f"The reply does not match its schema: {problem}")
        return answer

    return check


def _tool(tool: AgentTool) -> Any:
    from pydantic_ai import ModelRetry
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai.exceptions import ToolFailed

    async def call(**arguments: Any) -> Any:
        try:
            return await tool.call(arguments)
        except InvalidArguments as error:
            raise ModelRetry(str(error)) from error
        except Exception as error:
            raise ToolFailed(one_line(error)) from error

    pydantic_tool: Any = PydanticTool.from_schema(call, tool.name, tool.description or None, dict(tool.schema))
    pydantic_tool.defer_loading = tool.deferred
    return pydantic_tool


def _prompt_function(default_model: Any) -> Ask:
    """The function that sends a prompt tool's prompt to a model."""
    from pydantic_ai import Agent as PydanticAgent

    async def ask(model: ModelSpec | None, prompt: str) -> str:
        if model is None:
            return str((await PydanticAgent(default_model).run(prompt)).output)
        options = {"temperature": model.temperature, "top_p": model.top_p, "max_tokens": model.max_tokens}
        settings: Any = {name: value for name, value in options.items() if value is not None}
        async with _plain_model(model) as other:
            return str((await PydanticAgent(other, model_settings=settings).run(prompt)).output)

    return ask


def _with_turn_limit(agent: Any, spec: AgentSpec) -> Any:
    """The agent with its own limit of rounds, which the library accepts only per run."""
    if spec.vendor_options.max_turns is None:
        return agent
    from pydantic_ai.agent import WrapperAgent
    from pydantic_ai.usage import UsageLimits

    limits = UsageLimits(request_limit=spec.vendor_options.max_turns)

    class Limited(WrapperAgent[Any, Any]):
        def iter(self, *args: Any, **kwargs: Any) -> Any:
            return super().iter(*args, **{**kwargs, "usage_limits": kwargs.get("usage_limits") or limits})

    return Limited(agent)


async def _connect(server: McpSpec, spec: AgentSpec, stack: AsyncExitStack, logs: Path) -> Any:
    """The allowed tools of an MCP server; if it cannot be used, the error includes the end of its log."""
    from pydantic_ai.mcp import MCPToolset

    log = logs / f"{server.name}.log"
    toolset: Any = MCPToolset(
        _transport(server, log),
        id=server.name,
        tool_error_behavior="failed",
        init_timeout=server.connect_timeout,
        read_timeout=server.request_timeout,
    )
    try:
        async with asyncio.timeout(server.connect_timeout):  # the library's own limit does not apply to SSE
            await stack.enter_async_context(toolset)
    except TimeoutError:
        raise AgentFailed(no_answer_message(server)) from None
    except Exception as error:
        log_text = log.read_text(encoding="utf-8", errors="replace").strip()[-400:] if log.is_file() else ""
        words = f"{one_line(error)}{f' ({log_text})' if log_text else ''}"
        raise AgentFailed(f"the MCP server {server.name} could not be used: {words}") from None
    vendor_options = spec.vendor_options
    tools = toolset.prefixed(server.prefix.removesuffix("_")).filtered(
        lambda _, t: vendor_options.allows(t.name, server.name)
    )
    return tools.defer_loading() if server.deferred else tools


def _transport(server: McpSpec, log: Path) -> Any:
    from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

    if server.transport == "stdio":
        folder = None if server.cwd is None else str(server.cwd)
        return StdioTransport(
            server.command, list(server.args), dict(server.env), folder, keep_alive=False, log_file=log
        )
    kind = SSETransport if server.transport == "sse" else StreamableHttpTransport
    return kind(server.url, headers=dict(server.headers))
