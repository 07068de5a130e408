from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from proctor.agents.agent import Agent
from proctor.agents.function_agent import CallableAgent, read_binding
from proctor.agents.reply import Reply
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.cases.suite import Case, Turn


def ask(function: Callable[..., Any], *inputs: Any, case: Case | None = None) -> list[Reply]:
    conversation = case or Case(id="c", turns=tuple(Turn(value) for value in inputs))

    async def hold() -> list[Reply]:
        async with CallableAgent(function).session(conversation) as session:
            return [await session.send(turn) for turn in conversation.turns]

    return asyncio.run(hold())


def test_a_function_gets_the_input_and_its_text_is_the_answer() -> None:
    assert ask(lambda question: question.upper(), "hi")[0].text == "HI"


def test_async_functions_methods_partials_and_callable_objects_are_agents() -> None:
    async def shout(question: str) -> str:
        await asyncio.sleep(0)
        return question.upper()

    class Bot:
        def method(self, question: str) -> str:
            return question + "!"

        async def __call__(self, question: str) -> str:
            return question + "?"

    def with_tone(tone: str, question: str) -> str:
        return tone + question

    assert ask(shout, "a")[0].text == "A"
    assert ask(Bot().method, "a")[0].text == "a!"
    assert ask(Bot(), "a")[0].text == "a?"
    assert ask(functools.partial(with_tone, "so "), "a")[0].text == "so a"
    assert ask(functools.partial(shout), "a")[0].text == "A"
    assert ask(str.upper, "a")[0].text == "A"
    assert ask(lambda question: shout(question), "a")[0].text == "A"


def test_a_wrapper_that_runs_its_own_event_loop_works() -> None:
    async def inner(question: str) -> str:
        return question + "!"

    @functools.wraps(inner)
    def wrapper(question: str) -> str:
        return asyncio.run(inner(question))

    assert ask(wrapper, "a")[0].text == "a!"


def test_text_that_comes_in_chunks_is_joined() -> None:
    def stream(question: str) -> Iterator[str]:
        yield from question

    async def astream(question: str) -> AsyncIterator[str]:
        for character in question:
            yield character

    assert ask(stream, "abc")[0].text == "abc"
    assert ask(astream, "abc")[0].text == "abc"
    assert ask(lambda question: astream(question), "abc")[0].text == "abc"


def test_a_stream_of_something_else_cannot_be_read() -> None:
    with pytest.raises(UnreadableReply, match="int"):
        ask(lambda question: (number for number in [1]), "x")


def test_sync_code_runs_in_a_thread_with_the_context_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    here = threading.get_ident()

    async def hold() -> Reply:
        variable.set("seen")
        async with CallableAgent(lambda q: [variable.get(), threading.get_ident() == here]).session(
            Case(id="c", turns=(Turn("x"),))
        ) as session:
            return await session.send(Turn("x"))

    assert asyncio.run(hold()).structured == ["seen", False]


def test_a_parameter_named_or_annotated_turn_or_case_gets_the_whole_object() -> None:
    def by_name(turn, case):  # type: ignore[no-untyped-def]
        return [type(turn).__name__, case.id]

    def by_text_annotation(asked: Turn, about: Case | None = None) -> Any:
        return [asked.input, about is not None and about.id]

    def by_class(asked, about):  # type: ignore[no-untyped-def]
        return [about.input, asked.id]

    by_class.__annotations__ = {"asked": Case, "about": Turn | None}
    assert ask(by_name, "hi")[0].structured == ["Turn", "c"]
    assert ask(by_text_annotation, "hi")[0].structured == ["hi", "c"]
    assert ask(by_class, "hi")[0].structured == ["hi", "c"]


def test_a_parameter_named_turn_that_is_annotated_as_text_gets_the_input() -> None:
    def agent(turn: str) -> str:
        return turn

    assert ask(agent, "hi")[0].text == "hi"


def test_a_class_of_another_library_called_case_is_not_ours() -> None:
    namespace: dict[str, Any] = {}
    exec("class Case: pass\ndef agent(question: 'Case'): return question", namespace)
    assert ask(namespace["agent"], "hi")[0].text == "hi"


def test_history_grows_with_every_turn_and_is_the_agents_to_keep() -> None:
    seen = []

    def agent(message: str, history: list[Any]) -> str:
        seen.append(history)
        return message.upper()

    ask(agent, "a", "b", "c")
    assert seen == [[], [("a", "A")], [("a", "A"), ("b", "B")]]


def test_parameters_are_matched_by_meaning_whatever_their_order() -> None:
    def agent(history: list[Any], message: str, *, session_id: str, state: dict[str, Any]) -> Any:
        return [len(history), message, bool(session_id), state]

    assert ask(agent, "a", "b")[1].structured == [1, "b", True, {}]


def test_state_starts_as_a_copy_of_the_cases_and_is_reported_after_each_turn() -> None:
    case = Case(id="c", turns=(Turn(1), Turn(2)), state={"seen": []})

    def agent(number: int, state: dict[str, Any]) -> str:
        state["seen"].append(number)
        return "ok"

    replies = ask(agent, case=case)
    assert [reply.state for reply in replies] == [{"seen": [1]}, {"seen": [1, 2]}]
    assert case.state == {"seen": []}
    assert ask(agent, case=case)[0].state == {"seen": [1]}


def test_an_agent_that_reports_its_own_state_is_believed() -> None:
    def agent(message: str, state: dict[str, Any]) -> Any:
        return {"text": str(state.get("n", 0)), "state": {"n": state.get("n", 0) + 1}}

    assert [(reply.text, reply.state) for reply in ask(agent, "a", "b")] == [("0", {"n": 1}), ("1", {"n": 2})]


def test_a_function_that_takes_only_what_the_session_knows_still_gets_the_input_first() -> None:
    assert ask(lambda state: state, "hi")[0].text == "hi"


def test_an_object_is_spread_over_several_parameters() -> None:
    def loan(amount: float, years: int = 1, *, rate: float) -> float:
        return amount * years * rate

    assert ask(loan, {"amount": 100, "rate": 0.5})[0].structured == 50.0
    assert ask(lambda **given: given, {"a": 1})[0].structured == {"a": 1}
    assert (
        ask(lambda city, state: f"{city}, {state}", {"city": "Columbus", "state": "Ohio"})[0].text == "Columbus, Ohio"
    )


def test_an_object_goes_whole_into_a_single_parameter() -> None:
    assert ask(lambda question, tone="dry": question, {"topic": "x"})[0].structured == {"topic": "x"}


def test_an_input_that_does_not_fit_the_parameters_is_found_before_anything_runs() -> None:
    agent = CallableAgent(lambda amount, years: "never")
    for value, reason in [("text", "object"), ({"amount": 1}, "lacks years"), ({"amount": 1, "years": 1, "x": 2}, "x")]:
        problem = agent.check(Case(id="c", turns=(Turn(value),)))
        assert problem is not None
        assert reason in problem
        with pytest.raises(AgentFailed, match="cannot be called"):
            ask(agent.function, value)
    assert agent.check(Case(id="c", turns=(Turn({"amount": 1, "years": 2}),))) is None


def test_what_an_agent_does_to_its_input_stays_its_own_affair() -> None:
    case = Case(id="c", turns=(Turn({"items": [1]}),))
    ask(lambda order: order["items"].clear(), case=case)
    assert case.turns[0].input == {"items": [1]}


def test_the_agents_own_error_comes_through_as_it_is() -> None:
    def broken(question: str) -> str:
        raise KeyError("no such thing")

    with pytest.raises(KeyError, match="no such thing"):
        ask(broken, "x")


def test_name_and_fingerprint_say_which_code_it_is() -> None:
    def one(question: str) -> str:
        return question

    @dataclass
    class Bot:
        model: str

        def __call__(self, question: str) -> str:
            return self.model

    assert CallableAgent(one).name == "one"
    assert CallableAgent(Bot("a")).name == "Bot"
    assert CallableAgent(functools.partial(one)).name == "one"
    assert CallableAgent(Bot("a")).fingerprint == CallableAgent(Bot("a")).fingerprint
    assert CallableAgent(Bot("a")).fingerprint != CallableAgent(Bot("b")).fingerprint
    assert (
        CallableAgent(functools.partial(one, x=1)).fingerprint != CallableAgent(functools.partial(one, x=2)).fingerprint
    )
    assert isinstance(CallableAgent(one), Agent)


def test_sessions_at_the_same_time_do_not_share_anything() -> None:
    agent = CallableAgent(_remember)

    async def hold(name: str) -> Any:
        async with agent.session(Case(id=name, turns=(Turn(name), Turn(name)))) as session:
            await session.send(Turn(name))
            return (await session.send(Turn(name))).structured

    async def both() -> list[Any]:
        return await asyncio.gather(hold("a"), hold("b"))

    assert asyncio.run(both()) == [[["a"], 1], [["b"], 1]]


async def _remember(name: str, state: dict[str, Any], history: list[Any]) -> Any:
    await asyncio.sleep(0)
    state["name"] = name
    return [[state["name"]], len(history)]


def test_an_object_that_names_the_one_parameter_means_the_value_under_it() -> None:
    def by_name(question: str) -> str:
        return f"<{question}>"

    def whole(question: dict[str, str]) -> str:
        return question["question"]

    assert ask(by_name, {"question": "hi"})[0].text == "<hi>"
    assert ask(by_name, {"other": "hi"})[0].text == "<{'other': 'hi'}>"
    assert ask(whole, {"question": "hi"})[0].text == "hi"


class Prediction:
    """A class whose name contains the name of another type."""


def test_a_class_whose_name_contains_dict_is_not_taken_for_an_object() -> None:
    def named(prediction: Prediction, limit: int) -> str:
        return f"{prediction} {limit}"

    def mapping(payload: dict[str, Any], limit: int = 1) -> str:
        return f"{sorted(payload)} {limit}"

    assert not read_binding(named).takes_object
    assert read_binding(mapping).takes_object


def test_a_wrong_input_is_answered_with_the_parameters_in_their_order() -> None:
    def between(start: str, end: str, city: str = "Oslo") -> str:
        return start + end + city

    agent = CallableAgent(between)
    text = agent.check(Case(id="a", turns=(Turn("When?"),)))
    assert text == (
        'between cannot be called with the input "When?": its parameters are start, end, '
        "so the input must be an object with these keys"
    )
    assert str(agent.check(Case(id="a", turns=(Turn({"city": "Rome"}),)))).endswith(": the input lacks start, end")
    unknown = {"zip": 1, "start": "a", "end": "b", "area": 2}
    assert str(agent.check(Case(id="a", turns=(Turn(unknown),)))).endswith(": it has no parameter zip, area")


def test_messages_are_the_conversation_as_chat_messages() -> None:
    seen: list[Any] = []

    def agent(messages: list[dict[str, str]]) -> str:
        seen.append(list(messages))
        return f"answer {len(messages)}"

    ask(agent, "Hi", "And now?")
    assert seen == [
        [{"role": "user", "content": "Hi"}],
        [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "answer 1"},
            {"role": "user", "content": "And now?"},
        ],
    ]


@pytest.mark.parametrize(
    "value", [[{"role": "user", "content": "Hi"}], {"messages": [{"role": "user", "content": "Hi"}]}]
)
def test_an_input_that_is_messages_already_is_passed_as_it_is(value: Any) -> None:
    seen: list[Any] = []
    ask(lambda messages: seen.append(messages) or "fine", value)
    assert seen == [[{"role": "user", "content": "Hi"}]]
