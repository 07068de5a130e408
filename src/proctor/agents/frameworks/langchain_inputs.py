"""What a LangChain runnable takes, how a question becomes that, and what makes two of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.agents.chat_messages import text_of_parts
from proctor.agents.sessions import closure_values
from proctor.base.json_data import Json, plain, show
from proctor.base.records import record
from proctor.base.references import source_fingerprint

_HISTORY = ("chat_history", "history")
_QUESTION = ("input", "question", "query", "text", "prompt", "request", "topic")


@record
class Shape:
    """What one runnable takes; the same for all sessions."""

    takes_messages: bool = False
    """A list of messages and nothing else, as chat models do."""
    fields: tuple[str, ...] = ()
    """The keys of the object it takes; none where it takes something else, which is then the input itself."""
    required: tuple[str, ...] = ()
    memory: Any = None
    """Where a graph keeps its threads."""
    context: Any = None
    """The kind of object that a graph's tools and nodes get at run time."""
    sessions: tuple[str, ...] = ()
    """What a chain that looks up its own history has to be told: a session's id, under these names."""

    def filled(self, question: Json, kept: Mapping[str, Any], messages: Sequence[Any]) -> Any:
        """What to invoke it with."""
        said = [*messages, ("human", show(question))]
        if self.takes_messages:
            return said
        if not self.fields:
            return question
        given = {name: value for name, value in kept.items() if name in self.fields}
        if isinstance(question, Mapping) and question.keys() <= set(self.fields):
            return given | dict(question)
        if "messages" in self.fields:
            return given | {"messages": said}
        history = next((name for name in _HISTORY if name in self.fields), None)
        given |= {} if history is None else {history: list(messages)}
        return given | {self._receiver(kept) or "": question}

    def misfit(self, question: Json, state: Mapping[str, Any]) -> str | None:
        """Why the question cannot be put, if it cannot."""
        if not self.fields or "messages" in self.fields or self._receiver(state):
            return None
        if isinstance(question, Mapping) and question.keys() <= set(self.fields):
            return None
        wanted = ", ".join(self.fields)
        return f"the input must be an object with some of {wanted}: it is not clear which of them the question is"

    def _receiver(self, state: Mapping[str, Any]) -> str | None:
        """The key under which a question stands."""
        free = [name for name in self.fields if name not in state and name not in _HISTORY]
        required = [name for name in self.required if name in free]
        named = [name for name in _QUESTION if name in free]
        if len(required) == 1:
            return required[0]
        return named[0] if named else free[0] if len(free) == 1 else None


def read_shape(target: Any) -> Shape:
    from langchain_core.language_models import BaseLanguageModel

    if isinstance(_bound(target), BaseLanguageModel):
        return Shape(takes_messages=True)
    sessions = tuple(spec.id for spec in getattr(target, "history_factory_config", None) or ())
    target = _innermost_graph(target)
    memory = getattr(target, "checkpointer", None)
    memory = None if isinstance(memory, bool) else memory
    builder = getattr(target, "builder", None)
    known = getattr(builder, "schemas", {}).get(getattr(builder, "input_schema", None))
    if known is not None:
        context = getattr(builder, "context_schema", None)
        return Shape(fields=tuple(known), memory=memory, context=context, sessions=sessions)
    try:
        schema = target.get_input_jsonschema()
    except Exception:  # a runnable whose types pydantic cannot describe: its fields are not known
        schema = {}
    schema = schema if schema.get("type") == "object" else {}
    fields, required = tuple(schema.get("properties", ())), tuple(schema.get("required", ()))
    return Shape(fields=fields, required=required, memory=memory, sessions=sessions)


def messages_of(state: Mapping[str, Any]) -> list[Any]:
    """The messages a graph ends with; a graph of one's own may keep them as dicts or pairs, or keep something else."""
    from langchain_core.messages import convert_to_messages

    kept = state.get("messages")
    try:
        return list(convert_to_messages(kept)) if isinstance(kept, (list, tuple)) else []
    except Exception:
        return []


def message_text(message: Any) -> str:
    """The words of a message, whether or not its content is in parts."""
    content = message.content
    return content if isinstance(content, str) else text_of_parts(content) or ""


def described(target: Any) -> Json:
    """What makes two runnables behave alike: the steps of a graph or chain, and what these were made with."""
    nodes = getattr(target, "nodes", None)
    if isinstance(nodes, Mapping):
        graph = target.get_graph()
        edges = sorted([edge.source, edge.target] for edge in graph.edges)
        return [edges, {name: _described_step(getattr(node, "bound", node)) for name, node in nodes.items()}]
    steps = getattr(target, "steps", None)
    return [_described_step(step) for step in steps] if isinstance(steps, list) else _described_step(target)


def _bound(target: Any) -> Any:
    """What is under `bind`, `bind_tools` and `with_config`."""
    while hasattr(target, "bound") and hasattr(target, "kwargs"):
        target = target.bound
    return target


def _innermost_graph(target: Any) -> Any:
    """The graph under `with_retry` and `with_fallbacks`, which alone knows what it takes; else the target itself."""
    inner = target
    while not hasattr(inner, "builder"):
        under = getattr(inner, "runnable", None) or getattr(inner, "bound", None)
        if under is None:
            return target
        inner = under
    return inner


def _described_step(step: Any, depth: int = 0) -> Json:
    """A step as far as it can be looked into: the functions it is, and what these hold on to."""
    step = step if depth else _bound(step)
    function = next((f for name in ("func", "afunc") if callable(f := getattr(step, name, None))), None)
    function = step if function is None and hasattr(step, "__closure__") else function
    if function is not None:
        held = [] if depth > 2 else [_described_step(value, depth + 1) for value in closure_values(function)]
        own = getattr(step, "description", None)
        return [getattr(step, "name", None), own, source_fingerprint(function), held]
    if isinstance(step, (str, int, float, bool, type(None))):
        return step
    if isinstance(step, (list, tuple)):
        return [_described_step(item, depth + 1) for item in step] if depth < 4 else len(step)
    tools = getattr(step, "tools_by_name", None)
    if isinstance(tools, Mapping):
        return [_described_step(tool, depth + 1) for tool in tools.values()]
    settings = {name: plain(getattr(step, name)) for name in _TELLING if isinstance(getattr(step, name, None), _PLAIN)}
    return [type(step).__qualname__, settings]


_TELLING = ("content", "model", "model_name", "temperature", "name", "description", "template")
_PLAIN = (str, int, float, list, dict)
