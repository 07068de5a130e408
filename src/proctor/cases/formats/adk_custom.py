"""ADK's custom metrics: which function measures, on which scale, and the evaluator that calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.cases.fields import Document, Fields
from proctor.cases.model import EvaluatorSpec
from proctor.cases.source import Pointer
from proctor.plain import Json
from proctor.records import record
from proctor.references import is_reference

EVALUATOR = "AdkMetric"


@record
class CustomMetric:
    """A metric of one's own: `pkg.module.function` with ADK's four parameters, or an evaluator as `file.py:name`."""

    name: str
    code: str
    least: float = 0.0
    most: float = 1.0

    def spec(self, threshold: float, options: Mapping[str, Json]) -> EvaluatorSpec:
        share = (threshold - self.least) / (self.most - self.least)
        if is_reference(self.code):
            return EvaluatorSpec(self.code, options, threshold=share, label=self.name)
        given: dict[str, Json] = {"function": self.code, "metric": self.name}
        if options:
            given["criterion"] = dict(options)
        if (self.least, self.most) != (0.0, 1.0):
            given["interval"] = [self.least, self.most]
        return EvaluatorSpec(EVALUATOR, given, threshold=share, label=self.name, scope="case")

    def criterion(self, spec: EvaluatorSpec) -> Json:
        """What `test_config.json` says for a spec that this metric stands for; `None` where it stands for another."""
        options = dict(spec.arguments if is_reference(self.code) else spec.arguments.get("criterion", {}))
        if spec.threshold is None or replace(self.spec(self.least, options), threshold=spec.threshold) != spec:
            return None
        threshold = round(self.least + spec.threshold * (self.most - self.least), 10)
        return {"threshold": threshold, **options} if options else threshold


def read_custom_metrics(fields: Fields) -> dict[str, CustomMetric]:
    """By name, those that are described as they should be; the rest are problems of the config."""
    given = fields.mapping("custom_metrics") or {}
    place = fields.at("custom_metrics")
    found = [_read(fields, name, data, (*place, name)) for name, data in given.items()]
    return {metric.name: metric for metric in found if metric is not None}


def _read(fields: Fields, name: str, data: Json, pointer: Pointer) -> CustomMetric | None:
    inner = Fields(fields.document, data, pointer, camel=True)
    inner.text("description")
    least, most = _interval(inner.inside("metric_info"))
    code = inner.inside("code_config")
    function: str | None = None
    if code is not None:
        function = code.text("name", required=code.valid, blank=False)
        code.done()
    elif inner.valid:
        inner.problem("code_config", 'is missing; name the function: {"name": "package.module.function"}')
    inner.done()
    if function is None:
        return None
    if not is_reference(function) and "." not in function.strip("."):
        inner.problem("code_config", f"names {function!r}; write package.module.function, or file.py:name")
        return None
    return CustomMetric(name, function, least, most)


def _interval(info: Fields | None) -> tuple[float, float]:
    """The scale on which a function measures; from 0 to 1 where nobody says."""
    if info is None:
        return 0.0, 1.0
    info.text("metric_name")
    info.text("description")
    info.flag("requires_threshold")
    values = info.inside("metric_value_info")
    info.done()
    interval = None if values is None else values.inside("interval")
    if values is not None:
        values.done()
    if interval is None:
        return 0.0, 1.0
    for name in ("open_at_min", "open_at_max"):
        interval.flag(name)
    least, most = interval.number("min_value", 0.0), interval.number("max_value", 1.0)
    interval.done()
    if not least < most:
        interval.problem("max_value", f"must be more than min_value, which is {least:g}")
        return 0.0, 1.0
    return float(least), float(most)


def described(spec: EvaluatorSpec, kept: Mapping[str, Any]) -> tuple[str, CustomMetric, Json] | None:
    """The custom metric that a spec stands for, with its description: as it was read, or made anew for a function."""
    name = spec.label or ""
    if name in kept:
        document = Document(Path("kept.json"), "", {"custom_metrics": {name: kept[name]}}, lambda pointer: None)
        metric = read_custom_metrics(Fields(document, document.data, camel=True)).get(name)
        if metric is not None and metric.criterion(spec) is not None:
            return name, metric, kept[name]
    if spec.name != EVALUATOR:
        return None
    least, most = spec.arguments.get("interval", (0.0, 1.0))
    metric = CustomMetric(str(spec.arguments.get("metric")), str(spec.arguments.get("function")), least, most)
    data: dict[str, Json] = {"code_config": {"name": metric.code}}
    if (least, most) != (0.0, 1.0):
        scale = {"interval": {"min_value": least, "max_value": most}}
        data["metric_info"] = {"metric_name": metric.name, "metric_value_info": scale}
    return metric.name, metric, data
