"""What a trace says of an answer as a whole: the tokens it took and the tools it used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from proctor.agents.agent import ToolCall, Usage
from proctor.base.json_data import plain
from proctor.tracing.model_messages import parsed
from proctor.tracing.spans import (
    AssistantMessage,
    LLMSpan,
    ObservationNode,
    ObserveSpan,
    Span,
    ToolResultMessage,
    build_tree,
)


def usage_of(spans: Iterable[Span]) -> Usage | None:
    """The tokens of all model calls; `None` if there was none. A sum is known only if each of its parts is."""
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
    return total if not models or total.total_tokens is None else _priced_apart(calls, total)


def _priced_apart(calls: Iterable[LLMSpan], total: Usage) -> Usage:
    """The total of several models; its cost is known only if the price of each is."""
    from proctor.agents.prices import price

    costs = [
        price(call.response_model or call.request_model or "", call.input_tokens or 0, call.output_tokens or 0)
        for call in calls
    ]
    known = [cost for cost in costs if cost is not None]
    return replace(total, cost_usd=sum(known), estimated=True) if len(known) == len(costs) else total


def tool_calls_of(spans: Sequence[Span]) -> tuple[ToolCall, ...]:
    """The tools that were used: as steps of the trace if there are any, else as the model asked for them."""
    used = sorted(_used(build_tree(spans)), key=lambda span: span.started_at)
    return tuple(_executed(span) for span in used) or tuple(_asked_for(list(_outermost_calls(build_tree(spans)))))


def _total(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _outermost_calls(roots: Sequence[ObservationNode]) -> Iterator[LLMSpan]:
    """Model calls by start; one inside another is the same call, seen by a second library."""
    found: list[LLMSpan] = []
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if isinstance(node.span, LLMSpan):
            found.append(node.span)
        else:
            waiting += node.children
    yield from sorted(found, key=lambda span: span.started_at)


def _used(roots: Sequence[ObservationNode]) -> Iterator[ObserveSpan]:
    """Tools as steps; one inside another of its name is the same call, seen by a framework and by `@tool`."""
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
    """A tool that calls itself does so with other arguments; libraries write the same ones each in its own way."""
    given, taken = outer.input, inner.input
    comparable = isinstance(given, Mapping) and isinstance(taken, Mapping)
    return outer.name == inner.name and (given == taken or not comparable)


def _executed(span: ObserveSpan) -> ToolCall:
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


def _asked_for(calls: list[LLMSpan]) -> Iterator[ToolCall]:
    """Each call the model asked for, with the result that a later request carries."""
    results: Mapping[str, str] = {
        message.tool_call_id: message.content
        for call in calls
        for message in call.input_messages
        if isinstance(message, ToolResultMessage) and message.tool_call_id is not None
    }
    for call in calls:
        for message in call.output_messages:
            for asked in message.tool_calls if isinstance(message, AssistantMessage) else ():
                result = results.get(asked.id or "")
                yield replace(asked, result=plain(parsed(result)), started_at=call.ended_at)
