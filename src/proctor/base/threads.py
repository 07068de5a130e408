"""Runs synchronous user code apart from the event loop, so that it neither blocks others nor keeps the process alive.

Threads are daemons: an agent that never returns is abandoned when its time is up, and the process can still end.
`invoke` calls any user code: sync code in a thread, async code directly, streams joined.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from proctor.base.errors import AgentFailed
from proctor.base.guard import end_fork_of
from proctor.base.references import describe
from proctor.base.reply_size import Pieces

_IDLE_SECONDS = 10.0


class _Workers:
    """As many threads as are needed at once; idle ones are used again, then end."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            spare = self._idle > 0
            if spare:
                self._idle -= 1
        self._jobs.put(job)
        if not spare:
            threading.Thread(target=self._work, name="proctor-worker", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._idle > 0:
                        self._idle -= 1
                        return
                continue
            job()
            del job  # an idle thread must not keep an answer, its context or its event loop alive
            with self._lock:
                self._idle += 1


class _Deliveries:
    """Brings results back to one event loop; however many arrive together, the loop is woken once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)  # it is the loop that keeps this alive, and not the other way round
        self._ready: deque[tuple[asyncio.Future[Any], Any, Exception | None]] = deque()
        self._lock = threading.Lock()
        self._woken = False

    def put(self, future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
        self._ready.append((future, result, error))
        with self._lock:
            woken, self._woken = self._woken, True
        if not woken:
            loop = self._loop()
            with contextlib.suppress(RuntimeError):  # if the loop has ended, no task waits for the answer any more
                if loop is not None:
                    loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            self._woken = False
        while self._ready:
            future, result, error = self._ready.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(result)
            elif isinstance(error, StopIteration):
                future.set_exception(RuntimeError(f"raised {describe(error)}"))
            else:
                future.set_exception(error)


_WORKERS = _Workers()
_DELIVERIES: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Deliveries] = weakref.WeakKeyDictionary()


async def call_in_thread(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call `function` in a worker thread with this task's context; cancelling abandons the thread, not the loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    deliveries = _DELIVERIES.get(loop) or _DELIVERIES.setdefault(loop, _Deliveries(loop))
    context = contextvars.copy_context()
    pid = os.getpid()

    def job() -> None:
        try:
            result, error = context.run(function, *args, **kwargs), None
        except Exception as raised:
            result, error = None, raised
        except BaseException as raised:
            result, error = None, AgentFailed(f"raised {describe(raised)}")
        end_fork_of(pid)
        deliveries.put(future, result, error)

    _WORKERS.submit(job)
    return await future


def executor_apart() -> Any:
    """For `asyncio.to_thread` in other people's code: the standard executor waits for its threads when Python ends."""
    from concurrent.futures import Future, ThreadPoolExecutor

    class Apart(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            context = contextvars.copy_context()

            def job() -> None:
                if not future.set_running_or_notify_cancel():
                    return
                try:
                    result = context.run(fn, *args, **kwargs)
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)

            _WORKERS.submit(job)
            return future

    return Apart()


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it runs nothing yet: coroutine and async generator functions, partials and `__call__` included.

    Wrappers are not looked through: one that runs its coroutine itself must not be called on the event loop.
    """
    while isinstance(function, functools.partial):
        function = function.func
    method = getattr(type(function), "__call__", function)  # noqa: B004  the method itself is wanted
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in (function, method))


async def invoke(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call any function and wait for its whole answer."""
    return await invoke_as(is_async(function), function, args, kwargs)


async def invoke_as(
    asynchronous: bool, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What the function answers in the end: awaited if it must be, and joined if it comes in chunks."""
    if asynchronous:
        result = function(*args, **kwargs)
    else:
        result = await call_in_thread(_call_and_drain, function, *args, **kwargs)
    if inspect.isawaitable(result):
        result = await result
    if inspect.isasyncgen(result):
        pieces = Pieces()
        async for chunk in result:
            pieces.add(chunk)
        return pieces.text()
    if inspect.isgenerator(result):
        return await call_in_thread(join_chunks, result)
    return result


def _call_and_drain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """A generator does its work while it is drained, so that has to happen in the same thread."""
    result = function(*args, **kwargs)
    return join_chunks(result) if inspect.isgenerator(result) else result


def join_chunks(chunks: Iterable[Any]) -> str:
    """The whole text of an answer that came in pieces."""
    pieces = Pieces()
    for chunk in chunks:
        pieces.add(chunk)
    return pieces.text()
