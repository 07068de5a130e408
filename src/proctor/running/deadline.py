"""Waits for somebody else's coroutine, but not longer than allowed, whatever it does when it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from proctor.running.watchdog import TimeIsUp, Watchdog

T = TypeVar("T")

GRACE_SECONDS = 1.0
"""How long cancelled work may take to clean up before it is abandoned."""


class TooLate(Exception):
    """The time allowed is over."""


class Cancelled(Exception):
    """The work cancelled itself; nobody else asked it to stop."""


async def in_time(
    work: Coroutine[Any, Any, T], timeout: float, watchdog: Watchdog, waited: Callable[[], float] | None = None
) -> T:
    """What `work` returns or raises within `timeout` seconds, not counting those it `waited`; `TooLate` after that."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    over: asyncio.Future[None] = loop.create_future()
    task.add_done_callback(lambda _: _done(task, over, watchdog))
    watchdog.watch(task, timeout, waited)
    timers: list[asyncio.TimerHandle] = []
    timers.append(loop.call_later(timeout, lambda: _expire(task, over, watchdog, timers)))
    try:
        await over
        if not task.done():
            await _abandon(task)
            raise TooLate
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    finally:
        timers[-1].cancel()
    if task.cancelled():
        raise Cancelled
    try:
        return task.result()
    except TimeIsUp:
        raise TooLate from None


def _done(task: asyncio.Task[Any], over: asyncio.Future[None], watchdog: Watchdog) -> None:
    """Abandoned work stays under watch until it ends, and what it raises then is nobody's business any more."""
    watchdog.forget(task)
    if not task.cancelled():
        task.exception()
    if not over.done():
        over.set_result(None)


def _expire(
    task: asyncio.Task[Any], over: asyncio.Future[None], watchdog: Watchdog, timers: list[asyncio.TimerHandle]
) -> None:
    left = watchdog.left(task)
    if left > 0:
        loop = asyncio.get_running_loop()
        timers.append(loop.call_later(left, lambda: _expire(task, over, watchdog, timers)))
    elif not over.done():
        over.set_result(None)


async def _abandon(task: asyncio.Task[Any]) -> None:
    """Cancel work, and leave it behind if it does not end."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)
