"""Handlers of spans also get those of OpenTelemetry."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="spans of OpenTelemetry need its SDK")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from proctor.compat.pixie.span_handlers import add_handler, flush, remove_handler
from proctor.tracing.observe import start_observation

tracer = trace.get_tracer("an.application")


@pytest.fixture(autouse=True, scope="module")
def provider() -> None:
    """The application has a provider of its own; OpenTelemetry accepts one per process."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))


def chat(model: str = "m") -> None:
    with tracer.start_as_current_span("chat") as span:
        span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": model})


def test_an_added_handler_sees_the_spans_of_opentelemetry() -> None:
    class Keeping:
        def __init__(self) -> None:
            self.seen: list[str] = []

        async def on_llm(self, span: Any) -> None:
            self.seen.append(f"llm {span.name}")

        def on_observe(self, span: Any) -> None:
            self.seen.append(f"observe {span.name}")

    keeping = Keeping()
    add_handler(keeping)
    with start_observation(input=None, name="step"):
        chat()
    assert flush()
    remove_handler(keeping)
    assert keeping.seen == ["llm m", "observe step"]
