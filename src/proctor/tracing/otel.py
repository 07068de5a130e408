"""Collects the spans of OpenTelemetry, and makes observations spans of it. Imported only if its SDK is installed.

Spans reach a capture in two ways. Instrumentations that Proctor enables report to Proctor's own tracer provider, which
exports nothing. Spans that the application creates go to its own provider, to which a listener is added.

Proctor never sets the global provider. OpenTelemetry accepts one per process, so that would keep the application's out,
and its exporters would get nothing. An application may set its provider at any time, so each capture looks for it
again.

The listener delivers a span to the capture in which the span began. Span ids do not identify it, because an application
may seed its random numbers, so spans are identified by their context object.
"""

from __future__ import annotations

import contextlib
import functools
import json
import threading
import weakref
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from proctor.base.json_data import Json, to_json
from proctor.tracing.scope import SCOPE, TraceScope, deliver, is_captured
from proctor.tracing.semantic_conventions import OtelSpan, read_span

TRACER = "proctor"
_LOCK = threading.Lock()
_ATTACHED_PROVIDERS: weakref.WeakSet[Any] = weakref.WeakSet()


def attach() -> None:
    """Collect the spans of the application's provider from now on, if it has one that accepts listeners."""
    provider = trace.get_tracer_provider()
    if provider in _ATTACHED_PROVIDERS or isinstance(provider, trace.ProxyTracerProvider):
        return
    with _LOCK:
        listen = getattr(provider, "add_span_processor", None)
        if listen is not None and provider not in _ATTACHED_PROVIDERS:
            listen(_LISTENER)
            _ATTACHED_PROVIDERS.add(provider)


@functools.cache
def own_provider() -> TracerProvider:
    """The provider for instrumentations that Proctor enables; it records every span, whatever the sampling is.

    Instrumentations write each message of a conversation into attributes. By default a span has 128 of them, and
    OpenTelemetry drops the rest with a warning for each.
    """
    limits = SpanLimits(max_attributes=SpanLimits.UNSET, max_span_attributes=SpanLimits.UNSET)
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False, span_limits=limits)
    provider.add_span_processor(_LISTENER)
    return provider


class _Listener(SpanProcessor):
    """Delivers each finished span to the scope in which it began."""

    def __init__(self) -> None:
        self._scopes: dict[int, weakref.ref[TraceScope]] = {}
        """By `id` of the span's context: span ids are not unique if an application seeds its random numbers.

        The references are weak, because a capture that nobody holds any more needs no spans.
        """

    def on_start(self, span: SdkSpan, parent_context: otel_context.Context | None = None) -> None:
        key = id(span.get_span_context())
        scope = SCOPE.get() or self._scope_of(trace.get_current_span(parent_context))
        if scope is not None:
            self._scopes[key] = weakref.ref(scope)
        else:
            self._scopes.pop(key, None)

    def _scope_of(self, parent: trace.Span) -> TraceScope | None:
        """The scope of the parent span: an application may pass on OpenTelemetry's context without ours."""
        reference = self._scopes.get(id(parent.get_span_context()))
        return None if reference is None else reference()

    def on_end(self, span: ReadableSpan) -> None:
        reference = self._scopes.pop(id(span.get_span_context()), None)
        scope = None if reference is None else reference()
        if (reference is not None and scope is None) or not is_captured(scope):
            return
        if span.instrumentation_scope is None or span.instrumentation_scope.name != TRACER:
            with contextlib.suppress(Exception):  # a span that cannot be read must not break the application
                deliver(scope, read_span(_read_sdk_span(span)))


_LISTENER = _Listener()


def _read_sdk_span(span: ReadableSpan) -> OtelSpan:
    context = span.get_span_context()
    started, ended = span.start_time or 0, span.end_time or span.start_time or 0
    return OtelSpan(
        span.name,
        trace.format_span_id(context.span_id if context else 0),
        trace.format_trace_id(context.trace_id if context else 0),
        None if span.parent is None else trace.format_span_id(span.parent.span_id),
        started / 1e9,
        ended / 1e9,
        to_json(span.attributes or {}),
        tuple((event.name, to_json(event.attributes or {})) for event in span.events),
        _error(span),
    )


def _error(span: ReadableSpan) -> str | None:
    if span.status.status_code is not trace.StatusCode.ERROR:
        return None
    return span.status.description or "error"


class ObservationSpan:
    """An observation as a span of OpenTelemetry, which the application's exporters see too."""

    def __init__(self, span: trace.Span, parent: trace.SpanContext) -> None:
        self._span = span
        own = span.get_span_context()
        parent_id = trace.format_span_id(parent.span_id) if parent.is_valid else None
        self.ids = (trace.format_trace_id(own.trace_id), trace.format_span_id(own.span_id), parent_id)

    @contextlib.contextmanager
    def as_current(self) -> Iterator[None]:
        with trace.use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield

    def end(self, output: Json, metadata: dict[str, Json], error: BaseException | None, message: str | None) -> None:
        if output is not None:
            self._span.set_attributes(_value_attributes("output", output))
        if metadata:
            self._span.set_attribute("metadata", json.dumps(metadata))
        if error is not None:
            with contextlib.suppress(Exception):  # an exception that cannot be formatted is still an error
                self._span.record_exception(error)
            self._span.set_status(trace.StatusCode.ERROR, message)
        self._span.end()


def begin(name: str, kind: str | None, value: Json) -> ObservationSpan | None:
    """Start a span of the application's provider, so that its exporters see it, or of ours; `value` is its input."""
    parent = trace.get_current_span().get_span_context()
    provider = trace.get_tracer_provider()
    span = provider.get_tracer(TRACER).start_span(name) if provider in _ATTACHED_PROVIDERS else None
    if span is None or not span.is_recording():
        span = own_provider().get_tracer(TRACER).start_span(name)
    if not span.is_recording():  # the SDK is disabled by an environment variable
        return None
    span.set_attribute("openinference.span.kind", (kind or "chain").upper())
    if value is not None:
        span.set_attributes(_value_attributes("input", value))
    return ObservationSpan(span, parent)


def _value_attributes(side: str, value: Json) -> dict[str, str]:
    if isinstance(value, str):
        text = value.encode("utf-8", "replace").decode()
        return {f"{side}.value": text, f"{side}.mime_type": "text/plain"}
    return {f"{side}.value": json.dumps(value), f"{side}.mime_type": "application/json"}


def enable_llm_tracing() -> list[str]:
    """Enable every installed OpenInference instrumentation that supports its library; returns their names."""
    attach()
    return sorted(name for name, entry in _instrumentations().items() if _enable(entry) is not None)


def instrument(name: str) -> Callable[[], None] | None:
    """Enable the OpenInference instrumentation `name`; returns a function that disables it, or `None` if it fails.

    An instrumentation that the application has enabled is left alone.
    """
    entry = _instrumentations().get(name)
    return None if entry is None else _enable(entry)


def _instrumentations() -> dict[str, Any]:
    prefix = "openinference.instrumentation."
    entries = [entry for entry in entry_points(group="opentelemetry_instrumentor") if entry.value.startswith(prefix)]
    return {entry.value.removeprefix(prefix).partition(":")[0]: entry for entry in entries}


def _enable(entry: Any) -> Callable[[], None] | None:
    with contextlib.suppress(Exception):  # it is for another version of its library, which is then not traced
        instrumentor = entry.load()()
        if instrumentor.is_instrumented_by_opentelemetry:
            return lambda: None
        instrumentor.instrument(tracer_provider=own_provider())
        if instrumentor.is_instrumented_by_opentelemetry:
            return functools.partial(_disable, instrumentor)
    return None


def _disable(instrumentor: Any) -> None:
    instrumentor.uninstrument()
