"""Agno: an agent or a team, copied for each trial and watched by a hook around every tool."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

from proctor.agents.agent import BaseSession, Reply, ToolCall, Usage
from proctor.agents.sessions import CallLog, FrameworkAgent, described_tool, text_of
from proctor.agents.toolbox import answer, answer_async, is_doubled
from proctor.base.errors import AgentFailed
from proctor.base.json_data import fingerprint, plain, show
from proctor.base.references import source_fingerprint
from proctor.cases.suite import Case, Turn

Hook = Callable[..., Any]


class Watch:
    """The outermost hook around every tool: it notes the call, and answers in place of tools that are doubled.

    It is a plain function for both kinds of tools: Agno runs tools without an async hook in threads, and must go on
    doing so.
    """

    def __init__(self) -> None:
        self.log = CallLog()
        self.failure: Exception | None = None
        self._numbers = itertools.count(1)
        self._copies: dict[int, tuple[Any, Any]] = {}

    def copy_of(self, agent: Any) -> Any:
        """The copy of an agent that a tool asks: one for the whole trial, so that it remembers what it is meant to."""
        if self.around in (agent.tool_hooks or ()):
            return agent
        if id(agent) not in self._copies:
            self._copies[id(agent)] = agent, copied(agent, self)
        return self._copies[id(agent)][1]

    def counted(self, run: Any) -> Any:
        """A run that a tool started: its tokens are the trial's too, where it is not a stream of events."""
        if inspect.iscoroutine(run):
            return self._counted_later(run)
        self.log.add_usage(usage_of(run) if hasattr(run, "metrics") else None)
        return run

    async def _counted_later(self, run: Any) -> Any:
        return self.counted(await run)

    def model(self, model: Any) -> Any:
        """The model, seen to fail."""
        own = copy.copy(model)

        async def ainvoke(*args: Any, **kwargs: Any) -> Any:
            try:
                return await model.ainvoke(*args, **kwargs)
            except Exception as error:
                self.failure = error
                raise

        own.ainvoke = ainvoke
        return own

    def around(self, function_name: str, function_call: Hook, arguments: dict[str, Any]) -> Any:
        call = (f"{function_name}-{next(self._numbers)}", function_name, arguments)
        key = self.log.begin(*call)
        try:
            if is_doubled(function_name):
                result = answer_async(function_name, arguments) if _in_loop() else answer(function_name, arguments)
            else:
                result = function_call(**arguments)
        except Exception as error:
            self.log.end(key, error=error)
            raise
        return self._awaited(call, result) if inspect.isawaitable(result) else self._finished(call, result)

    async def _awaited(self, call: tuple[str, str, Any], pending: Any) -> Any:
        try:
            result = await pending
        except Exception as error:
            self.log.end(call[0], error=error)
            raise
        return self._finished(call, result)

    def _finished(self, call: tuple[str, str, Any], result: Any) -> Any:
        """A tool that yields, such as a team's delegation to a member, does its work while it is asked for more."""
        if inspect.isasyncgen(result):
            return self._streamed(call, result)
        if inspect.isgenerator(result):
            return self._yielded(call, result)
        self.log.end(call[0], _told(result))
        return result

    async def _streamed(self, call: tuple[str, str, Any], items: AsyncIterator[Any]) -> AsyncIterator[Any]:
        self.log.begin(*call)  # again, in the task that asks: what begins there is inside this call
        told = []
        try:
            async for item in items:
                told.append(_told(item))
                yield item
        except Exception as error:
            self.log.end(call[0], error=error)
            raise
        self.log.end(call[0], "".join(text for text in told if isinstance(text, str)))

    def _yielded(self, call: tuple[str, str, Any], items: Iterator[Any]) -> Iterator[Any]:
        self.log.begin(*call)
        told = []
        try:
            for item in items:
                told.append(_told(item))
                yield item
        except Exception as error:
            self.log.end(call[0], error=error)
            raise
        self.log.end(call[0], "".join(text for text in told if isinstance(text, str)))


def _told(result: Any) -> Any:
    """What a tool says: some wrap it in a ToolResult or in an event."""
    return result if isinstance(result, (str, dict, list)) else getattr(result, "content", result)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def copied(target: Any, watch: Watch) -> Any:
    """A copy as Agno makes it, which shares models and nothing that a run changes."""
    from agno.db.in_memory import InMemoryDb

    hooks = _hooks_of_tools(target.tools) if target.tool_hooks is None else target.tool_hooks
    changed: dict[str, Any] = {"telemetry": False, "tool_hooks": [watch.around, *hooks]}
    if target.db is not None:
        changed["db"] = InMemoryDb()
    if target.model is not None:
        changed["model"] = watch.model(target.model)
    members = getattr(target, "members", None)
    if isinstance(members, list):
        changed["members"] = [copied(one, watch) if hasattr(one, "tool_hooks") else one for one in members]
    return _copied_with(target, changed)


def _copied_with(target: Any, changed: dict[str, Any]) -> Any:
    """A class of one's own may be made with other arguments: then it is copied as the class it extends."""
    from agno.agent import Agent as AgnoAgent
    from agno.team import Team

    base = AgnoAgent if isinstance(target, AgnoAgent) else Team
    if type(target).__init__ is base.__init__:
        return target.deep_copy(update=changed)
    plainly = copy.copy(target)
    plainly.__class__ = base
    own = base.deep_copy(plainly, update=changed)
    for name, value in vars(target).items():
        vars(own).setdefault(name, value)
    own.__class__ = type(target)
    return own


def _hooks_of_tools(tools: Any) -> list[Hook]:
    """An agent with hooks overrules those of its tools, and ours is one: so theirs become hooks of the agent."""
    found = []
    for tool in tools if isinstance(tools, list) else []:
        functions = getattr(tool, "functions", None)
        for function in functions.values() if isinstance(functions, dict) else [tool]:
            found += [_only_for(function.name, hook) for hook in getattr(function, "tool_hooks", None) or ()]
    return found


def _only_for(name: str, hook: Hook) -> Hook:
    """The hook of one tool as a hook that lets all other tools pass; Agno asks signatures for what to give."""
    wanted = inspect.signature(hook).parameters

    def narrowed(**given: Any) -> Any:
        if given["function_name"] != name:
            return given["function_call"](**given["arguments"])
        return hook(**{key: value for key, value in given.items() if key in wanted})

    async def narrowed_async(**given: Any) -> Any:
        result = narrowed(**given)
        return await result if inspect.isawaitable(result) else result

    chosen: Any = narrowed_async if inspect.iscoroutinefunction(hook) else narrowed
    names = dict.fromkeys([*wanted, "function_name", "function_call", "arguments"])
    parameters = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY) for key in names]
    chosen.__signature__ = inspect.Signature(parameters)
    return chosen  # type: ignore[no-any-return]


def usage_of(run: Any) -> Usage | None:
    """The tokens of a run and of the runs of members; Agno counts unknown ones as zero."""
    total: Usage | None = None
    for inner in getattr(run, "member_responses", None) or ():
        spent = usage_of(inner)
        total = total if spent is None else spent if total is None else total + spent
    if run.metrics is None:
        return total
    answers = [m for m in run.messages or () if m.role == "assistant" and not m.from_history]
    given, got = run.metrics.input_tokens, run.metrics.output_tokens
    known = bool(given or got)
    own = Usage(given if known else None, got if known else None, run.metrics.cost, len(answers))
    return own if total is None else own + total


WATCH: ContextVar[Watch | None] = ContextVar("proctor_agno_watch", default=None)


@functools.cache
def watch_all_runs() -> None:
    """Every run passes here, also one that a tool starts; where no trial is under way, runs are as they were."""
    from agno.agent import Agent as AgnoAgent
    from agno.team import Team

    for kind in (AgnoAgent, Team):
        for name in ("run", "arun"):
            setattr(kind, name, _watched(getattr(kind, name)))


def _watched(original: Any) -> Any:
    @functools.wraps(original)
    def run(self: Any, *given: Any, **named: Any) -> Any:
        watch = WATCH.get()
        own = self if watch is None else watch.copy_of(self)
        result = original(own, *given, **named)
        return result if watch is None or own is self else watch.counted(result)

    return run


def adapt(target: Any, name: str) -> FrameworkAgent | None:
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


class AgnoSession(BaseSession):
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
        log.add_usage(usage_of(run))
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
