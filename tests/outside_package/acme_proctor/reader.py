"""Acme's dialogue files: `{"dialogues": [{"title": ..., "ask": ..., "checks": [...]}], "agent": ...}`."""

from __future__ import annotations

from proctor.base.documents import Document, Fields
from proctor.base.json_data import Json
from proctor.base.source import Pointer
from proctor.cases.evaluator_specs import read_specs
from proctor.cases.suite import Case, Suite, Turn


def read(document: Document) -> list[Suite]:
    """The one suite in a file, a case for each dialogue."""

    def read_dialogue(data: Json, pointer: Pointer) -> Case:
        fields = Fields(document, data, pointer)
        title, question = fields.text("title", required=True), fields.text("ask", required=True)
        checks = read_specs(document, fields.take("checks", []), fields.at("checks"), defaults=None)
        fields.report_unknown_keys()
        return Case(id=title, turns=(Turn(question),), evaluators=checks, position=fields.position("title"))

    fields = Fields(document, document.data)
    suite = Suite(
        name=document.path.stem,
        cases=tuple(fields.each("dialogues", read_dialogue, required=True, least=1)),
        agent=fields.take("agent"),
        path=document.path,
        format="acme",
        key_positions=document.positions_below(("agent",), "agent"),
    )
    fields.report_unknown_keys()
    document.finish(suite)
    return [suite]
