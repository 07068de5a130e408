"""Holds one conversation with the agent: in time, with retries where the fault is not the agent's, and recorded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

from proctor.agents.model import Agent, Reply
from proctor.cases.model import Case
from proctor.errors import AgentFailed, UnreadableReply
from proctor.records import record
from proctor.references import describe
from proctor.results.model import Outcome
from proctor.running.options import Limits
from proctor.running.watchdog import TimeIsUp, Watchdog
from proctor.tracing.recording import CURRENT, Recording

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
GRACE_SECONDS = 1.0
"""How long a cancelled conversation may take to clean up before it is abandoned."""


@record
class Answer:
    """What came of asking: the replies, or why there are none."""

    replies: tuple[Reply, ...]
    outcome: Outcome | None
    """`None` when every turn was answered and evaluators have the word."""
    reason: str
    attempts: int
    started_at: float
    duration_ms: float


async def ask(agent: Agent, case: Case, limits: Limits, backoff: float, watchdog: Watchdog) -> Answer:
    """Ask every turn of `case`, again where something transient came in between."""
    attempt = 0
    while True:
        attempt += 1
        started_at, clock = time.time(), time.perf_counter()
        replies: list[Reply] = []
        outcome, reason, again = await _attempt(agent, case, limits.timeout, replies, watchdog)
        duration_ms = (time.perf_counter() - clock) * 1000
        if again is None or attempt > limits.retries:
            if again is not None and attempt > 1:
                reason = f"{reason} (after {attempt} attempts)"
            return Answer(tuple(replies), outcome, reason, attempt, started_at, duration_ms)
        await asyncio.sleep(again or _pause(backoff, attempt))


def _pause(backoff: float, attempt: int) -> float:
    """Longer each time, and never the same for two trials that met the same obstacle."""
    import random

    return min(30.0, backoff * 2 ** (attempt - 1) * random.uniform(0.8, 1.2))  # noqa: S311


async def _attempt(
    agent: Agent, case: Case, timeout: float, replies: list[Reply], watchdog: Watchdog
) -> tuple[Outcome | None, str, float | None]:
    """One try: the outcome if it is settled, why, and, if trying again may help, after how many seconds (0: any)."""
    try:
        await _in_time(_converse(agent, case, replies), timeout, watchdog)
    except (TimeIsUp, _TooLate):
        return Outcome.FAILED, f"the agent gave no answer within {timeout:g} s", None
    except UnreadableReply as error:
        return Outcome.ERROR, f"the agent's reply cannot be read: {error}", None
    except Exception as error:
        reason = str(error) if isinstance(error, AgentFailed) else f"the agent raised {describe(error)}"
        if is_transient(error):
            return Outcome.ERROR, reason, float(getattr(error, "retry_after", None) or 0.0)
        return Outcome.FAILED, reason, None
    return None, "", None


async def _converse(agent: Agent, case: Case, replies: list[Reply]) -> None:
    try:
        async with agent.session(case) as session:
            for turn in case.turns:
                recording = Recording()
                mark = CURRENT.set(recording)
                clock = time.perf_counter()
                try:
                    reply = await session.send(turn)
                finally:
                    CURRENT.reset(mark)
                replies.append(_complete(reply, recording, (time.perf_counter() - clock) * 1000))
    except (SystemExit, KeyboardInterrupt) as error:
        raise AgentFailed(f"the agent raised {describe(error)}") from error


def _complete(reply: Any, recording: Recording, duration_ms: float) -> Reply:
    """The reply with what the application recorded on the way; what an adapter reports itself comes first."""
    if not isinstance(reply, Reply):
        raise UnreadableReply(f"the session returned {type(reply).__name__} instead of a Reply")
    return Reply(
        reply.text,
        reply.tool_calls or tuple(recording.tool_calls),
        reply.usage,
        reply.outputs or tuple(recording.outputs),
        reply.structured,
        reply.state,
        reply.retrieval_context,
        duration_ms if reply.duration_ms is None else reply.duration_ms,
    )


class _TooLate(Exception):
    """The time allowed for a conversation is over."""


async def _in_time(conversation: Coroutine[Any, Any, None], timeout: float, watchdog: Watchdog) -> None:
    """Wait for a conversation, but not longer than allowed, whatever it does when it is cancelled."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(conversation)
    over: asyncio.Future[None] = loop.create_future()
    task.add_done_callback(lambda _: None if over.done() else over.set_result(None))
    timer = loop.call_later(timeout, lambda: None if over.done() else over.set_result(None))
    watchdog.watch(task, timeout)
    try:
        await over
        if not task.done():
            await _abandon(task)
            raise _TooLate
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    finally:
        timer.cancel()
        watchdog.forget(task)
        if task.done() and not task.cancelled():
            task.exception()
    if task.cancelled():
        raise AgentFailed("the agent cancelled its own task")
    task.result()


async def _abandon(task: asyncio.Task[None]) -> None:
    """Cancel a conversation, and leave it behind if it does not end."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)


def is_transient(error: BaseException) -> bool:
    """Whether the fault lies with the network or an overloaded service, and asking again may help."""
    marked = getattr(error, "transient", None)
    if isinstance(marked, bool):
        return marked
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if isinstance(status, int) and status in TRANSIENT_STATUS:
        return True
    return type(error).__name__ in (
        "APIConnectionError",
        "APITimeoutError",
        "ConnectError",
        "ReadTimeout",
        "ConnectTimeout",
    )
