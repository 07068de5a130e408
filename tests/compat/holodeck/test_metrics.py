from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.base.documents import Document
from proctor.cases.suite import EvaluatorSpec
from proctor.cases.validation import validate
from proctor.compat.holodeck.models import EvaluationConfig
from proctor.compat.holodeck.reader import metric_specs


def read_metrics(*metrics: Any) -> tuple[tuple[EvaluatorSpec, ...], list[str], list[str]]:
    data = {"metrics": list(metrics)}
    document = Document(Path("agent.yaml"), json.dumps(data), data)
    config = validate(EvaluationConfig, data, document)
    specs = () if config is None else metric_specs(config.metrics, ("metrics",), document)
    return specs, [str(p) for p in document.problems], [p.where for p in document.warnings]


def spec(name: str, label: str, **rest: Any) -> EvaluatorSpec:
    return EvaluatorSpec(name, label=label, scope="turn", **rest)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ({"type": "standard", "metric": "bleu", "threshold": 0.4}, spec("BLEU", "bleu", threshold=0.4)),
        ({"metric": "rouge", "threshold": 1}, spec("ROUGE", "rouge", arguments={"variant": "rougeL"}, threshold=1.0)),
        ({"metric": "meteor"}, spec("METEOR", "meteor", report_only=True)),
        ({"metric": "equality"}, spec("Equality", "equality")),
        (
            {"metric": "equality", "case_insensitive": True, "strip_punctuation": False},
            spec("Equality", "equality", arguments={"case_insensitive": True, "strip_punctuation": False}),
        ),
        (
            {"metric": "numeric", "absolute_tolerance": 0.5, "accept_percent": True, "timeout_ms": 1500},
            spec("Numeric", "numeric", arguments={"absolute_tolerance": 0.5, "accept_percent": True}, timeout=1.5),
        ),
        ({"metric": "relevance", "threshold": 0.7}, spec("Relevance", "relevance", threshold=0.7)),
        ({"metric": "relevance", "threshold": 4}, spec("Relevance", "relevance", threshold=0.8)),
        (
            {"metric": "fluency", "threshold": 7, "scale": 10},
            spec("Fluency", "fluency", arguments={"scale": 10}, threshold=0.7),
        ),
        (
            {"metric": "fluency", "custom_prompt": "Is {response} in verse?"},
            spec("Fluency", "fluency", arguments={"custom_prompt": "Is {response} in verse?"}),
        ),
        (
            {"type": "geval", "name": "Tone", "criteria": "Polite"},
            spec("GEval", "Tone", arguments={"criteria": "Polite", "evaluation_params": ["actual_output"]}),
        ),
        (
            {"metric": "coherence", "model": {"provider": "ollama", "name": "m"}},
            spec("Coherence", "coherence", arguments={"model": {"provider": "ollama", "name": "m"}}),
        ),
        (
            {"type": "geval", "name": "Tone", "criteria": "Polite", "evaluation_params": ["input"], "threshold": 0},
            spec("GEval", "Tone", arguments={"criteria": "Polite", "evaluation_params": ["input"]}, threshold=0.0),
        ),
        (
            {"metric": "equality", "response_path": "order.items[0].price"},
            spec("Equality", "equality", output_path="order.items[0].price"),
        ),
        ({"metric": "fluency", "retry_on_failure": 2}, spec("Fluency", "fluency", retries=2)),
        ({"metric": "equality", "fail_on_error": False}, spec("Equality", "equality", optional=True)),
        ({"metric": "equality", "fail_on_error": True}, spec("Equality", "equality")),
        ({"type": "rag", "metric_type": "faithfulness", "include_reason": True}, spec("Faithfulness", "faithfulness")),
        ({"metric_type": "contextual_recall"}, spec("ContextualRecall", "contextual_recall")),
        (
            {"type": "code", "grader": "graders:polite"},
            spec("CodeGrader", "polite", arguments={"grader": "graders:polite"}),
        ),
        (
            {"type": "code", "grader": "graders.py:polite", "name": "Polite", "threshold": 0.9},
            spec("CodeGrader", "Polite", arguments={"grader": "graders.py:polite"}, threshold=0.9),
        ),
    ],
)
def test_a_metric_is_the_evaluator_of_its_kind(metric: Any, expected: EvaluatorSpec) -> None:
    assert read_metrics(metric) == ((expected,), [], [])


def test_a_disabled_metric_is_left_out_but_still_checked() -> None:
    specs, problems, _ = read_metrics(
        {"metric": "bleu", "enabled": False}, {"metric": "bleu", "enabled": False, "x": 1}
    )
    assert specs == ()
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"metric": "bleu", "retry_on_failure": 2}, "retry_on_failure"),
        ({"metric": "bleu", "custom_prompt": "x"}, "custom_prompt"),
        ({"metric": "bleu", "model": {"provider": "openai", "name": "m"}}, "model"),
        ({"metric": "bleu", "case_insensitive": True}, "case_insensitive"),
        ({"metric": "equality", "accept_percent": True}, "accept_percent"),
        ({"metric": "bleu", "scale": 5}, "scale"),
        ({"metric_type": "faithfulness", "include_reason": False}, "include_reason"),
    ],
)
def test_a_key_without_effect_is_never_ignored_in_silence(given: Any, key: str) -> None:
    specs, problems, warnings = read_metrics(given)
    assert len(specs) == 1
    assert problems == []
    assert warnings == [f"metrics[0].{key}"]


@pytest.mark.parametrize(
    ("metric", "complaint"),
    [
        (3, "metrics[0] must be an object"),
        ({}, "metrics[0] needs 'type'"),
        ({"type": "standart", "metric": "bleu"}, "did you mean 'standard'?"),
        ({"type": "standard"}, "needs 'metric'"),
        ({"metric": "f1_score"}, "metrics[0].metric must be one of"),
        ({"metric": "bleu", "threshold": 2}, "threshold must be at most 1"),
        ({"metric": "fluency", "threshold": 6}, "threshold must be at most 5"),
        ({"metric": "fluency", "threshold": -1}, "threshold must be at least 0"),
        ({"metric": "bleu", "treshold": 0.5}, "did you mean 'threshold'?"),
        ({"metric": "equality", "response_path": "a..b"}, "'a..b' is not a path"),
        ({"metric": "equality", "response_path": "[*].b"}, "is not a path"),
        ({"metric": "bleu", "timeout_ms": 0}, "timeout_ms must be at least 1"),
        ({"metric": "bleu", "enabled": "yes"}, "enabled must be true or false"),
        ({"metric": "numeric", "absolute_tolerance": -1}, "absolute_tolerance must be at least 0"),
        ({"type": "geval", "name": "n"}, "needs 'criteria'"),
        ({"type": "geval", "criteria": "c"}, "needs 'name'"),
        ({"type": "geval", "name": "n", "criteria": "c", "evaluation_params": ["x"]}, "evaluation_params[0]"),
        ({"type": "rag"}, "needs 'metric_type'"),
        ({"type": "rag", "metric_type": "faith"}, "metric_type must be one of"),
        ({"type": "code"}, "needs 'grader'"),
        ({"type": "code", "grader": "polite"}, "'polite' is not a reference"),
    ],
)
def test_one_mistake_is_one_problem_with_its_place(metric: Any, complaint: str) -> None:
    _, problems, _ = read_metrics(metric)
    assert len(problems) == 1, problems
    assert complaint in problems[0]


def test_too_many_retries_are_refused() -> None:
    assert "must be at most 3" in read_metrics({"metric": "bleu", "retry_on_failure": 4})[1][0]
