"""Finds the agent that a reference, an address, a mapping or an object means.

Resolving looks at types and calls no function of the user's: `proctor test --plan` must not start an application. A
class is instantiated, because a class that is named as the agent means an instance of it. A function that makes the
agent is written with parentheses, `app.py:make_agent()`, and is called once, when the agent starts.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proctor.agents.agent import BaseAgent, Session, as_base_agent
from proctor.agents.control_agents import NopAgent, OracleAgent
from proctor.agents.frameworks import find_agent, installed_adapters, naming_hint
from proctor.agents.function_agent import CallableAgent
from proctor.agents.runnable_agent import RunnableAgent
from proctor.agents.user_code import call_user_function
from proctor.base.documents import did_you_mean, json_type_name
from proctor.base.errors import AgentFailed, ProctorError, UsageError, one_line
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import Json, fingerprint
from proctor.base.references import is_reference, locate, resolve
from proctor.cases.suite import Case
from proctor.plugins import AgentKind, load, plugins

REFERENCE_HELP = (
    "write file.py:name or package.module:name, file.py:make() for a function that makes the agent, http://host/path, "
    'cmd:program arguments, an object with "http", "chat", "command" or "python", or one of the controls oracle and nop'
)
_AGENT_KEYS = ("http", "chat", "command", "python")
_CALL_SUFFIX = "()"


def resolve_agent(reference: Json | object, base: Path | None = None) -> BaseAgent:
    """The agent that `reference` means; files and folders are looked up from `base`."""
    if reference is None or reference == "":
        raise UsageError(f"no agent is named; {REFERENCE_HELP}")
    agent: BaseAgent | None
    if isinstance(reference, str):
        agent = _from_text(reference.strip(), base) or _from_plugins(reference, base)
    elif isinstance(reference, Mapping):
        agent = _from_mapping(reference, base) or _from_plugins(reference, base)
    else:
        agent = _from_object(reference, "", base)
    if agent is None:
        problems = "".join(f"; {found.problem}" for found in installed_adapters() if found.problem)
        raise UsageError(f"{_describe(reference)} is not an agent{_hint(reference)}; {REFERENCE_HELP}{problems}")
    return agent


def agent_kind(reference: Json | object) -> AgentKind | None:
    """The kind of agent of a plugin that a mapping such as `{acme: {...}}` describes."""
    if not isinstance(reference, Mapping):
        return None
    return next((kind for plugin in plugins() for kind in plugin.agents if kind.key in reference), None)


def check_agent(reference: Json | object, base: Path | None = None) -> BaseAgent | None:
    """Check a reference to an agent like `resolve_agent`, but load no code of the user's: it is only located.

    Returns the agent, or `None` if it is such code.
    """
    if isinstance(reference, str) and reference.strip().startswith("{"):
        reference = _parse_json(reference.strip())
    if isinstance(reference, str) and is_python_reference(reference.strip()):
        locate(reference.strip().removesuffix(_CALL_SUFFIX), base)
        return None
    found = agent_kind(reference)
    if found is not None and isinstance(reference, Mapping):
        return load(found.check or found.build)(reference[found.key], base)
    if isinstance(reference, Mapping) and "python" in reference:
        locate(_read_python(reference)[0].removesuffix(_CALL_SUFFIX), base)
        return None
    chat = reference.get("chat") if isinstance(reference, Mapping) else None
    if isinstance(chat, Mapping) and isinstance(chat.get("tools"), list):
        for tool in chat["tools"]:
            if isinstance(tool, str):
                locate(tool, base)
        return resolve_agent({**reference, "chat": {**chat, "tools": []}}, base)  # type: ignore[dict-item]
    return resolve_agent(reference, base)


def is_python_reference(text: str) -> bool:
    """Whether a text that names an agent is a reference to Python code."""
    return is_reference(text.removesuffix(_CALL_SUFFIX)) and not text.lower().startswith(
        ("http://", "https://", "cmd:")
    )


def _from_text(text: str, base: Path | None) -> BaseAgent | None:
    if text in ("oracle", "nop"):
        return OracleAgent() if text == "oracle" else NopAgent()
    if text.startswith("{"):
        return resolve_agent(_parse_json(text), base)
    if text.lower().startswith(("http://", "https://", "cmd:")):
        # Heavy, with pydantic and an HTTP client; most agents are Python code.
        from proctor.agents.agents_from_config import command_agent, http_agent

        is_command = text.startswith("cmd:")
        return command_agent(text.removeprefix("cmd:"), base) if is_command else http_agent(text)
    if not is_reference(text.removesuffix(_CALL_SUFFIX)):
        return None
    target = resolve(text.removesuffix(_CALL_SUFFIX), base)
    if text.endswith(_CALL_SUFFIX):
        return FactoryAgent(target, text, base)
    if isinstance(target, str):
        raise UsageError(f"{text!r} is text, not an agent; {REFERENCE_HELP}")
    return _from_object(target, text, base) or resolve_agent(target, base)


def _parse_json(text: str) -> Json:
    """An object written where only text can be: on the command line."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the agent looks like an object and is not JSON: {error}") from None


def _from_mapping(data: Mapping[str, Json], base: Path | None) -> BaseAgent | None:
    ways = [way for way in _AGENT_KEYS if way in data]
    if len(ways) > 1:
        raise UsageError(f"an agent is either {' or '.join(ways)}; give only one of these keys")
    if not ways:
        found = agent_kind(data)
        return None if found is None else as_base_agent(load(found.build)(data[found.key], base))
    if ways == ["python"]:
        return _from_python_mapping(data, base)
    from proctor.agents.agents_from_config import agent_from_mapping  # heavy, see `_from_text`

    return agent_from_mapping(data, base)


def _read_python(data: Mapping[str, Json]) -> tuple[str, dict[str, Any], str]:
    """The reference, the arguments and the name of a mapping with the key `python`."""
    from proctor.agents.agents_from_config import read_python_config  # heavy, see `_from_text`

    config = read_python_config(data)
    return config.python, config.arguments, config.name or config.python


def _from_python_mapping(data: Mapping[str, Json], base: Path | None) -> BaseAgent:
    """A reference with arguments: a class or a factory is called with them once, a function in every turn."""
    reference, arguments, name = _read_python(data)
    target = resolve(reference.removesuffix(_CALL_SUFFIX), base)
    if reference.endswith(_CALL_SUFFIX):
        return FactoryAgent(target, name, base, arguments)
    if arguments and isinstance(target, type):
        target = _instantiate(target, arguments)
    elif arguments and callable(target):
        target = functools.partial(target, **arguments)
    agent = _from_object(target, name, base)
    if agent is None:
        return resolve_agent(target, base)
    if arguments:
        agent.fingerprint = fingerprint(agent.fingerprint or agent.name, arguments)
    return agent


def _from_object(target: Any, name: str, base: Path | None) -> BaseAgent | None:
    if isinstance(target, BaseAgent):
        return target
    if isinstance(target, type) and all(callable(getattr(target, method, None)) for method in ("create", "run")):
        return RunnableAgent(target, name or None)
    if isinstance(target, type):
        target = _instantiate(target, {})
    if inspect.isroutine(target):
        return CallableAgent(target, name or None)
    # Adapters come before `callable`: the agents of some frameworks can be called too.
    agent = find_agent(target, name) or _from_plugins(target, base)
    if agent is not None:
        return agent
    if callable(getattr(target, "session", None)):
        if not isinstance(getattr(target, "name", None), str):
            raise UsageError(f"{_describe(target)} has a session but no name; give it a name attribute with a text")
        return as_base_agent(target)
    return CallableAgent(target, name or None) if callable(target) else None


def _instantiate(target: type[Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return target(**arguments)
    except Exception as error:
        given = ", ".join(arguments) or "no arguments"
        hint = "" if arguments else '; name an instance, or write {"python": ..., "arguments": {...}}'
        raise UsageError(f"{target.__name__} cannot be made with {given}: {one_line(error)}{hint}") from error


class FactoryAgent(BaseAgent):
    """An agent that a function of the user's makes, once, when the agent starts."""

    def __init__(
        self, make: Callable[..., Any], name: str, base: Path | None = None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        if not callable(make):
            raise UsageError(f"{name} cannot be called: {_describe(make)} is not a function; write it without ()")
        self.name = name
        self.fingerprint = fingerprint(source_fingerprint(make), dict(arguments or {}))
        self.target: Any = None
        """What the function returned; its tools and its model are looked up here."""
        self._make = functools.partial(make, **(arguments or {}))
        self._base = base
        self._agent: BaseAgent | None = None

    def __repr__(self) -> str:
        return f"FactoryAgent({self.name})"

    async def start(self) -> None:
        self._agent = await self._make_and_start()

    async def stop(self) -> None:
        agent, self._agent = self._agent, None
        if agent is not None:
            await agent.stop()

    def check(self, case: Case) -> str | None:
        return None if self._agent is None else self._agent.check(case)

    @asynccontextmanager
    async def session(self, case: Case) -> AsyncIterator[Session]:
        """A session of the agent, or of one that is made for this session alone if `start` was not called."""
        agent = self._agent or await self._make_and_start()
        try:
            async with agent.session(case) as session:
                yield session
        finally:
            if agent is not self._agent:
                await agent.stop()

    async def _make_and_start(self) -> BaseAgent:
        agent = await self._make_agent()
        self.reports_all_tool_calls, self.reads_files = agent.reports_all_tool_calls, agent.reads_files
        self.reports_cost, self.endpoint = agent.reports_cost, agent.endpoint
        await agent.start()
        return agent

    async def _make_agent(self) -> BaseAgent:
        try:
            self.target = await call_user_function(self._make)
        except ProctorError:
            raise
        except Exception as error:
            raise AgentFailed(f"{self.name} could not make an agent: {one_line(error)}") from error
        if isinstance(self.target, str):
            raise AgentFailed(f"{self.name} returned text, not an agent; without () it is called for every turn")
        try:
            return _from_object(self.target, self.name, self._base) or resolve_agent(self.target, self._base)
        except UsageError as error:
            raise AgentFailed(f"{self.name} did not return an agent: {error}") from None


def _from_plugins(reference: Any, base: Path | None) -> BaseAgent | None:
    """Functions of installed packages that know more kinds of agents; see `frameworks.adapters` for adapters."""
    for found in installed_adapters():
        if found.problem or isinstance(found.value, type):
            continue
        try:
            agent = found.value(reference, base)
        except UsageError:
            raise
        except Exception as error:
            logging.getLogger("proctor.agents").warning("the plugin %s failed: %s", found.name, one_line(error))
            continue
        if agent is not None:
            return as_base_agent(agent)
    return None


def _describe(reference: Any) -> str:
    if isinstance(reference, str):
        return repr(reference[:200])
    if isinstance(reference, Mapping):
        keys = ", ".join(str(key) for key in list(reference)[:12])
        return f"an object with the keys {keys}" if keys else "an empty object"
    known = json_type_name(reference)
    return known if " " in known else f"a value of type {known}"


def _hint(reference: Any) -> str:
    if isinstance(reference, str) and reference.endswith(".py"):
        return f": which name in it? {reference}:my_agent"
    if isinstance(reference, Mapping):
        hints = [did_you_mean(str(key), _AGENT_KEYS) for key in reference]
        return next((hint for hint in hints if hint), "")
    return naming_hint(reference)
