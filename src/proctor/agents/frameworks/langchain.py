"""LangChain and LangGraph. Agents, graphs, chains and chat models.

A callback records model calls. It cannot replace the result of a tool, so `BaseTool.run` and `arun`, through which
every tool of every graph runs, are patched. The arguments that the model wrote are recorded, because a graph may add
values before it runs the tool. Calls that were not executed, such as one of an unknown tool, are recorded from the
model's requests and the messages.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from proctor.agents.frameworks import Adapter
from proctor.agents.frameworks.adapter_helpers import closure_values, fill_context
from proctor.agents.messages import parts_text
from proctor.agents.reply import Reply, ToolCall
from proctor.agents.reply_reader import as_state, to_reply
from proctor.agents.tool_mocks import is_mocked
from proctor.agents.turn_recorder import TurnRecorder, patch_once
from proctor.base.errors import AgentFailed
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import Json, parse_json_or_keep, to_json, to_text
from proctor.base.threads import run_in_thread
from proctor.cases.suite import Case, Turn


@dataclass(slots=True)
class LangChainSession:
    """One conversation: its own thread if the graph has a memory, else messages and a state."""

    context: Any
    state: dict[str, Any]
    """The values for the next turn besides its input: the case's state, then the state of the graph."""
    thread: str = field(default_factory=lambda: f"proctor-{uuid.uuid4().hex}")
    messages: list[Any] = field(default_factory=list)
    question: tuple[str, str] = ("human", "")
    is_interrupted: bool = False
    """Whether the graph is interrupted and waits for the user."""


class LangChain(Adapter):
    """Runs runnables and compiled graphs; a graph that is not compiled yet is compiled."""

    name, title, packages = "langchain", "LangChain and LangGraph", ("langchain", "langgraph")
    modules = ("langgraph", "langchain", "langchain_core")
    takes = "an agent, a graph, a chain or a chat model"

    @classmethod
    def accepts(cls, target: Any) -> bool:
        from langchain_core.runnables import Runnable
        from langchain_core.tools import BaseTool

        is_runnable = isinstance(target, Runnable) or callable(getattr(target, "compile", None))
        return is_runnable and not isinstance(target, BaseTool)

    def __init__(self, target: Any) -> None:
        from langchain_core.runnables import Runnable

        super().__init__(target if isinstance(target, Runnable) else target.compile())
        self._schema = _input_schema(self.target)

    @property
    def agent_name(self) -> str:
        return str(self.target.get_name())

    @property
    def tools(self) -> Mapping[str, Callable[..., Any]]:
        """The functions of the tools that the nodes of a graph run."""
        nodes = getattr(self.target, "nodes", None)
        steps = [getattr(node, "bound", node) for node in nodes.values()] if isinstance(nodes, dict) else []
        tools = [tool for step in steps for tool in getattr(step, "tools_by_name", {}).values()]
        functions = {tool.name: getattr(tool, "func", None) or getattr(tool, "coroutine", None) for tool in tools}
        return {name: function for name, function in functions.items() if callable(function)}

    def describe(self) -> Json:
        return _describe(self.target)

    def check(self, case: Case) -> str | None:
        try:
            self._context(case)
        except ValueError as error:
            return str(error)
        reasons = (self._schema.unsupported_reason(turn.input, case.state) for turn in case.turns)
        return next((reason for reason in reasons if reason), None)

    def _context(self, case: Case) -> Any:
        return None if self._schema.context is None else fill_context(self._schema.context, case.state)

    async def open(self, case: Case) -> LangChainSession:
        from langchain_core.tools import BaseTool

        patch_once(BaseTool, "run", _run_tool)
        patch_once(BaseTool, "arun", _run_tool_async)
        try:
            return LangChainSession(self._context(case), to_json(case.state))
        except ValueError as error:
            raise AgentFailed(str(error)) from None

    async def close(self, session: LangChainSession) -> None:
        """Delete the thread, if the graph's memory supports that."""
        memory = self._schema.memory
        for method, is_async in (("adelete_thread", True), ("delete_thread", False)):
            if memory is not None and hasattr(memory, method):
                try:
                    result = getattr(memory, method)(session.thread)
                    if is_async:
                        await result
                except NotImplementedError:
                    continue
                return

    async def send(self, session: LangChainSession, turn: Turn, recorder: TurnRecorder) -> Reply:
        requests = Requests(recorder)
        token = _REQUESTS.set(requests)
        try:
            result = await self._invoke(session, self._input(session, turn), requests)
        finally:
            _REQUESTS.reset(token)
        return self._read(session, result, requests)

    def _input(self, session: LangChainSession, turn: Turn) -> Any:
        if session.is_interrupted:
            from langgraph.types import Command

            return Command(resume=turn.input)
        session.question = ("human", to_text(to_json(turn.input)))
        return self._schema.build_input(to_json(turn.input), session.state, session.messages)

    async def _invoke(self, session: LangChainSession, value: Any, requests: Requests) -> Any:
        configurable = dict.fromkeys(("thread_id", *self._schema.sessions), session.thread)
        config = {"callbacks": [_callback_class()(requests)], "configurable": configurable}
        context = {} if session.context is None else {"context": session.context}
        try:
            return await self.target.ainvoke(value, config, **context)
        except NotImplementedError:
            if requests.recorder.usage is not None or requests.recorder.tool_calls:
                raise
            return await run_in_thread(self.target.invoke, value, config, **context)

    def _read(self, session: LangChainSession, result: Any, requests: Requests) -> Reply:
        from langchain_core.messages import BaseMessage

        if isinstance(result, BaseMessage):
            session.messages = [*session.messages, session.question, result]
            requests.record_unrun([result])
            return Reply(_message_text(result), raw=result)
        if not isinstance(result, dict):
            reply = to_reply(result)
            session.messages = [*session.messages, session.question, ("ai", reply.text)]
            requests.record_unrun([])
            return Reply(reply.text, structured=reply.structured, raw=result)
        return self._read_state(session, dict(result), requests)

    def _read_state(self, session: LangChainSession, state: dict[str, Any], requests: Requests) -> Reply:
        """The reply of a graph. A graph without a memory gets its state and messages again in the next turn."""
        interrupts = state.pop("__interrupt__", None)
        session.is_interrupted = bool(interrupts)
        messages = _read_messages(state)
        if self._schema.memory is None:
            session.state = session.state | state
            session.messages = messages
        else:
            session.state = {}
        public = as_state({key: value for key, value in state.items() if key != "messages"})
        structured = to_json(state.get("structured_response"))
        requests.record_unrun(messages, structured)
        if interrupts:
            return Reply(to_text(to_json(interrupts[0].value)), state=public, raw=state)
        if not messages:
            reply = to_reply(public)
            return Reply(reply.text, structured=reply.structured, state=public, raw=state)
        is_tool_result = messages[-1].type == "tool" and structured is not None
        text = "" if is_tool_result else _message_text(messages[-1])
        text = text or ("" if structured is None else to_text(structured))
        return Reply(text, structured=structured, state=public, raw=state)


class Requests:
    """The tool calls that the model requested in one turn and that have not been executed."""

    def __init__(self, recorder: TurnRecorder) -> None:
        self.recorder = recorder
        self._waiting: list[Any] = []

    def add(self, message: Any) -> None:
        """Add the calls in a message of the model, also those whose arguments are not JSON."""
        self._waiting += getattr(message, "tool_calls", None) or ()
        self._waiting += getattr(message, "invalid_tool_calls", None) or ()

    def take_arguments(self, tool: str, call_id: str | None, arguments: Any) -> Any:
        """Remove a request that runs now and return the arguments that the model wrote.

        Returns `arguments` if the model did not request the call. Some services use an id again in the next response,
        so the first request with this id and tool is taken.
        """
        for request in self._waiting:
            if call_id is not None and (str(request["id"]), request["name"]) == (str(call_id), tool):
                self._waiting.remove(request)
                return request["args"]
        return arguments

    def record_unrun(self, messages: list[Any], structured: Json = None) -> None:
        """Record the calls that were requested and not executed.

        A structured answer comes as a call of its schema; that is the answer and not a tool call.
        """
        answers = {message.tool_call_id: message for message in messages if getattr(message, "type", "") == "tool"}
        for request in self._waiting:
            if structured is None or request["args"] != structured:
                self.recorder.add_call(_unrun_call(request, answers.get(request["id"])))


def _unrun_call(request: Any, answer: Any) -> ToolCall:
    result = None if answer is None else _tool_result(answer)
    error = request.get("error") or (str(result) if getattr(answer, "status", None) == "error" else None)
    arguments = to_json(request["args"]) or {}
    return ToolCall.parse(request["name"], arguments, result=None if error else result, error=error, id=request["id"])


_REQUESTS: ContextVar[Requests | None] = ContextVar("proctor_langchain_requests", default=None)


@functools.cache
def _callback_class() -> type[Any]:
    from langchain_core.callbacks import BaseCallbackHandler

    class ModelCalls(BaseCallbackHandler):  # type: ignore[misc]
        """Records the model calls of one turn."""

        run_inline = True

        def __init__(self, requests: Requests) -> None:
            self.requests = requests

        def on_llm_end(self, response: Any, **_: Any) -> None:
            message = getattr(response.generations[0][0], "message", None)
            usage = getattr(message, "usage_metadata", None) or {}
            metadata = getattr(message, "response_metadata", None) or {}
            model = metadata.get("model_name") or metadata.get("model")
            recorder = self.requests.recorder
            recorder.add_model_call(usage.get("input_tokens"), usage.get("output_tokens"), model)
            recorder.set_partial("" if message is None else _message_text(message))
            self.requests.add(message)

    return ModelCalls


def _run_tool(original: Any, tool: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
    requests = _REQUESTS.get()
    if requests is None:
        return original(tool, tool_input, *args, **kwargs)
    call_id = kwargs.get("tool_call_id")
    arguments = requests.take_arguments(tool.name, call_id, tool_input)
    if is_mocked(tool.name):
        with _mock_message(tool.name, call_id) as answer:
            answer.value = requests.recorder.call_tool_sync(tool.name, arguments, _not_mocked, id=call_id)
        return answer.message()
    with _recorded_call(requests.recorder, tool.name, arguments, call_id) as call:
        call.result = original(tool, tool_input, *args, **kwargs)
    return call.result


async def _run_tool_async(original: Any, tool: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
    requests = _REQUESTS.get()
    if requests is None:
        return await original(tool, tool_input, *args, **kwargs)
    call_id = kwargs.get("tool_call_id")
    arguments = requests.take_arguments(tool.name, call_id, tool_input)
    if is_mocked(tool.name):
        with _mock_message(tool.name, call_id) as answer:
            answer.value = await requests.recorder.call_tool(tool.name, arguments, _not_mocked, id=call_id)
        return answer.message()
    with _recorded_call(requests.recorder, tool.name, arguments, call_id) as call:
        call.result = await original(tool, tool_input, *args, **kwargs)
    return call.result


@dataclass(slots=True)
class _Call:
    result: Any = None


@contextmanager
def _recorded_call(recorder: TurnRecorder, name: str, arguments: Any, call_id: str | None) -> Iterator[_Call]:
    """Record a call. LangChain may return an error as a message with a status instead of raising it."""
    call = _Call()
    key = recorder.begin_call(name, arguments, id=call_id)
    try:
        yield call
    except BaseException as error:
        recorder.end_call(key, error=error)
        raise
    is_error = getattr(call.result, "status", None) == "error"
    result = _tool_result(call.result)
    recorder.end_call(key, None if is_error else result, str(result) if is_error else None)


@dataclass(slots=True)
class _MockAnswer:
    """The result of a mock in the form of LangChain's tools."""

    tool: str
    call_id: str | None
    value: Any = None
    error: Exception | None = None

    def message(self) -> Any:
        if self.call_id is None:
            return self.value
        from langchain_core.messages import ToolMessage

        if self.error is not None:
            return ToolMessage(str(self.error), name=self.tool, tool_call_id=self.call_id, status="error")
        return ToolMessage(to_text(self.value), name=self.tool, tool_call_id=self.call_id)


@contextmanager
def _mock_message(tool: str, call_id: str | None) -> Iterator[_MockAnswer]:
    """Turn the error of a mock into a message to the model if the model called the tool; else raise it."""
    answer = _MockAnswer(tool, call_id)
    try:
        yield answer
    except Exception as error:
        if call_id is None:
            raise
        answer.error = error


def _not_mocked() -> None:
    raise AssertionError("a mocked tool must not be called")


def _tool_result(value: Any) -> Json:
    """The result of a tool. LangChain converts data to text for the model; JSON text is converted back."""
    content = getattr(value, "content", value)
    if isinstance(content, str) and content[:1] in ("{", "["):
        return to_json(parse_json_or_keep(content))
    return to_json(getattr(value, "update", content) if type(value).__name__ == "Command" else content)


_HISTORY_KEYS = ("chat_history", "history")
_INPUT_KEYS = ("input", "question", "query", "text", "prompt", "request", "topic")


@dataclass(frozen=True, slots=True)
class InputSchema:
    """The input of one runnable; the same for all sessions."""

    takes_messages: bool = False
    """Whether it takes a list of messages and nothing else, like chat models."""
    fields: tuple[str, ...] = ()
    """The keys of the object that it takes; empty if it takes the input of the turn as it is."""
    required: tuple[str, ...] = ()
    memory: Any = None
    """The checkpointer of a graph, if it has one."""
    context: Any = None
    """The type of the context that a graph's tools and nodes get at run time."""
    sessions: tuple[str, ...] = ()
    """The configuration keys for the session id, of a chain that looks up its own history."""

    def build_input(self, question: Json, state: Mapping[str, Any], messages: Sequence[Any]) -> Any:
        """The argument of `invoke`, from the input of the turn, the state and the messages so far."""
        conversation = [*messages, ("human", to_text(question))]
        if self.takes_messages:
            return conversation
        if not self.fields:
            return question
        values = {name: value for name, value in state.items() if name in self.fields}
        if isinstance(question, Mapping) and question.keys() <= set(self.fields):
            return values | dict(question)
        if "messages" in self.fields:
            return values | {"messages": conversation}
        history = next((name for name in _HISTORY_KEYS if name in self.fields), None)
        values |= {} if history is None else {history: list(messages)}
        return values | {self._receiver(state) or "": question}

    def unsupported_reason(self, question: Json, state: Mapping[str, Any]) -> str | None:
        """Why the input cannot be built, or None if it can."""
        if not self.fields or "messages" in self.fields or self._receiver(state):
            return None
        if isinstance(question, Mapping) and question.keys() <= set(self.fields):
            return None
        names = ", ".join(self.fields)
        return f"the input must be an object with keys from {names}: it is not clear where plain text would go"

    def _receiver(self, state: Mapping[str, Any]) -> str | None:
        """The key for the input of the turn; None if it is ambiguous."""
        free = [name for name in self.fields if name not in state and name not in _HISTORY_KEYS]
        required = [name for name in self.required if name in free]
        common = [name for name in _INPUT_KEYS if name in free]
        if len(required) == 1:
            return required[0]
        return common[0] if common else free[0] if len(free) == 1 else None


def _input_schema(target: Any) -> InputSchema:
    from langchain_core.language_models import BaseLanguageModel

    if isinstance(_unbind(target), BaseLanguageModel):
        return InputSchema(takes_messages=True)
    sessions = tuple(spec.id for spec in getattr(target, "history_factory_config", None) or ())
    target = _innermost_graph(target)
    memory = getattr(target, "checkpointer", None)
    memory = None if isinstance(memory, bool) else memory
    builder = getattr(target, "builder", None)
    fields_of_state = getattr(builder, "schemas", {}).get(getattr(builder, "input_schema", None))
    if fields_of_state is not None:
        context = getattr(builder, "context_schema", None)
        return InputSchema(fields=tuple(fields_of_state), memory=memory, context=context, sessions=sessions)
    try:
        schema = target.get_input_jsonschema()
    except Exception:  # pydantic cannot describe the types of this runnable, so its fields are unknown
        schema = {}
    schema = schema if schema.get("type") == "object" else {}
    fields, required = tuple(schema.get("properties", ())), tuple(schema.get("required", ()))
    return InputSchema(fields=fields, required=required, memory=memory, sessions=sessions)


def _read_messages(state: Mapping[str, Any]) -> list[Any]:
    """The messages in the state of a graph, which may be dicts or pairs; none if they are something else."""
    from langchain_core.messages import convert_to_messages

    messages = state.get("messages")
    try:
        return list(convert_to_messages(messages)) if isinstance(messages, (list, tuple)) else []
    except Exception:
        return []


def _message_text(message: Any) -> str:
    """The text of a message, whether or not its content is in parts."""
    content = message.content
    return content if isinstance(content, str) else parts_text(content) or ""


def _describe(target: Any) -> Json:
    """The steps of a graph or chain with their settings, for the fingerprint."""
    nodes = getattr(target, "nodes", None)
    if isinstance(nodes, Mapping):
        graph = target.get_graph()
        edges = sorted([edge.source, edge.target] for edge in graph.edges)
        return [edges, {name: _describe_step(getattr(node, "bound", node)) for name, node in nodes.items()}]
    steps = getattr(target, "steps", None)
    return [_describe_step(step) for step in steps] if isinstance(steps, list) else _describe_step(target)


def _unbind(target: Any) -> Any:
    """The runnable inside `bind`, `bind_tools` and `with_config`."""
    while hasattr(target, "bound") and hasattr(target, "kwargs"):
        target = target.bound
    return target


def _innermost_graph(target: Any) -> Any:
    """The graph inside `with_retry` and `with_fallbacks`, which has the input schema; else the target itself."""
    graph = target
    while not hasattr(graph, "builder"):
        inner = getattr(graph, "runnable", None) or getattr(graph, "bound", None)
        if inner is None:
            return target
        graph = inner
    return graph


def _describe_step(step: Any, depth: int = 0) -> Json:
    """A step for the fingerprint: its functions with the values in their closures, or its settings."""
    step = step if depth else _unbind(step)
    function = next((f for name in ("func", "afunc") if callable(f := getattr(step, name, None))), None)
    function = step if function is None and hasattr(step, "__closure__") else function
    if function is not None:
        values = [] if depth > 2 else [_describe_step(value, depth + 1) for value in closure_values(function)]
        return [getattr(step, "name", None), getattr(step, "description", None), source_fingerprint(function), values]
    if isinstance(step, (str, int, float, bool, type(None))):
        return step
    if isinstance(step, (list, tuple)):
        return [_describe_step(item, depth + 1) for item in step] if depth < 4 else len(step)
    tools = getattr(step, "tools_by_name", None)
    if isinstance(tools, Mapping):
        return [_describe_step(tool, depth + 1) for tool in tools.values()]
    settings = {
        name: to_json(getattr(step, name)) for name in _SETTINGS if isinstance(getattr(step, name, None), _DATA)
    }
    return [type(step).__qualname__, settings]


_SETTINGS = ("content", "model", "model_name", "temperature", "name", "description", "template")
_DATA = (str, int, float, list, dict)
