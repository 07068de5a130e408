"""Classes of one's own, agents inside tools and calls that come to nothing, with the real agno: `make frameworks`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.agents.resolve import resolve_agent
from proctor.cases.suite import Case, EvaluatorSpec, Suite, ToolMock, Turn

pytest.importorskip("agno", reason="agno has an environment of its own: make frameworks")

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.metrics import MessageMetrics
from agno.models.base import Model
from agno.models.response import ModelResponse

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass
class Scripted(Model):
    """Asks for these tools at once, then tells what they said."""

    id: str = "scripted"
    asks: tuple[Any, ...] = ()

    def invoke(self, messages: Any, **_: Any) -> ModelResponse:
        usage = MessageMetrics(input_tokens=11, output_tokens=7)
        if messages[-1].role == "tool" or not self.asks:
            told = [str(message.content) for message in messages if message.role == "tool"]
            return ModelResponse(role="assistant", content=" and ".join(told) or "nothing", response_usage=usage)
        calls = [
            {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(self.asks)
        ]
        return ModelResponse(role="assistant", tool_calls=calls, response_usage=usage)

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


def get_rate(city: str) -> str:
    "The rate in a city."
    return f"rate of {city}"


def asked(name: str, **arguments: Any) -> tuple[str, str]:
    return name, json.dumps(arguments)


def agent(*asks: Any, **more: Any) -> Agent:
    return Agent(**{"name": "rates", "model": Scripted(asks=asks), "tools": [get_rate], **more})


def ran(target: Any, *names: str, **more: Any) -> list[proctor.Reply]:
    check = (EvaluatorSpec("ToolCount", {"at_most": 9}),)
    cases = tuple(Case(id=name, turns=(Turn(name),), evaluators=check, **more) for name in names or ("one",))
    trials = list(proctor.run(Suite("agno", cases), agent=target).trials)
    assert {str(trial.outcome) for trial in trials} == {"passed"}, [trial.reason for trial in trials]
    return [trial.replies[0] for trial in trials]


class Desk(Agent):
    """A class of one's own, made in its own way."""

    def __init__(self, city: str = "Oslo") -> None:
        super().__init__(name="desk", model=Scripted(asks=(asked("get_rate", city=city),)), tools=[get_rate])
        self.city = city


@pytest.mark.parametrize("target", [Desk, Desk("Oslo"), lambda: agent(asked("get_rate", city="Oslo"))])
def test_a_class_of_ones_own_its_object_and_a_factory_are_agents(target: Any) -> None:
    (reply,) = ran(target)
    assert (reply.text, [call.name for call in reply.tool_calls]) == ("rate of Oslo", ["get_rate"])


INNER = agent(asked("get_rate", city="Oslo"), db=InMemoryDb())


async def ask_colleague(question: str) -> str:
    "Asks another agent."
    return str((await INNER.arun(question)).content)


def ask_colleague_plainly(question: str) -> str:
    "Asks another agent."
    return str(INNER.run(question).content)


@pytest.mark.parametrize("tool", [ask_colleague, ask_colleague_plainly])
def test_calls_of_an_agent_that_a_tool_asks_are_inside_its_call_and_its_tokens_count(tool: Any) -> None:
    outer = agent(asked(tool.__name__, question="rate?"), tools=[tool])
    for reply in ran(outer, *[f"case{n}" for n in range(20)]):
        around, inside = reply.tool_calls
        assert (around.name, inside.name, inside.parent) == (tool.__name__, "get_rate", around.id)
        assert reply.usage == proctor.Usage(44, 28, model_calls=4)
    assert not INNER.db.get_sessions()


def test_mocks_reach_the_tools_of_an_agent_that_a_tool_asks() -> None:
    outer = agent(asked("ask_colleague", question="rate?"), tools=[ask_colleague])
    (reply,) = ran(outer, mocks={"get_rate": (ToolMock(result="mocked"),)})
    assert reply.text == "mocked"


def test_outside_a_trial_an_agent_runs_as_it_does_without_proctor() -> None:
    target = agent(asked("get_rate", city="Oslo"))
    ran(target)
    assert target.run("rate?").content == "rate of Oslo"
    assert target.tool_hooks is None


def test_calls_that_reach_no_tool_are_seen_with_the_reason() -> None:
    (reply,) = ran(agent(asked("get_rat", city="Oslo"), ("get_rate", "{city: Oslo"), asked("get_rate", city="Rome")))
    calls = {(call.name, call.raw_arguments): call for call in reply.tool_calls}
    assert calls["get_rate", None].result == "rate of Rome"
    assert "does not exist" in str(calls["get_rat", None].error)
    assert "decoding" in str(calls["get_rate", "{city: Oslo"].error)
    assert len(reply.tool_calls) == 3


def test_the_state_is_the_applications_own() -> None:
    (reply,) = ran(agent(session_state={"customer": "Ann"}), state={"city": "Oslo"})
    assert reply.state == {"customer": "Ann", "city": "Oslo"}


def test_the_fingerprint_changes_with_the_code_of_a_tool(tmp_path: Path) -> None:
    found = []
    for folder, said in (("one", "low"), ("two", "low"), ("three", "high")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rates_app.py").write_text(
            f"from agno.agent import Agent\ndef rate(city: str): return {said!r}\nagent = Agent(tools=[rate])\n"
        )
        found.append(resolve_agent(f"{tmp_path / folder / 'rates_app.py'}:agent").fingerprint)
    assert found[0] == found[1] != found[2]
