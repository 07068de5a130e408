"""Waits for somebody else's coroutine, but not longer than allowed, whatever it does when it is cancelled.

Ends work that blocks the event loop, where no cancellation can reach it, and gives others back the time it took.

An async agent that calls blocking code keeps every timer of the loop from firing. A signal still arrives: if the task
that is running at that moment has used up its time, it is told so on the spot. Meanwhile nobody else could run either,
which must not be held against them: a heartbeat measures how long the loop stood still.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

TICK_SECONDS = 0.25
BEAT_SECONDS = 0.05


class TimeIsUp(BaseException):
    """Raised inside work that has used up its time; not an `Exception`, so that agents do not swallow it."""


@dataclass(slots=True)
class _Allowance:
    """The time one task may take."""

    end: float
    timeout: float
    stood_still: float
    """How long the loop had stood still when the task began."""
    seen_running: float = 0.0
    """How much of the standstill is its own doing, as far as samples show."""
    waited: Callable[[], float] | None = None
    """How long it has waited for others, which is not held against it."""


class Watchdog:
    """Watches tasks of one event loop; it interrupts them as far as the platform and the thread allow signals."""

    def __init__(self) -> None:
        self._allowances: dict[asyncio.Task[Any], _Allowance] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signals = False
        self._beat: asyncio.TimerHandle | None = None
        self._stood_still = 0.0

    def watch(self, task: asyncio.Task[Any] | None, timeout: float, waited: Callable[[], float] | None = None) -> None:
        """From now on, `task` may run for `timeout` seconds and as long as it `waited`; `None` is nobody."""
        if task is not None:
            end = time.monotonic() + timeout
            self._allowances[task] = _Allowance(end, timeout, self._stood_still, waited=waited)

    def forget(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._allowances.pop(task, None)

    def left(self, task: asyncio.Task[Any]) -> float:
        """Seconds that `task` still has, the time that others took from it included.

        Without signals nobody can tell who took it; then it gets back at most as much as it had.
        """
        own = self._allowances.get(task)
        if own is None:
            return 0.0
        lost = max(0.0, self._stood_still - own.stood_still - own.seen_running)
        given_back = lost if self._signals else min(lost, own.timeout)
        waited = 0.0 if own.waited is None else own.waited()
        return own.end + given_back + waited - time.monotonic()

    def __enter__(self) -> Watchdog:
        self._loop = asyncio.get_running_loop()
        self._beat = self._loop.call_later(BEAT_SECONDS, self._on_beat)
        self._signals = self._can_signal()
        if self._signals:
            signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
        return self

    def __exit__(self, *error: object) -> None:
        if self._signals:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._beat is not None:
            self._beat.cancel()
        self._loop, self._signals = None, False

    def _on_beat(self) -> None:
        if self._loop is None or self._beat is None:
            return
        late = self._loop.time() - self._beat.when()
        if late > BEAT_SECONDS:
            self._stood_still += late
        self._beat = self._loop.call_later(BEAT_SECONDS, self._on_beat)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        task = None if self._loop is None else asyncio.current_task(self._loop)
        own = None if task is None else self._allowances.get(task)
        if task is None or own is None:
            return
        own.seen_running += TICK_SECONDS
        if self.left(task) < 0:
            raise TimeIsUp

    @staticmethod
    def _can_signal() -> bool:
        """Only the main thread gets signals, and an application that uses this one keeps it."""
        return (
            hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        )


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
