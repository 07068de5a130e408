"""Reads and writes the scenario of a case: what a simulated user is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of

from proctor.cases.fields import Document, Fields, kind
from proctor.cases.scenario import LONGEST, STOP, USUAL_TURNS, Scenario
from proctor.cases.source import Pointer
from proctor.plain import Json

PLACES = ("stop_signal", "conversation_plan", "conversation_history", "persona")
"""What instructions of one's own can refer to."""


def read_scenario(fields: Fields) -> Scenario | None:
    """The scenario of a case; `None` where its turns are written down."""
    inner = fields.inside("scenario")
    if inner is None or not inner.valid:
        return None
    scenario = Scenario(
        start=inner.text("start", "", required=True, blank=False),
        plan=inner.text("plan", "", required=True, blank=False),
        persona=_persona(inner),
        max_turns=_turns(inner),
        stop=inner.text("stop", STOP, blank=False),
        model=read_player(inner, "model"),
        instructions=read_instructions(inner, "instructions"),
        show_tools=inner.flag("show_tools", False),
    )
    inner.done()
    return scenario


def refuse_turns(fields: Fields) -> None:
    """A conversation is either written down or made up on the way."""
    for name in ("input", "expected", "retrieval_context", "files", "turns"):
        if fields.has(name) and (name != "turns" or fields.take(name) is not None):
            fields.problem(name, "has no place beside a scenario, whose user makes up the turns")
        fields.take(name)


def write_scenario(scenario: Scenario) -> dict[str, Json]:
    """The scenario as data; what is at its default is left out."""
    given = ((item.name, getattr(scenario, item.name), item.default) for item in fields_of(scenario))
    return {name: value for name, value, default in given if value != default}


def read_player(fields: Fields, name: str) -> Json:
    """Who plays the user; whether there is such a model is found out when the run is planned."""
    value = fields.take(name)
    if value is None or isinstance(value, Mapping) or (isinstance(value, str) and value.strip()):
        return value
    fields.problem(name, "must be a model such as openai:gpt-5-mini, or an object that describes it")
    return None


def read_instructions(fields: Fields, name: str) -> str:
    """Instructions with places to be filled in; of Jinja, that is all that is understood."""
    text: str = fields.text(name, "")
    check_places(fields.document, text, fields.at(name))
    return text


def check_places(document: Document, text: str, pointer: Pointer) -> None:
    import re

    if "{%" in text or "{#" in text:
        document.problem(pointer, "has {% or {#; only places such as {{ stop_signal }} are understood")
    for place in re.findall(r"\{\{(.*?)\}\}", text, re.DOTALL):
        if place.strip() not in PLACES:
            known = ", ".join(f"{{{{ {name} }}}}" for name in PLACES)
            document.problem(pointer, f"has {{{{{place}}}}}, which stands for nothing; there are {known}")


def _persona(fields: Fields) -> Json:
    value = fields.take("persona")
    if value is None or isinstance(value, Mapping) or (isinstance(value, str) and value.strip()):
        return value
    fields.problem("persona", f"must be EXPERT, NOVICE, EVALUATOR, a text or an object, not {kind(value)}")
    return None


def _turns(fields: Fields) -> int:
    count: int = fields.integer("max_turns", USUAL_TURNS, least=1)
    if count > LONGEST:
        fields.problem("max_turns", f"must be at most {LONGEST}")
    return min(count, LONGEST)
