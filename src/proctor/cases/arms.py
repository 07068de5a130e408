"""Arms: the versions of an agent that one run compares.

An arm is another agent, the same agent with other settings, or the agent as it is in another version of the
repository. In files, on the command line and in Python it is written in the same forms:

    main                                  the suite's agent, as it is at this git reference
    .                                     the suite's agent, as it is in the working folder
    app.py:careful                        another agent
    {agent: app.py:bot, settings: {...}}  the same agent with other settings
    {ref: main, venv: true, env: {...}}   the parts one by one

`read_arm` turns each of them into an `Arm`. The obvious rule for a text, "ask git whether it is a reference", would
make the meaning of a suite depend on the branches that exist; so a text names an agent exactly if it has the form of
one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from proctor.base.documents import did_you_mean, json_type_name
from proctor.base.errors import UsageError
from proctor.base.json_data import Json
from proctor.base.references import is_reference
from proctor.cases.suite import Settings, Suite

AGENT_PREFIXES = ("http://", "https://", "cmd:", "serve:")
CONTROL_AGENTS = ("oracle", "nop")
WORKING_FOLDER = "."
"""The reference of the working folder as it is, with changes that are not committed."""
ARM_KEYS = ("agent", "ref", "settings", "env", "venv")
_RUN_SETTINGS = frozenset(item.name for item in fields(Settings))
NO_SETTINGS = Settings()
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Arm:
    """One version of the agent."""

    agent: Any = None
    """The agent; `None` for the suite's own."""
    ref: str = ""
    """The git reference whose code runs; empty or `.` for the working folder."""
    settings: Settings = NO_SETTINGS
    """How its trials run: time limit, retries."""
    arguments: Mapping[str, Json] = field(default_factory=dict)
    """Settings of the agent itself."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of its process."""
    venv: bool = False
    """Whether it gets its own virtual environment, built from the requirements at its reference."""

    @property
    def is_checked_out(self) -> bool:
        """Whether its code comes from a git reference, not from the working folder."""
        return self.ref not in ("", WORKING_FOLDER)

    @property
    def needs_process(self) -> bool:
        """Whether it cannot run in the process of the run."""
        return bool(self.ref) or bool(self.env)


def names_agent(text: str) -> bool:
    """Whether a text has the form of an agent (`app.py:agent`, a URL, `cmd:...`), so it is not a git reference."""
    text = text.strip()
    return (
        text in CONTROL_AGENTS
        or text.startswith("{")
        or text.lower().startswith(AGENT_PREFIXES)
        or text.endswith((".py", "()"))
        or is_reference(text)
    )


def is_arm_mapping(data: Mapping[str, Any]) -> bool:
    """Whether a mapping describes an arm, not an agent."""
    return not data or any(key in ARM_KEYS for key in data)


def read_arm(value: Any) -> Arm:
    """The arm in one of its forms; raises `UsageError`."""
    if isinstance(value, Arm):
        return value
    if isinstance(value, str):
        if not value.strip():
            raise UsageError("is blank; write a git reference, `.` or an agent such as app.py:agent")
        if (described := _parse_json(value)) is not None:
            return read_arm(described)
        return Arm(agent=value) if names_agent(value) else Arm(ref=value.strip())
    if not isinstance(value, Mapping) or not is_arm_mapping(value):
        return Arm(agent=value)
    if unknown := next((key for key in value if key not in ARM_KEYS), None):
        hint = did_you_mean(str(unknown), ARM_KEYS) or f"; the keys of an arm are {', '.join(ARM_KEYS)}"
        raise UsageError(f"has an unknown key {unknown!r}{hint}")
    ref, settings, venv = value.get("ref") or "", value.get("settings") or {}, value.get("venv", False)
    if not isinstance(ref, str):
        raise UsageError(f"ref must be a git reference such as main, not {json_type_name(ref)}; quote a number")
    if not isinstance(settings, Mapping):
        raise UsageError(f"settings must be an object, not {json_type_name(settings)}")
    if not isinstance(venv, bool):
        raise UsageError(f"venv must be true or false, not {json_type_name(venv)}")
    arm = Arm(
        agent=value.get("agent"),
        ref=ref.strip(),
        settings=Settings(**{name: item for name, item in settings.items() if name in _RUN_SETTINGS}),
        arguments={name: item for name, item in settings.items() if name not in _RUN_SETTINGS},
        env=_variables(value.get("env") or {}),
        venv=venv,
    )
    if venv and not arm.is_checked_out:
        raise UsageError("venv needs ref, the version whose requirements are installed")
    return arm


def _parse_json(text: str) -> Mapping[str, Any] | None:
    """The arm that a text describes in JSON, as on the command line; `None` if it does not."""
    try:
        data = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):  # reported as an agent
        return None
    return data if isinstance(data, Mapping) and is_arm_mapping(data) else None


def _variables(data: Any) -> dict[str, str]:
    if not isinstance(data, Mapping):
        raise UsageError(f"env must be an object of variables, not {json_type_name(data)}")
    for name, value in data.items():
        if not _VARIABLE.fullmatch(str(name)) or not isinstance(value, str) or "\0" in value:
            raise UsageError(f"env must have text for each variable; {name!r} has {json_type_name(value)}")
    return dict(data)


def needs_agent(suite: Suite) -> bool:
    """Whether the suite's own agent is used: it has no arms, or one that names no agent."""
    return not suite.arms or any(_uses_own_agent(value) for value in suite.arms.values())


def _uses_own_agent(value: Any) -> bool:
    try:
        return read_arm(value).agent is None
    except UsageError:  # reported when the run is planned
        return False


def agent_with_settings(agent: Any, settings: Mapping[str, Json]) -> Any:
    """The agent with these settings: arguments of Python code, or options of an agent that a mapping describes.

    Raises `UsageError` for an agent that has none.
    """
    if not settings:
        return agent
    if isinstance(agent, str) and is_reference(agent.removesuffix("()")) and not agent.startswith(AGENT_PREFIXES):
        return {"python": agent, "arguments": dict(settings)}
    if isinstance(agent, Mapping) and "python" in agent:
        return {**agent, "arguments": {**(agent.get("arguments") or {}), **settings}}
    if isinstance(agent, Mapping):
        for key, options in agent.items():
            if isinstance(options, Mapping):
                return {**agent, key: {**options, **settings}}
    names = ", ".join(settings)
    raise UsageError(
        f"the settings {names} cannot be passed to this agent; settings of an agent are arguments of Python code "
        "(app.py:agent) or options of an agent that an object describes ({chat: {...}})"
    )
