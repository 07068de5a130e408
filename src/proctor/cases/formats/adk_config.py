"""ADK's `test_config.json`: which metrics judge the files beside it, and the least score each must reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from proctor.cases.fields import Document, Fields, kind, nearest
from proctor.cases.formats.adk_metrics import (
    IN_FINAL,
    INFORMING,
    METRICS,
    UNMEASURED,
    Metric,
    informing_spec,
    read_options,
)
from proctor.cases.model import NOTHING, EvaluatorSpec
from proctor.cases.source import Pointer, read_text
from proctor.errors import InvalidSuite
from proctor.plain import Json
from proctor.records import record

if TYPE_CHECKING:
    from proctor.cases.formats.adk_custom import CustomMetric

FILE_NAME = "test_config.json"

UNSUPPORTED = {"live_model_config": "needs a live session, which is not available"}

DEFAULT_CRITERIA: Final = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}


@record
class Gates:
    """The evaluators of a file, and whether somebody chose them or they are ADK's defaults."""

    specs: tuple[EvaluatorSpec, ...]
    chosen: bool
    simulator: Mapping[str, Json] = NOTHING
    """How the users of scenarios are played, as the fields of a `Scenario`."""
    notes: Mapping[str, Json] = NOTHING
    """What the config says of custom metrics and simulated users, as it stands there, for the way back."""


DEFAULTS: Final = Gates(
    tuple(METRICS[name].spec(name, threshold, {}) for name, threshold in DEFAULT_CRITERIA.items()), chosen=False
)


def load_gates(document: Document) -> Gates:
    """The criteria in force for a file: those of the config beside it, ADK's defaults when there is none.

    A config that cannot be used is the document's problem, located in the config, and never replaced by the defaults.
    """
    path = document.path.parent / FILE_NAME
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


def read_config(document: Document) -> Gates:
    """What a whole `test_config.json` asks for; the document has what is wrong with it."""
    fields = Fields(document, document.data, camel=True)
    for name, reason in UNSUPPORTED.items():
        if fields.take(name) is not None:
            fields.problem(name, reason)
    criteria = fields.mapping("criteria", required=fields.valid)
    simulator, custom = _simulator(fields), _custom_metrics(fields)
    kept = {"customMetrics": "custom_metrics", "userSimulatorConfig": "user_simulator_config"}
    notes = {note: value for note, name in kept.items() if (value := fields.take(name))}
    fields.done()
    specs = () if criteria is None else read_criteria(document, criteria, fields.at("criteria"), custom)
    for name in custom.keys() - (criteria or {}).keys():
        document.warn((*fields.at("custom_metrics"), name), "is not among the criteria, so it is not measured")
    return Gates(specs, chosen=True, simulator=simulator, notes=notes)


def read_criteria(
    document: Document,
    criteria: Mapping[str, Json],
    pointer: Pointer,
    custom: Mapping[str, CustomMetric] = NOTHING,
) -> tuple[EvaluatorSpec, ...]:
    """One evaluator per metric, in the order given."""
    if not criteria:
        document.problem(pointer, "is empty; name at least one metric, or remove the file to get ADK's defaults")
    specs = [_read_metric(document, name, value, (*pointer, name), custom) for name, value in criteria.items()]
    return tuple(spec for spec in specs if spec is not None)


def _simulator(fields: Fields) -> Mapping[str, Json]:
    if fields.take("user_simulator_config") is None:
        return NOTHING
    from proctor.cases.formats.adk_scenario import read_simulator

    return read_simulator(fields.inside("user_simulator_config"))


def _custom_metrics(fields: Fields) -> Mapping[str, CustomMetric]:
    if fields.take("custom_metrics") is None:
        return NOTHING
    from proctor.cases.formats.adk_custom import read_custom_metrics

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
        document.problem(pointer, known + nearest(name.lower(), [*METRICS, *INFORMING, *custom]))
        return None
    if not isinstance(value, dict):
        return metric.spec(name, _threshold(document, metric, value, pointer), {})
    fields = Fields(document, value, pointer, camel=True)
    threshold = _threshold(document, metric, fields.take("threshold"), fields.at("threshold"))
    options = read_options(fields, metric)
    if IN_FINAL not in metric.options and fields.flag(IN_FINAL):
        document.warn(fields.at(IN_FINAL), "has no effect on this metric")
    fields.done()
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
        document.problem(pointer, f"must be a number, not {kind(value)}")
    elif metric.least <= value <= metric.most:
        return float(value)
    else:
        document.problem(pointer, f"must be between {metric.least:g} and {metric.most:g}")
    return metric.least
