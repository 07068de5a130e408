"""ADK's metric functions and efficiency measures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.errors import UsageError
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Suite, Turn
from proctor.compat.adk.custom_metrics import AdkMetric
from proctor.compat.adk.measured import Measured
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import Evaluation, NothingToCompare
from proctor.evaluators.registry import resolve_evaluator
from proctor.results.score import Score
from proctor.running.run import RunRequest, run_suites
from proctor.running.settings import RunOptions

METRICS = """
from types import SimpleNamespace

SEEN = []

def remember(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
    SEEN.append((eval_metric, actual_invocations, expected_invocations, conversation_scenario))
    return SimpleNamespace(overall_score=5.0, per_invocation_results=[])

async def per_turn(eval_metric, actual_invocations, expected_invocations, conversation_scenario=None):
    scores = [float(a.final_response.parts[0].text == e.final_response.parts[0].text)
              for a, e in zip(actual_invocations, expected_invocations)]
    return {"overall_score": None, "per_invocation_results": [{"score": score} for score in scores]}

def silent(*_):
    return SimpleNamespace(overall_score=None, per_invocation_results=[])

def broken(*_):
    return SimpleNamespace(overall_score=float("nan"))

def crashing(*_):
    raise KeyError("no such thing")

not_callable = 3
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "desk_metrics.py").write_text(METRICS)
    return tmp_path


def conversation(**more: Any) -> Evaluable:
    turns = (
        Exchange(
            Turn("One?", Expected("1", tools=(ExpectedCall("count", {"to": 1}),))),
            Reply("1", (ToolCall("count", {"to": 1}, {"is": 1}, id="c1"),)),
        ),
        Exchange(Turn("Two?", Expected("2")), Reply("3")),
    )
    return Evaluable(turns=turns, **more)


def evaluation(metric: AdkMetric, evaluable: Evaluable) -> Evaluation:
    return asyncio.run(metric(evaluable))


def test_a_function_is_given_what_was_said_and_what_was_expected(base: Path) -> None:
    metric = AdkMetric(
        function="desk_metrics.remember", metric="mine", criterion={"language": "nl"}, interval=(0, 10), base=base
    )
    found = evaluation(metric, conversation())
    assert (found.score, found.details["overall_score"]) == (0.5, 5.0)
    told, actual, expected, scenario = metric._metric_function.__globals__["SEEN"][-1]
    assert (told.metric_name, told.threshold, told.criterion.language) == ("mine", None, "nl")
    assert [item.user_content.parts[0].text for item in actual] == ["One?", "Two?"]
    (use,) = actual[0].intermediate_data.tool_uses
    (response,) = actual[0].intermediate_data.tool_responses
    assert (use.name, use.args, response.response) == ("count", {"to": 1}, {"is": 1})
    assert actual[1].final_response.parts[0].text == "3"
    assert expected[0].intermediate_data.tool_uses[0].args == {"to": 1}
    assert expected[1].intermediate_data is None
    assert scenario is None


def test_of_a_scenario_a_function_learns_the_plan_and_nothing_is_expected(base: Path) -> None:
    metric = AdkMetric(function="desk_metrics.remember", interval=(0, 10), base=base)
    told = {"starting_prompt": "One?", "conversation_plan": "Count.", "user_persona": "a child"}
    evaluation(metric, conversation(eval_metadata={"conversation_scenario": told}))
    _, _, expected, scenario = metric._metric_function.__globals__["SEEN"][-1]
    assert expected is None
    assert (scenario.starting_prompt, scenario.user_persona.description) == ("One?", "a child")


def test_without_an_overall_score_the_turns_are_averaged(base: Path) -> None:
    found = evaluation(AdkMetric(function="desk_metrics.per_turn", base=base), conversation())
    assert (found.score, found.details["turns"]) == (0.5, [1.0, 0.0])
    assert "by turn 1, 0" in found.reasoning


def test_a_function_that_gives_no_score_has_nothing_to_compare(base: Path) -> None:
    with pytest.raises(NothingToCompare):
        evaluation(AdkMetric(function="desk_metrics.silent", base=base), conversation())


@pytest.mark.parametrize("function", ["desk_metrics.nowhere", "desk_metrics.not_callable", "no_such_module.fn", "fn"])
def test_a_function_that_is_not_there_is_found_before_anything_runs(base: Path, function: str) -> None:
    with pytest.raises(UsageError):
        resolve_evaluator(EvaluatorSpec("AdkMetric", {"function": function}), base)


@pytest.mark.parametrize("interval", [[1, 1], [2, 1], [0], "ab", None])
def test_a_scale_is_two_numbers_the_smaller_first(base: Path, interval: Any) -> None:
    with pytest.raises(UsageError, match="interval"):
        resolve_evaluator(EvaluatorSpec("AdkMetric", {"function": "desk_metrics.silent", "interval": interval}), base)


@pytest.mark.parametrize("function", ["broken", "crashing"])
def test_a_function_that_breaks_is_an_error_and_not_a_zero(base: Path, function: str) -> None:
    spec = EvaluatorSpec("AdkMetric", {"function": f"desk_metrics.{function}"})
    suite = Suite("s", (Case(id="a", turns=(Turn("Hi."),)),), evaluators=(spec,), path=base / "s.json")
    run, _ = run_suites(RunRequest([suite], RunOptions(), agent=lambda question: question))
    (trial,) = run.trials
    assert trial.outcome == "error"


@pytest.mark.parametrize(
    ("what", "value", "reason"),
    [
        ("tool_calls", 1, "1 tool call"),
        ("model_calls", 2, "2 model calls"),
        ("tokens", 1200, "1,200 tokens"),
        ("seconds", 1.5, "1.5 s"),
    ],
)
def test_what_an_answer_took_is_reported(what: Any, value: float, reason: str) -> None:
    seen = Evaluable(tool_calls=(ToolCall("t"),), usage=Usage(1000, 200, model_calls=2), duration_ms=1500.0)
    found = Measured(what)(seen)
    assert (found.score, found.details["value"], found.reasoning) == (1.0, value, reason)


def test_what_is_not_known_is_not_taken_for_zero() -> None:
    for what in ("model_calls", "tokens", "seconds"):
        with pytest.raises(NothingToCompare):
            Measured(what)(Evaluable())  # type: ignore[arg-type]


def test_efficiency_decides_nothing() -> None:
    from proctor.compat.adk.criteria import report_only_spec

    specs = (EvaluatorSpec("ExactMatch"), report_only_spec("tool_call_count_v1"))
    suite = Suite("s", (Case(id="a", turns=(Turn("Hi.", Expected("No.")),)),), evaluators=specs)
    run, verdict = run_suites(RunRequest([suite], RunOptions(), agent=lambda question: question))
    (trial,) = run.trials
    exact, count = trial.scores
    assert isinstance(count, Score)
    assert (exact.outcome, count.outcome, count.report_only) == ("failed", "passed", True)
    assert count.reasoning == "0 tool calls"
    assert verdict.outcome == "failed"


@pytest.mark.parametrize(("tokens", "told"), [(1_234_567, "1,234,567 tokens"), (1, "1 token"), (0, "0 tokens")])
def test_a_measure_is_reported_to_the_last_digit(tokens: int, told: str) -> None:
    assert Measured("tokens")(Evaluable(usage=Usage(tokens, 0))).reasoning == told
