"""The worker's side by itself, without a network."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from engine_helpers import case, suite

import proctor
from proctor.agents.trial_context import AgentSettings
from proctor.cases.suite import Turn
from proctor.running.cluster import agent_host
from proctor.running.cluster.agent_host import AgentHost
from proctor.running.cluster.connection import order_of
from proctor.running.messages import CallFailed, LoadedAgent, SessionAborted, TurnAnswered, TurnFailed, decode_message
from proctor.running.plan import make_plan
from proctor.running.remote_agent import HostedTrial, pack
from proctor.running.settings import ClusterOptions, RunOptions

STOPPED = threading.Event()
CLOSED: list[str] = []


class Agent:
    """Says when it is stopped; its answer to `odd` has something that is not data."""

    name = "agent"

    def stop(self) -> None:
        STOPPED.set()

    def session(self, case: Any) -> Session:
        return Session(case.id)


class Session:
    def __init__(self, case_id: str) -> None:
        self.case_id = case_id

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *error: object) -> None:
        CLOSED.append(self.case_id)

    async def send(self, turn: Any) -> proctor.Reply:
        if turn.input == "waits":
            await asyncio.sleep(3600)
        if turn.input == "huge":
            return proctor.Reply("x" * 11_000_000)
        if turn.input == "blocks":
            await asyncio.create_task(self.block())
        return proctor.Reply(turn.input, structured=threading.Lock() if turn.input == "odd" else None)

    async def block(self) -> None:
        time.sleep(1.5)


def serve(work: Callable[[AgentHost], Awaitable[Any]]) -> Any:
    """What `work` makes of a host that is ready and has the sessions 1 and 2."""
    plan = make_plan([suite([case("a")])], RunOptions(), agent=Agent())

    async def main() -> Any:
        host = AgentHost(order_of(plan, ClusterOptions(address="tcp://127.0.0.1:1")))
        info = await host.prepare(b"")
        assert info.agents == (LoadedAgent(plan.suites[0].agent_fingerprint),)
        assert (await host.start(0)).problem is None
        for key in (1, 2):
            opened = await host.open(key, 0, pack(HostedTrial(case(f"c{key}"), 1, AgentSettings())))
            assert opened.error is None
        try:
            return await work(host)
        finally:
            await host.stop()

    STOPPED.clear()
    CLOSED.clear()
    return asyncio.run(main())


async def send(host: AgentHost, key: int, text: str) -> TurnAnswered | TurnFailed:
    return await host.send(key, pack(Turn(text)))


def test_a_turn_that_is_sent_comes_back_answered() -> None:
    answer = serve(lambda host: send(host, 1, "hello"))

    assert answer.reply.text == "hello"


def test_an_answer_that_is_not_data_arrives_as_the_text_that_reports_show() -> None:
    async def exchange(host: AgentHost) -> Any:
        written = await host.call(7, "send", (1, pack(Turn("odd"))))
        return decode_message(written, TurnAnswered, limit=100_000, call=7)

    assert "lock" in serve(exchange).reply.structured


def test_an_answer_that_is_too_large_is_a_failed_turn() -> None:
    async def exchange(host: AgentHost) -> Any:
        written = await host.call(7, "send", (1, pack(Turn("huge"))))
        return decode_message(written, TurnAnswered, TurnFailed, limit=100_000, call=7)

    assert "the limit for a reply" in str(serve(exchange).error)


def test_what_a_host_cannot_do_is_a_message_too() -> None:
    async def exchange(host: AgentHost) -> Any:
        return decode_message(await host.call(7, "send", (99, pack(Turn("x")))), CallFailed, limit=100_000, call=7)

    assert "99" in serve(exchange).problem


def test_a_session_that_is_aborted_is_closed() -> None:
    async def abort(host: AgentHost) -> tuple[SessionAborted, list[str]]:
        turn = asyncio.ensure_future(send(host, 1, "waits"))
        await asyncio.sleep(0.1)
        reached = await host.abort(1)
        await turn
        return reached, list(CLOSED)

    assert serve(abort) == (SessionAborted(is_ended=True), ["c1"])


def test_the_time_that_a_session_takes_from_others_is_known_and_who_it_is() -> None:
    async def block(host: AgentHost) -> Any:
        turn = asyncio.ensure_future(send(host, 1, "blocks"))
        await asyncio.sleep(0.8)
        during = await host.status()
        await turn
        await asyncio.sleep(0.2)
        after = await host.status()
        return during, after, {item.session: item.seconds for item in after.lost}

    during, after, lost = serve(block)
    assert during.blocked_by == 1
    assert during.blocked_seconds > 0
    assert after.blocked_seconds == 0
    assert lost[2] > 0.5 > lost[1]


def test_the_agents_of_a_run_that_has_ended_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_host, "ABANDONED_SECONDS", 0.5)

    async def begin_and_go(host: AgentHost) -> bool:
        turn = asyncio.ensure_future(send(host, 1, "waits"))
        assert not turn.done()
        return await asyncio.to_thread(STOPPED.wait, 30)

    assert serve(begin_and_go)


def test_an_agent_that_cannot_be_sent_says_how_to_name_it() -> None:
    lock = threading.Lock()
    plan = make_plan([suite([case("a")])], RunOptions(), agent=lambda question: lock)

    with pytest.raises(proctor.UsageError, match=r"pass it as file\.py:name"):
        order_of(plan, ClusterOptions(workers=1))
