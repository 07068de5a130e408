"""Read ADK's EvalSets, in camelCase or snake_case at every level, and its legacy arrays.

A row of a legacy array means two things: a case in ADK-TS; a turn in adk-python, where the file is one case. The keys
of tool calls tell the two apart. If there are none, `legacy_rows` in `test_config.json` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from proctor.base.documents import Document, Fields
from proctor.base.json_data import UNSET, Json
from proctor.base.source import Pointer
from proctor.cases.scenario import Scenario
from proctor.cases.suite import Case, Expected, ExpectedCall, Suite, Turn
from proctor.compat.adk.conversations import (
    ContentText,
    ToolUse,
    expected_call,
    literal_call,
    literal_state,
    read_call,
    read_content,
    read_scenario,
    read_tool_use,
)
from proctor.compat.adk.criteria import read_rubrics
from proctor.compat.adk.keys import CONFIG_NAME, ID_KEYS, SET_KEYS, is_row
from proctor.compat.adk.test_config import (
    ADK_PYTHON,
    DEFAULT_CONFIG,
    Draft,
    LocatedCase,
    TestConfig,
    as_extra,
    build_suite,
    legacy_rows_setting,
    load_test_config,
    read_initial_state,
    read_session,
    suite_name,
)


def read_document(document: Document, config: TestConfig | None = None) -> list[Suite]:
    """The suite of a document, scored by `config`, or by the `test_config.json` next to the file without it."""
    if config is not None:
        return build_suite(document, _read_draft(document), config)
    path = document.path.parent / CONFIG_NAME
    return read_with_config(document, path) if path.exists() else read_document(document, DEFAULT_CONFIG)


def read_with_config(document: Document, path: Path) -> list[Suite]:
    """The suite of a document, scored by the config file at `path`."""
    return build_suite(document, _read_draft(document, legacy_rows_setting(path)), load_test_config(document, path))


def _read_draft(document: Document, legacy_rows: str | None = None) -> Draft:
    data = document.data
    if is_legacy(data):
        return read_rows(document, legacy_rows)
    if isinstance(data, dict) and ID_KEYS & data.keys() and not SET_KEYS & data.keys():
        return Draft(suite_name(document.path), (LocatedCase(_read_case(document, data, ()), ()),))
    return _read_set(document)


def is_legacy(data: Json) -> bool:
    """Whether the data is an array of rows, or a single row, in ADK's format before EvalSets."""
    return isinstance(data, list) or (isinstance(data, dict) and is_row(data))


def _read_set(document: Document) -> Draft:
    fields = Fields(document, document.data, camel=True)
    notes = {"name": fields.text("name") or None, "creationTimestamp": fields.number("creation_timestamp")}
    cases = fields.each(
        "eval_cases",
        lambda data, pointer: LocatedCase(_read_case(document, data, pointer), pointer),
        required=fields.valid,
        least=1,
    )
    draft = Draft(
        name=fields.text("eval_set_id", suite_name(document.path), required=fields.valid, blank=False),
        cases=tuple(cases),
        description=fields.text("description", ""),
        extra=as_extra(notes),
    )
    fields.report_unknown_keys(ignored_by=ADK_PYTHON)
    return draft


def _read_case(document: Document, data: Json, pointer: Pointer) -> Case:
    fields = Fields(document, data, pointer, camel=True)
    scenario = _read_scenario(fields)
    turns = _read_conversation(fields) if scenario is None else (Turn(scenario.start),)
    state, session = read_session(fields.inside("session_input"))
    state = read_initial_state(fields) or state
    notes = {"creationTimestamp": fields.number("creation_timestamp")}
    case = Case(
        id=fields.text("eval_id", "", required=fields.valid, blank=False),
        turns=turns,
        metadata=_rubrics(fields),
        state=state,
        final_state=_final_state(fields),
        extra=as_extra(session | notes),
        scenario=scenario,
        position=fields.position("eval_id"),
    )
    fields.report_unknown_keys(ignored_by=ADK_PYTHON)
    return case


def _final_state(fields: Fields) -> Mapping[str, Json] | None:
    state = fields.mapping("final_session_state")
    return {name: literal_state(value) for name, value in state.items()} if state else None


def _read_scenario(fields: Fields) -> Scenario | None:
    """Read the scenario of a case whose conversation is not written down."""
    if fields.take("conversation_scenario") is None:
        return None
    if fields.take("conversation"):
        fields.problem("conversation", "is set together with conversation_scenario; keep one of them")
    return read_scenario(fields)


def _read_conversation(fields: Fields) -> tuple[Turn, ...]:
    simulated = fields.take("conversation_scenario") is not None
    conversation = fields.items("conversation", required=fields.valid and not simulated)
    if conversation is not None and not conversation and not simulated:
        fields.problem("conversation", "is empty; add at least one turn")
    place = fields.at("conversation")
    return tuple(read_turn(fields.document, data, (*place, index)) for index, data in enumerate(conversation or ()))


def read_turn(document: Document, data: Json, pointer: Pointer) -> Turn:
    """Read one invocation of a conversation."""
    fields = Fields(document, data, pointer, camel=True)
    user = _content(fields, "user_content", "user")
    response = _content(fields, "final_response", "model")
    tool_use = _tool_use(fields)
    if fields.valid and user is None:
        document.problem(pointer, "needs 'userContent' (the user's message)")
    elif user is not None:
        _check_user(fields, user)
    output = UNSET if response is None or (response.text is None and not response.is_empty) else response.text or ""
    turn = Turn(
        input="" if user is None else user.text or "",
        expected=Expected(output=output, tools=tool_use.calls),
        metadata=_rubrics(fields),
        extra=as_extra(_turn_notes(fields, user, response, tool_use)),
    )
    fields.report_unknown_keys(nulls=True)
    return turn


def _rubrics(fields: Fields) -> Mapping[str, Json]:
    """The rubrics of a case or turn as metadata, which is where the rubric evaluators look for them."""
    rubrics = read_rubrics(fields)
    return {"rubrics": rubrics} if rubrics else {}


def _turn_notes(
    fields: Fields, user: ContentText | None, response: ContentText | None, tool_use: ToolUse
) -> dict[str, Json]:
    """The parts of an invocation that Proctor stores and does not use."""
    return {
        "userContent": None if user is None else user.original,
        "finalResponse": None if response is None else response.original,
        "intermediateData": tool_use.original,
        "invocationId": fields.text("invocation_id") or None,
        "creationTimestamp": fields.number("creation_timestamp"),
        "appDetails": fields.mapping("app_details"),
        "duration": fields.number("duration"),
        "modelDuration": fields.number("model_duration"),
        "toolDuration": fields.number("tool_duration"),
    }


def _content(fields: Fields, name: str, role: str) -> ContentText | None:
    data = fields.take(name)
    return None if data is None else read_content(fields.document, data, fields.at(name), role)


def _tool_use(fields: Fields) -> ToolUse:
    data = fields.take("intermediate_data")
    if data is None:
        return ToolUse()
    return read_tool_use(fields.document, data, fields.at("intermediate_data"))


def _check_user(fields: Fields, user: ContentText) -> None:
    """Report a user message without text, and warn once about parts that are not text."""
    document = fields.document
    if user.text is None and isinstance(fields.take("user_content"), dict):
        fields.problem("user_content", "has no text to send to the agent")
    for kind in user.other_parts:
        message = f"has parts of kind {kind}, which are not sent to the agent; only text is"
        if all(warning.message != message for warning in document.warnings):
            document.warn(fields.at("user_content"), message)


LEGACY_FORMAT_WARNING = "is in ADK's legacy format; convert it with AgentEvaluator.migrate_eval_data_to_new_schema"
AMBIGUOUS_ROWS_WARNING = (
    "has {} rows without tools, which are read as one case each, like ADK-TS; adk-python reads them as turns of one "
    'conversation. To choose, set "legacy_rows" to "cases" or "conversation" in the test_config.json next to it'
)
MOCK_OUTPUT_WARNING = "has mock_tool_output, which is ignored: the agent calls its real tools"

Dialect = Literal["typescript", "python"]
"""Which ADK wrote the tool calls of a legacy array."""


@dataclass(slots=True)
class _Rows:
    """The rows of one file while they are read, with the first place where each dialect occurs."""

    document: Document
    dialects: dict[Dialect, Pointer] = field(default_factory=dict)
    mocked: bool = False

    def add_dialect(self, dialect: Dialect, pointer: Pointer) -> None:
        self.dialects.setdefault(dialect, pointer)


def read_rows(document: Document, legacy_rows: str | None = None) -> Draft:
    """Read a flat array, a single row, or a legacy evalset. `legacy_rows` says what a row is."""
    document.warn((), LEGACY_FORMAT_WARNING, "legacy format")
    data = document.data
    rows = _Rows(document)
    if not data:
        document.problem((), "is empty; add at least one row")
        return Draft(suite_name(document.path), ())
    if isinstance(data, list) and any(isinstance(entry, dict) and "data" in entry for entry in data):
        cases = tuple(LocatedCase(_read_entry(rows, entry, (index,)), (index,)) for index, entry in enumerate(data))
    else:
        cases = _read_flat_rows(rows, data, legacy_rows)
    if len(rows.dialects) == 2:
        place = rows.dialects["python"]
        document.problem(place, "mixes tool_name/tool_input (adk-python) with name/args (ADK-TS); use one of them")
    return Draft(suite_name(document.path), cases)


def _read_flat_rows(rows: _Rows, data: Json, legacy_rows: str | None) -> tuple[LocatedCase, ...]:
    places: list[tuple[Json, Pointer]] = (
        [(row, (index,)) for index, row in enumerate(data)] if isinstance(data, list) else [(data, ())]
    )
    turns = [_read_row(rows, row, pointer) for row, pointer in places]
    if len(places) > 1 and not rows.dialects and legacy_rows is None:
        rows.document.warn((), AMBIGUOUS_ROWS_WARNING.format(len(places)))
    if "python" in rows.dialects or (not rows.dialects and legacy_rows == "conversation"):
        conversation = Case(id=suite_name(rows.document.path), turns=tuple(turns), position=rows.document.position(()))
        return (LocatedCase(conversation, ()),)
    pairs = enumerate(zip(turns, places, strict=True))
    return tuple(
        LocatedCase(Case(id=f"eval-{index}", turns=(turn,), position=rows.document.position(pointer)), pointer)
        for index, (turn, (_, pointer)) in pairs
    )


def _read_entry(rows: _Rows, data: Json, pointer: Pointer) -> Case:
    """Read one entry of a legacy evalset: a named conversation and the session it starts from."""
    fields = Fields(rows.document, data, pointer)
    turns = fields.each("data", lambda row, place: _read_row(rows, row, place), required=fields.valid, least=1)
    state, session = read_session(fields.inside("initial_session"))
    state = read_initial_state(fields) or state
    name = fields.text("name", "", required=fields.valid, blank=False)
    fields.report_unknown_keys(ignored_by=ADK_PYTHON)
    return Case(id=name, turns=tuple(turns), state=state, extra=as_extra(session), position=fields.position("name"))


def _read_row(rows: _Rows, data: Json, pointer: Pointer) -> Turn:
    fields = Fields(rows.document, data, pointer)
    query = fields.text("query", "", blank=False)
    if fields.valid and fields.take("query") is None:
        rows.document.problem(pointer, "is a legacy row without 'query'; add it, with the user's message")
    reference = fields.text("reference")
    calls = _read_calls(rows, fields)
    responses = _read_responses(rows, fields)
    fields.report_unknown_keys(ignored_by=ADK_PYTHON)
    uses = {} if calls is None else {"toolUses": [literal_call(call) for call in calls]}
    return Turn(
        input=query,
        expected=Expected(output=reference or UNSET, tools=calls),
        extra=as_extra({"intermediateData": uses | {"intermediateResponses": responses} if responses else None}),
    )


def _read_calls(rows: _Rows, fields: Fields) -> tuple[ExpectedCall, ...] | None:
    items = fields.items("expected_tool_use")
    if items is None:
        return None
    place = fields.at("expected_tool_use")
    calls = [_read_call(rows, item, (*place, index)) for index, item in enumerate(items)]
    return tuple(call for call in calls if call is not None)


def _read_call(rows: _Rows, data: Json, pointer: Pointer) -> ExpectedCall | None:
    python = isinstance(data, dict) and bool({"tool_name", "tool_input"} & data.keys())
    rows.add_dialect("python" if python else "typescript", pointer)
    if not python:
        return read_call(rows.document, data, pointer)
    fields = Fields(rows.document, data, pointer)
    name = fields.text("tool_name", required=True, blank=False)
    arguments = fields.mapping("tool_input", {})
    if fields.take("mock_tool_output") is not None and not rows.mocked:
        rows.mocked = True
        rows.document.warn(pointer, MOCK_OUTPUT_WARNING)
    fields.report_unknown_keys(ignored_by=ADK_PYTHON)
    return None if name is None else expected_call(name, arguments)


def _read_responses(rows: _Rows, fields: Fields) -> list[Json]:
    """Read the intermediate responses expected of sub-agents, in the shape they have in an EvalSet."""
    name = "expected_intermediate_agent_responses"
    if fields.has(name):
        rows.add_dialect("python", fields.at(name))

    def read(data: Json, pointer: Pointer) -> Json:
        inner = Fields(rows.document, data, pointer)
        author, text = inner.text("author", ""), inner.text("text", "")
        inner.report_unknown_keys(ignored_by=ADK_PYTHON)
        return [author, [{"text": text}]]

    return fields.each(name, read)
