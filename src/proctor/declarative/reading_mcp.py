"""Reads a tool of type `mcp`: how to start a server of tools, or where it is."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.cases.fields import Fields, nearest
from proctor.declarative.reading_model import filled, read_address
from proctor.declarative.spec import McpSpec

TRANSPORTS = ("stdio", "http", "sse")
_STARTED = ("command", "args", "env", "env_file")
_REACHED = ("url", "headers")


def read_mcp(fields: Fields, name: str, base: Path, deferred: bool) -> McpSpec | None:
    """The server; what has no meaning for its transport is a problem, so that nobody relies on it."""
    transport = fields.text("transport", "stdio")
    if transport not in TRANSPORTS:
        fields.problem(
            "transport",
            f"is {transport!r}, which Proctor does not speak; it speaks {', '.join(TRANSPORTS)}"
            f"{nearest(transport, TRANSPORTS)}",
        )
        fields.rest()
        return None
    for key in _REACHED if transport == "stdio" else _STARTED:
        if fields.take(key) is not None:
            fields.problem(key, f"has no meaning for a server reached by {transport}")
    if fields.flag("load_tools", True) is False:
        fields.problem("load_tools", "is false, so the server would be of no use; remove the tool instead")
    if fields.flag("load_prompts", False):
        fields.problem("load_prompts", "is true, and prompts of servers are not put to an agent here; remove it")
    fields.text("registry_name")
    spec: Any = {
        "retrieval": bool(fields.flag("is_retrieval", False)),
        "connect_timeout": _seconds(fields, "timeout", 30.0),
        "request_timeout": _seconds(fields, "request_timeout", 60.0),
        "deferred": deferred,
    }
    if importlib.util.find_spec("mcp") is None:
        fields.problem("type", "is mcp, which needs more packages: pip install 'proctor[mcp]'")
    if transport == "stdio":
        command = fields.text("command", required=True, blank=False) or ""
        environment = _environment(fields, base)
        if command and not _is_program(command, base, environment):
            fields.problem("command", f"names {command}, which is not a program that can be started here")
        return McpSpec(name, "stdio", command, fields.texts("args", ()), environment, base, **spec)
    url = read_address(fields, "url")
    if fields.take("url") is None:
        fields.document.problem(fields.pointer, "needs 'url' (where the server is)")
    return McpSpec(name, transport, url=url or "", headers=_texts(fields, "headers"), **spec)


def _is_program(command: str, base: Path, environment: Mapping[str, str]) -> bool:
    """A name is looked for where the server's own PATH leads, a path from the folder it is started in."""
    try:
        if Path(command).name != command:
            return os.access(base / command, os.X_OK)
        return shutil.which(command, path=environment.get("PATH")) is not None
    except ValueError:
        return False


def _environment(fields: Fields, base: Path) -> dict[str, str]:
    """What the server finds in its environment beside the ordinary: the file first, then what is written here."""
    found: dict[str, str] = {}
    elsewhere = fields.text("env_file", blank=False)
    if elsewhere is not None:
        try:
            lines = (base / elsewhere).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, ValueError) as error:
            fields.problem("env_file", f"names {elsewhere}, which cannot be read: {error}")
            lines = []
        for line in lines:
            name, sign, value = line.strip().removeprefix("export ").partition("=")
            if sign and not name.startswith("#"):
                found[name.strip()] = value.strip().strip("\"'")
    return {**ordinary_environment(), **found, **_texts(fields, "env")}


def ordinary_environment() -> dict[str, str]:
    """What any program needs to run; keys and tokens of the person who runs the tests stay where they are."""
    names = (
        "HOME",
        "LANG",
        "LC_ALL",
        "LOGNAME",
        "PATH",
        "SHELL",
        "SYSTEMROOT",
        "TEMP",
        "TERM",
        "TMP",
        "TMPDIR",
        "USER",
    )
    return {name: os.environ[name] for name in names if name in os.environ}


def _texts(fields: Fields, name: str) -> dict[str, str]:
    """An object of texts, with variables that are looked up now."""
    given = fields.mapping(name, {})
    inside = Fields(fields.document, given, fields.at(name))
    found: dict[str, str] = {}
    for key in given:
        text = inside.text(key)
        value = None if text is None else filled(inside, key, text)
        if value is not None:
            found[key] = value
    return found


def _seconds(fields: Fields, name: str, usual: float) -> float:
    value: float = fields.number(name, usual)
    if value <= 0:
        fields.problem(name, "must be more than 0 seconds")
    return value
