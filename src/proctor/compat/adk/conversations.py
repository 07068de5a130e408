"""Read ADK's conversations: contents (text and tool calls), and scenarios for a simulated user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.base.documents import Document, Fields, did_you_mean, json_type_name
from proctor.base.json_data import Json
from proctor.base.source import Pointer
from proctor.cases.formats.native.parts import read_instructions
from proctor.cases.matchers import Equals
from proctor.cases.scenario import MAX_TURNS, PERSONAS, Scenario
from proctor.cases.suite import ExpectedCall
from proctor.compat.adk.criteria import read_model_settings

PART_KINDS = (
    "inline_data",
    "file_data",
    "function_call",
    "function_response",
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
)
"""The kinds of part other than text."""

OLDER_GENAI = "an older google-genai"
"""Used in warnings about unknown keys: each version of google-genai adds keys to contents and parts."""
IGNORED_PART_KEYS = ("thought_signature", "video_metadata", "media_resolution", "part_metadata")
"""Known keys of a part that are not used."""
IGNORED_CALL_KEYS = ("id", "partial_args", "will_continue")
IGNORED_EVENT_KEYS = ("author", "grounding_metadata", "usage_metadata", "model_version")


@dataclass(frozen=True, slots=True)
class ContentText:
    """What Proctor uses of a content: its text and the tool calls in it."""

    text: str | None = None
    original: Json = None
    """The whole content if it has more than text; else None."""
    other_parts: tuple[str, ...] = ()
    """The kinds of its parts that are not text."""
    calls: tuple[ExpectedCall, ...] = ()
    thoughts: str = ""
    """The texts that the model marked as thoughts."""
    is_empty: bool = False
    """Whether it is an empty text: nothing but empty texts, or a list without parts."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The expected tool calls of an invocation."""

    calls: tuple[ExpectedCall, ...] | None = None
    original: Json = None
    """The whole intermediate data if it has more than the calls; else None."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a content."""

    text: str | None = None
    other_parts: tuple[str, ...] = ()
    call: ExpectedCall | None = None
    thought: str = ""
    is_plain_text: bool = False
    """Whether the part is a text and nothing else."""


def read_content(document: Document, data: Json, pointer: Pointer, role: str) -> ContentText:
    """Read a content. Its texts are joined by line breaks, as ADK joins them; thoughts are left out."""
    if (text := _only_text(data)) and data == {"role": role, "parts": [{"text": text}]}:
        return ContentText(text)
    fields = Fields(document, data, pointer, camel=True)
    actual_role = fields.text("role")
    parts = fields.each("parts", lambda part, place: _read_part(document, part, place))
    fields.report_unknown_keys(ignored_by=OLDER_GENAI)
    text = "\n".join(part.text for part in parts if part.text) or None
    is_plain = actual_role in (None, role) and len(parts) == 1 and parts[0].is_plain_text
    return ContentText(
        text=text,
        original=None if is_plain else data,
        other_parts=tuple(kind for part in parts for kind in part.other_parts),
        calls=tuple(part.call for part in parts if part.call is not None),
        thoughts="\n".join(part.thought for part in parts if part.thought),
        is_empty=fields.items("parts") is not None and all(part.text == "" and not part.other_parts for part in parts),
    )


def read_tool_use(document: Document, data: Json, pointer: Pointer) -> ToolUse:
    """Read the calls in intermediate data: `toolUses`, or the events of a recorded invocation."""
    fields = Fields(document, data, pointer, camel=True)
    uses = fields.items("tool_uses")
    events = fields.items("invocation_events")
    notes = [fields.items("tool_responses"), fields.items("intermediate_responses")]
    fields.report_unknown_keys(nulls=True)
    if uses and events is not None:
        fields.problem("tool_uses", "and invocation_events are both set; keep one of them")
    if events is not None:
        return ToolUse(_event_calls(document, events, fields.at("invocation_events")), data)
    if uses is None:
        return ToolUse(None, data if any(notes) else None)
    place = fields.at("tool_uses")
    calls = [read_call(document, use, (*place, index)) for index, use in enumerate(uses)]
    is_plain = not any(notes) and all(_present_keys(use) <= {"name", "args"} for use in uses)
    return ToolUse(tuple(call for call in calls if call is not None), None if is_plain else data)


def read_call(document: Document, data: Json, pointer: Pointer) -> ExpectedCall | None:
    """Read one expected call. A call without `args` must have no arguments, as ADK compares it."""
    fields = Fields(document, data, pointer, camel=True)
    name = fields.text("name", required=fields.valid, blank=False)
    arguments = fields.mapping("args", {})
    for note in IGNORED_CALL_KEYS:
        fields.take(note)
    fields.report_unknown_keys(ignored_by=OLDER_GENAI)
    return None if name is None else expected_call(name, arguments)


def expected_call(name: str, arguments: dict[str, Json]) -> ExpectedCall:
    """An expected call with literal arguments, which are the only kind ADK has."""
    return ExpectedCall(name, {key: Equals(value) for key, value in arguments.items()})


def literal_call(call: ExpectedCall) -> dict[str, Json]:
    """An expected call as ADK writes it, with the arguments that are literals."""
    arguments = call.args or {}
    return {"name": call.name, "args": {k: m.value for k, m in arguments.items() if isinstance(m, Equals)}}


def literal_state(value: Json) -> Json:
    """State in which an object that looks like a matcher is compared literally, as ADK does."""
    if isinstance(value, dict):
        is_form = any(name.startswith("$") for name in value)
        return {"$equals": value} if is_form else {name: literal_state(item) for name, item in value.items()}
    return [literal_state(item) for item in value] if isinstance(value, list) else value


def _event_calls(document: Document, events: Sequence[Json], pointer: Pointer) -> tuple[ExpectedCall, ...]:
    """The function calls in the events of a recorded invocation."""
    calls: list[ExpectedCall] = []
    for index, event in enumerate(events):
        fields = Fields(document, event, (*pointer, index), camel=True)
        for note in IGNORED_EVENT_KEYS:
            fields.take(note)
        content = fields.take("content")
        fields.report_unknown_keys(ignored_by=OLDER_GENAI)
        if content is not None:
            calls.extend(read_content(document, content, fields.at("content"), "model").calls)
    return tuple(calls)


def _only_text(data: Json) -> str | None:
    """The text of a content with one text part, which nearly all of them have; this skips the full reader."""
    match data:
        case {"parts": [{"text": str(text)}]}:
            return text
        case _:
            return None


def _read_part(document: Document, data: Json, pointer: Pointer) -> _Part:
    fields = Fields(document, data, pointer, camel=True)
    text = fields.text("text")
    thought = fields.boolean("thought", False)
    other_parts = tuple(kind for kind in PART_KINDS if fields.take(kind) is not None)
    for note in IGNORED_PART_KEYS:
        fields.take(note)
    call = fields.take("function_call")
    fields.report_unknown_keys(ignored_by=OLDER_GENAI)
    return _Part(
        text=None if thought else text,
        thought=text or "" if thought else "",
        other_parts=other_parts,
        call=None if call is None else read_call(document, call, fields.at("function_call")),
        is_plain_text=bool(text) and _present_keys(data) == {"text"},
    )


def _present_keys(data: Json) -> set[str]:
    """The keys with a value; ADK's models write every absent key as null."""
    return {key for key, value in data.items() if value is not None} if isinstance(data, dict) else set()


REQUIRED_PLACEHOLDERS = ("stop_signal", "conversation_plan", "conversation_history")
"""The placeholders that ADK requires in custom instructions."""


def read_scenario(fields: Fields) -> Scenario | None:
    """Read the `conversation_scenario` of a case. The simulator's settings are in `test_config.json`."""
    inner = fields.inside("conversation_scenario")
    if inner is None or not inner.valid:
        return None
    scenario = Scenario(
        start=inner.text("starting_prompt", "", required=True, blank=False),
        plan=inner.text("conversation_plan", "", required=True, blank=False),
        persona=_persona(inner),
    )
    inner.report_unknown_keys(nulls=True)
    return scenario


def _persona(fields: Fields) -> Json:
    """Read the persona: the name of a known one, or an object with a description."""
    value = fields.take("user_persona")
    if isinstance(value, str) and value not in PERSONAS:
        message = f"must be one of {', '.join(PERSONAS)}, or an object, not {value!r}"
        fields.problem("user_persona", message + did_you_mean(value.upper(), PERSONAS))
        return None
    if isinstance(value, Mapping):
        inner = Fields(fields.document, value, fields.at("user_persona"), camel=True)
        inner.text("id")
        inner.text("description", required=True, blank=False)
        inner.each("behaviors", lambda data, pointer: Fields(fields.document, data, pointer, camel=True))
        inner.report_unknown_keys(nulls=True)
    elif value is not None and not isinstance(value, str):
        fields.problem(
            "user_persona", f"must be one of {', '.join(PERSONAS)}, or an object, not {json_type_name(value)}"
        )
        return None
    return value


def read_simulator(fields: Fields | None) -> dict[str, Any]:
    """Read a `user_simulator_config` as fields of `Scenario`; it applies to every scenario next to it."""
    if fields is None or not fields.valid:
        return {}
    if (kind := fields.text("type", "llm_backed")) != "llm_backed":
        fields.problem("type", f"must be llm_backed, not {kind!r}; audio users are not supported")
    settings: dict[str, Any] = {"model": _user_model(fields)}
    if fields.has("max_allowed_invocations"):
        settings["max_turns"] = _max_turns(fields)
    if fields.take("custom_instructions") is not None:
        settings["instructions"] = _instructions(fields)
    settings["show_tools"] = fields.boolean("include_function_calls", False)
    fields.report_unknown_keys(nulls=True)
    return {name: value for name, value in settings.items() if value not in (None, False)}


def _user_model(fields: Fields) -> Json:
    """The model that plays the user: a name, or an object if it has settings."""
    model = fields.text("model", blank=False)
    settings = read_model_settings(fields, "model_configuration", "model")
    if model is None:
        return None
    if not settings and ":" in model:
        return model
    return {"judge_model": model, **({"judge_model_config": settings} if settings else {})}


def _max_turns(fields: Fields) -> int | None:
    """The maximum number of turns; -1 means as many as Proctor allows."""
    count: int | None = fields.integer("max_allowed_invocations")
    if count == -1:
        return MAX_TURNS
    if count is not None and not 1 <= count <= MAX_TURNS:
        fields.problem("max_allowed_invocations", f"must be from 1 to {MAX_TURNS}, or -1")
        return None
    return count


def _instructions(fields: Fields) -> str:
    """Read custom instructions and report a missing placeholder."""
    text = read_instructions(fields, "custom_instructions")
    missing = [name for name in REQUIRED_PLACEHOLDERS if not re.search(rf"\{{\{{\s*{name}\s*\}}\}}", text)]
    if text and missing:
        fields.problem("custom_instructions", f"needs {{{{ {missing[0]} }}}}, which ADK requires")
    return text
