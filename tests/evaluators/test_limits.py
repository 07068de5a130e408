from __future__ import annotations

from typing import Any

import pytest

from proctor.agents.reply import ToolCall, Usage
from proctor.base.errors import UsageError
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.limits import Limits, MaxCost, MaxLatency, MaxSteps, MaxTokens
from proctor.evaluators.registry import resolve_evaluator


@pytest.mark.parametrize(
    ("evaluator", "within", "beyond"),
    [
        (MaxLatency(1.5), Evaluable(duration_ms=1500.0), Evaluable(duration_ms=1500.1)),
        (MaxLatency(0), Evaluable(duration_ms=0.0), Evaluable(duration_ms=0.1)),
        (MaxTokens(10), Evaluable(usage=Usage(4, 6)), Evaluable(usage=Usage(5, 6))),
        (MaxTokens(input_tokens=4), Evaluable(usage=Usage(4, 600)), Evaluable(usage=Usage(5, 0))),
        (MaxTokens(output_tokens=4), Evaluable(usage=Usage(None, 4)), Evaluable(usage=Usage(None, 5))),
        (MaxTokens(total=10, output_tokens=4), Evaluable(usage=Usage(6, 4)), Evaluable(usage=Usage(1, 5))),
        (MaxCost(0.01), Evaluable(usage=Usage(cost_usd=0.01)), Evaluable(usage=Usage(cost_usd=0.02))),
        (MaxCost(0), Evaluable(usage=Usage(cost_usd=0.0)), Evaluable(usage=Usage(cost_usd=1e-9))),
        (MaxSteps(1), Evaluable(tool_calls=(ToolCall("a"),)), Evaluable(tool_calls=(ToolCall("a"),) * 2)),
        (MaxSteps(0), Evaluable(), Evaluable(tool_calls=(ToolCall("a"),))),
    ],
)
def test_a_ceiling_may_be_touched_and_not_passed(evaluator: Any, within: Evaluable, beyond: Evaluable) -> None:
    assert evaluator(within).score == 1.0
    assert evaluator(beyond).score == 0.0


@pytest.mark.parametrize(
    ("evaluator", "unknown"),
    [
        (MaxLatency(1), Evaluable()),
        (MaxTokens(1), Evaluable()),
        (MaxTokens(total=5), Evaluable(usage=Usage(3, None))),
        (MaxTokens(1), Evaluable(usage=Usage(cost_usd=1.0))),
        (MaxTokens(output_tokens=1), Evaluable(usage=Usage(input_tokens=1))),
        (MaxTokens(total=10, output_tokens=1), Evaluable(usage=Usage(input_tokens=1))),
        (MaxCost(1), Evaluable()),
        (MaxCost(1), Evaluable(usage=Usage(1, 1))),
    ],
)
def test_what_is_not_known_is_skipped_and_never_taken_for_zero(evaluator: Any, unknown: Evaluable) -> None:
    with pytest.raises(NothingToCompare):
        evaluator(unknown)


def test_several_limits_in_one() -> None:
    limits = Limits(seconds=2, tokens=10, usd=0.01, tool_calls=1)
    within = Evaluable(duration_ms=1000.0, usage=Usage(4, 6, cost_usd=0.01), tool_calls=(ToolCall("a"),))
    assert limits(within).score == 1.0
    beyond = limits(Evaluable(duration_ms=3000.0, usage=Usage(4, 7, cost_usd=0.01)))
    assert (beyond.score, beyond.reasoning) == (0.0, "took 3 s (limit 2 s); 11 total tokens (limit 10)")
    with pytest.raises(NothingToCompare, match="cost"):
        limits(Evaluable(duration_ms=1000.0, usage=Usage(4, 6)))
    assert limits(Evaluable(duration_ms=3000.0)).score == 0.0
    with pytest.raises(ValueError, match="at least one of seconds"):
        Limits()


def test_a_limit_that_is_passed_fails_even_where_another_count_is_unknown() -> None:
    assert MaxTokens(total=1, output_tokens=1)(Evaluable(usage=Usage(input_tokens=5))).score == 0.0


def test_the_reason_gives_both_numbers() -> None:
    assert MaxLatency(2)(Evaluable(duration_ms=2345)).reasoning == "took 2.345 s (limit 2 s)"
    assert MaxTokens(5, output_tokens=9)(Evaluable(usage=Usage(4, 6))).reasoning == "10 total tokens (limit 5)"
    assert MaxCost(0.01)(Evaluable(usage=Usage(cost_usd=0.025))).reasoning == "cost $0.025 (limit $0.01)"
    assert MaxSteps(3)(Evaluable(tool_calls=(ToolCall("a"),))).reasoning == "1 tool call (limit 3)"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("MaxLatency", {}),
        ("MaxLatency", {"seconds": -1}),
        ("MaxLatency", {"seconds": "1"}),
        ("MaxLatency", {"seconds": float("nan")}),
        ("MaxLatency", {"seconds": float("inf")}),
        ("MaxLatency", {"seconds": None}),
        ("MaxTokens", {}),
        ("MaxTokens", {"total": 1.5}),
        ("MaxTokens", {"total": True}),
        ("MaxTokens", {"words": 1}),
        ("MaxCost", {"usd": -0.1}),
        ("MaxSteps", {"steps": 1.0}),
    ],
)
def test_a_ceiling_that_makes_no_sense_is_refused(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=name):
        resolve_evaluator(EvaluatorSpec(name, arguments))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("MaxLatency", {"seconds": 1}), ("MaxTokens", {"total": 1}), ("MaxCost", {"usd": 1}), ("MaxSteps", {"steps": 1})],
)
def test_a_ceiling_is_over_the_whole_case(name: str, arguments: dict[str, Any]) -> None:
    assert resolve_evaluator(EvaluatorSpec(name, arguments)).scope == "case"


def test_half_a_count_that_is_over_the_limit_is_enough_to_fail() -> None:
    assert MaxTokens(total=5)(Evaluable(usage=Usage(6, None))).score == 0.0
