"""Google's Agent Development Kit. An ADK plugin records every tool and model call of a runner.

The plugin also reaches agents that are used as tools. It has to be the first one: a plugin that answers a tool call
keeps it from the plugins after it. Each trial has its own runner and in-memory session.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from proctor.agents.conversation import session_names
from proctor.agents.frameworks import Adapter
from proctor.agents.frameworks.adapter_helpers import describe_tool
from proctor.agents.reply import Reply, Usage
from proctor.agents.reply_reader import as_text, parse_json_answer
from proctor.agents.tool_mocks import is_mocked
from proctor.agents.turn_recorder import TurnRecorder
from proctor.base.errors import AgentFailed
from proctor.base.fingerprints import source_fingerprint
from proctor.base.infrastructure import diagnose_output
from proctor.base.json_data import Json, to_json
from proctor.cases.suite import Case, Turn

USER = "proctor"


@dataclass(frozen=True, slots=True)
class AdkSession:
    """One session of an in-memory runner."""

    runner: Any
    plugin: Any
    user: str
    id: str


class GoogleAdk(Adapter):
    """Runs LlmAgents, workflow agents, Apps, and the agent of a Runner, in a session with the state of the case."""

    name, title, packages, modules = "google_adk", "Google ADK", ("google-adk",), ("google.adk",)
    takes = "an agent, an App or a Runner"

    @classmethod
    def accepts(cls, target: Any) -> bool:
        from google.adk.agents import BaseAgent
        from google.adk.runners import Runner

        return isinstance(target, (BaseAgent, Runner)) or hasattr(target, "root_agent")

    def __init__(self, target: Any) -> None:
        from google.adk.agents import BaseAgent
        from google.adk.runners import Runner

        if isinstance(target, Runner):
            target = getattr(target, "app", None) or target.agent
        super().__init__(target)
        self._is_app = not isinstance(target, BaseAgent)
        self._root = target.root_agent if self._is_app else target
        self._last_runner: Any = None

    def describe(self) -> Json:
        return _describe(self._root)

    async def open(self, case: Case) -> AdkSession:
        from google.adk.runners import InMemoryRunner

        names = session_names(case)
        user, app_name = names.get("user_id", USER), names.get("app_name", USER)
        options = {"app": self.target} if self._is_app else {"agent": self.target, "app_name": app_name}
        self._last_runner = runner = InMemoryRunner(**options)
        plugin = _plugin_class()("proctor")
        runner.plugin_manager.register_plugin(plugin)
        plugins = runner.plugin_manager.plugins
        plugins.insert(0, plugins.pop())
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id=user, state=to_json(case.state)
        )
        return AdkSession(runner, plugin, user, session.id)

    async def send(self, session: AdkSession, turn: Turn, recorder: TurnRecorder) -> Reply:
        from google.genai import types

        session.plugin.recorder = recorder
        message = types.Content(role="user", parts=[types.Part(text=as_text(turn))])
        answer = FinalAnswer()
        events = session.runner.run_async(user_id=session.user, session_id=session.id, new_message=message)
        async for event in events:
            if event.error_code and event.error_message:
                raise _failure(event, session.plugin.failure)
            answer.read(event)
            recorder.set_partial(answer.text)
        answer.check()
        structured = parse_json_answer(answer.unbroken_text) if self._answers_json(answer.author) else None
        return Reply(answer.text, structured=structured, state=await _state(session), thoughts=answer.thoughts)

    def _answers_json(self, author: str) -> bool:
        agent = self._root.find_agent(author) if hasattr(self._root, "find_agent") else None
        return getattr(agent, "output_schema", None) is not None

    async def stop(self) -> None:
        """Close the toolsets and plugins. All runners share them, so they are not closed while trials run."""
        if self._last_runner is not None:
            await self._last_runner.close()


def _failure(event: Any, raised: Exception | None) -> Exception:
    """The exception of a failed run. Newer versions report only its text, but its type shows if a service is busy."""
    if raised is not None and str(raised) == event.error_message:
        return raised
    reason = f"the run ended with {event.error_code}: {event.error_message}"
    return AgentFailed(reason, diagnosis=diagnose_output(event.error_message))


async def _state(session: AdkSession) -> Any:
    """The state of the session; loaded without its events, which would all be copied."""
    from google.adk.sessions.base_session_service import GetSessionConfig

    stored = await session.runner.session_service.get_session(
        app_name=session.runner.app_name,
        user_id=session.user,
        session_id=session.id,
        config=GetSessionConfig(num_recent_events=0),
    )
    return None if stored is None else to_json(dict(stored.state))


class FinalAnswer:
    """The answer of one turn, assembled from events.

    The text parts of an answer are joined by line breaks, as ADK's evaluators join them: a part may end without a
    space. The parts of a stream are pieces of one text.
    """

    def __init__(self) -> None:
        self._final = ""
        self._pieces = ""
        self._refusal = ""
        self._unbroken = ""
        self.author = ""
        self.thoughts = ""
        """The parts of the answer that the model marked as thoughts."""

    def read(self, event: Any) -> None:
        self._refusal = event.error_code or self._refusal
        parts = event.content.parts if event.content and event.content.parts else ()
        texts = [part.text for part in parts if part.text and not part.thought]
        if event.partial:
            self._pieces += "".join(texts)
        elif event.is_final_response() and texts:
            self._final, self._pieces, self.author = "\n".join(texts), "", event.author
            self._unbroken = "".join(texts)
            self.thoughts = "\n".join(part.text for part in parts if part.text and part.thought)

    @property
    def text(self) -> str:
        """The last complete answer or, for an agent that only streams, all pieces."""
        return self._final or self._pieces

    @property
    def unbroken_text(self) -> str:
        """The same without line breaks between parts, for JSON, whose parts may end inside a word."""
        return self._unbroken or self._pieces

    def check(self) -> None:
        """Raise `AgentFailed` if the model refused to answer."""
        if self._refusal and not self.text:
            raise AgentFailed(f"the model gave no answer: {self._refusal}")


@functools.cache
def _plugin_class() -> type[Any]:
    from google.adk.plugins.base_plugin import BasePlugin

    class RecordingPlugin(BasePlugin):  # type: ignore[misc]
        """Writes the tool and model calls of a runner into the recorder of the turn."""

        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.recorder = TurnRecorder()
            self.failure: Exception | None = None
            self._open_calls: dict[str, int] = {}
            """By ADK's id: the recorder's keys of calls that have not ended."""

        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
            call_id = tool_context.function_call_id
            if not is_mocked(tool.name):
                self._open_calls[call_id] = self.recorder.begin_call(tool.name, tool_args, id=call_id)
                return None
            try:
                result = await self.recorder.call_tool(tool.name, tool_args, _not_mocked, id=call_id)
            except Exception as error:
                return {"error": str(error)}
            return result if isinstance(result, dict) else {"result": result}

        async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
            key = self._open_calls.pop(tool_context.function_call_id, None)
            if key is not None:  # else it was mocked, or it failed and another plugin handled the error
                refusal = _refusal(result)
                self.recorder.end_call(key, None if refusal else result, refusal)

        async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> None:
            self.failure = error
            key = self._open_calls.pop(tool_context.function_call_id, None)
            if key is not None:
                self.recorder.end_call(key, error=error)

        async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Any) -> None:
            self.failure = error

        async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
            usage = llm_response.usage_metadata
            if usage is not None and not llm_response.partial:
                counts = usage.prompt_token_count, usage.candidates_token_count
                model = getattr(llm_response, "model_version", None)
                self.recorder.add_usage(Usage(*counts, model_calls=1, model=model))

    return RecordingPlugin


def _not_mocked() -> None:
    raise AssertionError("a mocked tool must not be called")


def _refusal(result: Any) -> str | None:
    """Why ADK did not execute a call: missing arguments, or a person must confirm. ADK returns it as the result."""
    error = result.get("error") if isinstance(result, dict) and len(result) == 1 else None
    is_from_adk = isinstance(error, str) and error.startswith(("Invoking `", "This tool call "))
    return str(error) if is_from_adk else None


def _describe(agent: Any) -> Json:
    """Instructions, model, tools and subagents, for the fingerprint."""
    model = getattr(agent, "model", "")
    instruction = getattr(agent, "instruction", "")
    return [
        type(agent).__name__,
        agent.name,
        str(getattr(model, "model", model)),
        instruction if isinstance(instruction, str) else source_fingerprint(instruction),
        [_describe_tool(tool) for tool in getattr(agent, "tools", None) or ()],
        [_describe(inner) for inner in getattr(agent, "sub_agents", [])],
        "" if type(agent).__module__.startswith("google.adk.") else source_fingerprint(agent),
    ]


def _describe_tool(tool: Any) -> Json:
    inner = getattr(tool, "agent", None)
    return describe_tool(tool) if inner is None else [tool.name, _describe(inner)]
