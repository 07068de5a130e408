"""ADK's contents: what the user says, what the model answers, and which tools it uses on the way."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.base.fields import Document, Fields
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.base.source import Pointer
from proctor.cases.matchers import Equals
from proctor.cases.suite import ExpectedCall

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


@record
class ContentText:
    """A content as Proctor uses it: its words, and the whole of it where it holds more than words."""

    text: str | None = None
    kept: Json = None
    others: tuple[str, ...] = ()
    """The kinds of part that are not text."""
    calls: tuple[ExpectedCall, ...] = ()


@record
class ToolUse:
    """The expected tool calls, and the whole intermediate data where it holds more than those."""

    calls: tuple[ExpectedCall, ...] | None = None
    kept: Json = None


@record
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
    fields.done(ignored_by=NEWER)
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
    fields.done(nulls=True)
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
    fields.done(ignored_by=NEWER)
    return None if name is None else expected_call(name, arguments)


def expected_call(name: str, arguments: dict[str, Json]) -> ExpectedCall:
    """A call with literal arguments: ADK has no other kind."""
    return ExpectedCall(name, {key: Equals(value) for key, value in arguments.items()})


def literal_call(call: ExpectedCall) -> dict[str, Json]:
    """A call as ADK writes it: with the arguments that are literals."""
    arguments = call.arguments or {}
    return {"name": call.name, "args": {k: m.value for k, m in arguments.items() if isinstance(m, Equals)}}


def is_literal(call: ExpectedCall) -> bool:
    """Whether an EvalSet can say all that is expected of a call's arguments: each literally, and no others."""
    if call.arguments is None or call.extra_arguments:
        return False
    return all(isinstance(matcher, Equals) for matcher in call.arguments.values())


def literal_state(value: Json) -> Json:
    """State as ADK means it: what looks like a matcher is none."""
    if isinstance(value, dict):
        is_form = any(name.startswith("$") for name in value)
        return {"$equals": value} if is_form else {name: literal_state(item) for name, item in value.items()}
    return [literal_state(item) for item in value] if isinstance(value, list) else value


def written_state(value: Json) -> Json:
    """State as ADK writes it; raises `ValueError` where that takes a matcher, which ADK does not know."""
    if isinstance(value, dict):
        if forms := [name for name in value if name.startswith("$")]:
            if forms != ["$equals"]:
                raise ValueError(forms[0])
            return value["$equals"]
        return {name: written_state(item) for name, item in value.items()}
    return [written_state(item) for item in value] if isinstance(value, list) else value


def _calls_of_events(document: Document, events: Sequence[Json], pointer: Pointer) -> tuple[ExpectedCall, ...]:
    calls: list[ExpectedCall] = []
    for index, event in enumerate(events):
        fields = Fields(document, event, (*pointer, index), camel=True)
        for note in EVENT_NOTES:
            fields.take(note)
        content = fields.take("content")
        fields.done(ignored_by=NEWER)
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
    thought = fields.flag("thought", False)
    others = tuple(kind for kind in PART_KINDS if fields.take(kind) is not None)
    for note in PART_NOTES:
        fields.take(note)
    call = fields.take("function_call")
    fields.done(ignored_by=NEWER)
    return _Part(
        text=None if thought else text,
        others=others,
        call=None if call is None else read_call(document, call, fields.at("function_call")),
        bare=bool(text) and _given(data) == {"text"},
    )


def _given(data: Json) -> set[str]:
    """The keys that say something; dumps of ADK's models spell out every absent one as null."""
    return {key for key, value in data.items() if value is not None} if isinstance(data, dict) else set()
