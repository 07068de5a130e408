"""The attributes of OpenInference: `llm.*`, `embedding.*`, `tool.*`, `input.value` and `output.value`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.base.json_data import Json
from proctor.tracing.genai import first, known, number, spread, text, texts, whole, without_prefix
from proctor.tracing.model_messages import parsed, read_message, read_messages, read_tools
from proctor.tracing.spans import AssistantMessage, Message, SystemMessage, ToolDefinition, UserMessage

COUNT = "llm.token_count."


def call_fields(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a model call, by field of `LLMSpan`.

    The raw request and reply, which most instrumentations keep, tell what no attribute does.
    """
    asked = _object(attributes, "input.value")
    answered = _object(attributes, "output.value")
    options = asked | _object(attributes, "llm.invocation_parameters", "embedding.invocation_parameters")
    model = text(first(attributes, "llm.model_name", "embedding.model_name"))
    return known(
        {
            "provider": text(first(attributes, "llm.provider", "llm.system")),
            "request_model": text(first(attributes, "llm.request.model_name")) or text(options.get("model")) or model,
            "response_model": text(first(attributes, "llm.response.model_name"))
            or text(answered.get("model"))
            or model,
            "input_tokens": whole(attributes.get(f"{COUNT}prompt")),
            "output_tokens": whole(attributes.get(f"{COUNT}completion")),
            "cache_read_tokens": whole(
                first(attributes, f"{COUNT}prompt_details.cache_read", f"{COUNT}prompt_details.cache_input")
            ),
            "cache_creation_tokens": whole(attributes.get(f"{COUNT}prompt_details.cache_write")),
            "request_temperature": number(options.get("temperature")),
            "request_max_tokens": whole(first(options, "max_tokens", "max_completion_tokens", "max_output_tokens")),
            "request_top_p": number(options.get("top_p")),
            "finish_reasons": _finish_reasons(attributes, answered),
            "response_id": text(answered.get("id")),
            "input_messages": _asked(attributes, asked),
            "output_messages": _answered(attributes, answered),
            "tool_definitions": _tools(attributes, options),
        }
    )


def step_fields(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of any other step, by field of `ObserveSpan`."""
    metadata = parsed(attributes.get("metadata"))
    given = first(attributes, "input.value", "tool.parameters")
    documents = spread(attributes, "retrieval.documents")
    found = [content for item in documents if (content := item.get("document.content")) is not None]
    output = attributes.get("output.value")
    return known(
        {
            "name": text(attributes.get("tool.name")) or text(attributes.get("agent.name")),
            "input": _data(given, attributes.get("input.mime_type")),
            "output": _data(output, attributes.get("output.mime_type")) if output is not None else (found or None),
            "metadata": dict(metadata) if isinstance(metadata, Mapping) else None,
        }
    )


def _data(value: Any, mime_type: Any) -> Json:
    """A value that was written as JSON; text that is said to be text stays text."""
    return value if mime_type == "text/plain" else parsed(value)


def _object(attributes: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    data = parsed(first(attributes, *keys))
    return dict(data) if isinstance(data, Mapping) else {}


def _finish_reasons(attributes: Mapping[str, Any], answered: Mapping[str, Any]) -> tuple[str, ...]:
    said = texts(attributes.get("llm.finish_reason"))
    choices = answered.get("choices")
    if said or not isinstance(choices, list):
        return said or texts(first(answered, "stop_reason", "status"))
    return texts([choice.get("finish_reason") for choice in choices if isinstance(choice, Mapping)])


def _asked(attributes: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[Message, ...]:
    messages = _messages(attributes, "llm.input_messages")
    if not messages:
        prompts = [item.get("prompt.text", item.get("")) for item in spread(attributes, "llm.prompts")]
        embedded = [item.get("embedding.text") for item in spread(attributes, "embedding.embeddings")]
        messages = tuple(UserMessage.from_text(said) for said in prompts + embedded if isinstance(said, str))
    if not messages:
        messages = read_messages(first(asked, "messages", "input"))
    told = text(first(asked, "instructions", "system"))
    if told and not any(isinstance(message, SystemMessage) for message in messages):
        messages = (SystemMessage(told), *messages)
    return messages


def _answered(attributes: Mapping[str, Any], answered: Mapping[str, Any]) -> tuple[Message, ...]:
    messages = _messages(attributes, "llm.output_messages")
    if messages:
        return messages
    choices = [item.get("completion.text", item.get("")) for item in spread(attributes, "llm.choices")]
    if choices:
        return read_messages([{"role": "assistant", "content": said} for said in choices if isinstance(said, str)])
    if answered.get("object") == "response":
        return read_messages(answered.get("output"))
    return ()


def _messages(attributes: Mapping[str, Any], prefix: str) -> tuple[Message, ...]:
    return tuple(_message(item) for item in without_prefix(spread(attributes, prefix), "message."))


def _message(item: Mapping[str, Any]) -> Message:
    """One message, put together again as libraries write it."""
    calls = [
        {
            "id": call.get("id"),
            "name": call.get("function.name"),
            "arguments": call.get("function.arguments"),
        }
        for call in without_prefix(spread(item, "tool_calls"), "tool_call.")
    ]
    if not calls and text(item.get("function_call_name")):
        calls = [{"name": item["function_call_name"], "arguments": item.get("function_call_arguments_json")}]
    parts = [_part(part) for part in without_prefix(spread(item, "contents"), "message_content.")]
    whole_message = {**item, "content": parts or item.get("content"), "tool_calls": calls}
    message = read_message(whole_message)
    if isinstance(message, UserMessage) and calls:  # a message without a role that calls tools is the model's
        return AssistantMessage(message.content, *_calls_of(whole_message))
    return message


def _calls_of(item: Mapping[str, Any]) -> tuple[Any, ...]:
    spoken = read_message({**item, "role": "assistant"})
    return (spoken.tool_calls,) if isinstance(spoken, AssistantMessage) else ()


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    url = first(part, "image.image.url", "image.url")
    return {"type": "image", "url": url} if url is not None else dict(part)


def _tools(attributes: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[ToolDefinition, ...]:
    offered = [first(item, "tool.json_schema", "json_schema") for item in spread(attributes, "llm.tools")]
    found = tuple(tool for schema in offered for tool in read_tools(schema))
    return found or read_tools(options.get("tools"))
