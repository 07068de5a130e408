"""Makes model clients report their calls while a trace is captured, without a line in the application.

A client is instrumented when it is imported, or at once where that has happened: nothing is loaded for clients that an
application does not use.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from proctor.tracing.capture import listen_to_opentelemetry

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
