"""Delivers spans to the captures of their context, and to listeners of the whole process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextvars import ContextVar
from typing import Any, Never

from proctor.tracing.spans import ObservationNode, Span, build_tree

SpanListener = Callable[[Span], None]
_LISTENERS: list[SpanListener] = []


def add_span_listener(listener: SpanListener) -> None:
    """Call `listener` with every span of the process that is not suppressed; it must return quickly."""
    _LISTENERS.append(listener)


def remove_span_listener(listener: SpanListener) -> None:
    """Stop calling `listener`."""
    _LISTENERS.remove(listener)


class _Done(Coroutine[None, None, None]):
    """A coroutine that is done already, also for `asyncio.run`. One of an `async def` warns if it is not awaited."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()

    def send(self, value: None) -> Never:
        raise StopIteration

    def throw(self, typ: Any, val: Any = None, tb: Any = None) -> Never:
        raise typ

    def close(self) -> None:
        return


_DONE = _Done()


class MemoryTraceHandler:
    """The spans of one capture; a span that ends after the capture is not part of it."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._open = True
        self._lock = threading.Lock()

    def on_llm(self, span: Span) -> Awaitable[None]:
        """Add a span of a model call. The result may be awaited, as pixie's users do, but need not be."""
        self.add(span)
        return _DONE

    def on_observe(self, span: Span) -> Awaitable[None]:
        """Add a span of a step of the application, like `on_llm`."""
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
        """The tree of one trace; empty if there are no spans of it."""
        return build_tree([span for span in list(self.spans) if span.trace_id == trace_id])

    def get_all_traces(self) -> dict[str, list[ObservationNode]]:
        """The tree of each trace by its id, in the order of their first spans."""
        by_trace: dict[str, list[Span]] = {}
        for span in list(self.spans):
            by_trace.setdefault(span.trace_id, []).append(span)
        return {trace_id: build_tree(spans) for trace_id, spans in by_trace.items()}

    def clear(self) -> None:
        with self._lock:
            self.spans.clear()


class TraceScope:
    """The receivers of the spans that begin in one context."""

    __slots__ = ("__weakref__", "captures", "silent")

    def __init__(self, captures: tuple[MemoryTraceHandler, ...], silent: bool) -> None:
        self.captures = captures
        self.silent = silent
        """Whether spans are kept from the listeners of the process."""


SCOPE: ContextVar[TraceScope | None] = ContextVar("proctor_trace_scope", default=None)


def is_captured(scope: TraceScope | None) -> bool:
    """Whether anything receives the spans of this scope. Every call of an observed function asks, so this is short."""
    if scope is None:
        return bool(_LISTENERS)
    return bool(scope.captures) or (not scope.silent and bool(_LISTENERS))


def deliver(scope: TraceScope | None, span: Span) -> None:
    """Pass a finished span to the captures of its scope and to the listeners."""
    if scope is not None:
        for handler in scope.captures:
            handler.add(span)
    if scope is None or not scope.silent:
        for listener in tuple(_LISTENERS):
            listener(span)


@contextlib.contextmanager
def suppress_tracing() -> Iterator[None]:
    """Keep spans that begin in the block out of every trace: the calls of a judge are not the application's."""
    with in_scope(TraceScope((), silent=True)):
        yield


@contextlib.contextmanager
def in_scope(scope: TraceScope) -> Iterator[None]:
    token = SCOPE.set(scope)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # pytest may leave a fixture in another context than it entered it in
            SCOPE.reset(token)
