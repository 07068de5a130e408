"""Runs with the real llama-index-core in an environment of its own: `make frameworks`."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import proctor
from proctor.agents.resolving import resolve_agent
from proctor.agents.tool_reexecution import reexecute
from proctor.agents.toolbox import toolbox
from proctor.cases.suite import Case, Double, EvaluatorSpec, Expected, ExpectedCall, Suite, Turn

pytest.importorskip("llama_index.core", reason="llama-index-core has an environment of its own: make frameworks")

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool, ToolSelection
from llama_index.core.workflow import Context

pytestmark = pytest.mark.filterwarnings("ignore")

EXAMPLE = ROOT / "examples" / "frameworks"
NUMBERS = itertools.count(1)
TOUCHED: list[str] = []


class Scripted(FunctionCallingLLM):
    """Calls one tool with the user's words, then tells its result."""

    tool: str = "get_rate"
    argument: str = "city"
    tokens: bool = True

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted", is_function_calling_model=True)

    @llm_chat_callback()
    async def achat(self, messages: Any, **_: Any) -> ChatResponse:
        return self.reply(messages)

    @llm_chat_callback()
    async def astream_chat(self, messages: Any, **_: Any) -> Any:
        async def pieces() -> Any:
            yield self.reply(messages)

        return pieces()

    def reply(self, messages: Any) -> ChatResponse:
        done = messages[-1].role == MessageRole.TOOL
        text = f"It says {messages[-1].content}" if done else ""
        asked = next(m.content for m in reversed(messages) if m.role == MessageRole.USER)
        message = ChatMessage(content=text, role="assistant", additional_kwargs={} if done else {"asked": asked})
        usage = {"usage": {"prompt_tokens": 11, "completion_tokens": 7}} if self.tokens else None
        return ChatResponse(message=message, raw=usage)

    def get_tool_calls_from_response(self, response: ChatResponse, **_: Any) -> list[ToolSelection]:
        asked = response.message.additional_kwargs.get("asked")
        arguments = {"to_agent": "rates", "reason": "so"} if self.tool == "handoff" else {self.argument: asked}
        call = ToolSelection(tool_id=f"c{next(NUMBERS)}", tool_name=self.tool, tool_kwargs=arguments)
        return [] if asked is None else [call]

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        return {"messages": chat_history or []}

    def chat(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    complete = stream_chat = stream_complete = acomplete = astream_complete = chat


def get_rate(city: str) -> dict[str, Any]:
    "The rate in a city."
    TOUCHED.append(city)
    return {"rate": f"rate of {city}"}


def agent(tool: Any = get_rate, llm: Any = None, **more: Any) -> FunctionAgent:
    more = {"name": "rates", "description": "knows rates", **more}
    return FunctionAgent(tools=[tool], llm=llm or Scripted(), **more)


def case(name: str, **more: Any) -> Case:
    expected = Expected(tool_calls=(ExpectedCall("get_rate", {"city": name}),))
    return Case(name, (Turn(name, expected),), **more)


def ran(target: Any, *cases: Case) -> list[proctor.TrialResult]:
    TOUCHED.clear()
    suite = Suite("llama-index", cases, evaluators=(EvaluatorSpec("ToolTrajectory"),))
    return list(proctor.run(suite, agent=target).trials)


@pytest.mark.parametrize("streaming", [True, False])
def test_text_calls_with_results_and_tokens_are_seen(streaming: bool) -> None:
    (trial,) = ran(agent(streaming=streaming), case("Oslo"))
    (reply,) = trial.replies
    (call,) = reply.tool_calls
    assert trial.outcome == "passed", trial.reason
    assert reply.text == "It says {'rate': 'rate of Oslo'}"
    assert (call.name, dict(call.arguments), call.result) == ("get_rate", {"city": "Oslo"}, {"rate": "rate of Oslo"})
    assert call.duration_ms is not None
    assert call.started_at is not None
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.model_calls) == (22, 14, 2)


def test_tokens_that_the_model_does_not_tell_are_unknown() -> None:
    (trial,) = ran(agent(llm=Scripted(tokens=False)), case("Oslo"))
    usage = trial.replies[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.model_calls) == (None, 2)


def test_a_react_agent_is_read_too() -> None:
    class Reasoning(Scripted):
        def reply(self, messages: Any) -> ChatResponse:
            last = str(messages[-1].content)
            if last.startswith("Observation:"):
                text = f"Thought: I can answer.\nAnswer: It says {last.removeprefix('Observation: ')}"
            else:
                text = f'Thought: I need a tool.\nAction: get_rate\nAction Input: {{"city": "{last}"}}'
            return ChatResponse(message=ChatMessage(content=text, role="assistant"), delta=text)

    (trial,) = ran(ReActAgent(tools=[get_rate], llm=Reasoning()), case("Oslo"))
    assert trial.outcome == "passed", trial.reason
    assert trial.replies[0].text == "It says {'rate': 'rate of Oslo'}"


async def rate_and_state(ctx: Context, city: str) -> str:
    "The rate in a city."
    state = await ctx.store.get("state")
    state["seen"] = [*state.get("seen", []), city]
    await ctx.store.set("state", state)
    return f"rate of {city} for {state.get('customer')}"


rate_and_state.__annotations__ = {"ctx": Context, "city": str, "return": str}  # LlamaIndex reads no text here


def test_many_at_once_keep_their_contexts_and_state_apart() -> None:
    class Asking(Scripted):
        def get_tool_calls_from_response(self, response: ChatResponse, **more: Any) -> list[ToolSelection]:
            calls = super().get_tool_calls_from_response(response, **more)
            for call in calls:
                call.tool_kwargs["city"] = re.findall(r"city\d+|Oslo|Rome", call.tool_kwargs["city"])[-1]
            return calls

    tool = FunctionTool.from_defaults(async_fn=rate_and_state, name="get_rate")
    target = agent(tool, Asking(), initial_state={"seen": []})
    names = [f"city{i}" for i in range(24)]
    for trial in ran(target, *[case(name, state={"customer": name.upper()}) for name in names]):
        (reply,) = trial.replies
        name = trial.case.id
        assert trial.outcome == "passed", trial.reason
        assert reply.text == f"It says rate of {name} for {name.upper()}"
        assert reply.state == {"customer": name.upper(), "seen": [name]}
        assert dict(reply.tool_calls[0].arguments) == {"city": name}
    assert target.initial_state == {"seen": []}
    (trial,) = ran(target, Case("two", (Turn("Oslo"), Turn("Rome"))))
    assert [reply.state and reply.state["seen"] for reply in trial.replies] == [["Oslo"], ["Oslo", "Rome"]]


def test_turns_of_one_case_share_a_memory_and_two_trials_do_not() -> None:
    seen: list[list[str]] = []

    class Remembering(Scripted):
        def reply(self, messages: Any) -> ChatResponse:
            seen.append([m.content for m in messages if m.role == MessageRole.USER])
            return super().reply(messages)

    target = agent(llm=Remembering())
    (trial,) = ran(target, Case("two", (Turn("Oslo"), Turn("Rome"))))
    assert seen[-1] == ["Oslo", "Rome"]
    assert [len(reply.tool_calls) for reply in trial.replies] == [1, 1]
    ran(target, case("Bonn"))
    assert seen[-1] == ["Bonn"]


def workflow() -> AgentWorkflow:
    desk = agent(llm=Scripted(tool="handoff"), name="desk", description="sends people on", can_handoff_to=["rates"])
    return AgentWorkflow(agents=[desk, agent(llm=Eager())], root_agent="desk")


class Eager(Scripted):
    """Calls its tool although a handoff has just answered."""

    def reply(self, messages: Any) -> ChatResponse:
        latest = str(messages[-1].content)
        return super().reply(
            [m for m in messages if m.role == MessageRole.USER] if "now handling" in latest else messages
        )


def test_a_workflow_shows_the_handoff_and_what_the_next_agent_does() -> None:
    for trial in ran(workflow(), *[Case(name, (Turn(name),)) for name in ("Oslo", "Rome", "Bonn")]):
        (reply,) = trial.replies
        handed, called = reply.tool_calls
        assert (handed.name, dict(handed.arguments)) == ("handoff", {"to_agent": "rates", "reason": "so"})
        assert (called.name, dict(called.arguments), called.parent) == ("get_rate", {"city": trial.case.id}, None)
        assert reply.text == f"It says {{'rate': 'rate of {trial.case.id}'}}"
        assert reply.usage is not None
        assert reply.usage.model_calls == 3


def test_what_an_agent_inside_a_tool_does_is_inside_the_call_of_it() -> None:
    inner = agent()

    async def ask_rates(question: str) -> str:
        "Asks the agent that knows rates."
        return str(await inner.run(user_msg=question))

    target = agent(ask_rates, Scripted(tool="ask_rates", argument="question"))
    for trial in ran(target, *[Case(f"city{i}", (Turn(f"city{i}"),)) for i in range(8)]):
        (reply,) = trial.replies
        outside, inside = reply.tool_calls
        assert (outside.name, inside.name, inside.parent) == ("ask_rates", "get_rate", outside.id)
        assert dict(inside.arguments) == {"city": trial.case.id}
        assert reply.usage is not None
        assert reply.usage.model_calls == 4


@pytest.mark.parametrize("make", [agent, workflow])
def test_a_doubled_tool_is_not_called_and_the_object_stays_as_it_was(make: Any) -> None:
    target = make()
    (trial,) = ran(target, Case("Oslo", (Turn("Oslo"),), doubles={"get_rate": (Double(result="doubled"),)}))
    assert TOUCHED == []
    assert trial.replies[0].text == "It says doubled"
    assert trial.replies[0].tool_calls[-1].result == "doubled"
    (trial,) = ran(target, Case("Oslo", (Turn("Oslo"),)))
    assert TOUCHED == ["Oslo"]


def test_a_double_that_fails_and_a_tool_that_raises_are_errors_of_their_calls() -> None:
    def get_rate(city: str) -> str:
        "The rate in a city."
        raise ValueError("no such city")

    (trial,) = ran(agent(), case("Oslo", doubles={"get_rate": (Double(error="out of order"),)}))
    assert "out of order" in str(trial.replies[0].tool_calls[0].error)
    (trial,) = ran(agent(get_rate), case("Oslo"))
    assert trial.replies[0].tool_calls[0].error == "ValueError: no such city"


def test_a_tool_that_does_not_exist_is_a_call_with_an_error() -> None:
    (trial,) = ran(agent(llm=Scripted(tool="get_weather")), case("Oslo"))
    (call,) = trial.replies[0].tool_calls
    assert (call.name, dict(call.arguments)) == ("get_weather", {"city": "Oslo"})
    assert "not found" in str(call.error)


def test_what_a_query_engine_finds_is_context() -> None:
    class Shelf(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Any:
            from llama_index.core.base.response.schema import Response

            return Response(f"rate of {query_str}", [NodeWithScore(node=TextNode(text="Rates are 4%."), score=0.9)])

    tool = QueryEngineTool.from_defaults(Shelf(), name="get_rate", description="rates")
    (trial,) = ran(agent(tool, Scripted(argument="input")), Case("Oslo", (Turn("Oslo"),)))
    (reply,) = trial.replies
    (call,) = reply.tool_calls
    assert (call.name, dict(call.arguments), call.result) == ("get_rate", {"input": "Oslo"}, "rate of Oslo")
    assert reply.retrieval_context == ("Rates are 4%.",)


def test_a_model_that_fails_is_a_failure_with_its_reason() -> None:
    class Broken(Scripted):
        def reply(self, messages: Any) -> ChatResponse:
            raise RuntimeError("the model is on strike")

    (trial,) = ran(agent(llm=Broken()), case("Oslo"))
    assert trial.outcome != "passed"
    assert "on strike" in trial.reason


def test_tools_can_be_called_again_with_what_the_agent_gave_them() -> None:
    (trial,) = ran(agent(), case("Oslo"))
    tools = toolbox(agent=resolve_agent(agent()))
    (again,) = asyncio.run(reexecute(trial.replies[0].tool_calls, tools))
    assert (again.differs, again.error, again.skipped) == (False, None, None)
    assert again.result == {"rate": "rate of Oslo"}


def test_agents_that_differ_have_other_fingerprints() -> None:
    from proctor.agents.resolving import resolve_agent

    def mark(target: Any) -> str:
        return str(resolve_agent(target).fingerprint)  # type: ignore[attr-defined]

    assert mark(agent()) == mark(agent())
    assert len({mark(agent()), mark(agent(system_prompt="Be brief")), mark(workflow())}) == 3


def test_the_object_is_recognised_by_its_type_from_a_reference(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from llama_index.core.agent.workflow import FunctionAgent\n"
        "from llama_index.core.llms import MockLLM\n"
        "agent = FunctionAgent(name='rates', llm=MockLLM())\n"
    )
    from proctor.agents.resolving import resolve_agent

    found = resolve_agent("app.py:agent", tmp_path)
    assert type(found).__name__ == "LlamaIndexAgent"
    assert found.name == "app.py:agent"


def test_the_example_passes() -> None:
    run = proctor.run(EXAMPLE / "cases.yaml", agent=f"{EXAMPLE / 'llama_index' / 'agent.py'}:agent")
    assert [trial.outcome for trial in run.trials] == ["passed"] * 3, [trial.reason for trial in run.trials]
