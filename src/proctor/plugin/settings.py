"""How a test session runs agents: pytest's command line, its ini file, then Proctor's own configuration."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from proctor.agents.model import Agent
from proctor.agents.resolving import resolve_agent
from proctor.cli.configuration import read_configuration
from proctor.plugin.stash import sharing_of
from proctor.running.answers import Sharing
from proctor.running.options import RunOptions

WANTED = "give one with --proctor-agent app.py:agent, or with proctor_agent in pytest's ini file"


class SessionSettings:
    """Everything a session was told; agents are looked up when somebody needs them."""

    def __init__(self, config: pytest.Config) -> None:
        known = read_configuration(config.rootpath)
        chosen = config.getoption("proctor_store")
        self.config = config
        self.fresh: bool = config.getoption("proctor_fresh")
        self.folder = Path.cwd() / chosen if chosen else config.rootpath / known.store(None)
        self.options = RunOptions(
            fallback=known.settings,
            fast=config.getoption("proctor_fast"),
            judge=config.getoption("proctor_judge"),
            usual_judge=known.values.get("judge"),
            budget_usd=known.budget(None),
        )
        worker: dict[str, Any] = getattr(config, "workerinput", {})
        given = worker.get("proctor")
        self.sharing = Sharing(**(given or sharing_of(config)), several=given is not None)

    @functools.cached_property
    def agent(self) -> Agent | None:
        """Instead of the agents that suites name."""
        given = self.config.getoption("proctor_agent")
        return resolve_agent(given, Path.cwd()) if given else None

    @functools.cached_property
    def usual_agent(self) -> Agent | None:
        """For suites that name none."""
        usual = self.config.getini("proctor_agent")
        return resolve_agent(usual, self.config.rootpath) if usual else None

    def has_agent_for(self, named: Any) -> bool:
        return named is not None or self.agent is not None or self.usual_agent is not None

    def agent_for(self, named: Any) -> Agent | None:
        """The agent to be asked instead of the one that a suite names; `None` leaves it to the suite."""
        return self.agent or (None if named is not None else self.usual_agent)
