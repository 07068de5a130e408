"""Starts and stops agents, each with a timeout.

If an agent cannot start, that says nothing about its cases. So the engine reports them as errors, not as failures;
other callers get `AgentNotStarted`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

from proctor.agents.agent import BaseAgent
from proctor.base.errors import AgentFailed, one_line
from proctor.running.settings import DEFAULTS

START_SECONDS: float = DEFAULTS.timeout or 0.0
"""How long an agent may take to start, unless a suite or the agent sets another limit."""
STOP_SECONDS = 10.0
"""How long an agent may take to stop."""


class AgentNotStarted(AgentFailed):
    """The agent could not be started, so none of its sessions was opened."""


@contextlib.asynccontextmanager
async def running_agent(agent: BaseAgent, seconds: float = START_SECONDS) -> AsyncIterator[BaseAgent]:
    """The agent, started on entry and stopped on exit.

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
    """Start several agents in parallel, each within its number of seconds.

    `problems` gets the reason for each agent that did not start. All agents are in it from the beginning, and one is
    removed once it runs, so that it is correct even if this is cancelled: an agent that never started must not be
    stopped.
    """

    async def start_one(agent: BaseAgent, seconds: float) -> None:
        if problem := await try_start(agent, seconds):
            problems[agent] = problem
        else:
            del problems[agent]

    problems.update({agent: f"the agent {agent.name} was not started" for agent in agents})
    await asyncio.gather(*(start_one(agent, seconds) for agent, seconds in agents.items()))


async def stop_agents(agents: Iterable[BaseAgent]) -> list[str]:
    """Stop several agents in parallel; returns the errors."""
    return [problem for problem in await asyncio.gather(*map(try_stop, agents)) if problem]


async def try_step(step: Callable[[], Awaitable[None]], seconds: float) -> str | None:
    """Run `step`; returns why it failed, or `None`. If the run itself is cancelled, that is raised."""
    try:
        async with asyncio.timeout(seconds):
            await step()
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        return "it cancelled itself"
    except AgentFailed as error:  # its text is a sentence already
        return str(error) or one_line(error)
    except BaseException as error:
        return one_line(error)
    return None
