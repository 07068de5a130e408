"""Finds the agent to evaluate: given itself, by a name, or in a module where adk-python looks for it."""

from __future__ import annotations

import importlib
import inspect
from contextlib import AsyncExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.references import describe, find_file, load_file


async def agent_of(agent: Any, name: str | None, cleanup: AsyncExitStack) -> Any:
    """Whatever `agent` means, or its sub-agent called `name`; what it opened is closed with `cleanup`."""
    found = await _in_module(agent, cleanup)
    return found if name is None else _sub_agent(found, name)


async def _in_module(agent: Any, cleanup: AsyncExitStack) -> Any:
    module = _module(agent)
    if module is None:
        return agent
    for place in _places(module):
        if (found := getattr(place, "root_agent", None)) is not None:
            return found
        make = getattr(place, "get_agent_async", None)
        if callable(make):
            return await _made(make, cleanup)
        if (app := getattr(place, "app", None)) is not None and not isinstance(app, ModuleType):
            return app
    name = agent if isinstance(agent, str) else module.__name__
    raise UsageError(f"{name} holds no agent; it should have root_agent, or agent.root_agent")


def _module(agent: Any) -> ModuleType | None:
    """The module that is meant by `package.module`, `folder/agent.py` or a module itself; `None` for any other."""
    if isinstance(agent, ModuleType):
        return agent
    if not isinstance(agent, str) or ":" in agent:
        return None
    text = agent.strip()
    if text.endswith(".py"):
        return load_file(find_file(text, None))
    if not all(part.isidentifier() for part in text.split(".")) or text in ("oracle", "nop"):
        return None
    try:
        return _imported(text)
    except ModuleNotFoundError as error:
        if error.name is not None and (text == error.name or text.startswith(f"{error.name}.")):
            raise UsageError(f"no module is called {text!r}; name a module, or an agent as file.py:name") from None
        raise UsageError(f"module {text} could not be imported: {describe(error)}") from error
    except Exception as error:
        raise UsageError(f"module {text} could not be imported: {describe(error)}") from error


def _imported(name: str) -> ModuleType:
    """From wherever Python looks, or from the working folder."""
    import sys

    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


def _places(module: ModuleType) -> list[Any]:
    """The module's `agent`, as adk-python wants it, then the module itself."""
    inner = getattr(module, "agent", None)
    if inner is None and hasattr(module, "__path__"):
        try:
            inner = importlib.import_module(f"{module.__name__}.agent")
        except ModuleNotFoundError as error:
            if error.name != f"{module.__name__}.agent":
                raise UsageError(f"{module.__name__}.agent could not be imported: {describe(error)}") from error
    return [place for place in (inner, module) if place is not None]


async def _made(make: Any, cleanup: AsyncExitStack) -> Any:
    """`get_agent_async` gives an agent, or an agent and what is to be closed after it."""
    made = make()
    made = await made if inspect.isawaitable(made) else made
    if not isinstance(made, tuple):
        return made
    agent, *closing = made
    for stack in closing:
        if callable(close := getattr(stack, "aclose", None)):
            cleanup.push_async_callback(close)
    return agent


def _sub_agent(agent: Any, name: str) -> Any:
    """The agent called `name` among the sub-agents of another, however deep."""
    root = getattr(agent, "root_agent", agent)
    waiting, known = [root], []
    while waiting:
        candidate = waiting.pop(0)
        own = getattr(candidate, "name", None)
        if own == name:
            return candidate
        known += [str(own)] if own else []
        waiting += list(getattr(candidate, "sub_agents", None) or ())
    there = f"there are {', '.join(known)}" if known else "it has neither a name nor sub-agents"
    raise UsageError(f"the agent has nobody called {name!r}; {there}")
