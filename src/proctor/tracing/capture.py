"""Where spans go: to the captures of their context, and to handlers that were added for the whole process.

Handlers run in a thread of their own, because a slow or broken one must not affect the application.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import inspect
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Generator, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from proctor.base.json_data import Json, plain
from proctor.base.references import describe

if TYPE_CHECKING:  # a run in which nothing is observed does not load spans
    from proctor.tracing.spans import ObservationNode, Span

LONGEST_QUEUE = 100_000
"""Spans that wait for a handler; what comes on top is lost, and said to be."""


class Delivery:
    """One thread that begins with the first span for a handler, and an event loop for handlers that are async."""

    def __init__(self) -> None:
        self.handlers: tuple[Any, ...] = ()
        self.dropped = 0
        self._waiting: deque[tuple[Span, tuple[Any, ...]]] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None

    def add(self, handler: Any) -> None:
        with self._changed:
            self.handlers = (*self.handlers, handler)

    def remove(self, handler: Any) -> None:
        with self._changed:
            if not any(known is handler for known in self.handlers):
                raise ValueError(f"{handler!r} was not added as a handler")
            self.handlers = tuple(known for known in self.handlers if known is not handler)

    def put(self, span: Span) -> None:
        if threading.current_thread() is self._thread:
            return  # a handler that does something observable would never come to an end
        with self._changed:
            if len(self._waiting) >= LONGEST_QUEUE:
                self._drop()
                return
            self._waiting.append((span, self.handlers))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="proctor-spans", daemon=True)
                self._thread.start()
                atexit.register(self.flush, 5.0)
            self._changed.notify_all()

    def _drop(self) -> None:
        if self.dropped == 0:
            _warn(f"handlers are too slow: {LONGEST_QUEUE} spans wait for them, and further ones are lost")
        self.dropped += 1

    def flush(self, timeout_seconds: float) -> bool:
        end = time.monotonic() + timeout_seconds
        with self._changed:
            while self._waiting or self._busy:
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def _work(self) -> None:
        import asyncio

        loop = asyncio.new_event_loop()
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                span, handlers = self._waiting.popleft()
                self._busy = True
            for handler in handlers:
                _show(handler, span, loop)
            with self._changed:
                self._busy = False
                self._changed.notify_all()


def _show(handler: Any, span: Span, loop: Any) -> None:
    from proctor.tracing.spans import LLMSpan

    try:
        method = getattr(handler, "on_llm" if isinstance(span, LLMSpan) else "on_observe", None)
        result = None if method is None else method(span)
        if inspect.isawaitable(result):
            loop.run_until_complete(_awaited(result))
    except BaseException as error:
        _warn(f"{type(handler).__name__} failed on a span: {describe(error)}")


def _warn(message: str) -> None:
    import logging

    logging.getLogger("proctor.tracing").warning(message)


async def _awaited(result: Any) -> Any:
    return await result


DELIVERY = Delivery()


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
        """Whether the handlers of the process are left out."""


SCOPE: ContextVar[Scope | None] = ContextVar("proctor_trace_scope", default=None)


def wanted(scope: Scope | None) -> bool:
    """Whether spans of this scope go anywhere; asked for every call of an observed function, so it is short."""
    if scope is None:
        return bool(DELIVERY.handlers)
    return bool(scope.captures) or (not scope.muted and bool(DELIVERY.handlers))


def deliver(scope: Scope | None, span: Span) -> None:
    """Hand a finished span to the captures of its scope and to the handlers."""
    if scope is not None:
        for handler in scope.captures:
            handler.add(span)
    if DELIVERY.handlers and (scope is None or not scope.muted):
        DELIVERY.put(span)


@contextlib.contextmanager
def capture_traces() -> Iterator[MemoryTraceHandler]:
    """Collect the spans that begin inside, also in tasks and threads that are started there.

    Model clients report their calls meanwhile, where an instrumentation of them is installed.
    """
    from proctor.tracing.watching import carry_context_into_threads, instrumenting

    listen_to_opentelemetry()
    with instrumenting(), carry_context_into_threads(), capturing() as handler:
        yield handler


@contextlib.contextmanager
def capturing() -> Iterator[MemoryTraceHandler]:
    """Like `capture_traces`, but OpenTelemetry is not loaded for it, since that takes time."""
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


def joined(chunks: list[Any]) -> Json:
    """A finished stream as one value: chunks of text as one text, anything else as a list."""
    return "".join(chunks) if all(isinstance(chunk, str) for chunk in chunks) else plain(chunks)


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
