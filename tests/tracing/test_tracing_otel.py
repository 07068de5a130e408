from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="spans of OpenTelemetry need its SDK")

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from proctor.tracing.capture import capture_traces, collect_spans, suppress_tracing
from proctor.tracing.observe import observe, start_observation
from proctor.tracing.otel import own_provider
from proctor.tracing.spans import LLMSpan, ObserveSpan, build_tree

tracer = trace.get_tracer("an.application")


@pytest.fixture(autouse=True, scope="module")
def provider() -> None:
    """The application has a provider of its own; OpenTelemetry accepts one per process."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(TracerProvider(shutdown_on_exit=False))


def chat(model: str = "m") -> None:
    with tracer.start_as_current_span("chat") as span:
        span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": model})


def names(handler: Any) -> list[str]:
    return [span.name for span in handler.spans]


def test_observations_and_opentelemetry_spans_are_in_one_tree() -> None:
    @observe("answering")
    def answer() -> None:
        with tracer.start_as_current_span("retrieve"), start_observation(input="q", name="ranking"):
            chat()

    with capture_traces() as handler:
        answer()
    [root] = build_tree(handler.spans)
    assert (root.name, root.parent_span_id) == ("answering", None)
    [retrieve] = root.children
    [ranking] = retrieve.children
    [call] = ranking.children
    assert [retrieve.name, ranking.name, call.name] == ["retrieve", "ranking", "m"]
    assert isinstance(call.span, LLMSpan)
    assert len(handler.spans) == 4


def test_an_observation_is_also_a_span_for_the_applications_exporter() -> None:
    with capture_traces() as handler, start_observation(input=1, name="step"):
        current = trace.get_current_span().get_span_context()
    [span] = handler.spans
    assert span.span_id == trace.format_span_id(current.span_id)
    assert span.trace_id == trace.format_trace_id(current.trace_id)


def test_concurrent_captures_stay_apart_even_if_the_application_seeds_its_random_numbers() -> None:
    async def one(i: int) -> list[str]:
        with capture_traces() as handler:
            random.seed(0)
            with tracer.start_as_current_span(f"outer {i}"):
                await asyncio.sleep(0)
                await asyncio.create_task(inner(i))
        return names(handler)

    async def inner(i: int) -> None:
        with tracer.start_as_current_span(f"inner {i}"):
            await asyncio.sleep(0)

    async def all_of_them() -> list[list[str]]:
        return await asyncio.gather(*(one(i) for i in range(20)))

    assert asyncio.run(all_of_them()) == [[f"inner {i}", f"outer {i}"] for i in range(20)]


def test_a_span_belongs_to_the_capture_it_began_in_wherever_it_ends() -> None:
    with capture_traces() as handler:
        span = tracer.start_span("stream")
        thread = threading.Thread(target=span.end)
        thread.start()
        thread.join()
    assert names(handler) == ["stream"]


def test_a_thread_with_only_the_opentelemetry_context_belongs_to_the_capture() -> None:
    def work(context: Any) -> None:
        token = otel_context.attach(context)
        with tracer.start_as_current_span("in thread"):
            pass
        otel_context.detach(token)

    with capture_traces() as handler, tracer.start_as_current_span("outer"):
        thread = threading.Thread(target=work, args=(otel_context.get_current(),))
        thread.start()
        thread.join()
    assert names(handler) == ["in thread", "outer"]


def test_spans_outside_a_capture_untraced_spans_and_late_spans_are_in_no_capture() -> None:
    with tracer.start_as_current_span("before"):
        pass
    with capture_traces() as handler:
        with suppress_tracing():
            chat("judge")
        late = tracer.start_span("late")
        chat("agent")
    late.end()
    assert names(handler) == ["agent"]


def test_a_capture_records_an_opentelemetry_that_the_application_has_loaded() -> None:
    with collect_spans() as handler:
        chat()
    assert names(handler) == ["m"]


def test_an_error_is_in_the_observation_and_in_the_opentelemetry_span() -> None:
    def fail() -> None:
        with tracer.start_as_current_span("inner"):
            raise ValueError("no")

    with capture_traces() as handler, pytest.raises(ValueError, match="no"):
        observe("step")(fail)()
    inner, step = handler.spans
    assert isinstance(inner, ObserveSpan) and isinstance(step, ObserveSpan)
    assert (inner.error, step.error) == ("ValueError: no", "ValueError: no")


def test_spans_between_the_chunks_of_a_stream_have_the_right_parent() -> None:
    @observe
    def words() -> Any:
        for word in "ab":
            chat(word)
            yield word

    with capture_traces() as handler:
        for _ in words():
            chat("caller")
    trees = {root.name: [child.name for child in root.children] for root in build_tree(handler.spans)}
    assert trees == {"words": ["a", "b"], "caller": []}


def run(program: str, **environment: str) -> str:
    import os

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.stderr == ""
    return done.stdout


OWN_PROVIDER = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from proctor.tracing.capture import capture_traces
from proctor.tracing.observe import start_observation
exporter = InMemorySpanExporter()
"""


@pytest.mark.process
def test_the_applications_tracer_provider_is_used_and_never_replaced() -> None:
    program = """
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
for _ in range(2):
    with capture_traces() as handler, start_observation(input={"a": 1}, name="step") as step:
        step.set_output("\\ud800")
        step.set_metadata("k", 1)
        with trace.get_tracer("x").start_as_current_span("inner"):
            pass
print(trace.get_tracer_provider() is provider, [span.name for span in handler.spans])
last = exporter.get_finished_spans()[-1]
print(last.name, sorted(last.attributes.items()))
"""
    printed, exported = run(OWN_PROVIDER + program).splitlines()
    assert printed == "True ['inner', 'step']"
    assert exported.startswith("step [('input.mime_type', 'application/json'), ('input.value', '{\"a\": 1}')")
    assert "('openinference.span.kind', 'CHAIN')" in exported


@pytest.mark.process
def test_observations_are_recorded_even_if_the_application_samples_its_spans_out() -> None:
    program = """
trace.set_tracer_provider(TracerProvider(sampler=sampling.ALWAYS_OFF))
with capture_traces() as handler, start_observation(input=1, name="outer"):
    with start_observation(input=1, name="inner"):
        pass
inner, outer = handler.spans
print(inner.parent_span_id == outer.span_id, outer.parent_span_id)
"""
    assert run(OWN_PROVIDER + program) == "True None\n"


@pytest.mark.process
def test_observations_are_recorded_even_if_the_provider_accepts_no_processor() -> None:
    program = """
trace.set_tracer_provider(trace.NoOpTracerProvider())
with capture_traces() as handler, start_observation(input=1, name="step"):
    pass
print([span.name for span in handler.spans])
"""
    assert run(OWN_PROVIDER + program) == "['step']\n"
    disabled = (
        "with capture_traces() as handler, start_observation(input=1, name='step'): pass\nprint(len(handler.spans))"
    )
    assert run(OWN_PROVIDER + disabled, OTEL_SDK_DISABLED="true") == "1\n"


@pytest.mark.process
def test_spans_of_a_tracer_created_before_its_provider_are_recorded() -> None:
    program = """
tracer = trace.get_tracer("early")
trace.set_tracer_provider(TracerProvider())
with capture_traces() as handler:
    with tracer.start_as_current_span("seen"):
        pass
print([span.name for span in handler.spans])
"""
    assert run(OWN_PROVIDER + program) == "['seen']\n"


@pytest.mark.process
def test_a_provider_that_the_application_sets_inside_a_capture_is_the_global_one_and_exports_its_spans() -> None:
    program = """
with capture_traces() as first:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with trace.get_tracer("x").start_as_current_span("inner"):
        pass
with capture_traces() as second:
    with trace.get_tracer("x").start_as_current_span("next"):
        pass
print(trace.get_tracer_provider() is provider, [span.name for span in exporter.get_finished_spans()])
print([span.name for span in second.spans])
"""
    assert run(OWN_PROVIDER + program) == "True ['inner', 'next']\n['next']\n"


@pytest.mark.process
def test_a_capture_leaves_the_application_without_a_global_provider() -> None:
    program = """
with capture_traces() as handler, start_observation(input=1, name="outer"):
    with start_observation(input=1, name="inner"):
        pass
inner, outer = handler.spans
print(isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider), inner.parent_span_id == outer.span_id)
"""
    assert run(OWN_PROVIDER + program) == "True True\n"


def test_a_span_of_a_long_conversation_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    span = own_provider().get_tracer("t").start_span("model")
    span.set_attributes({f"llm.input_messages.{number}": "hi" for number in range(1000)})
    assert len(span.attributes) == 1000  # type: ignore[attr-defined]
    assert caplog.records == []
