"""Who sees the spans: each capture those of its own context, and handlers that were added for everything."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from proctor.tracing.delivery import DELIVERY

if TYPE_CHECKING:  # a run in which nothing is observed does without spans
    from proctor.tracing.spans import ObservationNode, Span


class MemoryTraceHandler:
    """Keeps the spans of one capture; those that end after the capture are not part of it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._open = True
        self._lock = threading.Lock()

    def on_llm(self, span: Span) -> None:
        self.add(span)

    def on_observe(self, span: Span) -> None:
        self.add(span)

    def add(self, span: Span) -> None:
        with self._lock:
            if self._open:
                self.spans.append(span)

    def close(self) -> None:
        with self._lock:
            self._open = False

    def get_trace(self, trace_id: str) -> list[ObservationNode]:
        """The tree of one trace; nothing if it was not seen."""
        from proctor.tracing.spans import build_tree

        return build_tree([span for span in list(self.spans) if span.trace_id == trace_id])

    def get_all_traces(self) -> dict[str, list[ObservationNode]]:
        """The tree of each trace, by its id, in the order in which they were first seen."""
        from proctor.tracing.spans import build_tree

        by_trace: dict[str, list[Span]] = {}
        for span in list(self.spans):
            by_trace.setdefault(span.trace_id, []).append(span)
        return {trace_id: build_tree(spans) for trace_id, spans in by_trace.items()}

    def clear(self) -> None:
        with self._lock:
            self.spans.clear()


class Scope:
    """Where the spans that begin in one context go."""

    __slots__ = ("__weakref__", "captures", "muted")

    def __init__(self, captures: tuple[MemoryTraceHandler, ...], muted: bool) -> None:
        self.captures = captures
        self.muted = muted
        """Whether handlers for everything are to be spared."""


SCOPE: ContextVar[Scope | None] = ContextVar("proctor_trace_scope", default=None)


def wanted(scope: Scope | None) -> bool:
    """Whether anybody looks at spans of this scope; asked for every call of an observed function, so it is short."""
    if scope is None:
        return bool(DELIVERY.handlers)
    return bool(scope.captures) or (not scope.muted and bool(DELIVERY.handlers))


def deliver(scope: Scope | None, span: Span) -> None:
    """Hand a finished span to everybody who looks at its scope."""
    if scope is not None:
        for handler in scope.captures:
            handler.add(span)
    if DELIVERY.handlers and (scope is None or not scope.muted):
        DELIVERY.put(span)


@contextlib.contextmanager
def capture_traces() -> Iterator[MemoryTraceHandler]:
    """Collect the spans that begin inside: here, in tasks begun here, and in threads that carry this context."""
    listen_to_opentelemetry()
    with capturing() as handler:
        yield handler


@contextlib.contextmanager
def capturing() -> Iterator[MemoryTraceHandler]:
    """Like `capture_traces`, but an OpenTelemetry that nobody has loaded is left alone: loading it takes its time."""
    if "opentelemetry.trace" in sys.modules:
        listen_to_opentelemetry()
    handler = MemoryTraceHandler()
    outer = SCOPE.get()
    captures, muted = ((), False) if outer is None else (outer.captures, outer.muted)
    try:
        with _in_scope(Scope((*captures, handler), muted)):
            yield handler
    finally:
        handler.close()


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """Keep what happens inside out of every trace: a judge's own calls are not the application's."""
    with _in_scope(Scope((), muted=True)):
        yield


@contextlib.contextmanager
def _in_scope(scope: Scope) -> Iterator[None]:
    token = SCOPE.set(scope)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a test fixture may be left in another context than it was entered in
            SCOPE.reset(token)


def listen_to_opentelemetry() -> bool:
    """Whether OpenTelemetry's spans are seen from now on; they cannot be where its SDK is not installed."""
    if importlib.util.find_spec("opentelemetry") is None or importlib.util.find_spec("opentelemetry.sdk") is None:
        return False
    try:
        from proctor.tracing import otel
    except ImportError:  # a version that is not known here is as good as none
        return False
    return otel.attach()


def add_handler(handler: Any) -> None:
    """Show `handler` every span of the process; its `on_llm(span)` and `on_observe(span)` may be async."""
    listen_to_opentelemetry()
    DELIVERY.add(handler)


def remove_handler(handler: Any) -> None:
    """Show `handler` no more; `ValueError` if it was never added."""
    DELIVERY.remove(handler)


def flush(timeout_seconds: float = 5.0) -> bool:
    """Wait until the handlers have seen every finished span, at most so long; whether they have."""
    return DELIVERY.flush(timeout_seconds)
