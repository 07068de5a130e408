"""Reads ADK's EvalSets, camelCase or snake_case at every level, and its legacy arrays.

In a legacy array ADK-TS means a case by each row; adk-python means a turn by each row and a case by each file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
from proctor.compat.adk.keys import ID_KEYS, SET_KEYS, is_row
from proctor.compat.adk.test_config import (
    ADK,
    Draft,
    Gates,
    Placed,
    assemble,
    chosen_reading,
    initial_state,
    keep,
    name_of,
    session_of,
)


def read_document(document: Document, gates: Gates | None = None) -> list[Suite]:
    """The suite of a document, judged by the config beside it, or by `gates` if they are given."""
    data = document.data
    if is_legacy(data):
        reading = chosen_reading(document.path) if gates is None else None
        return assemble(document, read_rows(document, reading), gates)
    if isinstance(data, dict) and ID_KEYS & data.keys() and not SET_KEYS & data.keys():
        case = _read_case(document, data, ())
        return assemble(document, Draft(name_of(document.path), (Placed(case, ()),)), gates)
    return assemble(document, _read_set(document), gates)


def is_legacy(data: Json) -> bool:
    """Whether it is an array of rows, or one row, as ADK had them before EvalSets."""
    return isinstance(data, list) or (isinstance(data, dict) and is_row(data))


def _read_set(document: Document) -> Draft:
    fields = Fields(document, document.data, camel=True)
    notes = {"name": fields.text("name") or None, "creationTimestamp": fields.number("creation_timestamp")}
    cases = fields.each(
        "eval_cases",
        lambda data, pointer: Placed(_read_case(document, data, pointer), pointer),
        required=fields.valid,
        least=1,
    )
    draft = Draft(
        name=fields.text("eval_set_id", name_of(document.path), required=fields.valid, blank=False),
        cases=tuple(cases),
        description=fields.text("description", ""),
        extra=keep(notes),
    )
    fields.report_unknown_keys(ignored_by=ADK)
    return draft


def _read_case(document: Document, data: Json, pointer: Pointer) -> Case:
    fields = Fields(document, data, pointer, camel=True)
    scenario = _read_scenario(fields)
    turns = _read_conversation(fields) if scenario is None else (Turn(scenario.start),)
    state, session = session_of(fields.inside("session_input"))
    state = initial_state(fields) or state
    notes = {"creationTimestamp": fields.number("creation_timestamp")}
    case = Case(
        id=fields.text("eval_id", "", required=fields.valid, blank=False),
        turns=turns,
        metadata=_rubrics(fields),
        state=state,
        final_state=_final_state(fields),
        extra=keep(session | notes),
        scenario=scenario,
        position=fields.position("eval_id"),
    )
    fields.report_unknown_keys(ignored_by=ADK)
    return case


def _final_state(fields: Fields) -> Mapping[str, Json] | None:
    given = fields.mapping("final_session_state")
    return {name: literal_state(value) for name, value in given.items()} if given else None


def _read_scenario(fields: Fields) -> Scenario | None:
    """What a simulated user is told, where the conversation is not written down."""
    if fields.take("conversation_scenario") is None:
        return None
    if fields.take("conversation"):
        fields.problem("conversation", "is given beside a scenario, whose user makes up the turns; keep one of them")
    return read_scenario(fields)


def _read_conversation(fields: Fields) -> tuple[Turn, ...]:
    simulated = fields.take("conversation_scenario") is not None
    conversation = fields.items("conversation", required=fields.valid and not simulated)
    if conversation is not None and not conversation and not simulated:
        fields.problem("conversation", "is empty; give at least one turn")
    place = fields.at("conversation")
    return tuple(_read_turn(fields.document, data, (*place, index)) for index, data in enumerate(conversation or ()))


def _read_turn(document: Document, data: Json, pointer: Pointer) -> Turn:
    fields = Fields(document, data, pointer, camel=True)
    asked = _content(fields, "user_content", "user")
    answered = _content(fields, "final_response", "model")
    used = _tool_use(fields)
    if fields.valid and asked is None:
        document.problem(pointer, "needs 'userContent' (what the user says)")
    elif asked is not None:
        _check_user(fields, asked)
    output = UNSET if answered is None or answered.text is None else answered.text
    turn = Turn(
        input="" if asked is None else asked.text or "",
        expected=Expected(output=output, tools=used.calls),
        metadata=_rubrics(fields),
        extra=keep(_turn_notes(fields, asked, answered, used)),
    )
    fields.report_unknown_keys(nulls=True)
    return turn


def _rubrics(fields: Fields) -> Mapping[str, Json]:
    """Rubrics of a case or turn as its metadata, which is where the rubric evaluators look for them."""
    rubrics = read_rubrics(fields)
    return {"rubrics": rubrics} if rubrics else {}


def _turn_notes(
    fields: Fields, asked: ContentText | None, answered: ContentText | None, used: ToolUse
) -> dict[str, Json]:
    return {
        "userContent": None if asked is None else asked.kept,
        "finalResponse": None if answered is None else answered.kept,
        "intermediateData": used.kept,
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


def _check_user(fields: Fields, asked: ContentText) -> None:
    """Only text reaches the agent: without any there is no message, and what else was said is pointed out once."""
    document = fields.document
    if asked.text is None and isinstance(fields.take("user_content"), dict):
        fields.problem("user_content", "has no text to send to the agent")
    for kind in asked.others:
        message = f"has parts of kind {kind}, which are kept but not sent to the agent; only text is"
        if all(warning.message != message for warning in document.warnings):
            document.warn(fields.at("user_content"), message)


DEPRECATED = "is in ADK's legacy format; AgentEvaluator.migrate_eval_data_to_new_schema writes it as an EvalSet"
AMBIGUOUS = (
    "has {} rows without tools, which are read as one case each, as ADK-TS reads them; adk-python reads them as turns "
    'of one conversation. To choose, write "legacy_rows": "cases" or "conversation" into the test_config.json beside it'
)
MOCKED = "has mock_tool_output, which is ignored: the agent calls its real tools"

Dialect = Literal["typescript", "python"]


@dataclass(slots=True)
class _Rows:
    """The rows of one file as they are read, with the first place where each dialect shows."""

    document: Document
    dialects: dict[Dialect, Pointer] = field(default_factory=dict)
    mocked: bool = False

    def seen(self, dialect: Dialect, pointer: Pointer) -> None:
        self.dialects.setdefault(dialect, pointer)


def read_rows(document: Document, reading: str | None = None) -> Draft:
    """The cases of a flat array, of a single row, or of a legacy evalset; `reading` says what a row is."""
    document.warn((), DEPRECATED)
    data = document.data
    rows = _Rows(document)
    if not data:
        document.problem((), "is empty; give at least one row")
        return Draft(name_of(document.path), ())
    if isinstance(data, list) and any(isinstance(entry, dict) and "data" in entry for entry in data):
        cases = tuple(Placed(_read_entry(rows, entry, (index,)), (index,)) for index, entry in enumerate(data))
    else:
        cases = _read_flat(rows, data, reading)
    if len(rows.dialects) == 2:
        place = rows.dialects["python"]
        document.problem(place, "mixes tool_name/tool_input (adk-python) with name/args (ADK-TS); use one of them")
    return Draft(name_of(document.path), cases)


def _read_flat(rows: _Rows, data: Json, reading: str | None) -> tuple[Placed, ...]:
    places: list[tuple[Json, Pointer]] = (
        [(row, (index,)) for index, row in enumerate(data)] if isinstance(data, list) else [(data, ())]
    )
    turns = [_read_row(rows, row, pointer) for row, pointer in places]
    if len(places) > 1 and not rows.dialects and reading is None:
        rows.document.warn((), AMBIGUOUS.format(len(places)))
    if "python" in rows.dialects or (not rows.dialects and reading == "conversation"):
        whole = Case(name_of(rows.document.path), tuple(turns), position=rows.document.position(()))
        return (Placed(whole, ()),)
    pairs = enumerate(zip(turns, places, strict=True))
    return tuple(
        Placed(Case(f"eval-{index}", (turn,), position=rows.document.position(pointer)), pointer)
        for index, (turn, (_, pointer)) in pairs
    )


def _read_entry(rows: _Rows, data: Json, pointer: Pointer) -> Case:
    """One entry of a legacy evalset: a named conversation and the session it starts from."""
    fields = Fields(rows.document, data, pointer)
    turns = fields.each("data", lambda row, place: _read_row(rows, row, place), required=fields.valid, least=1)
    state, session = session_of(fields.inside("initial_session"))
    state = initial_state(fields) or state
    name = fields.text("name", "", required=fields.valid, blank=False)
    fields.report_unknown_keys(ignored_by=ADK)
    return Case(name, tuple(turns), state=state, extra=keep(session), position=fields.position("name"))


def _read_row(rows: _Rows, data: Json, pointer: Pointer) -> Turn:
    fields = Fields(rows.document, data, pointer)
    query = fields.text("query", "", required=fields.valid, blank=False)
    reference = fields.text("reference")
    calls = _read_calls(rows, fields)
    said = _read_responses(rows, fields)
    fields.report_unknown_keys(ignored_by=ADK)
    uses = {} if calls is None else {"toolUses": [literal_call(call) for call in calls]}
    return Turn(
        input=query,
        expected=Expected(output=reference or UNSET, tools=calls),
        extra=keep({"intermediateData": uses | {"intermediateResponses": said} if said else None}),
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
    rows.seen("python" if python else "typescript", pointer)
    if not python:
        return read_call(rows.document, data, pointer)
    fields = Fields(rows.document, data, pointer)
    name = fields.text("tool_name", required=True, blank=False)
    arguments = fields.mapping("tool_input", {})
    if fields.take("mock_tool_output") is not None and not rows.mocked:
        rows.mocked = True
        rows.document.warn(pointer, MOCKED)
    fields.report_unknown_keys(ignored_by=ADK)
    return None if name is None else expected_call(name, arguments)


def _read_responses(rows: _Rows, fields: Fields) -> list[Json]:
    """What sub-agents are expected to say on the way, in the shape an EvalSet gives it."""
    name = "expected_intermediate_agent_responses"
    if fields.has(name):
        rows.seen("python", fields.at(name))

    def read(data: Json, pointer: Pointer) -> Json:
        inner = Fields(rows.document, data, pointer)
        author, text = inner.text("author", ""), inner.text("text", "")
        inner.report_unknown_keys(ignored_by=ADK)
        return [author, [{"text": text}]]

    return fields.each(name, read)
