"""ADK's EvalSets, as ADK-TS and adk-python write them, camelCase or snake_case at every level.

The legacy flat arrays are recognised here too, and read by `adk_legacy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.cases.fields import Document, Fields
from proctor.cases.formats.adk_config import FILE_NAME, Gates
from proctor.cases.formats.adk_content import Spoken, ToolUse, literal_state, read_content, read_tool_use
from proctor.cases.formats.adk_metrics import read_rubrics
from proctor.cases.formats.adk_suite import FORMAT, Draft, Placed, assemble, keep, name_of, session_of
from proctor.cases.formats.model import Written
from proctor.cases.model import NOTHING, UNSET, Case, Expected, Suite, Turn
from proctor.cases.scenario import Scenario
from proctor.cases.source import YAML_ENDINGS, Pointer
from proctor.plain import Json

NAME = FORMAT

SET_KEYS = {"evalSetId", "eval_set_id", "evalCases", "eval_cases"}
ID_KEYS = {"evalId", "eval_id"}
TALK_KEYS = {"conversation", "conversationScenario", "conversation_scenario"}
ROW_KEYS = {"reference", "expected_tool_use"}


def recognises(path: Path, data: Json) -> bool:
    """An EvalSet, a single EvalCase, or legacy rows."""
    if path.name == FILE_NAME or path.suffix not in (".json", *YAML_ENDINGS):
        return False
    if isinstance(data, dict):
        is_case = bool(ID_KEYS & data.keys() and TALK_KEYS & data.keys())
        return bool(SET_KEYS & data.keys()) or is_case or _is_row(data)
    if data == []:
        return path.name.endswith((".test.json", ".evalset.json"))
    return isinstance(data, list) and any(
        isinstance(row, dict) and ("query" in row or ("name" in row and "data" in row)) for row in data
    )


def read(document: Document, gates: Gates | None = None) -> list[Suite]:
    """The suite of a document, judged by the config beside it, or by `gates` if they are given."""
    data = document.data
    if is_legacy(data):
        from proctor.cases.formats.adk_legacy import read_rows

        return assemble(document, read_rows(document), gates)
    if isinstance(data, dict) and ID_KEYS & data.keys() and not SET_KEYS & data.keys():
        case = _read_case(document, data, ())
        return assemble(document, Draft(name_of(document.path), (Placed(case, ()),)), gates)
    return assemble(document, _read_set(document), gates)


def is_legacy(data: Json) -> bool:
    """Whether it is an array of rows, or one row, as ADK had them before EvalSets."""
    return isinstance(data, list) or (isinstance(data, dict) and _is_row(data))


def write(suites: Sequence[Suite]) -> Written:
    from proctor.cases.formats.adk_writer import write_eval_set

    return write_eval_set(suites)


def _is_row(data: dict[str, Json]) -> bool:
    return "query" in data and bool(ROW_KEYS & data.keys())


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
    fields.done()
    return draft


def _read_case(document: Document, data: Json, pointer: Pointer) -> Case:
    fields = Fields(document, data, pointer, camel=True)
    scenario = _read_scenario(fields)
    turns = _read_conversation(fields) if scenario is None else (Turn(scenario.start),)
    state, session = session_of(fields.inside("session_input"))
    notes = {"creationTimestamp": fields.number("creation_timestamp")}
    case = Case(
        id=fields.text("eval_id", "", required=fields.valid, blank=False),
        turns=turns,
        metadata=_rubrics(fields),
        state=state,
        final_state=_final_state(fields),
        extra=keep(session | notes),
        scenario=scenario,
    )
    fields.done()
    return case


def _final_state(fields: Fields) -> Mapping[str, Json] | None:
    given = fields.mapping("final_session_state")
    return {name: literal_state(value) for name, value in given.items()} if given else None


def _read_scenario(fields: Fields) -> Scenario | None:
    """What a simulated user is told, where the conversation is not written down."""
    if fields.take("conversation_scenario") is None:
        return None
    from proctor.cases.formats.adk_scenario import read_scenario

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
        expected=Expected(output=output, tool_calls=used.calls),
        metadata=_rubrics(fields),
        extra=keep(_turn_notes(fields, asked, answered, used)),
    )
    fields.done()
    return turn


def _rubrics(fields: Fields) -> Mapping[str, Json]:
    """Rubrics of a case or turn as its metadata, which is where the rubric evaluators look for them."""
    rubrics = read_rubrics(fields)
    return {"rubrics": rubrics} if rubrics else NOTHING


def _turn_notes(fields: Fields, asked: Spoken | None, answered: Spoken | None, used: ToolUse) -> dict[str, Json]:
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


def _content(fields: Fields, name: str, role: str) -> Spoken | None:
    data = fields.take(name)
    return None if data is None else read_content(fields.document, data, fields.at(name), role)


def _tool_use(fields: Fields) -> ToolUse:
    data = fields.take("intermediate_data")
    if data is None:
        return ToolUse()
    return read_tool_use(fields.document, data, fields.at("intermediate_data"))


def _check_user(fields: Fields, asked: Spoken) -> None:
    """Only text reaches the agent: without any there is no message, and what else was said is pointed out once."""
    document = fields.document
    if asked.text is None and isinstance(fields.take("user_content"), dict):
        fields.problem("user_content", "has no text to send to the agent")
    for kind in asked.others:
        message = f"has parts of kind {kind}, which are kept but not sent to the agent; only text is"
        if all(warning.message != message for warning in document.warnings):
            document.warn(fields.at("user_content"), message)
