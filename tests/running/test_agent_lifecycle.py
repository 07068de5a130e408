"""Agents are started and stopped around a run, each in its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from engine_helpers import cases, outcomes, run, suite

from proctor.agents.agent import BaseAgent, Session
from proctor.agents.reply import Reply
from proctor.base.errors import AgentFailed
from proctor.cases.suite import Case, Turn
from proctor.results.score import Outcome
from proctor.running.agent_lifecycle import AgentNotStarted, running_agent


class Echo(BaseAgent):
    """Answers with the question, and counts what happens to it."""

    def __init__(self, name: str, **failures: BaseException) -> None:
        self.name = name
        self.steps: list[str] = []
        self._failures = failures

    async def start(self) -> None:
        self._step("start")

    async def stop(self) -> None:
        self._step("stop")

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if name in self._failures:
            raise self._failures[name]

    @asynccontextmanager
    async def session(self, case: Case) -> AsyncIterator[Session]:
        yield _Echoes()


class _Echoes:
    async def send(self, turn: Turn) -> Reply:
        return Reply(str(turn.input))


class WaitsForOthers(Echo):
    """Starts once all agents that share the barrier have begun to start."""

    def __init__(self, name: str, barrier: asyncio.Barrier) -> None:
        super().__init__(name)
        self._barrier = barrier

    async def start(self) -> None:
        await self._barrier.wait()


def test_agents_of_several_suites_start_at_once() -> None:
    barrier = asyncio.Barrier(3)
    suites = [suite(cases(1), name=f"suite {n}", timeout=20, parallel=1) for n in range(3)]
    found = _run_each(suites, [WaitsForOthers(f"agent {n}", barrier) for n in range(3)])
    assert set(found.values()) == {Outcome.PASSED}


def test_an_agent_that_cannot_start_leaves_only_its_own_cases_unmeasured() -> None:
    good, bad = Echo("good"), Echo("bad", start=OSError("no port"))
    found = _run_each([suite(cases(1), name="one"), suite(cases(1, 1), name="two")], [good, bad])
    assert found == {"case-0": Outcome.PASSED, "case-1": Outcome.ERROR}
    assert good.steps == ["start", "stop"]
    assert bad.steps == ["start"]


def test_started_stops_the_agent_also_if_the_work_fails() -> None:
    agent = Echo("desk")

    async def work() -> None:
        async with running_agent(agent):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(work())
    assert agent.steps == ["start", "stop"]


@pytest.mark.parametrize(("step", "kind"), [("start", AgentNotStarted), ("stop", AgentFailed)])
def test_a_step_that_fails_names_the_agent_and_the_reason(step: str, kind: type[Exception]) -> None:
    async def work() -> None:
        async with running_agent(Echo("desk", **{step: OSError("no port")})):
            pass

    with pytest.raises(kind, match=f"the agent desk could not {step}: OSError: no port"):
        asyncio.run(work())


def test_an_agent_that_does_not_start_in_time_is_an_error() -> None:
    class Slow(Echo):
        async def start(self) -> None:
            await asyncio.sleep(60)

    async def work() -> None:
        async with running_agent(Slow("desk"), seconds=0.01):
            pass

    with pytest.raises(AgentNotStarted):
        asyncio.run(work())


def _run_each(suites: list[Any], agents: list[Echo]) -> dict[str, Outcome]:
    """Run each suite with its own agent, all in one run."""
    return outcomes(run(*(replace(item, agent=agent) for item, agent in zip(suites, agents, strict=True))))
