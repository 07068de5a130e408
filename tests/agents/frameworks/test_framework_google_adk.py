"""Runs with the real google-adk in an environment of its own: `make frameworks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framework_contract import HEARD, FrameworkContract, rate_of

from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator
from proctor.compat.adk.evaluation_inputs import read_eval_set

pytest.importorskip("google.adk", reason="google-adk has an environment of its own: make frameworks")

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

pytestmark = pytest.mark.filterwarnings("ignore")


def part(text: str = "", call: tuple[str, dict[str, Any]] | None = None) -> LlmResponse:
    content = (
        types.Part(text=text)
        if call is None
        else types.Part(function_call=types.FunctionCall(name=call[0], args=call[1]))
    )
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=11, candidates_token_count=7)
    return LlmResponse(content=types.Content(role="model", parts=[content]), usage_metadata=usage)


def asked(request: Any) -> list[str]:
    """What the user said so far."""
    return [part.text for content in request.contents if content.role == "user" for part in content.parts if part.text]


class Scripted(BaseLlm):
    """Calls one tool with the user's words, then tells its result."""

    model: str = "scripted"
    tool: str = "get_rate"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        said = asked(llm_request)
        HEARD.append(said)
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            yield part(call=(self.tool, {"request" if self.tool.endswith("agent") else "city": said[-1]}))
        else:
            yield part(f"It says {last.function_response.response}")


def get_rate(city: str, tool_context: Any = None) -> dict[str, Any]:
    "The rate in a city."
    return {"rate": rate_of(city)}


def get_rate_with_state(city: str, tool_context) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    "The rate in a city."
    seen = tool_context.state.get("seen", [])
    tool_context.state["seen"] = [*seen, city]
    return {"rate": f"rate of {city} for {tool_context.state.get('customer')}"}


get_rate_with_state.__name__ = "get_rate"


def agent(tool: Any = get_rate, **more: Any) -> LlmAgent:
    settings = {"name": "rates", "model": Scripted(), "instruction": "Use tools.", **more}
    return LlmAgent(tools=[tool], **settings)


class Broken(Scripted):
    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        raise RuntimeError("the model is on strike")
        yield


class OneId(Scripted):
    """Calls two tools one after the other, both with the id `call_0`."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        parts = [part for content in llm_request.contents for part in content.parts]
        made = sum(part.function_response is not None for part in parts)
        if made == 2:
            yield part("done")
        else:
            response = part(call=(("get_rate", "other")[made], {"city": "Oslo"}))
            response.content.parts[0].function_call.id = "call_0"
            yield response


def other(city: str) -> dict[str, str]:
    "Another tool."
    return {"city": city}


class TestGoogleAdk(FrameworkContract):
    folder = "google_adk"
    source = "from google.adk.agents import LlmAgent\nagent = LlmAgent(name='rates', model='gemini-2.5-flash')\n"
    raising_tool_fails_the_run = True
    outer_tool = "rate_agent"

    def agent(self) -> Any:
        return agent()

    def broken_agent(self) -> Any:
        return agent(model=Broken())

    def other_agents(self) -> list[Any]:
        return [agent(instruction="Be brief."), agent(get_rate_with_state)]

    def visiting_agent(self) -> Any:
        return agent(get_rate_with_state)

    def agent_with_one_id(self) -> Any:
        return LlmAgent(name="rates", model=OneId(), tools=[get_rate, other])

    def nested_agent(self) -> Any:
        inner = agent(name="rate_agent", description="rates")
        return agent(AgentTool(inner), name="desk", model=Scripted(tool="rate_agent"), instruction="Delegate.")


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


def test_an_agent_that_asks_for_the_wrong_city_is_told_with_case_and_metric() -> None:
    wrong = eval_case("Oslo")
    wrong["conversation"][0]["intermediateData"]["toolUses"][0]["args"] = {"city": "Bergen"}
    with pytest.raises(AgentEvaluationFailed, match="rates: Oslo: tool_trajectory_avg_score is 0, below 1"):
        AgentEvaluator.evaluate_eval_set_sync(agent(), eval_set(wrong), num_runs=1)


def test_the_agent_of_a_module_is_found_where_adk_looks_for_it(tmp_path: Any, monkeypatch: Any) -> None:
    package = tmp_path / "rates_desk"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "agent.py").write_text("from test_framework_google_adk import agent\nroot_agent = agent()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    AgentEvaluator.evaluate_eval_set_sync("rates_desk", eval_set(eval_case("Oslo")), num_runs=1)


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
