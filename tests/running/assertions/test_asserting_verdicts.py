"""What `assert_pass` raises: which input failed which evaluator, and what could not be measured at all."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from proctor.base import open_checks
from proctor.base.open_checks import collect_open_checks, headline
from proctor.cases.suite import NamedData
from proctor.evaluators.evaluation import Evaluable, Evaluation, EvaluationPending, NothingToCompare
from proctor.results.run import ScoreThreshold
from proctor.running.assertions.assert_pass import assert_pass, assert_pass_sync
from proctor.running.assertions.score_matrix import EvalAssertionError, Matrix
from proctor.tracing.observe import observe


@observe
def echo(value: Any) -> Any:
    return value


def score(evaluable: Evaluable) -> Evaluation:
    """What came out is the score."""
    return Evaluation(float(evaluable.output), f"it is {evaluable.output}")


def fine(evaluable: Evaluable) -> float:
    return 1.0


def skips(evaluable: Evaluable) -> None:
    return None


def lacks(evaluable: Evaluable) -> None:
    raise NothingToCompare("no reference is given")


def waits(evaluable: Evaluable) -> None:
    raise EvaluationPending("a person has yet to look")


def breaks(evaluable: Evaluable) -> None:
    raise KeyError("weight")


async def exits(evaluable: Evaluable) -> None:
    sys.exit(3)


async def cancels(evaluable: Evaluable) -> None:
    raise asyncio.CancelledError


@contextlib.contextmanager
def outside_of_tests() -> Iterator[None]:
    """As in a script: nothing collects checks without a result."""
    outer, open_checks._collections = open_checks._collections, []
    try:
        yield
    finally:
        open_checks._collections = outer


def failure(
    inputs: list[Any], evaluators: list[Any], runnable: Callable[..., Any] = echo, **options: Any
) -> EvalAssertionError:
    with pytest.raises(EvalAssertionError) as caught:
        assert_pass_sync(runnable, inputs, evaluators, **options)
    return caught.value


def test_the_message_says_which_input_failed_which_evaluator_with_what_score_and_why() -> None:
    error = failure([1, 0.25, 1], [score, fine])
    assert str(error).splitlines() == [
        "Fail: 2/3 inputs (66.7%) scored >= 0.5 on all evaluators (required: 100.0%)",
        "failed:",
        "  input 2 (0.25): score scored 0.25: it is 0.25",
    ]
    assert isinstance(error, AssertionError)


def test_the_results_are_a_matrix_of_inputs_and_evaluators() -> None:
    error = failure([1, 0.25], [score, fine])
    assert [[cell.score for cell in row] for row in error.results] == [[1.0, 1.0], [0.25, 1.0]]


def test_a_score_at_the_threshold_passes() -> None:
    assert_pass_sync(echo, [0.5], [score])


def test_a_share_of_inputs_may_be_enough() -> None:
    assert_pass_sync(echo, [1, 1, 1, 0], [score], pass_criteria=ScoreThreshold(pct=0.75))
    failure([1, 1, 0, 0], [score], pass_criteria=ScoreThreshold(pct=0.75))


@pytest.mark.parametrize(("inputs", "evaluators"), [([], [fine]), ([1], []), ([], [])])
def test_nothing_passes_for_lack_of_inputs_or_evaluators(inputs: list[Any], evaluators: list[Any]) -> None:
    failure(inputs, evaluators)
    failure(inputs, evaluators, pass_criteria=lambda results: (True, "whatever"))


@pytest.mark.parametrize(
    ("evaluator", "reason"),
    [
        (breaks, "breaks: raised KeyError: 'weight'"),
        (exits, "exits: raised SystemExit: 3"),
        (cancels, "cancels: cancelled its own task"),
        (lambda e: "good", "\"good\": returned 'good' (str); return True"),
        (lambda e: math.nan, "math.nan: returned NaN"),
    ],
)
def test_an_evaluator_that_breaks_is_an_error_and_takes_no_other_with_it(evaluator: Any, reason: str) -> None:
    error = failure([1, 0], [evaluator, score])
    assert "errors (not counted against the application):" in str(error)
    assert f"  input 1 (1): {reason}" in str(error)
    assert "  input 2 (0): score scored 0: it is 0" in str(error)
    for row, second in zip(error.results, [1.0, 0.0], strict=True):
        assert math.isnan(row[0].score)
        assert row[0].details == {"outcome": "error"}
        assert row[1].score == second


def exits_itself(value: Any) -> Any:
    if value == 1:
        sys.exit("enough")
    return echo(value)


async def exits_itself_later(value: Any) -> Any:
    return exits_itself(value)


async def cancels_itself(value: Any) -> Any:
    if value == 1:
        raise asyncio.CancelledError
    return echo(value)


def raises(value: Any) -> Any:
    return echo(1 / (value - 1) + 1)


@pytest.mark.parametrize(
    ("runnable", "reason"),
    [
        (raises, "the agent raised ZeroDivisionError: division by zero"),
        (exits_itself, "the agent raised SystemExit: enough"),
        (exits_itself_later, "the agent raised SystemExit: enough"),
        (cancels_itself, "the agent cancelled its own task"),
        (lambda value: echo(value) if value != 1 else value, "No spans captured during runnable execution"),
    ],
)
def test_a_runnable_that_breaks_is_an_error_of_that_input_alone(runnable: Any, reason: str) -> None:
    error = failure([0, 1, 0], [score, fine], runnable)
    [line] = [line for line in str(error).splitlines() if "input 2" in line]
    assert line.startswith(f"  input 2 (1): {reason}")
    assert [math.isnan(cell.score) for cell in error.results[1]] == [True, True]
    assert [[cell.score for cell in error.results[index]] for index in (0, 2)] == [[0.0, 1.0], [0.0, 1.0]]


def test_a_from_trace_that_breaks_is_not_the_runnables_fault() -> None:
    error = failure([1], [score], from_trace=lambda trace: trace[7])
    assert "input 1 (1): from_trace raised IndexError" in str(error)


def test_errors_fail_even_what_else_is_perfect() -> None:
    error = failure([1, 1], [fine, breaks])
    assert str(error).startswith("Fail: 0/2 inputs")
    assert "failed:" not in str(error)


def test_an_error_that_could_not_change_the_verdict_does_not() -> None:
    assert_pass_sync(raises, [0, 0, 1], [fine], pass_criteria=ScoreThreshold(pct=0.5))


def test_a_skip_next_to_real_scores_does_not_count() -> None:
    assert_pass_sync(echo, [1], [skips, lacks, score])
    error = failure([0], [skips, score])
    assert str(error).splitlines()[1:] == [
        "failed:",
        "  input 1 (0): score scored 0: it is 0",
        "skipped:",
        "  input 1 (0): skips: nothing to compare",
    ]
    assert error.results[0][0].details == {"outcome": "skipped"}


def test_an_input_with_nothing_but_skips_does_not_pass() -> None:
    def only_for_one(evaluable: Evaluable) -> float | None:
        return None if evaluable.input == 1 else 1.0

    error = failure([1, 2], [only_for_one, lacks])
    assert str(error).startswith("Fail: 1/2 inputs")
    assert "input 1 (1): lacks: no reference is given" in str(error)
    assert str(failure([1], [skips])).startswith("Fail: nothing was scored")


def test_what_is_pending_leaves_the_test_pending() -> None:
    with collect_open_checks() as checks:
        assert_pass_sync(echo, [1], [fine, waits])
    [check] = checks
    assert headline([check]) == "waits needs a grade"
    assert "pending:\n  input 1 (1): waits: a person has yet to look" in check.details


def test_what_failed_fails_whatever_is_pending() -> None:
    error = failure([0], [score, waits])
    assert error.results[0][1].details == {"outcome": "pending"}


def test_what_is_pending_raises_where_no_test_runs() -> None:
    with outside_of_tests():
        failure([1], [fine, waits])


def test_criteria_of_ones_own_get_the_whole_matrix_and_have_the_word() -> None:
    given: list[Matrix] = []

    def mean_of_second(results: Matrix) -> tuple[bool, str]:
        given.append(results)
        mean = sum(row[1].score for row in results) / len(results)
        return mean >= 0.6, f"the mean is {mean:g}"

    assert_pass_sync(echo, [1, 0.5], [fine, score], pass_criteria=mean_of_second)
    error = failure([1, 0], [fine, score], pass_criteria=mean_of_second)
    assert str(error).startswith("the mean is 0.5")
    assert error.results == given[-1]


@pytest.mark.parametrize("evaluator", [breaks, skips])
@pytest.mark.parametrize(
    "criteria",
    [
        lambda results: (not any(cell.score < 0.5 for row in results for cell in row), "none is bad"),
        lambda results: (all(cell.score >= 0.5 for row in results for cell in row), "all are good"),
        lambda results: (not sum(cell.score for row in results for cell in row) < 2, "enough in all"),
    ],
)
def test_no_criterion_passes_an_input_that_was_not_measured(evaluator: Any, criteria: Any) -> None:
    def sometimes(evaluable: Evaluable) -> Any:
        return 1.0 if evaluable.input == 1 else evaluator(evaluable)

    failure([1, 2], [sometimes], pass_criteria=criteria)


def test_a_criterion_that_holds_whatever_the_error_would_have_been_is_met() -> None:
    assert_pass_sync(
        raises, [0, 1], [fine], pass_criteria=lambda results: (any(row[0].score == 1 for row in results), "one is")
    )


def test_a_long_list_of_failures_is_cut() -> None:
    text = str(failure([0] * 100, [score]))
    assert len(text.splitlines()) == 43
    assert text.endswith("  and 60 more")


def test_ugly_inputs_and_reasons_are_shown_on_one_line() -> None:
    def complains(evaluable: Evaluable) -> Evaluation:
        return Evaluation(0.0, "two\nlines \ud800 " + "x" * 5000)

    text = str(failure([{"q": "a\nb", "half": "\ud800", "nan": math.nan}], [complains]))
    assert len(text.splitlines()) == 3
    assert all(len(line) < 500 for line in text.splitlines())


class Broken:
    def __init__(self, *fails: str) -> None:
        self.fails = fails

    def kind(self) -> type[Any]:
        fails = self.fails

        class App:
            @classmethod
            def create(cls) -> Any:
                return cls()

            def setup(self) -> None:
                if "setup" in fails:
                    raise OSError("no database")

            def run(self, args: Any) -> Any:
                return echo(args)

            def teardown(self) -> None:
                if "teardown" in fails:
                    raise OSError("still busy")

        return App


def test_an_application_that_cannot_be_set_up_is_an_error_of_every_input_that_needs_it() -> None:
    ready = Evaluable(eval_input=[NamedData("q", 0)], eval_output=[NamedData("a", 0)])
    bare = Evaluable(eval_input=[NamedData("q", 1)])
    error = failure([0, 1], [score], Broken("setup").kind(), evaluables=[ready, bare])
    assert error.results[0][0].score == 0.0
    assert "input 2 (1): the agent App could not start: App.setup() raised OSError: no database" in str(error)


def test_an_application_that_cannot_be_torn_down_loses_no_results_and_does_not_pass() -> None:
    error = failure([1], [score], Broken("teardown").kind())
    assert "App.teardown() raised OSError: still busy" in str(error)
    assert error.results[0][0].score == 1.0


def test_the_error_can_be_caught_from_the_coroutine_as_well() -> None:
    with pytest.raises(EvalAssertionError):
        asyncio.run(assert_pass(echo, [0], [score]))
