"""What an agent is: the two protocols that the engine needs, and base classes with defaults for everything optional."""

from __future__ import annotations

import inspect
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, Self, runtime_checkable

from proctor.agents.reply import Reply
from proctor.base.json_data import fingerprint
from proctor.cases.suite import Case, Turn


@runtime_checkable
class Session(Protocol):
    """One conversation; turns are sent strictly one after another."""

    async def send(self, turn: Turn) -> Reply: ...


@runtime_checkable
class Agent(Protocol):
    """The least that an object needs to be an agent; it may have many sessions open at once.

    It may also have `start`, `stop`, `check` and the attributes of `proctor.agents.agent.BaseAgent`, which documents
    what each of them means and its default.
    """

    @property
    def name(self) -> str: ...

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]: ...


class BaseSession:
    """One conversation; override `open` and `close` for what must be opened and closed with it."""

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


class BaseAgent:
    """An agent with a default for everything except its name and its sessions; the engine runs only these."""

    name: str
    fingerprint: str = ""
    """Changes when the agent changes; empty if that cannot be known."""
    unfingerprinted_parts: tuple[str, ...] = ()
    """Parts of the agent that its fingerprint does not cover; if there are any, no other run reuses its answers."""
    reports_all_tool_calls: bool = False
    """Whether a reply without tool calls means that there were none; if not, the trace is searched for them."""
    reads_files: bool = True
    """Whether it reads the files of a turn itself; if not, the engine puts their text into the input."""
    reports_cost: bool = False
    """Whether each reply says what it cost, so that no price list is needed."""
    endpoint: str = ""
    """The service that answers, if several agents may share it: `--rate` counts for all of them together."""
    start_timeout: float = 0.0
    """How long `start` may take even if the time limit of a trial is shorter."""

    @property
    def identity(self) -> str:
        """What distinguishes this agent from others in stored results: its fingerprint, or else its name."""
        return self.fingerprint or fingerprint(self.name)

    async def start(self) -> None:
        """Called once before the first session."""
        return

    async def stop(self) -> None:
        """Called once after the last session."""
        return

    def check(self, case: Case) -> str | None:
        """Why this agent cannot take the case, if it cannot; called for every case before any is run."""
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
    """A user's object with a name and sessions, plus the defaults for what it leaves out.

    Two proxies are equal if they stand for the same object, so that an object which several suites name is started
    once. Anything else that the object has, such as `tools` or `model`, is found on `target`.
    """

    def __init__(self, target: Agent) -> None:
        self.target = target
        self.name = target.name
        for attribute in _OPTIONAL_ATTRIBUTES:
            value = getattr(target, attribute, None)
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
        """Call a method of the target, sync or async, if it has it."""
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
