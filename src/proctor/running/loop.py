"""One way from synchronous code into the event loop, which ends even if somebody's coroutine does not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from proctor.agents.threads import executor_apart

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
    try:
        return _run(loop, loop.create_task(main))
    finally:
        _end(loop)


def _run(loop: asyncio.AbstractEventLoop, main: asyncio.Task[T]) -> T:
    """A task that somebody's agent started may call `sys.exit`, which stops the loop, but not what `main` is about."""
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
