"""Functions that make an agent of a framework instead of being one: `def agent(): return Agent(...)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from types import FunctionType, ModuleType
from typing import Any

from proctor.agents.agent import BaseAgent, Session
from proctor.agents.sessions import closure_values
from proctor.base.errors import AgentFailed, UsageError
from proctor.base.references import describe, source_fingerprint
from proctor.cases.suite import Case


def made_by(function: Any, name: str) -> BaseAgent | None:
    """The agent that a function without parameters makes; `None` if it has any, or has to do with no framework.

    Such a function could not be told the question; and one that mentions no framework is not called to find out.
    """
    if not isinstance(function, FunctionType) or inspect.signature(function).parameters:
        return None
    if not _concerns_a_framework(function):
        return None
    if inspect.iscoroutinefunction(function):
        return AwaitedAgent(function, name or function.__name__)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return None
    return _adapted(_called(function), name or function.__name__)


class AwaitedAgent(BaseAgent):
    """An agent that an async function makes, in the loop in which it is asked."""

    takes_files = False

    def __init__(self, make: Callable[[], Any], name: str) -> None:
        self.name = name
        self.fingerprint = source_fingerprint(make)
        self.target: Any = None
        """What was made; `toolbox` looks for tools here."""
        self._make = make
        self._agent: BaseAgent | None = None

    def __repr__(self) -> str:
        return f"AwaitedAgent({self.name})"

    async def start(self) -> None:
        self.target = await self._make()
        self._agent = _adapted(self.target, self.name)
        if self._agent is None:
            kind = type(self.target).__name__
            raise AgentFailed(f"{self.name} takes no question, and what it makes is no agent but {kind}")
        await self._agent.start()

    async def stop(self) -> None:
        if self._agent is not None:
            await self._agent.stop()

    def session(self, case: Case) -> AbstractAsyncContextManager[Session]:
        if self._agent is None:
            raise AgentFailed(f"{self.name} has not been started, so there is no agent yet")
        return self._agent.session(case)


def _adapted(target: Any, name: str) -> BaseAgent | None:
    from proctor.agents.frameworks import adapted

    return None if isinstance(target, FunctionType) else adapted(target, name)


def _called(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        raise UsageError(f"{function.__name__} could not make an agent: {describe(error)}") from error


def _concerns_a_framework(function: FunctionType) -> bool:
    """Whether its code names something of a framework; one that asks Proctor for its input is an application."""
    from proctor.agents.frameworks import is_at_home

    mentioned = list(_mentioned(function, []))
    return any(map(is_at_home, mentioned)) and not any(map(_is_ours, mentioned))


def _mentioned(function: FunctionType, above: list[FunctionType]) -> Iterator[Any]:
    """What its code names, and that of the functions beside it which it calls; what it imports itself, by name."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        yield ModuleType(name) if value is None else value
        beside = isinstance(value, FunctionType) and value.__globals__ is function.__globals__
        if isinstance(value, FunctionType) and beside and value not in above:
            yield from _mentioned(value, [*above, function])
    yield from closure_values(function)


def _is_ours(value: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(home).partition(".")[0] == "proctor"
