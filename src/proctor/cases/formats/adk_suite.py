"""What ADK's current and legacy readers share: cases in, a suite with the criteria that apply to each case out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from proctor.cases.fields import Document, Fields
from proctor.cases.formats.adk_config import Gates, load_gates
from proctor.cases.model import NOTHING, UNSET, Case, Criteria, EvaluatorSpec, Suite
from proctor.cases.source import Pointer, pointer_text
from proctor.plain import Json
from proctor.records import record

FORMAT = "adk"
KEPT = "x-adk"
"""Where `extra` keeps what ADK says and Proctor does not use."""


@record
class Placed:
    """A case and its place in the file, where problems with it are reported."""

    case: Case
    pointer: Pointer


@record
class Draft:
    """A suite that nobody has yet said how to judge."""

    name: str
    cases: tuple[Placed, ...]
    description: str = ""
    extra: Mapping[str, Json] = NOTHING


def assemble(document: Document, draft: Draft, gates: Gates | None = None) -> list[Suite]:
    """The suite of a draft, judged by `gates` or else by the config beside it; raises every problem of both."""
    gates = load_gates(document) if gates is None else gates
    _report_duplicates(document, draft)
    cases = tuple(_judged(document, placed, gates) for placed in draft.cases)
    document.finish()
    return [
        Suite(
            name=draft.name,
            cases=cases,
            evaluators=gates.specs,
            criteria=Criteria(trials="mean"),
            description=draft.description,
            path=document.path,
            format=FORMAT,
            warnings=tuple(document.warnings),
            extra=keep({**draft.extra.get(KEPT, {}), **gates.notes}),
        )
    ]


def evaluators_for(case: Case, gates: Gates) -> tuple[EvaluatorSpec, ...]:
    """Criteria somebody chose hold for every case; ADK's defaults only where a case has something to compare."""
    specs = gates.specs if gates.chosen else tuple(spec for spec in gates.specs if _has_data(spec, case))
    return specs if case.final_state is None else (*specs, EvaluatorSpec("FinalState"))


def name_of(path: Path) -> str:
    """`faq` for `faq.test.json` and `faq.evalset.json`."""
    return path.stem.removesuffix(".test").removesuffix(".evalset") or path.name


def session_of(fields: Fields | None) -> tuple[Mapping[str, Json], dict[str, Json]]:
    """The state that a session starts with, and the names ADK gives to the session."""
    if fields is None:
        return NOTHING, {}
    names = {
        "appName": fields.text("app_name"),
        "userId": fields.text("user_id"),
        "sessionId": fields.text("session_id"),
    }
    state = fields.mapping("state", NOTHING)
    fields.done()
    return state, {key: value for key, value in names.items() if value is not None}


def keep(notes: Mapping[str, Json]) -> Mapping[str, Json]:
    """`extra` for whatever says something; ADK writes zero for a time that means nothing."""
    given = {name: value for name, value in notes.items() if value not in (None, 0, [], {})}
    return {KEPT: given} if given else NOTHING


def _judged(document: Document, placed: Placed, gates: Gates) -> Case:
    case = placed.case
    if case.scenario is not None and gates.simulator:
        case = replace(case, scenario=replace(case.scenario, **gates.simulator))
    specs = evaluators_for(case, gates)
    if case.turns and not specs and not gates.chosen and not _is_faulty(document, placed.pointer):
        document.problem(
            placed.pointer,
            "gives neither a final response nor tool uses, so nothing can be judged; "
            "give one of them, or name other criteria in test_config.json",
        )
    return case if specs == gates.specs else replace(case, evaluators=specs)


def _is_faulty(document: Document, pointer: Pointer) -> bool:
    """Whether something else is wrong with a case already, which may well be what it is judged by."""
    place = pointer_text(pointer)
    return any(problem.path == document.path and problem.where.startswith(place) for problem in document.problems)


def _has_data(spec: EvaluatorSpec, case: Case) -> bool:
    if spec.name == "ToolTrajectory":
        return any(turn.expected.tool_calls is not None for turn in case.turns)
    return any(turn.expected.output is not UNSET for turn in case.turns)


def _report_duplicates(document: Document, draft: Draft) -> None:
    seen: set[str] = set()
    for placed in draft.cases:
        if placed.case.id and placed.case.id in seen:
            document.problem(placed.pointer, f"has the id {placed.case.id!r}, which an earlier case has already")
        seen.add(placed.case.id)
