"""Reads HoloDeck's metrics as evaluators. What has no counterpart is warned of, never passed over in silence."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from proctor.base.documents import Document, Fields
from proctor.base.json_data import Json
from proctor.base.references import is_reference
from proctor.base.source import Pointer
from proctor.cases.suite import EvaluatorSpec

LEXICAL = {"bleu": "BLEU", "rouge": "ROUGE", "meteor": "METEOR"}
EXACT = {"equality": "Equality", "numeric": "Numeric"}
JUDGED = {
    "groundedness": "Groundedness",
    "relevance": "Relevance",
    "coherence": "Coherence",
    "fluency": "Fluency",
}
STANDARD = LEXICAL | EXACT | JUDGED
RAG = {
    "faithfulness": "Faithfulness",
    "contextual_relevancy": "ContextualRelevancy",
    "contextual_precision": "ContextualPrecision",
    "contextual_recall": "ContextualRecall",
    "answer_relevancy": "AnswerRelevancy",
}
FLAGS: dict[str, dict[str, Callable[..., Any]]] = {
    "equality": {
        "case_insensitive": Fields.flag,
        "strip_whitespace": Fields.flag,
        "strip_punctuation": Fields.flag,
    },
    "numeric": {
        "absolute_tolerance": Fields.number,
        "relative_tolerance": Fields.number,
        "accept_percent": Fields.flag,
        "accept_thousands_separators": Fields.flag,
    },
}
JUDGE_SCALE = 5
"""The top of the scale on which HoloDeck's judges give their marks."""

MOST_RETRIES = 3
_PATH = r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*|\[\d{1,9}\])*"
_SHAPES = {"metric": "standard", "metric_type": "rag", "grader": "code", "criteria": "geval"}
_USUALLY_JUDGED = ("actual_output",)
_JUDGE_INPUTS = ("input", "actual_output", "expected_output", "context", "retrieval_context")
_SEEN = ", ".join(_JUDGE_INPUTS)


def read_metrics(document: Document, metrics: list[Json], pointer: Pointer) -> tuple[EvaluatorSpec, ...]:
    """The evaluators that a list of metrics names, without the disabled ones."""
    specs = [_read_metric(Fields(document, metric, (*pointer, i))) for i, metric in enumerate(metrics)]
    return tuple(spec for spec in specs if spec is not None)


def _read_metric(fields: Fields) -> EvaluatorSpec | None:
    if not fields.valid:
        return EvaluatorSpec("")
    kind = fields.choice("type", _READERS)
    if kind is None and not fields.has("type"):
        kind = next((kind for key, kind in _SHAPES.items() if fields.has(key)), None)
    if kind is None:
        if not fields.has("type"):
            fields.document.problem(fields.pointer, f"needs 'type', one of {', '.join(_READERS)}")
        return EvaluatorSpec("")
    enabled = fields.flag("enabled", True)
    lenient = fields.flag("fail_on_error") is False
    spec = _READERS[kind](fields)
    fields.done()
    if not enabled:
        return None
    return replace(spec, optional=lenient, position=fields.position(NAMED_BY[kind]))


def _standard(fields: Fields) -> EvaluatorSpec:
    metric = fields.choice("metric", STANDARD)
    if fields.take("metric") is None:
        fields.document.problem(fields.pointer, f"needs 'metric', one of {', '.join(STANDARD)}")
    arguments = {"variant": "rougeL"} if metric == "rouge" else {}
    for owner, flags in FLAGS.items():
        for name, take in flags.items():
            value = take(fields, name, **({"least": 0} if take is Fields.number else {}))
            if value is not None and owner == metric:
                arguments[name] = value
            elif value is not None:
                _warn(fields, name, f"has no effect on {metric}")
    scale = fields.integer("scale", least=2)
    threshold = _judge_threshold(fields, scale or JUDGE_SCALE) if metric in JUDGED else _threshold(fields)
    arguments |= _judging(fields, metric, scale)
    arguments |= _model(fields, judged=metric in JUDGED)
    retries = fields.integer("retry_on_failure", least=1) or 0
    if retries > MOST_RETRIES:
        fields.problem("retry_on_failure", f"must be at most {MOST_RETRIES}")
    if retries and metric not in JUDGED:
        _warn(fields, "retry_on_failure", f"has no effect on {metric}: what is computed comes out the same each time")
    milliseconds = fields.integer("timeout_ms", least=1)
    return EvaluatorSpec(
        STANDARD.get(metric or "", ""),
        arguments,
        threshold,
        label=metric,
        gates=threshold is not None or metric not in LEXICAL,
        scope="turn",
        timeout=None if milliseconds is None else milliseconds / 1000,
        path=_response_path(fields),
        retries=retries if metric in JUDGED else 0,
    )


def _judge_threshold(fields: Fields, top: int) -> float | None:
    """A threshold above 1 is a mark on the judge's scale, and becomes its share of the top mark."""
    threshold = fields.number("threshold", least=0, most=top)
    if threshold is None:
        return None
    return float(threshold) / top if threshold > 1 else float(threshold)


def _judging(fields: Fields, metric: str | None, scale: int | None) -> dict[str, Json]:
    """What the judge is told; metrics that no judge scores have no use for it."""
    given = {"scale": scale, "custom_prompt": fields.text("custom_prompt", blank=False)}
    told = {name: value for name, value in given.items() if value is not None}
    if metric in JUDGED:
        return told
    for name in told:
        _warn(fields, name, f"has no effect on {metric}")
    return {}


def _response_path(fields: Fields) -> str | None:
    """Where in an answer of data the metric looks: keys and indices."""
    path: str | None = fields.text("response_path", blank=False)
    if path is not None and not re.fullmatch(_PATH, path):
        fields.problem("response_path", f"{path!r} is not a path; write keys and indices, such as order.items[0].price")
        return None
    return path


def _geval(fields: Fields) -> EvaluatorSpec:
    name = fields.text("name", required=True, blank=False)
    arguments = {
        "criteria": fields.text("criteria", required=True, blank=False),
        "evaluation_steps": _list(fields, "evaluation_steps"),
        "evaluation_params": _list(fields, "evaluation_params") or list(_USUALLY_JUDGED),
        "strict_mode": fields.flag("strict_mode"),
    }
    if fields.take("evaluation_params") == []:
        fields.problem("evaluation_params", f"is empty, so the judge would see nothing; name some of {_SEEN}")
    for index, parameter in enumerate(arguments["evaluation_params"]):
        if parameter not in _JUDGE_INPUTS:
            place = (*fields.at("evaluation_params"), index)
            fields.document.problem(place, f"must be one of {', '.join(_JUDGE_INPUTS)}, not {parameter!r}")
    given = {key: value for key, value in arguments.items() if value is not None}
    given |= _model(fields, judged=True)
    return EvaluatorSpec("GEval", given, _threshold(fields), label=name, scope="turn")


def _rag(fields: Fields) -> EvaluatorSpec:
    metric = fields.choice("metric_type", RAG)
    if fields.take("metric_type") is None:
        fields.document.problem(fields.pointer, f"needs 'metric_type', one of {', '.join(RAG)}")
    if fields.flag("include_reason") is False:
        _warn(fields, "include_reason", "has no effect: the reason is always kept")
    arguments = _model(fields, judged=True)
    name = RAG.get(metric or "", "")
    return EvaluatorSpec(name, arguments, _threshold(fields), label=metric, scope="turn")


def _code(fields: Fields) -> EvaluatorSpec:
    grader = fields.text("grader", required=True, blank=False) or ""
    if grader and not is_reference(grader):
        fields.problem("grader", f"{grader!r} is not a reference; write package.module:function or file.py:function")
    label = fields.text("name", grader.rpartition(":")[2] or None, blank=False)
    return EvaluatorSpec("CodeGrader", {"grader": grader}, _threshold(fields), label=label, scope="turn")


NAMED_BY = {"standard": "metric", "rag": "metric_type", "code": "grader", "geval": "name"}
"""The key of each kind of metric under which its name stands."""

_READERS: dict[str, Callable[[Fields], EvaluatorSpec]] = {
    "standard": _standard,
    "geval": _geval,
    "rag": _rag,
    "code": _code,
}


def _threshold(fields: Fields) -> float | None:
    threshold = fields.number("threshold", least=0, most=1)
    return None if threshold is None else float(threshold)


def _model(fields: Fields, *, judged: bool) -> dict[str, Json]:
    model = fields.mapping("model")
    if model is not None and not judged:
        _warn(fields, "model", "has no effect: no model judges this metric")
    return {"model": model} if model is not None and judged else {}


def _list(fields: Fields, name: str) -> list[str] | None:
    texts = fields.texts(name)
    return None if texts is None else list(texts)


def _warn(fields: Fields, name: str, message: str) -> None:
    fields.document.warn(fields.at(name), message)
