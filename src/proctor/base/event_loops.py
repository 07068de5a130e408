"""Runs coroutines from synchronous code: the command line, scripts, notebooks and test sessions.

Three things make `asyncio.run` the wrong tool.

- It waits for every task that is left when the main one ends. A user's task that swallows `CancelledError` keeps it
  waiting forever. `run_sync` cancels what is left, waits a second and closes the loop.
- It refuses to run inside a running loop, and a notebook always has one. `run_blocking` uses a thread there.
- It creates a new loop for each call, and the clients of an application belong to the loop that created them. A
  test session calls us once per test, so `run_in_session_loop` uses one loop per thread from its first call to the end
  of the session. `asyncio.Runner` would do this, but its calls would all see the context variables of the first one,
  and its `close` waits like `asyncio.run`.
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

from proctor.base.clock import Clock
from proctor.base.threads import POOL

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

CANCEL_GRACE_SECONDS = 1.0
"""How long a cancelled task may take to end before its loop is closed without it."""


def run_sync(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in a new event loop and return its result."""
    _refuse_inside_loop(main)
    loop = _loop_for(main)
    try:
        return _run_until_done(loop, loop.create_task(main))
    finally:
        _end_loop(loop)


def run_blocking(main: Coroutine[Any, Any, T]) -> T:
    """`run_sync` that also works inside a running event loop, where it uses a thread and the running loop waits.

    An interrupt cancels `main` and is raised again once `main` has cleaned up; a second interrupt does not wait.
    """
    if not is_loop_running():
        return run_sync(main)
    loop = _loop_for(main)
    task = loop.create_task(main)
    result: concurrent.futures.Future[T] = concurrent.futures.Future()

    def work() -> None:
        try:
            try:
                answer = _run_until_done(loop, task)
            finally:
                _end_loop(loop)
            result.set_result(answer)
        except BaseException as error:
            result.set_exception(error)

    thread = threading.Thread(target=work, name="proctor-run", daemon=True)
    thread.start()
    try:
        return result.result()
    except KeyboardInterrupt:
        with contextlib.suppress(RuntimeError):  # the loop may have been closed just now
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise


class _SessionLoop:
    """The event loop of one thread in a session; closed when the thread ends, when Python does, or by `close`."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self.close = weakref.finalize(self, _end_loop, self.loop)


_SESSION = threading.local()
_SESSION_LOOPS: weakref.WeakSet[_SessionLoop] = weakref.WeakSet()


def run_in_session_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` in the session's loop of this thread. Tasks that it leaves behind continue during the next call."""
    _refuse_inside_loop(main)
    session: _SessionLoop | None = getattr(_SESSION, "loop", None)
    if session is None or session.loop.is_closed():
        session = _SESSION.loop = _SessionLoop()
        _SESSION_LOOPS.add(session)
    task = session.loop.create_task(main)
    try:
        return _run_until_done(session.loop, task)
    finally:
        if not task.done():  # interrupted
            _cancel(session.loop, {task})


def close_session_loops() -> None:
    """Close the loops of all threads, at the end of a test session. A later call creates a new one."""
    for session in list(_SESSION_LOOPS):
        if not session.loop.is_running():
            session.close()


def sync_version(function: Callable[P, Coroutine[Any, Any, R]], module: str) -> Callable[P, R]:
    """The synchronous version of `function`, for callers without an event loop; `module` is where it is defined.

    It is a second function because one that did both could not know whether `asyncio.run(function(...))` follows: the
    argument is evaluated before that loop runs.
    """

    @functools.wraps(function)
    def synchronous(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return run_in_session_loop(function(*args, **kwargs))
        except AssertionError as failure:
            raise failure.with_traceback(None) from None  # ends in the caller's own line, not in the event loop

    synchronous.__name__ = synchronous.__qualname__ = f"{function.__name__}_sync"
    synchronous.__module__ = module
    synchronous.__doc__ = f"`{function.__name__}`, for code without an event loop."
    return synchronous


def is_loop_running() -> bool:
    """Whether the caller runs inside an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _refuse_inside_loop(main: Coroutine[Any, Any, Any]) -> None:
    if is_loop_running():
        main.close()
        raise RuntimeError("an event loop is already running; await the asynchronous version instead")


def _loop_for(main: Coroutine[Any, Any, Any]) -> asyncio.AbstractEventLoop:
    """A new loop; if this process cannot open the files for one, `main` is closed, so that nobody waits for it."""
    try:
        return _new_loop()
    except OSError:
        main.close()
        raise


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.time = Clock.monotonic  # type: ignore[method-assign]  # timers must work while a test freezes time
    loop.set_default_executor(POOL)
    return loop


def _run_until_done(loop: asyncio.AbstractEventLoop, main: asyncio.Task[T]) -> T:
    """Run until `main` ends, even if a task that an agent started calls `sys.exit`, which stops the loop."""
    while True:
        try:
            return loop.run_until_complete(main)
        except SystemExit:
            if main.done():
                raise


def _cancel(loop: asyncio.AbstractEventLoop, tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_GRACE_SECONDS))


def _end_loop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # a user's code may have closed the loop itself
        _cancel(loop, asyncio.all_tasks(loop))
        loop.set_exception_handler(lambda loop, context: None)
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
