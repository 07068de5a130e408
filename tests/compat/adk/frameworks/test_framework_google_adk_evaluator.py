"""`AgentEvaluator` with agents and objects of the real google-adk: `make frameworks`."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk has an environment of its own: make frameworks")

from google.adk.agents import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from scripted_adk import Scripted, agent, get_rate_with_state

from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator
from proctor.compat.adk.evaluation_inputs import read_eval_set

pytestmark = pytest.mark.filterwarnings("ignore")


def eval_set(*cases: dict[str, Any]) -> dict[str, Any]:
    return {"evalSetId": "rates", "creationTimestamp": 0, "evalCases": list(cases)}


def eval_case(name: str, **more: Any) -> dict[str, Any]:
    turn = {
        "userContent": {"role": "user", "parts": [{"text": name}]},
        "finalResponse": {"role": "model", "parts": [{"text": f"It says {{'rate': 'rate of {name}'}}"}]},
        "intermediateData": {"toolUses": [{"name": "get_rate", "args": {"city": name}}], "intermediateResponses": []},
        "creationTimestamp": 0,
    }
    return {"evalId": name, "conversation": [turn], **more}


def test_an_agent_is_evaluated_as_it_is() -> None:
    run = AgentEvaluator.evaluate_eval_set_sync(agent(), eval_set(eval_case("Oslo"), eval_case("Rome")))
    assert [trial.outcome for trial in run.trials] == ["passed"] * 4


def test_objects_of_adks_own_class_are_taken_too() -> None:
    from google.adk.evaluation.eval_config import EvalConfig
    from google.adk.evaluation.eval_set import EvalSet

    snake = {"eval_set_id": "rates", "eval_cases": [eval_case("Oslo")]}
    config = EvalConfig(criteria={"tool_trajectory_avg_score": 1.0, "response_match_score": 0.9})
    run = AgentEvaluator.evaluate_eval_set_sync(agent(), EvalSet(**snake), eval_config=config, num_runs=1)
    assert [trial.outcome for trial in run.trials] == ["passed"]


def test_a_config_of_adks_own_class_says_what_was_set_and_not_adks_defaults() -> None:
    from google.adk.evaluation.eval_config import EvalConfig
    from google.adk.evaluation.eval_metrics import LlmAsAJudgeCriterion, ToolTrajectoryCriterion

    in_order = ToolTrajectoryCriterion(threshold=1.0, match_type=ToolTrajectoryCriterion.MatchType.IN_ORDER)
    config = EvalConfig(criteria={"tool_trajectory_avg_score": in_order, "response_match_score": 0.5})
    for given in ({"eval_config": config}, {"criteria": {"tool_trajectory_avg_score": in_order}}):
        AgentEvaluator.evaluate_eval_set_sync(agent(), eval_set(eval_case("Oslo")), num_runs=1, **given)
    judged = read_eval_set(
        eval_set(eval_case("Oslo")), {"final_response_match_v2": LlmAsAJudgeCriterion(threshold=0.5)}
    )
    assert dict(judged.evaluators[0].arguments) == {}


def test_a_sub_agent_is_evaluated_by_its_name() -> None:
    desk = LlmAgent(name="desk", model=Scripted(tool="nothing"), instruction="Delegate.", sub_agents=[agent()])
    AgentEvaluator.evaluate_eval_set_sync(desk, eval_set(eval_case("Oslo")), num_runs=1, agent_name="rates")


def test_session_state_reaches_each_case_and_leaks_into_no_other() -> None:
    cases = [
        eval_case(
            f"city{number}",
            sessionInput={"appName": "bank", "userId": f"u{number}", "state": {"customer": f"C{number}"}},
            finalSessionState={"customer": f"C{number}", "seen": [f"city{number}"]},
        )
        for number in range(16)
    ]
    criteria = {"tool_trajectory_avg_score": 1.0}
    run = AgentEvaluator.evaluate_eval_set_sync(
        agent(get_rate_with_state), eval_set(*cases), criteria, num_runs=2, parallel=8
    )
    texts = {(trial.case.id, reply.text) for trial in run.trials for reply in trial.replies}
    assert texts == {(f"city{n}", f"It says {{'rate': 'rate of city{n} for C{n}'}}") for n in range(16)}
    assert len(list(run.trials)) == 32


def test_an_agent_that_asks_for_the_wrong_city_is_reported_with_case_and_metric() -> None:
    wrong = eval_case("Oslo")
    wrong["conversation"][0]["intermediateData"]["toolUses"][0]["args"] = {"city": "Bergen"}
    with pytest.raises(AgentEvaluationFailed, match="rates: Oslo: tool_trajectory_avg_score is 0, below 1"):
        AgentEvaluator.evaluate_eval_set_sync(agent(), eval_set(wrong), num_runs=1)


def test_the_agent_of_a_module_is_found_where_adk_looks_for_it(tmp_path: Any, monkeypatch: Any) -> None:
    package = tmp_path / "rates_desk"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "agent.py").write_text("from scripted_adk import agent\nroot_agent = agent()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    AgentEvaluator.evaluate_eval_set_sync("rates_desk", eval_set(eval_case("Oslo")), num_runs=1)


def test_the_calls_of_an_agent_that_is_used_as_a_tool_do_not_count_and_are_stored() -> None:
    inner = agent(name="rate_agent")
    desk = agent(AgentTool(inner), name="desk", model=Scripted(tool="rate_agent"))
    case = eval_case("Oslo")
    case["conversation"][0]["intermediateData"]["toolUses"] = [{"name": "rate_agent", "args": {"request": "Oslo"}}]
    criteria = {"tool_trajectory_avg_score": 1.0}
    run = AgentEvaluator.evaluate_eval_set_sync(desk, eval_set(case), criteria, num_runs=1)
    [trial] = run.trials
    assert [call.name for call in trial.replies[0].tool_calls] == ["rate_agent", "get_rate"]


def test_a_metric_function_is_given_adks_own_objects(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "adk_own_metric.py").write_text(
        "from google.adk.evaluation.eval_case import Invocation\n"
        "from google.adk.evaluation.eval_metrics import EvalMetric\n"
        "from google.adk.evaluation.evaluator import EvaluationResult\n"
        "def polite(eval_metric, actual, expected, scenario):\n"
        "    assert isinstance(eval_metric, EvalMetric) and all(isinstance(i, Invocation) for i in actual + expected)\n"
        "    return EvaluationResult(overall_score=float(eval_metric.criterion.wanted in\n"
        "                                                actual[0].final_response.parts[0].text))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = {
        "criteria": {"polite": {"threshold": 1.0, "wanted": "rate of Oslo"}},
        "custom_metrics": {"polite": {"code_config": {"name": "adk_own_metric.polite"}}},
    }
    AgentEvaluator.evaluate_eval_set_sync(agent(), eval_set(eval_case("Oslo")), eval_config=config, num_runs=1)
