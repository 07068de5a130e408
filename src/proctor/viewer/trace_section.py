"""The trace of a trial as a waterfall: what ran when, for how long, and what a model was told and said."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from proctor.reporting.html.escaping import block, code, escape, inline, percent, pretty
from proctor.reporting.wording import counted, duration, money
from proctor.tracing.spans import LLMSpan, Message, ObservationNode, Span

MOST_SPANS = 500
TEXT = 5_000
MOST_MESSAGES = 60


def write_trace(roots: Sequence[ObservationNode], out: StringIO) -> None:
    """A row for each span, indented by its depth, its bar where it lay in time; opened, it shows in and out."""
    spans = [(depth, node.span) for root in roots for depth, node in root.walk()]
    if not spans:
        return
    start = min(span.started_at for _, span in spans)
    whole = max(0.001, max(span.ended_at for _, span in spans) - start)
    out.write(f'<section id="trace">\n<h2>Trace <small>{counted(len(spans), "span")}</small></h2>\n')
    out.write('<div class="waterfall">\n')
    for depth, span in spans[:MOST_SPANS]:
        _write_span(depth, span, start, whole, out)
    if len(spans) > MOST_SPANS:
        out.write(f'<p class="cut">And {counted(len(spans) - MOST_SPANS, "more span")}.</p>\n')
    out.write("</div>\n</section>\n")


def _write_span(depth: int, span: Span, start: float, whole: float, out: StringIO) -> None:
    model = isinstance(span, LLMSpan)
    kind = "model" if model else getattr(span, "kind", None) or "step"
    place = (
        f"--at:{percent((span.started_at - start) / whole)};--long:{percent((span.ended_at - span.started_at) / whole)}"
    )
    failed = ' <span class="why"><span aria-hidden="true">✗</span> failed</span>' if span.error else ""
    out.write(
        f'<details class="span{" model" if model else ""}{" failed" if span.error else ""}">'
        f'<summary><span class="name" style="--depth:{min(depth, 12)}"><small>{inline(kind, 30)}</small> '
        f'{inline(span.name, 80)}{failed}</span><span class="lane" style="{place}" aria-hidden="true"><i></i></span>'
        f'<span class="took">{_tokens(span)}{_took(span.duration_ms)}</span></summary>\n<div class="inside">\n'
    )
    if span.error:
        out.write(block(span.error, TEXT, "failed"))
    if isinstance(span, LLMSpan):
        _write_messages("Told", span.input_messages, out)
        _write_messages("Said", span.output_messages, out)
    else:
        for title, value in (("Input", span.input), ("Output", span.output)):
            if value is not None:
                out.write(f'<p class="label">{title}</p>\n{block(pretty(value), TEXT)}')
    out.write("</div></details>\n")


def _took(milliseconds: float) -> str:
    return f"{milliseconds:.3g} ms" if 0 <= milliseconds < 1000 else duration(milliseconds)


def _tokens(span: Span) -> str:
    if not isinstance(span, LLMSpan) or (span.input_tokens is None and span.output_tokens is None):
        return ""
    known = (
        f"{count:,} {way}"
        for count, way in ((span.input_tokens, "in"), (span.output_tokens, "out"))
        if count is not None
    )
    cost = _cost(span)
    told = ", ".join(known) + ("" if cost is None else f" · {money(cost, estimated=True)}")
    return f"<small>{escape(told)}</small> "


def _cost(span: LLMSpan) -> float | None:
    """By the price list; a trace tells tokens and no cost."""
    model = span.response_model or span.request_model
    if model is None or span.input_tokens is None or span.output_tokens is None:
        return None
    from proctor.agents.agent import price

    return price(model, span.input_tokens, span.output_tokens)


def _write_messages(title: str, messages: Sequence[Message], out: StringIO) -> None:
    if messages:
        out.write(f'<p class="label">{title}</p>\n')
    for message in messages[-MOST_MESSAGES:]:
        out.write(f'<div class="message {message.role}"><p class="label">{escape(message.role)}</p>\n')
        if message.text:
            out.write(block(message.text, TEXT))
        for call in getattr(message, "tool_calls", ()):
            out.write(f"<p>{code(call.name)} {code(pretty(dict(call.arguments)), TEXT)}</p>\n")
        out.write("</div>\n")
