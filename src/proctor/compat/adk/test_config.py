"""ADK's `test_config.json`: which metrics judge the files beside it, and the least score each must reach.

`assemble` makes a suite of cases and these criteria, for EvalSets and legacy arrays alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from proctor.base.documents import Document, Fields, did_you_mean, json_type_name
from proctor.base.errors import InvalidSuite
from proctor.base.json_data import UNSET, Json
from proctor.base.source import Pointer, pointer_text, read_text
from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Suite
from proctor.compat.adk.conversations import read_simulator
from proctor.compat.adk.criteria import (
    IN_FINAL,
    INFORMING,
    METRICS,
    UNMEASURED,
    CustomMetric,
    Metric,
    informing_spec,
    read_custom_metrics,
    read_options,
)
from proctor.compat.adk.keys import CONFIG_NAME, NAME

LEGACY_ROWS = "legacy_rows"
"""The key of ours in a config: what the rows of a legacy array are, where the two ADKs read them differently."""
UNSUPPORTED = {"live_model_config": "needs a live session, which is not available"}

DEFAULT_CRITERIA: Final = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}


@dataclass(frozen=True, slots=True)
class Gates:
    """The evaluators of a file, and whether a config chose them or they are ADK's defaults."""

    specs: tuple[EvaluatorSpec, ...]
    chosen: bool
    simulator: Mapping[str, Json] = field(default_factory=dict)
    """How the users of scenarios are played, as the fields of a `Scenario`."""
    notes: Mapping[str, Json] = field(default_factory=dict)
    """What the config says of custom metrics and simulated users, as it stands there, for the way back."""


DEFAULTS: Final = Gates(
    tuple(METRICS[name].spec(name, threshold, {}) for name, threshold in DEFAULT_CRITERIA.items()), chosen=False
)


def load_gates(document: Document) -> Gates:
    """The criteria in force for a file: those of the config beside it, ADK's defaults when there is none.

    A config that cannot be used is the document's problem, located in the config, and never replaced by the defaults.
    """
    path = document.path.parent / CONFIG_NAME
    if not path.exists():
        return DEFAULTS
    try:
        config = Document(path, read_text(path))
        gates = read_config(config)
        config.finish()
        document.warnings.extend(config.warnings)
    except InvalidSuite as error:
        document.problems.extend(error.problems)
        return Gates((), chosen=True)
    return gates


def chosen_reading(path: Path) -> str | None:
    """What the config beside a file of legacy rows says that they are: `cases`, `conversation`, or nothing."""
    config = path.parent / CONFIG_NAME
    if not config.exists():
        return None
    try:
        data = Document(config, read_text(config)).data
    except InvalidSuite:
        return None  # said when the criteria are read
    said = [data.get(name) for name in (LEGACY_ROWS, "legacyRows")] if isinstance(data, Mapping) else []
    return next((value for value in said if value in ("cases", "conversation")), None)


def read_config(document: Document) -> Gates:
    """What a whole `test_config.json` asks for; the document has what is wrong with it."""
    fields = Fields(document, document.data, camel=True)
    fields.choice(LEGACY_ROWS, ("cases", "conversation"))
    for name, reason in UNSUPPORTED.items():
        if fields.take(name) is not None:
            fields.problem(name, reason)
    criteria = fields.mapping("criteria", required=fields.valid)
    simulator, custom = _simulator(fields), _custom_metrics(fields)
    kept = {"customMetrics": "custom_metrics", "userSimulatorConfig": "user_simulator_config"}
    notes = {note: value for note, name in kept.items() if (value := fields.take(name))}
    fields.report_unknown_keys(ignored_by=ADK)
    specs = () if criteria is None else read_criteria(document, criteria, fields.at("criteria"), custom)
    for name in custom.keys() - (criteria or {}).keys():
        document.warn((*fields.at("custom_metrics"), name), "is not among the criteria, so it is not measured")
    return Gates(specs, chosen=True, simulator=simulator, notes=notes)


def read_criteria(
    document: Document,
    criteria: Mapping[str, Json],
    pointer: Pointer,
    custom: Mapping[str, CustomMetric] = MappingProxyType({}),
) -> tuple[EvaluatorSpec, ...]:
    """One evaluator per metric, in the order given."""
    if not criteria:
        document.problem(pointer, "is empty; name at least one metric, or remove the file to get ADK's defaults")
    specs = [(name, _read_metric(document, name, value, (*pointer, name), custom)) for name, value in criteria.items()]
    return tuple(
        replace(spec, position=custom[name].position if name in custom else document.position((*pointer, name)))
        for name, spec in specs
        if spec is not None
    )


def _simulator(fields: Fields) -> Mapping[str, Json]:
    if fields.take("user_simulator_config") is None:
        return {}
    return read_simulator(fields.inside("user_simulator_config"))


def _custom_metrics(fields: Fields) -> Mapping[str, CustomMetric]:
    if fields.take("custom_metrics") is None:
        return {}
    return read_custom_metrics(fields)


def _read_metric(
    document: Document, name: str, value: Json, pointer: Pointer, custom: Mapping[str, CustomMetric]
) -> EvaluatorSpec | None:
    if name in custom:
        return _read_custom(document, custom[name], value, pointer)
    if name in INFORMING:
        if value not in (None, {}):
            document.problem(pointer, f'is only reported and takes no threshold; write "{name}": {{}}')
        return informing_spec(name)
    metric = METRICS.get(name)
    if metric is None:
        known = "is an ADK metric that is not measured here" if name in UNMEASURED else "is not a known metric"
        document.problem(pointer, known + did_you_mean(name.lower(), [*METRICS, *INFORMING, *custom]))
        return None
    if not isinstance(value, dict):
        return metric.spec(name, _threshold(document, metric, value, pointer), {})
    fields = Fields(document, value, pointer, camel=True)
    threshold = _threshold(document, metric, fields.take("threshold"), fields.at("threshold"))
    options = read_options(fields, metric)
    if IN_FINAL not in metric.options and fields.boolean(IN_FINAL):
        document.warn(fields.at(IN_FINAL), "has no effect on this metric")
    fields.report_unknown_keys(nulls=True)
    return metric.spec(name, threshold, options)


def _read_custom(document: Document, metric: CustomMetric, value: Json, pointer: Pointer) -> EvaluatorSpec:
    """Beside the threshold, a criterion says whatever the function understands."""
    if not isinstance(value, dict):
        return metric.spec(_threshold(document, metric, value, pointer), {})
    options = {name: item for name, item in value.items() if name != "threshold"}
    return metric.spec(_threshold(document, metric, value.get("threshold"), (*pointer, "threshold")), options)


def _threshold(document: Document, metric: Metric | CustomMetric, value: Json, pointer: Pointer) -> float:
    """The threshold as a number in the metric's own range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        document.problem(pointer, f"must be a number, not {json_type_name(value)}")
    elif metric.least <= value <= metric.most:
        return float(value)
    else:
        document.problem(pointer, f"must be between {metric.least:g} and {metric.most:g}")
    return metric.least


ADK = "adk-python"
"""Whose models say which keys are ignored rather than refused."""
KEPT = "x-adk"
"""Where `extra` keeps what ADK says and Proctor does not use."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A case and its place in the file, where problems with it are reported."""

    case: Case
    pointer: Pointer


@dataclass(frozen=True, slots=True)
class Draft:
    """A suite without its criteria yet."""

    name: str
    cases: tuple[Placed, ...]
    description: str = ""
    extra: Mapping[str, Json] = field(default_factory=dict)


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
            format=NAME,
            warnings=tuple(document.warnings),
            extra=keep({**draft.extra.get(KEPT, {}), **gates.notes}),
        )
    ]


def evaluators_for(case: Case, gates: Gates) -> tuple[EvaluatorSpec, ...]:
    """Criteria of a config hold for every case; ADK's defaults only where a case has something to compare."""
    specs = gates.specs if gates.chosen else tuple(spec for spec in gates.specs if _has_data(spec, case))
    return specs if case.final_state is None else (*specs, EvaluatorSpec("FinalState"))


def name_of(path: Path) -> str:
    """`faq` for `faq.test.json` and `faq.evalset.json`."""
    return path.stem.removesuffix(".test").removesuffix(".evalset") or path.name


def session_of(fields: Fields | None) -> tuple[Mapping[str, Json], dict[str, Json]]:
    """The state that a session starts with, and the names ADK gives to the session."""
    if fields is None:
        return {}, {}
    names = {
        "appName": fields.text("app_name"),
        "userId": fields.text("user_id"),
        "sessionId": fields.text("session_id"),
    }
    state = initial_state(fields) or fields.mapping("state", {})
    fields.report_unknown_keys(ignored_by=ADK)
    return state, {key: value for key, value in names.items() if value is not None}


def initial_state(fields: Fields) -> Mapping[str, Json] | None:
    """The state under the other name that people give it, which ADK tolerates."""
    given: Mapping[str, Json] | None = fields.mapping("initial_state")
    if given and (fields.take("state") or fields.take("session_input")):
        fields.problem("initial_state", "is given beside the state of the session; keep one of them")
    return given


def keep(notes: Mapping[str, Json]) -> Mapping[str, Json]:
    """`extra` for whatever says something; ADK writes zero for a time that means nothing."""
    given = {name: value for name, value in notes.items() if value not in (None, 0, [], {})}
    return {KEPT: given} if given else {}


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
        return any(turn.expected.tools is not None for turn in case.turns)
    return any(turn.expected.output is not UNSET for turn in case.turns)


def _report_duplicates(document: Document, draft: Draft) -> None:
    seen: set[str] = set()
    for placed in draft.cases:
        if placed.case.id and placed.case.id in seen:
            document.problem(placed.pointer, f"has the id {placed.case.id!r}, which an earlier case has already")
        seen.add(placed.case.id)
