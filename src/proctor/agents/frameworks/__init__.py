"""Agents of frameworks. Each framework has one file here, with one class that derives from `Adapter`.

An adapter declares which objects it takes and has methods to open a conversation and to send a turn. Everything else is
derived from it: how an object is recognized, its fingerprint, `proctor list agents`, the packages that its tests need.
`find_agent` takes an object and returns the `FrameworkAgent` for it, if any adapter accepts the object; `resolve` calls
it. The files are found by listing this folder, and adapters of other packages through `Plugin.adapters`
(`proctor.plugins`).

An adapter imports its framework inside functions only, so listing adapters imports no framework. A framework is
imported only to look at an object whose class comes from one of its modules.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from proctor.agents.agent import BaseAgent, BaseSession
from proctor.agents.reply import Reply
from proctor.agents.reply_reader import to_reply
from proctor.agents.trial_context import current_turn
from proctor.agents.turn_recorder import TurnRecorder, recorded_turn
from proctor.base.deprecation import renamed_attributes
from proctor.base.json_data import Json, fingerprint
from proctor.cases.suite import Case, Turn
from proctor.plugins import PluginError, installed_plugins, load


@renamed_attributes({"tells_cost": "reports_cost"})
class Adapter:
    """Runs the agents of one framework. To support another framework, derive from this class:

        class Parrots(Adapter):
            name, title, packages, modules = "parrots", "Parrots", ("parrots-sdk",), ("parrots",)
            takes = "a Parrot"

            @classmethod
            def accepts(cls, target):
                from parrots import Parrot
                return isinstance(target, Parrot)

            def describe(self):
                return [self.target.name, self.target.model]

            async def open(self, case):
                return self.target.new_conversation()

            async def send(self, session, turn, recorder):
                return await session.ask(turn.input, on_tool=recorder.call_tool)

    and name it in `Plugin.adapters` of your package. `recorder` is the `TurnRecorder` of the turn: `call_tool` runs a
    tool or its mock and records the call, and `add_model_call` counts tokens. One adapter object serves concurrent
    conversations, so anything that belongs to a conversation goes into the object that `open` returns.
    """

    name: ClassVar[str]
    """The name of the framework in templates and tests, such as `pydantic_ai`."""
    title: ClassVar[str]
    """The name for people, such as `Pydantic AI`."""
    packages: ClassVar[tuple[str, ...]]
    """The packages to install with pip."""
    modules: ClassVar[tuple[str, ...]]
    """The modules that define the classes of its agents."""
    takes: ClassVar[str]
    """The objects that it takes, in words for people, such as `an Agent or a Team`."""
    reports_cost: ClassVar[bool] = False
    """Whether each of its replies contains its cost."""
    starts_processes: ClassVar[bool] = False
    """Whether each conversation starts a process."""

    def __init__(self, target: Any) -> None:
        self.target = target

    @classmethod
    def accepts(cls, target: Any) -> bool:
        """Whether the object is an agent of this framework. Called only for objects with a class from `modules`."""
        raise NotImplementedError

    @property
    def agent_name(self) -> str:
        """The name of the agent if the user did not name it."""
        return str(getattr(self.target, "name", None) or type(self.target).__name__)

    @property
    def tools(self) -> Mapping[str, Callable[..., Any]] | None:
        """The functions of the agent's tools, which evaluators may re-run; `None` if they are unknown."""
        return None

    def describe(self) -> Json:
        """Everything that determines the agent's behavior, as JSON; its hash is the fingerprint."""
        raise NotImplementedError

    def check(self, case: Case) -> str | None:
        """Why the agent cannot run the case, or None if it can."""
        return None

    async def open(self, case: Case) -> Any:
        """Open a conversation; the returned object is passed to `send` and `close`."""
        return None

    async def send(self, session: Any, turn: Turn, recorder: TurnRecorder) -> Any:
        """Answer a turn with text, data or a `Reply`. Tool calls and tokens are taken from the recorder."""
        raise NotImplementedError

    async def close(self, session: Any) -> None:
        """Called once at the end of a conversation."""
        return

    async def stop(self) -> None:
        """Called once after the last conversation."""
        return


class FrameworkAgent(BaseAgent):
    """An agent of a framework, run by its adapter."""

    reports_all_tool_calls = True
    reads_files = False

    def __init__(self, adapter: Adapter, name: str = "", own_fingerprint: str = "") -> None:
        """`own_fingerprint` replaces the one of the adapter, for a caller that knows more about the agent."""
        self.adapter = adapter
        self.name = name or adapter.agent_name
        self.fingerprint = own_fingerprint or fingerprint(adapter.describe())
        self.reports_cost = adapter.reports_cost
        self.starts_processes = adapter.starts_processes

    def __repr__(self) -> str:
        return f"FrameworkAgent({self.adapter.name}, {self.name})"

    @property
    def target(self) -> Any:
        return self.adapter.target

    @property
    def tools(self) -> Mapping[str, Callable[..., Any]] | None:
        return self.adapter.tools

    async def stop(self) -> None:
        await self.adapter.stop()

    def check(self, case: Case) -> str | None:
        return self.adapter.check(case)

    def session(self, case: Case) -> FrameworkSession:
        return FrameworkSession(self.adapter, case)


class FrameworkSession(BaseSession):
    """One conversation with an agent of a framework."""

    def __init__(self, adapter: Adapter, case: Case) -> None:
        super().__init__(case)
        self._adapter = adapter
        self._session: Any = None

    async def open(self) -> None:
        self._session = await self._adapter.open(self.case)

    async def close(self) -> None:
        await self._adapter.close(self._session)

    async def send(self, turn: Turn) -> Reply:
        with recorded_turn() as recorder:
            token = _FRAMEWORK.set(self._adapter.name)
            try:
                reply = to_reply(await self._adapter.send(self._session, turn, recorder))
            finally:
                _FRAMEWORK.reset(token)
            calls = reply.tool_calls or recorder.tool_calls
            return replace(reply, tool_calls=calls, usage=recorder.usage if reply.usage is None else reply.usage)


_FRAMEWORK: ContextVar[str] = ContextVar("proctor_framework", default="")
"""The framework whose agent is answering here. An adapter's patches stay in the vendor's classes, and a function agent
may use the same classes in its turn: what is recorded there must not depend on which agents ran before."""


def current_turn_of(framework: str) -> TurnRecorder | None:
    """The recorder of the current turn if an agent of this framework is answering it, also inside its tools."""
    return current_turn() if _FRAMEWORK.get() == framework else None


@functools.cache
def shipped_adapters() -> tuple[type[Adapter], ...]:
    """The adapters in this folder, by name."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return tuple(
        value
        for module in modules
        for value in vars(module).values()
        if _is_adapter(value) and value.__module__ == module.__name__
    )


def _is_adapter(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Adapter) and value is not Adapter


@dataclass(frozen=True, slots=True)
class InstalledAdapter:
    """An item of `Plugin.adapters` of another package: an adapter, or a function from references to agents."""

    name: str
    value: Any = None
    problem: str = ""
    """Why it could not be loaded."""


@functools.cache
def installed_adapters() -> tuple[InstalledAdapter, ...]:
    """The adapters of other packages, loaded once. A package that fails to load does not affect other agents."""
    try:
        return tuple(_load(plugin.name, target) for plugin in installed_plugins() for target in plugin.adapters)
    except PluginError as error:
        return (InstalledAdapter("", problem=str(error)),)


def _load(name: str, target: Any) -> InstalledAdapter:
    try:
        return InstalledAdapter(name, load(target))
    except PluginError as error:
        return InstalledAdapter(name, problem=f"the plugin {name!r} failed: {error}")


def adapters() -> Iterable[type[Adapter]]:
    """All adapters: those of this package, then those of other packages."""
    yield from shipped_adapters()
    yield from (adapter.value for adapter in installed_adapters() if _is_adapter(adapter.value))


def find_agent(target: Any, name: str) -> FrameworkAgent | None:
    """The agent of an object from a known framework; `None` for everything else."""
    for adapter in adapters():
        if _is_from(adapter, type(target)) and _accepts(adapter, target):
            return FrameworkAgent(adapter(target), name)
    return None


def naming_hint(target: Any) -> str:
    """The end of a message about an object of a known framework that is not an agent: what to name instead."""
    kind = target if isinstance(target, type) else type(target)
    return next((f": for {a.title}, name {a.takes}" for a in adapters() if _is_from(a, kind)), "")


def _is_from(adapter: type[Adapter], kind: type[Any]) -> bool:
    modules = [str(getattr(base, "__module__", "")) for base in kind.__mro__]
    return any(module == root or module.startswith(f"{root}.") for module in modules for root in adapter.modules)


def _accepts(adapter: type[Adapter], target: Any) -> bool:
    """Whether the adapter accepts the object. A user's package may be called `agents` too: then the import fails."""
    try:
        return adapter.accepts(target)
    except ImportError:
        return False
