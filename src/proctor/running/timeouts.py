"""Timeouts that also work for code that ignores cancellation or blocks the event loop.

The obvious version, `asyncio.timeout`, fails in both directions. An async agent that calls blocking code
(`time.sleep`, `requests` in an `async def`) keeps every timer of the loop from firing, so it never times out itself.
When it releases the loop, the timers of all other trials fire at once, so trials that did nothing wrong time out.

A signal still arrives while the loop is blocked: if the running task has used up its time, it is interrupted at once.
No other task could run meanwhile, and none may time out for that: a heartbeat measures how long the loop was blocked,
and each task gets that time back. Samples, taken at each signal, show which task blocked the loop. A plain upper limit
on the time to give back would time out tasks that wait behind many blocking ones.

Some seconds do not count: waiting for a free judge, for a simulated user, for a slot on a worker. `excluded_seconds`
returns how many there were.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

from proctor.base.clock import Clock
from proctor.base.guard import send_heartbeat

T = TypeVar("T")

TICK_SECONDS = 0.25
BEAT_SECONDS = 0.05
MAX_LABELS = 8
"""How many running cases, the newest, are reported to the guard process."""
GRACE_SECONDS = 1.0
"""How long a cancelled task may take to clean up before it is abandoned."""


class WatchdogInterrupt(BaseException):
    """Raised inside code that has used up its time; not an `Exception`, so that agents do not catch it."""


@dataclass(slots=True)
class _TimeBudget:
    """The time one task may take."""

    end: float
    timeout: float
    blocked_before: float
    """How long the loop had been blocked when the task started."""
    own_blocking: float = 0.0
    """How long the task itself blocked the loop, as far as samples show."""
    excluded_seconds: Callable[[], float] | None = None
    """Returns how many seconds do not count towards the timeout."""
    label: str = ""
    """The case, for messages of the guard process."""


class Watchdog:
    """Watches the tasks of one event loop, and interrupts them if the platform and the thread allow signals."""

    def __init__(self) -> None:
        self._budgets: dict[asyncio.Task[Any], _TimeBudget] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signals = False
        self._beat: asyncio.TimerHandle | None = None
        self._blocked = 0.0
        self._longest = 0.0

    def watch(
        self,
        task: asyncio.Task[Any] | None,
        timeout: float,
        excluded_seconds: Callable[[], float] | None = None,
        label: str = "",
    ) -> None:
        """From now on, `task` may run for `timeout` seconds, not counting the excluded ones."""
        if task is not None:
            end = Clock.monotonic() + timeout
            self._budgets[task] = _TimeBudget(
                end, timeout, self._blocked, excluded_seconds=excluded_seconds, label=label
            )
            if label:
                self._longest = max(self._longest, timeout)
                send_heartbeat(self._longest, label)

    def forget(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._budgets.pop(task, None)

    def label_of(self, task: asyncio.Task[Any] | None) -> str:
        """The case that a task belongs to, or an empty string if unknown."""
        own = None if task is None else self._budgets.get(task)
        return "" if own is None else own.label

    def remaining_seconds(self, task: asyncio.Task[Any]) -> float:
        """Seconds that `task` has left; time in which other tasks blocked the loop does not count.

        Without signals there are no samples of which task blocked, so at most the timeout itself is given back.
        """
        own = self._budgets.get(task)
        if own is None:
            return 0.0
        lost = max(0.0, self._blocked - own.blocked_before - own.own_blocking)
        given_back = lost if self._signals else min(lost, own.timeout)
        excluded = 0.0 if own.excluded_seconds is None else own.excluded_seconds()
        return own.end + given_back + excluded - Clock.monotonic()

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
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # drops a pending tick, which would end the process
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._beat is not None:
            self._beat.cancel()
        self._loop, self._signals = None, False
        send_heartbeat(0.0)

    def _report_alive(self) -> None:
        """Report the running cases to the guard, which ends the process if it is silent for too long."""
        running = self._budgets.values()
        self._longest = max((item.timeout for item in running), default=0.0)
        labels = [item.label for item in running if item.label]
        send_heartbeat(self._longest, ", ".join(labels[-MAX_LABELS:]))

    def _on_beat(self) -> None:
        if self._loop is None or self._beat is None:
            return
        late = self._loop.time() - self._beat.when()
        if late > BEAT_SECONDS:
            self._blocked += late
        self._report_alive()
        self._beat = self._loop.call_later(BEAT_SECONDS, self._on_beat)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        task = None if self._loop is None else asyncio.current_task(self._loop)
        own = None if task is None else self._budgets.get(task)
        if task is None or own is None:
            return
        own.own_blocking += TICK_SECONDS
        if self.remaining_seconds(task) < 0:
            raise WatchdogInterrupt

    @staticmethod
    def _can_signal() -> bool:
        """Whether this thread gets signals, and the application does not use SIGALRM itself."""
        return (
            hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        )


class TimedOut(Exception):
    """The timeout is over."""


class Cancelled(Exception):
    """The coroutine cancelled itself."""


async def run_with_timeout(
    work: Coroutine[Any, Any, T],
    timeout: float,
    watchdog: Watchdog,
    excluded_seconds: Callable[[], float] | None = None,
    label: str = "",
) -> T:
    """Return or raise what `work` does within `timeout` seconds, not counting the excluded ones; else `TimedOut`.

    On a timeout, `work` is cancelled and, if it ignores that, abandoned.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    over: asyncio.Future[None] = loop.create_future()
    task.add_done_callback(lambda _: _done(task, over, watchdog))
    watchdog.watch(task, timeout, excluded_seconds, label)
    timers: list[asyncio.TimerHandle] = []
    timers.append(loop.call_later(timeout, lambda: _expire(task, over, watchdog, timers)))
    try:
        await over
        if not task.done():
            await _abandon(task)
            raise TimedOut
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    finally:
        timers[-1].cancel()
    if task.cancelled():
        raise Cancelled
    try:
        return task.result()
    except WatchdogInterrupt:
        raise TimedOut from None


def _done(task: asyncio.Task[Any], over: asyncio.Future[None], watchdog: Watchdog) -> None:
    """Called when a task ends, also an abandoned one, whose exception is dropped."""
    watchdog.forget(task)
    if not task.cancelled():
        task.exception()
    if not over.done():
        over.set_result(None)


def _expire(
    task: asyncio.Task[Any], over: asyncio.Future[None], watchdog: Watchdog, timers: list[asyncio.TimerHandle]
) -> None:
    left = watchdog.remaining_seconds(task)
    if left > 0:
        loop = asyncio.get_running_loop()
        timers.append(loop.call_later(left, lambda: _expire(task, over, watchdog, timers)))
    elif not over.done():
        over.set_result(None)


async def _abandon(task: asyncio.Task[Any]) -> None:
    """Cancel a task, and abandon it if it does not end."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)
