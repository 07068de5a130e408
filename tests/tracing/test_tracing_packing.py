"""What is kept of a trace: everything, if it is of a sensible size; no secrets; and always something."""

from __future__ import annotations

import math
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from span_strategies import CALLS, STEPS

from proctor.results.store.trace_encoding import MAX_TRACE, pack_trace, unpack_trace
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span, ToolDefinition, UserMessage

PLACE = ("1" * 16, "2" * 32, None, 1.0, 2.0, 1000.0)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


def step(**parts: Any) -> ObserveSpan:
    return ObserveSpan(*PLACE, **parts)


@given(st.lists(CALLS | STEPS, min_size=1, max_size=3))
def test_stored_spans_are_read_back_unchanged(spans: list[Span]) -> None:
    packed = pack_trace(spans)
    assert list(unpack_trace(packed.data)) == spans
    assert (packed.spans, packed.cut) == (tuple(spans), "")


def test_non_finite_numbers_are_stored_as_text() -> None:
    [span] = unpack_trace(pack_trace([step(input={"x": math.nan, "y": [math.inf]})]).data)
    assert isinstance(span, ObserveSpan)
    assert span.input == {"x": "nan", "y": ["inf"]}


@pytest.mark.parametrize("value", [10**6000, object(), {1, 2}, b"\xff"], ids=["int", "object", "set", "bytes"])
def test_a_trace_with_any_value_can_be_stored(value: Any) -> None:
    first, second = unpack_trace(pack_trace([step(name="odd", input=value), step(name="plain", input="x")]).data)
    assert (first.name, second.name) == ("odd", "plain")


def nested(width: int, depth: int) -> Any:
    return "x" * 30 if depth == 0 else [nested(width, depth - 1) for _ in range(width)]


@pytest.mark.parametrize(
    "spans",
    [
        [step(input="é" * 5_000_000)],
        [step(input={"rows": list(range(1_000_000))})],
        [step(metadata={f"key {n}": "x" * 100 for n in range(50_000)})],
        [step(input=nested(18, 4))],
        [step(name="n" * 3_000_000)],
        [step(input=f"{n}" * 300) for n in range(12_000)],
        [LLMSpan(*PLACE, input_messages=tuple(UserMessage.from_text("y" * 2_000) for _ in range(2_000)))],
    ],
    ids=["text", "list", "object", "nested", "name", "spans", "messages"],
)
def test_a_trace_that_is_too_large_is_cut_and_says_so(spans: list[Span]) -> None:
    packed = pack_trace(spans)
    assert len(zlib.decompress(packed.data)) <= MAX_TRACE
    assert "cut" in packed.cut
    assert 1 <= len(unpack_trace(packed.data)) == len(packed.spans) <= len(spans)


def test_the_schema_of_a_tool_that_takes_a_password_is_not_masked() -> None:
    tool = ToolDefinition(
        "log_in", None, {"properties": {"password": {"type": "string"}}, "default": {"password": "x"}}
    )
    [span] = unpack_trace(pack_trace([LLMSpan(*PLACE, tool_definitions=(tool,))]).data)
    assert isinstance(span, LLMSpan)
    assert span.tool_definitions == (tool,)
