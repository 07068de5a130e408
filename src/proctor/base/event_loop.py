"""Runs coroutines from synchronous code, and ends even if a user's coroutine does not.

`run_sync` has an event loop for one call, `run_in_kept_loop` one for all calls of a thread: a client that an agent made
in the first call still works in the second. `without_loop` makes the synchronous twin of a coroutine function.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from proctor.base.threads import executor_apart

T = TypeVar("T")

LEFTOVER_SECONDS = 1.0


def run_sync(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end. Tasks it abandoned are cancelled, but not waited for longer than a moment."""
    _refuse_inside_loop(main)
    loop = _new_loop()
    try:
        return _run(loop, loop.create_task(main))
    finally:
        _end(loop)


def run_in_kept_loop(main: Coroutine[Any, Any, T], *, keep_tasks: bool = False) -> T:
    """Run `main` to its end in the loop that this thread keeps; with `keep_tasks`, tasks it started go on next time."""
    _refuse_inside_loop(main)
    loop = _kept().loop()
    before = asyncio.all_tasks(loop)
    task = loop.create_task(main)
    try:
        return _run(loop, task)
    finally:
        started = {task} if keep_tasks else asyncio.all_tasks(loop) - before
        _cancel(loop, {one for one in started if not one.done()})


def close_kept_loops() -> None:
    """Close the loops of all threads, as at the end of a test session; the next call makes a new one."""
    _kept().close()


def is_loop_running() -> bool:
    """Whether this is called from inside an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _refuse_inside_loop(main: Coroutine[Any, Any, Any]) -> None:
    if is_loop_running():
        main.close()
        raise RuntimeError("an event loop is running here already: await the asynchronous form instead")


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(executor_apart())
    return loop


class _Holder:
    """A loop that is closed when its thread ends, or Python does."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self.close = weakref.finalize(self, _end, self.loop)


class _KeptLoops:
    """One loop a thread."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._all: weakref.WeakSet[_Holder] = weakref.WeakSet()

    def loop(self) -> asyncio.AbstractEventLoop:
        holder: _Holder | None = getattr(self._own, "holder", None)
        if holder is None or holder.loop.is_closed():
            holder = self._own.holder = _Holder()
            self._all.add(holder)
        return holder.loop

    def close(self) -> None:
        for holder in list(self._all):
            if not holder.loop.is_running():
                holder.close()


@functools.cache
def _kept() -> _KeptLoops:
    return _KeptLoops()


def _run(loop: asyncio.AbstractEventLoop, main: asyncio.Task[T]) -> T:
    """A task that a user's agent started may call `sys.exit`, which stops the loop, but not what `main` is about."""
    while True:
        try:
            return loop.run_until_complete(main)
        except SystemExit:
            if main.done():
                raise


def _cancel(loop: asyncio.AbstractEventLoop, leftover: set[asyncio.Task[Any]]) -> None:
    for task in leftover:
        task.cancel()
    if leftover:
        loop.run_until_complete(asyncio.wait(leftover, timeout=LEFTOVER_SECONDS))


def _end(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # of a loop that a user's code has closed itself
        _cancel(loop, asyncio.all_tasks(loop))
        loop.set_exception_handler(lambda loop, context: None)
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


P = ParamSpec("P")
R = TypeVar("R")


def without_loop(verb: Callable[P, Coroutine[Any, Any, R]], home: str) -> Callable[P, R]:
    """`verb`, run to its end; where an event loop is running already, `RuntimeError` says to await `verb` instead.

    A twin, and not one function that does both: what `asyncio.run(verb(...))` is given is made before its loop runs.
    `home` is the module that the twin lives in.
    """

    @functools.wraps(verb)
    def synchronous(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return run_in_kept_loop(verb(*args, **kwargs))
        except AssertionError as failed:
            raise failed.with_traceback(None) from None  # ends in the caller's own line, not in the event loop

    synchronous.__name__ = synchronous.__qualname__ = f"{verb.__name__}_sync"
    synchronous.__module__ = home
    synchronous.__doc__ = f"`{verb.__name__}`, for code without an event loop."
    return synchronous
