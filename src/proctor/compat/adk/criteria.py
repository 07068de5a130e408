"""ADK's metric names, criterion options and custom metrics, and the evaluators they stand for; read and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from proctor.base.documents import Document, Fields
from proctor.base.json_data import Json
from proctor.base.positions import Position
from proctor.base.references import is_reference
from proctor.base.source import Pointer
from proctor.cases.suite import EvaluatorSpec

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
"""In the order of ADK's enumeration, whose numbers are accepted too."""

IN_FINAL = "include_intermediate_responses_in_final"
"""What ADK lets every criterion say, and few heed."""

RUBRICS = ("judge_model_options", "rubrics", IN_FINAL)

JUDGE_SETTINGS = ("temperature", "top_p", "max_output_tokens")
"""What of a `judge_model_config` a judge here can be told."""

UNICODE_ROUGE: Final = {"variant": "rouge1", "stem": True}
TYPESCRIPT_ROUGE: Final = {"variant": "rouge1", "tokenizer": "typescript"}

UNMEASURED = frozenset(
    "multi_turn_task_success_v1 multi_turn_trajectory_quality_v1 multi_turn_tool_use_quality_v1".split()
)

INFORMING: Final[Mapping[str, str]] = {
    "tool_call_count_v1": "tool_calls",
    "inference_call_count_v1": "model_calls",
    "token_usage_v1": "tokens",
    "invocation_duration_v1": "seconds",
}
"""Measures that ADK reports and never judges, and what each counts."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One ADK metric: the evaluator it stands for, its range, and what its criterion may say."""

    evaluator: str
    options: tuple[str, ...] = ("judge_model_options",)
    least: float = 0.0
    most: float = 1.0
    scope: Literal["turn", "case"] = "turn"
    usual: float = 0.5
    """The threshold of the evaluator where a suite names none."""

    def spec(self, name: str, threshold: float, options: Mapping[str, Json]) -> EvaluatorSpec:
        """The evaluator for a criterion, its threshold brought to the range from 0 to 1."""
        share = (threshold - self.least) / (self.most - self.least)
        return EvaluatorSpec(self.evaluator, self._arguments(options), threshold=share, label=name, scope=self.scope)

    def _arguments(self, options: Mapping[str, Json]) -> Mapping[str, Json]:
        if self.evaluator == "ToolTrajectory":
            return {"match": options.get("match_type", "EXACT"), "ignore_args": options.get("ignore_args", False)}
        if self.evaluator == "ROUGE":
            return TYPESCRIPT_ROUGE if options.get("tokenizer") == "typescript" else UNICODE_ROUGE
        return options


METRICS: Final[Mapping[str, Metric]] = {
    "tool_trajectory_avg_score": Metric("ToolTrajectory", ("match_type", "ignore_args"), usual=1.0),
    "response_match_score": Metric("ROUGE", ("tokenizer",)),
    "response_evaluation_score": Metric("ResponseEvaluation", least=1.0, most=5.0),
    "safety_v1": Metric("Safety"),
    "final_response_match_v2": Metric("FinalResponseMatch", ("judge_model_options", IN_FINAL)),
    "rubric_based_final_response_quality_v1": Metric("FinalResponseQuality", RUBRICS),
    "rubric_based_tool_use_quality_v1": Metric("ToolUseQuality", RUBRICS),
    "rubric_based_multi_turn_trajectory_quality_v1": Metric("TrajectoryQuality", RUBRICS, scope="case"),
    "hallucinations_v1": Metric("Hallucinations", ("judge_model_options", "evaluate_intermediate_nl_responses")),
    "per_turn_user_simulator_quality_v1": Metric(
        "UserSimulatorQuality", ("judge_model_options", "stop_signal"), scope="case"
    ),
}


def informing_spec(name: str) -> EvaluatorSpec:
    """The evaluator behind a measure that only informs."""
    return EvaluatorSpec("Measured", {"what": INFORMING[name]}, threshold=0.0, label=name, report_only=True)


def read_options(fields: Fields, metric: Metric) -> dict[str, Json]:
    """What a criterion object says beside its threshold, in snake_case whatever the file's spelling."""
    options = {name: _READERS[name](fields, name) for name in metric.options}
    return {name: value for name, value in options.items() if value is not None}


def match_type(value: Json) -> str | None:
    """The one spelling of the many that ADK takes: `in-order`, `In Order` and 1 all mean `IN_ORDER`."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(MATCH_TYPES):
        return MATCH_TYPES[value]
    word = value.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(value, str) else None
    return word if word in MATCH_TYPES else None


def _match_type(fields: Fields, name: str) -> str | None:
    value = fields.take(name)
    found = match_type(value)
    if value is not None and found is None:
        fields.problem(name, f"must be one of {', '.join(MATCH_TYPES)} (or 0, 1, 2)")
    return found


def _judge_model_options(fields: Fields, name: str) -> dict[str, Json] | None:
    inner = fields.inside(name)
    if inner is None:
        return None
    options = {
        "judge_model": inner.text("judge_model", blank=False),
        "judge_model_config": read_model_settings(inner, "judge_model_config", "judge_model"),
        "num_samples": _count(inner, "num_samples"),
        "parallelism_limit": _count(inner, "parallelism_limit"),
    }
    inner.report_unknown_keys(nulls=True)
    return {key: value for key, value in options.items() if value is not None}


def read_model_settings(fields: Fields, config: str, model: str) -> dict[str, Json] | None:
    """The config of a model as it is, in one spelling where it has an effect; what has none is warned of."""
    inner = fields.inside(config)
    if inner is None:
        return None
    settings = {name: value for name in JUDGE_SETTINGS if (value := inner.number(name)) is not None}
    others = {name: value for name, value in inner.rest().items() if value is not None}
    for name in others:
        inner.document.warn((*inner.pointer, name), f"has no effect; a model is told {', '.join(JUDGE_SETTINGS)}")
    if settings and fields.take(model) is None:
        inner.document.warn(inner.pointer, f"has no effect without {model}")
    return settings | others


def _count(fields: Fields, name: str) -> int | None:
    value: int | None = fields.integer(name)
    if value is not None and value < 1:
        fields.problem(name, "must be at least 1")
        return None
    return value


def read_rubrics(fields: Fields, name: str = "rubrics") -> list[Json] | None:
    """Rubrics of a criterion, a case or a turn, in snake_case whatever the file's spelling."""

    def read(data: Json, pointer: Pointer) -> dict[str, Json]:
        rubric = Fields(fields.document, data, pointer, camel=True)
        content = rubric.inside("rubric_content")
        text = None if content is None else content.text("text_property", required=content.valid, blank=False)
        found = {
            "rubric_id": rubric.text("rubric_id", required=rubric.valid, blank=False),
            "rubric_content": {"text_property": text},
            "description": rubric.text("description"),
            "type": rubric.text("type"),
        }
        if content is None and rubric.valid:
            rubric.problem("rubric_content", "is missing; say what is asked of the answer")
        elif content is not None:
            content.report_unknown_keys(nulls=True)
        rubric.report_unknown_keys(nulls=True)
        return {key: value for key, value in found.items() if value is not None}

    return fields.each(name, read) or None


_READERS: Final[Mapping[str, Callable[[Fields, str], Any]]] = {
    "match_type": _match_type,
    "ignore_args": Fields.boolean,
    "tokenizer": lambda fields, name: fields.choice(name, ("unicode", "typescript")),
    "judge_model_options": _judge_model_options,
    "rubrics": read_rubrics,
    IN_FINAL: Fields.boolean,
    "evaluate_intermediate_nl_responses": Fields.boolean,
    "stop_signal": Fields.text,
}


EVALUATOR = "AdkMetric"


@dataclass(frozen=True, slots=True)
class CustomMetric:
    """A metric of one's own: `pkg.module.function` with ADK's four parameters, or an evaluator as `file.py:name`."""

    name: str
    code: str
    least: float = 0.0
    most: float = 1.0
    position: Position | None = field(default=None, compare=False, repr=False)
    """Where the config names the code."""

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
        code.report_unknown_keys(nulls=True)
    elif inner.valid:
        inner.problem("code_config", 'is missing; name the function: {"name": "package.module.function"}')
    inner.report_unknown_keys(nulls=True)
    if function is None:
        return None
    if not is_reference(function) and "." not in function.strip("."):
        inner.problem("code_config", f"names {function!r}; write package.module.function, or file.py:name")
        return None
    return CustomMetric(name, function, least, most, code.position("name") if code is not None else None)


def _interval(info: Fields | None) -> tuple[float, float]:
    """The scale on which a function measures; from 0 to 1 unless the file says otherwise."""
    if info is None:
        return 0.0, 1.0
    info.text("metric_name")
    info.text("description")
    info.boolean("requires_threshold")
    values = info.inside("metric_value_info")
    info.report_unknown_keys(nulls=True)
    interval = None if values is None else values.inside("interval")
    if values is not None:
        values.report_unknown_keys(nulls=True)
    if interval is None:
        return 0.0, 1.0
    for name in ("open_at_min", "open_at_max"):
        interval.boolean(name)
    least, most = interval.number("min_value", 0.0), interval.number("max_value", 1.0)
    interval.report_unknown_keys(nulls=True)
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
