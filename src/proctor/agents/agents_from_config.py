"""Makes the agents that a URL, a command line or a mapping describes, as opposed to Python code.

They need pydantic and an HTTP client, which take time to import, so `resolve` imports this module only for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from proctor.agents.agent import BaseAgent
from proctor.agents.chat_agent import read_chat
from proctor.agents.command_agent import CommandAgent, read_command, split_command_line
from proctor.agents.http_agent import HttpAgent
from proctor.agents.http_config import AgentConfig, read_config, read_http_options
from proctor.agents.served_agent import ServedAgent
from proctor.base.errors import UsageError
from proctor.base.json_data import Json


class PythonConfig(AgentConfig):
    """The keys of an agent that is a Python object."""

    python: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict)
    name: str = ""


def http_agent(url: str) -> BaseAgent:
    return HttpAgent(read_http_options(url))


def command_agent(command_line: str, base: Path | None) -> BaseAgent:
    return CommandAgent(split_command_line(command_line), cwd=base)


def served_agent(command_line: str, base: Path | None) -> BaseAgent:
    return ServedAgent(split_command_line(command_line), cwd=base)


def agent_from_mapping(data: Mapping[str, Json], base: Path | None) -> BaseAgent:
    """The agent of a mapping with one of the keys `http`, `chat` or `command`."""
    if "command" in data:
        return read_command(data, base)
    key = "http" if "http" in data else "chat"
    if others := [str(other) for other in data if other != key]:
        raise UsageError(f"{', '.join(others)} must be inside {key!r}, not next to it")
    return HttpAgent(read_http_options(data["http"])) if key == "http" else read_chat(data["chat"], base)


def read_python_config(data: Mapping[str, Json]) -> PythonConfig:
    """The keys of a mapping with the key `python`."""
    return read_config(
        PythonConfig, data, "the agent", '{"python": "my_agent.py:Agent", "arguments": {"model": "small"}}'
    )
