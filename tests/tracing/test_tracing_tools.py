"""A call through `@tool` is a span of the trace it happens in, and is counted once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from proctor.agents.tool_mocks import ToolMocks
from proctor.agents.trial_context import TrialContext, running_trial
from proctor.agents.turn_recorder import TurnRecorder
from proctor.cases.suite import ToolMock
from proctor.tracing.capture import capture_traces, suppress_tracing
from proctor.tracing.observe import observe, start_observation
from proctor.tracing.spans import ObserveSpan, build_tree, tool_calls_of
from proctor.tracing.tool import tool
from proctor.tracing.wrap import wrap


@tool
def add(a: int, b: int = 1) -> int:
    return a + b


@tool
async def fetch(key: str) -> dict[str, str]:
    await asyncio.sleep(0)
    inner(key)
    return {"key": key}


@observe("inner")
def inner(key: str) -> str:
    return key


@tool
def breaks() -> None:
    raise ValueError("no such thing")


def test_a_tool_call_is_a_span_of_kind_tool_under_its_caller() -> None:
    with capture_traces() as handler, start_observation(input=None, name="outer"):
        assert add(2) == 3
    [root] = build_tree(handler.spans)
    [call] = root.children
    assert isinstance(call.span, ObserveSpan)
    assert (call.name, call.span.kind, call.span.input, call.span.output) == ("add", "tool", {"a": 2}, 3)


def test_the_spans_of_a_tools_own_work_are_inside_its_span() -> None:
    with capture_traces() as handler:
        asyncio.run(fetch("k"))
    [root] = build_tree(handler.spans)
    assert (root.name, [child.name for child in root.children]) == ("fetch", ["inner"])


def test_a_tool_that_raises_leaves_a_span_with_the_error() -> None:
    with capture_traces() as handler, pytest.raises(ValueError, match="no such thing"):
        breaks()
    [span] = handler.spans
    assert span.error == "ValueError: no such thing"


def test_outside_a_capture_and_a_trial_a_tool_is_a_plain_function() -> None:
    with suppress_tracing():
        assert add(1, 2) == 3
    assert add(1, 2) == 3


def recorded(work: Any, *, trace_wraps: bool = False) -> tuple[TurnRecorder, list[Any]]:
    turn = TurnRecorder(trace_wraps=trace_wraps)
    with running_trial(TrialContext(turn=turn)), capture_traces() as handler:
        work()
    return turn, handler.spans


def test_in_a_trial_a_call_is_recorded_and_counted_once() -> None:
    recording, spans = recorded(lambda: add(1))
    assert [call.name for call in recording.tool_calls] == ["add"]
    assert [(call.name, call.arguments, call.result) for call in tool_calls_of(spans)] == [("add", {"a": 1}, 2)]


def test_a_tool_called_after_its_turn_is_over_is_not_recorded() -> None:
    turn = TurnRecorder()
    turn.closed = True
    with running_trial(TrialContext(turn=turn)), capture_traces() as handler:
        assert add(1) == 2
    assert (turn.tool_calls, handler.spans) == ((), [])


@tool
def search(words: str) -> Iterator[str]:
    for word in words.split():
        inner(word)
        yield word


@tool
async def search_later(words: str) -> AsyncIterator[str]:
    for word in words.split():
        yield word


async def drained(stream: Any) -> list[Any]:
    return [chunk async for chunk in stream]


def test_a_generator_tool_is_recorded_with_its_chunks_and_its_work_is_inside_its_span() -> None:
    turn, spans = recorded(lambda: [list(search("a b")), asyncio.run(drained(search_later("c d")))])
    assert [(call.name, call.result) for call in turn.tool_calls] == [("search", "ab"), ("search_later", "cd")]
    first, second = build_tree(spans)
    assert (first.name, [child.name for child in first.children]) == ("search", ["inner", "inner"])
    assert isinstance(second.span, ObserveSpan)
    assert second.span.output == "cd"


def test_a_generator_tool_is_a_span_in_a_capture_without_a_trial() -> None:
    with capture_traces() as handler:
        assert list(search("a b")) == ["a", "b"]
    [root] = build_tree(handler.spans)
    assert isinstance(root.span, ObserveSpan)
    assert (root.span.output, len(root.children)) == ("ab", 2)


def test_the_mock_of_a_generator_tool_is_yielded() -> None:
    mocks = ToolMocks({"search": (ToolMock(result=["x", "y"]),), "search_later": (ToolMock(result="z"),)})
    turn = TurnRecorder(mocks=mocks)
    with running_trial(TrialContext(mocks=mocks, turn=turn)):
        assert list(search("a b")) == ["x", "y"]
        assert asyncio.run(drained(search_later("c"))) == ["z"]
    assert [call.result for call in turn.tool_calls] == [["x", "y"], "z"]


def framework(name: str, given: Any, parent: str | None = None, at: float = 1.0) -> ObserveSpan:
    return ObserveSpan(f"{name}-{at}", "t", parent, at, at + 1, 1000.0, name, given, kind="tool")


def test_a_call_that_a_framework_and_proctor_recorded_is_one_call() -> None:
    outer = framework("add", "{'a': 1}")
    assert len(tool_calls_of([outer, framework("add", {"a": 1}, outer.span_id, 1.1)])) == 1
    exact = framework("add", {"a": 1})
    step = ObserveSpan("step", "t", exact.span_id, 1.05, 1.5, 450.0, "step")
    assert len(tool_calls_of([exact, step, framework("add", {"a": 1}, "step", 1.1)])) == 1


def test_recursive_and_nested_tool_calls_are_all_counted() -> None:
    outer = framework("add", {"a": 2})
    assert len(tool_calls_of([outer, framework("add", {"a": 1}, outer.span_id, 1.1)])) == 2
    assert len(tool_calls_of([outer, framework("search", {"a": 2}, outer.span_id, 1.1)])) == 2


def test_a_wrapped_value_is_a_span_only_with_trace_wraps() -> None:
    def work() -> None:
        wrap("given", purpose="input", name="i")
        wrap("said", purpose="output", name="o")
        assert list(wrap((c for c in "ab"), purpose="state", name="s")) == ["a", "b"]

    recording, spans = recorded(work)
    assert spans == []
    _, traced = recorded(work, trace_wraps=True)
    seen = [s for s in traced if isinstance(s, ObserveSpan)]
    assert [(s.name, s.kind, s.input, s.output, s.metadata["purpose"]) for s in seen] == [
        ("i", "wrap", "given", None, "input"),
        ("o", "wrap", None, "said", "output"),
        ("s", "wrap", None, "ab", "state"),
    ]
    assert [item.name for item in recording.outputs] == ["o", "s"]
