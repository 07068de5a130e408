"""LlamaIndex: agents and workflows, each trial in a context of its own, watched through LlamaIndex's own spans."""

from __future__ import annotations

import asyncio
import copy
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from proctor.agents.agent import BaseSession, Reply, Usage
from proctor.agents.sessions import CallLog, FrameworkAgent, described_tool, text_of, to_reply
from proctor.agents.toolbox import answer, answer_async, is_doubled
from proctor.base.json_data import Json, fingerprint, plain, show
from proctor.base.references import source_fingerprint
from proctor.cases.suite import Case, Turn

_TOKENS = (
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens"),
    ("prompt_token_count", "candidates_token_count"),
)


def adapt(target: Any, name: str) -> FrameworkAgent | None:
    """An agent that runs FunctionAgents, ReActAgents, CodeActAgents, AgentWorkflows, and workflows of one's own."""
    try:
        from llama_index.core.agent.workflow import AgentWorkflow
        from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
    except ImportError:
        return None  # a package of one's own is often called workflows, too
    if not isinstance(target, (BaseWorkflowAgent, AgentWorkflow)):
        return adapt_workflow(target, name)
    title = getattr(target, "name", None) or getattr(target, "root_agent", "")
    return LlamaIndexAgent(target, name or str(title), _fingerprint(target))


class LlamaIndexAgent(FrameworkAgent):
    """Runs the agent itself: what a run knows is in its context, and each trial has one."""

    @property
    def tools(self) -> dict[str, Any]:
        """The functions behind the tools, which evaluators may call again."""
        agents = getattr(self.target, "agents", None) or {"": self.target}
        listed = [tool for agent in agents.values() for tool in agent.tools or () if hasattr(tool, "metadata")]
        code = {tool.metadata.get_name(): getattr(tool, "real_fn", None) for tool in listed}
        return {name: function for name, function in code.items() if callable(function)}

    def session(self, case: Case) -> LlamaIndexSession:
        return LlamaIndexSession(self.target, case)


class LlamaIndexSession(BaseSession):
    """One context, with the memory of the conversation and the state of the case."""

    def __init__(self, target: Any, case: Case) -> None:
        super().__init__(case)
        self._agent = target
        self._memory: Any = None

    async def open(self) -> None:
        from llama_index.core.workflow import Context

        start_watching()
        self._context = Context(self._agent)
        if self.case.state:
            own = copy.deepcopy(getattr(self._agent, "initial_state", None) or {})
            await self._context.store.set("state", {**own, **plain(self.case.state)})

    async def send(self, turn: Turn) -> Reply:
        watched = Watched()
        given = {"user_msg": text_of(turn), "ctx": self._context, "memory": self._memory}
        result = await watched.run(lambda: self._agent.run(**given))
        await self._keep_memory()
        return Reply(
            str(getattr(result.response, "content", None) or ""),
            watched.log.calls,
            watched.log.usage,
            structured=plain(result.structured_response),
            state=plain(await self._context.store.get("state", default={})),
            retrieval_context=tuple(watched.passages) or None,
        )

    async def _keep_memory(self) -> None:
        """A context that is used again loses the memory in it, which cannot be serialised; so it is handed over."""
        self._memory = await self._context.store.get("memory", default=None)
        await self._context.store.set("memory", None)


class Watched:
    """What happens in one turn, in nested agents too: they run in tasks that inherit the context."""

    def __init__(self) -> None:
        self.log = CallLog()
        self.passages: list[str] = []
        self._numbers = itertools.count(1)

    async def run(self, start: Callable[[], Any]) -> Any:
        """What a run gives in the end; it is started, and its steps are, where they are seen."""
        before = _WATCHED.set(self)
        try:
            handler = start()
            try:
                async for event in handler.stream_events():
                    self.note_unknown_tool(event)
                    if isinstance(delta := getattr(event, "delta", None), str):
                        self.log.said += delta
                return await handler
            except asyncio.CancelledError:
                await handler.cancel_run()
                raise
        finally:
            _WATCHED.reset(before)

    def begin(self, tool: Any, given: Any) -> str:
        name = tool.metadata.get_name()
        return self.log.begin(f"{name}-{next(self._numbers)}", name, _arguments(tool, given))

    def end(self, key: str, output: Any) -> None:
        if getattr(output, "is_error", False):
            self.log.end(key, error=str(output.content))
            return
        raw = getattr(output, "raw_output", output)
        passages = list(_passages(raw))
        self.passages += passages
        self.log.end(key, str(output) if passages else raw)

    def note_unknown_tool(self, event: Any) -> None:
        """A call of a tool that does not exist reaches no tool; only the stream of events tells of it."""
        output = getattr(event, "tool_output", None)
        if output is not None and output.is_error and output.raw_output is None:
            self.log.end(self.log.begin(event.tool_id, event.tool_name, event.tool_kwargs), error=str(output.content))


_WATCHED: ContextVar[Watched | None] = ContextVar("proctor_llama_index", default=None)


@functools.cache
def start_watching() -> None:
    """Once for the process, which is all LlamaIndex offers; outside of a trial, the handlers do nothing."""
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler
    from llama_index.core.instrumentation.events.llm import LLMChatEndEvent
    from llama_index.core.instrumentation.span import BaseSpan
    from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
    from llama_index.core.tools import BaseTool

    class CallSpan(BaseSpan):  # type: ignore[misc]
        watched: Any
        key: str
        name: str
        outermost: bool = True

    class Spans(BaseSpanHandler[CallSpan]):  # type: ignore[misc]
        def new_span(
            self, id_: str, bound_args: Any, instance: Any = None, parent_span_id: Any = None, **_: Any
        ) -> Any:
            watched = _WATCHED.get()
            if watched is None or not isinstance(instance, BaseTool):
                return None
            around = self.open_spans.get(parent_span_id)
            if around is not None and around.name == instance.metadata.get_name():
                return CallSpan(id_=id_, watched=watched, key=around.key, name=around.name, outermost=False)
            key = watched.begin(instance, bound_args)
            return CallSpan(id_=id_, watched=watched, key=key, name=instance.metadata.get_name())

        def prepare_to_exit_span(
            self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **_: Any
        ) -> Any:
            span = self.open_spans.get(id_)
            if span is not None and span.outermost:
                span.watched.end(span.key, result)
            return span

        def prepare_to_drop_span(
            self, id_: str, bound_args: Any, instance: Any = None, err: Any = None, **_: Any
        ) -> Any:
            span = self.open_spans.get(id_)
            if span is not None and span.outermost:
                span.watched.log.end(span.key, error=err or "it was cut short")
            return span

    class Events(BaseEventHandler):  # type: ignore[misc]
        def handle(self, event: Any, **_: Any) -> None:
            watched = _WATCHED.get()
            if watched is not None and isinstance(event, LLMChatEndEvent):
                watched.log.add_usage(_usage(event.response))

    get_dispatcher().add_span_handler(Spans())
    get_dispatcher().add_event_handler(Events())
    _double_all_tools()


def _double_all_tools() -> None:
    """Every agent, also one that a tool runs, asks here for its tools: in a trial, doubles are among them."""
    from llama_index.core.agent.workflow import AgentWorkflow
    from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent

    for kind in (BaseWorkflowAgent, AgentWorkflow):
        kind.get_tools = _with_doubles(kind.get_tools)


def _with_doubles(original: Any) -> Any:
    @functools.wraps(original)
    async def get_tools(self: Any, *args: Any, **kwargs: Any) -> list[Any]:
        tools = await original(self, *args, **kwargs)
        return [_doubled_class()(tool.metadata) if is_doubled(tool.metadata.get_name()) else tool for tool in tools]

    return get_tools


@functools.cache
def _doubled_class() -> type[Any]:
    from llama_index.core.tools import AsyncBaseTool, ToolOutput

    class Doubled(AsyncBaseTool):  # type: ignore[misc]
        def __init__(self, metadata: Any) -> None:
            self._metadata = metadata

        @property
        def metadata(self) -> Any:
            return self._metadata

        def call(self, *_: Any, **arguments: Any) -> Any:
            return self._output(arguments, answer(self._metadata.get_name(), arguments))

        async def acall(self, *_: Any, **arguments: Any) -> Any:
            return self._output(arguments, await answer_async(self._metadata.get_name(), arguments))

        def _output(self, arguments: Any, result: Any) -> Any:
            name = self._metadata.get_name()
            return ToolOutput(tool_name=name, content=str(result), raw_input=arguments, raw_output=result)

    return Doubled


def _arguments(tool: Any, given: Any) -> dict[str, Any]:
    """The arguments of a call by name, without the context that LlamaIndex adds to them."""
    named: dict[str, Any] = {}
    for name, value in given.arguments.items():
        kind = given.signature.parameters[name].kind
        if kind is kind.VAR_KEYWORD:
            named |= value
        elif kind is kind.VAR_POSITIONAL:
            named |= dict(zip(tool.metadata.get_parameters_dict().get("properties", {}), value, strict=False))
        else:
            named[name] = value
    named.pop(getattr(tool, "ctx_param_name", None) or "", None)
    return named


def _passages(raw: Any) -> Iterator[str]:
    """The texts that a query engine or a retriever found."""
    found = getattr(raw, "source_nodes", raw)
    for node in found if isinstance(found, list) else ():
        if hasattr(node, "score") and hasattr(node, "get_content"):
            yield str(node.get_content())


def _usage(response: Any) -> Usage:
    """What one model call cost, in the words of whichever provider answered."""
    raw = getattr(response, "raw", None)
    data = raw if isinstance(raw, Mapping) else plain(raw) if hasattr(raw, "model_dump") else {}
    places = [data.get("usage"), data.get("usage_metadata"), getattr(response, "additional_kwargs", None)]
    for place in places:
        counts = place if isinstance(place, Mapping) else vars(place) if hasattr(place, "__dict__") else {}
        for given, got in _TOKENS:
            if isinstance(counts.get(given), int) and isinstance(counts.get(got), int):
                model = data.get("model")
                return Usage(counts[given], counts[got], model_calls=1, model=model if isinstance(model, str) else None)
    return Usage(model_calls=1)


def _fingerprint(target: Any) -> str:
    """What makes two agents behave alike: prompts, models, tools, and the agents of a workflow."""
    agents = getattr(target, "agents", None)
    if isinstance(agents, dict):
        below = [_fingerprint(agent) for agent in agents.values()]
        return fingerprint(type(target).__name__, target.root_agent, plain(target.initial_state), below)
    tools = [[tool.metadata.name, described_tool(tool)] for tool in target.tools or ()]
    model = getattr(target.llm.metadata, "model_name", "") or type(target.llm).__name__
    told = [target.description, target.system_prompt, plain(target.can_handoff_to), plain(target.initial_state)]
    return fingerprint(type(target).__name__, target.name, model, told, tools)


QUESTION = ("input", "query", "question", "user_msg", "message", "topic")
"""Usual names of the question; a start event without fields of its own is given it under all of these."""


def adapt_workflow(target: Any, name: str) -> FrameworkAgent | None:
    from llama_index.core.workflow import Workflow

    if not isinstance(target, Workflow):
        return None
    return LlamaIndexWorkflow(target, name or type(target).__name__, source_fingerprint(target))


class LlamaIndexWorkflow(FrameworkAgent):
    """Runs the workflow itself: what a run knows is in its context, and each trial has one."""

    def session(self, case: Case) -> WorkflowSession:
        return WorkflowSession(self.target, case)

    def check(self, case: Case) -> str | None:
        fields = start_fields(self.target)
        if not fields:
            return None
        for turn in case.turns:
            if start_arguments(fields, turn.input) is None:
                kind = self.target.start_event_class.__name__
                return f"the input must be an object with the fields of {kind}: {', '.join(fields)}"
        return None


class WorkflowSession(BaseSession):
    """One context, which the turns of a case share; the case's state is what it holds at first."""

    def __init__(self, target: Any, case: Case) -> None:
        super().__init__(case)
        self._workflow = target

    async def open(self) -> None:
        from llama_index.core.workflow import Context

        start_watching()
        self._context = Context(self._workflow)
        for name, value in plain(self.case.state).items():
            await self._context.store.set(name, value)

    async def send(self, turn: Turn) -> Reply:
        watched = Watched()
        fields = start_fields(self._workflow)
        given = start_arguments(fields, plain(turn.input)) or dict.fromkeys(QUESTION, text_of(turn))
        result = await watched.run(lambda: self._workflow.run(ctx=self._context, **given))
        reply = read_result(result)
        return Reply(
            reply.text,
            watched.log.calls,
            watched.log.usage,
            structured=reply.structured,
            state=await self._state(),
            retrieval_context=tuple(watched.passages) or None,
        )

    async def _state(self) -> Mapping[str, Json] | None:
        state = await self._context.store.get_state()
        told = plain(dict(state.items())) if hasattr(state, "items") else plain(state)
        return told if isinstance(told, Mapping) else None


def start_fields(workflow: Any) -> dict[str, bool]:
    """The fields of the start event, where it has any of its own, and whether each must be given."""
    fields = workflow.start_event_class.model_fields
    return {name: field.is_required() for name, field in fields.items() if not name.startswith("_")}


def start_arguments(fields: Mapping[str, bool], question: Json) -> dict[str, Any] | None:
    """What to start a workflow with: an object of its fields, or the question under the one that it can be."""
    if isinstance(question, Mapping):
        return dict(question) if not fields or question.keys() <= fields.keys() else None
    needed = [name for name, is_needed in fields.items() if is_needed]
    usual = [name for name in QUESTION if name in fields]
    receiver = needed[0] if len(needed) == 1 else usual[0] if usual and not needed else None
    return None if receiver is None else {receiver: question}


def read_result(result: Any) -> Reply:
    """The answer in what a workflow stops with: a stop event of one's own is data, an engine's response is words."""
    if hasattr(result, "source_nodes"):
        return Reply(str(result))
    if hasattr(result, "model_dump"):
        result = plain(result)
    reply = to_reply(result)
    return reply if reply.text else Reply("" if result is None else show(plain(result)), structured=plain(result))
