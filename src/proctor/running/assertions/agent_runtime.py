"""Runs an agent outside a run, for `AgentRunner` and `assert_pass`."""

from __future__ import annotations

import asyncio
import contextlib

from proctor.agents.agent import BaseAgent
from proctor.base.errors import AgentFailed
from proctor.running.agent_lifecycle import AgentNotStarted, start_agent, try_stop
from proctor.running.timeouts import Watchdog
from proctor.tracing.instrumentation import instrument_clients


class AgentRuntime:
    """Holds what the engine needs to call an agent: a watchdog and instrumented libraries.

    The agent starts when it is first needed, since all answers may be stored already, and stops at the end.
    """

    def __init__(self, agent: BaseAgent, start_seconds: float) -> None:
        self.agent = agent
        self.watchdog = Watchdog()
        self._start_seconds = start_seconds
        self._lock = asyncio.Lock()
        self._is_started = False
        self._problem: AgentNotStarted | None = None
        self._cleanup = contextlib.AsyncExitStack()

    async def __aenter__(self) -> AgentRuntime:
        self._cleanup.enter_context(self.watchdog)
        self._cleanup.enter_context(instrument_clients())
        return self

    async def start(self) -> None:
        """Start the agent if it is not running. If it cannot, this and all later calls raise `AgentNotStarted`."""
        async with self._lock:
            if self._problem is not None:
                raise self._problem
            if self._is_started:
                return
            try:
                await start_agent(self.agent, self._start_seconds)
            except AgentNotStarted as problem:
                self._problem = problem
                raise
            self._is_started = True

    async def __aexit__(self, *_: object) -> None:
        """Raises `AgentFailed` if the agent does not stop properly."""
        async with self._cleanup:
            if self._is_started and (problem := await try_stop(self.agent)):
                raise AgentFailed(problem)
