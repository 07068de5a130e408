"""Spans: the model calls and observed steps of an application, the tree they form, and their tokens and tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from proctor.agents.pricing import estimate_cost
from proctor.agents.reply import ToolCall, Usage
from proctor.base.json_data import Json, parse_json_or_keep, to_json, to_text

UNNAMED = "(unnamed)"
MAX_VALUE_CHARS = 200
"""The default limit for an input or output in the text of a tree."""


@dataclass(frozen=True, slots=True)
class TextContent:
    """Text in a message."""

    text: str
    type: ClassVar[str] = "text"


@dataclass(frozen=True, slots=True)
class ImageContent:
    """An image in a message, as a URL."""

    url: str
    detail: str | None = None
    type: ClassVar[str] = "image"


Content: TypeAlias = TextContent | ImageContent


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """Instructions to the model."""

    content: str
    role: ClassVar[str] = "system"

    @property
    def text(self) -> str:
        return self.content


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of the user to the model."""

    content: tuple[Content, ...] = ()
    role: ClassVar[str] = "user"

    @classmethod
    def from_text(cls, text: str) -> UserMessage:
        return cls((TextContent(text),))

    @property
    def text(self) -> str:
        return _text(self.content)


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """An answer of the model, with the tool calls that it requests."""

    content: tuple[Content, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    role: ClassVar[str] = "assistant"

    @property
    def text(self) -> str:
        return _text(self.content)


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The result of a tool call for the model."""

    content: str
    tool_call_id: str | None = None
    tool_name: str | None = None
    role: ClassVar[str] = "tool"

    @property
    def text(self) -> str:
        return self.content


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage


def _text(content: Iterable[Content]) -> str:
    return "".join(part.text for part in content if isinstance(part, TextContent))


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that the model may call."""

    name: str
    description: str | None = None
    parameters: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class LLMSpan:
    """One call of a language or embedding model."""

    span_id: str
    trace_id: str
    parent_span_id: str | None = None
    started_at: float = 0.0
    """Seconds since the epoch."""
    ended_at: float = 0.0
    duration_ms: float = 0.0
    operation: str = "chat"
    """`chat` or `embedding`."""
    provider: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    input_tokens: int | None = None
    """`None` means unknown, which differs from zero."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    request_temperature: float | None = None
    request_max_tokens: int | None = None
    request_top_p: float | None = None
    finish_reasons: tuple[str, ...] = ()
    response_id: str | None = None
    output_type: str | None = None
    error_type: str | None = None
    input_messages: tuple[Message, ...] = ()
    output_messages: tuple[Message, ...] = ()
    tool_definitions: tuple[ToolDefinition, ...] = ()

    @property
    def name(self) -> str:
        return self.request_model or self.response_model or UNNAMED

    @property
    def error(self) -> str | None:
        return self.error_type


@dataclass(frozen=True, slots=True)
class ObserveSpan:
    """One step that the application or a library marked: a function, a tool, a retrieval."""

    span_id: str
    trace_id: str
    parent_span_id: str | None = None
    started_at: float = 0.0
    """Seconds since the epoch."""
    ended_at: float = 0.0
    duration_ms: float = 0.0
    name: str = UNNAMED
    input: Json = None
    output: Json = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    error: str | None = None
    kind: str | None = None
    """The library's word for it (`tool`, `agent`, `chain`, `retriever`); `None` for steps marked by the application."""


Span: TypeAlias = LLMSpan | ObserveSpan


@dataclass(frozen=True, slots=True)
class ObservationNode:
    """A span with the spans inside it, in the order in which they began."""

    span: Span
    children: list[ObservationNode] = field(default_factory=list)

    @property
    def span_id(self) -> str:
        return self.span.span_id

    @property
    def trace_id(self) -> str:
        return self.span.trace_id

    @property
    def parent_span_id(self) -> str | None:
        return self.span.parent_span_id

    @property
    def name(self) -> str:
        return self.span.name or UNNAMED  # pixie's spans may have no name

    @property
    def duration_ms(self) -> float:
        return self.span.duration_ms

    def walk(self) -> Iterator[tuple[int, ObservationNode]]:
        """This node and all descendants with their depths, depth first; without recursion, for very deep trees."""
        waiting = [(0, self)]
        while waiting:
            depth, node = waiting.pop()
            yield depth, node
            waiting += [(depth + 1, child) for child in reversed(node.children)]

    def find(self, name: str) -> list[ObservationNode]:
        """The nodes with that name, this one included."""
        return [node for _, node in self.walk() if node.name == name]

    def find_by_type(self, kind: type[Span] | tuple[type[Span], ...]) -> list[ObservationNode]:
        """The nodes whose span is of that type, this one included."""
        return [node for _, node in self.walk() if isinstance(node.span, kind)]

    def to_text(self, indent: int = 0, *, max_chars: int | None = MAX_VALUE_CHARS) -> str:
        """The tree as text for people and judges.

        `indent` is the level of the first line, and `max_chars` the limit for each input and output.
        """
        lines: list[str] = []
        for depth, node in self.walk():
            pad = "  " * (indent + depth)
            lines += [pad + line for line in _span_lines(node.span, max_chars)]
        return "\n".join(lines)


def _span_lines(span: Span, max_chars: int | None) -> list[str]:
    failed = f" failed: {span.error}" if span.error else ""
    head = f"{span.name} [{span.duration_ms:.0f} ms]{failed}"
    if isinstance(span, ObserveSpan):
        kind = "" if span.kind is None else f"{span.kind} "
        sides = [("input", span.input), ("output", span.output)]
        return [kind + head, *(f"  {side}: {to_text(value, max_chars)}" for side, value in sides if value is not None)]
    counts = [span.input_tokens, span.output_tokens]
    tokens = (
        "" if counts == [None, None] else " tokens {} in, {} out".format(*("?" if n is None else n for n in counts))
    )
    lines = [f"{span.operation} {head}{tokens}"]
    for message in (*span.input_messages[-1:], *span.output_messages):
        calls = [
            f"{call.name}({to_text(dict(call.arguments), max_chars)})" for call in getattr(message, "tool_calls", ())
        ]
        texts = [to_text(message.text, max_chars)] if message.text else []
        lines.append(f"  {message.role}: {', '.join(texts + calls)}")
    return lines


def build_tree(spans: Iterable[Span]) -> list[ObservationNode]:
    """The roots of the trees that `spans` form, sorted by start. A span whose parent is missing is a root."""
    nodes = [ObservationNode(span) for span in sorted(spans, key=lambda span: span.started_at)]
    by_id: dict[tuple[str, str], ObservationNode] = {}
    for node in nodes:
        by_id.setdefault((node.trace_id, node.span_id), node)
    roots: list[ObservationNode] = []
    for node in nodes:
        parent = None if node.parent_span_id is None else by_id.get((node.trace_id, node.parent_span_id))
        (roots if parent is None or parent is node else parent.children).append(node)
    return _break_cycles(nodes, roots, by_id)


def _break_cycles(
    nodes: list[ObservationNode], roots: list[ObservationNode], by_id: Mapping[tuple[str, str], ObservationNode]
) -> list[ObservationNode]:
    """Make the first span of each cycle a root: spans from a file may name each other as parents."""
    reached = {id(node) for root in roots for _, node in root.walk()}
    if len(reached) == len(nodes):
        return roots
    for node in nodes:
        if id(node) in reached:
            continue
        parent = by_id[node.trace_id, node.parent_span_id or ""]
        parent.children[:] = [child for child in parent.children if child is not node]
        roots.append(node)
        reached.update(id(descendant) for _, descendant in node.walk())
    return sorted(roots, key=lambda root: root.span.started_at)


def usage_of(spans: Iterable[Span]) -> Usage | None:
    """The tokens of all model calls, or `None` if there were none. A sum is known only if all its parts are."""
    calls = [call for call in _outermost_calls(build_tree(spans)) if call.operation == "chat"]
    if not calls:
        return None
    models = {call.response_model or call.request_model for call in calls}
    total = Usage(
        _total([call.input_tokens for call in calls]),
        _total([call.output_tokens for call in calls]),
        model_calls=len(calls),
        model=models.pop() if len(models) == 1 else None,
    )
    return total if not models or total.total_tokens is None else _with_cost_per_model(calls, total)


def _with_cost_per_model(calls: Iterable[LLMSpan], total: Usage) -> Usage:
    """The total of several models with its cost, which is known only if every model has a price."""
    costs = [
        estimate_cost(call.response_model or call.request_model or "", call.input_tokens or 0, call.output_tokens or 0)
        for call in calls
    ]
    known = [cost for cost in costs if cost is not None]
    return replace(total, cost_usd=sum(known), estimated=True) if len(known) == len(costs) else total


def tool_calls_of(spans: Sequence[Span]) -> tuple[ToolCall, ...]:
    """The tool calls: from the tool steps of the trace if there are any, else from the model's requests."""
    steps = sorted(_executed_tools(build_tree(spans)), key=lambda span: span.started_at)
    return tuple(_call_from_span(span) for span in steps) or tuple(
        _requested_calls(list(_outermost_calls(build_tree(spans), with_messages=True)))
    )


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _outermost_calls(roots: Sequence[ObservationNode], *, with_messages: bool = False) -> Iterator[LLMSpan]:
    """Model calls by start. A model call inside another is the same call, reported by a second library.

    `with_messages` takes the inner one if the outer one has no messages: some libraries leave them out.
    """
    calls: list[LLMSpan] = []
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        span = node.span
        if not isinstance(span, LLMSpan):
            waiting += node.children
        elif with_messages and not span.output_messages and len(node.find_by_type(LLMSpan)) > 1:
            waiting += node.children
        else:
            calls.append(span)
    yield from sorted(calls, key=lambda span: span.started_at)


def _executed_tools(roots: Sequence[ObservationNode]) -> Iterator[ObserveSpan]:
    """The tool steps. One inside another with its name is the same call, reported by a framework and by `@tool`."""
    waiting: list[tuple[ObservationNode, ObserveSpan | None]] = [(root, None) for root in roots]
    while waiting:
        node, outer = waiting.pop()
        span = node.span
        if isinstance(span, ObserveSpan) and span.kind == "tool":
            if outer is None or not _is_same_call(outer, span):
                yield span
            outer = span
        waiting += [(child, outer) for child in node.children]


def _is_same_call(outer: ObserveSpan, inner: ObserveSpan) -> bool:
    """Whether two nested tool steps are one call. A tool that calls itself does so with different arguments.

    Libraries write the same arguments in different ways; unless both are mappings, they cannot be compared.
    """
    comparable = isinstance(outer.input, Mapping) and isinstance(inner.input, Mapping)
    return outer.name == inner.name and (outer.input == inner.input or not comparable)


def _call_from_span(span: ObserveSpan) -> ToolCall:
    call_id = span.metadata.get("gen_ai.tool.call.id", span.metadata.get("tool.id"))
    return ToolCall.parse(
        span.name,
        span.input,
        result=span.output,
        error=span.error,
        id=call_id if isinstance(call_id, str) else None,
        started_at=span.started_at,
        duration_ms=span.duration_ms,
    )


def _requested_calls(calls: list[LLMSpan]) -> Iterator[ToolCall]:
    """Each tool call that the model requested, with its result from a later model call."""
    results: Mapping[str, str] = {
        message.tool_call_id: message.content
        for call in calls
        for message in call.input_messages
        if isinstance(message, ToolResultMessage) and message.tool_call_id is not None
    }
    for call in calls:
        for message in call.output_messages:
            for request in message.tool_calls if isinstance(message, AssistantMessage) else ():
                result = results.get(request.id or "")
                yield replace(request, result=to_json(parse_json_or_keep(result)), started_at=call.ended_at)
