"""Finds the agent that a reference, a URL, a mapping or an object means.

Resolving looks at types and calls no function of the user: `proctor test --plan` must not start an application. A class
is instantiated, since a class named as the agent means an instance of it. A function that makes the agent is written
with parentheses, `app.py:make_agent()`, and is called once, when the agent starts.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proctor.agents.agent import BaseAgent, Session, as_base_agent
from proctor.agents.control_agents import NopAgent, OracleAgent
from proctor.agents.frameworks import find_agent, installed_adapters, naming_hint
from proctor.agents.function_agent import CallableAgent
from proctor.agents.other_frameworks import framework_of, wrapper_advice
from proctor.agents.runnable_agent import RunnableAgent
from proctor.agents.user_code import call_user_function
from proctor.base.documents import did_you_mean, json_type_name
from proctor.base.errors import AgentFailed, ProctorError, UsageError, one_line
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import Json, fingerprint
from proctor.base.references import is_reference, locate, resolve
from proctor.cases.arms import AGENT_PREFIXES, CONTROL_AGENTS
from proctor.cases.suite import Case
from proctor.plugins import AgentKind, load, plugins

REFERENCE_HELP = (
    "write file.py:name or package.module:name, file.py:make() for a function that makes the agent, http://host/path, "
    "cmd:program arguments, serve:program arguments for a program that starts an HTTP service, "
    'an object with "http", "chat", "command" or "python", or a control agent: oracle or nop'
)
_AGENT_KEYS = ("http", "chat", "command", "python")
_CALL_SUFFIX = "()"
_JAVASCRIPT = re.compile(r"(?!(?:https?|cmd|serve):)\S+\.[cm]?[jt]sx?(?::\w+)?(?:\(\))?")


def resolve_agent(reference: Json | object, base: Path | None = None) -> BaseAgent:
    """The agent that `reference` means; raises `UsageError`. Relative paths start at the folder `base`."""
    if reference is None or reference == "":
        raise UsageError(f"no agent is set; {REFERENCE_HELP}")
    agent: BaseAgent | None
    if isinstance(reference, str):
        _refuse_javascript(reference.strip())
        agent = _from_text(reference.strip(), base) or _from_plugins(reference, base)
    elif isinstance(reference, Mapping):
        agent = _from_mapping(reference, base) or _from_plugins(reference, base)
    else:
        agent = _from_object(reference, "", base)
        if agent is None and not _is_plain_value(reference) and not naming_hint(reference):
            raise _not_an_agent(reference, "")
    if agent is None:
        problems = "".join(f"; {adapter.problem}" for adapter in installed_adapters() if adapter.problem)
        raise UsageError(f"{_describe(reference)} is not an agent{_hint(reference)}; {REFERENCE_HELP}{problems}")
    return agent


def agent_kind(reference: Json | object) -> AgentKind | None:
    """The plugin's kind of agent that a mapping such as `{acme: {...}}` describes, if any."""
    if not isinstance(reference, Mapping):
        return None
    return next((kind for plugin in plugins() for kind in plugin.agents if kind.key in reference), None)


def check_agent(reference: Json | object, base: Path | None = None) -> BaseAgent | None:
    """Check a reference like `resolve_agent`, but only locate the user's code instead of loading it.

    Returns the agent, or `None` if the reference is to such code.
    """
    if isinstance(reference, str) and reference.strip().startswith("{"):
        reference = _parse_json(reference.strip())
    if isinstance(reference, str) and is_python_reference(reference.strip()):
        _refuse_javascript(reference.strip())
        locate(reference.strip().removesuffix(_CALL_SUFFIX), base)
        return None
    kind = agent_kind(reference)
    if kind is not None and isinstance(reference, Mapping):
        return load(kind.check or kind.build)(reference[kind.key], base)
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
    """Whether the text is a reference to Python code, such as `app.py:agent`."""
    return is_reference(text.removesuffix(_CALL_SUFFIX)) and not text.lower().startswith(AGENT_PREFIXES)


def _refuse_javascript(text: str) -> None:
    """Raise `UsageError` with how to test it if the reference is to a file in JavaScript or TypeScript."""
    if _JAVASCRIPT.fullmatch(text) is None:
        return
    loader = "--import tsx " if ".ts" in text or ".mts" in text or ".cts" in text else ""
    raise UsageError(
        f"{text!r} is JavaScript, which Proctor tests as a program. For an ADK agent, `proctor init --template adk_ts` "
        f'writes a bridge; then use --agent "serve:node {loader}proctor-bridge.cjs {text}". Any other program can be '
        "an HTTP service that listens at $PORT (serve:COMMAND) or answer on standard output (cmd:COMMAND)"
    )


def _from_text(text: str, base: Path | None) -> BaseAgent | None:
    if text in CONTROL_AGENTS:
        return OracleAgent() if text == "oracle" else NopAgent()
    if text.startswith("{"):
        return resolve_agent(_parse_json(text), base)
    if text.lower().startswith(AGENT_PREFIXES):
        # Heavy, with pydantic and an HTTP client; most agents are Python code.
        from proctor.agents.agents_from_config import command_agent, http_agent, served_agent

        if text.startswith("cmd:"):
            return command_agent(text.removeprefix("cmd:"), base)
        return served_agent(text.removeprefix("serve:"), base) if text.startswith("serve:") else http_agent(text)
    if not is_reference(text.removesuffix(_CALL_SUFFIX)):
        return None
    target = resolve(text.removesuffix(_CALL_SUFFIX), base)
    if text.endswith(_CALL_SUFFIX):
        return FactoryAgent(target, text, base)
    if isinstance(target, str):
        raise UsageError(f"{text!r} is text, not an agent; {REFERENCE_HELP}")
    agent = _from_object(target, text, base)
    if agent is None and not _is_plain_value(target) and not naming_hint(target):
        raise _not_an_agent(target, text)
    return agent or resolve_agent(target, base)


def _not_an_agent(target: Any, name: str) -> UsageError:
    return UsageError(f"{repr(name) if name else 'the agent'} is {wrapper_advice(target, name)}")


def _is_plain_value(target: Any) -> bool:
    """Whether it is data of a file or of JSON, and not an object that may be asked."""
    return target is None or isinstance(target, (str, bytes, int, float, Mapping, list, tuple, set))


def _parse_json(text: str) -> Json:
    """The object in JSON text, as it is written on the command line."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the agent starts with {{ but is not valid JSON: {error}") from None


def _from_mapping(data: Mapping[str, Json], base: Path | None) -> BaseAgent | None:
    keys = [key for key in _AGENT_KEYS if key in data]
    if len(keys) > 1:
        raise UsageError(f"an agent cannot have {' and '.join(keys)} at once; keep only one of these keys")
    if not keys:
        kind = agent_kind(data)
        return None if kind is None else as_base_agent(load(kind.build)(data[kind.key], base))
    if keys == ["python"]:
        return _from_python_mapping(data, base)
    from proctor.agents.agents_from_config import agent_from_mapping  # heavy, see `_from_text`

    return agent_from_mapping(data, base)


def _read_python(data: Mapping[str, Json]) -> tuple[str, dict[str, Any], str]:
    """The reference, the arguments and the name of a mapping with the key `python`."""
    from proctor.agents.agents_from_config import read_python_config  # heavy, see `_from_text`

    config = read_python_config(data)
    return config.python, config.arguments, config.name or config.python


def _from_python_mapping(data: Mapping[str, Json], base: Path | None) -> BaseAgent:
    """The agent of `{"python": ..., "arguments": ...}`: a class or factory is called once, a function in every turn."""
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
        if framework_of(target) is not None:
            raise _not_an_agent(target, name)
        target = _instantiate(target, {})
    if inspect.isroutine(target):
        return CallableAgent(target, name or None)
    # Adapters come before `callable`: the agents of some frameworks can be called too.
    agent = find_agent(target, name) or _from_plugins(target, base)
    if agent is not None:
        return agent
    if framework_of(target) is not None:
        raise _not_an_agent(target, name)
    if callable(getattr(target, "session", None)):
        if not isinstance(getattr(target, "name", None), str):
            raise UsageError(f"{_describe(target)} has a session but no name; add an attribute name with a string")
        return as_base_agent(target)
    return CallableAgent(target, name or None) if callable(target) else None


def _instantiate(target: type[Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return target(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        names = ", ".join(arguments) or "no arguments"
        hint = "" if arguments else '; name an instance, or write {"python": ..., "arguments": {...}}'
        raise UsageError(f"{target.__name__} cannot be created with {names}: {one_line(error)}{hint}") from error


class FactoryAgent(BaseAgent):
    """An agent that a function of the user makes; the function is called once, when the agent starts."""

    def __init__(
        self, make: Callable[..., Any], name: str, base: Path | None = None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        if not callable(make):
            raise UsageError(f"{name} cannot be called: it is {_describe(make)}, not a function; write it without ()")
        self.name = name
        self.fingerprint = fingerprint(source_fingerprint(make), dict(arguments or {}))
        self.target: Any = None
        """The object that the function returned; its tools and its model are looked up here."""
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
        """A session of the agent. If `start` was not called, an agent is made for this session alone."""
        agent = self._agent or await self._make_and_start()
        try:
            async with agent.session(case) as session:
                yield session
        finally:
            if agent is not self._agent:
                await agent.stop()

    async def _make_and_start(self) -> BaseAgent:
        agent = await self._make_agent()
        self.reports_all_tool_calls = agent.reports_all_tool_calls
        self.reads_files = agent.reads_files
        self.reports_cost = agent.reports_cost
        self.endpoint = agent.endpoint
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
            raise AgentFailed(f"{self.name} returned text, not an agent; write it without () to call it for every turn")
        try:
            return _from_object(self.target, self.name, self._base) or resolve_agent(self.target, self._base)
        except UsageError as error:
            raise AgentFailed(f"{self.name} did not return an agent: {error}") from None


def _from_plugins(reference: Any, base: Path | None) -> BaseAgent | None:
    """The agent of the first function in `Plugin.adapters` that knows the reference, if any."""
    for adapter in installed_adapters():
        if adapter.problem or isinstance(adapter.value, type):
            continue
        try:
            agent = adapter.value(reference, base)
        except UsageError:
            raise
        except Exception as error:
            logging.getLogger("proctor.agents").warning("the plugin %s failed: %s", adapter.name, one_line(error))
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
    type_name = json_type_name(reference)
    return type_name if " " in type_name else f"a value of type {type_name}"


def _hint(reference: Any) -> str:
    if isinstance(reference, str) and reference.endswith(".py"):
        return f": add the name of the agent in the file, {reference}:my_agent"
    if isinstance(reference, Mapping):
        hints = [did_you_mean(str(key), _AGENT_KEYS) for key in reference]
        return next((hint for hint in hints if hint), "")
    return naming_hint(reference)
