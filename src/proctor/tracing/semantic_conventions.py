"""What the attributes of a span mean: OpenInference (`llm.*`, `tool.*`) and the GenAI conventions of OpenTelemetry.

Libraries set attributes more or less as agreed: numbers may be text, and lists may be spread over keys. The GenAI
conventions (`gen_ai.*`) are read as they are today, and as libraries still write them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.base.json_data import Json, parse_json_or_keep
from proctor.tracing.model_messages import read_message, read_messages, read_tools
from proctor.tracing.spans import (
    AssistantMessage,
    LLMSpan,
    Message,
    ObserveSpan,
    Span,
    SystemMessage,
    ToolDefinition,
    UserMessage,
)


def first_present(attributes: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first key that has one."""
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def as_string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def as_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def as_int(value: Any) -> int | None:
    found = as_number(value)
    return None if found is None else int(found)


def as_strings(value: Any) -> tuple[str, ...]:
    """One text or several."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(str(item) for item in value if item is not None) if isinstance(value, (list, tuple)) else ()


def without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was said; an empty list says nothing."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}


def unflatten(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The items of a list written as `prefix.0.key`, `prefix.1.key`, each with its keys; a bare value is under ""."""
    start = f"{prefix}."
    items: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if not key.startswith(start):
            continue
        index, _, rest = key[len(start) :].partition(".")
        if index.isascii() and index.isdigit() and len(index) < 10:
            items.setdefault(int(index), {})[rest] = value
    return [items[index] for index in sorted(items)]


def without_prefix(items: Iterable[Mapping[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """OpenInference repeats the kind of an item in each of its keys: `message.role` of a message."""
    return [{key.removeprefix(prefix): value for key, value in item.items()} for item in items]


Events = Sequence[tuple[str, Mapping[str, Any]]]
GENAI_USAGE = "gen_ai.usage."
ROLE_OF_EVENT = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def genai_call(attributes: Mapping[str, Any], events: Events) -> dict[str, Any]:
    """What is said of a model call, by field of `LLMSpan`."""
    said = {**attributes, **_details_event(events)}
    asked, answered = _genai_messages(said, events)
    reasons = as_strings(parse_list(said.get("gen_ai.response.finish_reasons")))
    spoken = tuple(
        message.finish_reason
        for message in answered
        if isinstance(message, AssistantMessage) and message.finish_reason is not None
    )
    return without_empty(
        {
            "provider": as_string(first_present(said, "gen_ai.provider.name", "gen_ai.system")),
            "request_model": as_string(said.get("gen_ai.request.model")),
            "response_model": as_string(said.get("gen_ai.response.model")),
            "input_tokens": as_int(first_present(said, f"{GENAI_USAGE}input_tokens", f"{GENAI_USAGE}prompt_tokens")),
            "output_tokens": as_int(
                first_present(said, f"{GENAI_USAGE}output_tokens", f"{GENAI_USAGE}completion_tokens")
            ),
            "cache_read_tokens": as_int(
                first_present(said, f"{GENAI_USAGE}cache_read.input_tokens", f"{GENAI_USAGE}cache_read_input_tokens")
            ),
            "cache_creation_tokens": as_int(
                first_present(
                    said, f"{GENAI_USAGE}cache_creation.input_tokens", f"{GENAI_USAGE}cache_creation_input_tokens"
                )
            ),
            "request_temperature": as_number(said.get("gen_ai.request.temperature")),
            "request_max_tokens": as_int(said.get("gen_ai.request.max_tokens")),
            "request_top_p": as_number(said.get("gen_ai.request.top_p")),
            "finish_reasons": reasons or spoken,
            "response_id": as_string(said.get("gen_ai.response.id")),
            "output_type": as_string(said.get("gen_ai.output.type")),
            "input_messages": asked,
            "output_messages": answered,
            "tool_definitions": read_tools(said.get("gen_ai.tool.definitions")),
        }
    )


def genai_step(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a tool or an agent, by field of `ObserveSpan`."""
    return without_empty(
        {
            "name": as_string(first_present(attributes, "gen_ai.tool.name", "gen_ai.agent.name")),
            "input": parse_json_or_keep(
                first_present(attributes, "gen_ai.tool.call.arguments", "gen_ai.input.messages")
            ),
            "output": parse_json_or_keep(
                first_present(attributes, "gen_ai.tool.call.result", "gen_ai.output.messages")
            ),
        }
    )


def parse_list(value: Any) -> Any:
    """A list, or JSON text of one."""
    data = parse_json_or_keep(value)
    return data if isinstance(data, list) else value


def _details_event(events: Events) -> Mapping[str, Any]:
    """What an instrumentation says in one event instead of on the span."""
    return next((said for name, said in events if name == "gen_ai.client.inference.operation.details"), {})


def _genai_messages(said: Mapping[str, Any], events: Events) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    asked, answered = (
        _parse_messages(said.get("gen_ai.input.messages")),
        _parse_messages(said.get("gen_ai.output.messages"), "assistant"),
    )
    told = parse_json_or_keep(said.get("gen_ai.system_instructions"))
    if told:
        system = read_message({"role": "system", "parts": told if isinstance(told, (list, str)) else [told]})
        asked = asked if asked and isinstance(asked[0], SystemMessage) else (system, *asked)
    if not asked and not answered:
        asked, answered = _messages_from_events(events)
    if not asked and not answered:
        asked, answered = _flat_genai_messages(said, "gen_ai.prompt"), _flat_genai_messages(said, "gen_ai.completion")
    return asked, answered


def _parse_messages(value: Any, role: str | None = None) -> tuple[Message, ...]:
    data = parse_json_or_keep(value)
    if role is not None and isinstance(data, str):
        data = [{"role": role, "content": data}]
    if role is not None and isinstance(data, list):
        data = [{"role": role, **item} if isinstance(item, Mapping) else item for item in data]
    return read_messages(data) if data else ()


def _messages_from_events(events: Events) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The older form: an event per message, its content in attributes or as JSON in one of them."""
    asked: list[Message] = []
    answered: list[Message] = []
    for name, attributes in events:
        body = parse_json_or_keep(first_present(attributes, "gen_ai.event.content", "event.body"))
        said = {**attributes, **(body if isinstance(body, Mapping) else {})}
        if name in ROLE_OF_EVENT:
            asked.append(read_message({"role": ROLE_OF_EVENT[name], **_parse_json_fields(said)}))
        elif name == "gen_ai.choice":
            inner = parse_json_or_keep(said.get("message"))
            message = {**said, **inner} if isinstance(inner, Mapping) else said
            answered.append(read_message({"role": "assistant", **_parse_json_fields(message)}))
        elif name == "gen_ai.content.prompt":
            asked += read_messages(said.get("gen_ai.prompt"))
        elif name == "gen_ai.content.completion":
            answered += _parse_messages(said.get("gen_ai.completion"), "assistant")
    return tuple(asked), tuple(answered)


def _parse_json_fields(said: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes hold no objects: tool calls and parts come as JSON text."""
    return {key: parse_json_or_keep(value) if key in ("tool_calls", "parts") else value for key, value in said.items()}


def _flat_genai_messages(said: Mapping[str, Any], prefix: str) -> tuple[Message, ...]:
    role = "assistant" if prefix.endswith("completion") else "user"
    return tuple(
        read_message({"role": role, **item, "tool_calls": unflatten(item, "tool_calls")})
        for item in unflatten(said, prefix)
    )


TOKEN_COUNT = "llm.token_count."


def openinference_call(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a model call, by field of `LLMSpan`.

    The raw request and reply, which most instrumentations keep, tell what no attribute does.
    """
    asked = _json_object(attributes, "input.value")
    answered = _json_object(attributes, "output.value")
    options = asked | _json_object(attributes, "llm.invocation_parameters", "embedding.invocation_parameters")
    model = as_string(first_present(attributes, "llm.model_name", "embedding.model_name"))
    return without_empty(
        {
            "provider": as_string(first_present(attributes, "llm.provider", "llm.system")),
            "request_model": as_string(first_present(attributes, "llm.request.model_name"))
            or as_string(options.get("model"))
            or model,
            "response_model": as_string(first_present(attributes, "llm.response.model_name"))
            or as_string(answered.get("model"))
            or model,
            "input_tokens": as_int(attributes.get(f"{TOKEN_COUNT}prompt")),
            "output_tokens": as_int(attributes.get(f"{TOKEN_COUNT}completion")),
            "cache_read_tokens": as_int(
                first_present(
                    attributes, f"{TOKEN_COUNT}prompt_details.cache_read", f"{TOKEN_COUNT}prompt_details.cache_input"
                )
            ),
            "cache_creation_tokens": as_int(attributes.get(f"{TOKEN_COUNT}prompt_details.cache_write")),
            "request_temperature": as_number(options.get("temperature")),
            "request_max_tokens": as_int(
                first_present(options, "max_tokens", "max_completion_tokens", "max_output_tokens")
            ),
            "request_top_p": as_number(options.get("top_p")),
            "finish_reasons": _finish_reasons(attributes, answered),
            "response_id": as_string(answered.get("id")),
            "input_messages": _input_messages(attributes, asked),
            "output_messages": _output_messages(attributes, answered),
            "tool_definitions": _tools(attributes, options),
        }
    )


def openinference_step(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of any other step, by field of `ObserveSpan`."""
    metadata = parse_json_or_keep(attributes.get("metadata"))
    given = first_present(attributes, "input.value", "tool.parameters")
    documents = unflatten(attributes, "retrieval.documents")
    found = [content for item in documents if (content := item.get("document.content")) is not None]
    output = attributes.get("output.value")
    return without_empty(
        {
            "name": as_string(attributes.get("tool.name")) or as_string(attributes.get("agent.name")),
            "input": _data(given, attributes.get("input.mime_type")),
            "output": _data(output, attributes.get("output.mime_type")) if output is not None else (found or None),
            "metadata": dict(metadata) if isinstance(metadata, Mapping) else None,
        }
    )


def _data(value: Any, mime_type: Any) -> Json:
    """A value that was written as JSON; text that is said to be text stays text."""
    return value if mime_type == "text/plain" else parse_json_or_keep(value)


def _json_object(attributes: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    data = parse_json_or_keep(first_present(attributes, *keys))
    return dict(data) if isinstance(data, Mapping) else {}


def _finish_reasons(attributes: Mapping[str, Any], answered: Mapping[str, Any]) -> tuple[str, ...]:
    said = as_strings(attributes.get("llm.finish_reason"))
    choices = answered.get("choices")
    if said or not isinstance(choices, list):
        return said or as_strings(first_present(answered, "stop_reason", "status"))
    return as_strings([choice.get("finish_reason") for choice in choices if isinstance(choice, Mapping)])


def _input_messages(attributes: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[Message, ...]:
    messages = _flat_messages(attributes, "llm.input_messages")
    if not messages:
        prompts = [item.get("prompt.text", item.get("")) for item in unflatten(attributes, "llm.prompts")]
        embedded = [item.get("embedding.text") for item in unflatten(attributes, "embedding.embeddings")]
        messages = tuple(UserMessage.from_text(said) for said in prompts + embedded if isinstance(said, str))
    if not messages:
        messages = read_messages(first_present(asked, "messages", "input"))
    told = as_string(first_present(asked, "instructions", "system"))
    if told and not any(isinstance(message, SystemMessage) for message in messages):
        messages = (SystemMessage(told), *messages)
    return messages


def _output_messages(attributes: Mapping[str, Any], answered: Mapping[str, Any]) -> tuple[Message, ...]:
    messages = _flat_messages(attributes, "llm.output_messages")
    if messages:
        return messages
    choices = [item.get("completion.text", item.get("")) for item in unflatten(attributes, "llm.choices")]
    if choices:
        return read_messages([{"role": "assistant", "content": said} for said in choices if isinstance(said, str)])
    if answered.get("object") == "response":
        return read_messages(answered.get("output"))
    return ()


def _flat_messages(attributes: Mapping[str, Any], prefix: str) -> tuple[Message, ...]:
    return tuple(_message(item) for item in without_prefix(unflatten(attributes, prefix), "message."))


def _message(item: Mapping[str, Any]) -> Message:
    """One message, put together again as libraries write it."""
    calls = [
        {"id": call.get("id"), "name": call.get("function.name"), "arguments": call.get("function.arguments")}
        for call in without_prefix(unflatten(item, "tool_calls"), "tool_call.")
    ]
    if not calls and as_string(item.get("function_call_name")):
        calls = [{"name": item["function_call_name"], "arguments": item.get("function_call_arguments_json")}]
    parts = [_part(part) for part in without_prefix(unflatten(item, "contents"), "message_content.")]
    whole_message = {**item, "content": parts or item.get("content"), "tool_calls": calls}
    message = read_message(whole_message)
    if isinstance(message, UserMessage) and calls:  # a message without a role that calls tools is the model's
        return read_message({**whole_message, "role": "assistant"})
    return message


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    url = first_present(part, "image.image.url", "image.url")
    return {"type": "image", "url": url} if url is not None else dict(part)


def _tools(attributes: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[ToolDefinition, ...]:
    offered = [first_present(item, "tool.json_schema", "json_schema") for item in unflatten(attributes, "llm.tools")]
    found = tuple(tool for schema in offered for tool in read_tools(schema))
    return found or read_tools(options.get("tools"))


SPAN_KIND = "openinference.span.kind"
CALL_OPERATIONS = {
    "chat": "chat",
    "completion": "chat",
    "text_completion": "chat",
    "generate_content": "chat",
    "llm": "chat",
    "embeddings": "embedding",
    "embedding": "embedding",
}
STEP_OPERATIONS = {"execute_tool": "tool", "invoke_agent": "agent", "create_agent": "agent"}
READ_INTO_FIELDS = (
    SPAN_KIND,
    "input.value",
    "input.mime_type",
    "output.value",
    "output.mime_type",
    "metadata",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
)
"""Attributes that an observed step shows elsewhere than in its metadata."""


@dataclass(frozen=True, slots=True)
class OtelSpan:
    """A span of OpenTelemetry that has ended, from this process or from a file."""

    name: str
    span_id: str
    trace_id: str
    parent_span_id: str | None
    started_at: float
    ended_at: float
    attributes: Mapping[str, Json] = field(default_factory=dict)
    events: tuple[tuple[str, Mapping[str, Json]], ...] = ()
    error: str | None = None


def read_span(span: OtelSpan) -> Span:
    """A model call if the span says it is one, an observed step otherwise."""
    kind = _kind(span.attributes)
    duration_ms = max(0.0, (span.ended_at - span.started_at) * 1000)
    place = (span.span_id, span.trace_id, span.parent_span_id, span.started_at, span.ended_at, duration_ms)
    if kind in ("chat", "embedding"):
        said = genai_call(span.attributes, span.events) | openinference_call(span.attributes)
        error = span.attributes.get("error.type") or _exception_type(span.events) or span.error
        return LLMSpan(*place, operation=kind, error_type=None if error is None else str(error), **said)
    step = genai_step(span.attributes) | openinference_step(span.attributes)
    name = str(step.pop("name", None) or span.name or "(unnamed)")
    rest = {key: value for key, value in span.attributes.items() if key not in READ_INTO_FIELDS}
    metadata = step.pop("metadata", {}) | rest
    return ObserveSpan(*place, name=name, error=span.error, kind=kind, metadata=metadata, **step)


def _kind(attributes: Mapping[str, Any]) -> str | None:
    """`chat` or `embedding` for a model call; what the library calls it for any other step."""
    named = str(attributes.get(SPAN_KIND) or attributes.get("gen_ai.operation.name") or "").lower()
    if not named and attributes.get("gen_ai.request.model"):
        named = str(attributes.get("llm.request.type") or "chat").lower()
    named = CALL_OPERATIONS.get(named) or STEP_OPERATIONS.get(named) or named
    return None if named in ("", "unknown") else named


def _exception_type(events: tuple[tuple[str, Mapping[str, Any]], ...]) -> str | None:
    return next((str(said["exception.type"]) for name, said in events if said.get("exception.type")), None)
