"""The interface of an agent: two protocols, and base classes with a default for everything optional."""

from __future__ import annotations

import inspect
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, Self, runtime_checkable

from proctor.agents.reply import Reply
from proctor.base.deprecation import get_renamed, renamed_attributes
from proctor.base.json_data import fingerprint
from proctor.cases.suite import Case, Turn

_OLD_NAMES = {
    "unknown_parts": "unfingerprinted_parts",
    "sees_calls": "reports_all_tool_calls",
    "takes_files": "reads_files",
    "tells_cost": "reports_cost",
    "start_seconds": "start_timeout",
}
"""The earlier names of attributes of agents, which are accepted for one release."""


@runtime_checkable
class Session(Protocol):
    """One conversation. Turns are sent strictly one after another."""

    async def send(self, turn: Turn) -> Reply: ...


@runtime_checkable
class Agent(Protocol):
    """What an object needs to be tested as an agent; many of its sessions may be open at once.

        class Echo:
            name = "echo"

            @contextlib.asynccontextmanager
            async def session(self, case):
                yield EchoSession()  # has `async def send(self, turn) -> Reply`

    It may also have `start`, `stop`, `check` and the attributes of `proctor.agents.agent.BaseAgent`, which documents
    their meaning and their defaults.
    """

    @property
    def name(self) -> str: ...

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]: ...


class BaseSession:
    """A session with nothing to open or close. Override `open` and `close` if there is something."""

    def __init__(self, case: Case) -> None:
        self.case = case

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        return

    async def close(self) -> None:
        return

    async def send(self, turn: Turn) -> Reply:
        raise NotImplementedError


@renamed_attributes(_OLD_NAMES)
class BaseAgent:
    """An agent with a default for everything except its name and its sessions. The engine runs only these."""

    name: str
    fingerprint: str = ""
    """A hash that changes when the agent changes; empty if there is no way to tell."""
    unfingerprinted_parts: tuple[str, ...] = ()
    """Parts of the agent that its fingerprint does not cover. If there are any, no other run reuses its answers."""
    runs_here: bool = True
    """Whether it runs in this process, so that the files it opens can be observed."""
    reports_all_tool_calls: bool = False
    """Whether a reply without tool calls means that there were none. If false, the trace is searched for them."""
    reads_files: bool = True
    """Whether it reads the files of a turn itself. If false, the engine puts their text into the input."""
    reports_cost: bool = False
    """Whether each reply contains its cost, so that no price list is needed."""
    starts_processes: bool = False
    """Whether each session starts a process: then fewer run in parallel, unless the user says how many."""
    endpoint: str = ""
    """The service that answers. Agents with the same endpoint share the limit of `--rate`."""
    start_timeout: float = 0.0
    """Seconds that `start` may take, even if the time limit of a trial is shorter."""

    @property
    def identity(self) -> str:
        """What distinguishes this agent from others in stored results: its fingerprint, or a hash of its name."""
        return self.fingerprint or fingerprint(self.name)

    async def start(self) -> None:
        """Called once before the first session."""
        return

    async def stop(self) -> None:
        """Called once after the last session."""
        return

    def check(self, case: Case) -> str | None:
        """Why this agent cannot run the case, or None if it can. Called for every case before any of them runs."""
        return None

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        raise NotImplementedError


_OPTIONAL_ATTRIBUTES = (
    "fingerprint",
    "unfingerprinted_parts",
    "reports_all_tool_calls",
    "reads_files",
    "reports_cost",
    "endpoint",
    "start_timeout",
)


class AgentProxy(BaseAgent):
    """A user's object with a name and sessions, plus the defaults for everything it does not define.

    Two proxies of the same object are equal, so that an object which several suites name is started once. Anything
    else that the object has, such as `tools` or `model`, is found on `target`.
    """

    def __init__(self, target: Agent) -> None:
        self.target = target
        self.name = target.name
        old_names = {new: old for old, new in _OLD_NAMES.items()}
        for attribute in _OPTIONAL_ATTRIBUTES:
            value = get_renamed(target, old_names.get(attribute, attribute), attribute)
            if value is not None:
                setattr(self, attribute, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgentProxy) and self.target is other.target

    def __hash__(self) -> int:
        return id(self.target)

    async def start(self) -> None:
        await self._call_optional("start")

    async def stop(self) -> None:
        await self._call_optional("stop")

    async def _call_optional(self, name: str) -> None:
        """Call a method of the target, sync or async, if the target has it."""
        method = getattr(self.target, name, None)
        result = method() if callable(method) else None
        if inspect.isawaitable(result):
            await result

    def check(self, case: Case) -> str | None:
        check: Any = getattr(self.target, "check", None)
        return check(case) if callable(check) else None

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        return self.target.session(case)


def as_base_agent(agent: Agent) -> BaseAgent:
    """The agent itself if it is a `BaseAgent`, else a proxy that adds the defaults."""
    return agent if isinstance(agent, BaseAgent) else AgentProxy(agent)
