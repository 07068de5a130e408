from __future__ import annotations

import asyncio
from typing import Any

import pytest
from engine_helpers import case, echo, run, suite, trials_of
from virtual_time import run_virtually

from proctor.agents.agent import BaseAgent
from proctor.agents.resolve import resolve_agent
from proctor.base.clock import Clock
from proctor.running.rate_limit import RateLimit


def times_of(trials: list[tuple[BaseAgent, int]], rate: float, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each trial began, in seconds since the first."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(Clock, "monotonic", loop.time)
        limit, began, start = RateLimit(rate), [0.0] * len(trials), loop.time()

        async def make(number: int, agent: BaseAgent, turns: int) -> None:
            await limit.wait(agent, turns)
            began[number] = round(loop.time() - start, 3)

        await asyncio.gather(*(make(number, *trial) for number, trial in enumerate(trials)))
        return began

    return run_virtually(main())


def test_trials_of_one_agent_begin_no_faster_than_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = resolve_agent(echo)

    assert times_of([(agent, 1)] * 4, 2.0, monkeypatch) == [0.0, 0.5, 1.0, 1.5]


def test_a_conversation_counts_with_all_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = resolve_agent(echo)

    assert times_of([(agent, 4), (agent, 1), (agent, 1)], 2.0, monkeypatch) == [0.0, 2.0, 2.5]


def test_agents_behind_one_service_share_its_rate_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    one, same, other = map(resolve_agent, ("http://localhost:1/a", "http://localhost:1/b", "http://localhost:2/a"))

    assert times_of([(one, 1), (same, 1), (other, 1)], 1.0, monkeypatch) == [0.0, 1.0, 0.0]


def test_a_run_with_a_rate_makes_every_trial() -> None:
    found: Any = run(suite([case("a"), case("b"), case("c")]), agent=echo, rate=1000.0)

    assert len(trials_of(found)) == 3
    assert found[1].exit_code == 0


def test_a_turn_that_is_sent_again_counts_for_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[int] = []

    async def wait(_: RateLimit, agent: BaseAgent, turns: int) -> None:
        waits.append(turns)

    monkeypatch.setattr(RateLimit, "wait", wait)

    def agent(question: str) -> str:
        if len(waits) < 3:
            raise ConnectionResetError
        return question

    found: Any = run(suite([case("a")]), agent=agent, rate=1000.0)
    assert (found[1].exit_code, waits) == (0, [1, 1, 1])
