"""Spans for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from proctor.agents.reply import ToolCall
from proctor.tracing.spans import (
    AssistantMessage,
    ImageContent,
    LLMSpan,
    ObserveSpan,
    SystemMessage,
    TextContent,
    ToolDefinition,
    ToolResultMessage,
    UserMessage,
)

TEXT = st.text(min_size=1, max_size=8)
ANY = st.none() | TEXT
COUNT = st.none() | st.integers(0, 2**40)
JSON = st.recursive(
    st.booleans() | st.integers() | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=5,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=2)
CALL = st.builds(ToolCall, TEXT, OBJECT, id=ANY) | st.builds(ToolCall, TEXT, raw_arguments=st.just('{"a": '), id=ANY)
PARTS = st.lists(st.builds(TextContent, TEXT) | st.builds(ImageContent, TEXT, ANY), max_size=2).map(tuple)
MESSAGE = st.one_of(
    st.builds(SystemMessage, TEXT),
    st.builds(UserMessage, PARTS),
    st.builds(AssistantMessage, PARTS, st.lists(CALL, max_size=2).map(tuple), ANY),
    st.builds(ToolResultMessage, TEXT, ANY, ANY),
)
ANSWER = st.builds(AssistantMessage, PARTS, st.lists(CALL, max_size=2).map(tuple))
PLACE = (
    st.just("5" * 16),
    st.just("7" * 32),
    st.none() | st.just("6" * 16),
    st.just(1.5),
    st.just(2.0),
    st.just(500.0),
)
CALLS = st.builds(
    LLMSpan,
    *PLACE,
    st.sampled_from(["chat", "embedding"]),
    ANY,
    ANY,
    ANY,
    COUNT,
    COUNT,
    COUNT,
    COUNT,
    st.none() | st.floats(0, 2),
    COUNT,
    st.none() | st.floats(0, 1),
    st.lists(TEXT, max_size=2).map(tuple),
    ANY,
    ANY,
    ANY,
    st.lists(MESSAGE, max_size=3).map(tuple),
    st.lists(ANSWER, max_size=2).map(tuple),
    st.lists(st.builds(ToolDefinition, TEXT, ANY, st.none() | OBJECT), max_size=2).map(tuple),
)
STEPS = st.builds(
    ObserveSpan,
    *PLACE,
    TEXT,
    st.none() | JSON,
    st.none() | JSON,
    OBJECT,
    ANY,
    st.sampled_from([None, "tool", "agent"]),
)
