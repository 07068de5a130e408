"""Switches instrumentations of model clients on while somebody captures, and off again afterwards.

An instrumentation is switched on when its client is imported, or at once if that has happened already: nothing is
loaded for clients that an application does not use. Imports are noticed by `wrapt.register_post_import_hook`; every
OpenInference instrumentation depends on wrapt. Without wrapt only clients that were imported before are seen.

Instrumentations report to a tracer provider of Proctor's own and are switched off when the last capture ends. Leaving
them on would let every later agent in the process report its prompts, for example to the application's exporter.

Imports happen in any thread, under that module's import lock, and switching an instrumentation on imports modules as
well. A hook that waited for a thread which is switching could therefore wait for ever. So all state changes go through
`_Switchboard.settle`, which brings the instrumentations in line with what is wanted. A hook does not wait for it: if
another thread is settling, that thread looks again before it returns.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from proctor.base.json_data import Json
from proctor.version import DISTRIBUTION

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
"""Modules that call models, and the name of the OpenInference instrumentation of each."""
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
SELF_INSTRUMENTED = {"pydantic_ai"}
"""Frameworks that bring their own instrumentation."""
OPENTELEMETRY = "opentelemetry.sdk.trace"
"""Imported by applications that make spans themselves."""

INSTRUMENTED_MODULES = frozenset({*CLIENTS, *FRAMEWORKS, *SELF_INSTRUMENTED})

SwitchOff = Callable[[], None]


@contextlib.contextmanager
def instrument_clients() -> Iterator[None]:
    """While inside, model clients that are imported, or already were, report their calls."""
    _watch_imports()
    _SWITCHBOARD.enter()
    try:
        yield
    finally:
        _SWITCHBOARD.leave()


def missing_instrumentation() -> str:
    """What to install so that the calls of clients in use are seen; empty if nothing is missing."""
    unseen = [name for name in CLIENTS if _is_imported(name) and name not in _SWITCHBOARD.usable]
    if not unseen:
        return ""
    packages = [f"openinference-instrumentation-{CLIENTS[name].replace('_', '-')}" for name in unseen]
    sdk = [] if _is_installed("opentelemetry.sdk") else [f"'{DISTRIBUTION}[tracing]'"]
    return f"calls of {' and '.join(unseen)} are not seen without: pip install {' '.join(sdk + packages)}"


class _Switchboard:
    """Which instrumentations are on, and how many captures want them."""

    def __init__(self) -> None:
        self.usable: set[str] = set()
        """Modules whose instrumentation could be switched on."""
        self._captures = 0
        self._counting = threading.Lock()
        self._settling = threading.RLock()
        self._imported: set[str] = set()
        self._unusable: set[str] = set()
        self._on: dict[str, SwitchOff] = {}

    def enter(self) -> None:
        with self._counting:
            self._captures += 1
            self._imported |= {name for name in INSTRUMENTED_MODULES if _is_imported(name)}
        self.settle(wait=True)

    def leave(self) -> None:
        with self._counting:
            self._captures -= 1
        self.settle(wait=True)

    def imported(self, name: str) -> None:
        """Called when a client has just been imported; never raises, since that would break the import."""
        with self._counting:
            self._imported.add(name)
        with contextlib.suppress(Exception):
            self.settle(wait=False)

    def settle(self, *, wait: bool) -> None:
        """Switch on what is wanted and off what is not. Looks again afterwards, on behalf of those who did not wait."""
        while self._is_unsettled() and self._settling.acquire(blocking=wait):
            try:
                for name in self._missing():
                    self._switch_on(name)
                for name in self._superfluous():
                    with contextlib.suppress(Exception):
                        self._on.pop(name)()
            finally:
                self._settling.release()

    def _is_unsettled(self) -> bool:
        return bool(self._missing() or self._superfluous())

    def _missing(self) -> set[str]:
        with self._counting:
            return self._imported - set(self._on) - self._unusable if self._captures else set()

    def _superfluous(self) -> list[str]:
        return [] if self._captures else list(self._on)

    def _switch_on(self, name: str) -> None:
        try:
            off = _switch_on(name)
        except Exception:  # made for another version of its library: that one is not traced
            off = None
        if off is None:
            self._unusable.add(name)
        else:
            self.usable.add(name)
            self._on[name] = off


_SWITCHBOARD = _Switchboard()


@functools.cache
def _watch_imports() -> None:
    """Have the switchboard told of imports, from now on, if any instrumentation is installed."""
    if not any(_is_installed(name) for name in ("openinference", *SELF_INSTRUMENTED)):
        return
    try:
        import wrapt
    except ImportError:
        return
    for name in INSTRUMENTED_MODULES:
        wrapt.register_post_import_hook(functools.partial(_imported, name), name)


def _imported(name: str, module: Any) -> None:
    _SWITCHBOARD.imported(name)


def _is_imported(name: str) -> bool:
    """Whether the application has imported a library."""
    return name in sys.modules


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _switch_on(name: str) -> SwitchOff | None:
    """Let the calls of a library be seen; what switches that off again, or `None` if it is not possible."""
    if name == "pydantic_ai":
        return _instrument_pydantic_ai()
    short = CLIENTS.get(name) or FRAMEWORKS[name]
    if not _is_installed(f"openinference.instrumentation.{short}"):
        return None
    otel = opentelemetry_bridge()
    return None if otel is None else otel.instrument(short)


def _instrument_pydantic_ai() -> SwitchOff | None:
    """Its agents make spans by themselves, unless the application has said otherwise."""
    otel = opentelemetry_bridge()
    if otel is None:
        return None
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings

    if getattr(Agent, "_instrument_default", None) is not False:
        return lambda: None
    ours = InstrumentationSettings(tracer_provider=otel.own_provider())
    Agent.instrument_all(ours)

    def off() -> None:
        if getattr(Agent, "_instrument_default", None) is ours:
            Agent.instrument_all(False)

    return off


@functools.cache
def opentelemetry_bridge() -> Any:
    """The module that listens to OpenTelemetry; `None` without its SDK, or with a version that is not known here."""
    if not _is_installed("opentelemetry.sdk"):
        return None
    try:
        from proctor.tracing import otel
    except ImportError:
        return None
    return otel


_LISTENING = threading.Event()


def listen_to_opentelemetry() -> bool:
    """See OpenTelemetry's spans from now on; `False` if its SDK is not installed."""
    otel = opentelemetry_bridge()
    if otel is None:
        return False
    otel.attach()
    _LISTENING.set()
    return True


def listen_if_in_use() -> None:
    """See OpenTelemetry's spans if the application makes any. Loading the SDK takes time, so it is not loaded here."""
    if _LISTENING.is_set() or _is_imported(OPENTELEMETRY):
        listen_to_opentelemetry()


def begin_otel_span(name: str, kind: str | None, given: Json) -> Any:
    """An OpenTelemetry span for a step of the application; `None` if nobody listens to OpenTelemetry."""
    return opentelemetry_bridge().begin(name, kind, given) if _LISTENING.is_set() else None
