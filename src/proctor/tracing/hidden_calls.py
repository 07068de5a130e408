"""Decides whether tool calls of a turn may be missing from what was recorded: "not observed" is not "not called".

Three things hint at calls that nobody saw:

- The agent called a model, and no span covers the request. Whatever tools the model asked for were run by the agent's
  own code. If every tool that the requests offer is marked with `@proctor.tool`, nothing is hidden.
- A span of a model call says that the model asked for tools, but not for which: the instrumentation leaves out the
  content of messages.
- A marked tool was called from a thread that belongs to no trial.

A span covers a request that was sent between its start and its end, if it has the answer of the model. Comparing the
number of requests and spans would be wrong: a client sends a request again after a rate limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from proctor.agents.reply import HiddenCalls
from proctor.agents.turn_recorder import ModelRequest
from proctor.tracing.instrumentation import install_advice
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, Span, tool_calls_of

MARK_TOOLS = "mark the tools with @proctor.tool"
_CARRY_CONTEXT = "start such threads with contextvars.copy_context().run, or use a thread pool"
_CLOCK_TOLERANCE = 0.005
"""Seconds by which the clocks of spans and requests may differ."""
_TOOL_REASONS = {"tool_calls", "tool_call", "tool_use", "function_call"}
"""Why a model stopped, if it asked for tools."""


def hidden_calls(
    requests: Sequence[ModelRequest], spans: Sequence[Span], marked: Collection[str], stray: Sequence[str] = ()
) -> HiddenCalls | None:
    """Why tool calls of a turn may be missing; `None` if nothing hints at that.

    `marked` are the names of the tools that are marked with `@proctor.tool`, and `stray` those that were called from a
    thread outside every trial.
    """
    visible = tuple(sorted(marked))
    if stray:
        return HiddenCalls(f"{stray[0]!r} was called from a thread that belongs to no trial", _CARRY_CONTEXT)
    unobserved = [request for request in requests if not _is_covered(request, spans)]
    if unobserved and not _are_marked(unobserved, marked):
        clients = list(dict.fromkeys(request.client for request in unobserved if request.client))
        through = f"through {' and '.join(clients)}" if clients else f"at {unobserved[0].address}"
        advice = install_advice(*clients)
        if not advice and all(request.is_stray for request in unobserved):
            reason = f"the agent called a model {through}, from a thread that belongs to no trial"
            return HiddenCalls(reason, _CARRY_CONTEXT, visible)
        reason = f"the agent called a model {through}, which nothing observes"
        return HiddenCalls(reason, f"{advice}, or {MARK_TOOLS}" if advice else MARK_TOOLS, visible)
    if any(map(_lacks_content, spans)) and not tool_calls_of(spans) and not marked:
        return HiddenCalls(
            "a span says that the model asked for tools, but not for which",
            f"let the instrumentation write messages into its spans, install the one of OpenInference, or {MARK_TOOLS}",
            visible,
        )
    return None


def _is_covered(request: ModelRequest, spans: Sequence[Span]) -> bool:
    """Whether a span tells what the model answered. Some clients report their calls without any messages."""
    has_tools = any(isinstance(span, ObserveSpan) and span.kind == "tool" for span in spans)
    return any(
        span.started_at - _CLOCK_TOLERANCE <= request.sent_at <= span.ended_at + _CLOCK_TOLERANCE
        for span in spans
        if isinstance(span, LLMSpan) and (span.output_messages or span.error_type or has_tools)
    )


def _are_marked(requests: Iterable[ModelRequest], marked: Collection[str]) -> bool:
    """Whether all tools that requests offer are marked. If a request does not say which, marking some is enough."""
    return bool(marked) and all(name in marked for request in requests for name in request.tools or ())


def _lacks_content(span: Span) -> bool:
    if not isinstance(span, LLMSpan) or not _TOOL_REASONS.intersection(span.finish_reasons):
        return False
    return not any(isinstance(message, AssistantMessage) and message.tool_calls for message in span.output_messages)
