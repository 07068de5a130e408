"""Where spans go: to the captures of their context, and to listeners that were added for the whole process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextvars import ContextVar

from proctor.tracing.spans import ObservationNode, Span, build_tree

SpanListener = Callable[[Span], None]
_LISTENERS: list[SpanListener] = []


def add_span_listener(listener: SpanListener) -> None:
    """Call `listener` with every span of the process that is not suppressed; it must return at once."""
    _LISTENERS.append(listener)


def remove_span_listener(listener: SpanListener) -> None:
    """Call `listener` no more."""
    _LISTENERS.remove(listener)


class _Done:
    """Something to await that has happened already; a coroutine would warn where it is not awaited."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


_DONE = _Done()


class MemoryTraceHandler:
    """Keeps the spans of one capture; those that end after the capture are not part of it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._open = True
        self._lock = threading.Lock()

    def on_llm(self, span: Span) -> Awaitable[None]:
        """Keep a span at once; what it returns may be awaited, as pixie's users do, and need not be."""
        self.add(span)
        return _DONE

    def on_observe(self, span: Span) -> Awaitable[None]:
        """The same for a step of the application."""
        self.add(span)
        return _DONE

    def add(self, span: Span) -> None:
        with self._lock:
            if self._open:
                self.spans.append(span)

    def close(self) -> None:
        with self._lock:
            self._open = False

    def get_trace(self, trace_id: str) -> list[ObservationNode]:
        """The tree of one trace; nothing if it was not seen."""
        return build_tree([span for span in list(self.spans) if span.trace_id == trace_id])

    def get_all_traces(self) -> dict[str, list[ObservationNode]]:
        """The tree of each trace, by its id, in the order in which they were first seen."""
        by_trace: dict[str, list[Span]] = {}
        for span in list(self.spans):
            by_trace.setdefault(span.trace_id, []).append(span)
        return {trace_id: build_tree(spans) for trace_id, spans in by_trace.items()}

    def clear(self) -> None:
        with self._lock:
            self.spans.clear()


class TraceScope:
    """Where the spans that begin in one context go."""

    __slots__ = ("__weakref__", "captures", "silent")

    def __init__(self, captures: tuple[MemoryTraceHandler, ...], silent: bool) -> None:
        self.captures = captures
        self.silent = silent
        """Whether the listeners of the process are left out."""


SCOPE: ContextVar[TraceScope | None] = ContextVar("proctor_trace_scope", default=None)


def is_captured(scope: TraceScope | None) -> bool:
    """Whether spans of this scope go anywhere; asked for every call of an observed function, so it is short."""
    if scope is None:
        return bool(_LISTENERS)
    return bool(scope.captures) or (not scope.silent and bool(_LISTENERS))


def deliver(scope: TraceScope | None, span: Span) -> None:
    """Hand a finished span to the captures of its scope and to the listeners."""
    if scope is not None:
        for handler in scope.captures:
            handler.add(span)
    if scope is None or not scope.silent:
        for listener in tuple(_LISTENERS):
            listener(span)


@contextlib.contextmanager
def suppress_tracing() -> Iterator[None]:
    """Keep what happens inside out of every trace: a judge's own calls are not the application's."""
    with in_scope(TraceScope((), silent=True)):
        yield


@contextlib.contextmanager
def in_scope(scope: TraceScope) -> Iterator[None]:
    token = SCOPE.set(scope)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a test fixture may be left in another context than it was entered in
            SCOPE.reset(token)
