"""`proctor.ask`: one question to an agent, with what it did on the way."""

from __future__ import annotations

import asyncio
import time

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
