"""Judges named to pytest count for metrics that tests call themselves, and `--proctor-fast` keeps these from asking."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.process

pytest_plugins = "pytester"

MODULE = """
from proctor.compat.deepeval import LLMTestCase, assert_test, evaluate, DisplayConfig
from proctor.compat.deepeval.metrics import ExactMatchMetric, FaithfulnessMetric

CASE = LLMTestCase(input="The sum?", actual_output="The sum is 3.", expected_output="The sum is 3.",
                   retrieval_context=["The sum is 3."])
MODEL = {"model": "ollama:nowhere", "base_url": "http://127.0.0.1:9"}

def test_the_judge_in_force():
    metric = FaithfulnessMetric()
    assert metric.measure(CASE) == 1.0
    assert metric.evaluation_model == "rules"

def test_measuring_by_a_model():
    assert FaithfulnessMetric(model=MODEL).measure(CASE) is not None

def test_asserting_by_a_model_alone():
    assert_test(CASE, [FaithfulnessMetric(model=MODEL)])

def test_asserting_by_a_model_and_by_rules():
    assert_test(CASE, [FaithfulnessMetric(model=MODEL), ExactMatchMetric()])

def test_failing_by_rules_beside_a_model():
    other = LLMTestCase(input="a", actual_output="b", expected_output="c", retrieval_context=["b"])
    assert_test(other, [FaithfulnessMetric(model=MODEL), ExactMatchMetric()])

def test_evaluating_by_a_model():
    found = evaluate([CASE], [FaithfulnessMetric(model=MODEL), ExactMatchMetric()],
                     display_config=DisplayConfig(print_results=False))
    first, second = found.test_results[0].metrics_data
    assert first.skipped and first.score is None and "--proctor-fast" in first.reason
    assert found.test_results[0].success
"""


def test_fast_skips_metrics_that_need_a_model_and_runs_the_others(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(MODULE)
    result = pytester.runpytest_subprocess("--proctor-fast", "-rsf", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, skipped=2, failed=1)
    result.stdout.fnmatch_lines(["*FAILED*test_failing_by_rules_beside_a_model*"])
    result.stdout.fnmatch_lines(["*needs ollama:nowhere*--proctor-fast*"])


JUDGED = """
from proctor.compat.deepeval import LLMTestCase
from proctor.compat.deepeval.metrics import FaithfulnessMetric

def test_it():
    case = LLMTestCase(input="The sum?", actual_output="The sum is 3.", retrieval_context=["The sum is 3."])
    metric = FaithfulnessMetric()
    assert metric.measure(case) == 1.0
    assert metric.evaluation_model == "rules"
"""


@pytest.mark.parametrize("judge", ["rules", '{"model": "rules", "samples": 3}'])
def test_a_judge_may_be_named_or_written_in_json(judge: str, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(JUDGED)
    pytester.runpytest_subprocess("--proctor-judge", judge).assert_outcomes(passed=1)


def test_a_judge_that_does_not_exist_is_one_message(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(JUDGED)
    result = pytester.runpytest_subprocess("--proctor-judge", "opnai:gpt", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    output = result.stdout.str()
    assert "no provider is called 'opnai'; did you mean 'openai'?" in output
    assert "During handling" not in output
    assert "metric_base.py" not in output
