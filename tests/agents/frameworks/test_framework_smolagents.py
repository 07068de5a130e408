"""Runs with the real smolagents in an environment of its own: `make frameworks`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from framework_contract import HEARD, FrameworkContract, case, ran, rate_of

import proctor
from proctor.agents.resolving import resolve_agent
from proctor.cases.suite import Case, EvaluatorSpec, Suite, Turn

pytest.importorskip("smolagents", reason="smolagents has an environment of its own: make frameworks")

from smolagents import ChatMessage, CodeAgent, MessageRole, Model, TokenUsage, Tool, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

pytestmark = pytest.mark.filterwarnings("ignore")


def texts(messages: Any, role: Any) -> list[str]:
    found = []
    for message in messages:
        content = message.content if isinstance(message.content, str) else "".join(p["text"] for p in message.content)
        if message.role == role:
            found.append(content)
    return found


CITY = r"city\d*|Oslo|Rome|Bonn|Atlantis|Pompeii"


def heard(messages: Any) -> None:
    HEARD.append(re.findall(CITY, " ".join(texts(messages, MessageRole.USER))))


def called(name: str, **arguments: Any) -> ChatMessage:
    function = ChatMessageToolCallFunction(name=name, arguments=arguments)
    call = ChatMessageToolCall(id="c1", type="function", function=function)
    return ChatMessage(MessageRole.ASSISTANT, "", tool_calls=[call], token_usage=TokenUsage(11, 7))


class Scripted(Model):
    """Calls one tool with the latest task, then ends with what it was told."""

    tool = "get_rate"
    argument = "city"

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        heard(messages)
        asked = texts(messages, MessageRole.USER)[-1]
        task = re.search(CITY, asked)
        told = [*texts(messages, MessageRole.TOOL_RESPONSE), *[t for t in [asked] if t.startswith("Error")]]
        if messages[-1].role == MessageRole.TOOL_RESPONSE:
            return self.write("final_answer", answer=told[-1].removeprefix("Observation:\n"))
        return self.write(self.tool, **{self.argument: task.group() if task else asked})

    def write(self, name: str, **arguments: Any) -> ChatMessage:
        return called(name, **arguments)


class Delegating(Scripted):
    tool = "rates"
    argument = "task"


class Coding(Model):
    """Writes code that uses one tool by position, and answers with its result."""

    tool = "get_rate"

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        heard(messages)
        task = re.findall(CITY, texts(messages, MessageRole.USER)[-1])[-1]
        code = f"Thought: so.\n<code>\nfinal_answer({self.tool}({task!r}))\n</code>"
        return ChatMessage(MessageRole.ASSISTANT, code, token_usage=TokenUsage(11, 7))


class CodingDesk(Coding):
    tool = "rates"


class Rate(Tool):
    """The tool of all agents here."""

    name = "get_rate"
    description = "The rate in a city."
    inputs = {"city": {"type": "string", "description": "which one"}}  # noqa: RUF012
    output_type = "string"

    def forward(self, city: str) -> str:
        return rate_of(city)


def agent(tool: Tool | None = None, model: Model | None = None, **more: Any) -> ToolCallingAgent:
    return ToolCallingAgent(tools=[tool or Rate()], model=model or Scripted(), max_steps=3, **more)


def coder(tool: Tool | None = None, model: Model | None = None, **more: Any) -> CodeAgent:
    return CodeAgent(tools=[tool or Rate()], model=model or Coding(), max_steps=2, **more)


class Broken(Model):
    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        raise RuntimeError("the model is on strike")


class TestToolCallingAgent(FrameworkContract):
    counts_tokens_as_it_goes = False
    adapter = "SmolagentsAgent"
    folder = "smolagents"
    source = "from smolagents import Model, ToolCallingAgent\nagent = ToolCallingAgent(tools=[], model=Model())\n"

    def agent(self) -> Any:
        return agent()

    def broken_agent(self) -> Any:
        return agent(model=Broken())

    def other_agents(self) -> list[Any]:
        return [agent(instructions="Be brief"), coder()]

    def result(self, told: str) -> Any:
        return told


class TestCodeAgent(TestToolCallingAgent):
    model_calls = 1

    def agent(self) -> Any:
        return coder()

    def broken_agent(self) -> Any:
        return coder(model=Broken())

    def other_agents(self) -> list[Any]:
        return [coder(instructions="Be brief"), agent()]


@pytest.mark.parametrize("make", [agent, coder])
def test_a_run_leaves_the_object_as_it_was(make: Any) -> None:
    target = make()
    before = dict(vars(target))
    ran(target, case("Oslo"), case("Rome"))
    assert vars(target) == before
    assert target.memory.steps == []
    assert target.monitor.get_total_token_counts().input_tokens == 0


@pytest.mark.parametrize("outer", [agent, coder])
@pytest.mark.parametrize("inner", [agent, coder])
def test_what_a_managed_agent_does_is_inside_the_call_of_it(outer: Any, inner: Any) -> None:
    below = inner(name="rates", description="knows rates")
    desk = outer(model=Delegating() if outer is agent else CodingDesk(), managed_agents=[below])
    steps = [{"name": "rates", "steps": ["get_rate"]}]
    suite = Suite(
        "smolagents",
        tuple(Case(name, (Turn(name),)) for name in ("Oslo", "Rome", "Bonn")),
        evaluators=(EvaluatorSpec("Trajectory", {"steps": steps, "extra": False}),),
    )
    for trial in proctor.run(suite, agent=desk).trials:
        (reply,) = trial.replies
        outside, inside = reply.tool_calls
        assert (outside.name, inside.name, inside.parent) == ("rates", "get_rate", outside.id)
        assert dict(outside.arguments) == {"task": trial.case.id}
        assert f"rate of {trial.case.id}" in reply.text
        assert trial.outcome == "passed", trial.scores
        assert reply.usage is not None
        assert reply.usage.model_calls == (2 if outer is agent else 1) + (2 if inner is agent else 1)
    assert below.memory.steps == []


def test_a_tool_that_does_not_exist_and_wrong_arguments_are_calls_with_an_error() -> None:
    class Mistaken(Scripted):
        tool = "get_weather"

    (trial,) = ran(agent(model=Mistaken()), case("Oslo"))
    call = trial.replies[0].tool_calls[0]
    assert call.name == "get_weather"
    assert "Unknown tool" in str(call.error)

    class Careless(Scripted):
        argument = "town"

    (trial,) = ran(agent(model=Careless()), case("Oslo"))
    call = trial.replies[0].tool_calls[0]
    assert (call.name, dict(call.arguments)) == ("get_rate", {"town": "Oslo"})
    assert "town" in str(call.error)


def test_the_state_of_a_case_is_what_the_agent_is_given() -> None:
    (trial,) = ran(agent(), case("Oslo", state={"customer": "Ann"}))
    assert trial.replies[0].state == {"customer": "Ann"}
    (trial,) = ran(agent(), case("Oslo"))
    assert trial.replies[0].state == {}


def test_code_of_one_trial_leaves_no_variables_for_another() -> None:
    class Counting(Coding):
        def generate(self, messages: Any, **_: Any) -> ChatMessage:
            code = "<code>\ntry:\n    count = count + 1\nexcept Exception:\n    count = 1\nfinal_answer(count)\n</code>"
            return ChatMessage(MessageRole.ASSISTANT, code)

    trials = ran(coder(model=Counting()), *[case(f"city{i}") for i in range(3)])
    assert [trial.replies[0].structured for trial in trials] == [1, 1, 1]
    (trial,) = ran(coder(model=Counting()), Case("two", (Turn("Oslo"), Turn("Rome"))))
    assert [reply.text for reply in trial.replies] == ["1", "2"]
    assert trial.replies[0].usage is not None
    assert trial.replies[0].usage.input_tokens is None


def test_an_interpreter_that_cannot_be_copied_is_refused_rather_than_shared() -> None:
    class Stubborn:
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("one of a kind")

    (trial,) = ran(coder(executor=Stubborn()), case("Oslo"))
    assert "one of a kind" in trial.reason


def test_callbacks_of_the_agent_still_run_and_see_the_copy() -> None:
    heard: list[Any] = []
    target = agent(step_callbacks=[lambda step, agent: heard.append((step.step_number, agent is target))])
    ran(target, case("Oslo"))
    assert heard == [(1, False), (2, False)]


def test_a_function_that_makes_an_agent_stands_for_it() -> None:
    (trial,) = ran(lambda: agent(), case("Oslo"))
    assert trial.outcome == "passed", trial.reason
    assert [call.name for call in trial.replies[0].tool_calls] == ["get_rate"]


def test_the_fingerprint_changes_with_the_code_of_a_tool(tmp_path: Path) -> None:
    found = []
    for folder, said in (("one", "low"), ("two", "low"), ("three", "high")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rates_app.py").write_text(
            "from smolagents import Model, ToolCallingAgent, tool\n"
            "@tool\n"
            "def rate(city: str) -> str:\n"
            f"    '''Rate.\n\n    Args:\n        city: which one\n    '''\n    return {said!r}\n"
            "agent = ToolCallingAgent(tools=[rate], model=Model())\n"
        )
        found.append(resolve_agent(f"{tmp_path / folder / 'rates_app.py'}:agent").fingerprint)
    assert found[0] == found[1] != found[2]
