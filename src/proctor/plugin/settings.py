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

AGENT_HINT = "set one with --proctor-agent app.py:agent, or with proctor_agent in pytest's ini file"


class SessionSettings:
    """The configuration of a session; agents are resolved when they are needed."""

    def __init__(self, config: pytest.Config) -> None:
        project = read_configuration(config.rootpath)
        variables = ExitStack()
        variables.enter_context(project.environment())
        config.add_cleanup(variables.close)
        store = config.getoption("proctor_store")
        self.config = config
        self._project_agent = project.agent
        self.reuse: bool = config.getoption("proctor_reuse") or config.getini("proctor_reuse")
        self.folder = Path.cwd() / store if store else config.rootpath / project.store(None)
        self.options = project.run_options(
            judge=config.getoption("proctor_judge"),
            fast=config.getoption("proctor_fast"),
            live_output=config.getoption("capture") == "no",
        )
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        shared = worker.get("proctor")
        self.session = SessionId(**(shared or shared_session_data(config)), has_other_processes=shared is not None)

    @functools.cached_property
    def agent(self) -> BaseAgent | None:
        """The agent of the command line, which replaces the agents of suites."""
        reference = self.config.getoption("proctor_agent")
        return resolve_agent(reference, Path.cwd()) if reference else None

    @functools.cached_property
    def default_agent(self) -> BaseAgent | None:
        """The agent of the ini file, or of the project file, for suites without one."""
        reference = self.config.getini("proctor_agent") or self._project_agent
        return resolve_agent(reference, self.config.rootpath) if reference else None

    def has_agent_for(self, suite_agent: Any) -> bool:
        return suite_agent is not None or self.agent is not None or self.default_agent is not None

    def agent_for(self, suite_agent: Any) -> BaseAgent | None:
        """The agent to test instead of the suite's own; `None` if the suite's own is to be tested."""
        return self.agent or (None if suite_agent is not None else self.default_agent)
