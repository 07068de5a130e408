"""The settings of a pytest session: its command line, its ini file and the project's configuration, read once."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from proctor.agents.agent import BaseAgent
from proctor.agents.resolve import resolve_agent
from proctor.config import read_configuration
from proctor.plugin.session_answers import SessionId
from proctor.plugin.startup import shared_session_data

AGENT_HINT = "give one with --proctor-agent app.py:agent, or with proctor_agent in pytest's ini file"


class SessionSettings:
    """Everything the user configured for a session; agents are resolved when they are needed."""

    def __init__(self, config: pytest.Config) -> None:
        known = read_configuration(config.rootpath)
        variables = ExitStack()
        variables.enter_context(known.environment())
        config.add_cleanup(variables.close)
        chosen = config.getoption("proctor_store")
        self.config = config
        self.reuse: bool = config.getoption("proctor_reuse") or config.getini("proctor_reuse")
        self.folder = Path.cwd() / chosen if chosen else config.rootpath / known.store(None)
        self.options = known.run_options(judge=config.getoption("proctor_judge"), fast=config.getoption("proctor_fast"))
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        shared = worker.get("proctor")
        self.session = SessionId(**(shared or shared_session_data(config)), has_other_processes=shared is not None)

    @functools.cached_property
    def agent(self) -> BaseAgent | None:
        """Instead of the agents that suites name."""
        given = self.config.getoption("proctor_agent")
        return resolve_agent(given, Path.cwd()) if given else None

    @functools.cached_property
    def default_agent(self) -> BaseAgent | None:
        """For suites that name none."""
        usual = self.config.getini("proctor_agent")
        return resolve_agent(usual, self.config.rootpath) if usual else None

    def has_agent_for(self, named: Any) -> bool:
        return named is not None or self.agent is not None or self.default_agent is not None

    def agent_for(self, named: Any) -> BaseAgent | None:
        """The agent to test instead of the one that a suite names; `None` leaves the choice to the suite."""
        return self.agent or (None if named is not None else self.default_agent)
