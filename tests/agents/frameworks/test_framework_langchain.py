"""Runs with the real langchain and langgraph in an environment of their own: `make frameworks`."""

from __future__ import annotations

import asyncio
import itertools
import operator
from typing import Annotated, Any, TypedDict

import pytest
from framework_contract import PROMPTS, TOOL_INPUTS, FrameworkContract, case, rate_of, run_cases

import proctor
from proctor.base.errors import InvalidSuite, UsageError
from proctor.cases.suite import Case, EvaluatorSpec, Turn

pytest.importorskip("langgraph.graph", reason="langchain has an environment of its own: make frameworks")

from langchain.agents import AgentState, create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

pytestmark = pytest.mark.filterwarnings("ignore")

NUMBERS = itertools.count(1)


class Scripted(BaseChatModel):
    """Calls one tool with the user's words, then tells what it said."""

    tool: str = "get_rate"
    argument: str = "city"
    tells_usage: bool = True

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **named: Any) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> ChatResult:
        asked = [str(m.content) for m in messages if isinstance(m, HumanMessage)]
        PROMPTS.append(asked)
        message = self.step(messages, asked)
        if self.tells_usage:
            message.usage_metadata = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
        return ChatResult(generations=[ChatGeneration(message=message)])

    def step(self, messages: list[BaseMessage], asked: list[str]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return AIMessage(f"{len(asked)}: {messages[-1].content}")
        call = {"name": self.tool, "args": {self.argument: asked[-1]}, "id": f"call{next(NUMBERS)}"}
        return AIMessage("", tool_calls=[call])


@tool
def get_rate(city: str) -> dict[str, str]:
    """The rate in a city."""
    return {"rate": rate_of(city)}


def agent(*tools: Any, model: BaseChatModel | None = None, **more: Any) -> Any:
    return create_agent(model or Scripted(), list(tools or [get_rate]), system_prompt="Use tools.", **more)


def talked(target: Any, *questions: Any, **more: Any) -> list[proctor.Reply]:
    turns = tuple(Turn(question) for question in questions)
    (trial,) = run_cases(
        target, Case(id="talk", turns=turns, evaluators=(EvaluatorSpec("ToolCount", {"at_most": 9}),), **more)
    )
    assert trial.outcome == "passed", trial.reason
    return list(trial.replies)


class Visit(AgentState):
    customer: str
    seen: Annotated[list[str], operator.add]


@tool("get_rate")
def rate_for_visitor(city: str, runtime: ToolRuntime) -> Command:
    """The rate in a city, for this customer."""
    said = f"rate of {city} for {runtime.state['customer']}"
    return Command(update={"seen": [city], "messages": [ToolMessage(said, tool_call_id=runtime.tool_call_id)]})


@tool
def other(city: str) -> str:
    """Another tool."""
    return city


class Broken(Scripted):
    def step(self, messages: list[BaseMessage], asked: list[str]) -> AIMessage:
        raise RuntimeError("the model is on strike")


class OneId(Scripted):
    """Calls two tools one after the other, both with the id `call_0`."""

    def step(self, messages: list[BaseMessage], asked: list[str]) -> AIMessage:
        made = sum(isinstance(message, ToolMessage) for message in messages)
        if made == 2:
            return AIMessage("done")
        call = {"name": ("get_rate", "other")[made], "args": {"city": asked[-1]}, "id": "call_0"}
        return AIMessage("", tool_calls=[call])


class TestLangChain(FrameworkContract):
    folder = "langchain"
    source = (
        "from langgraph.graph import START, MessagesState, StateGraph\n"
        "builder = StateGraph(MessagesState)\n"
        "builder.add_node('say', lambda state: {'messages': [('ai', 'hello')]})\n"
        "builder.add_edge(START, 'say')\n"
        "agent = builder.compile()\n"
    )
    raising_tool_fails_the_run = True
    memory: Any = None

    def agent(self) -> Any:
        return agent(checkpointer=self.memory)

    def broken_agent(self) -> Any:
        return agent(model=Broken())

    def other_agents(self) -> list[Any]:
        brief = create_agent(Scripted(), [get_rate], system_prompt="Be brief.")
        return [agent(other), brief, agent(model=Echo())]

    def visiting_agent(self) -> Any:
        return agent(rate_for_visitor, state_schema=Visit, checkpointer=self.memory)

    def silent_agent(self) -> Any:
        return agent(model=Scripted(tells_usage=False))

    def agent_with_one_id(self) -> Any:
        return agent(get_rate, other, model=OneId())

    def nested_agent(self) -> Any:
        inner = agent()

        @tool
        def ask_rates(request: str) -> str:
            """Delegate."""
            return str(inner.invoke({"messages": [("user", request)]})["messages"][-1].content)

        return agent(ask_rates, model=Scripted(tool="ask_rates", argument="request"))


class TestLangChainWithCheckpointer(TestLangChain):
    memory = InMemorySaver()

    def test_a_run_leaves_nothing_in_the_memory(self) -> None:
        talked(self.agent(), "Oslo", "Rome")
        assert list(self.memory.list(None)) == []


def test_a_memory_that_is_synchronous_only_will_do() -> None:
    class Synchronous(InMemorySaver):
        async def aget_tuple(self, config: Any) -> Any:
            raise NotImplementedError

        async def adelete_thread(self, thread_id: str) -> None:
            raise NotImplementedError

    memory = Synchronous()
    replies = talked(agent(checkpointer=memory), "Oslo", "Rome")
    assert [reply.text[:2] for reply in replies] == ["1:", "2:"]
    assert [len(reply.tool_calls) for reply in replies] == [1, 1]
    assert list(memory.list(None)) == []


class Shop(BaseModel):
    currency: str


def test_a_graph_with_a_context_gets_it_from_the_state() -> None:
    @tool("get_rate")
    def rate_in_currency(city: str, runtime: ToolRuntime[Shop]) -> str:
        """The rate in a city."""
        return f"{city} in {runtime.context.currency}"

    target = agent(rate_in_currency, context_schema=Shop)
    assert talked(target, "Oslo", state={"currency": "NOK"})[0].text == "1: Oslo in NOK"
    with pytest.raises((UsageError, InvalidSuite), match="does not match Shop"):
        talked(target, "Oslo", state={"curency": "NOK"})


def test_calls_inside_a_subgraph_are_seen() -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("rates", agent())
    graph.add_edge(START, "rates")
    graph.add_edge("rates", END)
    (reply,) = talked(graph, "Oslo")
    assert reply.text == '1: {"rate": "rate of Oslo"}'
    assert [call.name for call in reply.tool_calls] == ["get_rate"]
    assert reply.usage == proctor.Usage(22, 14, model_calls=2)


def test_an_error_that_a_tool_turns_into_words_is_an_error_of_the_call() -> None:
    @tool
    def get_rate(city: str) -> str:
        """The rate in a city."""
        raise ToolException("no such city")

    get_rate.handle_tool_error = True
    (reply,) = talked(agent(get_rate), "Oslo")
    assert (reply.tool_calls[0].error, reply.tool_calls[0].result) == ("no such city", None)


@pytest.mark.parametrize(("name", "argument"), [("get_rate", "town"), ("get_rates", "city")])
def test_calls_that_reach_no_tool_are_seen_with_the_reason(name: str, argument: str) -> None:
    (reply,) = talked(agent(model=Scripted(tool=name, argument=argument)), "Oslo")
    (call,) = reply.tool_calls
    assert (call.name, dict(call.arguments)) == (name, {argument: "Oslo"})
    assert call.error
    assert TOOL_INPUTS == []


def test_an_answer_with_a_schema_is_data_and_no_call() -> None:
    class Quote(BaseModel):
        """A rate."""

        rate: float

    class Typed(Scripted):
        def step(self, messages: list[BaseMessage], asked: list[str]) -> AIMessage:
            return AIMessage("", tool_calls=[{"name": "Quote", "args": {"rate": 4.5}, "id": "quote"}])

    (reply,) = talked(agent(model=Typed(), response_format=ToolStrategy(Quote)), "Oslo")
    assert (reply.structured, reply.tool_calls) == ({"rate": 4.5}, ())


def test_a_graph_without_messages_takes_the_question_under_its_key_and_tells_its_state() -> None:
    class Count(TypedDict, total=False):
        question: str
        answer: str
        times: int

    async def count(state: Count) -> Count:
        times = state.get("times", 0) + 1
        return {"answer": f"{state['question']} {times}", "times": times}

    graph = StateGraph(Count)
    graph.add_node("count", count)
    graph.add_edge(START, "count")
    replies = talked(graph, "once", {"question": "twice"}, state={"times": 3})
    assert [reply.text for reply in replies] == ["once 4", "twice 5"]
    assert replies[1].state == {"question": "twice", "answer": "twice 5", "times": 5}


def test_a_question_that_a_graph_has_no_place_for_is_refused_before_anything_runs() -> None:
    class Route(TypedDict):
        start: str
        destination: str

    graph = StateGraph(Route)
    graph.add_node("go", lambda state: state)
    graph.add_edge(START, "go")
    with pytest.raises((UsageError, InvalidSuite), match="start, destination"):
        talked(graph, "Oslo to Rome")


def test_a_graph_that_asks_back_is_answered_by_the_next_turn() -> None:
    def ask(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"Off to {interrupt('Where to?')}!")]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    replies = talked(graph.compile(checkpointer=InMemorySaver()), "I want to travel.", "Rome")
    assert [reply.text for reply in replies] == ["Where to?", "Off to Rome!"]


class Echo(Scripted):
    def step(self, messages: list[BaseMessage], asked: list[str]) -> AIMessage:
        return AIMessage(" | ".join(asked))


def test_a_chat_model_is_given_the_whole_conversation_and_its_requests_are_its_calls() -> None:
    assert [reply.text for reply in talked(Echo(), "one", "two")] == ["one", "one | two"]
    (reply,) = talked(Scripted(), "Oslo")
    assert [(call.name, dict(call.arguments), call.result) for call in reply.tool_calls] == [
        ("get_rate", {"city": "Oslo"}, None)
    ]


def test_a_chain_takes_the_question_as_its_one_variable_and_history_where_it_has_a_place() -> None:
    plain_chain = ChatPromptTemplate([("human", "Tell me about {thing}")]) | Echo()
    assert talked(plain_chain, "Oslo")[0].text == "Tell me about Oslo"
    assert talked(plain_chain, {"thing": "Rome"})[0].text == "Tell me about Rome"
    remembering = ChatPromptTemplate([("placeholder", "{history}"), ("human", "{question}")]) | Echo()
    assert [reply.text for reply in talked(remembering, "one", "two")] == ["one", "one | two"]


def test_outside_a_trial_an_agent_runs_as_it_does_without_proctor() -> None:
    target = agent()
    run_cases(target, case("Oslo"))
    result = asyncio.run(target.ainvoke({"messages": [("user", "Rome")]}))
    assert result["messages"][-1].content == '1: {"rate": "rate of Rome"}'
