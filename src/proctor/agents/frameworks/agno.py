"""Agno. An agent or a team, copied for each trial, with a hook around every tool.

Agno keeps history and state on the agent, so trials cannot share one: each trial has a copy, made by Agno's own
`deep_copy`, with a database in memory. The copy's outermost tool hook is ours. A tool may run another agent, which is
not a copy, so `run` and `arun` are patched to copy that one too during a turn.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from proctor.agents.frameworks import Adapter, current_turn_of
from proctor.agents.frameworks.adapter_helpers import describe_tool
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.agents.reply_reader import as_text
from proctor.agents.tool_mocks import is_mocked
from proctor.agents.turn_recorder import TurnRecorder, patch_once
from proctor.base.errors import AgentFailed
from proctor.base.fingerprints import source_fingerprint
from proctor.base.infrastructure import diagnose_output
from proctor.base.json_data import Json, to_json, to_text
from proctor.cases.suite import Case, Turn

Hook = Callable[..., Any]

_AGNO_ID_KEYS = ("current_session_id", "current_run_id", "current_user_id")
"""Keys that Agno writes into the state, with different values in each run."""


class TrialAgents:
    """The copies of agents that one trial uses."""

    def __init__(self) -> None:
        self.model_failure: Exception | None = None
        self._copies: dict[int, tuple[Any, Any]] = {}
        """By `id` of the original: the original, which must stay alive for its id to stay unique, and its copy."""

    def copy_of(self, agent: Any) -> Any:
        """The copy of an agent that a tool runs; the same in all turns, so that it remembers earlier ones."""
        if record_tool in (agent.tool_hooks or ()):
            return agent
        if id(agent) not in self._copies:
            self._copies[id(agent)] = agent, self.copy(agent)
        return self._copies[id(agent)][1]

    def copy(self, target: Any) -> Any:
        """A copy by Agno's `deep_copy`, which shares nothing that a run changes."""
        from agno.db.in_memory import InMemoryDb

        hooks = _hooks_of_tools(target.tools) if target.tool_hooks is None else target.tool_hooks
        changes: dict[str, Any] = {"telemetry": False, "tool_hooks": [record_tool, *hooks]}
        if target.db is not None:
            changes["db"] = InMemoryDb()
        if target.model is not None:
            changes["model"] = self._model(target.model)
        members = getattr(target, "members", None)
        if isinstance(members, list):
            changes["members"] = [self.copy(member) if hasattr(member, "tool_hooks") else member for member in members]
        return _copy_with(target, changes)

    def _model(self, model: Any) -> Any:
        """A copy of the model that remembers its exceptions, because Agno reports only their text."""
        observed = copy.copy(model)

        async def ainvoke(*args: Any, **kwargs: Any) -> Any:
            try:
                return await model.ainvoke(*args, **kwargs)
            except Exception as error:
                self.model_failure = error
                raise

        observed.ainvoke = ainvoke
        return observed


_TRIAL_AGENTS: ContextVar[TrialAgents | None] = ContextVar("proctor_agno_agents", default=None)


@dataclass(slots=True)
class AgnoSession:
    """One conversation: a copy of the agent, a session id and a state."""

    agents: TrialAgents
    agent: Any
    state: dict[str, Any]
    id: str = field(default_factory=lambda: uuid4().hex)
    initial_keys: frozenset[str] = frozenset()
    """The keys of the state at the beginning."""

    def public_state(self) -> dict[str, Json]:
        """The state without the ids that Agno writes into it."""
        items = to_json(self.state).items()
        return {key: value for key, value in items if key in self.initial_keys or key not in _AGNO_ID_KEYS}


class Agno(Adapter):
    """Runs a copy of the agent in each trial; the original and its database are not changed."""

    name, title, packages, modules = "agno", "Agno", ("agno",), ("agno",)
    takes = "an Agent or a Team"

    @classmethod
    def accepts(cls, target: Any) -> bool:
        from agno.agent import Agent as AgnoAgent
        from agno.team import Team

        return isinstance(target, (AgnoAgent, Team))

    @property
    def agent_name(self) -> str:
        return str(self.target.name or self.target.id or type(self.target).__name__)

    def describe(self) -> Json:
        return _describe(self.target)

    async def open(self, case: Case) -> AgnoSession:
        from agno.agent import Agent as AgnoAgent
        from agno.team import Team

        for kind in (AgnoAgent, Team):
            for method in ("run", "arun"):
                patch_once(kind, method, _run_copy)
        agents = TrialAgents()
        state = {**copy.deepcopy(self.target.session_state or {}), **to_json(case.state)}
        return AgnoSession(agents, agents.copy(self.target), state, initial_keys=frozenset(state))

    async def send(self, session: AgnoSession, turn: Turn, recorder: TurnRecorder) -> Reply:
        token = _TRIAL_AGENTS.set(session.agents)
        try:
            run = await session.agent.arun(
                as_text(turn), session_id=session.id, session_state=session.state, stream=False
            )
        finally:
            _TRIAL_AGENTS.reset(token)
        _check_status(run, session.agents.model_failure)
        session.state = run.session_state if isinstance(run.session_state, dict) else session.state
        for tool in run.tools or []:
            if tool.is_paused and tool.result is None:
                reason = "not called: it needs approval"
                recorder.record_unexecuted_call(tool.tool_name or "", tool.tool_args, reason, id=tool.tool_call_id)
        _record_refused_calls(run, recorder)
        recorder.add_usage(_usage(run))
        content = run.content
        structured = None if content is None or isinstance(content, str) else to_json(content)
        text = content or "" if structured is None else to_text(structured)
        return Reply(text, structured=structured, state=session.public_state())


def _check_status(run: Any, model_failure: Exception | None) -> None:
    """Raise the error of a failed run: the model's exception, which shows if a service is busy, or Agno's text."""
    status = str(getattr(run.status, "value", run.status)).lower()
    if status not in ("error", "cancelled"):
        return
    if model_failure is not None and str(model_failure) == run.content:
        raise model_failure
    reason = str(run.content or "no reason was given")
    raise AgentFailed(f"the run ended with {status}: {reason}", diagnosis=diagnose_output(reason))


def record_tool(function_name: str, function_call: Hook, arguments: dict[str, Any]) -> Any:
    """Record a tool call: the outermost hook around every tool.

    It is a plain function for sync and async tools alike: Agno runs tools without an async hook in threads, and must
    continue to do so. An awaitable or a stream that a tool returns is recorded when it is done.
    """
    recorder = current_turn_of(Agno.name)
    if recorder is None:
        return function_call(**arguments)

    def run() -> Any:
        return function_call(**arguments)

    if is_mocked(function_name) and _is_in_loop():
        return recorder.call_tool(function_name, arguments, run)
    return recorder.call_tool_sync(function_name, arguments, run, read=_tool_text)


def _tool_text(result: Any) -> Any:
    """The content of a tool's result, which may be wrapped in a ToolResult or an event."""
    return result if isinstance(result, (str, dict, list)) else getattr(result, "content", result)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_copy(original: Any, agent: Any, *args: Any, **kwargs: Any) -> Any:
    """Run the copy of an agent. A run that a tool starts adds its tokens to the turn, unless it streams events."""
    agents, recorder = _TRIAL_AGENTS.get(), current_turn_of(Agno.name)
    if agents is None or recorder is None:
        return original(agent, *args, **kwargs)
    trial_agent = agents.copy_of(agent)
    result = original(trial_agent, *args, **kwargs)
    return result if trial_agent is agent else _count_tokens(result, recorder)


def _count_tokens(run: Any, recorder: TurnRecorder) -> Any:
    if inspect.iscoroutine(run):
        return _count_tokens_later(run, recorder)
    recorder.add_usage(_usage(run) if hasattr(run, "metrics") else None)
    return run


async def _count_tokens_later(run: Any, recorder: TurnRecorder) -> Any:
    return _count_tokens(await run, recorder)


def _copy_with(target: Any, changes: dict[str, Any]) -> Any:
    """A deep copy with changes. A user's subclass with its own `__init__` is copied as its base class."""
    from agno.agent import Agent as AgnoAgent
    from agno.team import Team

    base = AgnoAgent if isinstance(target, AgnoAgent) else Team
    if type(target).__init__ is base.__init__:
        return target.deep_copy(update=changes)
    shallow = copy.copy(target)
    shallow.__class__ = base
    result = base.deep_copy(shallow, update=changes)
    for name, value in vars(target).items():
        vars(result).setdefault(name, value)
    result.__class__ = type(target)
    return result


def _hooks_of_tools(tools: Any) -> list[Hook]:
    """The hooks of tools as hooks of the agent: Agno ignores those of tools if the agent has any, such as ours."""
    hooks = []
    for tool in tools if isinstance(tools, list) else []:
        functions = getattr(tool, "functions", None)
        for function in functions.values() if isinstance(functions, dict) else [tool]:
            hooks += [_hook_for_tool(function.name, hook) for hook in getattr(function, "tool_hooks", None) or ()]
    return hooks


def _hook_for_tool(name: str, hook: Hook) -> Hook:
    """The hook of one tool as a hook of the agent. Its signature matters: Agno passes the arguments named there."""
    parameters = inspect.signature(hook).parameters

    def narrow(**values: Any) -> Any:
        if values["function_name"] != name:
            return values["function_call"](**values["arguments"])
        return hook(**{key: value for key, value in values.items() if key in parameters})

    async def narrow_async(**values: Any) -> Any:
        result = narrow(**values)
        return await result if inspect.isawaitable(result) else result

    chosen: Any = narrow_async if inspect.iscoroutinefunction(hook) else narrow
    names = dict.fromkeys([*parameters, "function_name", "function_call", "arguments"])
    chosen.__signature__ = inspect.Signature([inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY) for key in names])
    return chosen  # type: ignore[no-any-return]


def _usage(run: Any) -> Usage | None:
    """The tokens of a run and of the runs of members. Zero input and output tokens mean unknown in Agno."""
    total: Usage | None = None
    for inner in getattr(run, "member_responses", None) or ():
        usage = _usage(inner)
        total = total if usage is None else usage if total is None else total + usage
    if run.metrics is None:
        return total
    answers = [m for m in run.messages or () if m.role == "assistant" and not m.from_history]
    input_tokens, output_tokens = run.metrics.input_tokens, run.metrics.output_tokens
    if not input_tokens and not output_tokens:
        input_tokens, output_tokens = None, None
    own = Usage(input_tokens, output_tokens, run.metrics.cost, len(answers))
    return own if total is None else own + total


def _record_refused_calls(run: Any, recorder: TurnRecorder) -> None:
    """Record calls of unknown tools or with arguments that are not JSON, which only the messages show."""
    messages = [message for message in run.messages or () if not message.from_history]
    answers = {message.tool_call_id: message for message in messages if message.role == "tool"}
    recorded = {call.name for call in recorder.tool_calls}
    for request in (call for message in messages if message.role == "assistant" for call in message.tool_calls or ()):
        function, answer = request.get("function") or {}, answers.get(request.get("id"))
        name, arguments = str(function.get("name")), function.get("arguments")
        is_unreadable = ToolCall.parse(name, arguments).raw_arguments is not None
        if answer is not None and (is_unreadable or name not in recorded):
            recorder.record_unexecuted_call(name, arguments, str(answer.content), id=request.get("id"))


def _describe(target: Any) -> Json:
    """Instructions, model, tools and members, for the fingerprint."""
    tools = target.tools if isinstance(target.tools, list) else [target.tools]
    members = getattr(target, "members", None)
    members = members if isinstance(members, list) else []
    return [
        type(target).__name__,
        target.name,
        _text_or_code(getattr(target.model, "id", None)),
        [
            _text_or_code(getattr(target, key, None))
            for key in ("instructions", "description", "system_message", "role")
        ],
        [describe_tool(tool) for tool in tools if tool is not None],
        [_describe(member) for member in members if hasattr(member, "tool_hooks")],
    ]


def _text_or_code(value: Any) -> Any:
    return source_fingerprint(value) if callable(value) else to_json(value)
