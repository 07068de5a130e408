"""Pydantic AI: an agent whose runs, and those of the agents it asks, are watched by a capability of their own."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any

from proctor.agents.agent import BaseSession, Reply, Usage
from proctor.agents.sessions import CallLog, FrameworkAgent, context_from, state_from, text_of
from proctor.agents.toolbox import answer_async, is_doubled
from proctor.base.errors import AgentFailed
from proctor.base.json_data import Json, fingerprint, plain, show
from proctor.base.references import source_fingerprint
from proctor.cases.suite import Case, Turn

WATCH: ContextVar[Any] = ContextVar("proctor_pydantic_ai_watch", default=None)


def adapt(target: Any, name: str) -> FrameworkAgent | None:
    from pydantic_ai.agent import AbstractAgent

    if not isinstance(target, AbstractAgent):
        return None
    return PydanticAiAgent(target, name or target.name or "agent", _fingerprint(target))


class PydanticAiAgent(FrameworkAgent):
    """Each trial has a message history of its own, and dependencies made from the case's state."""

    @property
    def tools(self) -> dict[str, Any]:
        """The functions behind the tools, which evaluators may call again."""
        named = [getattr(toolset, "tools", None) for toolset in self.target.toolsets]
        return {name: tool.function for tools in named if isinstance(tools, dict) for name, tool in tools.items()}

    def session(self, case: Case) -> PydanticAiSession:
        return PydanticAiSession(self.target, case)

    def check(self, case: Case) -> str | None:
        try:
            context_from(self.target.deps_type, case.state)
        except ValueError as error:
            return str(error)
        return None


class PydanticAiSession(BaseSession):
    """One conversation: the messages of a turn are the history of the next."""

    def __init__(self, target: Any, case: Case) -> None:
        super().__init__(case)
        self._target = target
        self._history: list[Any] = []

    async def open(self) -> None:
        _watch_all_runs()
        try:
            self._deps = context_from(self._target.deps_type, self.case.state)
        except ValueError as error:
            raise AgentFailed(str(error)) from None

    async def send(self, turn: Turn) -> Reply:
        log = CallLog()
        token = WATCH.set(_watcher_class()(log))
        try:
            result = await self._target.run(text_of(turn), message_history=self._history, deps=self._deps)
        finally:
            WATCH.reset(token)
        self._history = result.all_messages()
        output = result.output
        _note_deferred(output, log)
        structured = None if isinstance(output, str) else plain(output)
        text = output if isinstance(output, str) else show(structured)
        return Reply(text, log.calls, log.usage, structured=structured, state=state_from(self._deps), raw=result)


def _note_deferred(output: Any, log: CallLog) -> None:
    """Calls with which a run ends because they are not for the agent to make."""
    from pydantic_ai import DeferredToolRequests

    if not isinstance(output, DeferredToolRequests):
        return
    for calls, reason in ((output.approvals, "it waits for a person"), (output.calls, "it is for others to run")):
        for call in calls:
            log.end(log.begin(call.tool_call_id, call.tool_name, call.args), error=f"not called: {reason}")


@functools.cache
def _watch_all_runs() -> None:
    """A capability given to one run does not reach the runs that its tools start; every run passes here, though.

    Where no trial is under way, runs are as they were.
    """
    from pydantic_ai import Agent as PydanticAgent

    original: Any = PydanticAgent.iter

    @functools.wraps(original)
    def iter_watched(self: Any, *given: Any, **named: Any) -> Any:
        watcher = WATCH.get()
        if watcher is not None:
            named["capabilities"] = [*(named.get("capabilities") or ()), watcher]
        return original(self, *given, **named)

    PydanticAgent.iter = iter_watched  # type: ignore[method-assign]


@functools.cache
def _watcher_class() -> type[Any]:
    """The capability, made when Pydantic AI is there: it notes calls and tokens, and answers for doubled tools."""
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailed

    class Watcher(AbstractCapability[Any]):
        def __init__(self, log: CallLog) -> None:
            self.log = log
            self.output_tools: set[str] = set()

        async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            try:
                return await handler(args)
            except Exception as error:
                self._refused(call, str(error))
                raise

        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            key = self.log.begin(call.tool_call_id, call.tool_name, call.args)
            try:
                result = await self._double(call.tool_name, args) if is_doubled(call.tool_name) else await handler(args)
            except BaseException as error:
                self.log.end(key, error=error)
                raise
            self.log.end(key, getattr(result, "return_value", result))
            return result

        async def _double(self, tool: str, arguments: Any) -> Json:
            """A double that fails tells the model so, as the framework's own `ToolFailed` does."""
            try:
                return await answer_async(tool, arguments)
            except Exception as error:
                raise ToolFailed(str(error)) from error

        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            self.output_tools |= {tool.name for tool in request_context.model_request_parameters.output_tools}
            return request_context

        async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
            spent = response.usage
            if spent.input_tokens or spent.output_tokens:
                model = response.model_name
                self.log.add_usage(Usage(spent.input_tokens, spent.output_tokens, model_calls=1, model=model))
            else:
                self.log.add_usage(Usage(model_calls=1))
            return response

        async def after_run(self, ctx: Any, *, result: Any) -> Any:
            """Calls of tools that do not exist reach no tool: only the messages know of them."""
            seen = {call.id for call in self.log.calls}
            parts = [part for message in result.new_messages() for part in message.parts]
            reasons = {part.tool_call_id: part for part in parts if _is_complaint(part)}
            for part in parts:
                if part.part_kind == "tool-call" and part.tool_call_id in reasons.keys() - seen:
                    self._refused(part, show(plain(reasons[part.tool_call_id].content)))
            return result

        def _refused(self, call: Any, reason: str) -> None:
            if call.tool_name not in self.output_tools:
                self.log.end(self.log.begin(call.tool_call_id, call.tool_name, call.args), error=reason)

    return Watcher


def _is_complaint(part: Any) -> bool:
    """Whether the model was told that its call did not work; a version says so in one of two ways."""
    if part.part_kind == "tool-return":
        return getattr(part, "outcome", "success") not in ("success", None)
    return bool(part.part_kind == "retry-prompt")


def _fingerprint(agent: Any) -> str:
    """What makes two agents behave alike; where the framework keeps it to itself, the fingerprint does without."""
    model = agent.model
    return fingerprint(
        agent.name,
        getattr(model, "model_name", None) or str(model),
        [_told(part) for name in ("_instructions", "_system_prompts") for part in getattr(agent, name, ())],
        [_told(function) for function in getattr(agent, "_system_prompt_functions", ())],
        show(plain(getattr(agent, "output_type", None))),
        _tools(agent),
    )


def _told(part: Any) -> str:
    """Instructions as text, or the code that makes them."""
    part = getattr(part, "instruction", getattr(part, "function", part))
    return part if isinstance(part, str) else source_fingerprint(part)


def _tools(agent: Any) -> list[Json]:
    tools: list[Json] = []
    for toolset in agent.toolsets:
        named = getattr(toolset, "tools", None)
        if not isinstance(named, dict):
            tools.append(type(toolset).__name__)
            continue
        tools += [[name, tool.description, source_fingerprint(tool.function)] for name, tool in named.items()]
    return tools
