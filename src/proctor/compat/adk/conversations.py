"""ADK's conversations: contents (what is said, which tools are used), and scenarios for a simulated user."""

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
"""What a part can be instead of text."""

NEWER = "an older google-genai"
"""Contents and parts are google-genai's, and each of its versions adds to them."""
PART_NOTES = ("thought_signature", "video_metadata", "media_resolution", "part_metadata")
CALL_NOTES = ("id", "partial_args", "will_continue")
EVENT_NOTES = ("author", "grounding_metadata", "usage_metadata", "model_version")


@dataclass(frozen=True, slots=True)
class ContentText:
    """A content as Proctor uses it: its words, and the whole of it where it holds more than words."""

    text: str | None = None
    kept: Json = None
    others: tuple[str, ...] = ()
    """The kinds of part that are not text."""
    calls: tuple[ExpectedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The expected tool calls, and the whole intermediate data where it holds more than those."""

    calls: tuple[ExpectedCall, ...] | None = None
    kept: Json = None


@dataclass(frozen=True, slots=True)
class _Part:
    text: str | None = None
    others: tuple[str, ...] = ()
    call: ExpectedCall | None = None
    bare: bool = False
    """Whether the part is a text and nothing else."""


def read_content(document: Document, data: Json, pointer: Pointer, role: str) -> ContentText:
    """The words of a content, joined by line breaks as ADK joins them; a thought is not said to anyone."""
    if (text := _only_text(data)) and data == {"role": role, "parts": [{"text": text}]}:
        return ContentText(text)
    fields = Fields(document, data, pointer, camel=True)
    said_by = fields.text("role")
    parts = fields.each("parts", lambda part, place: _read_part(document, part, place))
    fields.report_unknown_keys(ignored_by=NEWER)
    text = "\n".join(part.text for part in parts if part.text) or None
    usual = said_by in (None, role) and len(parts) == 1 and parts[0].bare
    return ContentText(
        text=text,
        kept=None if usual else data,
        others=tuple(kind for part in parts for kind in part.others),
        calls=tuple(part.call for part in parts if part.call is not None),
    )


def read_tool_use(document: Document, data: Json, pointer: Pointer) -> ToolUse:
    """The calls that intermediate data lists, as `toolUses` or as the events of a recorded invocation."""
    fields = Fields(document, data, pointer, camel=True)
    uses = fields.items("tool_uses")
    events = fields.items("invocation_events")
    notes = [fields.items("tool_responses"), fields.items("intermediate_responses")]
    fields.report_unknown_keys(nulls=True)
    if uses and events is not None:
        fields.problem("tool_uses", "and invocation events are both given; keep one of them")
    if events is not None:
        return ToolUse(_calls_of_events(document, events, fields.at("invocation_events")), data)
    if uses is None:
        return ToolUse(None, data if any(notes) else None)
    place = fields.at("tool_uses")
    calls = [read_call(document, use, (*place, index)) for index, use in enumerate(uses)]
    bare = not any(notes) and all(_given(use) <= {"name", "args"} for use in uses)
    return ToolUse(tuple(call for call in calls if call is not None), None if bare else data)


def read_call(document: Document, data: Json, pointer: Pointer) -> ExpectedCall | None:
    """One expected call; without `args` it takes none, as ADK compares it."""
    fields = Fields(document, data, pointer, camel=True)
    name = fields.text("name", required=fields.valid, blank=False)
    arguments = fields.mapping("args", {})
    for note in CALL_NOTES:
        fields.take(note)
    fields.report_unknown_keys(ignored_by=NEWER)
    return None if name is None else expected_call(name, arguments)


def expected_call(name: str, arguments: dict[str, Json]) -> ExpectedCall:
    """A call with literal arguments: ADK has no other kind."""
    return ExpectedCall(name, {key: Equals(value) for key, value in arguments.items()})


def literal_call(call: ExpectedCall) -> dict[str, Json]:
    """A call as ADK writes it: with the arguments that are literals."""
    arguments = call.args or {}
    return {"name": call.name, "args": {k: m.value for k, m in arguments.items() if isinstance(m, Equals)}}


def literal_state(value: Json) -> Json:
    """State as ADK means it: what looks like a matcher is none."""
    if isinstance(value, dict):
        is_form = any(name.startswith("$") for name in value)
        return {"$equals": value} if is_form else {name: literal_state(item) for name, item in value.items()}
    return [literal_state(item) for item in value] if isinstance(value, list) else value


def _calls_of_events(document: Document, events: Sequence[Json], pointer: Pointer) -> tuple[ExpectedCall, ...]:
    calls: list[ExpectedCall] = []
    for index, event in enumerate(events):
        fields = Fields(document, event, (*pointer, index), camel=True)
        for note in EVENT_NOTES:
            fields.take(note)
        content = fields.take("content")
        fields.report_unknown_keys(ignored_by=NEWER)
        if content is not None:
            calls.extend(read_content(document, content, fields.at("content"), "model").calls)
    return tuple(calls)


def _only_text(data: Json) -> str | None:
    """The text of a content written in the usual way, which is nearly all of them and needs no closer look."""
    match data:
        case {"parts": [{"text": str(text)}]}:
            return text
        case _:
            return None


def _read_part(document: Document, data: Json, pointer: Pointer) -> _Part:
    fields = Fields(document, data, pointer, camel=True)
    text = fields.text("text")
    thought = fields.boolean("thought", False)
    others = tuple(kind for kind in PART_KINDS if fields.take(kind) is not None)
    for note in PART_NOTES:
        fields.take(note)
    call = fields.take("function_call")
    fields.report_unknown_keys(ignored_by=NEWER)
    return _Part(
        text=None if thought else text,
        others=others,
        call=None if call is None else read_call(document, call, fields.at("function_call")),
        bare=bool(text) and _given(data) == {"text"},
    )


def _given(data: Json) -> set[str]:
    """The keys that say something; dumps of ADK's models spell out every absent one as null."""
    return {key for key, value in data.items() if value is not None} if isinstance(data, dict) else set()


REQUIRED = ("stop_signal", "conversation_plan", "conversation_history")
"""What ADK demands of custom instructions."""


def read_scenario(fields: Fields) -> Scenario | None:
    """The `conversation_scenario` of a case; how its user is played is the config's to say."""
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
    value = fields.take("user_persona")
    if isinstance(value, str) and value not in PERSONAS:
        known = f"must be one of {', '.join(PERSONAS)}, or an object, not {value!r}"
        fields.problem("user_persona", known + did_you_mean(value.upper(), PERSONAS))
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
    """What a `user_simulator_config` says of every scenario beside it, as the fields of a `Scenario`."""
    if fields is None or not fields.valid:
        return {}
    if (played := fields.text("type", "llm_backed")) != "llm_backed":
        fields.problem("type", f"must be llm_backed, not {played!r}; users do not speak here, they write")
    given: dict[str, Any] = {"model": _player(fields)}
    if fields.has("max_allowed_invocations"):
        given["max_turns"] = _most_turns(fields)
    if fields.take("custom_instructions") is not None:
        given["instructions"] = _instructions(fields)
    given["show_tools"] = fields.boolean("include_function_calls", False)
    fields.report_unknown_keys(nulls=True)
    return {name: value for name, value in given.items() if value not in (None, False)}


def _player(fields: Fields) -> Json:
    model = fields.text("model", blank=False)
    settings = read_model_settings(fields, "model_configuration", "model")
    if model is None:
        return None
    if not settings and ":" in model:
        return model
    return {"judge_model": model, **({"judge_model_config": settings} if settings else {})}


def _most_turns(fields: Fields) -> int | None:
    count: int | None = fields.integer("max_allowed_invocations")
    if count == -1:
        return MAX_TURNS
    if count is not None and not 1 <= count <= MAX_TURNS:
        fields.problem("max_allowed_invocations", f"must be from 1 to {MAX_TURNS}, or -1")
        return None
    return count


def _instructions(fields: Fields) -> str:
    text = read_instructions(fields, "custom_instructions")
    missing = [name for name in REQUIRED if not re.search(rf"\{{\{{\s*{name}\s*\}}\}}", text)]
    if text and missing:
        fields.problem("custom_instructions", f"needs {{{{ {missing[0]} }}}}, as ADK does")
    return text
