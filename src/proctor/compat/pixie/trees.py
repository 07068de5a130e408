"""pixie's `ObservationNode` and `build_tree`: the engine's, printed as pixie prints them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from proctor.compat.pixie.models import AnyOfEngine
from proctor.tracing import spans as engine
from proctor.tracing.spans import AssistantMessage, LLMSpan, Message, ObserveSpan, Span, ToolResultMessage


class ObservationNode(engine.ObservationNode, metaclass=AnyOfEngine):
    """A span with the spans inside it, in the order in which they began."""

    __slots__ = ()
    engine_class = engine.ObservationNode

    def to_text(self, indent: int = 0, *, max_chars: int | None = None) -> str:
        """The tree as text: two spaces per level, with all messages of model calls."""
        lines: list[str] = []
        for depth, node in self.walk():
            pad = "  " * (indent + depth)
            describe = _call_lines(node.span) if isinstance(node.span, LLMSpan) else _step_lines(node.span)
            lines += [pad + line for line in describe]
        return "\n".join(lines)


def build_tree(spans: Iterable[Span]) -> list[ObservationNode]:
    """The roots of the trees that `spans` form, sorted by start. A span whose parent is missing is a root."""
    return [_as_pixie_node(root) for root in engine.build_tree(spans)]


def _as_pixie_node(root: engine.ObservationNode) -> ObservationNode:
    """The same tree of pixie's nodes; without recursion, for very deep trees."""
    top = ObservationNode(root.span, [])
    waiting = [(root, top)]
    while waiting:
        node, copy = waiting.pop()
        copies = [ObservationNode(child.span, []) for child in node.children]
        copy.children.extend(copies)
        waiting += zip(node.children, copies, strict=True)
    return top


def _step_lines(span: ObserveSpan) -> Iterator[str]:
    yield f"{span.name or engine.UNNAMED} [{span.duration_ms:.0f}ms]"
    if span.input is not None:
        yield f"  input: {_value(span.input)}"
    if span.output is not None:
        yield f"  output: {_value(span.output)}"
    if span.error is not None:
        yield f"  <e>{span.error}</e>"
    if span.metadata:
        yield f"  metadata: {json.dumps(dict(span.metadata), default=str)}"


def _call_lines(span: LLMSpan) -> Iterator[str]:
    yield f"{span.request_model} [{span.provider}, {span.duration_ms:.0f}ms]"
    for title, messages in (("input_messages", span.input_messages), ("output", span.output_messages)):
        if messages:
            yield f"  {title}:"
            yield from (f"    {_message(message)}" for message in messages)
    if span.input_tokens or span.output_tokens:
        cached = {"cache read": span.cache_read_tokens, "cache creation": span.cache_creation_tokens}
        notes = "".join(f" ({count} {what})" for what, count in cached.items() if count)
        yield f"  tokens: {span.input_tokens or 0} in / {span.output_tokens or 0} out{notes}"
    if span.error_type is not None:
        yield f"  <e>{span.error_type}</e>"
    if span.tool_definitions:
        yield f"  tools: [{', '.join(tool.name for tool in span.tool_definitions)}]"


def _message(message: Message) -> str:
    role = f"tool({message.tool_name})" if isinstance(message, ToolResultMessage) else message.role
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    names = f" [tool_calls: {', '.join(call.name for call in calls)}]" if calls else ""
    return f"{role}: {message.text}{names}"


def _value(value: Any) -> str:
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)
