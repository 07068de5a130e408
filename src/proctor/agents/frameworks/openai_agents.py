"""The OpenAI Agents SDK. An agent, with the agents that it hands off to or uses as tools.

The SDK's run hooks report model calls and handoffs. They cannot replace the result of a tool, and a run that a tool
starts has its own hooks. So one method is patched: `Agent.get_all_tools`, which every run calls. During a turn it
returns copies of the tools that go through the recorder; the agent's own tools are not changed.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

from proctor.agents.frameworks import Adapter, current_turn_of
from proctor.agents.frameworks.adapter_helpers import dump_context, fill_context
from proctor.agents.messages import get_field
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.agents.reply_reader import as_text
from proctor.agents.tools import InvalidArguments
from proctor.agents.turn_recorder import TurnRecorder, patch_once
from proctor.base.errors import AgentFailed, one_line
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import Json, to_json, to_text
from proctor.cases.suite import Case, Turn


@dataclasses.dataclass(slots=True)
class OpenAiSession:
    """One conversation: after a handoff, the agent that took over answers the next turn."""

    agent: Any
    context: Any
    items: list[Any] = dataclasses.field(default_factory=list)


class OpenAiAgents(Adapter):
    """Runs agents with an input list per trial, and a context filled from the case's state."""

    name, title, packages, modules = "openai_agents", "the OpenAI Agents SDK", ("openai-agents",), ("agents",)
    takes = "an Agent"
    max_turns: int | None = None
    """How many times the model is asked for one answer; None for the SDK's limit."""

    @classmethod
    def accepts(cls, target: Any) -> bool:
        from agents import Agent as SdkAgent
        from agents import FunctionTool, Runner  # noqa: F401  many projects have their own package `agents`

        return isinstance(target, SdkAgent)

    @property
    def tools(self) -> Mapping[str, Callable[..., Any]]:
        functions = {getattr(tool, "name", ""): getattr(tool, "__wrapped__", None) for tool in self.target.tools}
        return {name: function for name, function in functions.items() if callable(function)}

    def describe(self) -> Json:
        return _describe(self.target, [])

    def check(self, case: Case) -> str | None:
        try:
            fill_context(_context_type(self.target), case.state)
        except ValueError as error:
            return str(error)
        return None

    async def open(self, case: Case) -> OpenAiSession:
        from agents import Agent as SdkAgent

        patch_once(SdkAgent, "get_all_tools", _recorded_tools)
        try:
            return OpenAiSession(self.target, fill_context(_context_type(self.target), case.state))
        except ValueError as error:
            raise AgentFailed(str(error)) from None

    async def send(self, session: OpenAiSession, turn: Turn, recorder: TurnRecorder) -> Reply:
        messages = [*session.items, {"role": "user", "content": as_text(turn)}]
        result = await _run(session, messages, recorder, self.max_turns)
        if result.interruptions:
            waiting = ", ".join(str(item.name) for item in result.interruptions)
            raise AgentFailed(f"waits for a person to approve {waiting}; calls that need approval are not supported")
        session.items, session.agent = result.to_input_list(), result.last_agent
        _record_calls_elsewhere(result.new_items, recorder)
        output = result.final_output
        structured = None if isinstance(output, str) or output is None else to_json(output)
        return Reply(
            output if isinstance(output, str) else "" if output is None else to_text(structured),
            usage=_usage(result.context_wrapper.usage),
            structured=structured,
            state=dump_context(session.context),
            raw=result,
        )


async def _run(session: OpenAiSession, messages: list[Any], recorder: TurnRecorder, max_turns: int | None) -> Any:
    """Run the agent, with the SDK's traces to its vendor disabled, also in runs that tools start."""
    from agents import RunConfig, Runner, trace

    with trace("proctor", disabled=True):
        return await Runner.run(
            session.agent,
            messages,
            context=session.context,
            hooks=_hooks_class()(recorder),
            run_config=RunConfig(tracing_disabled=True),
            **({} if max_turns is None else {"max_turns": max_turns}),
        )


async def _recorded_tools(original: Any, agent: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """The agent's tools; those that run here are copies that go through the recorder."""
    from agents import FunctionTool

    tools = await original(agent, *args, **kwargs)
    recorder = current_turn_of(OpenAiAgents.name)
    if recorder is None:
        return list(tools)
    return [_recorded_tool(tool, recorder) if isinstance(tool, FunctionTool) else tool for tool in tools]


@dataclasses.dataclass(frozen=True, slots=True)
class ReportingInvoker:
    """Calls a tool and returns what it raises as text for the model, as tools of the SDK's own decorator do.

    A `FunctionTool` that a program creates itself would end the whole run instead.
    """

    invoke: Callable[[Any, str], Awaitable[Any]]

    async def __call__(self, context: Any, arguments: str) -> Any:
        try:
            return await self.invoke(context, arguments)
        except InvalidArguments as error:
            return f"The arguments are invalid: {error}"
        except Exception as error:
            return one_line(error)


def _recorded_tool(tool: Any, recorder: TurnRecorder) -> Any:
    """A copy of the tool that records calls. The SDK turns errors into text for the model; we record inside of that."""
    recorded = copy.copy(tool)
    invoker = recorded.on_invoke_tool
    inner = getattr(invoker, "_invoke_tool_impl", None)
    if isinstance(invoker, ReportingInvoker):
        recorded.on_invoke_tool = ReportingInvoker(_recording_invoke(tool.name, invoker.invoke, recorder))
    elif inner is None or invoker is tool.on_invoke_tool:
        recorded.on_invoke_tool = _recording_invoke(tool.name, invoker, recorder)
    else:
        invoker._invoke_tool_impl = _recording_invoke(tool.name, inner, recorder)
    return recorded


def _recording_invoke(name: str, invoke: Any, recorder: TurnRecorder) -> Any:
    @functools.wraps(invoke)
    async def call(context: Any, arguments: str) -> Any:
        call_id = getattr(context, "tool_call_id", None)
        return await recorder.call_tool(name, arguments, lambda: invoke(context, arguments), id=call_id)

    return call


@functools.cache
def _hooks_class() -> type[Any]:
    from agents import RunHooks

    class Hooks(RunHooks):  # type: ignore[misc]
        """Records model calls, and handoffs, which the model requests like any other call."""

        def __init__(self, recorder: TurnRecorder) -> None:
            self.recorder = recorder
            self.requests: list[Any] = []

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            self.requests = [item for item in response.output if get_field(item, "type") == "function_call"]
            if (usage := getattr(response, "usage", None)) is not None:
                self.recorder.add_usage(_usage(usage))
            parts = [part for item in response.output for part in get_field(item, "content") or ()]
            self.recorder.set_partial("".join(str(get_field(part, "text") or "") for part in parts))

        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            tools = {getattr(tool, "name", "") for tool in from_agent.tools}
            recorded = {call.id for call in self.recorder.tool_calls}
            handoffs = [item for item in self.requests if item.call_id not in recorded and item.name not in tools]
            request: Any = handoffs[0] if handoffs else {}
            name = get_field(request, "name") or f"transfer_to_{to_agent.name}"
            self.recorder.record_handoff(
                name, get_field(request, "arguments"), to_agent.name, id=get_field(request, "call_id")
            )

    return Hooks


def _record_calls_elsewhere(items: list[Any], recorder: TurnRecorder) -> None:
    """Record calls that no tool here executed: the model service did, or a guardrail refused them."""
    recorded = {call.id for call in recorder.tool_calls}
    outputs = {_id(item.raw_item): item.output for item in items if item.type == "tool_call_output_item"}
    for raw in [item.raw_item for item in items if item.type == "tool_call_item"]:
        if _id(raw) not in recorded:
            name = str(get_field(raw, "name") or str(get_field(raw, "type")).removesuffix("_call"))
            arguments = to_json(get_field(raw, "arguments", "action", "queries", "code"))
            result = to_json(outputs.get(_id(raw), get_field(raw, "output", "results", "outputs")))
            recorder.add_call(ToolCall.parse(name, arguments, result=result, id=_id(raw)))


def _id(raw: Any) -> Any:
    return get_field(raw, "call_id", "id")


def _usage(usage: Any) -> Usage:
    """The usage of a run. The SDK counts tokens that the model does not report as zero; here they are unknown."""
    if not usage.input_tokens and not usage.output_tokens:
        return Usage(model_calls=usage.requests)
    return Usage(usage.input_tokens, usage.output_tokens, model_calls=usage.requests)


def _context_type(agent: Any) -> Any:
    """The type in `Agent[Type](...)`."""
    arguments = get_args(getattr(agent, "__orig_class__", None))
    return arguments[0] if arguments else None


def _describe(agent: Any, ancestors: list[Any]) -> Json:
    """Instructions, model, tools and handoffs, for the fingerprint; of an ancestor, only the name."""
    if any(agent is other for other in ancestors):
        return agent.name
    instructions = agent.instructions
    text = instructions if isinstance(instructions, str) or instructions is None else source_fingerprint(instructions)
    handoffs = [_describe_handoff(handoff, [*ancestors, agent]) for handoff in agent.handoffs]
    tools = [_describe_tool(tool, [*ancestors, agent]) for tool in agent.tools]
    model = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", type(agent.model).__name__)
    return [agent.name, text, str(model), tools, handoffs]


def _describe_handoff(handoff: Any, ancestors: list[Any]) -> Json:
    if hasattr(handoff, "instructions"):
        return _describe(handoff, ancestors)
    return [handoff.tool_name, handoff.agent_name, handoff.tool_description]


def _describe_tool(tool: Any, ancestors: list[Any]) -> Json:
    function = getattr(tool, "__wrapped__", None)
    inner = getattr(tool, "_agent_instance", None)
    return [
        getattr(tool, "name", type(tool).__name__),
        getattr(tool, "description", ""),
        None if function is None else source_fingerprint(function),
        None if inner is None else _describe(inner, ancestors),
    ]
