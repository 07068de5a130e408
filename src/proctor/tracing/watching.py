"""Watches an application while it runs: threads that it starts belong to its trial, model clients report their calls.

A client is instrumented when it is imported, or at once where that has happened: nothing is loaded for clients that an
application does not use.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from proctor.tracing.capture import DELIVERY, SCOPE, listen_to_opentelemetry
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


CLIENTS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google.genai": "google_genai",
    "mistralai": "mistralai",
    "groq": "groq",
    "litellm": "litellm",
    "boto3": "bedrock",
    "vertexai": "vertexai",
}
"""Modules that ask models, and the name of the OpenInference instrumentation of each."""
FRAMEWORKS = {
    "agents": "openai_agents",
    "agno": "agno",
    "autogen": "autogen",
    "beeai_framework": "beeai",
    "claude_agent_sdk": "claude_agent_sdk",
    "crewai": "crewai",
    "dspy": "dspy",
    "google.adk": "google_adk",
    "haystack": "haystack",
    "instructor": "instructor",
    "langchain_core": "langchain",
    "llama_index.core": "llama_index",
    "smolagents": "smolagents",
}
"""Frameworks of agents, whose model calls are seen through their client as well."""
WITHOUT_PACKAGE = {"pydantic_ai"}
"""Frameworks that bring their own instrumentation."""

WATCHED = frozenset({*CLIENTS, *FRAMEWORKS, *WITHOUT_PACKAGE})


@contextlib.contextmanager
def instrumenting() -> Iterator[None]:
    """While inside, model clients that are imported, or already were, report their calls to OpenTelemetry."""
    _WATCH.enter()
    try:
        yield
    finally:
        _WATCH.leave()


def missing_instrumentation() -> str:
    """What to install so that the calls of clients in use are seen; empty where nothing is missing."""
    blind = [name for name in CLIENTS if name in sys.modules and name not in _WATCH.instrumented]
    if not blind:
        return ""
    wanted = [f"openinference-instrumentation-{CLIENTS[name].replace('_', '-')}" for name in blind]
    sdk = [] if _is_installed("opentelemetry.sdk") else ["'proctor[tracing]'"]
    return f"calls of {' and '.join(blind)} are not seen without: pip install {' '.join(sdk + wanted)}"


class _ImportWatch:
    """A finder that finds nothing itself: it lets a client be instrumented as soon as its module is executed."""

    def __init__(self) -> None:
        self.instrumented: set[str] = set()
        self._tried: set[str] = set()
        self._inside = 0
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                sys.meta_path.insert(0, self)
        for name in WATCHED - self._tried:
            if name in sys.modules:
                self._instrument(name)

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self in sys.meta_path:
                sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name not in WATCHED or name in self._tried:
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next((spec for finder in others if (spec := finder.find_spec(name, path, target)) is not None), None)
        loader: Any = None if spec is None else spec.loader
        if hasattr(loader, "exec_module"):
            with contextlib.suppress(AttributeError):  # a loader that cannot be watched loads all the same
                loader.exec_module = self._watched(name, loader.exec_module)
        return spec

    def _watched(self, name: str, execute: Callable[[Any], None]) -> Callable[[Any], None]:
        @functools.wraps(execute)
        def executed(module: Any) -> None:
            execute(module)
            self._instrument(name)

        return executed

    def _instrument(self, name: str) -> None:
        with self._lock:
            if name in self._tried:
                return
            self._tried.add(name)
        # without the lock: another thread may be importing the same module, and would wait for it
        with contextlib.suppress(Exception):  # made for another version of its library: that one is not traced
            if _switched_on(name):
                self.instrumented.add(name)


_WATCH = _ImportWatch()


def _switched_on(name: str) -> bool:
    if name == "pydantic_ai":
        return _pydantic_ai()
    short = CLIENTS.get(name) or FRAMEWORKS[name]
    if not _is_installed(f"openinference.instrumentation.{short}") or not listen_to_opentelemetry():
        return False
    from proctor.tracing.otel import instrument

    return instrument(short)


def _pydantic_ai() -> bool:
    """Its agents make spans of their own accord, unless the application has said otherwise."""
    if not listen_to_opentelemetry():
        return False
    from pydantic_ai import Agent

    if getattr(Agent, "_instrument_default", None) is False:
        Agent.instrument_all(True)
    return True


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
