"""Reads the attributes of spans: OpenInference (`llm.*`, `tool.*`) and the GenAI conventions of OpenTelemetry.

Libraries follow the conventions more or less: numbers may be text, and lists may be flattened into keys such as
`llm.input_messages.0.message.role`. The GenAI conventions (`gen_ai.*`) are read in their current form and in the older
forms that libraries still write. `read_span` turns a span of OpenTelemetry into an `LLMSpan` or an `ObserveSpan`.
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
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_int(value: Any) -> int | None:
    number = as_number(value)
    return None if number is None else int(number)


def as_strings(value: Any) -> tuple[str, ...]:
    """The strings of a list, or one string as a tuple."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(str(item) for item in value if item is not None) if isinstance(value, (list, tuple)) else ()


def without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value; `None` and the empty tuple are not values."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}


def unflatten(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The items of a list that is flattened into `prefix.0.key`, `prefix.1.key`. A plain value has the key ""."""
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
    """The items with the prefix removed from their keys: OpenInference writes `message.role` in a message."""
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
    """The fields of `LLMSpan` that the GenAI attributes and events of a model call provide."""
    attributes = {**attributes, **_details_event(events)}
    inputs, outputs = _genai_messages(attributes, events)
    reasons = as_strings(parse_list(attributes.get("gen_ai.response.finish_reasons")))
    message_reasons = tuple(
        message.finish_reason
        for message in outputs
        if isinstance(message, AssistantMessage) and message.finish_reason is not None
    )
    return without_empty(
        {
            "provider": as_string(first_present(attributes, "gen_ai.provider.name", "gen_ai.system")),
            "request_model": as_string(attributes.get("gen_ai.request.model")),
            "response_model": as_string(attributes.get("gen_ai.response.model")),
            "input_tokens": as_int(
                first_present(attributes, f"{GENAI_USAGE}input_tokens", f"{GENAI_USAGE}prompt_tokens")
            ),
            "output_tokens": as_int(
                first_present(attributes, f"{GENAI_USAGE}output_tokens", f"{GENAI_USAGE}completion_tokens")
            ),
            "cache_read_tokens": as_int(
                first_present(
                    attributes, f"{GENAI_USAGE}cache_read.input_tokens", f"{GENAI_USAGE}cache_read_input_tokens"
                )
            ),
            "cache_creation_tokens": as_int(
                first_present(
                    attributes, f"{GENAI_USAGE}cache_creation.input_tokens", f"{GENAI_USAGE}cache_creation_input_tokens"
                )
            ),
            "request_temperature": as_number(attributes.get("gen_ai.request.temperature")),
            "request_max_tokens": as_int(attributes.get("gen_ai.request.max_tokens")),
            "request_top_p": as_number(attributes.get("gen_ai.request.top_p")),
            "finish_reasons": reasons or message_reasons,
            "response_id": as_string(attributes.get("gen_ai.response.id")),
            "output_type": as_string(attributes.get("gen_ai.output.type")),
            "input_messages": inputs,
            "output_messages": outputs,
            "tool_definitions": read_tools(attributes.get("gen_ai.tool.definitions")),
        }
    )


def genai_step(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `ObserveSpan` that the GenAI attributes of a tool or an agent provide."""
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
    """The list in JSON text, or the value itself if it is something else."""
    data = parse_json_or_keep(value)
    return data if isinstance(data, list) else value


def _details_event(events: Events) -> Mapping[str, Any]:
    """The attributes of the event in which some instrumentations put them instead of on the span."""
    return next((attributes for name, attributes in events if name == "gen_ai.client.inference.operation.details"), {})


def _genai_messages(attributes: Mapping[str, Any], events: Events) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The messages to the model and its answers, in the current form or in one of two older ones."""
    inputs = _parse_messages(attributes.get("gen_ai.input.messages"))
    outputs = _parse_messages(attributes.get("gen_ai.output.messages"), "assistant")
    instructions = parse_json_or_keep(attributes.get("gen_ai.system_instructions"))
    if instructions:
        system = read_message(
            {"role": "system", "parts": instructions if isinstance(instructions, (list, str)) else [instructions]}
        )
        inputs = inputs if inputs and isinstance(inputs[0], SystemMessage) else (system, *inputs)
    if not inputs and not outputs:
        inputs, outputs = _messages_from_events(events)
    if not inputs and not outputs:
        inputs, outputs = (
            _flat_genai_messages(attributes, "gen_ai.prompt"),
            _flat_genai_messages(attributes, "gen_ai.completion"),
        )
    return inputs, outputs


def _parse_messages(value: Any, role: str | None = None) -> tuple[Message, ...]:
    data = parse_json_or_keep(value)
    if role is not None and isinstance(data, str):
        data = [{"role": role, "content": data}]
    if role is not None and isinstance(data, list):
        data = [{"role": role, **item} if isinstance(item, Mapping) else item for item in data]
    return read_messages(data) if data else ()


def _messages_from_events(events: Events) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Messages in the older form: an event per message, with its content in attributes or as JSON in one of them."""
    inputs: list[Message] = []
    outputs: list[Message] = []
    for name, attributes in events:
        body = parse_json_or_keep(first_present(attributes, "gen_ai.event.content", "event.body"))
        fields = {**attributes, **(body if isinstance(body, Mapping) else {})}
        if name in ROLE_OF_EVENT:
            inputs.append(read_message({"role": ROLE_OF_EVENT[name], **_parse_json_fields(fields)}))
        elif name == "gen_ai.choice":
            inner = parse_json_or_keep(fields.get("message"))
            message = {**fields, **inner} if isinstance(inner, Mapping) else fields
            outputs.append(read_message({"role": "assistant", **_parse_json_fields(message)}))
        elif name == "gen_ai.content.prompt":
            inputs += read_messages(fields.get("gen_ai.prompt"))
        elif name == "gen_ai.content.completion":
            outputs += _parse_messages(fields.get("gen_ai.completion"), "assistant")
    return tuple(inputs), tuple(outputs)


def _parse_json_fields(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a message with tool calls and parts, which are JSON text there, parsed."""
    return {
        key: parse_json_or_keep(value) if key in ("tool_calls", "parts") else value for key, value in attributes.items()
    }


def _flat_genai_messages(attributes: Mapping[str, Any], prefix: str) -> tuple[Message, ...]:
    role = "assistant" if prefix.endswith("completion") else "user"
    return tuple(
        read_message({"role": role, **item, "tool_calls": unflatten(item, "tool_calls")})
        for item in unflatten(attributes, prefix)
    )


TOKEN_COUNT = "llm.token_count."


def openinference_call(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `LLMSpan` that the OpenInference attributes of a model call provide.

    Most instrumentations also have the raw request and response, which contain more than the attributes.
    """
    request = _json_object(attributes, "input.value")
    response = _json_object(attributes, "output.value")
    options = request | _json_object(attributes, "llm.invocation_parameters", "embedding.invocation_parameters")
    model = as_string(first_present(attributes, "llm.model_name", "embedding.model_name"))
    return without_empty(
        {
            "provider": as_string(first_present(attributes, "llm.provider", "llm.system")),
            "request_model": as_string(first_present(attributes, "llm.request.model_name"))
            or as_string(options.get("model"))
            or model,
            "response_model": as_string(first_present(attributes, "llm.response.model_name"))
            or as_string(response.get("model"))
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
            "finish_reasons": _finish_reasons(attributes, response),
            "response_id": as_string(response.get("id")),
            "input_messages": _input_messages(attributes, request),
            "output_messages": _output_messages(attributes, response),
            "tool_definitions": _tools(attributes, options),
        }
    )


def openinference_step(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `ObserveSpan` that the OpenInference attributes of any other step provide."""
    metadata = parse_json_or_keep(attributes.get("metadata"))
    value = first_present(attributes, "input.value", "tool.parameters")
    documents = unflatten(attributes, "retrieval.documents")
    passages = [content for item in documents if (content := item.get("document.content")) is not None]
    output = attributes.get("output.value")
    return without_empty(
        {
            "name": as_string(attributes.get("tool.name")) or as_string(attributes.get("agent.name")),
            "input": _data(value, attributes.get("input.mime_type")),
            "output": _data(output, attributes.get("output.mime_type")) if output is not None else (passages or None),
            "metadata": dict(metadata) if isinstance(metadata, Mapping) else None,
        }
    )


def _data(value: Any, mime_type: Any) -> Json:
    """The value of JSON text; text with the MIME type text/plain stays text."""
    return value if mime_type == "text/plain" else parse_json_or_keep(value)


def _json_object(attributes: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    data = parse_json_or_keep(first_present(attributes, *keys))
    return dict(data) if isinstance(data, Mapping) else {}


def _finish_reasons(attributes: Mapping[str, Any], response: Mapping[str, Any]) -> tuple[str, ...]:
    reasons = as_strings(attributes.get("llm.finish_reason"))
    choices = response.get("choices")
    if reasons or not isinstance(choices, list):
        return reasons or as_strings(first_present(response, "stop_reason", "status"))
    return as_strings([choice.get("finish_reason") for choice in choices if isinstance(choice, Mapping)])


def _input_messages(attributes: Mapping[str, Any], request: Mapping[str, Any]) -> tuple[Message, ...]:
    messages = _flat_messages(attributes, "llm.input_messages")
    if not messages:
        prompts = [item.get("prompt.text", item.get("")) for item in unflatten(attributes, "llm.prompts")]
        texts = [item.get("embedding.text") for item in unflatten(attributes, "embedding.embeddings")]
        messages = tuple(UserMessage.from_text(text) for text in prompts + texts if isinstance(text, str))
    if not messages:
        messages = read_messages(first_present(request, "messages", "input"))
    instructions = as_string(first_present(request, "instructions", "system"))
    if instructions and not any(isinstance(message, SystemMessage) for message in messages):
        messages = (SystemMessage(instructions), *messages)
    return messages


def _output_messages(attributes: Mapping[str, Any], response: Mapping[str, Any]) -> tuple[Message, ...]:
    messages = _flat_messages(attributes, "llm.output_messages")
    if messages:
        return messages
    choices = [item.get("completion.text", item.get("")) for item in unflatten(attributes, "llm.choices")]
    if choices:
        return read_messages([{"role": "assistant", "content": text} for text in choices if isinstance(text, str)])
    if response.get("object") == "response":
        return read_messages(response.get("output"))
    return ()


def _flat_messages(attributes: Mapping[str, Any], prefix: str) -> tuple[Message, ...]:
    return tuple(_message(item) for item in without_prefix(unflatten(attributes, prefix), "message."))


def _message(item: Mapping[str, Any]) -> Message:
    """One message, reassembled in the form that libraries use."""
    calls = [
        {"id": call.get("id"), "name": call.get("function.name"), "arguments": call.get("function.arguments")}
        for call in without_prefix(unflatten(item, "tool_calls"), "tool_call.")
    ]
    if not calls and as_string(item.get("function_call_name")):
        calls = [{"name": item["function_call_name"], "arguments": item.get("function_call_arguments_json")}]
    parts = [_part(part) for part in without_prefix(unflatten(item, "contents"), "message_content.")]
    data = {**item, "content": parts or item.get("content"), "tool_calls": calls}
    message = read_message(data)
    if isinstance(message, UserMessage) and calls:  # a message that calls tools is the model's, even without a role
        return read_message({**data, "role": "assistant"})
    return message


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    url = first_present(part, "image.image.url", "image.url")
    return {"type": "image", "url": url} if url is not None else dict(part)


def _tools(attributes: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[ToolDefinition, ...]:
    schemas = [first_present(item, "tool.json_schema", "json_schema") for item in unflatten(attributes, "llm.tools")]
    tools = tuple(tool for schema in schemas for tool in read_tools(schema))
    return tools or read_tools(options.get("tools"))


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
"""Attributes that are in other fields of an observed step, and not in its metadata."""


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
    """The span as a model call if its attributes say so, else as an observed step."""
    kind = _kind(span.attributes)
    duration_ms = max(0.0, (span.ended_at - span.started_at) * 1000)
    common = (span.span_id, span.trace_id, span.parent_span_id, span.started_at, span.ended_at, duration_ms)
    if kind in ("chat", "embedding"):
        fields = genai_call(span.attributes, span.events) | openinference_call(span.attributes)
        error = span.attributes.get("error.type") or _exception_type(span.events) or span.error
        return LLMSpan(*common, operation=kind, error_type=None if error is None else str(error), **fields)
    step = genai_step(span.attributes) | openinference_step(span.attributes)
    name = str(step.pop("name", None) or span.name or "(unnamed)")
    rest = {key: value for key, value in span.attributes.items() if key not in READ_INTO_FIELDS}
    metadata = step.pop("metadata", {}) | rest
    return ObserveSpan(*common, name=name, error=span.error, kind=kind, metadata=metadata, **step)


def _kind(attributes: Mapping[str, Any]) -> str | None:
    """`chat` or `embedding` for a model call; the word of the library for any other step."""
    kind = str(attributes.get(SPAN_KIND) or attributes.get("gen_ai.operation.name") or "").lower()
    if not kind and attributes.get("gen_ai.request.model"):
        kind = str(attributes.get("llm.request.type") or "chat").lower()
    kind = CALL_OPERATIONS.get(kind) or STEP_OPERATIONS.get(kind) or kind
    return None if kind in ("", "unknown") else kind


def _exception_type(events: tuple[tuple[str, Mapping[str, Any]], ...]) -> str | None:
    return next((str(fields["exception.type"]) for name, fields in events if fields.get("exception.type")), None)
