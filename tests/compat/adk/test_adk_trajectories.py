"""Which calls count in the trajectory of an EvalSet, and which words in its response match."""

from __future__ import annotations

from typing import Any

import adk_documents as docs
import pytest

from proctor.agents.reply import Reply, ToolCall
from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator

INNER = Reply(
    "It is in Utrecht.",
    (
        ToolCall("track", {"parcel": 7}, id="outer"),
        ToolCall("lookup", {"table": "parcels"}, id="inner", parent="outer"),
        ToolCall("read_row", {"row": 7}, id="innermost", parent="inner"),
    ),
)
HANDED_OVER = Reply(
    "It is in Utrecht.",
    (ToolCall("transfer_to_desk", id="handoff", handoff=True), ToolCall("track", {"parcel": 7}, parent="handoff")),
)


def scores(reply: Reply, uses: list[Any], *, judged: Any = None, **criterion: Any) -> dict[str, float | None]:
    """The scores of one case with these expected calls."""
    turn = docs.turn(intermediateData=docs.tools(*uses), finalResponse=docs.model("It is in Utrecht."))
    criteria = judged or {"tool_trajectory_avg_score": {"threshold": 1.0, **criterion}}
    eval_set = docs.eval_set(docs.case("parcel", turn))
    try:
        run = AgentEvaluator.evaluate_eval_set_sync(lambda question: reply, eval_set, criteria, num_runs=1)
    except AgentEvaluationFailed as failed:
        run = failed.run
    return {score.evaluator: score.value for trial in run.trials for score in trial.scores}


@pytest.mark.parametrize(("match", "value"), [("EXACT", 0.0), ("IN_ORDER", 1.0), ("ANY_ORDER", 1.0)])
def test_no_expected_calls_allow_any_calls_unless_the_match_is_exact(match: str, value: float) -> None:
    assert scores(INNER, [], match_type=match) == {"tool_trajectory_avg_score": value}


@pytest.mark.parametrize("match", ["EXACT", "IN_ORDER", "ANY_ORDER"])
def test_no_expected_and_no_actual_calls_match(match: str) -> None:
    assert scores(Reply("It is in Utrecht."), [], match_type=match) == {"tool_trajectory_avg_score": 1.0}


def test_calls_inside_an_agent_that_is_used_as_a_tool_are_not_part_of_the_trajectory() -> None:
    assert scores(INNER, [docs.TRACK]) == {"tool_trajectory_avg_score": 1.0}
    lookup = {"name": "lookup", "args": {"table": "parcels"}}
    assert scores(INNER, [docs.TRACK, lookup], match_type="ANY_ORDER") == {"tool_trajectory_avg_score": 0.0}


def test_calls_after_a_handoff_are_part_of_it() -> None:
    transfer = {"name": "transfer_to_desk", "args": {}}
    assert scores(HANDED_OVER, [transfer, docs.TRACK]) == {"tool_trajectory_avg_score": 1.0}


def test_inner_calls_stay_in_the_stored_reply() -> None:
    eval_set = docs.eval_set(docs.case("parcel", docs.TRACKED))
    run = AgentEvaluator.evaluate_eval_set_sync(lambda question: INNER, eval_set, num_runs=1)
    [trial] = run.trials
    assert [call.name for call in trial.replies[0].tool_calls] == ["track", "lookup", "read_row"]
    [score] = trial.scores
    assert score.details["left_out"] == [1, 2]


def test_a_metric_function_gets_the_outer_calls(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "adk_outer_calls.py").write_text(
        "def outer(eval_metric, actual, expected, scenario):\n"
        "    names = [use.name for use in actual[0].intermediate_data.tool_uses]\n"
        "    return {'overall_score': float(names == ['track'])}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = {
        "criteria": {"outer": 1.0},
        "custom_metrics": {"outer": {"code_config": {"name": "adk_outer_calls.outer"}}},
    }
    AgentEvaluator.evaluate_eval_set_sync(lambda question: INNER, docs.eval_set(), eval_config=config, num_runs=1)


THOUGHTFUL = docs.turn(
    finalResponse={
        "role": "model",
        "parts": [{"text": "Parcel seven", "thought": True}, {"text": "It is"}, {"text": "in Utrecht."}],
    }
)


@pytest.mark.parametrize(("thoughts", "value"), [(False, 1.0), (True, 8 / 10)])
def test_thoughts_are_left_out_unless_they_should_count(thoughts: bool, value: float) -> None:
    """The expected response has six words with its thoughts, the answer four without any."""
    criteria = {"response_match_score": {"threshold": 0.0, "thoughts": thoughts}}
    eval_set = docs.eval_set(docs.case("parcel", THOUGHTFUL))
    run = AgentEvaluator.evaluate_eval_set_sync(lambda question: "It is in Utrecht.", eval_set, criteria, num_runs=1)
    assert [score.value for trial in run.trials for score in trial.scores] == [pytest.approx(value)]


def test_thoughts_of_the_model_count_if_they_should() -> None:
    reply = Reply("It is in Utrecht.", thoughts="Parcel seven")
    criteria = {"response_match_score": {"threshold": 1.0, "thoughts": True}}
    eval_set = docs.eval_set(docs.case("parcel", THOUGHTFUL))
    run = AgentEvaluator.evaluate_eval_set_sync(lambda question: reply, eval_set, criteria, num_runs=1)
    assert [score.value for trial in run.trials for score in trial.scores] == [1.0]
