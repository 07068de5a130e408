"""Runs with the real openai-agents in an environment of its own: `make frameworks`."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from framework_contract import PROMPTS, TOOL_INPUTS, FrameworkContract, case, rate_of, run_cases

import proctor
from proctor.agents.resolve import resolve_agent
from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.suite import Case, EvaluatorSpec, Expected, Suite, ToolMock, Turn

pytest.importorskip("agents.run", reason="openai-agents has an environment of its own: make frameworks")

from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic import BaseModel

from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    Runner,
    ToolGuardrailFunctionOutput,
    Usage,
    WebSearchTool,
    function_tool,
    tool_input_guardrail,
    tracing,
)

NUMBERS = itertools.count(1)


def calls(name: str, **arguments: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        call_id=f"call{next(NUMBERS)}", name=name, arguments=json.dumps(arguments), type="function_call"
    )


def says(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=f"message{next(NUMBERS)}", content=[part], role="assistant", status="completed", type="message"
    )


class Scripted(Model):
    """Calls one tool with the user's words, then tells what it said."""

    def __init__(self, tool: str = "get_rate", argument: str = "city", usage: Usage | None = None) -> None:
        self.tool, self.argument = tool, argument
        self.usage = Usage(requests=1, input_tokens=11, output_tokens=7, total_tokens=18) if usage is None else usage

    async def get_response(self, system_instructions: Any, *given: Any, **named: Any) -> ModelResponse:
        said = named.pop("input") if "input" in named else given[0]
        items = [{"role": "user", "content": said}] if isinstance(said, str) else said
        asked = [item["content"] for item in items if item.get("role") == "user"]
        PROMPTS.append(asked)
        return ModelResponse(output=[self.step(items, asked)], usage=self.usage, response_id=None)

    def step(self, items: list[Any], asked: list[str]) -> Any:
        if items[-1].get("type") == "function_call_output" and not items[-1]["output"].startswith('{"assistant"'):
            return says(f"{len(asked)}: {items[-1]['output']}")
        return calls(self.tool, **({self.argument: asked[-1]} if self.argument else {}))

    def stream_response(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@function_tool
def get_rate(city: str) -> dict[str, str]:
    """The rate in a city."""
    return {"rate": rate_of(city)}


def agent(*tools: Any, model: Model | None = None, **more: Any) -> Agent[Any]:
    return Agent(
        name="rates", instructions="Use tools.", model=model or Scripted(), tools=list(tools or [get_rate]), **more
    )


@dataclass
class Visit:
    customer: str
    seen: list[str] = field(default_factory=list)


@function_tool(name_override="get_rate")
def rate_for_visitor(context: RunContextWrapper[Visit], city: str) -> str:
    """The rate in a city, for this customer."""
    context.context.seen.append(city)
    return f"rate of {city} for {context.context.customer}"


def visits() -> Agent[Visit]:
    return Agent[Visit](name="rates", model=Scripted(), tools=[rate_for_visitor])


class Broken(Scripted):
    def step(self, items: list[Any], asked: list[str]) -> Any:
        raise RuntimeError("the model is on strike")


class TestOpenAiAgents(FrameworkContract):
    folder = "openai_agents"
    source = "from agents import Agent\nagent = Agent(name='rates', model='gpt-5')\n"

    def agent(self) -> Any:
        return agent()

    def broken_agent(self) -> Any:
        return agent(model=Broken())

    def other_agents(self) -> list[Any]:
        return [agent(rate_for_visitor), Agent(name="rates", instructions="Be brief.", tools=[get_rate])]

    def visiting_agent(self) -> Any:
        return visits()

    def silent_agent(self) -> Any:
        return agent(model=Scripted(usage=Usage(requests=1)))

    def agent_with_one_id(self) -> Any:
        pytest.skip("the SDK itself refuses an id that it has seen")

    def nested_agent(self) -> Any:
        return agent(agent().as_tool("ask_rates", "Rates."), model=Scripted("ask_rates", "input"))


def test_a_state_that_does_not_fit_the_context_is_refused_before_anything_runs() -> None:
    with pytest.raises((UsageError, InvalidSuite), match="does not match Visit"):
        run_cases(visits(), case("Oslo", state={"costumer": "Ann"}))


def nested(outer_tool: Any, argument: str = "input") -> proctor.Trial:
    outer = agent(outer_tool, model=Scripted("ask_rates", argument))
    steps = {"steps": [{"name": "ask_rates", "steps": ["get_rate"]}], "extra": False}
    suite = Suite("nested", (Case(id="Oslo", turns=(Turn("Oslo"),)),), evaluators=(EvaluatorSpec("Trajectory", steps),))
    (trial,) = proctor.run(suite, agent=outer).trials
    outside, inside = trial.replies[0].tool_calls
    assert (outside.name, inside.name, inside.parent) == ("ask_rates", "get_rate", outside.id)
    assert trial.outcome == "passed", trial.scores
    return trial


def test_calls_of_a_run_that_a_tool_starts_itself_are_inside_its_call() -> None:
    inner = agent()

    @function_tool
    async def ask_rates(request: str) -> str:
        """Rates."""
        return str((await Runner.run(inner, request)).final_output)

    nested(ask_rates, "request")


def test_after_a_handoff_calls_are_inside_it_and_the_new_agent_answers_the_next_turn() -> None:
    desk = Agent(name="desk", model=Scripted("transfer_to_rates", ""), handoffs=[agent()])
    evaluators = (EvaluatorSpec("ToolCount", {"at_least": 1}),)
    (trial,) = run_cases(desk, Case(id="two", turns=(Turn("Oslo"), Turn("Rome")), evaluators=evaluators))
    first, second = trial.replies
    handoff, rate = first.tool_calls
    assert (handoff.name, handoff.result) == ("transfer_to_rates", {"agent": "rates"})
    assert (rate.name, rate.parent) == ("get_rate", handoff.id)
    assert [(call.name, call.parent) for call in second.tool_calls] == [("get_rate", None)]
    assert second.text == "2: {'rate': 'rate of Rome'}"


def test_a_tool_that_raises_is_an_error_of_the_call_whatever_the_sdk_tells_the_model() -> None:
    @function_tool
    def get_rate(city: str) -> str:
        """The rate in a city."""
        raise ValueError("no such city")

    (trial,) = run_cases(agent(get_rate), case("Oslo"))
    (reply,) = trial.replies
    assert reply.tool_calls[0].error == "ValueError: no such city"
    assert "error occurred" in reply.text


def test_a_mock_that_fails_is_handled_as_the_tool_handles_failures() -> None:
    @function_tool(failure_error_function=lambda context, error: f"Sorry: {error}")
    def get_rate(city: str) -> str:
        """The rate in a city."""
        return city

    (trial,) = run_cases(agent(get_rate), case("Oslo", mocks={"get_rate": (ToolMock(error="the bank is closed"),)}))
    (reply,) = trial.replies
    assert reply.text == "1: Sorry: the bank is closed"
    assert "the bank is closed" in str(reply.tool_calls[0].error)


def test_an_answer_with_a_type_is_data() -> None:
    class Quote(BaseModel):
        rate: float

    class Typed(Scripted):
        def step(self, items: list[Any], asked: list[str]) -> Any:
            return says('{"rate": 4.5}')

    (trial,) = run_cases(
        agent(model=Typed(), output_type=Quote), Case(id="Oslo", turns=(Turn("Oslo", Expected(tools=())),))
    )
    assert trial.outcome == "passed", trial.reason
    assert (trial.replies[0].structured, trial.replies[0].text) == ({"rate": 4.5}, '{"rate": 4.5}')


def test_an_agent_that_waits_for_approval_has_not_answered() -> None:
    @function_tool(needs_approval=True)
    def get_rate(city: str) -> str:
        """The rate in a city."""
        return city

    (trial,) = run_cases(agent(get_rate), case("Oslo"))
    assert trial.outcome == "failed"
    assert "approve get_rate" in trial.reason


def test_calls_that_the_service_runs_or_a_guardrail_turns_away_are_seen_too() -> None:
    @tool_input_guardrail
    def never(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("not today")

    @function_tool(tool_input_guardrails=[never])
    def get_rate(city: str) -> str:
        """The rate in a city."""
        TOOL_INPUTS.append(city)
        return city

    search = ResponseFunctionWebSearch.model_validate(
        {"id": "s1", "status": "completed", "type": "web_search_call", "action": {"type": "search", "query": "rates"}}
    )

    class Both(Scripted):
        async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
            response = await super().get_response(*given, **named)
            if response.output[0].type == "function_call":
                response.output.insert(0, search)
            return response

    (trial,) = run_cases(agent(get_rate, WebSearchTool(), model=Both()), case("Oslo"))
    (reply,) = trial.replies
    assert TOOL_INPUTS == []
    assert reply.text == "1: not today"
    found = {call.name: (dict(call.arguments), call.result) for call in reply.tool_calls}
    assert found["get_rate"] == ({"city": "Oslo"}, "not today")
    assert found["web_search"][0]["query"] == "rates"


def test_nothing_is_traced_also_not_by_agents_with_a_configuration_of_their_own() -> None:
    heard: list[Any] = []

    class Spy(tracing.TracingProcessor):
        def on_trace_start(self, trace: Any) -> None:
            heard.append(trace)

        def on_span_start(self, span: Any) -> None:
            heard.append(span)

        def on_trace_end(self, trace: Any) -> None: ...
        def on_span_end(self, span: Any) -> None: ...
        def shutdown(self) -> None: ...
        def force_flush(self) -> None: ...

    tracing.set_trace_processors([Spy()])
    inner = agent().as_tool("ask_rates", "Rates.", run_config=RunConfig(tracing_disabled=False))
    nested(inner)
    assert heard == []


def test_outside_a_trial_an_agent_runs_as_it_does_without_proctor() -> None:
    target = agent()
    before = list(target.tools)
    run_cases(target, case("Oslo"))
    result = asyncio.run(Runner.run(target, "Rome", run_config=RunConfig(tracing_disabled=True)))
    assert result.final_output == "1: {'rate': 'rate of Rome'}"
    assert all(now is then for now, then in zip(target.tools, before, strict=True))


def test_a_function_that_makes_an_agent_stands_for_it() -> None:
    (trial,) = run_cases(lambda: agent(), case("Oslo"))
    assert trial.outcome == "passed", trial.reason
    assert [call.name for call in trial.replies[0].tool_calls] == ["get_rate"]


def test_the_fingerprint_changes_with_the_agents_below_and_survives_a_circle() -> None:
    inner, other = agent(), Agent(name="rates", instructions="Be brief.", tools=[get_rate])
    targets = [Agent(name="desk", handoffs=[below]) for below in (inner, inner, other)]
    targets += [agent(below.as_tool("ask", "Rates.")) for below in (inner, other)]
    prints = [resolve_agent(target).fingerprint for target in targets]  # type: ignore[attr-defined]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4
    inner.handoffs.append(targets[0])
    assert resolve_agent(inner).fingerprint
