"""Runs with the real agno in an environment of its own: `make frameworks`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import proctor
from proctor.agents.resolving import resolve_agent
from proctor.agents.tool_reexecution import reexecute
from proctor.agents.toolbox import toolbox
from proctor.cases.suite import Case, Double, EvaluatorSpec, Expected, ExpectedCall, Suite, Turn

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

EXAMPLE = ROOT / "examples" / "frameworks"
TOUCHED: list[str] = []


@dataclass
class Scripted(Model):
    """Calls one tool with the user's words, then tells its result."""

    id: str = "scripted"
    tool: str = "get_rate"
    tokens: int = 11

    def invoke(self, messages: Any, **_: Any) -> ModelResponse:
        usage = MessageMetrics(input_tokens=self.tokens, output_tokens=self.tokens and 7)
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
    TOUCHED.append(city)
    return {"rate": f"rate of {city}"}


def agent(*tools: Any, **more: Any) -> Agent:
    return Agent(name="rates", model=Scripted(), tools=list(tools) or [get_rate], **more)


def case(name: str, **more: Any) -> Case:
    expected = Expected(tool_calls=(ExpectedCall("get_rate", {"city": name}),))
    return Case(name, (Turn(name, expected),), **more)


def ran(target: Any, *cases: Case) -> list[proctor.TrialResult]:
    TOUCHED.clear()
    suite = Suite("agno", cases, evaluators=(EvaluatorSpec("ToolTrajectory"),))
    return list(proctor.run(suite, agent=target).trials)


def test_text_calls_with_results_and_tokens_are_seen() -> None:
    (trial,) = ran(agent(), case("Oslo"))
    (reply,) = trial.replies
    (call,) = reply.tool_calls
    assert trial.outcome == "passed", trial.reason
    assert reply.text == "It says {'rate': 'rate of Oslo'}"
    assert (call.name, dict(call.arguments), call.result) == ("get_rate", {"city": "Oslo"}, {"rate": "rate of Oslo"})
    assert call.duration_ms is not None
    assert call.started_at is not None
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.model_calls) == (22, 14, 2)


def test_tokens_that_the_model_does_not_count_are_unknown() -> None:
    (trial,) = ran(Agent(name="rates", model=Scripted(tokens=0), tools=[get_rate]), case("Oslo"))
    usage = trial.replies[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.model_calls) == (None, 2)


def test_an_async_tool_is_seen_too() -> None:
    async def get_rate(city: str) -> str:
        "The rate in a city."
        return f"rate of {city}"

    (trial,) = ran(agent(get_rate), case("Oslo"))
    assert trial.replies[0].tool_calls[0].result == "rate of Oslo"


def test_many_at_once_keep_their_sessions_and_state_apart() -> None:
    def get_rate(city: str, run_context: Any) -> str:
        "The rate in a city."
        state = run_context.session_state
        state.setdefault("seen", []).append(city)
        return f"rate of {city} for {state['customer']}"

    names = [f"city{i}" for i in range(24)]
    target = agent(get_rate, session_state={"seen": []}, db=InMemoryDb(), add_history_to_context=True)
    for trial in ran(target, *[case(name, state={"customer": name.upper()}) for name in names]):
        (reply,) = trial.replies
        name = trial.case.id
        assert reply.text == f"It says rate of {name} for {name.upper()}"
        assert reply.state is not None
        assert (reply.state["customer"], reply.state["seen"]) == (name.upper(), [name])
    assert target.session_state == {"seen": []}
    assert target.tool_hooks is None


def test_turns_of_one_case_share_a_session_and_leave_nothing_in_the_database() -> None:
    seen: list[list[str]] = []

    class Remembering(Scripted):
        def invoke(self, messages: Any, **more: Any) -> ModelResponse:
            seen.append([m.content for m in messages if m.role == "user"])
            return super().invoke(messages, **more)

    database = InMemoryDb()
    target = Agent(name="rates", model=Remembering(), tools=[get_rate], db=database, add_history_to_context=True)
    (trial,) = ran(target, Case("two", (Turn("Oslo"), Turn("Rome"))))
    assert seen[-1] == ["Oslo", "Rome"]
    assert [reply.usage and reply.usage.model_calls for reply in trial.replies] == [2, 2]
    assert database.get_sessions() == []


def test_an_agent_without_a_database_does_not_suddenly_remember() -> None:
    seen: list[list[str]] = []

    class Remembering(Scripted):
        def invoke(self, messages: Any, **more: Any) -> ModelResponse:
            seen.append([m.content for m in messages if m.role == "user"])
            return super().invoke(messages, **more)

    ran(Agent(model=Remembering(), tools=[get_rate]), Case("two", (Turn("Oslo"), Turn("Rome"))))
    assert seen[-1] == ["Rome"]


def test_what_a_member_of_a_team_does_is_inside_the_delegation() -> None:
    team = Team(name="desk", model=Scripted(tool="delegate_task_to_member"), members=[agent()])
    steps = [{"name": "delegate_task_to_member", "steps": ["get_rate"]}]
    suite = Suite(
        "agno",
        tuple(Case(name, (Turn(name),)) for name in ("Oslo", "Rome", "Bonn")),
        evaluators=(EvaluatorSpec("Trajectory", {"steps": steps, "extra": False}),),
    )
    for trial in proctor.run(suite, agent=team).trials:
        (reply,) = trial.replies
        outside, inside = reply.tool_calls
        assert (outside.name, inside.name, inside.parent) == ("delegate_task_to_member", "get_rate", outside.id)
        assert f"rate of {trial.case.id}" in str(outside.result)
        assert trial.outcome == "passed", trial.scores
        assert reply.usage is not None
        assert (reply.usage.model_calls, reply.usage.input_tokens) == (4, 44)


def test_a_doubled_tool_is_not_called_whether_it_is_async_or_not() -> None:
    async def get_rate_async(city: str) -> str:
        "The rate in a city."
        raise AssertionError("it was called")

    get_rate_async.__name__ = "get_rate"
    for chosen in (get_rate, get_rate_async):
        doubles = {"get_rate": (Double(result="doubled"),)}
        (trial,) = ran(agent(chosen), case("Oslo", doubles=doubles))
        assert TOUCHED == []
        assert trial.replies[0].text == "It says doubled"
        assert trial.replies[0].tool_calls[0].result == "doubled"


def test_a_member_of_a_team_gets_doubles_too() -> None:
    team = Team(name="desk", model=Scripted(tool="delegate_task_to_member"), members=[agent()])
    (trial,) = ran(team, case("Oslo", doubles={"get_rate": (Double(result="doubled"),)}))
    assert TOUCHED == []
    assert "doubled" in trial.replies[0].text


def test_a_tool_that_raises_is_an_error_of_the_call() -> None:
    def get_rate(city: str) -> str:
        "The rate in a city."
        raise ValueError("no such city")

    (trial,) = ran(agent(get_rate), case("Oslo"))
    assert trial.replies[0].tool_calls[0].error == "ValueError: no such city"


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
    ran(agent(hooked, _other), case("Oslo"))
    assert heard == ["tool get_rate", "async get_rate"]
    heard.clear()
    (trial,) = ran(agent(get_rate, tool_hooks=[on_agent]), case("Oslo"))
    assert heard == ["agent get_rate"]
    assert trial.outcome == "passed"


def _other(city: str) -> str:
    "Another tool."
    return city


def test_a_tool_that_waits_for_a_person_is_a_call_that_was_not_made() -> None:
    (trial,) = ran(agent(tool(requires_confirmation=True)(get_rate)), case("Oslo"))
    (call,) = trial.replies[0].tool_calls
    assert (call.name, dict(call.arguments)) == ("get_rate", {"city": "Oslo"})
    assert "waits for a person" in str(call.error)
    assert TOUCHED == []


def test_an_answer_with_a_schema_is_data() -> None:
    class Rate(BaseModel):
        city: str

    class Structured(Scripted):
        def invoke(self, messages: Any, **_: Any) -> ModelResponse:
            return ModelResponse(role="assistant", content='{"city": "Oslo"}')

    (trial,) = ran(Agent(model=Structured(), output_schema=Rate, use_json_mode=True), Case("a", (Turn("Oslo"),)))
    assert trial.replies[0].structured == {"city": "Oslo"}
    assert json.loads(trial.replies[0].text) == {"city": "Oslo"}


def test_a_model_that_fails_is_a_failure_with_its_reason() -> None:
    class Broken(Scripted):
        def invoke(self, messages: Any, **_: Any) -> ModelResponse:
            raise RuntimeError("the model is on strike")

    (trial,) = ran(Agent(name="rates", model=Broken()), case("Oslo"))
    assert trial.outcome != "passed"
    assert "on strike" in trial.reason


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


def test_tools_can_be_called_again_with_what_the_agent_gave_them() -> None:
    (trial,) = ran(agent(), case("Oslo"))
    tools = toolbox(agent=resolve_agent(agent()))
    (again,) = asyncio.run(reexecute(trial.replies[0].tool_calls, tools))
    assert (again.differs, again.error, again.skipped) == (False, None, None)
    assert again.result == {"rate": "rate of Oslo"}


def test_agents_that_differ_have_other_fingerprints() -> None:
    def mark(target: Any) -> str:
        return str(resolve_agent(target).fingerprint)  # type: ignore[attr-defined]

    assert mark(agent()) == mark(agent())
    assert len({mark(agent()), mark(agent(instructions="Be brief")), mark(agent(_other))}) == 3
    assert mark(Team(members=[agent()])) != mark(Team(members=[agent(instructions="Be brief")]))


def test_the_object_is_recognised_by_its_type_from_a_reference(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from agno.agent import Agent\nagent = Agent(name='rates')\n")
    found = resolve_agent("app.py:agent", tmp_path)
    assert type(found).__name__ == "AgnoAdapter"
    assert found.name == "app.py:agent"


def test_the_example_passes() -> None:
    run = proctor.run(EXAMPLE / "cases.yaml", agent=f"{EXAMPLE / 'agno' / 'agent.py'}:agent")
    assert [trial.outcome for trial in run.trials] == ["passed"] * 3, [trial.reason for trial in run.trials]
