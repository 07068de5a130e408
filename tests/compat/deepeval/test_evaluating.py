"""`evaluate` and `assert_test`: every metric of every case, in order, with errors told apart from failures."""

from __future__ import annotations

import asyncio
import math
import operator
import pickle
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor.compat.deepeval as d
from proctor.compat.deepeval import FaithfulnessMetric, LLMTestCase, assert_test, evaluate
from proctor.compat.deepeval.evaluate_results import ErrorConfig, MetricData, case_success

QUIET = d.DisplayConfig(print_results=False)


class Length(d.BaseMetric):
    """Somebody's own metric: how long the answer is, up to ten letters."""

    def __init__(self, threshold: float | None = 0.5) -> None:
        self.threshold = threshold

    def measure(self, test_case: LLMTestCase) -> float:
        self.score = min(1.0, len(test_case.actual_output or "") / 10)
        self.reason = f"{len(test_case.actual_output or '')} letters"
        self.success = self.score >= (self.threshold or 0)
        return self.score

    async def a_measure(self, test_case: LLMTestCase) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)


class Breaks(d.BaseMetric):
    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def a_measure(self, test_case: Any) -> float:
        raise self._error


class OnlyMeasure(d.BaseMetric):
    def measure(self, test_case: Any) -> float:
        return 0.75


def case(answer: str, **more: Any) -> LLMTestCase:
    return LLMTestCase(input="q", actual_output=answer, **more)


def test_results_come_in_the_order_of_the_cases_whichever_is_ready_first() -> None:
    class Slowest(d.BaseMetric):
        order: tuple[asyncio.Event, ...] = ()

        async def a_measure(self, test_case: LLMTestCase) -> float:
            number = int(test_case.input)
            if number < 2:
                await turns[number].wait()
            if number > 0:
                turns[number - 1].set()
            return 1.0

    turns: list[asyncio.Event] = []

    async def run() -> d.EvaluationResult:
        turns.extend(asyncio.Event() for _ in range(3))
        cases = [LLMTestCase(input=str(number), actual_output="a") for number in range(3)]
        return await d.a_evaluate(cases, [Slowest()], display_config=QUIET)

    found = asyncio.run(run())
    assert [result.input for result in found.test_results] == ["0", "1", "2"]
    assert [result.index for result in found.test_results] == [0, 1, 2]


@pytest.mark.parametrize("error", [TypeError("t"), ValueError("v"), SystemExit(1), asyncio.CancelledError()])
def test_whatever_a_metric_raises_all_others_are_measured(error: BaseException) -> None:
    found = evaluate([case("long enough"), case("short")], [Breaks(error), Length()], display_config=QUIET)
    for result in found.test_results:
        broken, length = result.metrics_data
        assert broken.error
        assert (broken.score, broken.success) == (None, False)
        assert length.score is not None
        assert not result.success


def test_one_metric_on_many_cases_keeps_their_scores_apart() -> None:
    metric = Length()
    found = evaluate([case("x" * n) for n in range(50)], [metric], display_config=QUIET)
    scores = [result.metrics_data[0].score for result in found.test_results]
    assert scores == [min(1.0, n / 10) for n in range(50)]
    assert metric.score is None


def test_a_metric_may_only_have_measure_and_return_its_score() -> None:
    [result] = evaluate([case("a")], [OnlyMeasure()], display_config=QUIET).test_results
    assert (result.metrics_data[0].name, result.metrics_data[0].score, result.success) == ("Only Measure", 0.75, True)


def test_a_metric_that_is_not_async_is_measured_one_at_a_time() -> None:
    class Alone(d.BaseMetric):
        async_mode = False
        lock = threading.Lock()

        async def a_measure(self, test_case: Any) -> float:
            assert self.lock.acquire(blocking=False)
            await asyncio.sleep(0)
            self.lock.release()
            return 1.0

    found = evaluate([case("a")] * 20, [Alone(), Alone()], display_config=QUIET)
    assert all(result.success for result in found.test_results)


def test_results_show_the_tools_that_were_called() -> None:
    called = case("a", tools_called=[d.ToolCall(name="calc", input_parameters={"x": 1})], name="first")
    [result] = evaluate([called], [OnlyMeasure()], display_config=QUIET).test_results
    assert result.name == "first"
    assert result.tools_called is not None
    assert result.tools_called[0].input_parameters == {"x": 1}


def test_results_are_printed_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [case("long enough", name="good"), case("no", name="bad\x1b[31m")]
    evaluate(cases, [Length()])
    printed = capsys.readouterr().out
    assert "PASS  good" in printed
    assert "Length (score: 0.2, threshold: 0.5, reason: 2 letters)" in printed
    assert "\x1b" not in printed
    evaluate(cases, [Length()], display_config=d.DisplayConfig(display_option="failing"))
    assert "good" not in capsys.readouterr().out


def test_a_dataset_is_evaluated_by_its_test_cases() -> None:
    dataset = d.EvaluationDataset(test_cases=[case("long enough")])
    assert evaluate(dataset, [Length()], display_config=QUIET).test_results[0].success
    assert dataset.evaluate([Length()], display_config=QUIET).test_results[0].success


def test_a_failure_says_metric_score_threshold_and_reason() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_test(case("no"), [Length(0.9), OnlyMeasure()])
    assert str(caught.value).startswith("failed: Length (score: 0.2, threshold: 0.9, reason: 2 letters)\n\n")


def test_a_failure_shows_what_was_asked_answered_and_called() -> None:
    asked = d.LLMTestCase(
        input="How much?",
        actual_output="no",
        expected_output="42",
        retrieval_context=["passage"],
        tools_called=[d.ToolCall(name="price", input_parameters={"item": "tea"}, output={"usd": 4})],
        expected_tools=[d.ToolCall(name="price")],
    )
    with pytest.raises(AssertionError) as caught:
        assert_test(asked, [Length(0.9)])
    assert str(caught.value).partition("\n\n")[2].splitlines() == [
        "input              How much?",
        "expected           42",
        "output             no",
        "expected calls     price",
        'calls              price(item="tea") -> {"usd": 4}',
        "retrieval context  passage",
    ]


def test_a_failed_conversation_is_shown_turn_by_turn() -> None:
    turns = [
        d.Turn(role="user", content="Hi"),
        d.Turn(role="assistant", content="Ho\x1b[31m", tools_called=[d.ToolCall(name="greet")]),
    ]
    with pytest.raises(AssertionError) as caught:
        assert_test(d.ConversationalTestCase(turns=turns), [Breaks(KeyError("x"))])
    story = str(caught.value).partition("\n\n")[2]
    assert [line.split()[0] for line in story.splitlines()] == ["user", "assistant", "calls"]
    assert "\x1b" not in story


def test_errors_are_separate_from_failures() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_test(case("no"), [Length(0.9), Breaks(KeyError("x")), d.FaithfulnessMetric()])
    failed, broken, missing = str(caught.value).partition("\n\n")[0].splitlines()
    assert failed.startswith("failed: Length")
    assert broken.startswith("error (not a failure of the application): Breaks (error: KeyError")
    assert "needs retrieval_context" in missing


def test_metrics_remember_what_they_found() -> None:
    metric = Length()
    assert_test(case("long enough"), [metric], run_async=False)
    assert (metric.score, metric.success) == (1.0, True)


def test_what_lacks_something_may_be_skipped_and_what_breaks_ignored_but_never_all() -> None:
    lenient = ErrorConfig(ignore_errors=True, skip_on_missing_params=True)
    assert_test(case("long enough"), [Length(), d.FaithfulnessMetric(), Breaks(ValueError())], error_config=lenient)
    with pytest.raises(AssertionError, match="skipped: Faithfulness"):
        assert_test(case("a"), [d.FaithfulnessMetric()], error_config=lenient)
    with pytest.raises(AssertionError, match="error "):
        assert_test(case("a"), [Breaks(ValueError())], error_config=lenient)


def test_a_metric_with_nothing_to_measure_leaves_the_verdict_to_the_others() -> None:
    empty = case("", retrieval_context=["The rate is 5%."])
    with pytest.raises(AssertionError, match="skipped: Faithfulness"):
        assert_test(empty, [d.FaithfulnessMetric()])
    assert_test(empty, [d.FaithfulnessMetric(), OnlyMeasure()])


@pytest.mark.parametrize(
    ("cases", "metrics", "error"),
    [
        ([], [OnlyMeasure()], ValueError),
        (["text"], [OnlyMeasure()], TypeError),
        ([case("a")], [], ValueError),
        ([case("a")], [len], TypeError),
        ([case("a")], [Length(None)], ValueError),
    ],
)
def test_what_could_not_fail_or_cannot_be_measured_is_refused(cases: Any, metrics: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        evaluate(cases, metrics)


def test_the_synchronous_form_works_inside_an_event_loop_too() -> None:
    async def inside() -> None:
        await d.a_assert_test(case("long enough"), [Length()])
        assert_test(case("long enough"), [Length()])
        with pytest.raises(AssertionError):
            assert_test(case(""), [Length()])
        assert [result.success for result in d.evaluate([case("long enough")], [Length()]).test_results] == [True]

    asyncio.run(inside())


@pytest.mark.parametrize("most", [0, -1, True, 1.5])
def test_limits_that_are_none_are_refused(most: Any) -> None:
    with pytest.raises(ValueError, match="max_concurrent"):
        d.AsyncConfig(max_concurrent=most)


cells = st.builds(
    MetricData,
    name=st.just("m"),
    threshold=st.just(0.5),
    success=st.sampled_from([True, False, None]),
    error=st.sampled_from([None, "broke"]),
)


@given(st.lists(cells), st.booleans())
def test_nothing_passes_unless_something_was_measured_and_nothing_failed(found: list[MetricData], ignore: bool) -> None:
    passed = case_success(found, ErrorConfig(ignore_errors=ignore))
    measured = [data for data in found if data.error is None and data.success is not None]
    if passed:
        assert measured
        assert all(data.success for data in measured)
        assert ignore or not any(data.error for data in found)
    elif measured and all(data.success for data in measured):
        assert any(data.error for data in found)
        assert not ignore


def test_comparing_the_score_of_a_skipped_metric_says_why_it_was_skipped() -> None:
    refusal = LLMTestCase(input="?", actual_output="I'm sorry, I don't know.", retrieval_context=["It opens at 9."])
    metric = FaithfulnessMetric()
    score = metric.measure(refusal)
    assert metric.skipped
    for compare in (operator.ge, operator.lt):
        with pytest.raises(AssertionError, match=r"skipped: Faithfulness: .*claim"):
            compare(metric.score, 0.7)
    assert math.isnan(score)
    assert math.isnan(pickle.loads(pickle.dumps(score)))
    [result] = evaluate([refusal], [FaithfulnessMetric()], display_config=QUIET).test_results
    assert (result.metrics_data[0].score, result.metrics_data[0].skipped) == (None, True)
