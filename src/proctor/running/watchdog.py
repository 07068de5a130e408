"""Ends a conversation that blocks the event loop, where no cancellation can reach it.

An async agent that calls blocking code keeps every timer of the loop from firing. A signal still arrives: if the task
that is running at that moment is a conversation whose time is over, it is told so on the spot.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from types import FrameType
from typing import Any

TICK_SECONDS = 0.25


class TimeIsUp(BaseException):
    """Raised inside a conversation that has used up its time; not an `Exception`, so that agents do not swallow it."""


class Watchdog:
    """Watches conversations of one event loop, as far as the platform and the thread allow signals."""

    def __init__(self) -> None:
        self._deadlines: dict[asyncio.Task[Any], float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self, task: asyncio.Task[Any] | None, timeout: float) -> None:
        """From now on, `task` may run for `timeout` seconds; `None` is nobody."""
        if task is not None:
            self._deadlines[task] = time.monotonic() + timeout

    def forget(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._deadlines.pop(task, None)

    def __enter__(self) -> Watchdog:
        if self._can_signal():
            self._loop = asyncio.get_running_loop()
            signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
        return self

    def __exit__(self, *error: object) -> None:
        if self._loop is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._loop = None

    def _tick(self, number: int, frame: FrameType | None) -> None:
        task = None if self._loop is None else asyncio.current_task(self._loop)
        deadline = None if task is None else self._deadlines.get(task)
        if deadline is not None and time.monotonic() > deadline:
            raise TimeIsUp

    @staticmethod
    def _can_signal() -> bool:
        """Only the main thread gets signals, and an application that uses this one keeps it."""
        return (
            hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        )
