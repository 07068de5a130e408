"""LangChain and LangGraph: agents, graphs, chains and chat models, whose tools and model calls are watched."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from proctor.agents.agent import BaseSession, Reply, ToolCall, Usage
from proctor.agents.frameworks.langchain_inputs import Shape, described, message_text, messages_of, read_shape
from proctor.agents.sessions import CallLog, FrameworkAgent, context_from, state_of, to_reply
from proctor.agents.toolbox import answer, answer_async, is_doubled
from proctor.base.errors import AgentFailed
from proctor.base.json_data import Json, fingerprint, parsed, plain, show
from proctor.cases.suite import NOTHING, Case, Turn


class Noted:
    """A tool call while it lasts."""

    def __init__(self, arguments: Any) -> None:
        self.arguments = arguments if isinstance(arguments, dict) else {}
        self.result: Any = None


@functools.cache
def watcher_class() -> type[Any]:
    """Made when LangChain is there. It is told of model calls by the framework, and of tools by those who run them."""
    from langchain_core.callbacks import BaseCallbackHandler

    class Watcher(BaseCallbackHandler):  # type: ignore[misc]
        run_inline = True

        def __init__(self) -> None:
            self.log = CallLog()
            self.asked: dict[str, Any] = {}
            """By id: what the model wrote, which a graph may have filled up with things of its own before it is run."""

        def on_llm_end(self, response: Any, **_: Any) -> None:
            message = getattr(response.generations[0][0], "message", None)
            spent = getattr(message, "usage_metadata", None)
            if spent:
                told = getattr(message, "response_metadata", None) or {}
                model = told.get("model_name") or told.get("model")
                self.log.add_usage(Usage(spent["input_tokens"], spent["output_tokens"], model_calls=1, model=model))
            else:
                self.log.add_usage(Usage(model_calls=1))
            self.log.said = "" if message is None else message_text(message)
            for call in _requests(message):
                self.asked.setdefault(str(call["id"]), call)

        @contextmanager
        def noting(self, name: str, given: Any, call_id: str | None) -> Iterator[Noted]:
            asked = self.asked.get(str(call_id))
            call = Noted(given if asked is None else asked["args"])
            key = self.log.begin(call_id, name, given if asked is None else asked["args"])
            try:
                yield call
            except BaseException as error:
                self.log.end(key, error=error)
                raise
            failed = getattr(call.result, "status", None) == "error"
            told = tool_result(call.result)
            self.log.end(key, None if failed else told, str(told) if failed else None)

        def all_calls(self, messages: list[Any], structured: Json = None) -> tuple[ToolCall, ...]:
            """The calls that tools were run for, then those that only the model and the messages know of."""
            seen = {call.id for call in self.log.calls}
            answers = {m.tool_call_id: m for m in messages if getattr(m, "type", "") == "tool"}
            unseen = [call for key, call in self.asked.items() if key not in seen]
            # An answer with a schema comes as a call of the schema; it is the answer and no use of a tool.
            unseen = [call for call in unseen if structured is None or call["args"] != structured]
            return (*self.log.calls, *(_unrun(call, answers.get(call["id"])) for call in unseen))

    return Watcher


def _requests(message: Any) -> list[Any]:
    """Calls in good order, and calls whose arguments are no JSON."""
    return [*(getattr(message, "tool_calls", None) or ()), *(getattr(message, "invalid_tool_calls", None) or ())]


def _unrun(call: Any, answer: Any) -> ToolCall:
    told = None if answer is None else tool_result(answer)
    failed = call.get("error") or (str(told) if getattr(answer, "status", None) == "error" else None)
    arguments = plain(call["args"]) or NOTHING
    return ToolCall.parse(call["name"], arguments, result=None if failed else told, error=failed, id=call["id"])


def tool_result(value: Any) -> Json:
    """What a tool gave. The framework makes text of data for the model; where that text is JSON, it is read again."""
    content = getattr(value, "content", value)
    if isinstance(content, str) and content[:1] in ("{", "["):
        return plain(parsed(content))
    return plain(getattr(value, "update", content) if type(value).__name__ == "Command" else content)


WATCH: ContextVar[Any] = ContextVar("proctor_langchain_watch", default=None)


def adapt(target: Any, name: str) -> FrameworkAgent | None:
    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool

    if not isinstance(target, Runnable) and callable(getattr(target, "compile", None)):
        target = target.compile()
    if not isinstance(target, Runnable) or isinstance(target, BaseTool):
        return None
    return LangChainAgent(target, name or target.get_name(), fingerprint(described(target)))


class LangChainAgent(FrameworkAgent):
    """Each trial has a thread of its own where the graph keeps threads, else messages of its own."""

    def __init__(self, target: Any, name: str, fingerprint: str) -> None:
        super().__init__(target, name, fingerprint)
        self.shape = read_shape(target)

    @property
    def tools(self) -> dict[str, Any]:
        """The functions behind the tools that a graph's own nodes run, which evaluators may call again."""
        nodes = getattr(self.target, "nodes", None)
        bound = [getattr(node, "bound", node) for node in nodes.values()] if isinstance(nodes, dict) else []
        tools = [tool for node in bound for tool in getattr(node, "tools_by_name", {}).values()]
        code = {tool.name: getattr(tool, "func", None) or getattr(tool, "coroutine", None) for tool in tools}
        return {name: function for name, function in code.items() if callable(function)}

    def session(self, case: Case) -> LangChainSession:
        return LangChainSession(self.target, self.shape, case)

    def check(self, case: Case) -> str | None:
        try:
            _context(self.shape, case)
        except ValueError as error:
            return str(error)
        return next((reason for turn in case.turns if (reason := self.shape.misfit(turn.input, case.state))), None)


class LangChainSession(BaseSession):
    """One conversation."""

    def __init__(self, target: Any, shape: Shape, case: Case) -> None:
        super().__init__(case)
        self._target = target
        self._shape = shape
        self._kept: dict[str, Any] = plain(case.state)
        """What the next turn is given besides the question: the case's state, then what the graph knew."""
        self._messages: list[Any] = []
        self._interrupted = False

    async def open(self) -> None:
        import uuid

        _watch_all_tools()
        self._thread = f"proctor-{uuid.uuid4().hex}"
        try:
            self._context = _context(self._shape, self.case)
        except ValueError as error:
            raise AgentFailed(str(error)) from None

    async def close(self) -> None:
        """The thread is forgotten, where the graph's memory can forget."""
        memory = self._shape.memory
        for name, is_async in (("adelete_thread", True), ("delete_thread", False)):
            if memory is not None and hasattr(memory, name):
                try:
                    forgotten = getattr(memory, name)(self._thread)
                    if is_async:
                        await forgotten
                except NotImplementedError:
                    continue
                return

    async def send(self, turn: Turn) -> Reply:
        watcher = watcher_class()()
        token = WATCH.set(watcher)
        try:
            result = await self._ask(self._given(turn), watcher)
        finally:
            WATCH.reset(token)
        return self._read(result, watcher)

    def _given(self, turn: Turn) -> Any:
        if self._interrupted:
            from langgraph.types import Command

            return Command(resume=turn.input)
        self._asked = ("human", show(plain(turn.input)))
        return self._shape.filled(plain(turn.input), self._kept, self._messages)

    async def _ask(self, given: Any, watcher: Any) -> Any:
        places = dict.fromkeys(("thread_id", *self._shape.sessions), self._thread)
        config = {"callbacks": [watcher], "configurable": places}
        more = {} if self._context is None else {"context": self._context}
        try:
            return await self._target.ainvoke(given, config, **more)
        except NotImplementedError:
            if watcher.log.usage is not None or watcher.log.calls:
                raise
            from proctor.base.threads import call_in_thread  # its memory, or a step of it, is synchronous only

            return await call_in_thread(self._target.invoke, given, config, **more)

    def _read(self, result: Any, watcher: Any) -> Reply:
        from langchain_core.messages import BaseMessage

        if isinstance(result, BaseMessage):
            self._messages = [*self._messages, self._asked, result]
            return Reply(message_text(result), watcher.all_calls([result]), watcher.log.usage, raw=result)
        if not isinstance(result, dict):
            reply = to_reply(result)
            self._messages = [*self._messages, self._asked, ("ai", reply.text)]
            return Reply(reply.text, watcher.all_calls([]), watcher.log.usage, structured=reply.structured, raw=result)
        return self._read_state(dict(result), watcher)

    def _read_state(self, state: dict[str, Any], watcher: Any) -> Reply:
        """What a graph knows in the end; without a memory of its own, it is told so again in the next turn."""
        waits = state.pop("__interrupt__", None)
        self._interrupted = bool(waits)
        messages = messages_of(state)
        if self._shape.memory is None:
            self._kept = self._kept | state
            self._messages = messages
        else:
            self._kept = {}
        known = state_of({key: value for key, value in state.items() if key != "messages"})
        structured = plain(state.get("structured_response"))
        calls = watcher.all_calls(messages, structured)
        if waits:
            return Reply(show(plain(waits[0].value)), calls, watcher.log.usage, state=known, raw=state)
        if not messages:
            reply = to_reply(known)
            return Reply(reply.text, calls, watcher.log.usage, structured=reply.structured, state=known, raw=state)
        said = "" if messages[-1].type == "tool" and structured is not None else message_text(messages[-1])
        text = said or ("" if structured is None else show(structured))
        return Reply(text, calls, watcher.log.usage, structured=structured, state=known, raw=state)


def _context(shape: Shape, case: Case) -> Any:
    return None if shape.context is None else context_from(shape.context, case.state)


@functools.cache
def _watch_all_tools() -> None:
    """Patches `run` and `arun`, through which every tool of every graph is run; a callback could not replace a result.

    Where no trial is under way, tools are as they were.
    """
    from langchain_core.tools import BaseTool

    run, arun = BaseTool.run, BaseTool.arun

    @functools.wraps(run)
    def watched_run(self: Any, tool_input: Any, *given: Any, **named: Any) -> Any:
        watcher = WATCH.get()
        if watcher is None:
            return run(self, tool_input, *given, **named)
        with watcher.noting(self.name, tool_input, named.get("tool_call_id")) as call:
            if not is_doubled(self.name):
                call.result = run(self, tool_input, *given, **named)
                return call.result
            try:
                result: Any = answer(self.name, call.arguments)
            except Exception as error:
                result = error
            call.result = _as_told(self.name, result, named.get("tool_call_id"))
            return call.result

    @functools.wraps(arun)
    async def watched_arun(self: Any, tool_input: Any, *given: Any, **named: Any) -> Any:
        watcher = WATCH.get()
        if watcher is None:
            return await arun(self, tool_input, *given, **named)
        with watcher.noting(self.name, tool_input, named.get("tool_call_id")) as call:
            if not is_doubled(self.name):
                call.result = await arun(self, tool_input, *given, **named)
                return call.result
            try:
                result: Any = await answer_async(self.name, call.arguments)
            except Exception as error:
                result = error
            call.result = _as_told(self.name, result, named.get("tool_call_id"))
            return call.result

    BaseTool.run, BaseTool.arun = watched_run, watched_arun


def _as_told(name: str, result: Any, call_id: str | None) -> Any:
    """What a double says, as the model is told it; a failure, too, where it was the model that called."""
    if call_id is None:
        if isinstance(result, Exception):
            raise result
        return result
    from langchain_core.messages import ToolMessage

    if isinstance(result, Exception):
        return ToolMessage(str(result), name=name, tool_call_id=call_id, status="error")
    return ToolMessage(show(result), name=name, tool_call_id=call_id)
