"""Every name that pixie documents is there, is Proctor's own, and costs nothing until it is used."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from proctor.compat import pixie

EVALUATORS = """LevenshteinMatch ExactMatch NumericDiff JSONDiff ValidJSON ListContains EmbeddingSimilarity Factuality
    ClosedQA Battle Humor Security Sql Summary Translation Possible Moderation ContextRelevancy Faithfulness
    AnswerRelevancy AnswerCorrectness""".split()

DOCUMENTED = """Evaluation Evaluator evaluate run_and_evaluate assert_pass assert_dataset_pass EvalAssertionError
    capture_traces MemoryTraceHandler ScoreThreshold last_llm_call root DatasetEntryResult DatasetScorecard
    generate_dataset_scorecard_html save_dataset_scorecard AutoevalsAdapter Evaluable TestCase NamedData UNSET wrap
    Runnable ObservationNode LLMSpan create_llm_evaluator DatasetStore""".split()

LATER = """__version__ flush enable_llm_tracing add_handler remove_handler create_agent_evaluator""".split()


@pytest.mark.parametrize("name", [*DOCUMENTED, *EVALUATORS, *LATER])
def test_a_documented_name_can_be_imported(name: str) -> None:
    assert name in pixie.__all__
    assert getattr(pixie, name) is not None


@pytest.mark.parametrize("name", pixie.__all__)
def test_every_name_that_is_offered_is_there(name: str) -> None:
    assert getattr(pixie, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'proctor\.compat\.pixie' has no attribute 'nope'"):
        _ = pixie.nope


@pytest.mark.process
def test_importing_it_loads_no_evaluators_and_no_engine() -> None:
    script = "import sys, proctor.compat.pixie; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert not [
        name for name in done.stdout.split() if name.startswith(("pydantic", "proctor.evaluators", "proctor.running"))
    ]


def test_every_shipped_evaluator_is_the_one_that_files_name() -> None:
    from proctor.evaluators import shipped_evaluators
    from proctor.evaluators.registry import shipped_class

    for name in EVALUATORS:
        if name in shipped_evaluators():
            assert getattr(pixie, name) is shipped_class(name)


def test_an_evaluable_is_made_as_documented() -> None:
    from proctor.compat.pixie import UNSET, Evaluable, NamedData, TestCase

    def _get_output(evaluable: Evaluable, name: str) -> Any:
        """Look up a wrap value by name from eval_output."""
        for item in evaluable.eval_output:
            if item.name == name:
                return item.value
        return None

    evaluable = Evaluable(
        eval_input=[NamedData(name="input", value="Hello")],
        eval_output=[NamedData(name="answer", value="Hi"), NamedData(name="function_called", value="endCall")],
    )
    assert _get_output(evaluable, "function_called") == "endCall"
    assert _get_output(evaluable, "nothing") is None
    assert evaluable.expected_output is UNSET
    assert evaluable.eval_metadata is None
    case = TestCase(eval_input=[NamedData(name="input", value="Hello")], expectation=None, description="d")
    assert case.expected_output is None
    assert isinstance(evaluable, TestCase)
