"""ADK's `test_config.json`: which metrics score the files next to it, and the threshold of each.

`build_suite` combines cases and criteria into a suite, for EvalSets and legacy arrays alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from proctor.base.documents import Document, Fields, did_you_mean, json_type_name
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import UNSET, Json
from proctor.base.source import Pointer, pointer_text, read_text
from proctor.cases.evaluator_specs import read_specs
from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Suite, with_named_evaluators_only
from proctor.compat.adk.conversations import read_simulator
from proctor.compat.adk.criteria import (
    INCLUDE_INTERMEDIATE,
    METRICS,
    REPORT_ONLY,
    RUBRIC_TYPES,
    UNSUPPORTED_METRICS,
    BuiltInMetric,
    CustomMetric,
    read_custom_metrics,
    read_options,
    report_only_spec,
)
from proctor.compat.adk.keys import EXTRA_KEY, NAME

LEGACY_ROWS = "legacy_rows"
"""A key of Proctor's own: what the rows of a legacy array are if the two ADKs read them differently."""
EVALUATORS = "evaluators"
"""A key of Proctor's own, which adk-python ignores: efficiency metrics to report, and evaluators of Proctor."""
UNSUPPORTED = {"live_model_config": "needs a live session, which Proctor does not support"}
"""Keys that Proctor does not support, and why."""

DEFAULT_CRITERIA: Final = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
"""ADK's criteria for files without a config."""


@dataclass(frozen=True, slots=True)
class TestConfig:
    """The evaluators and settings that apply to a file."""

    specs: tuple[EvaluatorSpec, ...]
    is_explicit: bool
    """Whether a config sets the evaluators; False for ADK's defaults."""
    simulator: Mapping[str, Json] = field(default_factory=dict)
    """The settings of simulated users, as fields of `Scenario`."""
    extra: Mapping[str, Json] = field(default_factory=dict)
    """The config's custom metrics and simulator settings, stored as they are in the file."""


DEFAULT_CONFIG: Final = TestConfig(
    tuple(METRICS[name].spec(name, threshold, {}) for name, threshold in DEFAULT_CRITERIA.items()), is_explicit=False
)


def load_test_config(document: Document, path: Path) -> TestConfig:
    """The config at `path` for a document.

    A config that cannot be used is a problem of the document, located in the config, and never replaced by the
    defaults.
    """
    try:
        config = Document(path, read_text(path))
        test_config = read_config(config, document.path.parent)
        config.finish()
        document.warnings.extend(config.warnings)
    except InvalidSuite as error:
        document.problems.extend(error.problems)
        return TestConfig((), is_explicit=True)
    return test_config


def legacy_rows_setting(config: Path) -> str | None:
    """What a config says the rows of a legacy file are: `cases`, `conversation`, or None."""
    try:
        data = Document(config, read_text(config)).data
    except InvalidSuite:
        return None  # `load_test_config` reports it
    values = [data.get(name) for name in (LEGACY_ROWS, "legacyRows")] if isinstance(data, Mapping) else []
    return next((value for value in values if value in ("cases", "conversation")), None)


def read_config(document: Document, suite_folder: Path | None = None) -> TestConfig:
    """Read a whole `test_config.json`; problems are added to the document.

    `suite_folder` is the folder of the suite, from which the names of code start; by default the one of the config.
    """
    fields = Fields(document, document.data, camel=True)
    fields.choice(LEGACY_ROWS, ("cases", "conversation"))
    for name, reason in UNSUPPORTED.items():
        if fields.take(name) is not None:
            fields.problem(name, reason)
    criteria = fields.mapping("criteria", required=fields.valid)
    simulator, custom = _simulator(fields), _custom_metrics(fields)
    if suite_folder is not None and suite_folder.resolve() != document.path.parent.resolve():
        custom = {name: metric.relative_to_suite(suite_folder, document.path.parent) for name, metric in custom.items()}
    more = _read_evaluators(fields)
    stored_keys = {"customMetrics": "custom_metrics", "userSimulatorConfig": "user_simulator_config"}
    notes = {note: value for note, name in stored_keys.items() if (value := fields.take(name))}
    fields.report_unknown_keys(ignored_by=ADK_PYTHON)
    specs = () if criteria is None else read_criteria(document, criteria, fields.at("criteria"), custom)
    specs += more
    for name in custom.keys() - (criteria or {}).keys():
        document.warn((*fields.at("custom_metrics"), name), "is not listed under criteria, so it is not used")
    return TestConfig(specs, is_explicit=True, simulator=simulator, extra=notes)


def read_criteria(
    document: Document,
    criteria: Mapping[str, Json],
    pointer: Pointer,
    custom: Mapping[str, CustomMetric] = MappingProxyType({}),
) -> tuple[EvaluatorSpec, ...]:
    """One evaluator per metric, in the order of the file. `custom` are the config's custom metrics by name."""
    if not criteria:
        document.problem(pointer, "is empty; add at least one metric, or remove the file to use ADK's defaults")
    specs = [(name, _read_metric(document, name, value, (*pointer, name), custom)) for name, value in criteria.items()]
    return tuple(
        replace(spec, position=custom[name].position if name in custom else document.position((*pointer, name)))
        for name, spec in specs
        if spec is not None
    )


def _read_evaluators(fields: Fields) -> tuple[EvaluatorSpec, ...]:
    """The entries of `evaluators`: names of efficiency metrics, and evaluators as in a native suite."""
    entries = fields.items(EVALUATORS)
    if entries is None:
        return ()
    specs = read_specs(fields.document, entries, fields.at(EVALUATORS), defaults=None)
    return tuple(
        replace(report_only_spec(spec.name), position=spec.position) if spec.name in REPORT_ONLY else spec
        for spec in specs
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
    if name in REPORT_ONLY:
        if value not in (None, {}):
            advice = f'list it under "{EVALUATORS}", which adk-python ignores'
            document.problem(pointer, f"is only reported and has no threshold; {advice}")
        return report_only_spec(name)
    metric = METRICS.get(name)
    if metric is None:
        message = (
            "is an ADK metric that Proctor does not have" if name in UNSUPPORTED_METRICS else "is not a known metric"
        )
        document.problem(pointer, message + did_you_mean(name.lower(), [*METRICS, *REPORT_ONLY, *custom]))
        return None
    if not isinstance(value, dict):
        return metric.spec(name, _threshold(document, metric, value, pointer), {})
    fields = Fields(document, value, pointer, camel=True)
    threshold = _threshold(document, metric, fields.take("threshold"), fields.at("threshold"))
    options = read_options(fields, metric)
    if INCLUDE_INTERMEDIATE not in metric.options and fields.boolean(INCLUDE_INTERMEDIATE):
        document.warn(fields.at(INCLUDE_INTERMEDIATE), "has no effect on this metric")
    fields.report_unknown_keys(nulls=True)
    return metric.spec(name, threshold, options)


def _read_custom(document: Document, metric: CustomMetric, value: Json, pointer: Pointer) -> EvaluatorSpec:
    """The evaluator for a custom metric; options other than the threshold are passed to the function."""
    if not isinstance(value, dict):
        return metric.spec(_threshold(document, metric, value, pointer), {})
    options = {name: item for name, item in value.items() if name != "threshold"}
    return metric.spec(_threshold(document, metric, value.get("threshold"), (*pointer, "threshold")), options)


def _threshold(document: Document, metric: BuiltInMetric | CustomMetric, value: Json, pointer: Pointer) -> float:
    """Read a threshold in the metric's own range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        document.problem(pointer, f"must be a number, not {json_type_name(value)}")
    elif metric.minimum <= value <= metric.maximum:
        return float(value)
    else:
        document.problem(pointer, f"must be between {metric.minimum:g} and {metric.maximum:g}")
    return metric.minimum


ADK_PYTHON = "adk-python"
"""Used in warnings about unknown keys: adk-python's models ignore them."""


@dataclass(frozen=True, slots=True)
class LocatedCase:
    """A case and its place in the file, where problems with it are reported."""

    case: Case
    pointer: Pointer


@dataclass(frozen=True, slots=True)
class Draft:
    """A suite without its criteria."""

    name: str
    cases: tuple[LocatedCase, ...]
    description: str = ""
    extra: Mapping[str, Json] = field(default_factory=dict)


def build_suite(document: Document, draft: Draft, config: TestConfig) -> list[Suite]:
    """The suite of a draft, scored by `config`; raises with all problems."""
    _report_missing_rubrics(document, draft, config)
    _report_duplicates(document, draft)
    cases = tuple(_with_evaluators(document, located, config) for located in draft.cases)
    document.finish()
    suite = Suite(
        name=draft.name,
        cases=cases,
        evaluators=config.specs,
        criteria=Criteria(trials="mean"),
        description=draft.description,
        path=document.path,
        format=NAME,
        warnings=tuple(document.warnings),
        extra=as_extra({**draft.extra.get(EXTRA_KEY, {}), **config.extra}),
    )
    return [with_named_evaluators_only(suite)]


def evaluators_for(case: Case, config: TestConfig) -> tuple[EvaluatorSpec, ...]:
    """The evaluators of a case.

    The criteria of a config apply to every case, ADK's defaults only to cases with something to compare.
    """
    specs = config.specs if config.is_explicit else tuple(spec for spec in config.specs if _can_compare(spec, case))
    return specs if case.final_state is None else (*specs, EvaluatorSpec("FinalState"))


def suite_name(path: Path) -> str:
    """`faq` for `faq.test.json` and `faq.evalset.json`."""
    return path.stem.removesuffix(".test").removesuffix(".evalset") or path.name


def read_session(fields: Fields | None) -> tuple[Mapping[str, Json], dict[str, Json]]:
    """Read the initial state of a session, and ADK's names for the session."""
    if fields is None:
        return {}, {}
    names = {
        "appName": fields.text("app_name"),
        "userId": fields.text("user_id"),
        "sessionId": fields.text("session_id"),
    }
    state = read_initial_state(fields) or fields.mapping("state", {})
    fields.report_unknown_keys(ignored_by=ADK_PYTHON)
    return state, {key: value for key, value in names.items() if value is not None}


def read_initial_state(fields: Fields) -> Mapping[str, Json] | None:
    """Read the state under `initial_state`, another name that ADK accepts."""
    state: Mapping[str, Json] | None = fields.mapping("initial_state")
    if state and (fields.take("state") or fields.take("session_input")):
        fields.problem("initial_state", "is set together with the state of the session; keep one of them")
    return state


def as_extra(notes: Mapping[str, Json]) -> Mapping[str, Json]:
    """Data as `extra`, without empty values; ADK writes zero for a time that is not set."""
    data = {name: value for name, value in notes.items() if value not in (None, 0, [], {})}
    return {EXTRA_KEY: data} if data else {}


def _with_evaluators(document: Document, located: LocatedCase, config: TestConfig) -> Case:
    """The case with its evaluators and simulator settings; reports a case that nothing can score."""
    case = located.case
    if case.scenario is not None and config.simulator:
        case = replace(case, scenario=replace(case.scenario, **config.simulator))
    specs = evaluators_for(case, config)
    if case.turns and not specs and not config.is_explicit and not _has_problem(document, located.pointer):
        document.problem(
            located.pointer,
            "has neither a final response nor tool uses to compare with; "
            "add one of them, or choose other criteria in test_config.json",
        )
    return case if specs == config.specs else replace(case, evaluators=specs)


def _has_problem(document: Document, pointer: Pointer) -> bool:
    """Whether the case has another problem already, which may explain why nothing scores it."""
    place = pointer_text(pointer)
    return any(problem.path == document.path and problem.where.startswith(place) for problem in document.problems)


def _can_compare(spec: EvaluatorSpec, case: Case) -> bool:
    if spec.name == "ToolTrajectory":
        return any(turn.expected.tools is not None for turn in case.turns)
    return any(turn.expected.output is not UNSET for turn in case.turns)


def _report_missing_rubrics(document: Document, draft: Draft, config: TestConfig) -> None:
    """Report each metric that needs rubrics if neither its criterion nor any case or turn has some for it."""
    for spec in config.specs:
        rubric_type = RUBRIC_TYPES.get(spec.name)
        if rubric_type is None or spec.arguments.get("rubrics"):
            continue
        holders = [
            metadata
            for located in draft.cases
            for metadata in (located.case.metadata, *(turn.metadata for turn in located.case.turns))
        ]
        rubrics = [rubric for metadata in holders for rubric in metadata.get("rubrics") or ()]
        if not any(rubric.get("type") in (None, rubric_type) for rubric in rubrics):
            message = (
                f"{spec.title} needs rubrics, and neither its criterion nor a case of {document.path.name} has any "
                f'of type {rubric_type}; add "rubrics" to the criterion or to the cases'
            )
            document.problems.append(Problem.at(spec.position, message, path=document.path))


def _report_duplicates(document: Document, draft: Draft) -> None:
    ids: set[str] = set()
    for located in draft.cases:
        if located.case.id and located.case.id in ids:
            document.problem(located.pointer, f"has the same id as an earlier case: {located.case.id!r}")
        ids.add(located.case.id)
