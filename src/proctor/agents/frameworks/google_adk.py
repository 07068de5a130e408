"""Google's Agent Development Kit: an agent or an app, in a session of its own, with a plugin that sees every call."""

from __future__ import annotations

import functools
from typing import Any

from proctor.agents.agent import BaseSession, Reply, Usage
from proctor.agents.sessions import CallLog, FrameworkAgent, described_tool, read_data, text_of
from proctor.agents.toolbox import answer_async, is_doubled
from proctor.base.errors import AgentFailed
from proctor.base.json_data import Json, fingerprint, plain
from proctor.base.references import source_fingerprint
from proctor.cases.suite import Case, Turn

USER = "proctor"


def adapt(target: Any, name: str) -> FrameworkAgent | None:
    """An agent that runs LlmAgents, workflow agents, Apps, and what a Runner runs."""
    from google.adk.agents import BaseAgent
    from google.adk.runners import Runner

    if isinstance(target, Runner):
        target = getattr(target, "app", None) or target.agent
    if not isinstance(target, BaseAgent) and not hasattr(target, "root_agent"):
        return None
    return GoogleAdkAgent(target, name or str(target.name), is_app=not isinstance(target, BaseAgent))


class GoogleAdkAgent(FrameworkAgent):
    """Runs the agent for each trial in a fresh session, whose state is the case's."""

    def __init__(self, target: Any, name: str, *, is_app: bool) -> None:
        self.root = target.root_agent if is_app else target
        super().__init__(target, name, _fingerprint(self.root))
        self._is_app = is_app
        self._runner: Any = None

    def session(self, case: Case) -> GoogleAdkSession:
        return GoogleAdkSession(self, case)

    def runner(self, app_name: str) -> Any:
        """One for each trial; they share toolsets and plugins."""
        from google.adk.runners import InMemoryRunner

        given = {"app": self.target} if self._is_app else {"agent": self.target, "app_name": app_name}
        self._runner = InMemoryRunner(**given)
        return self._runner

    async def stop(self) -> None:
        """A runner closes the toolsets and plugins of the agent, so none may while another trial goes on."""
        if self._runner is not None:
            await self._runner.close()

    def answers_data(self, author: str) -> bool:
        speaker = self.root.find_agent(author) if hasattr(self.root, "find_agent") else None
        return getattr(speaker, "output_schema", None) is not None


class GoogleAdkSession(BaseSession):
    """One session of an in-memory runner."""

    def __init__(self, agent: GoogleAdkAgent, case: Case) -> None:
        super().__init__(case)
        self._agent = agent
        kept = case.extra.get("x-adk")
        named = kept if isinstance(kept, dict) else {}
        self._user = str(named.get("userId") or USER)
        self._app = str(named.get("appName") or USER)

    async def open(self) -> None:
        self._runner = self._agent.runner(self._app)
        self._watch = _watcher_class()("proctor")
        self._runner.plugin_manager.register_plugin(self._watch)
        plugins = self._runner.plugin_manager.plugins
        plugins.insert(0, plugins.pop())  # one that answers for a tool keeps the call from those behind it
        self._session = await self._runner.session_service.create_session(
            app_name=self._runner.app_name, user_id=self._user, state=plain(self.case.state)
        )

    async def send(self, turn: Turn) -> Reply:
        from google.genai import types

        self._watch.log = log = CallLog()
        message = types.Content(role="user", parts=[types.Part(text=text_of(turn))])
        answer = FinalAnswer()
        async for event in self._runner.run_async(user_id=self._user, session_id=self._session.id, new_message=message):
            if event.error_code and event.error_message:
                raise self._failure(event)
            answer.read(event)
            log.said = answer.said
        text = answer.text
        structured = read_data(text) if self._agent.answers_data(answer.author) else None
        return Reply(text, log.calls, log.usage, structured=structured, state=await self._state(), raw=None)

    def _failure(self, event: Any) -> Exception:
        """What was raised, since that a service is busy shows in its kind; newer versions tell the text alone."""
        raised: Exception | None = self._watch.failure
        if raised is not None and str(raised) == event.error_message:
            return raised
        return AgentFailed(f"the run ended with {event.error_code}: {event.error_message}")

    async def _state(self) -> Any:
        """Without the events, all of which would be copied."""
        from google.adk.sessions.base_session_service import GetSessionConfig

        session = await self._runner.session_service.get_session(
            app_name=self._runner.app_name,
            user_id=self._user,
            session_id=self._session.id,
            config=GetSessionConfig(num_recent_events=0),
        )
        return None if session is None else plain(dict(session.state))


class FinalAnswer:
    """The answer, put together from the events of one turn."""

    def __init__(self) -> None:
        self._final = ""
        self._pieces = ""
        self._refused = ""
        self.author = ""

    def read(self, event: Any) -> None:
        self._refused = event.error_code or self._refused
        parts = event.content.parts if event.content and event.content.parts else ()
        said = "".join(part.text for part in parts if part.text and not part.thought)
        if event.partial:
            self._pieces += said
        elif event.is_final_response() and said:
            self._final, self._pieces, self.author = said, "", event.author

    @property
    def said(self) -> str:
        """The last whole answer; that of an agent which only streams is all of its pieces."""
        return self._final or self._pieces

    @property
    def text(self) -> str:
        """The same, unless the model refused to give one."""
        text = self.said
        if self._refused and not text:
            raise AgentFailed(f"the model gave no answer: {self._refused}")
        return text


@functools.cache
def _watcher_class() -> type[Any]:
    """The plugin, made when ADK is there: it notes calls and tokens of the agent and of agents it uses as tools."""
    from google.adk.plugins.base_plugin import BasePlugin

    class Watcher(BasePlugin):  # type: ignore[misc]
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.log = CallLog()
            self.failure: Exception | None = None
            self.failed: set[str] = set()
            """The calls that ended with an error."""

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
            if is_doubled(tool.name) or tool_context.function_call_id in self.failed:
                return  # what else a plugin makes of an error, the tool failed
            refused = _refusal(result)
            self.log.end(tool_context.function_call_id, None if refused else result, refused)

        async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> None:
            self.failure = error
            self.failed.add(tool_context.function_call_id)
            self.log.end(tool_context.function_call_id, error=error)

        async def on_model_error_callback(self, *, callback_context: Any, llm_request: Any, error: Any) -> None:
            self.failure = error

        async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
            usage = llm_response.usage_metadata
            if usage is not None and not llm_response.partial:
                model = getattr(llm_response, "model_version", None)
                counts = usage.prompt_token_count, usage.candidates_token_count
                self.log.add_usage(Usage(*counts, model_calls=1, model=model))

    return Watcher


def _refusal(result: Any) -> str | None:
    """Why ADK did not make a call: arguments are missing, or a person has to agree; tools of its own say so as data."""
    told = result.get("error") if isinstance(result, dict) and len(result) == 1 else None
    by_adk = isinstance(told, str) and told.startswith(("Invoking `", "This tool call "))
    return str(told) if by_adk else None


def _fingerprint(agent: Any) -> str:
    """What makes two agents behave alike: instructions, models, tools, and the agents below."""
    model = getattr(agent, "model", "")
    tools = [_tool(tool) for tool in getattr(agent, "tools", None) or ()]
    below = [_fingerprint(inner) for inner in getattr(agent, "sub_agents", [])]
    instruction = getattr(agent, "instruction", "")
    told = instruction if isinstance(instruction, str) else source_fingerprint(instruction)
    own = "" if type(agent).__module__.startswith("google.adk.") else source_fingerprint(agent)
    return fingerprint(type(agent).__name__, agent.name, str(getattr(model, "model", model)), told, tools, below, own)


def _tool(tool: Any) -> Json:
    inner = getattr(tool, "agent", None)
    return described_tool(tool) if inner is None else [tool.name, _fingerprint(inner)]
