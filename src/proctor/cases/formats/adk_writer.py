"""Writes suites as one ADK EvalSet, camelCase as ADK-TS has it, with the `test_config.json` that belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.cases.fields import Document
from proctor.cases.formats.adk_content import is_literal, literal_call, read_content, read_tool_use, written_state
from proctor.cases.formats.adk_metrics import write_rubrics
from proctor.cases.formats.adk_suite import KEPT
from proctor.cases.formats.adk_writer_config import write_config
from proctor.cases.formats.ids import UniqueIds
from proctor.cases.formats.model import Written
from proctor.cases.formats.unsaid import json_text, unsaid
from proctor.cases.matchers import Equals
from proctor.cases.model import UNSET, Case, Expected, ExpectedCall, Suite, Turn
from proctor.cases.source import Pointer
from proctor.errors import UsageError
from proctor.plain import Json, plain, show

SUITE_SAID = {
    "name",
    "cases",
    "evaluators",
    "criteria",
    "settings",
    "description",
    "path",
    "format",
    "warnings",
    "extra",
}
CASE_SAID = {"id", "turns", "evaluators", "metadata", "state", "final_state", "line", "extra", "scenario"}
TURN_NOTES = ("appDetails", "duration", "modelDuration", "toolDuration")


def write_eval_set(suites: Sequence[Suite]) -> Written:
    """One EvalSet; several suites become one, under the name of the first."""
    if not suites:
        raise UsageError("there is no suite to write")
    losses = [loss for suite in suites for loss in _suite_losses(suite)]
    losses += [f"suite {other.name!r}: joined to {suites[0].name!r}; an EvalSet is one suite" for other in suites[1:]]
    head = suites[0]
    notes = _kept(head.extra)
    data: dict[str, Json] = {"evalSetId": head.name}
    _put(data, "name", notes.get("name"))
    _put(data, "description", head.description)
    data["creationTimestamp"] = notes.get("creationTimestamp", 0)
    data["evalCases"] = _write_cases(suites, losses)
    companions, config_losses = write_config(suites, notes)
    return Written(json_text(data), (*losses, *config_losses), companions)


def _write_cases(suites: Sequence[Suite], losses: list[str]) -> list[Json]:
    cases: list[Json] = []
    ids = UniqueIds()
    for suite in suites:
        for case in suite.cases:
            data = _write_case(suite, case, losses)
            data["evalId"] = ids.claim(case.id)
            if data["evalId"] != case.id:
                losses.append(f"case {case.id!r}: renamed to {data['evalId']!r}, because the id is taken")
            cases.append(data)
    return cases


def _write_case(suite: Suite, case: Case, losses: list[str]) -> dict[str, Json]:
    owner = f"case {case.id!r}"
    losses += unsaid(case, CASE_SAID, owner) + _foreign(case.extra, owner)
    notes = _kept(case.extra)
    data: dict[str, Json] = {"evalId": case.id}
    _put(data, "creationTimestamp", notes.get("creationTimestamp"))
    if case.scenario is None:
        data["conversation"] = [
            _write_turn(turn, owner if len(case.turns) == 1 else f"{owner} turn {number}", losses)
            for number, turn in enumerate(case.turns, start=1)
        ]
    else:
        from proctor.cases.formats.adk_scenario import write_scenario

        data["conversationScenario"] = write_scenario(case, case.scenario, owner, losses)
    session = {name: notes[name] for name in ("appName", "userId", "sessionId") if name in notes}
    if session or case.state:
        # ADK refuses a session without these names.
        data["sessionInput"] = {"appName": suite.name, "userId": "user"} | session | {"state": dict(case.state)}
    _put(data, "finalSessionState", _final_state(case, owner, losses))
    _put_rubrics(data, case.metadata, owner, losses)
    return data


def _final_state(case: Case, owner: str, losses: list[str]) -> dict[str, Json]:
    written: dict[str, Json] = {}
    for name, value in (case.final_state or {}).items():
        try:
            written[name] = written_state(plain(value))
        except ValueError as error:
            losses.append(f"{owner}: final state {name!r} has the matcher {error} and is left out; ADK knows literals")
    return written


def _write_turn(turn: Turn, owner: str, losses: list[str]) -> dict[str, Json]:
    losses += unsaid(turn, {"input", "expected", "metadata", "extra"}, owner) + _foreign(turn.extra, owner)
    losses += unsaid(turn.expected, {"output", "tool_calls"}, owner)
    notes = _kept(turn.extra)
    data: dict[str, Json] = {}
    _put(data, "invocationId", notes.get("invocationId"))
    data["creationTimestamp"] = notes.get("creationTimestamp", 0)
    data["userContent"] = _content(turn.input, notes.get("userContent"), "user", f"{owner}: input", losses)
    _put_response(data, turn.expected, notes.get("finalResponse"), owner, losses)
    _put_tool_use(data, turn.expected.tool_calls, notes.get("intermediateData"), owner, losses)
    _put_rubrics(data, turn.metadata, owner, losses)
    for name in TURN_NOTES:
        _put(data, name, notes.get(name))
    return data


def _put_rubrics(data: dict[str, Json], metadata: Mapping[str, Json], owner: str, losses: list[str]) -> None:
    """Of metadata, an EvalSet knows the rubrics."""
    rubrics = metadata.get("rubrics")
    written = write_rubrics(rubrics) if isinstance(rubrics, (list, tuple)) else None
    _put(data, "rubrics", written)
    if any(name != "rubrics" or written is None for name in metadata):
        losses.append(f"{owner}: metadata cannot be expressed")


def _content(value: Json, kept: Json, role: str, owner: str, losses: list[str]) -> Json:
    """The content as it was read, where it still says the same, or a new one with the text."""
    if isinstance(value, str) and kept is not None and _text_of(kept) == value:
        return kept
    if not isinstance(value, str):
        losses.append(f"{owner} is not text and is written as the text of its JSON")
    return {"role": role, "parts": [{"text": show(value)}]}


def _put_response(data: dict[str, Json], expected: Expected, kept: Json, owner: str, losses: list[str]) -> None:
    if expected.output is not UNSET:
        data["finalResponse"] = _content(expected.output, kept, "model", f"{owner}: expected output", losses)
    elif kept is not None and _text_of(kept) is None:
        data["finalResponse"] = kept


def _put_tool_use(
    data: dict[str, Json], calls: tuple[ExpectedCall, ...] | None, kept: Json, owner: str, losses: list[str]
) -> None:
    if kept is not None and _again(kept, read_tool_use, "calls") == calls:
        data["intermediateData"] = kept
    elif calls is not None:
        for call in calls:
            losses.extend(_call_losses(call, f"{owner}: tool {call.name!r}"))
        data["intermediateData"] = {
            "toolUses": [literal_call(call) for call in calls],
            "intermediateResponses": [],
        }


def _call_losses(call: ExpectedCall, owner: str) -> list[str]:
    losses = unsaid(call, {"name", "arguments", "extra_arguments"}, owner)
    if not is_literal(call):
        losses.append(f"{owner}: an EvalSet knows only literal arguments, so no arguments are compared (ignore_args)")
    odd = [name for name, matcher in (call.arguments or {}).items() if not isinstance(matcher, Equals)]
    return losses + [f"{owner}: argument {name!r} is not a literal and is left out" for name in odd]


def _text_of(kept: Json) -> str | None:
    text: str | None = _again(kept, lambda document, data, place: read_content(document, data, place, "user"), "text")
    return text


def _again(kept: Json, read: Callable[[Document, Json, Pointer], Any], part: str) -> Any:
    """What the reader would make of something kept; `None` when it would refuse it."""
    document = Document(Path("kept.json"), "", kept)
    found = read(document, kept, ())
    return None if document.problems else getattr(found, part)


def _suite_losses(suite: Suite) -> list[str]:
    owner = f"suite {suite.name!r}"
    losses = unsaid(suite, SUITE_SAID, owner) + _foreign(suite.extra, owner) + unsaid(suite.settings, (), owner)
    losses += unsaid(suite.criteria, {"trials"}, owner)
    if suite.criteria.trials != "mean":
        losses.append(f"{owner}: trials combine by {suite.criteria.trials!r}; ADK judges by the mean")
    return losses


def _foreign(extra: Mapping[str, Json], owner: str) -> list[str]:
    return [f"{owner}: {key} cannot be expressed" for key in extra if key != KEPT]


def _kept(extra: Mapping[str, Json]) -> Mapping[str, Json]:
    notes = extra.get(KEPT)
    return notes if isinstance(notes, Mapping) else {}


def _put(data: dict[str, Json], name: str, value: Json) -> None:
    if value:
        data[name] = value
