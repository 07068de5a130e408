"""DeepEval's names where the rule-based judge cannot tell: no score, no failure, and always said."""

from __future__ import annotations

import pytest

from proctor import Evaluable, assert_pass_sync
from proctor.cases.suite import NamedData
from proctor.compat.deepeval import assert_test, evaluate
from proctor.compat.deepeval.metrics import FaithfulnessMetric, KeywordsMetric
from proctor.compat.deepeval.test_case import LLMTestCase
from proctor.evaluators.retrieval import Faithfulness
from proctor.running.assertions.score_matrix import Inconclusive

OPEN = LLMTestCase(
    input="How long do refunds take?",
    actual_output="Somebody who paid gets everything back 5 days later.",
    retrieval_context=["Refunds take 5 days."],
)
WRONG = LLMTestCase(
    input="How long do refunds take?",
    actual_output="Refunds take 15 days.",
    retrieval_context=["Refunds take 5 days."],
)


def test_a_metric_has_no_score_and_is_pending() -> None:
    metric = FaithfulnessMetric(threshold=0.7)
    assert metric.measure(OPEN) is None
    assert (metric.score, metric.success, metric.error, metric.pending) == (None, None, None, True)
    assert "cannot decide" in (metric.reason or "")


def test_a_test_of_pytest_is_skipped_with_the_reason() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"pending: .*cannot decide"):
        assert_test(OPEN, [FaithfulnessMetric(), KeywordsMetric(any_of=["days"])])


def test_what_failed_fails_whatever_is_open() -> None:
    with pytest.raises(AssertionError, match="Keywords"):
        assert_test(OPEN, [FaithfulnessMetric(), KeywordsMetric(any_of=["weeks"])])
    with pytest.raises(AssertionError, match="it says “15 days” instead of “5 days”"):
        assert_test(WRONG, [FaithfulnessMetric()])


def test_outside_of_pytest_it_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with pytest.warns(Inconclusive, match="cannot decide"):
        assert_test(OPEN, [FaithfulnessMetric()])


def test_evaluate_says_neither_pass_nor_fail(capsys: pytest.CaptureFixture[str]) -> None:
    (result,) = evaluate([OPEN], [FaithfulnessMetric()]).test_results
    assert result.success is None
    assert "PEND" in capsys.readouterr().out


def test_assert_pass_is_inconclusive_and_no_failure() -> None:
    seen = Evaluable(
        eval_input=(NamedData("input", OPEN.input),),
        eval_output=(NamedData("output", OPEN.actual_output),),
        retrieval_context=("Refunds take 5 days.",),
    )
    with pytest.raises(pytest.skip.Exception, match="cannot decide"):
        assert_pass_sync(lambda question: "", [OPEN.input], [Faithfulness()], evaluables=[seen])
