"""ADK's metrics: the evaluator behind each metric name, the options of a criterion, and custom metrics."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from proctor.base.documents import Fields
from proctor.base.json_data import Json
from proctor.base.positions import Position
from proctor.base.references import is_reference
from proctor.base.source import Pointer
from proctor.cases.suite import EvaluatorSpec

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
"""In the order of ADK's enumeration; its numbers are accepted too."""

INCLUDE_INTERMEDIATE = "include_intermediate_responses_in_final"
"""An option that ADK accepts in every criterion and that few metrics use."""

RUBRIC_OPTIONS = ("judge_model_options", "rubrics", INCLUDE_INTERMEDIATE)
"""The options of rubric-based metrics."""

RUBRIC_TYPES: Final[Mapping[str, str]] = {
    "FinalResponseQuality": "FINAL_RESPONSE_QUALITY",
    "ToolUseQuality": "TOOL_USE_QUALITY",
    "TrajectoryQuality": "TRAJECTORY_QUALITY",
}
"""By evaluator: ADK's type of the rubrics in cases and turns that it checks."""

MODEL_SETTINGS = ("temperature", "top_p", "max_output_tokens")
"""The keys of a model config that have an effect here."""

UNICODE_ROUGE: Final = {"variant": "rouge1", "stem": True}
TYPESCRIPT_ROUGE: Final = {"variant": "rouge1", "tokenizer": "typescript"}

THOUGHTS = "thoughts"
"""An option of Proctor's own for `response_match_score`: compare the thoughts too, as adk-python does."""
THOUGHTS_EVALUATOR = "RougeWithThoughts"

UNSUPPORTED_METRICS = frozenset(
    "multi_turn_task_success_v1 multi_turn_trajectory_quality_v1 multi_turn_tool_use_quality_v1".split()
)
"""ADK metrics that Proctor does not have."""

REPORT_ONLY: Final[Mapping[str, str]] = {
    "tool_call_count_v1": "tool_calls",
    "inference_call_count_v1": "model_calls",
    "token_usage_v1": "tokens",
    "invocation_duration_v1": "seconds",
}
"""Metrics that ADK only reports, and what each of them counts."""


@dataclass(frozen=True, slots=True)
class BuiltInMetric:
    """One ADK metric: the evaluator it uses, its score range, and the options of its criterion."""

    evaluator: str
    options: tuple[str, ...] = ("judge_model_options",)
    minimum: float = 0.0
    maximum: float = 1.0
    scope: Literal["turn", "case"] = "turn"
    default_threshold: float = 0.5
    """The evaluator's threshold if a suite does not set one."""

    def spec(self, name: str, threshold: float, options: Mapping[str, Json]) -> EvaluatorSpec:
        """The evaluator for a criterion, with the threshold converted to 0 to 1."""
        share = (threshold - self.minimum) / (self.maximum - self.minimum)
        evaluator = THOUGHTS_EVALUATOR if options.get(THOUGHTS) else self.evaluator
        return EvaluatorSpec(evaluator, self._arguments(options), threshold=share, label=name, scope=self.scope)

    def _arguments(self, options: Mapping[str, Json]) -> Mapping[str, Json]:
        if self.evaluator == "ToolTrajectory":
            match = options.get("match_type", "EXACT")
            arguments = {"match": match, "ignore_args": options.get("ignore_args", False), "inner_calls": "ignore"}
            return arguments if match == "EXACT" else arguments | {"empty": "any calls"}
        if self.evaluator == "ROUGE":
            return TYPESCRIPT_ROUGE if options.get("tokenizer") == "typescript" else UNICODE_ROUGE
        return options


METRICS: Final[Mapping[str, BuiltInMetric]] = {
    "tool_trajectory_avg_score": BuiltInMetric("ToolTrajectory", ("match_type", "ignore_args"), default_threshold=1.0),
    "response_match_score": BuiltInMetric("ROUGE", ("tokenizer", THOUGHTS)),
    "response_evaluation_score": BuiltInMetric("ResponseEvaluation", minimum=1.0, maximum=5.0),
    "safety_v1": BuiltInMetric("Safety"),
    "final_response_match_v2": BuiltInMetric("FinalResponseMatch", ("judge_model_options", INCLUDE_INTERMEDIATE)),
    "rubric_based_final_response_quality_v1": BuiltInMetric("FinalResponseQuality", RUBRIC_OPTIONS),
    "rubric_based_tool_use_quality_v1": BuiltInMetric("ToolUseQuality", RUBRIC_OPTIONS),
    "rubric_based_multi_turn_trajectory_quality_v1": BuiltInMetric("TrajectoryQuality", RUBRIC_OPTIONS, scope="case"),
    "hallucinations_v1": BuiltInMetric("Hallucinations", ("judge_model_options", "evaluate_intermediate_nl_responses")),
    "per_turn_user_simulator_quality_v1": BuiltInMetric(
        "UserSimulatorQuality", ("judge_model_options", "stop_signal"), scope="case"
    ),
}
"""The metrics by ADK's names."""


def report_only_spec(name: str) -> EvaluatorSpec:
    """The evaluator of a metric that is only reported."""
    return EvaluatorSpec("Measured", {"what": REPORT_ONLY[name]}, threshold=0.0, label=name, report_only=True)


def read_options(fields: Fields, metric: BuiltInMetric) -> dict[str, Json]:
    """Read the options of a criterion (all but its threshold), in snake_case for either spelling of the file."""
    options = {name: _READERS[name](fields, name) for name in metric.options}
    return {name: value for name, value in options.items() if value is not None}


def match_type(value: Json) -> str | None:
    """The match type in any of ADK's spellings: `in-order`, `In Order` and 1 all mean `IN_ORDER`."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(MATCH_TYPES):
        return MATCH_TYPES[value]
    word = value.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(value, str) else None
    return word if word in MATCH_TYPES else None


def _match_type(fields: Fields, name: str) -> str | None:
    value = fields.take(name)
    match = match_type(value)
    if value is not None and match is None:
        fields.problem(name, f"must be one of {', '.join(MATCH_TYPES)} (or 0, 1, 2)")
    return match


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
    """Read the config of a model. Warn about keys that have no effect.

    `config` is the key of the config, `model` the key of the model that it is for.
    """
    inner = fields.inside(config)
    if inner is None:
        return None
    settings = {name: value for name in MODEL_SETTINGS if (value := inner.number(name)) is not None}
    unused = {name: value for name, value in inner.rest().items() if value is not None}
    for name in unused:
        inner.document.warn((*inner.pointer, name), f"has no effect; these keys do: {', '.join(MODEL_SETTINGS)}")
    if settings and fields.take(model) is None:
        inner.document.warn(inner.pointer, f"has no effect without {model}")
    return settings | unused


def _count(fields: Fields, name: str) -> int | None:
    value: int | None = fields.integer(name)
    if value is not None and value < 1:
        fields.problem(name, "must be at least 1")
        return None
    return value


def read_rubrics(fields: Fields, name: str = "rubrics") -> list[Json] | None:
    """Read the rubrics of a criterion, a case or a turn, in snake_case for either spelling of the file."""

    def read(data: Json, pointer: Pointer) -> dict[str, Json]:
        rubric = Fields(fields.document, data, pointer, camel=True)
        content = rubric.inside("rubric_content")
        text = None if content is None else content.text("text_property", required=content.valid, blank=False)
        result = {
            "rubric_id": rubric.text("rubric_id", required=rubric.valid, blank=False),
            "rubric_content": {"text_property": text},
            "description": rubric.text("description"),
            "type": rubric.text("type"),
        }
        if content is None and rubric.valid:
            rubric.problem("rubric_content", "is missing; describe the required property of the answer")
        elif content is not None:
            content.report_unknown_keys(nulls=True)
        rubric.report_unknown_keys(nulls=True)
        return {key: value for key, value in result.items() if value is not None}

    return fields.each(name, read) or None


_READERS: Final[Mapping[str, Callable[[Fields, str], Any]]] = {
    "match_type": _match_type,
    "ignore_args": Fields.boolean,
    "tokenizer": lambda fields, name: fields.choice(name, ("unicode", "typescript")),
    THOUGHTS: Fields.boolean,
    "judge_model_options": _judge_model_options,
    "rubrics": read_rubrics,
    INCLUDE_INTERMEDIATE: Fields.boolean,
    "evaluate_intermediate_nl_responses": Fields.boolean,
    "stop_signal": Fields.text,
}


CUSTOM_METRIC_EVALUATOR = "AdkMetric"
"""The evaluator that calls a custom metric's function."""


@dataclass(frozen=True, slots=True)
class CustomMetric:
    """A user's metric: `pkg.module.function` with ADK's four parameters, or an evaluator as `file.py:name`."""

    name: str
    code: str
    minimum: float = 0.0
    maximum: float = 1.0
    position: Position | None = field(default=None, compare=False, repr=False)
    """Where the config names the code."""

    def relative_to_suite(self, suite_folder: Path, config_folder: Path) -> CustomMetric:
        """The metric with its code named as seen from the suite, if the code is next to a config elsewhere."""
        if is_reference(self.code):
            file, _, name = self.code.rpartition(":")
            separator = ":"
        else:
            module, separator, name = self.code.rpartition(".")
            file = f"{module.replace('.', '/')}.py"
        if not (config_folder / file).is_file():
            return self
        relative = os.path.relpath((config_folder / file).resolve(), suite_folder.resolve())
        return replace(self, code=f"{Path(relative).as_posix()}{separator}{name}")

    def spec(self, threshold: float, options: Mapping[str, Json]) -> EvaluatorSpec:
        """The evaluator for a criterion, with the threshold converted to 0 to 1."""
        share = (threshold - self.minimum) / (self.maximum - self.minimum)
        if is_reference(self.code):
            return EvaluatorSpec(self.code, options, threshold=share, label=self.name)
        arguments: dict[str, Json] = {"function": self.code, "metric": self.name}
        if options:
            arguments["criterion"] = dict(options)
        if (self.minimum, self.maximum) != (0.0, 1.0):
            arguments["interval"] = [self.minimum, self.maximum]
        return EvaluatorSpec(CUSTOM_METRIC_EVALUATOR, arguments, threshold=share, label=self.name, scope="case")


def read_custom_metrics(fields: Fields) -> dict[str, CustomMetric]:
    """The valid custom metrics by name; the others are reported as problems of the config."""
    descriptions = fields.mapping("custom_metrics") or {}
    place = fields.at("custom_metrics")
    metrics = [_read_custom_metric(fields, name, data, (*place, name)) for name, data in descriptions.items()]
    return {metric.name: metric for metric in metrics if metric is not None}


def _read_custom_metric(fields: Fields, name: str, data: Json, pointer: Pointer) -> CustomMetric | None:
    inner = Fields(fields.document, data, pointer, camel=True)
    inner.text("description")
    minimum, maximum = _interval(inner.inside("metric_info"))
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
        inner.problem("code_config", f"is {function!r}; write package.module.function or file.py:name")
        return None
    return CustomMetric(name, function, minimum, maximum, code.position("name") if code is not None else None)


def _interval(info: Fields | None) -> tuple[float, float]:
    """The range of the function's scores; 0 to 1 unless the file says otherwise."""
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
    minimum, maximum = interval.number("min_value", 0.0), interval.number("max_value", 1.0)
    interval.report_unknown_keys(nulls=True)
    if not minimum < maximum:
        interval.problem("max_value", f"must be greater than min_value ({minimum:g})")
        return 0.0, 1.0
    return float(minimum), float(maximum)
