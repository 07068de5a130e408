from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.agents.reply import ToolCall
from proctor.tracing.semantic_conventions import OtelSpan, read_span
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


def read(attributes: dict[str, Any], *events: tuple[str, dict[str, Any]], error: str | None = None) -> Any:
    return read_span(OtelSpan("span", "s", "t", "p", 10.0, 10.5, attributes, events, error))


def call(attributes: dict[str, Any], *events: tuple[str, dict[str, Any]], error: str | None = None) -> LLMSpan:
    span = read(attributes, *events, error=error)
    assert isinstance(span, LLMSpan)
    return span


def step(attributes: dict[str, Any]) -> ObserveSpan:
    span = read(attributes)
    assert isinstance(span, ObserveSpan)
    return span


OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.provider": "openai",
    "llm.model_name": "gpt-x-2025",
    "llm.invocation_parameters": '{"model": "gpt-x", "temperature": 0.5, "max_tokens": 99, "top_p": 1}',
    "llm.token_count.prompt": 12,
    "llm.token_count.completion": 3,
    "llm.token_count.prompt_details.cache_read": 4,
    "llm.token_count.prompt_details.cache_write": 0,
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "be brief",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.type": "text",
    "llm.input_messages.1.message.contents.0.message_content.text": "what is this",
    "llm.input_messages.1.message.contents.1.message_content.type": "image",
    "llm.input_messages.1.message.contents.1.message_content.image.image.url": "http://x/i.png",
    "llm.input_messages.2.message.role": "tool",
    "llm.input_messages.2.message.content": "42",
    "llm.input_messages.2.message.tool_call_id": "c0",
    "llm.input_messages.10.message.role": "user",
    "llm.input_messages.10.message.content": "last",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "a cat",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"q": "cats"}',
    "llm.output_messages.0.message.tool_calls.1.tool_call.function.name": "broken",
    "llm.output_messages.0.message.tool_calls.1.tool_call.function.arguments": '{"q": ',
    "llm.tools.0.tool.json_schema": '{"type": "function", "function": {"name": "search", "parameters": {"a": 1}}}',
    "output.value": '{"id": "r1", "model": "gpt-x-2025", "choices": [{"finish_reason": "tool_calls"}]}',
    "output.mime_type": "application/json",
}


def test_an_openinference_model_call_has_its_messages_tool_calls_and_tokens() -> None:
    span = call(OPENINFERENCE)
    assert (span.span_id, span.trace_id, span.parent_span_id, span.duration_ms) == ("s", "t", "p", 500.0)
    assert (span.operation, span.provider) == ("chat", "openai")
    assert (span.request_model, span.response_model, span.response_id) == ("gpt-x", "gpt-x-2025", "r1")
    assert (span.input_tokens, span.output_tokens) == (12, 3)
    assert (span.cache_read_tokens, span.cache_creation_tokens) == (4, 0)
    assert (span.request_temperature, span.request_max_tokens, span.request_top_p) == (0.5, 99, 1.0)
    assert span.finish_reasons == ("tool_calls",)
    assert span.input_messages == (
        SystemMessage("be brief"),
        UserMessage((TextContent("what is this"), ImageContent("http://x/i.png"))),
        ToolResultMessage("42", "c0"),
        UserMessage.from_text("last"),
    )
    assert span.tool_definitions == (ToolDefinition("search", None, {"a": 1}),)
    assert span.error is None


def test_arguments_that_are_not_json_stay_text() -> None:
    [answer] = call(OPENINFERENCE).output_messages
    assert answer == AssistantMessage(
        (TextContent("a cat"),),
        (ToolCall("search", {"q": "cats"}, id="c1"), ToolCall("broken", raw_arguments='{"q": ')),
    )


def test_a_call_of_the_responses_api_is_read_from_its_raw_request_if_attributes_are_missing() -> None:
    request = {
        "model": "gpt-x",
        "instructions": "be brief",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "7"},
        ],
    }
    answered = {
        "object": "response",
        "id": "r",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}],
    }
    span = call(
        {
            "openinference.span.kind": "LLM",
            "input.value": json.dumps(request),
            "output.value": json.dumps(answered),
        }
    )
    assert span.input_messages == (
        SystemMessage("be brief"),
        UserMessage.from_text("hi"),
        AssistantMessage((), (ToolCall("f", {}, id="c1"),)),
        ToolResultMessage("7", "c1"),
    )
    assert span.output_messages == (AssistantMessage((TextContent("hello"),)),)
    assert span.finish_reasons == ("completed",)


def test_embeddings_and_completions_are_model_calls() -> None:
    embedding = call(
        {
            "openinference.span.kind": "EMBEDDING",
            "embedding.model_name": "e-1",
            "embedding.embeddings.0.embedding.text": "cat",
            "embedding.embeddings.0.embedding.vector": [0.1],
        }
    )
    assert (embedding.operation, embedding.name, embedding.input_messages[0].text) == ("embedding", "e-1", "cat")
    completion = call(
        {
            "openinference.span.kind": "LLM",
            "llm.prompts.0.prompt.text": "once",
            "llm.choices.0.completion.text": "upon",
        }
    )
    assert (completion.input_messages[0].text, completion.output_messages[0].text) == ("once", "upon")


def test_an_openinference_tool_is_a_step_with_its_arguments_and_result() -> None:
    span = step(
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "search",
            "tool.description": "finds",
            "input.value": '{"q": "cats"}',
            "output.value": "12",
            "output.mime_type": "text/plain",
            "metadata": '{"tier": 1}',
            "session.id": "x",
        }
    )
    assert (span.kind, span.name, span.input, span.output) == ("tool", "search", {"q": "cats"}, "12")
    assert span.metadata == {"tier": 1, "tool.name": "search", "tool.description": "finds", "session.id": "x"}


def test_the_documents_of_a_retriever_are_its_output() -> None:
    span = step(
        {
            "openinference.span.kind": "RETRIEVER",
            "input.value": "cats?",
            "retrieval.documents.0.document.content": "cats purr",
            "retrieval.documents.1.document.content": "dogs bark",
        }
    )
    assert (span.kind, span.input, span.output) == ("retriever", "cats?", ["cats purr", "dogs bark"])


@pytest.mark.parametrize("kind", ["CHAIN", "AGENT", "GUARDRAIL", "SOMETHING_NEW"])
def test_a_span_of_another_kind_is_a_step_of_that_kind(kind: str) -> None:
    assert step({"openinference.span.kind": kind}).kind == kind.lower()


def test_a_span_without_a_convention_is_a_step_with_its_attributes() -> None:
    span = step({"http.method": "GET"})
    assert (span.kind, span.name, span.metadata) == (None, "span", {"http.method": "GET"})


GENAI = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": "claude",
    "gen_ai.response.model": "claude-5",
    "gen_ai.response.id": "m1",
    "gen_ai.response.finish_reasons": ["tool_call"],
    "gen_ai.request.temperature": 0.25,
    "gen_ai.request.max_tokens": 100,
    "gen_ai.request.top_p": 0.9,
    "gen_ai.usage.input_tokens": 8,
    "gen_ai.usage.output_tokens": 2,
    "gen_ai.usage.cache_read.input_tokens": 1,
    "gen_ai.usage.cache_creation.input_tokens": 5,
    "gen_ai.output.type": "json",
    "gen_ai.system_instructions": '[{"type": "text", "content": "be brief"}]',
    "gen_ai.input.messages": json.dumps(
        [
            {"role": "user", "parts": [{"type": "text", "content": "weather?"}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "w", "arguments": {"at": "X"}}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"rain": True}}]},
        ]
    ),
    "gen_ai.output.messages": json.dumps(
        [
            {
                "role": "assistant",
                "parts": [
                    {"type": "reasoning", "content": "hmm"},
                    {"type": "text", "content": "rain"},
                    {"type": "tool_call", "id": "c2", "name": "w", "arguments": "not json"},
                ],
                "finish_reason": "tool_call",
            }
        ]
    ),
    "gen_ai.tool.definitions": '[{"type": "function", "name": "w", "description": "tells", "parameters": {"a": 1}}]',
}


def test_a_genai_model_call_has_its_messages_tool_calls_and_tokens() -> None:
    span = call(GENAI)
    assert (span.operation, span.provider, span.request_model, span.response_model) == (
        "chat",
        "anthropic",
        "claude",
        "claude-5",
    )
    assert (span.response_id, span.finish_reasons, span.output_type) == ("m1", ("tool_call",), "json")
    assert (span.input_tokens, span.output_tokens, span.cache_read_tokens, span.cache_creation_tokens) == (8, 2, 1, 5)
    assert (span.request_temperature, span.request_max_tokens, span.request_top_p) == (0.25, 100, 0.9)
    assert span.input_messages == (
        SystemMessage("be brief"),
        UserMessage.from_text("weather?"),
        AssistantMessage((), (ToolCall("w", {"at": "X"}, id="c1"),)),
        ToolResultMessage('{"rain": true}', "c1"),
    )
    assert span.output_messages == (
        AssistantMessage((TextContent("rain"),), (ToolCall("w", id="c2", raw_arguments="not json"),), "tool_call"),
    )
    assert span.tool_definitions == (ToolDefinition("w", "tells", {"a": 1}),)


def test_the_older_form_with_an_event_per_message_is_read() -> None:
    calls = json.dumps([{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}])
    span = call(
        {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.usage.prompt_tokens": 4},
        ("gen_ai.system.message", {"content": "be brief"}),
        ("gen_ai.user.message", {"gen_ai.event.content": '{"content": "hi"}'}),
        ("gen_ai.assistant.message", {"tool_calls": calls}),
        ("gen_ai.tool.message", {"content": "7", "id": "c1"}),
        ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": '{"content": "seven"}'}),
    )
    assert (span.provider, span.input_tokens, span.finish_reasons) == ("openai", 4, ("stop",))
    assert span.input_messages == (
        SystemMessage("be brief"),
        UserMessage.from_text("hi"),
        AssistantMessage((), (ToolCall("f", {"a": 1}, id="c1"),)),
        ToolResultMessage("7", "c1"),
    )
    assert span.output_messages == (AssistantMessage((TextContent("seven"),), (), "stop"),)


def test_messages_in_the_details_event_and_spread_over_attributes_are_read() -> None:
    details = {"gen_ai.input.messages": GENAI["gen_ai.input.messages"]}
    span = call({"gen_ai.operation.name": "chat"}, ("gen_ai.client.inference.operation.details", details))
    assert span.input_messages[0].text == "weather?"
    spread = call(
        {
            "gen_ai.request.model": "m",
            "llm.request.type": "chat",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "hi",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.tool_calls.0.name": "f",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"a": 1}',
        }
    )
    assert spread.input_messages == (UserMessage.from_text("hi"),)
    assert spread.output_messages == (AssistantMessage((), (ToolCall("f", {"a": 1}),)),)


def test_a_genai_tool_and_agent_are_steps() -> None:
    tool = step(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"q": 1}',
            "gen_ai.tool.call.result": "[1]",
        }
    )
    assert (tool.kind, tool.name, tool.input, tool.output) == ("tool", "search", {"q": 1}, [1])
    assert tool.metadata["gen_ai.tool.call.id"] == "c1"
    agent = step({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})
    assert (agent.kind, agent.name) == ("agent", "desk")


def test_a_failed_call_has_its_error() -> None:
    assert call({**GENAI, "error.type": "timeout"}, error="it took too long").error_type == "timeout"
    assert call(GENAI, ("exception", {"exception.type": "ValueError"}), error="x").error_type == "ValueError"
    assert call(GENAI, error="gone").error_type == "gone"
    assert read({"openinference.span.kind": "TOOL"}, error="gone").error == "gone"


def test_unknown_token_counts_are_none_and_not_zero() -> None:
    span = call({"gen_ai.operation.name": "chat"})
    assert (span.input_tokens, span.output_tokens) == (None, None)


KEYS = sorted({*OPENINFERENCE, *GENAI, "metadata", "tool.name", "tool.parameters", "retrieval.documents.0.x"})
EVENTS = ["gen_ai.choice", "gen_ai.user.message", "gen_ai.content.prompt", "exception", "gen_ai.content.completion"]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.text(max_size=3), max_size=2),
    st.sampled_from(
        ["[", "{}", "[1]", '[{"role": 1}]', '{"role": "tool", "parts": [{"type": "tool_result"}]}', '"\\ud800"', "[[]]"]
    ),
    st.sampled_from(['{"choices": [1]}', '{"input": 3, "tools": {}}', '[{"type": "image", "image_url": {"url": 1}}]']),
)


@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES),
    st.sampled_from(["LLM", "EMBEDDING", "TOOL", None, 7]),
    st.lists(st.tuples(st.sampled_from(EVENTS), st.dictionaries(st.sampled_from(["message", *KEYS]), VALUES))),
)
def test_any_attributes_can_be_read_as_a_span(
    attributes: dict[str, Any], kind: Any, events: list[tuple[str, dict[str, Any]]]
) -> None:
    span = read({**attributes, "openinference.span.kind": kind}, *events)
    assert (span.span_id, span.trace_id) == ("s", "t")
