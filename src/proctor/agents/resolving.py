"""Finds the agent that a reference, an address, a mapping or an object means."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from proctor.agents.agent import BaseAgent, with_defaults
from proctor.base.errors import UsageError
from proctor.base.fields import kind
from proctor.base.json_data import Json, fingerprint
from proctor.base.references import describe, is_reference, is_stand_in, resolve

WAYS = (
    "write file.py:name or package.module:name, http://host/path, cmd:program arguments, "
    'an object with "http", "chat", "command" or "python", or one of the controls oracle and nop'
)
_KEYS = ("http", "chat", "command", "python")


def resolve_agent(reference: Json | object, base: Path | None = None) -> BaseAgent:
    """The agent that `reference` means; files and folders are looked up from `base`."""
    if reference is None or reference == "":
        raise UsageError(f"no agent is named; {WAYS}")
    if isinstance(reference, str):
        agent = _from_text(reference.strip(), base)
    elif isinstance(reference, Mapping):
        agent = _from_mapping(reference, base)
    else:
        agent = _from_object(reference, "")
    return _from_entry_points(reference, base) if agent is None else agent


def _from_text(text: str, base: Path | None) -> BaseAgent | None:
    if text in ("oracle", "nop"):
        from proctor.agents.oracle_and_nop import NopAgent, OracleAgent

        return OracleAgent() if text == "oracle" else NopAgent()
    if text.lower().startswith(("http://", "https://")):
        return _http(text)
    if text.startswith("{"):
        return resolve_agent(_parsed(text), base)
    if text.startswith("cmd:"):
        from proctor.agents.command import CommandAgent, split

        return CommandAgent(split(text[len("cmd:") :]), cwd=base)
    if not is_reference(text):
        return None
    target = resolve(text, base)
    if is_stand_in(target):
        return _stands_in(target, text)
    if isinstance(target, str):
        raise UsageError(f"{text!r} is text, not an agent; {WAYS}")
    agent = _from_object(target, text)
    return resolve_agent(target, base) if agent is None else agent


def _stands_in(target: Any, name: str) -> BaseAgent:
    """An agent that was found and is not to be loaded."""
    from proctor.agents.callables import CallableAgent

    return CallableAgent(target, name)


def _parsed(text: str) -> Json:
    """An object written where only text can be: on the command line."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the agent looks like an object and is not JSON: {error}") from None


def _from_mapping(data: Mapping[str, Json], base: Path | None) -> BaseAgent | None:
    ways = [way for way in _KEYS if way in data]
    if len(ways) > 1:
        raise UsageError(f"an agent is either {' or '.join(ways)}; give only one of these keys")
    if ways in (["http"], ["chat"]):
        if others := [str(key) for key in data if key not in ways]:
            raise UsageError(f"{', '.join(others)} must stand inside {ways[0]!r}, not beside it")
        return _http(data["http"]) if "http" in data else _chat(data["chat"], base)
    if ways == ["command"]:
        from proctor.agents.command import read_command

        return read_command(data, base)
    return _python(data, base) if ways else None


def _http(data: Json) -> BaseAgent:
    from proctor.agents.http import HttpAgent
    from proctor.agents.options import read_http_options

    return HttpAgent(read_http_options(data))


def _chat(data: Json, base: Path | None) -> BaseAgent:
    from proctor.agents.chat import read_chat

    return read_chat(data, base)


def _python(data: Mapping[str, Json], base: Path | None) -> BaseAgent:
    """A reference with arguments: a class is made with them, a function is always called with them."""
    from proctor.agents.options import Options

    options = Options(data, "the agent", '{"python": "my_agent.py:Agent", "arguments": {"model": "small"}}')
    reference = options.required("python", str, "a reference such as my_agent.py:agent")
    arguments = options.take("arguments", dict, "an object", {})
    name = options.text("name", "")
    options.done()
    target = resolve(reference, base)
    if is_stand_in(target):
        return _stands_in(target, reference)
    if arguments and isinstance(target, type):
        target = _make(target, arguments)
    elif arguments:
        target = functools.partial(target, **arguments) if callable(target) else target
    agent = _from_object(target, name or reference)
    if agent is not None and arguments:
        agent.fingerprint = fingerprint(agent.fingerprint or agent.name, arguments)
    return _from_entry_points(target, base) if agent is None else agent


def _from_object(target: Any, name: str) -> BaseAgent | None:
    if isinstance(target, type) and all(callable(getattr(target, method, None)) for method in ("create", "run")):
        from proctor.agents.runnable import RunnableAgent

        return RunnableAgent(target, name or None)
    if isinstance(target, type):
        target = _make(target, {})
    if not _takes_a_question(target):
        from proctor.agents.frameworks import adapted

        agent = adapted(target, name)
        if agent is not None:
            return agent
    if callable(getattr(target, "session", None)):
        if not isinstance(getattr(target, "name", None), str):
            raise UsageError(f"{_title(target)} has a session but no name; give it a name attribute with a text")
        return with_defaults(target)
    if callable(target):
        from proctor.agents.callables import CallableAgent

        return CallableAgent(target, name or None)
    return None


def _takes_a_question(target: Any) -> bool:
    """Whether it is a function with parameters: one that makes an agent of a framework has none."""
    return isinstance(target, FunctionType) and target.__code__.co_argcount > 0 and not hasattr(target, "__wrapped__")


def _make(target: type[Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return target(**arguments)
    except Exception as error:
        given = ", ".join(arguments) or "no arguments"
        hint = "" if arguments else '; name an instance, or write {"python": ..., "arguments": {...}}'
        raise UsageError(f"{target.__name__} cannot be made with {given}: {describe(error)}{hint}") from error


def _from_entry_points(reference: Any, base: Path | None) -> BaseAgent:
    """Installed packages may know more kinds of agents; they are asked last."""
    from importlib.metadata import entry_points

    failures = []
    for entry in entry_points(group="proctor.agents"):
        try:
            agent = entry.load()(reference, base)
        except UsageError:
            raise
        except Exception as error:
            failures.append(f"; the plugin {entry.name} failed: {describe(error)}")
            continue
        if agent is not None:
            return with_defaults(agent)
    raise UsageError(f"{_title(reference)} is not an agent{_hint(reference)}; {WAYS}{''.join(failures)}")


def _title(reference: Any) -> str:
    if isinstance(reference, str):
        return repr(reference[:200])
    if isinstance(reference, Mapping):
        keys = ", ".join(str(key) for key in list(reference)[:12])
        return f"an object with the keys {keys}" if keys else "an empty object"
    known = kind(reference)
    return known if " " in known else f"a value of type {known}"


def _hint(reference: Any) -> str:
    if isinstance(reference, str) and reference.endswith(".py"):
        return f": which name in it? {reference}:my_agent"
    if isinstance(reference, Mapping):
        from proctor.base.fields import nearest

        hints = [nearest(str(key), _KEYS) for key in reference]
        return next((hint for hint in hints if hint), "")
    from proctor.agents.frameworks import advice

    return advice(reference)
