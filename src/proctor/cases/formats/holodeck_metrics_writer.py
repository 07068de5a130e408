"""Writes evaluators as HoloDeck's metrics, and says which of them it has no metric for."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.cases.formats.holodeck_metrics import EXACT, FLAGS, JUDGED, LEXICAL, MOST_RETRIES, RAG, STANDARD
from proctor.cases.model import EvaluatorSpec
from proctor.plain import Json, plain

_STANDARD_NAMES = {evaluator: metric for metric, evaluator in STANDARD.items()}
_RAG_NAMES = {evaluator: metric for metric, evaluator in RAG.items()}
_GEVAL_ARGUMENTS = ("criteria", "evaluation_steps", "evaluation_params", "strict_mode", "model")
_USUAL_THRESHOLD = 0.5


def write_metrics(where: str, specs: Sequence[EvaluatorSpec], losses: list[str]) -> list[Json]:
    """One metric per evaluator that has one."""
    metrics = [_write_metric(where, spec, losses) for spec in specs]
    return [metric for metric in metrics if metric is not None]


def _write_metric(where: str, spec: EvaluatorSpec, losses: list[str]) -> Json:
    place = f"{where}: evaluator {spec.title!r}"
    if spec.name in _STANDARD_NAMES:
        metric, said, label = _standard(place, spec, losses)
    elif spec.name in _RAG_NAMES:
        kind = _RAG_NAMES[spec.name]
        metric, said, label = {"type": "rag", "metric_type": kind}, ("model",), kind
    elif spec.name == "GEval":
        metric, said, label = {"type": "geval", "name": spec.title}, _GEVAL_ARGUMENTS, spec.title
    elif spec.name == "CodeGrader":
        metric, said, label = {"type": "code", "name": spec.title}, ("grader",), spec.title
    elif spec.name == "ExactMatch" and not spec.arguments:
        metric, said, label = {"type": "standard", "metric": "equality"}, (), spec.title
        losses.append(f"{place} is written as equality, which compares text")
    else:
        losses.append(f"{place} has no metric; it is left out")
        return None
    _note_unsaid(place, spec, said, label, losses)
    metric |= {name: plain(spec.arguments[name]) for name in said if name in spec.arguments}
    if spec.threshold is not None:
        metric["threshold"] = spec.threshold
    if spec.optional:
        metric["fail_on_error"] = False
    return metric


def _standard(place: str, spec: EvaluatorSpec, losses: list[str]) -> tuple[dict[str, Json], tuple[str, ...], str]:
    name = _STANDARD_NAMES[spec.name]
    metric: dict[str, Json] = {"type": "standard", "metric": name}
    if spec.timeout is not None:
        metric["timeout_ms"] = max(1, round(spec.timeout * 1000))
    if spec.path is not None:
        metric["response_path"] = spec.path
    if spec.retries and name in JUDGED:
        metric["retry_on_failure"] = min(MOST_RETRIES, spec.retries)
    if name in LEXICAL:
        if spec.gates and spec.threshold is None:
            metric["threshold"] = _USUAL_THRESHOLD
            losses.append(f"{place}: its own threshold cannot be expressed; {_USUAL_THRESHOLD} is written")
        elif not spec.gates and spec.threshold is not None:
            losses.append(f"{place}: a threshold that decides nothing cannot be expressed; it will decide")
    said = ("model", "scale", "custom_prompt") if name in JUDGED else tuple(FLAGS[name]) if name in EXACT else ()
    return metric, said, name


def _note_unsaid(place: str, spec: EvaluatorSpec, said: tuple[str, ...], label: str, losses: list[str]) -> None:
    implied = {"variant": "rougeL"} if spec.name == "ROUGE" else {}
    losses.extend(
        f"{place}: argument {name!r} cannot be expressed"
        for name, value in spec.arguments.items()
        if name not in said and implied.get(name) != value
    )
    lexical = spec.name in LEXICAL.values()
    unsaid = {
        "its label": label != spec.title,
        "that it decides nothing": not spec.gates and not lexical,
        "that it sees the whole case": spec.scope == "case",
        "the output it looks at": spec.output is not None,
        "where in the output it looks": spec.path is not None and spec.name not in _STANDARD_NAMES,
        "how often it is tried again": spec.retries > (MOST_RETRIES if spec.name in JUDGED.values() else 0),
        "its timeout": spec.timeout is not None and spec.name not in _STANDARD_NAMES,
    }
    losses.extend(f"{place}: {what} cannot be expressed" for what, given in unsaid.items() if given)
