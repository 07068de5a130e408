"""Conversations whose user is simulated: the user stays in the process of the run, the agent is on a worker.

`Talk` is the worker's side, `RemoteSession` that of the run. Only turns and replies travel.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from proctor.agents.agent import BaseAgent, Reply
from proctor.agents.sessions import TRIAL
from proctor.agents.toolbox import DOUBLES, Doubles
from proctor.base.errors import AgentFailed, UnreadableReply
from proctor.base.references import describe, place_of
from proctor.base.reply_size import LIMIT
from proctor.cases.suite import Case, Turn
from proctor.running.cluster.messages import TrialOrder, unpacked
from proctor.running.engine.broken_turn import is_transient
from proctor.running.engine.isolate import AgentElsewhere, SessionElsewhere, answered, packed
from proctor.running.engine.plan import PlannedTrial
from proctor.running.options import Limits

if TYPE_CHECKING:
    from proctor.running.cluster.placement import Lane
    from proctor.running.cluster.worker_pool import WorkerPool

END_SECONDS = 10.0
"""How long a session may take to close."""


class Talk:
    """One conversation whose user is elsewhere; a task of its own, so that its context is its own."""

    def __init__(self, agent: BaseAgent, order: TrialOrder) -> None:
        self._agent = agent
        self._order = order
        self._turns: asyncio.Queue[tuple[Turn, asyncio.Future[bytes]] | None] = asyncio.Queue()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Raises `AgentFailed` where the session cannot be opened."""
        self.task = asyncio.create_task(self._hold())
        await _either(self.task, self._opened)
        if not self._opened.done():
            await self.task

    async def send(self, turn: Turn) -> bytes:
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._turns.put_nowait((turn, reply))
        assert self.task is not None
        await _either(self.task, reply)
        return reply.result() if reply.done() else packed(AgentFailed("the session ended before it was over"))

    async def end(self) -> None:
        self._turns.put_nowait(None)
        if self.task is not None:
            await asyncio.wait({self.task}, timeout=END_SECONDS)
            self.task.cancel()

    async def _hold(self) -> None:
        case = self._order.case
        TRIAL.set(self._order.number)
        LIMIT.set(self._order.limits.max_reply_bytes)
        if case.doubles:
            DOUBLES.set(Doubles(case.doubles))
        try:
            async with self._agent.session(case) as session:
                self._opened.set_result(None)
                while (asked := await self._turns.get()) is not None:
                    turn, reply = asked
                    reply.set_result(packed(await answered(self._agent, session, case, turn)))
        except (AgentFailed, UnreadableReply):
            raise
        except Exception as error:
            said = f"the agent raised {describe(error)}{place_of(error)}"
            raise AgentFailed(said, transient=is_transient(error)) from error


async def _either(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


@contextlib.asynccontextmanager
async def agent_on_worker(pool: WorkerPool, planned: PlannedTrial, limits: Limits) -> AsyncIterator[BaseAgent]:
    """The agent of one trial on a worker that has room; waiting for one is not the agent's time."""
    agent = RemoteAgent(pool, planned, limits)
    try:
        await agent.place()
        yield agent
    finally:
        agent.leave()


class RemoteAgent(AgentElsewhere):
    """An agent on a worker, for one trial."""

    def __init__(self, pool: WorkerPool, planned: PlannedTrial, limits: Limits) -> None:
        super().__init__(planned.suite.agent)
        self._pool = pool
        self._asked = planned, limits
        self._placed: tuple[Lane, TrialOrder] | None = None

    async def place(self) -> tuple[Lane, TrialOrder]:
        """The worker, and another one if that was lost."""
        if self._placed is None or not self._pool.has(self._placed[0]):
            self._placed = await self._pool.place_for(*self._asked)
        return self._placed

    def leave(self) -> None:
        if self._placed is not None:
            self._pool.leave(*self._placed)

    def session(self, case: Case) -> RemoteSession:
        return RemoteSession(self)


class RemoteSession(SessionElsewhere):
    """One conversation on a worker; if the worker ends, so does the conversation, which may then be begun anew."""

    def __init__(self, agent: RemoteAgent) -> None:
        self._agent = agent

    async def __aenter__(self) -> RemoteSession:
        self._lane, self._order = await self._agent.place()
        if refused := await self._call("open", pickle.dumps(self._order)):
            raise unpacked(refused)
        return self

    async def __aexit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):
            await self._call("leave", self._order.key)

    async def send(self, turn: Turn) -> Reply:
        return self.taken_in(unpacked(await self._call("send", self._order.key, pickle.dumps(turn))))

    async def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return await getattr(self._lane.server, method)(*arguments)
        except Exception as error:
            said = f"the worker {self._lane.name} ended while the agent was being asked ({describe(error)})"
            raise AgentFailed(said, transient=True) from error
