"""Evaluators under the names that people know them by from elsewhere."""

from __future__ import annotations

import pytest

from proctor.base.errors import UsageError
from proctor.cases.suite import EvaluatorSpec
from proctor.compat.adk.criteria import METRICS
from proctor.compat.deepeval import metrics
from proctor.compat.holodeck.metric_names import RAG, STANDARD
from proctor.evaluators import shipped_evaluators
from proctor.evaluators.registry import build

ARGUMENTS = {
    "geval": {"criteria": "It is polite."},
    "GEval": {"criteria": "It is polite."},
    "rubric_based_final_response_quality_v1": {"rubrics": ["It is polite."]},
    "rubric_based_tool_use_quality_v1": {"rubrics": ["It looks first."]},
    "rubric_based_multi_turn_trajectory_quality_v1": {"rubrics": ["It looks first."]},
}
NAMES = ["geval", *STANDARD, *RAG, *METRICS, *(name for name in metrics.__all__ if name[:-6] in shipped_evaluators())]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_another_tool_is_the_evaluator_here_and_stays_the_title(name: str) -> None:
    bound = build(EvaluatorSpec(name, ARGUMENTS.get(name, {})))
    assert bound.spec.name in shipped_evaluators()
    assert bound.title == name


def test_it_is_the_same_evaluator_under_either_name() -> None:
    here, there = build(EvaluatorSpec("Faithfulness")), build(EvaluatorSpec("faithfulness"))
    assert type(here.call) is type(there.call)
    assert (here.fingerprint, here.inline, here.judged) == (there.fingerprint, there.inline, there.judged)


@pytest.mark.parametrize("name", ["", "Metric", "NobodyMetric", "faithfulnes", "GEVAL"])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no evaluator is called"):
        build(EvaluatorSpec(name))
