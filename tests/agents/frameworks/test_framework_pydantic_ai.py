"""Runs wherever pydantic-ai is installed, which it is among the development packages."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import proctor
from proctor.agents.resolving import resolve_agent
from proctor.agents.tool_reexecution import reexecute
from proctor.agents.toolbox import toolbox
from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.suite import Case, Double, EvaluatorSpec, Expected, ExpectedCall, Suite, Turn

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelRetry, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

EXAMPLES = ROOT / "examples" / "frameworks"
TOUCHED: list[str] = []


def scripted(tool: str = "get_rate", argument: str = "city", usage: RequestUsage | None = None) -> FunctionModel:
    """Calls one tool with the user's words, then tells what it said, be it a result or a complaint."""

    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        asked = [part.content for part in parts if isinstance(part, UserPromptPart)]
        spent = RequestUsage(input_tokens=11, output_tokens=7) if usage is None else usage
        if isinstance(parts[-1], UserPromptPart):
            return ModelResponse(parts=[ToolCallPart(tool, {argument: asked[-1]})], usage=spent)
        said = TextPart(f"{len(asked)}: {parts[-1].content}")
        return ModelResponse(parts=[said], usage=spent)

    return FunctionModel(think)


def get_rate(city: str) -> dict[str, str]:
    """The rate in a city."""
    TOUCHED.append(city)
    return {"rate": f"rate of {city}"}


def agent(*tools: Any, model: FunctionModel | None = None, **more: Any) -> Agent[Any, Any]:
    return Agent(model or scripted(), instructions="Use tools.", tools=tools or (get_rate,), **more)


def case(name: str, **more: Any) -> Case:
    return Case(name, (Turn(name, Expected(tool_calls=(ExpectedCall("get_rate", {"city": name}),))),), **more)


def ran(target: Any, *cases: Case) -> list[proctor.TrialResult]:
    TOUCHED.clear()
    suite = Suite("pydantic-ai", cases, evaluators=(EvaluatorSpec("ToolTrajectory"),))
    return list(proctor.run(suite, agent=target).trials)


def test_text_calls_with_results_and_tokens_are_seen() -> None:
    (trial,) = ran(agent(), case("Oslo"))
    (reply,) = trial.replies
    (call,) = reply.tool_calls
    assert trial.outcome == "passed", trial.reason
    assert reply.text == "1: {'rate': 'rate of Oslo'}"
    assert (call.name, dict(call.arguments), call.result) == ("get_rate", {"city": "Oslo"}, {"rate": "rate of Oslo"})
    assert call.duration_ms is not None
    assert call.started_at is not None
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.model_calls) == (22, 14, 2)


@dataclass
class Visit:
    customer: str
    seen: list[str] = field(default_factory=list)


def rate_for_visitor(ctx: RunContext[Visit], city: str) -> str:
    """The rate in a city, for this customer."""
    ctx.deps.seen.append(city)
    return f"{city} for {ctx.deps.customer}"


def test_many_at_once_keep_their_history_and_dependencies_apart() -> None:
    names = [f"city{i}" for i in range(24)]
    target = Agent(scripted(), deps_type=Visit)
    target.tool(name="get_rate")(rate_for_visitor)
    for trial in ran(target, *(case(name, state={"customer": name.upper()}) for name in names)):
        name = trial.case.id
        assert trial.replies[0].text == f"1: {name} for {name.upper()}"
        assert trial.replies[0].state == {"customer": name.upper(), "seen": [name]}
        assert [call.arguments["city"] for call in trial.replies[0].tool_calls] == [name]


def test_turns_of_one_case_share_history_and_dependencies() -> None:
    target = Agent(scripted(), deps_type=dict[str, Any])

    @target.tool
    def get_rate(ctx: RunContext[dict[str, Any]], city: str) -> str:
        ctx.deps.setdefault("seen", []).append(city)
        return ", ".join(ctx.deps["seen"])

    evaluators = (EvaluatorSpec("ToolCount", {"exactly": 1}),)
    (trial,) = ran(target, Case("two", (Turn("Oslo"), Turn("Rome")), evaluators=evaluators))
    assert [reply.text for reply in trial.replies] == ["1: Oslo", "2: Oslo, Rome"]
    assert [reply.state for reply in trial.replies] == [{"seen": ["Oslo"]}, {"seen": ["Oslo", "Rome"]}]


def test_a_state_that_does_not_fit_the_dependencies_is_refused_before_anything_runs() -> None:
    target = Agent(scripted(), deps_type=Visit, tools=(get_rate,))
    with pytest.raises((UsageError, InvalidSuite), match="does not fit Visit"):
        ran(target, case("Oslo", state={"costumer": "Ann"}))


def test_dependencies_that_no_state_can_make_are_none() -> None:
    class Database:
        pass

    target = Agent(scripted(), deps_type=Database, tools=(get_rate,))
    (trial,) = ran(target, case("Oslo", state={"customer": "Ann"}))
    assert (trial.outcome, trial.replies[0].state) == ("passed", None)


def test_calls_of_an_agent_that_a_tool_asks_are_seen_with_what_they_are_inside_of() -> None:
    inner = agent()

    async def ask_rates(request: str) -> str:
        """Delegate."""
        return (await inner.run(request)).output

    outer = agent(ask_rates, model=scripted("ask_rates", "request"))
    steps = {"steps": [{"name": "ask_rates", "steps": ["get_rate"]}], "extra": False}
    suite = Suite("nested", (Case("Oslo", (Turn("Oslo"),)),), evaluators=(EvaluatorSpec("Trajectory", steps),))
    (trial,) = proctor.run(suite, agent=outer).trials
    outside, inside = trial.replies[0].tool_calls
    assert (outside.name, inside.name, inside.parent) == ("ask_rates", "get_rate", outside.id)
    assert trial.outcome == "passed", trial.scores
    assert trial.replies[0].usage.model_calls == 4  # type: ignore[union-attr]


def test_a_doubled_tool_is_not_called_not_even_inside_another_agent() -> None:
    doubles = {"get_rate": (Double(result={"rate": "doubled"}),)}
    (trial,) = ran(agent(), case("Oslo", doubles=doubles))
    assert TOUCHED == []
    assert trial.replies[0].text == "1: {'rate': 'doubled'}"
    assert trial.replies[0].tool_calls[0].result == {"rate": "doubled"}


def test_a_double_that_fails_is_told_to_the_model_and_is_an_error_of_the_call() -> None:
    (trial,) = ran(agent(), case("Oslo", doubles={"get_rate": (Double(error="the bank is closed"),)}))
    assert "the bank is closed" in trial.replies[0].text
    assert "the bank is closed" in str(trial.replies[0].tool_calls[0].error)


def test_a_tool_that_asks_for_a_retry_is_an_error_of_the_call() -> None:
    def get_rate(city: str) -> str:
        """The rate in a city."""
        raise ModelRetry("no such city")

    (trial,) = ran(agent(get_rate), case("Oslo"))
    assert "no such city" in str(trial.replies[0].tool_calls[0].error)


def test_a_tool_that_raises_fails_the_run_as_it_would_without_us() -> None:
    def get_rate(city: str) -> str:
        """The rate in a city."""
        raise ValueError("no such city")

    (trial,) = ran(agent(get_rate), case("Oslo"))
    assert trial.outcome == "failed"
    assert "no such city" in trial.reason


@pytest.mark.parametrize(("tool", "argument"), [("get_rate", "town"), ("get_rates", "city")])
def test_calls_that_reach_no_tool_are_seen_with_the_reason(tool: str, argument: str) -> None:
    (trial,) = ran(agent(model=scripted(tool, argument)), case("Oslo"))
    (call,) = trial.replies[0].tool_calls
    assert (call.name, dict(call.arguments)) == (tool, {argument: "Oslo"})
    assert call.error
    assert TOUCHED == []


def test_an_answer_with_a_type_is_data_and_its_output_tool_is_no_call() -> None:
    class Quote(BaseModel):
        rate: float

    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        rate: Any = 4.5 if len(messages) > 1 else "high"  # the first try is refused
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"rate": rate})])

    (trial,) = ran(
        Agent(FunctionModel(think), output_type=Quote), Case("Oslo", (Turn("Oslo", Expected(tool_calls=())),))
    )
    (reply,) = trial.replies
    assert trial.outcome == "passed", trial.reason
    assert (reply.structured, reply.text, reply.tool_calls) == ({"rate": 4.5}, '{"rate": 4.5}', ())


def test_tokens_that_the_model_does_not_tell_are_unknown_rather_than_zero() -> None:
    class Silent(FunctionModel):
        async def request(self, *given: Any, **named: Any) -> ModelResponse:
            response = await super().request(*given, **named)
            response.usage = RequestUsage()
            return response

    silent = Silent(scripted().function)  # type: ignore[arg-type]
    (trial,) = ran(agent(model=silent), case("Oslo"))
    assert trial.replies[0].usage == proctor.Usage(model_calls=2)


def test_tools_can_be_called_again_with_what_the_agent_gave_them() -> None:
    (trial,) = ran(agent(), case("Oslo"))
    tools = toolbox(agent=resolve_agent(agent()))
    (again,) = asyncio.run(reexecute(trial.replies[0].tool_calls, tools))
    assert (again.differs, again.error, again.skipped) == (False, None, None)
    assert again.result == {"rate": "rate of Oslo"}


def test_outside_a_trial_an_agent_runs_as_if_nobody_watched() -> None:
    target = agent()
    ran(target, case("Oslo"))
    assert asyncio.run(target.run("Rome")).output == "1: {'rate': 'rate of Rome'}"


def test_the_object_is_recognised_by_its_type_from_a_reference(tmp_path: Path) -> None:
    (tmp_path / "pydantic_app.py").write_text("from pydantic_ai import Agent\nagent = Agent('test', name='rates')\n")
    found = resolve_agent("pydantic_app.py:agent", tmp_path)
    assert type(found).__name__ == "PydanticAiAgent"
    assert found.name == "pydantic_app.py:agent"


def make_agent() -> Agent[Any, Any]:
    return agent()


async def make_agent_later() -> Agent[Any, Any]:
    return agent()


@pytest.mark.parametrize("factory", [make_agent, make_agent_later])
def test_a_function_that_makes_an_agent_stands_for_it(factory: Any) -> None:
    (trial,) = ran(factory, case("Oslo"))
    assert trial.outcome == "passed", trial.reason
    assert trial.replies[0].text == "1: {'rate': 'rate of Oslo'}"


def application() -> str:
    TOUCHED.append("asked")
    return str(Agent) + str(proctor.wrap("Oslo", purpose="input", name="city"))


def test_an_application_that_is_given_its_input_by_proctor_is_no_factory() -> None:
    TOUCHED.clear()
    assert type(resolve_agent(application)).__name__ == "CallableAgent"
    assert TOUCHED == []


async def answer_later() -> str:
    return str(Agent)


def test_an_async_function_that_makes_no_agent_says_so() -> None:
    (trial,) = ran(answer_later, case("Oslo"))
    assert str(trial.outcome) == "error"
    assert "answer_later takes no question, and what it makes is no agent but str" in trial.reason


def test_a_call_that_waits_for_approval_is_one_that_was_not_made() -> None:
    waiting = agent(Tool(get_rate, requires_approval=True), output_type=[str, DeferredToolRequests])
    (call,) = ran(waiting, case("Oslo"))[0].replies[0].tool_calls
    assert (call.name, dict(call.arguments)) == ("get_rate", {"city": "Oslo"})
    assert (call.error, TOUCHED) == ("not called: it waits for a person", [])


def test_the_fingerprint_changes_with_instructions_and_tools() -> None:
    def other(city: str) -> str:
        """Another tool."""
        return city

    prints = [
        resolve_agent(target).fingerprint  # type: ignore[attr-defined]
        for target in (agent(), agent(), agent(other), Agent(scripted(), instructions="Be brief.", tools=(get_rate,)))
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_an_agent_that_is_no_pydantic_agent_does_not_import_the_package() -> None:
    code = (
        "import sys, proctor\n"
        "from proctor.agents.resolving import resolve_agent\n"
        "resolve_agent(lambda question: question)\n"
        "assert 'pydantic_ai' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_example_passes_the_three_cases() -> None:
    run = proctor.run(EXAMPLES / "cases.yaml", agent=f"{EXAMPLES}/pydantic_ai/agent.py:agent")
    assert [str(trial.outcome) for trial in run.trials] == ["passed"] * 3
