"""Workflows of one's own, factories and doubles further inside, with the real llama-index-core: `make frameworks`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.agents.resolving import resolve_agent
from proctor.base.errors import InvalidSuite
from proctor.cases.suite import Case, Double, EvaluatorSpec, Suite, Turn

pytest.importorskip("llama_index.core", reason="llama-index-core has an environment of its own: make frameworks")

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import FunctionTool, ToolSelection
from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step

pytestmark = pytest.mark.filterwarnings("ignore")

NUMBERS = itertools.count(1)


class Scripted(FunctionCallingLLM):
    """Calls one tool, then tells its result."""

    tool: str = "get_rate"
    arguments: dict[str, Any] = {"city": "Oslo"}  # noqa: RUF012

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted", is_function_calling_model=True)

    @llm_chat_callback()
    async def astream_chat(self, messages: Any, **_: Any) -> Any:
        async def pieces() -> Any:
            done = messages[-1].role == MessageRole.TOOL
            message = ChatMessage(content=messages[-1].content if done else "", role="assistant")
            message.additional_kwargs = {"asking": not done}
            yield ChatResponse(message=message, raw={"usage": {"prompt_tokens": 11, "completion_tokens": 7}})

        return pieces()

    def get_tool_calls_from_response(self, response: ChatResponse, **_: Any) -> list[ToolSelection]:
        call = ToolSelection(tool_id=f"c{next(NUMBERS)}", tool_name=self.tool, tool_kwargs=self.arguments)
        return [call] if response.message.additional_kwargs.get("asking") else []

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        return {"messages": chat_history or []}

    def chat(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    achat = complete = stream_chat = stream_complete = acomplete = astream_complete = chat


def get_rate(city: str) -> str:
    "The rate in a city."
    return f"rate of {city}"


def colleague() -> FunctionAgent:
    return FunctionAgent(name="rates", description="knows rates", llm=Scripted(), tools=[get_rate])


async def ask_colleague(question: str) -> str:
    "Asks another agent."
    return str(await colleague().run(question))


def make_agent() -> FunctionAgent:
    llm = Scripted(tool="ask_colleague", arguments={"question": "rate?"})
    return FunctionAgent(name="desk", description="asks", llm=llm, tools=[ask_colleague])


def ran(target: Any, *cases: Case) -> list[proctor.TrialResult]:
    check = (EvaluatorSpec("ToolCount", {"at_most": 9}),)
    return list(proctor.run(Suite("llama-index", cases, evaluators=check), agent=target).trials)


def replied(target: Any, *questions: Any, **more: Any) -> list[proctor.Reply]:
    (trial,) = ran(target, Case("talk", tuple(map(Turn, questions or ("rate?",))), **more))
    assert trial.outcome == "passed", trial.reason
    return list(trial.replies)


def test_a_function_that_makes_an_agent_stands_for_it() -> None:
    (reply,) = replied(make_agent)
    assert (reply.text, [call.name for call in reply.tool_calls]) == ("rate of Oslo", ["ask_colleague", "get_rate"])


def test_doubles_reach_the_tools_of_an_agent_that_a_tool_runs() -> None:
    (reply,) = replied(make_agent(), doubles={"get_rate": (Double(result="doubled"),)})
    assert (reply.text, reply.tool_calls[1].result) == ("doubled", "doubled")
    assert replied(make_agent())[0].text == "rate of Oslo"


class Untyped(Workflow):
    """Reads what it likes from the start event, and uses a tool by itself."""

    @step
    async def answer(self, ev: StartEvent) -> StopEvent:
        rate = FunctionTool.from_defaults(get_rate).call(city=ev.query)
        return StopEvent(result=f"The {rate.raw_output}")


class Question(StartEvent):
    city: str
    politely: bool = False


class Verdict(StopEvent):
    answer: str
    visits: int


class Typed(Workflow):
    """Has events of its own, asks an agent, and remembers in its context."""

    @step
    async def reply(self, ctx: Context, ev: Question) -> Verdict:
        visits = await ctx.store.get("visits", default=0) + 1
        await ctx.store.set("visits", visits)
        said = await colleague().run(ev.city)
        return Verdict(answer=f"{ev.city}: {said}{', please' * ev.politely}", visits=visits)


@pytest.mark.parametrize("made", [True, False], ids=["an object", "its class"])
def test_a_workflow_of_ones_own_is_asked_and_its_tools_are_seen(made: bool) -> None:
    (reply,) = replied(Untyped() if made else Untyped, "Oslo")
    (call,) = reply.tool_calls
    assert reply.text == "The rate of Oslo"
    assert (call.name, dict(call.arguments), call.result) == ("get_rate", {"city": "Oslo"}, "rate of Oslo")
    assert call.duration_ms is not None


def test_a_workflow_with_events_of_its_own_gets_the_question_where_it_fits_and_agents_inside_are_seen() -> None:
    first, second = replied(Typed(), "Oslo", {"city": "Rome", "politely": True})
    assert first.text == "Oslo: rate of Oslo"
    assert second.text == "Rome: rate of Oslo, please"
    assert second.state == {"visits": 2}
    assert second.usage == proctor.Usage(22, 14, model_calls=2)
    assert [call.name for call in second.tool_calls] == ["get_rate"]


def test_many_at_once_have_contexts_of_their_own_and_the_state_of_their_case() -> None:
    cases = [Case(f"c{n}", (Turn("Oslo"),), state={"visits": n}) for n in range(20)]
    states = {trial.case.id: trial.replies[0].state for trial in ran(Typed(), *cases)}
    assert states == {f"c{n}": {"visits": n + 1} for n in range(20)}


def test_an_input_that_a_workflow_has_no_place_for_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidSuite, match="fields of Question: city, politely"):
        ran(Typed(), Case("wrong", (Turn({"town": "Oslo", "land": "Norway"}),)))


def test_the_fingerprint_changes_with_the_code_of_a_tool(tmp_path: Path) -> None:
    found = []
    for folder, said in (("one", "low"), ("two", "low"), ("three", "high")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rates_app.py").write_text(
            "from llama_index.core.agent.workflow import FunctionAgent\nfrom llama_index.core.llms import MockLLM\n"
            f"def rate(city: str):\n    'Rate.'\n    return {said!r}\n"
            "agent = FunctionAgent(name='rates', tools=[rate], llm=MockLLM())\n"
        )
        found.append(resolve_agent(f"{tmp_path / folder / 'rates_app.py'}:agent").fingerprint)
    assert found[0] == found[1] != found[2]
