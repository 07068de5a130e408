"""Runs coroutines from synchronous code that calls again and again, or that an event loop runs already.

One loop per thread is kept between calls, so that an application's clients outlive one call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from proctor.base.threads import (
    cancel_tasks,
    end_loop,
    is_loop_running,
    new_loop,
    refuse_inside_loop,
    run_sync,
    run_to_end,
)

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


def run_beside_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end, also where an event loop is running already: there in a thread of its own.

    The loop that is running, such as that of a notebook, waits meanwhile. An interrupt cancels `main`, and is passed on
    once `main` has cleaned up; a second interrupt does not wait for that.
    """
    if not is_loop_running():
        return run_sync(main)
    loop = new_loop()
    task = loop.create_task(main)
    result: concurrent.futures.Future[T] = concurrent.futures.Future()

    def work() -> None:
        try:
            try:
                answer = run_to_end(loop, task)
            finally:
                end_loop(loop)
            result.set_result(answer)
        except BaseException as error:
            result.set_exception(error)

    thread = threading.Thread(target=work, name="proctor-run", daemon=True)
    thread.start()
    try:
        return result.result()
    except KeyboardInterrupt:
        with contextlib.suppress(RuntimeError):  # of a loop that has ended by itself
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise


def run_in_kept_loop(main: Coroutine[Any, Any, T], *, keep_tasks: bool = False) -> T:
    """Run `main` to its end in the loop that this thread keeps; with `keep_tasks`, tasks it started go on next time."""
    refuse_inside_loop(main)
    loop = _kept().loop()
    before = asyncio.all_tasks(loop)
    task = loop.create_task(main)
    try:
        return run_to_end(loop, task)
    finally:
        started = {task} if keep_tasks else asyncio.all_tasks(loop) - before
        cancel_tasks(loop, {one for one in started if not one.done()})


def close_kept_loops() -> None:
    """Close the loops of all threads, as at the end of a test session; the next call makes a new one."""
    _kept().close()


class _Holder:
    """A loop that is closed when its thread ends, or Python does."""

    def __init__(self) -> None:
        self.loop = new_loop()
        self.close = weakref.finalize(self, end_loop, self.loop)


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
