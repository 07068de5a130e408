"""The GenAI semantic conventions of OpenTelemetry (`gen_ai.*`), today's and those that libraries still write.

Libraries set attributes more or less as agreed: numbers may be text, and lists may be spread over keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proctor.tracing.model_messages import parsed, read_message, read_messages, read_tools
from proctor.tracing.spans import AssistantMessage, Message, SystemMessage


def first(attributes: Mapping[str, Any], *keys: str) -> Any:
    """The value of the first key that has one."""
    return next((attributes[key] for key in keys if attributes.get(key) is not None), None)


def text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: Any) -> int | None:
    found = number(value)
    return None if found is None else int(found)


def texts(value: Any) -> tuple[str, ...]:
    """One text or several."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(str(item) for item in value if item is not None) if isinstance(value, (list, tuple)) else ()


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Only what was said; an empty list says nothing."""
    return {name: value for name, value in fields.items() if value is not None and value != ()}


def spread(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
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
USAGE = "gen_ai.usage."
ROLE_OF_EVENT = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def call_fields(attributes: Mapping[str, Any], events: Events) -> dict[str, Any]:
    """What is said of a model call, by field of `LLMSpan`."""
    said = {**attributes, **_details(events)}
    asked, answered = _messages(said, events)
    reasons = texts(parsed_list(said.get("gen_ai.response.finish_reasons")))
    spoken = tuple(
        message.finish_reason
        for message in answered
        if isinstance(message, AssistantMessage) and message.finish_reason is not None
    )
    return known(
        {
            "provider": text(first(said, "gen_ai.provider.name", "gen_ai.system")),
            "request_model": text(said.get("gen_ai.request.model")),
            "response_model": text(said.get("gen_ai.response.model")),
            "input_tokens": whole(first(said, f"{USAGE}input_tokens", f"{USAGE}prompt_tokens")),
            "output_tokens": whole(first(said, f"{USAGE}output_tokens", f"{USAGE}completion_tokens")),
            "cache_read_tokens": whole(
                first(said, f"{USAGE}cache_read.input_tokens", f"{USAGE}cache_read_input_tokens")
            ),
            "cache_creation_tokens": whole(
                first(said, f"{USAGE}cache_creation.input_tokens", f"{USAGE}cache_creation_input_tokens")
            ),
            "request_temperature": number(said.get("gen_ai.request.temperature")),
            "request_max_tokens": whole(said.get("gen_ai.request.max_tokens")),
            "request_top_p": number(said.get("gen_ai.request.top_p")),
            "finish_reasons": reasons or spoken,
            "response_id": text(said.get("gen_ai.response.id")),
            "output_type": text(said.get("gen_ai.output.type")),
            "input_messages": asked,
            "output_messages": answered,
            "tool_definitions": read_tools(said.get("gen_ai.tool.definitions")),
        }
    )


def step_fields(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of a tool or an agent, by field of `ObserveSpan`."""
    return known(
        {
            "name": text(first(attributes, "gen_ai.tool.name", "gen_ai.agent.name")),
            "input": parsed(first(attributes, "gen_ai.tool.call.arguments", "gen_ai.input.messages")),
            "output": parsed(first(attributes, "gen_ai.tool.call.result", "gen_ai.output.messages")),
        }
    )


def parsed_list(value: Any) -> Any:
    """A list, or JSON text of one."""
    data = parsed(value)
    return data if isinstance(data, list) else value


def _details(events: Events) -> Mapping[str, Any]:
    """What an instrumentation says in one event instead of on the span."""
    return next((said for name, said in events if name == "gen_ai.client.inference.operation.details"), {})


def _messages(said: Mapping[str, Any], events: Events) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    asked, answered = _read(said.get("gen_ai.input.messages")), _read(said.get("gen_ai.output.messages"), "assistant")
    told = parsed(said.get("gen_ai.system_instructions"))
    if told:
        system = read_message({"role": "system", "parts": told if isinstance(told, (list, str)) else [told]})
        asked = asked if asked and isinstance(asked[0], SystemMessage) else (system, *asked)
    if not asked and not answered:
        asked, answered = _from_events(events)
    if not asked and not answered:
        asked, answered = _spread_messages(said, "gen_ai.prompt"), _spread_messages(said, "gen_ai.completion")
    return asked, answered


def _read(value: Any, role: str | None = None) -> tuple[Message, ...]:
    data = parsed(value)
    if role is not None and isinstance(data, str):
        data = [{"role": role, "content": data}]
    if role is not None and isinstance(data, list):
        data = [{"role": role, **item} if isinstance(item, Mapping) else item for item in data]
    return read_messages(data) if data else ()


def _from_events(events: Events) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The older form: an event per message, its content in attributes or as JSON in one of them."""
    asked: list[Message] = []
    answered: list[Message] = []
    for name, attributes in events:
        body = parsed(first(attributes, "gen_ai.event.content", "event.body"))
        said = {**attributes, **(body if isinstance(body, Mapping) else {})}
        if name in ROLE_OF_EVENT:
            asked.append(read_message({"role": ROLE_OF_EVENT[name], **_unpacked(said)}))
        elif name == "gen_ai.choice":
            inner = parsed(said.get("message"))
            message = {**said, **inner} if isinstance(inner, Mapping) else said
            answered.append(read_message({"role": "assistant", **_unpacked(message)}))
        elif name == "gen_ai.content.prompt":
            asked += read_messages(said.get("gen_ai.prompt"))
        elif name == "gen_ai.content.completion":
            answered += _read(said.get("gen_ai.completion"), "assistant")
    return tuple(asked), tuple(answered)


def _unpacked(said: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes hold no objects: tool calls and parts come as JSON text."""
    return {key: parsed(value) if key in ("tool_calls", "parts") else value for key, value in said.items()}


def _spread_messages(said: Mapping[str, Any], prefix: str) -> tuple[Message, ...]:
    role = "assistant" if prefix.endswith("completion") else "user"
    return tuple(
        read_message({"role": role, **item, "tool_calls": spread(item, "tool_calls")}) for item in spread(said, prefix)
    )
