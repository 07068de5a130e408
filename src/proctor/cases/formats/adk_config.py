"""ADK's `test_config.json`: which metrics judge the files beside it, and the least score each must reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proctor.cases.fields import Document, Fields, kind, nearest
from proctor.cases.formats.adk_metrics import METRICS, UNMEASURED, Metric, read_options
from proctor.cases.model import EvaluatorSpec
from proctor.cases.source import Pointer, read_text
from proctor.errors import InvalidSuite
from proctor.plain import Json
from proctor.records import record

FILE_NAME = "test_config.json"

UNSUPPORTED = {
    "custom_metrics": "is not supported: an ADK metric function has a signature of its own; write it as an evaluator "
    "that takes an Evaluable, and name it in a native suite as file.py:name",
    "user_simulator_config": "needs a simulated user, which is not available",
    "live_model_config": "needs a live session, which is not available",
}


DEFAULT_CRITERIA: Final = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}


@record
class Gates:
    """The evaluators of a file, and whether somebody chose them or they are ADK's defaults."""

    specs: tuple[EvaluatorSpec, ...]
    chosen: bool


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
        specs = read_config(config)
        config.finish()
    except InvalidSuite as error:
        document.problems.extend(error.problems)
        return Gates((), chosen=True)
    return Gates(specs, chosen=True)


def read_config(document: Document) -> tuple[EvaluatorSpec, ...]:
    """The evaluators that a whole `test_config.json` asks for."""
    fields = Fields(document, document.data, camel=True)
    for name, reason in UNSUPPORTED.items():
        if fields.take(name) is not None:
            fields.problem(name, reason)
    criteria = fields.mapping("criteria", required=fields.valid)
    fields.done()
    if criteria is None:
        return ()
    return read_criteria(document, criteria, fields.at("criteria"))


def read_criteria(document: Document, criteria: Mapping[str, Json], pointer: Pointer) -> tuple[EvaluatorSpec, ...]:
    """One evaluator per metric, in the order given."""
    if not criteria:
        document.problem(pointer, "is empty; name at least one metric, or remove the file to get ADK's defaults")
    specs = [_read_metric(document, name, value, (*pointer, name)) for name, value in criteria.items()]
    return tuple(spec for spec in specs if spec is not None)


def _read_metric(document: Document, name: str, value: Json, pointer: Pointer) -> EvaluatorSpec | None:
    metric = METRICS.get(name)
    if metric is None:
        known = "is an ADK metric that is not measured here" if name in UNMEASURED else "is not a known metric"
        document.problem(pointer, known + nearest(name.lower(), METRICS))
        return None
    if not isinstance(value, dict):
        return metric.spec(name, _threshold(document, metric, value, pointer), {})
    fields = Fields(document, value, pointer, camel=True)
    threshold = _threshold(document, metric, fields.take("threshold"), fields.at("threshold"))
    options = read_options(fields, metric)
    fields.done()
    return metric.spec(name, threshold, options)


def _threshold(document: Document, metric: Metric, value: Json, pointer: Pointer) -> float:
    """The threshold as a number in the metric's own range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        document.problem(pointer, f"must be a number, not {kind(value)}")
    elif metric.least <= value <= metric.most:
        return float(value)
    else:
        document.problem(pointer, f"must be between {metric.least:g} and {metric.most:g}")
    return metric.least
