"""pixie's handlers that see every span of the process: `add_handler`, `remove_handler`, `flush`.

Handlers run in a separate thread, because a slow or broken one must not affect the application.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import threading
import time
from collections import deque
from typing import Any

from proctor.base.errors import one_line
from proctor.tracing.instrumentation import listen_to_opentelemetry
from proctor.tracing.scope import add_span_listener, remove_span_listener
from proctor.tracing.spans import LLMSpan, Span

MAX_QUEUE = 100_000
"""The maximum number of spans waiting for a handler; further ones are dropped with a warning."""


class SpanDispatcher:
    """Passes spans to handlers in one thread, which starts with the first span.

    Async handlers share an event loop in that thread.
    """

    def __init__(self) -> None:
        self.handlers: tuple[Any, ...] = ()
        self.dropped = 0
        self._queue: deque[tuple[Span, tuple[Any, ...]]] = deque()
        self._condition = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None

    def add(self, handler: Any) -> None:
        with self._condition:
            if not self.handlers:
                add_span_listener(self.enqueue)
            self.handlers = (*self.handlers, handler)

    def remove(self, handler: Any) -> None:
        with self._condition:
            if not any(other is handler for other in self.handlers):
                raise ValueError(f"{handler!r} was not added as a handler")
            self.handlers = tuple(other for other in self.handlers if other is not handler)
            if not self.handlers:
                remove_span_listener(self.enqueue)

    def enqueue(self, span: Span) -> None:
        if threading.current_thread() is self._thread:
            return  # spans of a handler's own work would never end
        with self._condition:
            if len(self._queue) >= MAX_QUEUE:
                self._drop()
                return
            self._queue.append((span, self.handlers))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="proctor-spans", daemon=True)
                self._thread.start()
                atexit.register(self.flush, 5.0)
            self._condition.notify_all()

    def _drop(self) -> None:
        if self.dropped == 0:
            _warn(f"handlers are too slow: {MAX_QUEUE} spans are waiting, and further ones are dropped")
        self.dropped += 1

    def flush(self, timeout_seconds: float) -> bool:
        end = time.monotonic() + timeout_seconds
        with self._condition:
            while self._queue or self._busy:
                remaining = end - time.monotonic()
                if remaining <= 0:
                    return False
                self._condition.wait(remaining)
        return True

    def _work(self) -> None:
        loop = asyncio.new_event_loop()
        while True:
            with self._condition:
                while not self._queue:
                    self._condition.wait()
                span, handlers = self._queue.popleft()
                self._busy = True
            for handler in handlers:
                _call_handler(handler, span, loop)
            with self._condition:
                self._busy = False
                self._condition.notify_all()


def _call_handler(handler: Any, span: Span, loop: Any) -> None:
    try:
        method = getattr(handler, "on_llm" if isinstance(span, LLMSpan) else "on_observe", None)
        result = None if method is None else method(span)
        if inspect.isawaitable(result):
            loop.run_until_complete(_await(result))
    except BaseException as error:
        _warn(f"{type(handler).__name__} failed on a span: {one_line(error)}")


def _warn(message: str) -> None:
    logging.getLogger("proctor.tracing").warning(message)


async def _await(result: Any) -> Any:
    return await result


DISPATCHER = SpanDispatcher()


def add_handler(handler: Any) -> None:
    """Call `handler` with every span of the process; its `on_llm(span)` and `on_observe(span)` may be async."""
    listen_to_opentelemetry()
    DISPATCHER.add(handler)


def remove_handler(handler: Any) -> None:
    """Remove a handler; raises `ValueError` if it was never added."""
    DISPATCHER.remove(handler)


def flush(timeout_seconds: float = 5.0) -> bool:
    """Wait until the handlers have seen every finished span, at most `timeout_seconds`; return whether they have."""
    return DISPATCHER.flush(timeout_seconds)
