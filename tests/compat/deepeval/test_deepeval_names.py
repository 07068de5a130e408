"""Every documented name of DeepEval's that is offered is there, and costs nothing until it is used."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from proctor.compat import deepeval
from proctor.compat.deepeval import dataset, metrics, test_case

USED_BY_THE_GUIDE = {
    metrics: "AnswerRelevancyMetric FaithfulnessMetric HallucinationMetric ContextualRelevancyMetric BaseMetric",
    test_case: "LLMTestCase ToolCall ConversationalTestCase Turn LLMTestCaseParams",
    dataset: "EvaluationDataset Golden ConversationalGolden",
    deepeval: "assert_test evaluate",
}


def test_the_modules_have_what_the_guide_imports() -> None:
    for module, names in USED_BY_THE_GUIDE.items():
        assert [name for name in names.split() if not hasattr(module, name)] == []


@pytest.mark.parametrize("name", deepeval.__all__)
def test_every_name_that_is_offered_is_there(name: str) -> None:
    assert getattr(deepeval, name) is not None


def test_every_metric_can_be_imported_from_the_package_too() -> None:
    assert [name for name in metrics.__all__ if getattr(deepeval, name, None) is not getattr(metrics, name)] == []


@pytest.mark.parametrize("module", [deepeval, metrics])
def test_a_name_that_is_not_there_is_an_attribute_error(module: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'PaintingMetric'"):
        _ = module.PaintingMetric  # type: ignore[attr-defined]


@pytest.mark.process
def test_importing_it_loads_no_pydantic() -> None:
    script = (
        "import sys, proctor.compat.deepeval;"
        "print([name for name in sys.modules if name.startswith(('proctor.', 'pydantic'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    loaded = ast.literal_eval(done.stdout)
    assert not [name for name in loaded if name.startswith(("pydantic", "proctor.evaluators", "proctor.running"))]
