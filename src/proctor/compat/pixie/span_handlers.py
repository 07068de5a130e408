"""Handlers that see every span of the process, as pixie documents them: `add_handler`, `remove_handler`, `flush`.

Handlers run in a thread of their own, because a slow or broken one must not affect the application.
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

LONGEST_QUEUE = 100_000
"""Spans that wait for a handler; what comes on top is lost, and said to be."""


class SpanDispatcher:
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
            if not self.handlers:
                add_span_listener(self.put)
            self.handlers = (*self.handlers, handler)

    def remove(self, handler: Any) -> None:
        with self._changed:
            if not any(known is handler for known in self.handlers):
                raise ValueError(f"{handler!r} was not added as a handler")
            self.handlers = tuple(known for known in self.handlers if known is not handler)
            if not self.handlers:
                remove_span_listener(self.put)

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
    try:
        method = getattr(handler, "on_llm" if isinstance(span, LLMSpan) else "on_observe", None)
        result = None if method is None else method(span)
        if inspect.isawaitable(result):
            loop.run_until_complete(_awaited(result))
    except BaseException as error:
        _warn(f"{type(handler).__name__} failed on a span: {one_line(error)}")


def _warn(message: str) -> None:
    logging.getLogger("proctor.tracing").warning(message)


async def _awaited(result: Any) -> Any:
    return await result


DISPATCHER = SpanDispatcher()


def add_handler(handler: Any) -> None:
    """Show `handler` every span of the process; its `on_llm(span)` and `on_observe(span)` may be async."""
    listen_to_opentelemetry()
    DISPATCHER.add(handler)


def remove_handler(handler: Any) -> None:
    """Show `handler` no more; `ValueError` if it was never added."""
    DISPATCHER.remove(handler)


def flush(timeout_seconds: float = 5.0) -> bool:
    """Wait until the handlers have seen every finished span, at most so long; whether they have."""
    return DISPATCHER.flush(timeout_seconds)
