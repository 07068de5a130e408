"""Limits of a run: which are in force, timeouts, how often a service is asked, and signals that stop it.

Timeouts hold also for code that ignores cancellation or blocks the event loop.

An async agent that calls blocking code keeps every timer of the loop from firing. A signal still arrives: if the task
that is running at that moment has used up its time, it is interrupted on the spot. No other task could run meanwhile,
and none may time out for that: a heartbeat measures how long the loop was blocked, and each task gets back what it
lost. Samples tell which task blocked the loop, since a limit on what is given back would blame the tasks that wait
behind many blocking ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import fields
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from proctor.agents.agent import BaseAgent
from proctor.base.errors import UsageError
from proctor.base.guard import CHILD, tell_alive
from proctor.base.records import mutable_record
from proctor.base.references import describe
from proctor.base.threads import CLOCK
from proctor.cases.suite import Case, Settings, Suite
from proctor.running.options import DEFAULTS, JUDGED_SECONDS, NO_SETTINGS, Limits, RunOptions

if TYPE_CHECKING:
    from proctor.running.engine.plan import PlannedSuite

T = TypeVar("T")

TICK_SECONDS = 0.25
BEAT_SECONDS = 0.05
LABELS_TOLD = 8
GRACE_SECONDS = 1.0
"""How long cancelled work may take to clean up before it is abandoned."""


class TimeIsUp(BaseException):
    """Raised inside work that has used up its time; not an `Exception`, so that agents do not swallow it."""


@mutable_record
class _Allowance:
    """The time one task may take."""

    end: float
    timeout: float
    blocked_before: float
    """How long the loop had been blocked when the task began."""
    own_blocking: float = 0.0
    """How long the task itself blocked the loop, as far as samples show."""
    waited: Callable[[], float] | None = None
    """Seconds of waiting that are excluded from the timeout."""
    label: str = ""
    """The case, as the guard outside the process names it."""


class Watchdog:
    """Watches tasks of one event loop; it interrupts them as far as the platform and the thread allow signals."""

    def __init__(self) -> None:
        self._allowances: dict[asyncio.Task[Any], _Allowance] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signals = False
        self._beat: asyncio.TimerHandle | None = None
        self._blocked = 0.0
        self._longest = 0.0

    def watch(
        self,
        task: asyncio.Task[Any] | None,
        timeout: float,
        waited: Callable[[], float] | None = None,
        label: str = "",
    ) -> None:
        """From now on, `task` may run for `timeout` seconds, not counting those it `waited`."""
        if task is not None:
            end = CLOCK.monotonic() + timeout
            self._allowances[task] = _Allowance(end, timeout, self._blocked, waited=waited, label=label)
            if label:
                self._longest = max(self._longest, timeout)
                if CHILD.page is not None:
                    tell_alive(self._longest, label)

    def forget(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._allowances.pop(task, None)

    def label_of(self, task: asyncio.Task[Any] | None) -> str:
        """The case that a task belongs to; empty where it is not known."""
        own = None if task is None else self._allowances.get(task)
        return "" if own is None else own.label

    def left(self, task: asyncio.Task[Any]) -> float:
        """Seconds that `task` still has; what other tasks took from it by blocking the loop is given back.

        Without signals there are no samples of which task blocked, so it gets back at most as much as it had.
        """
        own = self._allowances.get(task)
        if own is None:
            return 0.0
        lost = max(0.0, self._blocked - own.blocked_before - own.own_blocking)
        given_back = lost if self._signals else min(lost, own.timeout)
        waited = 0.0 if own.waited is None else own.waited()
        return own.end + given_back + waited - CLOCK.monotonic()

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
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # drops a tick on its way, which would end the process
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._beat is not None:
            self._beat.cancel()
        self._loop, self._signals = None, False
        if CHILD.page is not None:
            tell_alive(0.0)

    def _tell_alive(self) -> None:
        """Tell the guard what is running: it ends the process if the loop is silent for longer than that may take."""
        running = self._allowances.values()
        self._longest = max((item.timeout for item in running), default=0.0)
        labels = [item.label for item in running if item.label]
        if CHILD.page is not None:
            tell_alive(self._longest, ", ".join(labels[-LABELS_TOLD:]))

    def _on_beat(self) -> None:
        if self._loop is None or self._beat is None:
            return
        late = self._loop.time() - self._beat.when()
        if late > BEAT_SECONDS:
            self._blocked += late
        self._tell_alive()
        self._beat = self._loop.call_later(BEAT_SECONDS, self._on_beat)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        task = None if self._loop is None else asyncio.current_task(self._loop)
        own = None if task is None else self._allowances.get(task)
        if task is None or own is None:
            return
        own.own_blocking += TICK_SECONDS
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


class TooLate(Exception):
    """The time allowed is over."""


class Cancelled(Exception):
    """The work cancelled itself, without being asked to stop."""


async def in_time(
    work: Coroutine[Any, Any, T],
    timeout: float,
    watchdog: Watchdog,
    waited: Callable[[], float] | None = None,
    label: str = "",
) -> T:
    """What `work` returns or raises within `timeout` seconds, not counting those it `waited`; `TooLate` after that."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    over: asyncio.Future[None] = loop.create_future()
    task.add_done_callback(lambda _: _done(task, over, watchdog))
    watchdog.watch(task, timeout, waited, label)
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
    """Abandoned work is watched until it ends; what it raises then is dropped."""
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


async def problem_of_step(step: Callable[[], Any], seconds: float) -> str | None:
    """Why a step in an agent's life did not succeed; that the run itself is cancelled is no such reason."""
    try:
        async with asyncio.timeout(seconds):
            await step()
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        return "it cancelled itself"
    except BaseException as error:
        return describe(error)
    return None


def unforeseen(error: BaseException) -> str:
    """The reason of a trial that broke in an unforeseen way, even if the exception itself cannot say it."""
    import traceback

    return f"the trial could not be made: {traceback.format_exception_only(error)[-1].strip()}"


class RateLimit:
    """At most so many turns a second to each endpoint, whichever agent, suite or worker sends them.

    A trial counts with all its turns when it begins; what is sent again after a failure does not count.
    """

    def __init__(self, turns_a_second: float) -> None:
        self._seconds = 1.0 / turns_a_second
        self._free_at: dict[str, float] = {}

    async def wait(self, agent: BaseAgent, turns: int) -> None:
        """Return when a trial with so many turns may begin; those that wait begin in the order in which they came."""
        endpoint, now = agent.endpoint or agent.identity, CLOCK.monotonic()
        begins = max(now, self._free_at.get(endpoint, now))
        self._free_at[endpoint] = begins + turns * self._seconds
        if begins > now:
            await asyncio.sleep(begins - now)


@contextlib.contextmanager
def handling_signals(handle: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM are told to `handle` instead of ending the process. Signals that others handle stay theirs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if handler not in (signal.SIG_DFL, signal.default_int_handler):
            continue
        with contextlib.suppress(NotImplementedError, ValueError):
            loop.add_signal_handler(number, handle, number)
            before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)


def limits_of(options: RunOptions, suite: Suite, case: Case | None = None) -> Limits:
    """The first who says something wins: caller, case, suite, configuration, default."""
    own = NO_SETTINGS if case is None else Settings(repeat=case.repeat, timeout=case.timeout)
    sources = (options.given, own, suite.settings, options.fallback, DEFAULTS)
    said = {f.name: next(v for s in sources if (v := getattr(s, f.name)) is not None) for f in fields(Settings)}
    for name, least in (("repeat", 1), ("parallel", 1), ("retries", 0), ("max_reply_bytes", 1)):
        if said[name] < least:
            raise UsageError(f"{name} must be at least {least}, not {said[name]}")
    for name in ("timeout", "evaluator_timeout"):
        if not said[name] > 0:
            raise UsageError(f"{name} must be more than 0 seconds, not {said[name]:g}")
    own_wish = any(source.evaluator_timeout is not None for source in sources[:-1])
    return Limits(**said, judged_timeout=said["evaluator_timeout"] if own_wish else JUDGED_SECONDS)


STOP_SECONDS = 10.0
"""How long an agent may take to shut down."""


async def start_agents(agents: Mapping[BaseAgent, PlannedSuite], broken: dict[BaseAgent, str]) -> None:
    """An agent that cannot start leaves its own suites unmeasured, and no others: `broken` says why."""
    for agent, item in agents.items():
        broken[agent] = f"the agent {agent.name} was not started"
        problem = await problem_of_step(agent.start, max(item.limits.timeout, agent.start_seconds))
        if problem is None:
            del broken[agent]
        else:
            broken[agent] = f"the agent {agent.name} could not start: {problem}"


async def stop_agents(agents: Iterable[BaseAgent]) -> list[str]:
    """What went wrong when agents were stopped."""
    told = [(agent.name, await problem_of_step(agent.stop, STOP_SECONDS)) for agent in agents]
    return [f"the agent {name} could not stop: {problem}" for name, problem in told if problem is not None]


@contextlib.contextmanager
def loaded_code_uncollected() -> Iterator[None]:
    """While trials run, garbage is not looked for in what was there before: a framework is a million such objects."""
    import gc

    frozen_before = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()


@contextlib.contextmanager
def working_folder_kept() -> Iterator[None]:
    """The folder in which the run began is the one in which its reports are written, wherever an agent went."""
    try:
        folder = os.getcwd()  # noqa: PTH109  starting a run should not take longer for what is hardly ever needed
    except OSError:
        folder = ""
    try:
        yield
    finally:
        if folder:
            with contextlib.suppress(OSError):
                os.chdir(folder)
