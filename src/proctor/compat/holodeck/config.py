"""HoloDeck's `ConfigLoader`: reads an `agent.yaml` as an `Agent` and resolves the execution settings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from proctor.base.documents import Document
from proctor.base.environment import environment_from
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.source import read_error, read_text
from proctor.compat.holodeck.models import Agent, ExecutionConfig
from proctor.compat.holodeck.reader import AGENT_KEYS, agent_suite, read_agent_file
from proctor.compat.holodeck.settings import agent_env_files, as_execution_config, config_files, resolve_execution


class ConfigError(InvalidSuite):
    """An agent.yaml or a setting that cannot be used: all problems, with `field` and `message` of the first.

    It is created with a field name and a message, as in HoloDeck, or with problems.
    """

    def __init__(self, field: str | Iterable[Problem] = "", message: str = "") -> None:
        problems = [Problem(message, where=field)] if isinstance(field, str) else list(field)
        super().__init__(problems)
        self.field = problems[0].where if problems else ""
        self.message = problems[0].message if problems else ""


class ConfigLoader:
    """Reads agent.yaml files."""

    def load_agent_yaml(self, file_path: str | Path) -> Agent:
        """The agent of a file, with or without tests; raises `ConfigError` with all problems.

        A missing file of a test is not a problem here, because a file processor may create it.
        """
        path = Path(str(file_path))
        try:
            document = Document(path, read_text(path))
            if not isinstance(document.data, dict) or not AGENT_KEYS & document.data.keys():
                raise InvalidSuite([Problem("is not an agent.yaml", path)])
            return read_agent_file(document, Agent, allow_missing_files=True, allow_no_tests=True)[0]
        except InvalidSuite as error:
            raise ConfigError(error.problems) from error
        except OSError as error:
            raise ConfigError([Problem(read_error(error), path)]) from error

    def resolve_execution_config(self, agent: Agent, overrides: ExecutionConfig | None = None) -> ExecutionConfig:
        """Resolve the settings: `overrides`, then agent.yaml, configuration files, environment, defaults."""
        suite = agent_suite(agent)
        folder = suite.base or Path.cwd()
        document = Document(suite.path or Path("agent.yaml"), "", {}, lambda pointer: None)
        with environment_from(agent_env_files(folder)):
            files, problems = config_files(folder)
            settings = resolve_execution(document, agent.execution, files)
        if problems or document.problems:
            raise ConfigError([*problems, *document.problems])
        return (overrides or ExecutionConfig()).over(as_execution_config(settings))
