from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proctor.agents.agent import Agent
from proctor.agents.control_agents import NopAgent, OracleAgent, example_of
from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.errors import UnreadableReply
from proctor.cases.matchers import Approx, Equals, Fuzzy, Ignore, OneOf, Predicate, Regex, Subset
from proctor.cases.suite import Case, Expected, ExpectedCall, Keywords, Turn


def ask(agent: Any, case: Case) -> list[Reply]:
    async def hold() -> list[Reply]:
        async with agent.session(case) as session:
            return [await session.send(turn) for turn in case.turns]

    return asyncio.run(hold())


def oracle(expected: Expected, **turn: Any) -> Reply:
    return ask(OracleAgent(), Case(id="c", turns=(Turn("q", expected, **turn),)))[0]


def test_the_oracle_answers_with_the_reference_answer() -> None:
    assert oracle(Expected(output="Paris")).text == "Paris"
    assert oracle(Expected(output="Paris")).structured is None
    assert oracle(Expected(output={"a": 1})).structured == {"a": 1}
    assert oracle(Expected(output={"a": 1})).text == '{"a": 1}'
    assert oracle(Expected(output=None)).text == ""
    assert oracle(Expected()).text == ""


def test_the_oracle_mentions_the_keywords_that_the_reference_answer_lacks() -> None:
    keywords = Keywords(any=("a", "b"), all=("c", "d"))
    assert oracle(Expected(contains=keywords)).text == "c d a b"
    assert oracle(Expected(output="b or c", contains=keywords)).text == "b or c d"
    assert oracle(Expected(output="Paris", contains=Keywords(all=("paris",)))).text == "Paris"
    assert oracle(Expected(output="11,498", contains=Keywords(any=("1,498",)))).text == "11,498 1,498"
    assert oracle(Expected(output="$1,498.54", contains=Keywords(all=("1,498", "1498")))).text == "$1,498.54"


def test_the_oracle_makes_the_expected_calls_as_often_as_expected() -> None:
    calls = (
        ExpectedCall("pay", {"amount": Approx(3.0), "to": Equals("AA-0")}, count=2, result={"ok": True}),
        ExpectedCall("log", None),
        ExpectedCall("end", {}),
    )
    reply = oracle(Expected(tools=calls))
    assert [call.name for call in reply.tool_calls] == ["pay", "pay", "log", "end"]
    assert reply.tool_calls[0] == ToolCall("pay", {"amount": 3.0, "to": "AA-0"}, result={"ok": True})
    assert oracle(Expected(tools=())).tool_calls == ()


def test_the_oracle_reaches_the_final_state_on_the_last_turn() -> None:
    case = Case(
        id="c",
        turns=(Turn("a"), Turn("b")),
        state={"kept": 1, "deep": {"x": 1, "y": 2}},
        final_state={"deep": {"y": 3}, "code": {"$one_of": ["0", "1"]}},
    )
    first, last = ask(OracleAgent(), case)
    assert first.state == {"kept": 1, "deep": {"x": 1, "y": 2}}
    assert last.state == {"kept": 1, "deep": {"x": 1, "y": 3}, "code": "0"}
    assert case.state == {"kept": 1, "deep": {"x": 1, "y": 2}}


def test_the_oracle_costs_nothing_and_rests_on_the_given_passages() -> None:
    reply = oracle(Expected(output="x", context=("fact",)))
    assert reply.usage == Usage(0, 0, 0.0, 0)
    assert reply.duration_ms is not None
    assert 0 <= reply.duration_ms < 1
    assert reply.retrieval_context == ("fact",)
    assert oracle(Expected(context=("fact",)), retrieval_context=("passage",)).retrieval_context == ("passage",)


@pytest.mark.parametrize(
    "matcher",
    [
        Predicate("checks.py:ok"),
        OneOf(({"$predicate": "no.py:no"}, 1)),
        Regex("[A-Z]+"),
        OneOf(()),
    ],
)
def test_the_oracle_reports_matchers_without_an_example(matcher: Any) -> None:
    with pytest.raises(UnreadableReply, match="the oracle cannot make up"):
        oracle(Expected(tools=(ExpectedCall("t", {"a": matcher}),)))


@pytest.mark.parametrize(
    "matcher",
    [
        Equals({"$regex": "x"}),
        Fuzzy("1,000 %"),
        Approx(2.5, relative=0.1),
        Ignore(),
        OneOf(({"$regex": "x+"}, 3)),
        Subset({"a": [{"$approx": 1}, {"b": {"$one_of": ["x"]}}], "c": {"$ignore": True}}),
        Subset([1, {"$one_of": ["a"]}]),
    ],
)
def test_an_example_fits_its_matcher(matcher: Any) -> None:
    assert matcher.mismatch(example_of(matcher)) is None


def test_the_oracle_asks_for_the_text_itself_where_a_pattern_is_expected() -> None:
    with pytest.raises(UnreadableReply) as caught:
        oracle(Expected(tools=(ExpectedCall("pay", {"order": Regex(r"A-\d+")}),)))
    assert r"/A-\d+/" in str(caught.value)
    assert "expected.output" in str(caught.value)


def test_the_nop_agent_says_and_does_nothing() -> None:
    assert ask(NopAgent(), Case(id="c", turns=(Turn("a", Expected(output="x")), Turn("b")))) == [Reply(), Reply()]


def test_both_controls_are_agents() -> None:
    for agent in (OracleAgent(), NopAgent()):
        assert isinstance(agent, Agent)
        assert agent.fingerprint
