"""Factories, wrapped graphs and unusual states of the real langchain and langgraph: `make frameworks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import pytest

import proctor
from proctor.agents.frameworks import naming_hint
from proctor.cases.suite import Case, EvaluatorSpec, Suite, Turn

pytest.importorskip("langgraph.graph", reason="langchain has an environment of its own: make frameworks")

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

pytestmark = pytest.mark.filterwarnings("ignore")


class Scripted(BaseChatModel):
    """Asks for these tools at once, then tells how many questions it knows of."""

    asks: list[Any] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **named: Any) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> ChatResult:
        calls = [{"name": name, "args": args, "id": f"c{i}"} for i, (name, args) in enumerate(self.asks)]
        asking = bool(calls) and not isinstance(messages[-1], ToolMessage)
        known = sum(isinstance(message, HumanMessage) for message in messages)
        message = AIMessage("", tool_calls=calls) if asking else AIMessage(f"{known} asked")
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def get_rate(city: str) -> str:
    """The rate in a city."""
    return f"rate of {city}"


def agent(*asks: Any, **more: Any) -> Any:
    return create_agent(Scripted(asks=list(asks)), [get_rate], **more)


def replied(target: Any, *questions: Any) -> list[proctor.Reply]:
    turns = tuple(Turn(question) for question in questions or ("Oslo?",))
    case = Case(id="talk", turns=turns, evaluators=(EvaluatorSpec("ToolCount", {"at_most": 9}),))
    (trial,) = proctor.run(Suite("langchain", (case,)), agent=target).trials
    assert trial.outcome == "passed", trial.reason
    return list(trial.replies)


def make_agent() -> Any:
    return agent(("get_rate", {"city": "Oslo"}))


def make_agent_elsewhere() -> Any:
    return make_agent()


async def make_agent_later() -> Any:
    return make_agent()


@pytest.mark.parametrize("factory", [make_agent, make_agent_elsewhere, make_agent_later])
def test_a_function_that_makes_an_agent_stands_for_it(factory: Any) -> None:
    (reply,) = replied(factory)
    assert (reply.text, [call.name for call in reply.tool_calls]) == ("1 asked", ["get_rate"])


def make_nothing() -> Any:
    raise LookupError("no key for the model") if create_agent else AssertionError


def test_a_function_that_fails_to_make_an_agent_fails_the_trial_with_the_reason() -> None:
    suite = Suite("s", [Case("Oslo?", "sunny", id="c")])
    (trial,) = proctor.run(suite, agent=make_nothing).trials
    assert trial.outcome != "passed"
    assert "LookupError: no key for the model" in trial.reason


@pytest.mark.parametrize("wrap", ["with_retry", "with_config"])
def test_a_wrapped_graph_is_asked_as_the_graph_itself(wrap: str) -> None:
    replies = replied(getattr(agent(), wrap)(), "Oslo?", "Rome?")
    assert [reply.text for reply in replies] == ["1 asked", "2 asked"]


def test_a_chain_with_a_history_of_its_own_has_one_for_each_trial() -> None:
    kept: dict[str, Any] = {}
    prompt = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{input}")])
    chain = RunnableWithMessageHistory(
        prompt | Scripted(),
        lambda session_id: kept.setdefault(session_id, InMemoryChatMessageHistory()),
        input_messages_key="input",
        history_messages_key="history",
    )
    assert [reply.text for reply in replied(chain, "Oslo?", "Rome?")] == ["1 asked", "2 asked"]
    assert [reply.text for reply in replied(chain, "Oslo?")] == ["1 asked"]


class Offer(BaseModel):
    rate: float


def test_the_text_of_an_answer_with_a_schema_is_that_data() -> None:
    (reply,) = replied(agent(("Offer", {"rate": 0.05}), response_format=ToolStrategy(Offer)))
    assert (reply.text, reply.structured, reply.tool_calls) == ('{"rate": 0.05}', {"rate": 0.05}, ())


class Notes(TypedDict):
    messages: list[Any]


@pytest.mark.parametrize("said", [{"role": "assistant", "content": "five"}, ("ai", "five"), AIMessage("five")])
def test_a_graph_may_keep_its_messages_in_any_of_langchains_ways(said: Any) -> None:
    graph = StateGraph(Notes)
    graph.add_node("say", lambda state: {"messages": [*state["messages"], said]})
    graph.add_edge(START, "say").add_edge("say", END)
    assert [reply.text for reply in replied(graph)] == ["five"]


def test_what_is_no_agent_is_told_what_would_be() -> None:
    assert naming_hint(get_rate) == ": for LangChain and LangGraph, name an agent, a graph, a chain or a chat model"
    assert naming_hint(object()) == ""


def test_a_factory_is_found_from_a_reference(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "def build():\n    from langchain_core.runnables import RunnableLambda\n    return RunnableLambda(str.upper)\n"
    )
    (reply,) = replied(f"{tmp_path / 'late.py'}:build", "oslo")
    assert reply.text == "OSLO"
