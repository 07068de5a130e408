"""Evaluators under the names that people know them by from elsewhere."""

from __future__ import annotations

import pytest

from proctor.base.errors import UsageError
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators import shipped_evaluators
from proctor.evaluators.registry import find_declaration, resolve_evaluator, similar_evaluators

ARGUMENTS = {
    "geval": {"criteria": "It is polite."},
    "GEval": {"criteria": "It is polite."},
    "rubric_based_final_response_quality_v1": {"rubrics": ["It is polite."]},
    "rubric_based_tool_use_quality_v1": {"rubrics": ["It looks first."]},
    "rubric_based_multi_turn_trajectory_quality_v1": {"rubrics": ["It looks first."]},
}


def check_name(name: str) -> None:
    """The name of another tool is the evaluator here and stays the title."""
    bound = resolve_evaluator(EvaluatorSpec(name, ARGUMENTS.get(name, {})))
    assert bound.spec.name in shipped_evaluators()
    assert bound.title == name


@pytest.mark.needs("holodeck")
def test_the_names_in_files_of_holodeck_are_evaluators_here() -> None:
    from proctor.compat.holodeck.metric_names import RAG, STANDARD

    for name in ("geval", *STANDARD, *RAG):
        check_name(name)


@pytest.mark.needs("adk")
def test_the_names_in_files_of_adk_are_evaluators_here() -> None:
    from proctor.compat.adk.criteria import METRICS

    for name in METRICS:
        check_name(name)


@pytest.mark.needs("deepeval")
def test_the_names_of_deepevals_metrics_are_evaluators_here() -> None:
    from proctor.compat.deepeval import metrics

    for name in metrics.__all__:
        if name[:-6] in shipped_evaluators():
            check_name(name)


@pytest.mark.needs("holodeck")
def test_it_is_the_same_evaluator_under_either_name() -> None:
    here, there = resolve_evaluator(EvaluatorSpec("Faithfulness")), resolve_evaluator(EvaluatorSpec("faithfulness"))
    assert type(here.call) is type(there.call)
    assert (here.fingerprint, here.runs_inline, here.asks_judge) == (
        there.fingerprint,
        there.runs_inline,
        there.asks_judge,
    )


@pytest.mark.parametrize("name", ["", "Metric", "NobodyMetric", "faithfulnes", "GEVAL"])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no evaluator is called"):
        resolve_evaluator(EvaluatorSpec(name))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("MaxToolCalls", "MaxSteps"), ("max_tool_calls", "MaxSteps"), ("NoPII", "PIILeakage"), ("Contians", "Contains")],
)
def test_a_name_that_does_not_exist_finds_the_evaluator_that_does_it(name: str, meant: str) -> None:
    assert similar_evaluators(name)[0] == meant
    with pytest.raises(UsageError, match=meant):
        find_declaration(name)
