"""DeepEval's names where the rule-based judge cannot tell: no score, no failure, and always said."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable

import pytest

from proctor import Evaluable, assert_pass_sync
from proctor.base.open_checks import collect_open_checks, headline
from proctor.cases.suite import NamedData
from proctor.compat.deepeval import DisplayConfig, assert_test, evaluate
from proctor.compat.deepeval.metrics import FaithfulnessMetric, KeywordsMetric
from proctor.compat.deepeval.test_case import LLMTestCase
from proctor.evaluators.retrieval import Faithfulness

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


def test_a_metric_is_pending_and_its_score_meets_no_condition() -> None:
    metric = FaithfulnessMetric(threshold=0.7)
    with collect_open_checks():
        score = metric.measure(OPEN)
        assert (metric.success, metric.is_successful(), metric.error, metric.pending) == (None, None, None, True)
        assert "cannot decide" in (metric.reason or "")
        assert isinstance(score, float)
        assert [score >= 0.7, score > 0.7, score < 0.3, score <= 0.3, score == 1.0] == [False] * 5


def test_a_test_is_pending_as_soon_as_a_metric_is() -> None:
    with collect_open_checks() as checks:
        FaithfulnessMetric(threshold=0.7).measure(OPEN)
    assert headline(checks) == "Faithfulness needs a model"


@pytest.mark.parametrize(
    "look",
    [
        lambda metric: metric.score != 0,
        lambda metric: metric.score == 1.0,
        lambda metric: bool(metric.score),
        lambda metric: metric.is_successful() is not False,
        lambda metric: metric.success is not False,
    ],
)
def test_so_is_one_that_looks_at_a_metric_measured_elsewhere(look: Callable[[FaithfulnessMetric], bool]) -> None:
    metric = FaithfulnessMetric(threshold=0.7)
    with collect_open_checks():
        metric.measure(OPEN)
    with collect_open_checks() as checks:
        look(metric)
    assert headline(checks) == "Faithfulness needs a model"


def test_arithmetic_and_copies_of_a_pending_score_are_pending() -> None:
    with collect_open_checks():
        score = FaithfulnessMetric().measure(OPEN)
    results = [score + 1, 1 + score, sum([0.5, score]) / 2, -score, round(score, 2), copy.deepcopy(score)]
    results.append(pickle.loads(pickle.dumps(score)))
    assert all(math.isnan(result) and type(result) is type(score) for result in results)


def test_a_test_of_pytest_goes_on() -> None:
    with collect_open_checks() as checks:
        assert_test(OPEN, [FaithfulnessMetric(), KeywordsMetric(any_of=["days"])])
    assert headline(checks) == "Faithfulness needs a model"
    assert "cannot decide" in checks[0].details


def test_what_failed_fails_whatever_is_open() -> None:
    with pytest.raises(AssertionError, match="Keywords"):
        assert_test(OPEN, [FaithfulnessMetric(), KeywordsMetric(any_of=["weeks"])])
    with pytest.raises(AssertionError, match="it says “15 days” instead of “5 days”"):
        assert_test(WRONG, [FaithfulnessMetric()])


def test_evaluate_says_neither_pass_nor_fail(capsys: pytest.CaptureFixture[str]) -> None:
    with collect_open_checks() as checks:
        (result,) = evaluate([OPEN], [FaithfulnessMetric()]).test_results
    assert result.success is None
    assert "PEND" in capsys.readouterr().out
    assert headline(checks) == "Faithfulness needs a model"


def test_evaluate_shows_what_is_pending_among_what_did_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    with collect_open_checks():
        evaluate([OPEN], [FaithfulnessMetric()], display_config=DisplayConfig(display_option="failing"))
        assert "PEND" in capsys.readouterr().out
        evaluate([OPEN], [FaithfulnessMetric()], display_config=DisplayConfig(display_option="passing"))
    assert "PEND" not in capsys.readouterr().out


def test_assert_pass_is_pending_and_no_failure() -> None:
    seen = Evaluable(
        eval_input=(NamedData("input", OPEN.input),),
        eval_output=(NamedData("output", OPEN.actual_output),),
        retrieval_context=("Refunds take 5 days.",),
    )
    with collect_open_checks() as checks:
        assert_pass_sync(lambda question: "", [OPEN.input], [Faithfulness()], evaluables=[seen])
    assert headline(checks) == "Faithfulness needs a model"
