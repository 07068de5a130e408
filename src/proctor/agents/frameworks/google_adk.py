"""Google's Agent Development Kit: an agent or an app, in a session of its own, with a plugin that sees every call."""

from __future__ import annotations

import functools
from typing import Any

from proctor.agents.doubles import answer_async, is_doubled
from proctor.agents.frameworks.sessions import CallLog, FrameworkAgent, FrameworkSession, text_of
from proctor.agents.model import Agent, Reply, Usage
from proctor.cases.model import Case, Turn
from proctor.errors import AgentFailed
from proctor.plain import fingerprint, plain

USER = "proctor"


def adapt(target: Any, name: str) -> Agent | None:
    """An agent that runs LlmAgents, workflow agents and Apps."""
    from google.adk.agents import BaseAgent

    if not isinstance(target, BaseAgent) and not hasattr(target, "root_agent"):
        return None
    return GoogleAdkAgent(target, name or str(target.name), is_app=not isinstance(target, BaseAgent))


class GoogleAdkAgent(FrameworkAgent):
    """Runs the agent for each trial in a fresh session, whose state is the case's."""

    def __init__(self, target: Any, name: str, *, is_app: bool) -> None:
        super().__init__(target, name, _fingerprint(target.root_agent if is_app else target))
        self._is_app = is_app

    def session(self, case: Case) -> GoogleAdkSession:
        return GoogleAdkSession(self.target, case, is_app=self._is_app)


class GoogleAdkSession(FrameworkSession):
    """One session of an in-memory runner."""

    def __init__(self, target: Any, case: Case, *, is_app: bool) -> None:
        super().__init__(case)
        self._target = target
        self._is_app = is_app
        kept = case.extra.get("x-adk")
        named = kept if isinstance(kept, dict) else {}
        self._user = str(named.get("userId") or USER)
        self._app = str(named.get("appName") or USER)

    async def open(self) -> None:
        from google.adk.runners import InMemoryRunner

        given = {"app": self._target} if self._is_app else {"agent": self._target, "app_name": self._app}
        self._runner = InMemoryRunner(**given)
        self._watch = _watcher_class()("proctor")
        self._runner.plugin_manager.register_plugin(self._watch)
        self._session = await self._runner.session_service.create_session(
            app_name=self._runner.app_name, user_id=self._user, state=plain(self.case.state)
        )

    async def close(self) -> None:
        await self._runner.close()

    async def send(self, turn: Turn) -> Reply:
        from google.genai import types

        self._watch.log = log = CallLog()
        message = types.Content(role="user", parts=[types.Part(text=text_of(turn))])
        text = ""
        async for event in self._runner.run_async(user_id=self._user, session_id=self._session.id, new_message=message):
            if event.error_code and event.error_message:
                raise AgentFailed(f"the model answered {event.error_code}: {event.error_message}")
            if event.is_final_response() and event.content and event.content.parts:
                text = "".join(part.text for part in event.content.parts if part.text and not part.thought) or text
        return Reply(text, log.calls, log.usage, state=await self._state(), raw=None)

    async def _state(self) -> Any:
        session = await self._runner.session_service.get_session(
            app_name=self._runner.app_name, user_id=self._user, session_id=self._session.id
        )
        return None if session is None else plain(dict(session.state))


@functools.cache
def _watcher_class() -> type[Any]:
    """The plugin, made when ADK is there: it notes calls and tokens of the agent and of agents it uses as tools."""
    from google.adk.plugins.base_plugin import BasePlugin

    class Watcher(BasePlugin):  # type: ignore[misc]
        log = CallLog()

        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
            key = self.log.begin(tool_context.function_call_id, tool.name, tool_args)
            if not is_doubled(tool.name):
                return None
            try:
                result = await answer_async(tool.name, tool_args)
            except Exception as error:
                self.log.end(key, error=error)
                return {"error": str(error)}
            self.log.end(key, result)
            return result if isinstance(result, dict) else {"result": result}

        async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
            if not is_doubled(tool.name):
                self.log.end(tool_context.function_call_id, result)

        async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> None:
            self.log.end(tool_context.function_call_id, error=error)

        async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
            usage = llm_response.usage_metadata
            if usage is not None and not llm_response.partial:
                self.log.spend(Usage(usage.prompt_token_count, usage.candidates_token_count, model_calls=1))

    return Watcher


def _fingerprint(agent: Any) -> str:
    """What makes two agents behave alike: instructions, models, tools, and the agents below."""
    model = getattr(agent, "model", "")
    tools = [getattr(tool, "name", None) or getattr(tool, "__name__", repr(type(tool))) for tool in _tools(agent)]
    below = [_fingerprint(inner) for inner in getattr(agent, "sub_agents", [])]
    instruction = getattr(agent, "instruction", "")
    told = instruction if isinstance(instruction, str) else getattr(instruction, "__qualname__", "")
    return fingerprint(type(agent).__name__, agent.name, str(getattr(model, "model", model)), told, tools, below)


def _tools(agent: Any) -> list[Any]:
    return list(getattr(agent, "tools", None) or [])
