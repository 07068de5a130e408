"""`proctor.ask` and `proctor.expect`: one question to an agent, and a check of its reply."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import proctor


@proctor.tool
def status(order: str) -> str:
    return "shipped"


def agent(question: str, state: dict[str, str]) -> str:
    return f"{state.get('name', 'You')}: it is {status('A-17')}."


def test_a_reply_has_the_text_the_calls_and_the_state() -> None:
    reply = proctor.ask(agent, "Where is A-17?", state={"name": "Ann"})
    assert reply.text == "Ann: it is shipped."
    assert [(call.name, call.args, call.result) for call in reply.tool_calls] == [
        ("status", {"order": "A-17"}, "shipped")
    ]


def test_it_can_be_awaited() -> None:
    async def main() -> str:
        inside = proctor.ask(lambda question: "sync", "Hi").text
        return inside + (await proctor.ask_async(lambda question: " and async", "Hi")).text

    assert asyncio.run(main()) == "sync and async"


def test_an_agent_that_raises_or_hangs_is_an_exception() -> None:
    with pytest.raises(proctor.AgentFailed, match="no key"):
        proctor.ask(lambda question: {}["no key"], "Hi")
    with pytest.raises(proctor.AgentFailed, match=r"no answer within 0.05 s"):
        proctor.ask(lambda question: time.sleep(5), "Hi", timeout=0.05)


def test_what_is_no_agent_is_refused() -> None:
    with pytest.raises(proctor.UsageError):
        proctor.ask(3, "Hi")


REPLY = proctor.ask(agent, "Where is A-17?")


def test_what_is_expected_of_a_reply_is_said_in_the_words_of_a_case() -> None:
    proctor.expect(REPLY, "You: it is shipped.")
    proctor.expect(REPLY, contains=["shipped"], tools=[{"name": "status", "args": {"order": "A-17"}}])
    proctor.expect(REPLY, {"contains": {"all": ["You", "shipped"]}}, evaluators=[lambda output: len(output) < 50])
    proctor.expect("It is shipped.", contains="shipped")


@pytest.mark.parametrize(
    ("checks", "parts"),
    [
        ({"contains": ["sorry"]}, ("sorry", "You: it is shipped.")),
        ({"tools": []}, ("expected no tool calls", 'status(order="A-17")')),
        ({"output": "It is lost."}, ("It is lost.",)),
        ({"evaluators": [lambda output: "please" in output]}, ('"please" in output',)),
        ({"evaluators": [lambda output: None]}, ("nothing was compared",)),
    ],
)
def test_what_differs_is_told(checks: dict[str, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError) as error:
        proctor.expect(REPLY, **checks)
    assert all(part in str(error.value) for part in parts), error.value


def test_a_check_that_checks_nothing_is_a_mistake() -> None:
    with pytest.raises(TypeError, match=r"needs something to check: expect\(reply, contains="):
        proctor.expect(REPLY)
    with pytest.raises(TypeError, match="not both"):
        proctor.expect(REPLY, "x", contains="x")
    with pytest.raises(TypeError, match="has no argument 'contans'; did you mean 'contains'"):
        proctor.expect(REPLY, contans="x")  # type: ignore[call-arg]
