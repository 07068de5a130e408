"""Writes suites as one ADK EvalSet, camelCase for ADK-TS or snake_case for adk-python, with its `test_config.json`.

Evaluators become criteria: one set of them for all cases, which is all that ADK can hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.base.documents import Document
from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json, json_text, plain, show
from proctor.base.source import Pointer
from proctor.cases.formats.adk.conversations import (
    is_literal,
    literal_call,
    read_content,
    read_tool_use,
    write_scenario,
    write_simulator,
    written_state,
)
from proctor.cases.formats.adk.criteria import INFORMING, METRICS, described, metric_of, write_rubrics
from proctor.cases.formats.adk.keys import CONFIG_NAME
from proctor.cases.formats.adk.test_config import DEFAULTS, KEPT, evaluators_for
from proctor.cases.formats.format_spec import UniqueIds, Written, unwritten_fields
from proctor.cases.matchers import Equals
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Suite, Turn

SUITE_WRITTEN = {
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
CASE_WRITTEN = {"id", "turns", "evaluators", "metadata", "state", "final_state", "line", "extra", "scenario"}
TURN_NOTES = ("appDetails", "duration", "modelDuration", "toolDuration")


OPAQUE = frozenset(
    "args state response finalSessionState final_session_state appDetails app_details "
    "partMetadata part_metadata".split()
)
"""Keys whose values are the user's data, or are keyed by the user's names."""


def write_eval_set(suites: Sequence[Suite], *, snake: bool = False) -> Written:
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
    return Written(json_text(_in_snake_case(data) if snake else data), (*losses, *config_losses), companions)


def _in_snake_case(value: Json) -> Json:
    """ADK's own keys as adk-python writes them; what the user named keeps its name."""
    if isinstance(value, list):
        return [_in_snake_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub(r"(?<=[a-z0-9])[A-Z]", lambda upper: f"_{upper[0].lower()}", key): item
        if key in OPAQUE
        else _in_snake_case(item)
        for key, item in value.items()
    }


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
    losses += unwritten_fields(case, CASE_WRITTEN, owner) + _foreign(case.extra, owner)
    notes = _kept(case.extra)
    data: dict[str, Json] = {"evalId": case.id}
    _put(data, "creationTimestamp", notes.get("creationTimestamp"))
    if case.scenario is None:
        data["conversation"] = [
            _write_turn(turn, owner if len(case.turns) == 1 else f"{owner} turn {number}", losses)
            for number, turn in enumerate(case.turns, start=1)
        ]
    else:
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
    losses += unwritten_fields(turn, {"input", "expected", "metadata", "extra"}, owner) + _foreign(turn.extra, owner)
    losses += unwritten_fields(turn.expected, {"output", "tool_calls"}, owner)
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
    losses = unwritten_fields(call, {"name", "arguments", "extra_arguments"}, owner)
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
    losses = (
        unwritten_fields(suite, SUITE_WRITTEN, owner)
        + _foreign(suite.extra, owner)
        + unwritten_fields(suite.settings, (), owner)
    )
    losses += unwritten_fields(suite.criteria, {"trials"}, owner)
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


SPEC_WRITTEN = {"name", "arguments", "threshold", "label", "scope"}


def write_config(suites: Sequence[Suite], notes: Mapping[str, Json]) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """The config as (name, text), none where ADK's defaults say the same, and what it could not say.

    `notes` are what the first suite's own config said of custom metrics and simulated users.
    """
    simulated = [case for suite in suites for case in suite.cases if case.scenario is not None]
    if all(_is_default(suite) for suite in suites) and not simulated:
        return (), []
    draft = _Draft(suites, notes.get("customMetrics") or {})
    for spec in _distinct(suites):
        draft.add(spec)
    draft.losses += [
        f"case {case.id!r}: is scored by fewer evaluators than others; ADK applies all criteria to every case"
        for suite in suites
        for case in suite.cases
        if {draft.name_of(spec) for spec in _in_force(suite, case)} - {None} != draft.criteria.keys()
    ]
    config: dict[str, Json] = {"criteria": draft.criteria}
    if draft.custom:
        config["custom_metrics"] = draft.custom
    if simulated:
        simulator = write_simulator(simulated, notes.get("userSimulatorConfig"), draft.losses)
        config |= {"user_simulator_config": simulator} if simulator else {}
    if not draft.criteria:
        return (), [*draft.losses, "no evaluator has an ADK metric; ADK's default criteria will apply"]
    return ((CONFIG_NAME, json_text(config)),), draft.losses


class _Draft:
    """Criteria as they come together, and what they could not say."""

    def __init__(self, suites: Sequence[Suite], kept: Mapping[str, Json]) -> None:
        self.criteria: dict[str, Json] = {}
        self.custom: dict[str, Json] = {}
        self.losses: list[str] = []
        self._suites = suites
        self._kept = kept

    def add(self, spec: EvaluatorSpec) -> None:
        found = described(spec, self._kept)
        if found is None:
            metric, criterion = _criterion(_as_trajectory(spec, self._suites), self.losses)
        else:
            metric, custom, data = found
            criterion = custom.criterion(spec)
            self.losses += unwritten_fields(spec, SPEC_WRITTEN, f"evaluator {spec.title!r}")
            self.custom[metric] = data
        if metric is None:
            return
        if metric in self.criteria:
            self.losses.append(f"evaluator {spec.title!r}: {metric} can be given only once")
        self.criteria.setdefault(metric, criterion)

    def name_of(self, spec: EvaluatorSpec) -> str | None:
        found = described(spec, self._kept)
        return metric_of(_as_trajectory(spec, self._suites)) if found is None else found[0]


def _as_trajectory(spec: EvaluatorSpec, suites: Sequence[Suite]) -> EvaluatorSpec:
    """Expected tools are a trajectory in any order; arguments that an EvalSet cannot write are not compared at all."""
    if spec.name == "ExpectedTools":
        spec = replace(spec, name="ToolTrajectory", arguments={"match": "ANY_ORDER"})
    if spec.name != "ToolTrajectory" or all(map(is_literal, _expected_calls(suites))):
        return spec
    return replace(spec, arguments={**spec.arguments, "ignore_args": True})


def _expected_calls(suites: Sequence[Suite]) -> Iterator[ExpectedCall]:
    for suite in suites:
        for case in suite.cases:
            for turn in case.turns:
                yield from turn.expected.tool_calls or ()


def _is_default(suite: Suite) -> bool:
    return suite.evaluators == DEFAULTS.specs and all(
        suite.evaluators_of(case) == evaluators_for(case, DEFAULTS) for case in suite.cases
    )


def _distinct(suites: Sequence[Suite]) -> list[EvaluatorSpec]:
    specs: list[EvaluatorSpec] = []
    for suite in suites:
        for case in suite.cases:
            specs.extend(spec for spec in _in_force(suite, case) if spec not in specs)
    return specs


def _in_force(suite: Suite, case: Case) -> list[EvaluatorSpec]:
    """The specs of a case but for the one that an EvalSet implies by its final session state."""
    implied = case.final_state is not None
    return [spec for spec in suite.evaluators_of(case) if not (implied and spec.name == "FinalState")]


def _criterion(spec: EvaluatorSpec, losses: list[str]) -> tuple[str | None, Json]:
    owner = f"evaluator {spec.title!r}"
    metric = metric_of(spec)
    if metric is None:
        losses.append(f"{owner}: has no ADK metric")
        return None, None
    if metric in INFORMING:
        return metric, {}
    losses += unwritten_fields(spec, SPEC_WRITTEN, owner)
    if spec.threshold is None:
        spec = replace(spec, threshold=METRICS[metric].usual)
    criterion = METRICS[metric].criterion(spec)
    if criterion is None:
        losses.append(f"{owner}: {metric} cannot express its arguments")
        return None, None
    return metric, criterion
