"""ADK's legacy arrays. ADK-TS means a case by each row; adk-python means a turn by each row and a case by each file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from proctor.cases.fields import Document, Fields
from proctor.cases.formats.adk_content import expected_call, literal_call, read_call
from proctor.cases.formats.adk_suite import Draft, Placed, keep, name_of, session_of
from proctor.cases.model import UNSET, Case, Expected, ExpectedCall, Turn
from proctor.cases.source import Pointer
from proctor.plain import Json

DEPRECATED = "is in ADK's legacy format; `proctor dataset convert` writes it as an EvalSet"
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


def read_rows(document: Document) -> Draft:
    """The cases of a flat array, of a single row, or of a legacy evalset."""
    document.warn((), DEPRECATED)
    data = document.data
    rows = _Rows(document)
    if not data:
        document.problem((), "is empty; give at least one row")
        return Draft(name_of(document.path), ())
    if isinstance(data, list) and any(isinstance(entry, dict) and "data" in entry for entry in data):
        cases = tuple(Placed(_read_entry(rows, entry, (index,)), (index,)) for index, entry in enumerate(data))
    else:
        cases = _read_flat(rows, data)
    if len(rows.dialects) == 2:
        place = rows.dialects["python"]
        document.problem(place, "mixes tool_name/tool_input (adk-python) with name/args (ADK-TS); use one of them")
    return Draft(name_of(document.path), cases)


def _read_flat(rows: _Rows, data: Json) -> tuple[Placed, ...]:
    places: list[tuple[Json, Pointer]] = (
        [(row, (index,)) for index, row in enumerate(data)] if isinstance(data, list) else [(data, ())]
    )
    turns = [_read_row(rows, row, pointer) for row, pointer in places]
    if "python" in rows.dialects:
        return (Placed(Case(name_of(rows.document.path), tuple(turns)), ()),)
    pairs = enumerate(zip(turns, places, strict=True))
    return tuple(Placed(Case(f"eval-{index}", (turn,)), pointer) for index, (turn, (_, pointer)) in pairs)


def _read_entry(rows: _Rows, data: Json, pointer: Pointer) -> Case:
    """One entry of a legacy evalset: a named conversation and the session it starts from."""
    fields = Fields(rows.document, data, pointer)
    turns = fields.each("data", lambda row, place: _read_row(rows, row, place), required=fields.valid, least=1)
    state, session = session_of(fields.inside("initial_session"))
    name = fields.text("name", "", required=fields.valid, blank=False)
    fields.done()
    return Case(name, tuple(turns), state=state, extra=keep(session))


def _read_row(rows: _Rows, data: Json, pointer: Pointer) -> Turn:
    fields = Fields(rows.document, data, pointer)
    query = fields.text("query", "", required=fields.valid, blank=False)
    reference = fields.text("reference")
    calls = _read_calls(rows, fields)
    said = _read_responses(rows, fields)
    fields.done()
    uses = {} if calls is None else {"toolUses": [literal_call(call) for call in calls]}
    return Turn(
        input=query,
        expected=Expected(output=reference or UNSET, tool_calls=calls),
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
    fields.done()
    return None if name is None else expected_call(name, arguments)


def _read_responses(rows: _Rows, fields: Fields) -> list[Json]:
    """What sub-agents are expected to say on the way, in the shape an EvalSet gives it."""
    name = "expected_intermediate_agent_responses"
    if fields.has(name):
        rows.seen("python", fields.at(name))

    def read(data: Json, pointer: Pointer) -> Json:
        inner = Fields(rows.document, data, pointer)
        author, text = inner.text("author", ""), inner.text("text", "")
        inner.done()
        return [author, [{"text": text}]]

    return fields.each(name, read)
