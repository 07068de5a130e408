"""Runs wherever pydantic-ai is installed, which it is among the development packages."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from framework_contract import PROMPTS, TOOL_INPUTS, FrameworkContract, case, rate_of, run_cases

import proctor
from proctor.agents.resolve import resolve_agent
from proctor.base.errors import InvalidSuite, UsageError
from proctor.base.references import resolve
from proctor.cases.suite import Case, Expected, Keywords, Settings, Suite, Turn

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, ModelRetry, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage


def scripted(tool: str = "get_rate", argument: str = "city", usage: RequestUsage | None = None) -> FunctionModel:
    """Calls one tool with the user's words, then tells what it said, be it a result or a complaint."""

    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        asked = [part.content for part in parts if isinstance(part, UserPromptPart)]
        PROMPTS.append(asked)
        spent = RequestUsage(input_tokens=11, output_tokens=7) if usage is None else usage
        if isinstance(parts[-1], UserPromptPart):
            return ModelResponse(parts=[ToolCallPart(tool, {argument: asked[-1]})], usage=spent)
        said = TextPart(f"{len(asked)}: {parts[-1].content}")
        return ModelResponse(parts=[said], usage=spent)

    return FunctionModel(think)


def get_rate(city: str) -> dict[str, str]:
    """The rate in a city."""
    return {"rate": rate_of(city)}


def agent(*tools: Any, model: FunctionModel | None = None, **more: Any) -> Agent[Any, Any]:
    return Agent(model or scripted(), instructions="Use tools.", tools=tools or (get_rate,), **more)


@dataclass
class Visit:
    customer: str
    seen: list[str] = field(default_factory=list)


def rate_for_visitor(ctx: RunContext[Visit], city: str) -> str:
    """The rate in a city, for this customer."""
    ctx.deps.seen.append(city)
    return f"rate of {city} for {ctx.deps.customer}"


def other(city: str) -> str:
    """Another tool."""
    return city


class Silent(FunctionModel):
    """Counts no tokens."""

    async def request(self, *given: Any, **named: Any) -> ModelResponse:
        response = await super().request(*given, **named)
        response.usage = RequestUsage()
        return response


class TestPydanticAi(FrameworkContract):
    folder = "pydantic_ai"
    source = "from pydantic_ai import Agent\nagent = Agent('test', name='rates')\n"
    raising_tool_fails_the_run = True

    def agent(self) -> Any:
        return agent()

    def broken_agent(self) -> Any:
        def strike(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            raise RuntimeError("the model is on strike")

        return agent(model=FunctionModel(strike))

    def other_agents(self) -> list[Any]:
        return [agent(other), Agent(scripted(), instructions="Be brief.", tools=(get_rate,))]

    def visiting_agent(self) -> Any:
        target = Agent(scripted(), deps_type=Visit)
        target.tool(name="get_rate")(rate_for_visitor)
        return target

    def silent_agent(self) -> Any:
        return agent(model=Silent(scripted().function))  # type: ignore[arg-type]

    def agent_with_one_id(self) -> Any:
        def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            parts = [part for message in messages for part in message.parts]
            calls = [part for part in parts if isinstance(part, ToolCallPart)]
            if len(calls) < 2:
                tool = ("get_rate", "other")[len(calls)]
                return ModelResponse(parts=[ToolCallPart(tool, {"city": "Oslo"}, tool_call_id="call_0")])
            return ModelResponse(parts=[TextPart("done")])

        return agent(get_rate, other, model=FunctionModel(think))

    def nested_agent(self) -> Any:
        inner = agent()

        async def ask_rates(request: str) -> str:
            """Delegate."""
            return (await inner.run(request)).output

        return agent(ask_rates, model=scripted("ask_rates", "request"))


def test_a_state_that_does_not_fit_the_dependencies_is_refused_before_anything_runs() -> None:
    target = Agent(scripted(), deps_type=Visit, tools=(get_rate,))
    with pytest.raises((UsageError, InvalidSuite), match="does not match Visit"):
        run_cases(target, case("Oslo", state={"costumer": "Ann"}))


def test_dependencies_that_no_state_can_make_are_none() -> None:
    class Database:
        pass

    target = Agent(scripted(), deps_type=Database, tools=(get_rate,))
    (trial,) = run_cases(target, case("Oslo", state={"customer": "Ann"}))
    assert (trial.outcome, trial.replies[0].state) == ("passed", None)


def test_a_tool_that_asks_for_a_retry_is_an_error_of_the_call() -> None:
    def get_rate(city: str) -> str:
        """The rate in a city."""
        raise ModelRetry("no such city")

    (trial,) = run_cases(agent(get_rate), case("Oslo"))
    assert "no such city" in str(trial.replies[0].tool_calls[0].error)


@pytest.mark.parametrize(("tool", "argument"), [("get_rate", "town"), ("get_rates", "city")])
def test_calls_that_reach_no_tool_are_seen_with_the_reason(tool: str, argument: str) -> None:
    (trial,) = run_cases(agent(model=scripted(tool, argument)), case("Oslo"))
    (call,) = trial.replies[0].tool_calls
    assert (call.name, dict(call.arguments)) == (tool, {argument: "Oslo"})
    assert call.error
    assert TOOL_INPUTS == []


def test_an_answer_with_a_type_is_data_and_its_output_tool_is_no_call() -> None:
    class Quote(BaseModel):
        rate: float

    def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        rate: Any = 4.5 if len(messages) > 1 else "high"  # the first try is refused
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"rate": rate})])

    (trial,) = run_cases(
        Agent(FunctionModel(think), output_type=Quote), Case(id="Oslo", turns=(Turn("Oslo", Expected(tools=())),))
    )
    (reply,) = trial.replies
    assert trial.outcome == "passed", trial.reason
    assert (reply.structured, reply.text, reply.tool_calls) == ({"rate": 4.5}, '{"rate": 4.5}', ())


def test_outside_a_trial_an_agent_runs_as_it_does_without_proctor() -> None:
    target = agent()
    run_cases(target, case("Oslo"))
    assert asyncio.run(target.run("Rome")).output == "1: {'rate': 'rate of Rome'}"


def make_agent() -> Agent[Any, Any]:
    return agent()


async def make_agent_later() -> Agent[Any, Any]:
    return agent()


@pytest.mark.parametrize("factory", [make_agent, make_agent_later])
def test_a_function_that_makes_an_agent_stands_for_it(factory: Any) -> None:
    (trial,) = run_cases(factory, case("Oslo"))
    assert trial.outcome == "passed", trial.reason
    assert trial.replies[0].text == "1: {'rate': 'rate of Oslo'}"


def application() -> str:
    TOOL_INPUTS.append("asked")
    return str(Agent) + str(proctor.wrap("Oslo", purpose="input", name="city"))


def test_an_application_that_is_given_its_input_by_proctor_is_no_factory() -> None:
    TOOL_INPUTS.clear()
    assert type(resolve_agent(application)).__name__ == "CallableAgent"
    assert TOOL_INPUTS == []


def test_a_function_without_parameters_that_returns_text_answers_with_it() -> None:
    async def answer_later() -> str:
        return Agent.__name__

    (trial,) = run_cases(answer_later, Case(id="Oslo", turns=(Turn("Oslo"),)))
    assert trial.replies[0].text == "Agent"


def test_a_factory_that_uses_a_helper_in_another_file_makes_the_agent_that_answers(tmp_path: Path) -> None:
    (tmp_path / "rate_helpers.py").write_text(
        "from pydantic_ai import Agent\n"
        "from pydantic_ai.models.test import TestModel\n\n\n"
        "def build():\n    return Agent(TestModel(custom_output_text='built'))\n"
    )
    source = (
        "import rate_helpers\n\nMADE = []\n\n\ndef make_agent():\n    MADE.append(1)\n    return rate_helpers.build()\n"
    )
    (tmp_path / "helped_app.py").write_text(source)
    turns = (Turn("Oslo", Expected(output="built")), Turn("Rome", Expected(output="built")))
    suite = Suite("s", (Case(id="one", turns=turns), Case(id="two", turns=turns)), settings=Settings(parallel=1))
    for reference, calls in (("make_agent", 1), ("make_agent()", 1)):
        file = f"{tmp_path / 'helped_app.py'}"
        made = resolve(f"{file}:MADE")
        made.clear()
        trials = proctor.run(suite, agent=f"{file}:{reference}").trials
        assert [reply.text for trial in trials for reply in trial.replies] == ["built"] * 4
        assert len(made) == calls


@pytest.mark.parametrize("product", [agent, lambda: resolve_agent(agent())], ids=["framework", "Proctor's"])
def test_an_agent_that_a_function_returns_for_an_input_is_not_its_answer(product: Any) -> None:
    """The texts inside the object must not be searched for the expected words."""

    def answer(message: str) -> Any:
        return product()

    expected = Expected(contains=Keywords(any=("test", "agent", "model")))
    (trial,) = run_cases(answer, Case(id="Oslo", turns=(Turn("Oslo", expected),)))
    assert trial.outcome == "error"
    assert "answer returned an agent (" in trial.reason
    assert trial.scores == ()


def test_a_call_that_waits_for_approval_is_one_that_was_not_made() -> None:
    waiting = agent(Tool(get_rate, requires_approval=True), output_type=[str, DeferredToolRequests])
    (call,) = run_cases(waiting, case("Oslo"))[0].replies[0].tool_calls
    assert (call.name, dict(call.arguments)) == ("get_rate", {"city": "Oslo"})
    assert (call.error, TOOL_INPUTS) == ("not called: it needs approval", [])


def test_an_agent_that_is_no_pydantic_agent_does_not_import_the_package() -> None:
    code = (
        "import sys, proctor\n"
        "from proctor.agents.resolve import resolve_agent\n"
        "resolve_agent(lambda question: question)\n"
        "assert 'pydantic_ai' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
