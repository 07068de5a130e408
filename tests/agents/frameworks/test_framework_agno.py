"""Runs with the real agno in an environment of its own: `make frameworks`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from framework_contract import PROMPTS, TOOL_INPUTS, FrameworkContract, case, rate_of, run_cases

from proctor.agents.resolve import resolve_agent
from proctor.cases.suite import Case, ToolMock, Turn

pytest.importorskip("agno", reason="agno has an environment of its own: make frameworks")

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.exceptions import ModelRateLimitError
from agno.metrics import MessageMetrics
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.team import Team
from agno.tools import tool
from pydantic import BaseModel

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass
class Scripted(Model):
    """Calls one tool with the user's words, then tells its result."""

    id: str = "scripted"
    tool: str = "get_rate"
    tokens: int = 11

    def invoke(self, messages: Any, **_: Any) -> ModelResponse:
        usage = MessageMetrics(input_tokens=self.tokens, output_tokens=self.tokens and 7)
        PROMPTS.append([message.content for message in messages if message.role == "user"])
        last = messages[-1]
        if last.role == "tool":
            return ModelResponse(role="assistant", content=f"It says {last.content}", response_usage=usage)
        delegating = self.tool == "delegate_task_to_member"
        arguments = {"member_id": "rates", "task": last.content} if delegating else {"city": last.content}
        function = {"name": self.tool, "arguments": json.dumps(arguments)}
        return ModelResponse(
            role="assistant", tool_calls=[{"id": "c1", "type": "function", "function": function}], response_usage=usage
        )

    async def ainvoke(self, messages: Any, **_: Any) -> ModelResponse:
        return self.invoke(messages)

    def invoke_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def ainvoke_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_: Any) -> Any:
        return response

    def _parse_provider_response_delta(self, response: Any) -> Any:
        return response


def get_rate(city: str) -> dict[str, Any]:
    "The rate in a city."
    return {"rate": rate_of(city)}


def agent(*tools: Any, **more: Any) -> Agent:
    return Agent(name="rates", model=Scripted(), tools=list(tools) or [get_rate], **more)


def rate_for_visitor(city: str, run_context: Any) -> dict[str, Any]:
    "The rate in a city, for this customer."
    state = run_context.session_state
    state.setdefault("seen", []).append(city)
    return {"rate": f"rate of {city} for {state['customer']}"}


rate_for_visitor.__name__ = "get_rate"


class Broken(Scripted):
    def invoke(self, messages: Any, **_: Any) -> ModelResponse:
        raise RuntimeError("the model is on strike")


class TestAgno(FrameworkContract):
    counts_tokens_as_it_goes = False
    folder = "agno"
    source = "from agno.agent import Agent\nagent = Agent(name='rates')\n"
    outer_tool = "delegate_task_to_member"

    def agent(self) -> Any:
        return agent()

    def broken_agent(self) -> Any:
        return Agent(name="rates", model=Broken())

    def other_agents(self) -> list[Any]:
        teams = [Team(members=[agent()]), Team(members=[agent(instructions="Be brief")])]
        return [agent(instructions="Be brief"), agent(_other), *teams]

    def remembering_agent(self) -> Any:
        return agent(db=InMemoryDb(), add_history_to_context=True)

    def visiting_agent(self) -> Any:
        return agent(rate_for_visitor, session_state={"seen": []}, db=InMemoryDb())

    def silent_agent(self) -> Any:
        return Agent(name="rates", model=Scripted(tokens=0), tools=[get_rate])

    def nested_agent(self) -> Any:
        return Team(name="desk", model=Scripted(tool=self.outer_tool), members=[agent()])


def test_a_run_leaves_the_agent_and_its_database_as_they_were() -> None:
    database = InMemoryDb()
    target = agent(rate_for_visitor, session_state={"seen": []}, db=database)
    run_cases(target, case("Oslo", state={"customer": "Ann"}))
    assert target.session_state == {"seen": []}
    assert target.tool_hooks is None
    assert database.get_sessions() == []


def test_an_agent_without_a_database_does_not_suddenly_remember() -> None:
    run_cases(agent(), Case(id="two", turns=(Turn("Oslo"), Turn("Rome"))))
    assert PROMPTS[-1] == ["Rome"]


def test_an_async_tool_is_seen_too() -> None:
    async def get_rate(city: str) -> str:
        "The rate in a city."
        return f"rate of {city}"

    (trial,) = run_cases(agent(get_rate), case("Oslo"))
    assert trial.replies[0].tool_calls[0].result == "rate of Oslo"


def test_a_mocked_tool_is_not_called_whether_it_is_async_or_not() -> None:
    async def get_rate_async(city: str) -> str:
        "The rate in a city."
        raise AssertionError("it was called")

    get_rate_async.__name__ = "get_rate"
    for chosen in (get_rate, get_rate_async):
        mocks = {"get_rate": (ToolMock(result="mocked"),)}
        (trial,) = run_cases(agent(chosen), case("Oslo", mocks=mocks))
        assert TOOL_INPUTS == []
        assert trial.replies[0].text == "It says mocked"
        assert trial.replies[0].tool_calls[0].result == "mocked"


def test_hooks_of_a_tool_and_of_an_agent_still_run() -> None:
    heard: list[str] = []

    def on_tool(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
        heard.append(f"tool {function_name}")
        return function_call(**arguments)

    async def on_tool_async(name: str, func: Any, args: dict[str, Any]) -> Any:
        heard.append(f"async {name}")
        return await func(**args)

    def on_agent(name: str, func: Any, args: dict[str, Any]) -> Any:
        heard.append(f"agent {name}")
        return func(**args)

    hooked = tool(tool_hooks=[on_tool, on_tool_async])(get_rate)
    run_cases(agent(hooked, _other), case("Oslo"))
    assert heard == ["tool get_rate", "async get_rate"]
    heard.clear()
    (trial,) = run_cases(agent(get_rate, tool_hooks=[on_agent]), case("Oslo"))
    assert heard == ["agent get_rate"]
    assert trial.outcome == "passed"


def _other(city: str) -> str:
    "Another tool."
    return city


def test_a_tool_that_waits_for_a_person_is_a_call_that_was_not_made() -> None:
    (trial,) = run_cases(agent(tool(requires_confirmation=True)(get_rate)), case("Oslo"))
    (call,) = trial.replies[0].tool_calls
    assert (call.name, dict(call.arguments)) == ("get_rate", {"city": "Oslo"})
    assert "needs approval" in str(call.error)
    assert TOOL_INPUTS == []


def test_an_answer_with_a_schema_is_data() -> None:
    class Rate(BaseModel):
        city: str

    class Structured(Scripted):
        def invoke(self, messages: Any, **_: Any) -> ModelResponse:
            return ModelResponse(role="assistant", content='{"city": "Oslo"}')

    (trial,) = run_cases(
        Agent(model=Structured(), output_schema=Rate, use_json_mode=True), Case(id="a", turns=(Turn("Oslo"),))
    )
    assert trial.replies[0].structured == {"city": "Oslo"}
    assert json.loads(trial.replies[0].text) == {"city": "Oslo"}


def test_a_busy_service_is_not_held_against_the_agent() -> None:
    class Busy(Scripted):
        def invoke(self, messages: Any, **_: Any) -> ModelResponse:
            raise ModelRateLimitError("slow down")

    async def ask() -> None:
        async with resolve_agent(Agent(name="rates", model=Busy())).session(case("Oslo")) as session:
            await session.send(Turn("Oslo"))

    with pytest.raises(ModelRateLimitError) as caught:
        asyncio.run(ask())
    assert caught.value.status_code == 429
