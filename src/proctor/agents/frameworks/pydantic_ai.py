"""Pydantic AI. A capability, the framework's hook, records tool and model calls and can replace a tool.

A capability that is passed to one run does not reach the runs that its tools start. So `Agent.iter`, which every run
calls, is patched to add the capability during a turn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proctor.agents.frameworks import Adapter, current_turn_of
from proctor.agents.frameworks.adapter_helpers import dump_context, fill_context
from proctor.agents.reply import Reply
from proctor.agents.reply_reader import as_text
from proctor.agents.tool_mocks import is_mocked
from proctor.agents.turn_recorder import TurnRecorder, patch_once
from proctor.base.errors import AgentFailed, one_line
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import Json, to_json, to_text
from proctor.cases.suite import Case, Turn


@dataclass(slots=True)
class PydanticAiSession:
    """One conversation: dependencies, and the messages so far."""

    deps: Any
    history: list[Any] = field(default_factory=list)


class PydanticAi(Adapter):
    """Runs agents with a message history per trial, and dependencies filled from the case's state."""

    name, title, packages, modules = "pydantic_ai", "Pydantic AI", ("pydantic-ai-slim",), ("pydantic_ai",)
    takes = "an Agent"

    @classmethod
    def accepts(cls, target: Any) -> bool:
        from pydantic_ai.agent import AbstractAgent

        return isinstance(target, AbstractAgent)

    @property
    def agent_name(self) -> str:
        return self.target.name or "agent"

    @property
    def tools(self) -> Mapping[str, Callable[..., Any]]:
        tables = [getattr(toolset, "tools", None) for toolset in self.target.toolsets]
        return {name: tool.function for table in tables if isinstance(table, dict) for name, tool in table.items()}

    def describe(self) -> Json:
        """Name, model, instructions, output type and tools; private attributes are read if they exist."""
        agent, model = self.target, self.target.model
        return [
            agent.name,
            getattr(model, "model_name", None) or str(model),
            [_text_or_code(part) for name in ("_instructions", "_system_prompts") for part in getattr(agent, name, ())],
            [_text_or_code(function) for function in getattr(agent, "_system_prompt_functions", ())],
            to_text(to_json(getattr(agent, "output_type", None))),
            _describe_tools(agent),
        ]

    def check(self, case: Case) -> str | None:
        try:
            fill_context(self.target.deps_type, case.state)
        except ValueError as error:
            return str(error)
        return None

    async def open(self, case: Case) -> PydanticAiSession:
        from pydantic_ai import Agent as PydanticAgent

        patch_once(PydanticAgent, "iter", _iter_with_recording)
        try:
            return PydanticAiSession(fill_context(self.target.deps_type, case.state))
        except ValueError as error:
            raise AgentFailed(str(error)) from None

    async def send(self, session: PydanticAiSession, turn: Turn, recorder: TurnRecorder) -> Reply:
        result = await self.target.run(as_text(turn), message_history=session.history, deps=session.deps)
        session.history = result.all_messages()
        output = result.output
        _record_deferred(output, recorder)
        structured = None if isinstance(output, str) else to_json(output)
        text = output if isinstance(output, str) else to_text(structured)
        return Reply(text, structured=structured, state=dump_context(session.deps), raw=result)


def _record_deferred(output: Any, recorder: TurnRecorder) -> None:
    """Record the calls with which a run ends because they need approval or are executed elsewhere."""
    from pydantic_ai import DeferredToolRequests

    if not isinstance(output, DeferredToolRequests):
        return
    for calls, reason in ((output.approvals, "it needs approval"), (output.calls, "it is executed elsewhere")):
        for call in calls:
            recorder.record_unexecuted_call(call.tool_name, call.args, f"not called: {reason}", id=call.tool_call_id)


def _iter_with_recording(original: Any, agent: Any, *args: Any, **kwargs: Any) -> Any:
    recorder = current_turn_of(PydanticAi.name)
    if recorder is not None:
        kwargs["capabilities"] = [*(kwargs.get("capabilities") or ()), _recording_class()(recorder)]
    return original(agent, *args, **kwargs)


@functools.cache
def _recording_class() -> type[Any]:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailed

    class Recording(AbstractCapability[Any]):
        """Writes the tool and model calls of one run into the recorder of the turn."""

        def __init__(self, recorder: TurnRecorder) -> None:
            self.recorder = recorder
            self.output_tools: set[str] = set()
            """Tools through which the model returns its structured answer; they are not recorded as calls."""
            self.reported: set[str] = set()
            """The ids of calls that are recorded already."""

        async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            try:
                return await handler(args)
            except Exception as error:
                self._record_refused(call, str(error))
                raise

        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            self.reported.add(call.tool_call_id)
            try:
                return await self.recorder.call_tool(
                    call.tool_name,
                    call.args,
                    lambda: handler(args),
                    id=call.tool_call_id,
                    read=lambda result: getattr(result, "return_value", result),
                    read_error=_error_text,
                )
            except Exception as error:
                if is_mocked(call.tool_name):
                    raise ToolFailed(str(error)) from error  # which the framework reports to the model
                raise

        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            self.output_tools |= {tool.name for tool in request_context.model_request_parameters.output_tools}
            return request_context

        async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
            usage = response.usage
            self.recorder.add_model_call(usage.input_tokens, usage.output_tokens, response.model_name)
            return response

        async def after_run(self, ctx: Any, *, result: Any) -> Any:
            """Record calls of unknown tools, which only the messages show."""
            parts = [part for message in result.new_messages() for part in message.parts]
            refusals = {part.tool_call_id: part for part in parts if _is_refusal(part)}
            for part in parts:
                if part.part_kind == "tool-call" and part.tool_call_id in refusals.keys() - self.reported:
                    self._record_refused(part, to_text(to_json(refusals[part.tool_call_id].content)))
            return result

        def _record_refused(self, call: Any, reason: str) -> None:
            if call.tool_name not in self.output_tools:
                self.reported.add(call.tool_call_id)
                self.recorder.record_unexecuted_call(call.tool_name, call.args, reason, id=call.tool_call_id)

    return Recording


def _error_text(error: BaseException) -> str:
    """What a tool raised; `ToolFailed` only passes it on to the model, so its own name says nothing."""
    return str(error) if hasattr(error, "tool_failed") else one_line(error)


def _is_refusal(part: Any) -> bool:
    """Whether a part tells the model that its call failed; versions of the framework have two forms of that."""
    if part.part_kind == "tool-return":
        return getattr(part, "outcome", "success") not in ("success", None)
    return bool(part.part_kind == "retry-prompt")


def _text_or_code(part: Any) -> str:
    """Instructions: the text, or a hash of the code that makes it."""
    part = getattr(part, "instruction", getattr(part, "function", part))
    return part if isinstance(part, str) else source_fingerprint(part)


def _describe_tools(agent: Any) -> list[Json]:
    tools: list[Json] = []
    for toolset in agent.toolsets:
        table = getattr(toolset, "tools", None)
        if not isinstance(table, dict):
            tools.append(type(toolset).__name__)
            continue
        tools += [[name, tool.description, source_fingerprint(tool.function)] for name, tool in table.items()]
    return tools
