"""What is kept of a trace: everything, if it is of a sensible size; no secrets; and always something."""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_tracing_otlp import CALLS, STEPS

from proctor.tracing.secrets import REDACTED, is_secret, may_hold_secrets, without_secrets
from proctor.tracing.spans import LLMSpan, ObserveSpan, Span, ToolDefinition, UserMessage
from proctor.tracing.trace_packing import LARGEST, pack, unpack

PLACE = ("1" * 16, "2" * 32, None, 1.0, 2.0, 1000.0)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


def step(**parts: Any) -> ObserveSpan:
    return ObserveSpan(*PLACE, **parts)


@given(st.lists(CALLS | STEPS, min_size=1, max_size=3))
def test_spans_come_back_as_they_were(spans: list[Span]) -> None:
    packed = pack(spans)
    assert list(unpack(packed.data)) == spans
    assert (packed.spans, packed.cut) == (tuple(spans), "")


def test_numbers_that_json_has_no_words_for_are_spelt_out() -> None:
    [span] = unpack(pack([step(input={"x": math.nan, "y": [math.inf]})]).data)
    assert isinstance(span, ObserveSpan)
    assert span.input == {"x": "nan", "y": ["inf"]}


@pytest.mark.parametrize("value", [10**6000, object(), {1, 2}, b"\xff"], ids=["int", "object", "set", "bytes"])
def test_a_value_of_any_kind_does_not_keep_the_rest_from_being_kept(value: Any) -> None:
    first, second = unpack(pack([step(name="odd", input=value), step(name="plain", input="x")]).data)
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
    packed = pack(spans)
    assert len(zlib.decompress(packed.data)) <= LARGEST
    assert "cut" in packed.cut
    assert 1 <= len(unpack(packed.data)) == len(packed.spans) <= len(spans)


def test_the_schema_of_a_tool_that_takes_a_password_is_no_secret() -> None:
    tool = ToolDefinition(
        "log_in", None, {"properties": {"password": {"type": "string"}}, "default": {"password": "x"}}
    )
    [span] = unpack(pack([LLMSpan(*PLACE, tool_definitions=(tool,))]).data)
    assert isinstance(span, LLMSpan)
    assert span.tool_definitions == (tool,)


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Authorization", "http.request.header.authorization", "Proxy-Authorization"),
        *("x-api-key", "OPENAI_API_KEY", "apiKey", "Set-Cookie", "cookie", "db_password", "client_secret"),
        *("accessToken", "refresh_token", "aws_secret_access_key", "private-key"),
    ],
)
def test_values_under_the_names_of_secrets_are_blotted_out(name: str) -> None:
    assert is_secret(name)
    assert without_secrets({"a": [{name: "value"}], "b": {name: ["one", "two"]}}) == {
        "a": [{name: REDACTED}],
        "b": {name: [REDACTED, REDACTED]},
    }
    assert may_hold_secrets(json.dumps({name: "value"}))


@pytest.mark.parametrize(
    "name", ["max_tokens", "input_tokens", "key", "token", "tokens", "secretary", "author", "password_hint", "cookies"]
)
def test_names_that_only_sound_like_secrets_are_left_alone(name: str) -> None:
    assert without_secrets({name: "value", "n": 1}) == {name: "value", "n": 1}


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef",
        "curl -H 'authorization: Basic dXNlcjpwYXNz'",
        "bearer eyJhbGciOi.eyJzdWIiOiIx.SflKxwRJSM",
        "the key is sk-proj-0123456789abcdefghij, keep it",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "AKIA0123456789ABCDEF",
    ],
)
def test_texts_that_hold_a_key_are_kept_without_it(text: str) -> None:
    kept = without_secrets(text)
    assert REDACTED in kept
    for secret in ("abcdef", "dXNlcjpwYXNz", "SflKxw", "0123456789"):
        assert secret not in kept


@pytest.mark.parametrize(
    "text",
    [
        "Basic understanding of the topic",
        "the bearer of bad news",
        "a task-force-of-many-people",
        "risk-assessment-plan",
    ],
)
def test_plain_words_are_no_secrets(text: str) -> None:
    assert without_secrets(text) == text


@given(ANYTHING)
def test_what_holds_no_secret_stays_as_it_is(value: Any) -> None:
    if not may_hold_secrets(json.dumps(value)):
        assert without_secrets(value) == value


@given(ANYTHING, st.sampled_from(["password", "X-API-Key", "a.cookie"]))
def test_a_secret_is_found_at_any_depth(value: Any, name: str) -> None:
    whole: Any = {"outer": [value, {name: "hunter2-very-secret"}]}
    assert "hunter2" not in json.dumps(without_secrets(whole))
