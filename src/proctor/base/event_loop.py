"""Runs coroutines from synchronous code, and ends even if a user's coroutine does not.

`without_loop` makes the synchronous twin of a coroutine function, with the same parameters.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from proctor.base.clock import CLOCK
from proctor.base.threads import executor_apart

T = TypeVar("T")

LEFTOVER_SECONDS = 1.0


def run_sync(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end. Tasks it abandoned are cancelled, but not waited for longer than a moment."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        main.close()
        raise RuntimeError("an event loop is running here already: await the asynchronous form instead")
    loop = asyncio.new_event_loop()
    loop.set_default_executor(executor_apart())
    loop.time = CLOCK.monotonic  # type: ignore[method-assign]
    try:
        return _run(loop, loop.create_task(main))
    finally:
        _end(loop)


def _run(loop: asyncio.AbstractEventLoop, main: asyncio.Task[T]) -> T:
    """A task that a user's agent started may call `sys.exit`, which stops the loop, but not what `main` is about."""
    while True:
        try:
            return loop.run_until_complete(main)
        except SystemExit:
            if main.done():
                raise


def _end(loop: asyncio.AbstractEventLoop) -> None:
    leftover = asyncio.all_tasks(loop)
    for task in leftover:
        task.cancel()
    if leftover:
        loop.run_until_complete(asyncio.wait(leftover, timeout=LEFTOVER_SECONDS))
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
            return run_sync(verb(*args, **kwargs))
        except AssertionError as failed:
            raise failed.with_traceback(None) from None  # ends in the caller's own line, not in the event loop

    synchronous.__name__ = synchronous.__qualname__ = f"{verb.__name__}_sync"
    synchronous.__module__ = home
    synchronous.__doc__ = f"`{verb.__name__}`, for code without an event loop."
    return synchronous
