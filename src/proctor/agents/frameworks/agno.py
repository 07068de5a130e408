"""Agno: an agent or a team, copied for each trial so that hooks, sessions and state of one never reach another."""

from __future__ import annotations

import copy
from typing import Any
from uuid import uuid4

from proctor.agents.frameworks.agno_watching import WATCH, Watch, copied, usage_of, watch_all_runs
from proctor.agents.frameworks.sessions import CallLog, FrameworkAgent, FrameworkSession, described_tool, text_of
from proctor.agents.model import Agent, Reply, ToolCall
from proctor.cases.model import Case, Turn
from proctor.errors import AgentFailed
from proctor.plain import fingerprint, plain, show
from proctor.references import source_fingerprint


def adapt(target: Any, name: str) -> Agent | None:
    """An agent that runs Agents and Teams."""
    from agno.agent import Agent as AgnoAgent
    from agno.team import Team

    if not isinstance(target, (AgnoAgent, Team)):
        return None
    return AgnoAdapter(target, name or str(target.name or target.id or type(target).__name__), _fingerprint(target))


class AgnoAdapter(FrameworkAgent):
    """Runs a copy of the agent in each trial."""

    def session(self, case: Case) -> AgnoSession:
        return AgnoSession(self.target, case)


class AgnoSession(FrameworkSession):
    """One session id and one copy; a database is replaced by an empty one in memory, so nothing is left behind."""

    def __init__(self, target: Any, case: Case) -> None:
        super().__init__(case)
        self._watch = Watch()
        self._agent = copied(target, self._watch)
        self._id = uuid4().hex
        self._state: dict[str, Any] = {**copy.deepcopy(target.session_state or {}), **plain(case.state)}
        self._given = frozenset(self._state)

    async def open(self) -> None:
        watch_all_runs()

    async def send(self, turn: Turn) -> Reply:
        self._watch.log = log = CallLog()
        token = WATCH.set(self._watch)
        try:
            run = await self._agent.arun(text_of(turn), session_id=self._id, session_state=self._state, stream=False)
        finally:
            WATCH.reset(token)
        status = str(getattr(run.status, "value", run.status)).lower()
        if status in ("error", "cancelled"):
            if self._watch.failure is not None and str(self._watch.failure) == run.content:
                raise self._watch.failure  # Agno keeps the text alone; that a service is busy shows in the rest
            raise AgentFailed(f"the run ended with {status}: {run.content or 'no reason was given'}")
        self._state = run.session_state if isinstance(run.session_state, dict) else self._state
        for waiting in (tool for tool in run.tools or [] if tool.is_paused and tool.result is None):
            key = log.begin(waiting.tool_call_id, waiting.tool_name or "", waiting.tool_args)
            log.end(key, error="not called: it waits for a person")
        _note_refusals(run, log)
        log.spend(usage_of(run))
        answered = run.content
        structured = None if answered is None or isinstance(answered, str) else plain(answered)
        text = answered or "" if structured is None else show(structured)
        return Reply(text, log.calls, log.usage, structured=structured, state=self._told())

    def _told(self) -> Any:
        """The state, without the ids that Agno writes into it, other ones in each run."""
        return {key: value for key, value in plain(self._state).items() if key in self._given or key not in _IDS}


_IDS = ("current_session_id", "current_run_id", "current_user_id")


def _note_refusals(run: Any, log: CallLog) -> None:
    """Calls of tools that do not exist, or with arguments that are no JSON, reach no hook: messages tell of them."""
    messages = [message for message in run.messages or () if not message.from_history]
    answers = {message.tool_call_id: message for message in messages if message.role == "tool"}
    made = {call.name for call in log.calls}
    for asked in (call for message in messages if message.role == "assistant" for call in message.tool_calls or ()):
        function, answer = asked.get("function") or {}, answers.get(asked.get("id"))
        name, arguments = str(function.get("name")), function.get("arguments")
        is_unreadable = ToolCall.parse(name, arguments).raw_arguments is not None
        if answer is not None and (is_unreadable or name not in made):
            log.end(log.begin(asked.get("id"), name, arguments), error=str(answer.content))


def _fingerprint(target: Any) -> str:
    """What makes two agents behave alike: instructions, models, tools, and the members below."""
    tools = target.tools if isinstance(target.tools, list) else [target.tools]
    named = [described_tool(tool) for tool in tools if tool is not None]
    members = getattr(target, "members", None)
    below = (
        [_fingerprint(member) for member in members if hasattr(member, "tool_hooks")]
        if isinstance(members, list)
        else []
    )
    told = [_words(getattr(target, key, None)) for key in ("instructions", "description", "system_message", "role")]
    return fingerprint(
        type(target).__name__, target.name, _words(getattr(target.model, "id", None)), told, named, below
    )


def _words(value: Any) -> Any:
    return source_fingerprint(value) if callable(value) else plain(value)
