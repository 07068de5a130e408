"""Runs users' synchronous code in threads, so that it does not block the event loop.

The obvious ways are wrong for code that may hang. `asyncio.to_thread` and `anyio.to_thread` use threads that are joined
when Python ends: a call that was abandoned after its timeout keeps the process alive for as long as it sleeps, and in
pytest there is no parent process that could end it. Their number is limited too, so that a few abandoned calls leave no
thread for the next one. `DaemonThreadPool` starts as many daemon threads as are busy at the same time and uses idle
ones again. It is one pool for the whole process; event loops have it as their default executor, so that
`asyncio.to_thread` in an agent behaves in the same way.

Sync wrappers of frameworks call `asyncio.get_event_loop()`, which fails in a thread without a loop. So each thread of
the pool has one. `asyncio.run` takes the loop of its thread away when it ends, so it is set again before each call.

`SystemExit` and `KeyboardInterrupt` would stop the event loop that awaits the call, and `StopIteration` cannot be
raised into a coroutine at all: it would wait forever. The pool replaces them with ordinary exceptions.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import functools
import inspect
import os
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from os import getpid  # an agent may replace that of the module
from typing import Any

from proctor.base.errors import AgentRaised, one_line
from proctor.base.guard import ANY_EXCEPTION, restore_essential_builtins

IDLE_SECONDS = 10.0
"""How long a thread waits for its next call before it ends."""


class DaemonThreadPool(ThreadPoolExecutor):
    """Threads that neither delay the end of the process nor limit how many calls run at once.

    It is a `ThreadPoolExecutor` because event loops accept no other default executor; the threads are its own.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)
        self._loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
        self.forget_threads()
        atexit.register(self._close_loops)

    def forget_threads(self) -> None:
        """Start without any thread, as in a forked process, which has none of its parent's."""
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._busy: dict[int, contextvars.Context] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` in a thread, with a copy of the caller's context."""
        future: Future[Any] = Future()
        context = contextvars.copy_context()
        pid = getpid()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            self._busy[threading.get_ident()] = context
            try:
                result, error = context.run(fn, *args, **kwargs), None
            except ANY_EXCEPTION as raised:
                restore_essential_builtins()
                result, error = None, _deliverable(raised)
            finally:
                restore_essential_builtins()
                self._busy.pop(threading.get_ident(), None)
            exit_if_forked(pid)
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        with self._lock:
            is_thread_idle = self._idle > 0
            if is_thread_idle:
                self._idle -= 1
        self._calls.put(call)
        if not is_thread_idle:
            thread = threading.Thread(target=self._work, name="proctor-worker", daemon=True)
            contextvars.Context().run(thread.start)  # it outlives the trial whose context this is
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: event loops shut their executor down when they close, and this one serves all of them."""

    def busy_threads(self) -> dict[int, contextvars.Context]:
        """The threads that run a call at the moment, by their identifier, each with the context of its call."""
        return dict(self._busy)

    def _work(self) -> None:
        """Take calls until there is none for a while. `_idle` counts the threads that no `submit` relies on."""
        loop = self._new_loop()
        while True:
            try:
                call = self._calls.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        break
                continue  # a call is about to reach this thread
            if loop is not None and loop.is_closed():
                loop = self._new_loop()
            asyncio.set_event_loop(loop)
            call()
            del call  # or an idle thread would keep the last answer and its context alive
            with self._lock:
                self._idle += 1
        if loop is not None and not loop.is_running():
            loop.close()

    def _new_loop(self) -> asyncio.AbstractEventLoop | None:
        """A loop takes three file descriptors; if there are no more, the code can do without."""
        try:
            loop = asyncio.new_event_loop()
        except Exception:  # an agent may also have broken what a loop is made of
            return None
        self._loops.add(loop)
        return loop

    def _close_loops(self) -> None:
        """At the end of the process, when idle threads are still there: unclosed loops would be reported."""
        for loop in list(self._loops):
            if not loop.is_running():
                loop.close()


def _deliverable(error: BaseException) -> Exception:
    """The exception that the caller of a thread gets for `error`; see the top of this file."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    replacement = RuntimeError if isinstance(error, StopIteration) else AgentRaised
    failure = replacement(f"raised {one_line(error)}")
    failure.__cause__ = error
    return failure


POOL = DaemonThreadPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget_threads)


async def run_in_thread(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call `function` in a thread with this task's context; if the task is cancelled, the thread is abandoned."""
    call = functools.partial(function, *args, **kwargs)
    result, error = await asyncio.get_running_loop().run_in_executor(POOL, _result_or_error, call)
    if error is not None:
        raise error
    return result


def _result_or_error(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a call returns or raises. asyncio would replace a `TimeoutError` by a new one, without its traceback."""
    try:
        return call(), None
    except Exception as error:
        return None, _deliverable(error)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling `function` only creates a coroutine or an async generator, so that the event loop can call it.

    Partials and objects with an async `__call__` count. Wrappers are not looked through: one that runs its coroutine
    itself blocks.
    """
    while isinstance(function, functools.partial):
        function = function.func
    method = getattr(type(function), "__call__", function)  # noqa: B004  the method itself is needed
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in (function, method))


def exit_if_forked(pid: int) -> None:
    """End this process if an agent forked it from process `pid` and its code returned to us instead of ending."""
    if getpid() != pid:
        os._exit(0)
