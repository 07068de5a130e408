from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proctor.tracing.capture import MemoryTraceHandler, capture_traces
from proctor.tracing.observe import observe
from proctor.tracing.spans import ObserveSpan


@observe
def greet(who: str) -> str:
    return f"hello {who}"


@observe("slow greeting")
async def greet_later(who: str) -> str:
    await asyncio.sleep(0)
    return greet(who)


def outputs(handler: MemoryTraceHandler) -> list[Any]:
    return [span.output for span in handler.spans if isinstance(span, ObserveSpan)]


def test_a_capture_has_the_spans_of_its_block_and_no_others() -> None:
    greet("nobody")
    with capture_traces() as handler:
        greet("Ann")
    greet("nobody")
    assert outputs(handler) == ["hello Ann"]


def test_concurrent_captures_never_see_each_others_spans() -> None:
    async def one(who: str) -> list[Any]:
        with capture_traces() as handler:
            await asyncio.gather(*(asyncio.create_task(greet_later(f"{who}{i}")) for i in range(5)))
        return sorted(set(outputs(handler)))

    async def all_of_them() -> list[list[Any]]:
        return await asyncio.gather(*(one(chr(65 + i)) for i in range(20)))

    names = asyncio.run(all_of_them())
    assert names == [[f"hello {chr(65 + i)}{j}" for j in range(5)] for i in range(20)]


def test_spans_of_a_nested_capture_are_in_both() -> None:
    with capture_traces() as outer:
        with capture_traces() as inner:
            greet("both")
        greet("outer")
    assert outputs(inner) == ["hello both"]
    assert outputs(outer) == ["hello both", "hello outer"]


def test_a_span_that_ends_after_the_capture_is_not_part_of_it() -> None:
    async def late() -> list[Any]:
        with capture_traces() as handler:
            task = asyncio.create_task(greet_later("late"))
        await task
        return outputs(handler)

    assert asyncio.run(late()) == []


def test_a_capture_may_end_in_another_context_than_it_began_in() -> None:
    import contextvars

    capture = capture_traces()
    handler = contextvars.copy_context().run(capture.__enter__)
    capture.__exit__(None, None, None)
    assert handler.spans == []


def test_an_exception_ends_a_capture() -> None:
    with pytest.raises(ZeroDivisionError), capture_traces() as handler:
        greet("before")
        raise ZeroDivisionError
    greet("after")
    assert outputs(handler) == ["hello before"]


def test_traces_are_trees_by_trace_id() -> None:
    with capture_traces() as handler:
        asyncio.run(greet_later("Ann"))
        greet("Bob")
    traces = handler.get_all_traces()
    assert [[root.name for root in roots] for roots in traces.values()] == [["slow greeting"], ["greet"]]
    first = next(iter(traces))
    [root] = handler.get_trace(first)
    assert [child.name for child in root.children] == ["greet"]
    assert handler.get_trace("unknown") == []
    handler.clear()
    assert handler.spans == []
