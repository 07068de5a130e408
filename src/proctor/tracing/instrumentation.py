"""Enables instrumentations of model clients while traces are captured, and disables them afterwards.

An instrumentation is enabled when its client is imported, or at once if that has already happened: nothing is loaded
for clients that an application does not use. `wrapt.register_post_import_hook` reports imports; every OpenInference
instrumentation depends on wrapt. Without wrapt only clients that were imported before the capture are traced.

Instrumentations report to Proctor's own tracer provider and are disabled when the last capture ends. Leaving them on
would let every later agent in the process report its prompts, for example to the application's exporter.

Imports happen in any thread, under the import lock of the module, and enabling an instrumentation imports modules as
well. If an import hook waited for a thread that is enabling one, both could wait for each other for ever. So all
changes go through `_Instrumentations.update`, which enables the missing ones and disables the others. A hook does not
wait for it: if another thread is updating, that thread checks again before it returns.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from proctor.base.installation import extra_arguments, pip_command
from proctor.base.json_data import Json

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
"""Modules of model clients, and the name of the OpenInference instrumentation of each."""
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
"""Agent frameworks. Their model calls are also traced through the client."""
SELF_INSTRUMENTED = {"pydantic_ai"}
"""Frameworks that contain their own instrumentation."""
OPENTELEMETRY = "opentelemetry.sdk.trace"
"""The module that applications import to create spans."""

INSTRUMENTED_MODULES = frozenset({*CLIENTS, *FRAMEWORKS, *SELF_INSTRUMENTED})

Disable = Callable[[], None]


@contextlib.contextmanager
def instrument_clients() -> Iterator[None]:
    """Enable the instrumentations of imported model clients inside the block, also of clients imported there."""
    _watch_imports()
    _INSTRUMENTATIONS.enter()
    try:
        yield
    finally:
        _INSTRUMENTATIONS.leave()


def missing_instrumentation() -> str:
    """What to install so that the calls of imported clients are traced; empty if nothing is missing."""
    untraced = [name for name in CLIENTS if _is_imported(name) and name not in _INSTRUMENTATIONS.usable]
    return f"to trace the calls of {' and '.join(untraced)}: {_pip_install(untraced)}" if untraced else ""


@functools.cache
def install_advice(*modules: str) -> str:
    """The command that makes the calls of clients visible; empty if no package would, or if all are installed.

    Looked up once: every turn of an agent may ask, and searching for packages takes longer than the rest of the turn.
    """
    missing = [name for name in modules if name in CLIENTS and not is_instrumentation_installed(name)]
    return _pip_install(missing) if missing else ""


def is_instrumentation_installed(module: str) -> bool:
    """Whether the calls of a client, or of a framework, will be traced."""
    short = CLIENTS.get(module) or FRAMEWORKS.get(module)
    is_there = module in SELF_INSTRUMENTED or (short and _is_installed(f"openinference.instrumentation.{short}"))
    return bool(is_there) and _is_installed("opentelemetry.sdk")


def instrumentation_package(module: str) -> str:
    """The package to install for a client or a framework; empty if there is none."""
    short = CLIENTS.get(module) or FRAMEWORKS.get(module)
    return f"openinference-instrumentation-{short.replace('_', '-')}" if short else ""


def _pip_install(modules: Iterable[str]) -> str:
    sdk = () if _is_installed("opentelemetry.sdk") else extra_arguments("tracing")
    return pip_command(*sdk, *map(instrumentation_package, modules))


class _Instrumentations:
    """The instrumentations that are enabled, and the number of captures that need them."""

    def __init__(self) -> None:
        self.usable: set[str] = set()
        """Modules whose instrumentation could be enabled."""
        self._captures = 0
        self._state_lock = threading.Lock()
        self._update_lock = threading.RLock()
        self._imported: set[str] = set()
        self._unusable: set[str] = set()
        self._disable: dict[str, Disable] = {}

    def enter(self) -> None:
        with self._state_lock:
            self._captures += 1
            self._imported |= {name for name in INSTRUMENTED_MODULES if _is_imported(name)}
        self.update(wait=True)

    def leave(self) -> None:
        with self._state_lock:
            self._captures -= 1
        self.update(wait=True)

    def imported(self, name: str) -> None:
        """Called after the import of a client; never raises, since that would break the import."""
        with self._state_lock:
            self._imported.add(name)
        with contextlib.suppress(Exception):
            self.update(wait=False)

    def update(self, *, wait: bool) -> None:
        """Enable missing instrumentations and disable superfluous ones, until there are neither.

        The check is repeated on behalf of threads that did not wait.
        """
        while self._needs_update() and self._update_lock.acquire(blocking=wait):
            try:
                for name in self._missing():
                    self._enable(name)
                for name in self._superfluous():
                    with contextlib.suppress(Exception):
                        self._disable.pop(name)()
            finally:
                self._update_lock.release()

    def _needs_update(self) -> bool:
        return bool(self._missing() or self._superfluous())

    def _missing(self) -> set[str]:
        with self._state_lock:
            return self._imported - set(self._disable) - self._unusable if self._captures else set()

    def _superfluous(self) -> list[str]:
        return [] if self._captures else list(self._disable)

    def _enable(self, name: str) -> None:
        try:
            disable = _enable(name)
        except Exception:  # it is for another version of its library, which is then not traced
            disable = None
        if disable is None:
            self._unusable.add(name)
        else:
            self.usable.add(name)
            self._disable[name] = disable


_INSTRUMENTATIONS = _Instrumentations()


@functools.cache
def _watch_imports() -> None:
    """Report imports of clients to `_INSTRUMENTATIONS` from now on, if any instrumentation is installed."""
    if not any(_is_installed(name) for name in ("openinference", *SELF_INSTRUMENTED)):
        return
    try:
        import wrapt
    except ImportError:
        return
    for name in INSTRUMENTED_MODULES:
        wrapt.register_post_import_hook(functools.partial(_imported, name), name)


def _imported(name: str, module: Any) -> None:
    _INSTRUMENTATIONS.imported(name)


def _is_imported(name: str) -> bool:
    """Whether the application has imported a module."""
    return name in sys.modules


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _enable(name: str) -> Disable | None:
    """Enable the instrumentation of a library; returns a function that disables it, or `None` if it fails."""
    if name == "pydantic_ai":
        return _instrument_pydantic_ai()
    short = CLIENTS.get(name) or FRAMEWORKS[name]
    if not _is_installed(f"openinference.instrumentation.{short}"):
        return None
    otel = opentelemetry_bridge()
    return None if otel is None else otel.instrument(short)


def _instrument_pydantic_ai() -> Disable | None:
    """Enable the spans of Pydantic AI's agents, unless the application has configured them."""
    otel = opentelemetry_bridge()
    if otel is None:
        return None
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings

    if getattr(Agent, "_instrument_default", None) is not False:
        return lambda: None
    ours = InstrumentationSettings(tracer_provider=otel.own_provider())
    Agent.instrument_all(ours)

    def disable() -> None:
        if getattr(Agent, "_instrument_default", None) is ours:
            Agent.instrument_all(False)

    return disable


@functools.cache
def opentelemetry_bridge() -> Any:
    """The module `otel`; `None` without OpenTelemetry's SDK, or with a version that is not supported."""
    if not _is_installed("opentelemetry.sdk"):
        return None
    try:
        from proctor.tracing import otel
    except ImportError:
        return None
    return otel


_LISTENING = threading.Event()


def listen_to_opentelemetry() -> bool:
    """Collect OpenTelemetry's spans from now on; returns `False` if its SDK is not installed."""
    otel = opentelemetry_bridge()
    if otel is None:
        return False
    otel.attach()
    _LISTENING.set()
    return True


def listen_if_in_use() -> None:
    """Collect OpenTelemetry's spans if the application uses its SDK; if not, do not load it, which takes time."""
    if _LISTENING.is_set() or _is_imported(OPENTELEMETRY):
        listen_to_opentelemetry()


def begin_otel_span(name: str, kind: str | None, value: Json) -> Any:
    """Start an OpenTelemetry span with the input `value`; `None` if OpenTelemetry's spans are not collected."""
    return opentelemetry_bridge().begin(name, kind, value) if _LISTENING.is_set() else None
