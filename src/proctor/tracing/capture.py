"""`capture_traces`: collect the spans of a block of code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from proctor.tracing.instrumentation import instrument_clients, listen_if_in_use, listen_to_opentelemetry
from proctor.tracing.scope import SCOPE, MemoryTraceHandler, TraceScope, in_scope, suppress_tracing
from proctor.tracing.thread_context import carry_context_into_pools

__all__ = ["SCOPE", "MemoryTraceHandler", "TraceScope", "capture_traces", "collect_spans", "suppress_tracing"]


@contextlib.contextmanager
def capture_traces() -> Iterator[MemoryTraceHandler]:
    """Collect the spans that begin in the block, also in tasks and thread pools that are used there.

    Meanwhile, model clients report their calls if an instrumentation for them is installed.
    """
    carry_context_into_pools()
    listen_to_opentelemetry()
    with instrument_clients(), collect_spans() as handler:
        yield handler


@contextlib.contextmanager
def collect_spans() -> Iterator[MemoryTraceHandler]:
    """Collect the spans that begin in the block; unlike `capture_traces`, this enables no instrumentation."""
    listen_if_in_use()
    handler = MemoryTraceHandler()
    outer = SCOPE.get()
    captures, silent = ((), False) if outer is None else (outer.captures, outer.silent)
    try:
        with in_scope(TraceScope((*captures, handler), silent)):
            yield handler
    finally:
        handler.close()
