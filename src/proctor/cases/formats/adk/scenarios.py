"""ADK's conversation scenarios and the config of the user simulator: read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.base.fields import Document, Fields, kind, nearest
from proctor.base.json_data import Json
from proctor.cases.formats.adk.criteria import read_model_settings
from proctor.cases.formats.native.parts import read_instructions
from proctor.cases.scenario import LONGEST, PERSONAS, STOP, Scenario
from proctor.cases.suite import Case

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
    inner.done(nulls=True)
    return scenario


def _persona(fields: Fields) -> Json:
    value = fields.take("user_persona")
    if isinstance(value, str) and value not in PERSONAS:
        known = f"must be one of {', '.join(PERSONAS)}, or an object, not {value!r}"
        fields.problem("user_persona", known + nearest(value.upper(), PERSONAS))
        return None
    if isinstance(value, Mapping):
        inner = Fields(fields.document, value, fields.at("user_persona"), camel=True)
        inner.text("id")
        inner.text("description", required=True, blank=False)
        inner.each("behaviors", lambda data, pointer: Fields(fields.document, data, pointer, camel=True))
        inner.done(nulls=True)
    elif value is not None and not isinstance(value, str):
        fields.problem("user_persona", f"must be one of {', '.join(PERSONAS)}, or an object, not {kind(value)}")
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
    given["show_tools"] = fields.flag("include_function_calls", False)
    fields.done(nulls=True)
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
        return LONGEST
    if count is not None and not 1 <= count <= LONGEST:
        fields.problem("max_allowed_invocations", f"must be from 1 to {LONGEST}, or -1")
        return None
    return count


def _instructions(fields: Fields) -> str:
    import re

    text = read_instructions(fields, "custom_instructions")
    missing = [name for name in REQUIRED if not re.search(rf"\{{\{{\s*{name}\s*\}}\}}", text)]
    if text and missing:
        fields.problem("custom_instructions", f"needs {{{{ {missing[0]} }}}}, as ADK does")
    return text


def write_scenario(case: Case, scenario: Scenario, owner: str, losses: list[str]) -> dict[str, Json]:
    """The scenario as an EvalCase has it."""
    if scenario.stop != STOP:
        losses.append(f"{owner}: the stop mark {scenario.stop!r} cannot be expressed; ADK's is {STOP}")
    data: dict[str, Json] = {"startingPrompt": scenario.start, "conversationPlan": scenario.plan}
    persona = scenario.persona
    if isinstance(persona, str) and persona not in PERSONAS:
        persona = {"id": case.id, "description": persona, "behaviors": []}
    return data if persona is None else {**data, "userPersona": persona}


def write_simulator(cases: Sequence[Case], kept: Json, losses: list[str]) -> dict[str, Json]:
    """The one config for all scenarios: as it was read where it still says the same, else made anew."""
    wanted = [(case.id, _played(case.scenario)) for case in cases if case.scenario is not None]
    if not wanted:
        return {}
    _, first = wanted[0]
    losses += [
        f"case {name!r}: its user is played otherwise than that of {wanted[0][0]!r}; ADK has one config for all"
        for name, played in wanted
        if played != first
    ]
    if isinstance(kept, Mapping) and _again(kept) == first:
        return dict(kept)
    return _written(first, losses)


def _played(scenario: Scenario) -> dict[str, Any]:
    """How the user is simulated, without the defaults."""
    usual = Scenario("", "")
    names = ("model", "max_turns", "instructions", "show_tools")
    return {name: getattr(scenario, name) for name in names if getattr(scenario, name) != getattr(usual, name)}


def _again(kept: Json) -> dict[str, Any] | None:
    """What the reader makes of a config; `None` where it would refuse it."""
    document = Document(Path("kept.json"), "", kept, lambda pointer: None)
    found = read_simulator(Fields(document, kept, camel=True))
    usual = Scenario("", "")
    return None if document.problems else {n: v for n, v in found.items() if v != getattr(usual, n)}


def _written(played: Mapping[str, Any], losses: list[str]) -> dict[str, Json]:
    names = {"max_turns": "max_allowed_invocations", "show_tools": "include_function_calls"}
    data: dict[str, Json] = {names[name]: played[name] for name in names if name in played}
    match played.get("model"):
        case None:
            pass
        case str(model):
            data["model"] = model
        case {"judge_model": str(model), **rest} if rest.keys() <= {"judge_model_config"}:
            data["model"] = model
            if rest:
                data["model_configuration"] = rest["judge_model_config"]
        case other:
            losses.append(f"the model that plays users cannot be expressed: {other!r:.100}")
    if "instructions" in played:
        text = str(played["instructions"])
        missing = [f"{{{{ {name} }}}}" for name in REQUIRED if name not in text]
        data["custom_instructions"] = "\n".join([text, *missing])
        losses += [f"the instructions of users get {place}, which ADK demands" for place in missing]
    return data
