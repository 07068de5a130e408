"""Makes plain threads that an application starts belong to the trial: Python gives them no context."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from proctor.tracing.capture import DELIVERY, SCOPE
from proctor.tracing.trial_recording import CURRENT


@contextlib.contextmanager
def carry_context_into_threads() -> Iterator[None]:
    """While inside, threads and pooled jobs that are started in a trial or a capture belong to it.

    Several may be inside at once; the last to leave puts back what the first one found.
    """
    _PATCH.enter()
    try:
        yield
    finally:
        _PATCH.leave()


class _ThreadPatch:
    """Replaces two functions of the standard library while at least one run is inside, and counts the runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._put_back: list[Callable[[], None]] = []

    def enter(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._replace(threading.Thread, "start", self._starting)
                self._replace(ThreadPoolExecutor, "submit", self._submitting)
                self._watch_thread_pools()

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for put_back in reversed(self._put_back):
                    put_back()
                self._put_back.clear()

    def _watch_thread_pools(self) -> None:
        """The older kind of pool, where its module is loaded: joblib and others still use it."""
        pools = sys.modules.get("multiprocessing.pool")
        if pools is None or "apply_async" in vars(pools.ThreadPool):
            return
        for name in ("apply_async", "_map_async", "imap", "imap_unordered"):
            setattr(pools.ThreadPool, name, self._pooling(getattr(pools.Pool, name)))
            self._put_back.append(functools.partial(delattr, pools.ThreadPool, name))

    def _pooling(self, found: Any) -> Any:
        @functools.wraps(found)
        def pooled(pool: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if not self._carries():
                return found(pool, func, *args, **kwargs)
            context = contextvars.copy_context()
            # a copy for each job, since jobs of one call run at the same time
            return found(pool, lambda *given, **named: context.copy().run(func, *given, **named), *args, **kwargs)

        return pooled

    def _replace(self, owner: type, name: str, make: Callable[[Any], Any]) -> None:
        found = owner.__dict__[name]
        ours = make(found)
        setattr(owner, name, ours)

        def put_back() -> None:
            if owner.__dict__[name] is ours:  # another library may have replaced it since, and calls ours
                setattr(owner, name, found)

        self._put_back.append(put_back)

    def _carries(self) -> bool:
        return self._inside > 0 and (CURRENT.get() is not None or SCOPE.get() is not None)

    def _starting(self, found: Any) -> Any:
        def start(thread: threading.Thread) -> None:
            if self._carries():
                self._watch_thread_pools()
                if not _outlives_its_starter(thread):
                    _carry(thread)
            found(thread)

        return start

    def _submitting(self, found: Any) -> Any:
        def submit(executor: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            if not self._carries():
                return found(executor, fn, *args, **kwargs)
            return found(executor, contextvars.copy_context().run, fn, *args, **kwargs)

        return submit


def _outlives_its_starter(thread: threading.Thread) -> bool:
    """A worker of a pool serves later jobs too, so it must not belong to the trial that started it."""
    from concurrent.futures import thread as pool

    from proctor.base import threads

    target = getattr(thread, "_target", None)
    owner = getattr(target, "__self__", None)
    older = sys.modules.get("multiprocessing.pool")
    is_pooled = target is getattr(pool, "_worker", None) or target is getattr(older, "worker", None)
    return target is not None and (is_pooled or owner in (threads._WORKERS, DELIVERY))


def _carry(thread: threading.Thread) -> None:
    context = contextvars.copy_context()

    def run() -> None:
        vars(thread).pop("run", None)  # the thread must not hold itself
        context.run(thread.run)

    if "run" not in vars(thread):
        thread.run = run  # type: ignore[method-assign]


_PATCH = _ThreadPatch()
