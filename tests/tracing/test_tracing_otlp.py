from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from otlp_documents import from_otlp, read_traces, to_otlp
from span_strategies import CALLS, JSON, STEPS

from proctor.agents.reply import ToolCall
from proctor.base.errors import InvalidSuite
from proctor.tracing.spans import (
    AssistantMessage,
    LLMSpan,
    ObserveSpan,
    Span,
    ToolDefinition,
    UserMessage,
    build_tree,
)


@given(st.lists(CALLS | STEPS, max_size=3))
def test_spans_written_as_otlp_are_read_back_unchanged(spans: list[Span]) -> None:
    assert from_otlp(json.loads(json.dumps(to_otlp(spans)))) == spans


def test_the_otlp_document_is_valid_for_opentelemetry() -> None:
    span = LLMSpan("5" * 16, "7" * 32, None, 1.5, 2.0, 500.0, request_model="m", input_tokens=3, error_type="timeout")
    [resource] = to_otlp([span], service="shop")["resourceSpans"]
    assert resource["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "shop"}}]
    [document] = resource["scopeSpans"][0]["spans"]
    assert (document["name"], document["startTimeUnixNano"], document["endTimeUnixNano"]) == (
        "chat m",
        "1500000000",
        "2000000000",
    )
    assert {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "3"}} in document["attributes"]
    assert document["status"] == {"code": 2, "message": "timeout"}


def test_attributes_of_every_kind_are_read() -> None:
    values = [
        ("a", {"arrayValue": {"values": [{"boolValue": True}, {"doubleValue": 0.5}]}}),
        ("b", {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": 7}}]}}),
        ("c", {"bytesValue": "aGk="}),
        ("d", {"intValue": "many"}),
        ("e", None),
    ]
    span = {"spanId": "1", "traceId": "2", "attributes": [{"key": k, "value": v} for k, v in values] + [3]}
    [read] = from_otlp({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert isinstance(read, ObserveSpan)
    assert read.metadata == {"a": [True, 0.5], "b": {"k": 7}, "c": "hi", "d": None, "e": None}


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "trace.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_file_may_have_one_document_or_one_per_line(tmp_path: Path) -> None:
    spans: list[Span] = [ObserveSpan("1", "2", name="a"), ObserveSpan("3", "2", "1", name="b")]
    assert read_traces(write(tmp_path, json.dumps(to_otlp(spans), indent=2))) == spans
    lines = "\n\n".join(json.dumps(to_otlp([span])) for span in spans)
    assert read_traces(write(tmp_path, b"\xef\xbb\xbf" + lines.encode())) == spans


@pytest.mark.needs("pixie")
def test_the_records_of_a_pixie_trace_are_read(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"type": "kwargs", "value": {"question": "hi"}},
        {
            "type": "wrap",
            "name": "profile",
            "purpose": "input",
            "data": {"tier": "gold"},
            "captured_at": "2026-04-20T10:00:00+00:00",
        },
        {
            "type": "llm_span_trace",
            "operation": "chat",
            "provider": "openai",
            "request_model": "gpt-x",
            "response_model": None,
            "input_messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "output_messages": [
                {
                    "role": "assistant",
                    "content": [],
                    "tool_calls": [{"name": "f", "arguments": {"a": 1}, "id": "c"}],
                    "finish_reason": "tool_calls",
                }
            ],
            "tool_definitions": [{"name": "f", "description": "does", "parameters": {"type": "object"}}],
            "finish_reasons": ["tool_calls"],
            "input_tokens": 5,
            "output_tokens": 2,
            "duration_ms": 250.0,
            "started_at": "2026-04-20T10:00:01+00:00",
            "ended_at": "2026-04-20T10:00:01.250000+00:00",
        },
        {"type": "wrap", "name": "answer", "purpose": "output", "data": "yes", "description": "the end"},
        {"type": "llm_span", "operation": None, "request_model": "gpt-y"},
    ]
    spans = read_traces(write(tmp_path, "\n".join(map(json.dumps, records))))
    [root] = build_tree(spans)
    assert (root.name, root.span.input if isinstance(root.span, ObserveSpan) else None) == ("run", {"question": "hi"})
    given, call, taken, bare = (node.span for node in root.children)
    assert isinstance(given, ObserveSpan) and isinstance(taken, ObserveSpan)
    assert (given.name, given.input, given.kind) == ("profile", {"tier": "gold"}, "wrap")
    assert (taken.output, taken.metadata) == ("yes", {"purpose": "output", "description": "the end"})
    assert isinstance(call, LLMSpan) and isinstance(bare, LLMSpan)
    assert (call.input_tokens, call.output_tokens, call.duration_ms) == (5, 2, 250.0)
    assert call.ended_at - call.started_at == pytest.approx(0.25)
    assert call.input_messages == (UserMessage.from_text("hi"),)
    assert call.output_messages == (AssistantMessage((), (ToolCall("f", {"a": 1}, id="c"),), "tool_calls"),)
    assert call.tool_definitions == (ToolDefinition("f", "does", {"type": "object"}),)
    assert (bare.operation, bare.request_model, bare.input_tokens) == ("chat", "gpt-y", None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe", "cannot be read"),
        ("{", ":1: is not valid JSON"),
        ('{"type": "kwargs", "value": {}}\n{oops\n', ":2: is not valid JSON"),
        ("[]", "not an OTLP document"),
        ('{"resourceSpans": 3}', "resourceSpans must be a list, not int"),
        ('{"resourceSpans": [4]}', "resourceSpans[0] must be an object, not int"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "1"}]}]}]}', "spans[0] has no spanId"),
        ('{"type": "something else"}', "not an OTLP document"),
    ],
)
def test_the_error_about_a_file_without_a_trace_has_the_line(tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InvalidSuite) as refused:
        read_traces(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSuite, match="cannot be read"):
        read_traces(tmp_path / "none.json")


@given(JSON)
def test_data_that_is_not_a_document_is_a_value_error(data: Any) -> None:
    with pytest.raises(ValueError, match="not an OTLP document"):
        from_otlp(data)


@given(st.dictionaries(st.sampled_from(["spanId", "traceId", "attributes", "events", "status", "name"]), JSON))
def test_a_malformed_span_is_read_or_refused(span: dict[str, Any]) -> None:
    try:
        from_otlp({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    except ValueError as error:
        assert "resourceSpans[0].scopeSpans[0].spans[0]" in str(error)


def test_a_lone_surrogate_survives() -> None:
    span = replace(ObserveSpan("1", "2"), input="\ud800")
    assert from_otlp(json.loads(json.dumps(to_otlp([span])))) == [span]
