"""Starts and stops agents, each step in its time: the one place that does.

An agent that cannot start is not the agent failing its cases: nothing is known about them. So the engine marks the
cases of that agent as errors, and everyone else gets `AgentNotStarted`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

from proctor.agents.agent import BaseAgent
from proctor.base.errors import AgentFailed, one_line
from proctor.running.settings import DEFAULTS

START_SECONDS: float = DEFAULTS.timeout or 0.0
"""How long an agent may take to start if neither a suite nor the agent says so."""
STOP_SECONDS = 10.0
"""How long an agent may take to stop."""


class AgentNotStarted(AgentFailed):
    """The agent could not be started, so none of its sessions was opened."""


@contextlib.asynccontextmanager
async def running_agent(agent: BaseAgent, seconds: float = START_SECONDS) -> AsyncIterator[BaseAgent]:
    """The agent, started on the way in and stopped on the way out.

    Raises `AgentNotStarted` if it does not start within `seconds`, or `agent.start_timeout` if that is longer, and
    `AgentFailed` if it does not stop properly.
    """
    await start_agent(agent, seconds)
    try:
        yield agent
    finally:
        problem = await try_stop(agent)
    if problem:
        raise AgentFailed(problem)


async def start_agent(agent: BaseAgent, seconds: float = START_SECONDS) -> None:
    """Start an agent; raises `AgentNotStarted`."""
    if problem := await try_start(agent, seconds):
        raise AgentNotStarted(problem)


async def try_start(agent: BaseAgent, seconds: float = START_SECONDS) -> str:
    """Start an agent and return why it could not start, or an empty string."""
    problem = await try_step(agent.start, max(seconds, agent.start_timeout))
    return "" if problem is None else f"the agent {agent.name} could not start: {problem}"


async def try_stop(agent: BaseAgent) -> str:
    """Stop an agent and return why it could not stop, or an empty string."""
    problem = await try_step(agent.stop, STOP_SECONDS)
    return "" if problem is None else f"the agent {agent.name} could not stop: {problem}"


async def start_agents(agents: Mapping[BaseAgent, float], problems: dict[BaseAgent, str]) -> None:
    """Start several agents at once, each within its seconds.

    `problems` has the reason of each that did not start. It is filled from the beginning and an agent is removed once
    it runs, so that it is right also if this is cancelled half-way: an agent that never started must not be stopped.
    """

    async def start_one(agent: BaseAgent, seconds: float) -> None:
        if problem := await try_start(agent, seconds):
            problems[agent] = problem
        else:
            del problems[agent]

    problems.update({agent: f"the agent {agent.name} was not started" for agent in agents})
    await asyncio.gather(*(start_one(agent, seconds) for agent, seconds in agents.items()))


async def stop_agents(agents: Iterable[BaseAgent]) -> list[str]:
    """Stop several agents at once; returns what went wrong."""
    return [problem for problem in await asyncio.gather(*map(try_stop, agents)) if problem]


async def try_step(step: Callable[[], Awaitable[None]], seconds: float) -> str | None:
    """Why a step did not succeed. That the run itself is cancelled is not a reason, so that is raised."""
    try:
        async with asyncio.timeout(seconds):
            await step()
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        return "it cancelled itself"
    except BaseException as error:
        return one_line(error)
    return None
