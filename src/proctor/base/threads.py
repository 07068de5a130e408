"""Runs synchronous user code apart from the event loop, and coroutines from synchronous code.

Both leave the process free to end: a thread or a coroutine of the user that hangs does not keep it alive.
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
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from time import monotonic, perf_counter, time
from typing import Any, TypeVar

from proctor.base.errors import AgentFailed
from proctor.base.references import describe
from proctor.base.reply_size import UNDERWAY, Pieces

T = TypeVar("T")
_IDLE_SECONDS = 10.0
LEFTOVER_SECONDS = 1.0


class CLOCK:
    """The clocks as they were when Proctor was loaded: an agent or a test that patches `time` changes no measurement.

    A class and not module variables: libraries that freeze time look for its functions in modules.
    """

    time = staticmethod(time)
    monotonic = staticmethod(monotonic)
    perf_counter = staticmethod(perf_counter)


_LOOPS: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
"""Loops of worker threads, which do not live to see the end of the process."""


def _remember(loop: asyncio.AbstractEventLoop) -> None:
    import atexit

    if not _LOOPS:
        atexit.register(lambda: [each.close() for each in _LOOPS if not each.is_running()])
    _LOOPS.add(loop)


class _LoopOnDemand(asyncio.AbstractEventLoop):
    """An event loop for sync code that asks its thread for one; made when it is first used, since most code does not.

    It stands aside then: the thread's loop is the real one from there on.
    """

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        made = object.__getattribute__(self, "__dict__")
        if "loop" not in made:
            made["loop"] = asyncio.new_event_loop()
            asyncio.set_event_loop(made["loop"])
            _remember(made["loop"])
        return getattr(made["loop"], name)

    @staticmethod
    def offer() -> None:
        """Give this thread a loop, unless it has one that is of use."""
        try:
            current = asyncio.get_event_loop()
            usable = isinstance(current, _LoopOnDemand) or not current.is_closed()
        except RuntimeError:
            usable = False
        if not usable:
            asyncio.set_event_loop(_LoopOnDemand())  # type: ignore[abstract]

    @staticmethod
    def end() -> None:
        """Close the loop of this thread, which ends."""
        with contextlib.suppress(RuntimeError):
            current = asyncio.get_event_loop()
            if not isinstance(current, _LoopOnDemand) and not current.is_running():
                current.close()
            asyncio.set_event_loop(None)


class _Workers:
    """As many threads as are needed at once; idle ones are used again, then end."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, without any thread."""
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
                        _LoopOnDemand.end()
                        return
                continue
            _LoopOnDemand.offer()
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
if hasattr(os, "register_at_fork"):  # a fork has none of the threads that were idle here
    os.register_at_fork(after_in_child=_WORKERS.forget)
_DELIVERIES: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Deliveries] = weakref.WeakKeyDictionary()


async def call_in_thread(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call `function` in a worker thread with this task's context; cancelling abandons the thread, not the loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    deliveries = _DELIVERIES.get(loop) or _DELIVERIES.setdefault(loop, _Deliveries(loop))
    context = contextvars.copy_context()
    pid = os.getpid()

    turn = UNDERWAY.get()
    threads = [] if turn is None else turn.threads

    def job() -> None:
        threads.append(own := threading.get_ident())
        try:
            result, error = context.run(function, *args, **kwargs), None
        except Exception as raised:
            result, error = None, raised
        except BaseException as raised:
            result, error = None, AgentFailed(f"raised {describe(raised)}")
            error.__cause__ = raised
        end_fork_of(pid)
        threads.remove(own)
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


def run_sync(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end. Tasks it abandoned are cancelled, but not waited for longer than a moment."""
    refuse_inside_loop(main)
    loop = new_loop()
    try:
        return run_to_end(loop, loop.create_task(main))
    finally:
        end_loop(loop)


def is_loop_running() -> bool:
    """Whether this is called from inside an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def refuse_inside_loop(main: Coroutine[Any, Any, Any]) -> None:
    if is_loop_running():
        main.close()
        raise RuntimeError("an event loop is running here already: await the asynchronous form instead")


def new_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.time = CLOCK.monotonic  # type: ignore[method-assign]
    loop.set_default_executor(executor_apart())
    return loop


def run_to_end(loop: asyncio.AbstractEventLoop, main: asyncio.Task[T]) -> T:
    """A task that a user's agent started may call `sys.exit`, which stops the loop, but not what `main` is about."""
    while True:
        try:
            return loop.run_until_complete(main)
        except SystemExit:
            if main.done():
                raise


def cancel_tasks(loop: asyncio.AbstractEventLoop, leftover: set[asyncio.Task[Any]]) -> None:
    for task in leftover:
        task.cancel()
    if leftover:
        loop.run_until_complete(asyncio.wait(leftover, timeout=LEFTOVER_SECONDS))


def end_loop(loop: asyncio.AbstractEventLoop) -> None:
    with contextlib.suppress(RuntimeError):  # of a loop that a user's code has closed itself
        cancel_tasks(loop, asyncio.all_tasks(loop))
        loop.set_exception_handler(lambda loop, context: None)
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def end_fork_of(pid: int) -> None:
    """End this process if an agent's code forked it from `pid`, and came back here instead of ending it."""
    if os.getpid() != pid:
        os._exit(0)
