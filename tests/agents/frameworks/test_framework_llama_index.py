"""Runs with the real llama-index-core in an environment of its own: `make frameworks`."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from framework_contract import HEARD, TOUCHED, FrameworkContract, case, ran, rate_of

from proctor.cases.suite import Case, Double, Turn

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

NUMBERS = itertools.count(1)


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
        HEARD.append([m.content for m in messages if m.role == MessageRole.USER])
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
    return {"rate": rate_of(city)}


def agent(tool: Any = get_rate, llm: Any = None, **more: Any) -> FunctionAgent:
    more = {"name": "rates", "description": "knows rates", **more}
    return FunctionAgent(tools=[tool], llm=llm or Scripted(), **more)


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


class Asking(Scripted):
    """Finds the city in a question that LlamaIndex has put the state before."""

    def get_tool_calls_from_response(self, response: ChatResponse, **more: Any) -> list[ToolSelection]:
        calls = super().get_tool_calls_from_response(response, **more)
        for call in calls:
            call.tool_kwargs["city"] = re.findall(r"city\d+|Oslo|Rome", call.tool_kwargs["city"])[-1]
        return calls


class Broken(Scripted):
    def reply(self, messages: Any) -> ChatResponse:
        raise RuntimeError("the model is on strike")


class TestLlamaIndex(FrameworkContract):
    adapter = "LlamaIndexAgent"
    folder = "llama_index"
    source = (
        "from llama_index.core.agent.workflow import FunctionAgent\n"
        "from llama_index.core.llms import MockLLM\n"
        "agent = FunctionAgent(name='rates', llm=MockLLM())\n"
    )
    streaming = True

    def agent(self) -> Any:
        return agent(streaming=self.streaming)

    def broken_agent(self) -> Any:
        return agent(llm=Broken())

    def other_agents(self) -> list[Any]:
        return [agent(system_prompt="Be brief"), workflow()]

    def visiting_agent(self) -> Any:
        tool = FunctionTool.from_defaults(async_fn=rate_and_state, name="get_rate")
        return agent(tool, Asking(), initial_state={"seen": []})

    def silent_agent(self) -> Any:
        return agent(llm=Scripted(tokens=False))

    def nested_agent(self) -> Any:
        inner = agent()

        async def ask_rates(question: str) -> str:
            "Asks the agent that knows rates."
            return str(await inner.run(user_msg=question))

        return agent(ask_rates, Scripted(tool="ask_rates", argument="question"))


class TestLlamaIndexWithoutStreaming(TestLlamaIndex):
    streaming = False


def test_the_state_that_an_agent_begins_with_stays_as_it_was() -> None:
    tool = FunctionTool.from_defaults(async_fn=rate_and_state, name="get_rate")
    target = agent(tool, Asking(), initial_state={"seen": []})
    ran(target, case("Oslo", state={"customer": "Ann"}))
    assert target.initial_state == {"seen": []}


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


def test_a_doubled_tool_of_a_workflow_is_not_called_and_the_workflow_stays_as_it_was() -> None:
    target = workflow()
    (trial,) = ran(target, Case("Oslo", (Turn("Oslo"),), doubles={"get_rate": (Double(result="doubled"),)}))
    assert TOUCHED == []
    assert trial.replies[0].text == "It says doubled"
    assert trial.replies[0].tool_calls[-1].result == "doubled"
    (trial,) = ran(target, Case("Oslo", (Turn("Oslo"),)))
    assert TOUCHED == ["Oslo"]


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
