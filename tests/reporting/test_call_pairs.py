from __future__ import annotations

from typing import Any

import pytest

import proctor
from proctor.agents.reply import Reply, ToolCall
from proctor.cases.suite import Case, EvaluatorSpec, Expected, ExpectedCall, Suite, Turn
from proctor.reporting.analysis import analyze
from proctor.reporting.call_pairs import CallFit, call_findings, pair_calls
from proctor.reporting.explain import as_text, explain
from proctor.results.trial import Trial

LOOKED_UP = ToolCall("look_up", {"id": 7})
REFUNDED = ToolCall("refund", {"id": 7})


def trial_of(calls: list[ToolCall], tools: list[ExpectedCall] | None, *specs: EvaluatorSpec) -> tuple[Any, Trial]:
    expected = Expected(tools=None if tools is None else tuple(tools))
    suite = Suite("s", (Case(id="c", turns=(Turn("go", expected),)),), evaluators=specs)
    run = proctor.run(suite, lambda question: Reply("Done.", tuple(calls)))
    [trial] = run.trials
    [cluster] = analyze(run, proctor.verdict(run)).clusters
    return cluster, trial


def fits(trial: Trial) -> list[CallFit | None]:
    tools = trial.case.turns[0].expected.tools
    return [pair.fit for pair in pair_calls(tools, trial.replies[0].tool_calls, call_findings(trial, 0))]


def test_a_forbidden_call_is_blamed_and_not_one_that_merely_is_not_expected() -> None:
    forbid = EvaluatorSpec("Trajectory", {"forbid": ["refund"]})
    cluster, trial = trial_of([LOOKED_UP, REFUNDED], None, forbid)
    assert (cluster.tool, cluster.cause) == ("refund", "was called but is forbidden")
    assert fits(trial) == [None, CallFit.FORBIDDEN]
    assert "refund(id=7)  <- forbidden" in as_text(explain(trial))


def test_the_evaluator_that_failed_is_followed_beside_one_that_passed() -> None:
    tools = [ExpectedCall("look_up")]
    specs = EvaluatorSpec("ExpectedTools"), EvaluatorSpec("ForbiddenTools", {"tools": ["refund"]})
    cluster, trial = trial_of([ToolCall("refund"), LOOKED_UP], tools, *specs)
    assert (cluster.tool, cluster.cause) == ("refund", "was called but is forbidden")
    assert fits(trial) == [CallFit.FORBIDDEN, CallFit.AS_EXPECTED]


def test_a_missing_argument_is_not_called_a_wrong_one() -> None:
    tools = [ExpectedCall("refund", {"id": 7, "reason": "late", "unit": "EUR"})]
    call = ToolCall("refund", {"id": 8, "reason": "late", "note": ""})
    cluster, _ = trial_of([call], tools, EvaluatorSpec("ToolTrajectory"))
    assert cluster.cause == "was called with the wrong id and without unit and with an unexpected note"
    assert cluster.sample.endswith("refund: id: 7 → 8, unit: missing, expected 'EUR', note: not expected, got ''")


def test_calls_out_of_order_are_shown_as_that() -> None:
    cluster, trial = trial_of(
        [REFUNDED, LOOKED_UP], [ExpectedCall("look_up"), ExpectedCall("refund")], EvaluatorSpec("ToolTrajectory")
    )
    assert cluster.cause == "was called out of order"
    assert CallFit.OUT_OF_ORDER in fits(trial)


def test_the_steps_of_a_trajectory_are_compared_in_the_table() -> None:
    steps = [{"name": "look_up", "args": {"id": {"$one_of": [1, 2]}}}, "confirm"]
    cluster, trial = trial_of([LOOKED_UP], None, EvaluatorSpec("Trajectory", {"steps": steps}))
    assert (cluster.tool, cluster.cause) == ("confirm", "was not called")
    text = as_text(explain(trial))
    assert "look_up(id=7)  <- id" in text
    assert "(not called) confirm" in text


@pytest.mark.needs("deepeval")
def test_an_evaluator_of_words_blames_no_tool() -> None:
    tools = [ExpectedCall("look_up", {"id": 8})]
    loose = EvaluatorSpec("ToolCorrectness"), EvaluatorSpec("Contains", {"any": ["never said"]})
    cluster, _ = trial_of([LOOKED_UP], tools, *loose)
    assert (cluster.tool, cluster.evaluators) == ("", ("Contains",))


def test_calls_that_were_left_out_are_shown_as_that() -> None:
    calls = [ToolCall("pay", error="Declined"), ToolCall("pay", {"sum": 2})]
    spec = EvaluatorSpec("ToolTrajectory", {"failed_calls": "ignore"})
    _, trial = trial_of(calls, [ExpectedCall("pay", {"sum": 1})], spec)
    assert fits(trial) == [CallFit.IGNORED, CallFit.DIFFERS]
