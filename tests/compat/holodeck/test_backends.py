from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import yaml
from holodeck_tokens import tokens
from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says

import proctor
from proctor.cases.formats.loading import load
from proctor.compat.holodeck.backends import (
    AgentBackend,
    AgentSession,
    BackendAgent,
    BackendInitError,
    BackendSelector,
    BackendSessionError,
    ExecutionResult,
    ProctorBackend,
    TokenUsage,
    to_reply,
)

TOOLS = "def rate(city: str) -> int:\n    '''The rate in a city.'''\n    return len(city)\n"


def lookup(talk: Conversation) -> TextReply | ToolCallReply:
    return says(f"{talk.turn}: {talk.results[-1]}") if talk.results else calls("rate", city=talk.user)


def agent(folder: Path, url: str, tests: list[Any] | None = None, **more: Any) -> Path:
    (folder / "tools.py").write_text(TOOLS)
    data = {
        "name": "loans",
        "model": {"provider": "ollama", "name": "m", "endpoint": url},
        "instructions": {"inline": "You lend money."},
        "tools": [{"name": "rate", "type": "function", "file": "tools.py", "function": "rate"}],
        "test_cases": tests or [{"name": "oslo", "input": "Oslo", "expected_tools": ["rate"]}],
        **more,
    }
    path = folder / "agent.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def test_a_backend_is_chosen_asked_and_torn_down(tmp_path: Path) -> None:
    async def use(path: Path) -> tuple[ExecutionResult, list[ExecutionResult]]:
        backend = await BackendSelector.select(str(path))
        assert isinstance(backend, AgentBackend)
        once = await backend.invoke_once("Oslo")
        session = await backend.create_session(eager_connect=False)
        assert isinstance(session, AgentSession)
        talk = [await session.send("Rome"), await session.send("Lisbon")]
        await session.close()
        await backend.teardown()
        return once, talk

    with model_server(lookup) as server:
        once, talk = asyncio.run(use(agent(tmp_path, server.url)))
    assert once.response == "1: 4"
    assert once.tool_calls == [{"name": "rate", "arguments": {"city": "Oslo"}, "call_id": "call_0"}]
    assert once.tool_results == [{"name": "rate", "result": 4, "call_id": "call_0", "is_error": False}]
    assert once.token_usage == tokens(22, 14, 36)
    assert [(said.response, said.num_turns) for said in talk] == [("1: 4", 1), ("2: 6", 2)]


def test_what_is_wrong_with_the_file_is_reported_when_the_backend_is_chosen(tmp_path: Path) -> None:
    path = agent(tmp_path, "http://127.0.0.1:1/v1", instructions={})
    with pytest.raises(BackendInitError, match="instructions needs either"):
        asyncio.run(BackendSelector.select(path))


@pytest.mark.parametrize("given", [3, None, "no.yaml"])
def test_a_backend_is_only_chosen_for_an_agent(given: Any) -> None:
    with pytest.raises(BackendInitError):
        asyncio.run(BackendSelector.select(given))


def test_a_file_without_a_model_has_no_backend(tmp_path: Path) -> None:
    path = agent(tmp_path, "", model=None)
    with pytest.raises(BackendInitError, match="add 'model'"):
        asyncio.run(BackendSelector.select(path))


def test_functions_may_be_replaced_by_others(tmp_path: Path) -> None:
    async def use(path: Path) -> ExecutionResult:
        backend = await BackendSelector.select(path, {"rate": lambda city: 99})
        try:
            return await backend.invoke_once("Oslo")
        finally:
            await backend.teardown()

    with model_server(lookup) as server:
        path = agent(tmp_path, server.url)
        assert asyncio.run(use(path)).response == "1: 99"
    with pytest.raises(BackendInitError, match="loans has no function called other"):
        asyncio.run(BackendSelector.select(path, {"other": len}))


def test_an_agent_that_breaks_is_an_error_of_one_call_and_ends_a_session() -> None:
    def broken(question: str) -> str:
        raise ValueError("out of order")

    async def use() -> ExecutionResult:
        from proctor.agents.resolve import resolve_agent

        backend = ProctorBackend(resolve_agent(broken))
        session = await backend.create_session()
        with pytest.raises(BackendSessionError, match="out of order"):
            await session.send("q")
        await session.close()
        return await backend.invoke_once("q", context=[{"role": "user", "content": "before"}])

    result = asyncio.run(use())
    assert result.is_error
    assert "out of order" in (result.error_reason or "")


class Injected:
    """A backend of somebody's own, which says whatever it was asked."""

    def __init__(self, result: ExecutionResult | None = None) -> None:
        self.result = result
        self.log: list[str] = []

    async def initialize(self) -> None:
        self.log.append("initialize")

    async def invoke_once(self, message: str, context: Any = None) -> ExecutionResult:
        return self.result or ExecutionResult(message)

    async def create_session(self, *, eager_connect: bool = True) -> Injected:
        self.log.append("session")
        return self

    async def prepare(self) -> None: ...

    async def send(self, message: str) -> ExecutionResult:
        return self.result or ExecutionResult(f"in a session: {message}")

    async def send_streaming(self, message: str) -> AsyncGenerator[str, None]:
        yield message

    async def close(self) -> None:
        self.log.append("close")

    async def teardown(self) -> None:
        self.log.append("teardown")


def test_an_injected_backend_always_wins(tmp_path: Path) -> None:
    turns = [{"input": "a", "expected_tools": ["rate"]}, {"input": "b", "expected_tools": ["rate"]}]
    tests = [{"name": "one", "input": "Oslo", "expected_tools": ["rate"]}, {"name": "two", "turns": turns}]
    backend = Injected()
    [suite] = load([agent(tmp_path, "http://127.0.0.1:1/v1", tests)])
    one, two = proctor.run(suite, agent=BackendAgent(backend, "mine")).trials
    assert one.replies[0].text == "Oslo"
    assert [reply.text for reply in two.replies] == ["in a session: a", "in a session: b"]
    assert backend.log == ["initialize", "session", "close", "teardown"]


def test_results_are_paired_with_calls_by_their_id() -> None:
    made = [{"name": "a", "arguments": '{"x": 1}', "call_id": 1}, {"name": "a", "args": {"x": 2}, "call_id": 2}]
    told = [{"name": "a", "result": "second", "call_id": 2}, {"name": "a", "result": "no", "call_id": 3}]
    first, second = to_reply(ExecutionResult("ok", made, told)).tool_calls
    assert (dict(first.arguments), first.result) == ({"x": 1}, None)
    assert (dict(second.arguments), second.result) == ({"x": 2}, "second")


def test_results_without_ids_are_paired_by_name_and_order() -> None:
    made = [{"name": "a"}, {"name": "b"}, {"name": "a"}]
    told = [{"name": "a", "result": 1}, {"name": "a", "result": "broke", "is_error": True}, {"name": "b", "result": 2}]
    calls_made = to_reply(ExecutionResult("ok", made, told)).tool_calls
    assert [(call.name, call.result, call.error) for call in calls_made] == [
        ("a", 1, None),
        ("b", 2, None),
        ("a", None, "broke"),
    ]


def test_tokens_add_up() -> None:
    assert tokens(1, 2, 3) + TokenUsage(
        prompt_tokens=1, completion_tokens=1, total_tokens=2, cache_creation_tokens=4, cache_read_tokens=5
    ) == tokens(2, 3, 5, 4, 5)
