"""The worker's side by itself, without a network."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents_under_test import case, suite

import proctor
from proctor.results.run import Outcome
from proctor.running.cluster import trial_server
from proctor.running.cluster.messages import TrialOrder, order_of, unpacked
from proctor.running.cluster.trial_server import TrialServer
from proctor.running.engine.ask import Answer
from proctor.running.engine.plan import make_plan
from proctor.running.options import ClusterOptions, RunOptions

STOPPED = threading.Event()


class Agent:
    """Says when it is stopped; its answer to `odd` cannot travel."""

    name = "agent"

    def stop(self) -> None:
        STOPPED.set()

    def session(self, case: Any) -> Any:
        return self

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *error: object) -> None:
        return

    async def send(self, turn: Any) -> proctor.Reply:
        if turn.input == "waits":
            await asyncio.sleep(3600)
        return proctor.Reply(turn.input, structured=threading.Lock() if turn.input == "odd" else None)


def serve(work: Callable[[TrialServer, Callable[[str], TrialOrder]], Awaitable[Any]]) -> Any:
    """What `work` makes of a server that is ready, and of a function that makes orders."""
    plan = make_plan([suite([case("a")])], RunOptions(), agent=Agent())
    limits = plan.suites[0].limits

    def order(text: str) -> TrialOrder:
        asked = case(text)
        return TrialOrder(hash(text), 0, asked, 1, limits, 0.0, goes_on=False, scored=False, turns=asked.turns)

    async def main() -> Any:
        server = TrialServer(order_of(plan, ClusterOptions(address="tcp://127.0.0.1:1")))
        found = await server.prepare(b"")
        assert found["agents"] == [(plan.suites[0].agent_fingerprint, "")]
        try:
            return await work(server, order)
        finally:
            await server.finish()

    STOPPED.clear()
    return asyncio.run(main())


async def answer_of(server: TrialServer, order: TrialOrder) -> Answer:
    await server.exchange(pickle.dumps([order]), 0.0)
    found, _ = await server.exchange(b"", 30.0)
    ((key, data),) = found
    assert key == order.key
    answer: Answer = unpacked(data)
    return answer


def test_a_trial_that_is_sent_comes_back_answered() -> None:
    answer = serve(lambda server, order: answer_of(server, order("hello")))

    assert answer.outcome is None
    assert [reply.text for reply in answer.replies] == ["hello"]


def test_an_answer_that_cannot_travel_is_an_error_and_says_so() -> None:
    answer = serve(lambda server, order: answer_of(server, order("odd")))

    assert answer.outcome is Outcome.ERROR
    assert "cannot leave the process of its trial" in answer.reason


def test_the_agents_of_a_run_that_is_gone_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_server, "FORGOTTEN_SECONDS", 0.2)
    monkeypatch.setattr(trial_server, "BEAT_SECONDS", 0.05)

    async def begin_and_go(server: TrialServer, order: Callable[[str], TrialOrder]) -> None:
        await answer_of(server, order("hello"))
        await server.exchange(pickle.dumps([order("waits")]), 0.0)
        assert await asyncio.to_thread(STOPPED.wait, 30)
        with pytest.raises(RuntimeError, match="ended this run already"):
            await server.exchange(b"", 0.1)

    serve(begin_and_go)


def test_an_agent_that_cannot_be_sent_says_how_to_name_it() -> None:
    held = threading.Lock()
    plan = make_plan([suite([case("a")])], RunOptions(), agent=lambda question: held)

    with pytest.raises(proctor.UsageError, match=r"name it as file\.py:name"):
        order_of(plan, ClusterOptions(workers=1))
