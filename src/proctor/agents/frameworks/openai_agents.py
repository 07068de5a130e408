"""The OpenAI Agents SDK: an agent whose tools, and those of every agent it asks or hands over to, are watched."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
from contextvars import ContextVar
from typing import Any, get_args

from proctor.agents.agent import BaseSession, Reply, ToolCall, Usage
from proctor.agents.chat_messages import field
from proctor.agents.sessions import CallLog, FrameworkAgent, context_from, state_from, text_of
from proctor.agents.toolbox import answer_async, is_doubled
from proctor.base.errors import AgentFailed
from proctor.base.json_data import Json, fingerprint, plain, show
from proctor.base.references import source_fingerprint
from proctor.cases.suite import Case, Turn

LOG: ContextVar[CallLog | None] = ContextVar("proctor_openai_agents_log", default=None)


def adapt(target: Any, name: str) -> FrameworkAgent | None:
    try:
        from agents import Agent as SdkAgent
        from agents import FunctionTool, Runner  # noqa: F401  a package of one's own is often called agents, too
    except ImportError:
        return None
    if not isinstance(target, SdkAgent):
        return None
    return OpenAiAgent(target, name or target.name, fingerprint(_described(target, [])))


class OpenAiAgent(FrameworkAgent):
    """Each trial has an input list of its own, and a context made from the case's state."""

    @property
    def tools(self) -> dict[str, Any]:
        """The functions behind the tools, which evaluators may call again."""
        code = {getattr(tool, "name", ""): getattr(tool, "__wrapped__", None) for tool in self.target.tools}
        return {name: function for name, function in code.items() if callable(function)}

    def session(self, case: Case) -> OpenAiSession:
        return OpenAiSession(self.target, case)

    def check(self, case: Case) -> str | None:
        try:
            context_from(_context_kind(self.target), case.state)
        except ValueError as error:
            return str(error)
        return None


class OpenAiSession(BaseSession):
    """One conversation; after a handoff, the agent that took over answers the next turn."""

    def __init__(self, target: Any, case: Case) -> None:
        super().__init__(case)
        self._agent = target
        self._said: list[Any] = []

    async def open(self) -> None:
        _watch_all_tools()
        try:
            self._context = context_from(_context_kind(self._agent), self.case.state)
        except ValueError as error:
            raise AgentFailed(str(error)) from None

    async def send(self, turn: Turn) -> Reply:
        log = HandoverLog()
        token = LOG.set(log)
        try:
            result = await self._run([*self._said, {"role": "user", "content": text_of(turn)}], log)
        finally:
            LOG.reset(token)
        if result.interruptions:
            waiting = ", ".join(str(item.name) for item in result.interruptions)
            raise AgentFailed(f"waits for a person to approve {waiting}, which nobody here can")
        self._said, self._agent = result.to_input_list(), result.last_agent
        output = result.final_output
        structured = None if isinstance(output, str) or output is None else plain(output)
        return Reply(
            output if isinstance(output, str) else "" if output is None else show(structured),
            (*log.calls, *_calls_elsewhere(result.new_items, log)),
            _usage(result.context_wrapper.usage),
            structured=structured,
            state=state_from(self._context),
            raw=result,
        )

    async def _run(self, messages: list[Any], log: HandoverLog) -> Any:
        """Nothing is posted: the trace is switched off here and in the runs that tools start."""
        from agents import RunConfig, Runner, trace

        with trace("proctor", disabled=True):
            return await Runner.run(
                self._agent,
                messages,
                context=self._context,
                hooks=_hooks_class()(log),
                run_config=RunConfig(tracing_disabled=True),
            )


class HandoverLog(CallLog):
    """Calls, where those of an agent that took over are inside the call that handed over to it."""

    def __init__(self) -> None:
        super().__init__()
        self._taken_over: str | None = None

    def begin(self, identity: str | None, name: str, arguments: Any) -> str:
        key = super().begin(identity, name, arguments)
        if self._taken_over is not None and self._calls[key].parent is None:
            self._calls[key] = dataclasses.replace(self._calls[key], parent=self._taken_over)
        return key

    def hand_over(self, call: Any, to_agent: str) -> None:
        name = field(call, "name") or f"transfer_to_{to_agent}"
        key = self.begin(field(call, "call_id"), name, field(call, "arguments"))
        self.end(key, {"agent": to_agent})
        self._taken_over = key


@functools.cache
def _watch_all_tools() -> None:
    """Every run, also one that a tool starts, asks its agent for the tools: in a trial it is given watched copies.

    The agent keeps its own tools, and where no trial is under way it gives those.
    """
    from agents import Agent as SdkAgent
    from agents import FunctionTool

    original: Any = SdkAgent.get_all_tools

    @functools.wraps(original)
    async def get_all_tools(self: Any, *given: Any, **named: Any) -> Any:
        tools = await original(self, *given, **named)
        log = LOG.get()
        return tools if log is None else [_watched(t, log) if isinstance(t, FunctionTool) else t for t in tools]

    SdkAgent.get_all_tools = get_all_tools


def _watched(tool: Any, log: CallLog) -> Any:
    """A copy of the tool. What the SDK makes of an error is the SDK's, so the watching goes on within that."""
    watched = copy.copy(tool)
    invoker = watched.on_invoke_tool
    inner = getattr(invoker, "_invoke_tool_impl", None)
    if inner is None or invoker is tool.on_invoke_tool:
        watched.on_invoke_tool = _noting(tool.name, invoker, log)
    else:
        invoker._invoke_tool_impl = _noting(tool.name, inner, log)
    return watched


def _noting(name: str, invoke: Any, log: CallLog) -> Any:
    @functools.wraps(invoke)
    async def noted(context: Any, arguments: str) -> Any:
        key = log.begin(getattr(context, "tool_call_id", None), name, arguments)
        try:
            result = await _double(name, arguments) if is_doubled(name) else await invoke(context, arguments)
        except BaseException as error:
            log.end(key, error=error)
            raise
        log.end(key, result)
        return result

    return noted


async def _double(name: str, arguments: str) -> Json:
    given = json.loads(arguments) if arguments else {}
    return await answer_async(name, given if isinstance(given, dict) else {})


@functools.cache
def _hooks_class() -> type[Any]:
    """The hooks, made when the SDK is there: they see handoffs, which to the model are calls like any other."""
    from agents import RunHooks

    class Hooks(RunHooks):  # type: ignore[misc]
        def __init__(self, log: HandoverLog) -> None:
            self.log = log
            self.asked: list[Any] = []

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            self.asked = [item for item in response.output if field(item, "type") == "function_call"]
            if (spent := getattr(response, "usage", None)) is not None:
                self.log.add_usage(_usage(spent))
            said = [part for item in response.output for part in field(item, "content") or ()]
            self.log.said = "".join(str(field(part, "text") or "") for part in said)

        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            tools = {getattr(tool, "name", "") for tool in from_agent.tools}
            seen = {call.id for call in self.log.calls}
            asked = [item for item in self.asked if item.call_id not in seen and item.name not in tools]
            self.log.hand_over(asked[0] if asked else {}, to_agent.name)

    return Hooks


def _calls_elsewhere(items: list[Any], log: CallLog) -> list[ToolCall]:
    """Calls that no tool here was asked for: the model service ran them, or a guardrail turned them away."""
    seen = {call.id for call in log.calls}
    outputs = {_id(item.raw_item): item.output for item in items if item.type == "tool_call_output_item"}
    asked = [item.raw_item for item in items if item.type == "tool_call_item" and _id(item.raw_item) not in seen]
    return [
        ToolCall.parse(
            str(field(raw, "name") or str(field(raw, "type")).removesuffix("_call")),
            plain(field(raw, "arguments", "action", "queries", "code")),
            result=plain(outputs.get(_id(raw), field(raw, "output", "results", "outputs"))),
            id=_id(raw),
        )
        for raw in asked
    ]


def _id(raw: Any) -> Any:
    return field(raw, "call_id", "id")


def _usage(spent: Any) -> Usage:
    """The SDK counts tokens that the model does not tell as zero; here they are unknown."""
    if not spent.input_tokens and not spent.output_tokens:
        return Usage(model_calls=spent.requests)
    return Usage(spent.input_tokens, spent.output_tokens, model_calls=spent.requests)


def _context_kind(agent: Any) -> Any:
    """What `Agent[Kind](...)` was written with."""
    written = get_args(getattr(agent, "__orig_class__", None))
    return written[0] if written else None


def _described(agent: Any, above: list[Any]) -> Json:
    """What makes two agents behave alike: instructions, models, tools, and the agents below."""
    if any(agent is other for other in above):
        return agent.name
    instructions = agent.instructions
    told = instructions if isinstance(instructions, str) or instructions is None else source_fingerprint(instructions)
    below = [_handoff(handoff, [*above, agent]) for handoff in agent.handoffs]
    return [agent.name, told, _model(agent.model), [_tool(tool, [*above, agent]) for tool in agent.tools], below]


def _model(model: Any) -> str:
    return model if isinstance(model, str) else str(getattr(model, "model", type(model).__name__))


def _handoff(handoff: Any, above: list[Any]) -> Json:
    if hasattr(handoff, "instructions"):
        return _described(handoff, above)
    return [handoff.tool_name, handoff.agent_name, handoff.tool_description]


def _tool(tool: Any, above: list[Any]) -> Json:
    function = getattr(tool, "__wrapped__", None)
    inner = getattr(tool, "_agent_instance", None)
    return [
        getattr(tool, "name", type(tool).__name__),
        getattr(tool, "description", ""),
        None if function is None else source_fingerprint(function),
        None if inner is None else _described(inner, above),
    ]
