"""HoloDeck's `ConfigLoader`: reads an `agent.yaml` as an `Agent` and resolves the execution settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.base.documents import Document
from proctor.base.environment import environment_from, expand, read_env_file
from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.source import read_error, read_text
from proctor.cases.validation import validate
from proctor.compat.holodeck.errors import ConfigError
from proctor.compat.holodeck.models import Agent, ExecutionConfig
from proctor.compat.holodeck.reader import AGENT_KEYS, agent_suite, read_agent_file
from proctor.compat.holodeck.run_models import GlobalConfig
from proctor.compat.holodeck.settings import (
    DEFAULTS,
    agent_env_files,
    as_execution_config,
    config_file,
    resolve_settings,
)


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

    def parse_yaml(self, file_path: str | Path) -> dict[str, Any] | None:
        """The data of a YAML file as it is, without its variables filled in; raises `ConfigError`."""
        try:
            data = Document(Path(file_path), read_text(Path(file_path))).data
        except InvalidSuite as error:
            raise ConfigError(error.problems) from error
        return data if isinstance(data, dict) else None

    def load_global_config(self) -> GlobalConfig | None:
        """The user's `~/.holodeck/config.yml`, or None."""
        return _load_config(None)

    def load_project_config(self, project_dir: str | Path) -> GlobalConfig | None:
        """The `config.yml` in a folder, or None."""
        return _load_config(Path(project_dir))

    def resolve_execution_config(
        self,
        cli_config: ExecutionConfig | Agent | None = None,
        yaml_config: ExecutionConfig | None = None,
        project_config: ExecutionConfig | None = None,
        user_config: ExecutionConfig | None = None,
        defaults: Mapping[str, Any] = DEFAULTS,
    ) -> ExecutionConfig:
        """Each setting of the first of these that has it, then of the environment, then the default.

        With an agent and, optionally, settings that override its own, the configuration files are read too.
        """
        if isinstance(cli_config, Agent):
            return self._resolve_for_agent(cli_config, yaml_config)
        document = Document(Path("agent.yaml"), "", {}, lambda pointer: None)
        sources = [("", config) for config in (cli_config, yaml_config, project_config, user_config) if config]
        settings = resolve_settings(document, sources, defaults)
        if document.problems:
            raise ConfigError(document.problems)
        return as_execution_config(settings)

    def _resolve_for_agent(self, agent: Agent, overrides: ExecutionConfig | None) -> ExecutionConfig:
        folder = agent_suite(agent).base or Path.cwd()
        with environment_from(agent_env_files(folder)):
            project, user = self.load_project_config(folder), self.load_global_config()
            return self.resolve_execution_config(
                overrides,
                agent.execution,
                None if project is None else project.execution,
                None if user is None else user.execution,
            )


def _load_config(folder: Path | None) -> GlobalConfig | None:
    file, problems = config_file(folder)
    if problems:
        raise ConfigError(problems)
    if file is None:
        return None
    document = Document(file.path, "", {}, lambda pointer: None)
    config = validate(GlobalConfig, {**file.data, "execution": file.execution}, document)
    if config is None:
        raise ConfigError(document.problems)
    return config


def load_agent_with_config(
    agent_config_path: str | Path, cli_config: ExecutionConfig | None = None
) -> tuple[Agent, ExecutionConfig, ConfigLoader]:
    """An agent, its settings, and the loader that read them."""
    loader = ConfigLoader()
    agent = loader.load_agent_yaml(agent_config_path)
    return agent, loader.resolve_execution_config(agent, cli_config), loader


def get_env_var(key: str, default: Any = None) -> Any:
    """The value of an environment variable."""
    return os.environ.get(key, default)


def load_env_file(path: str | Path) -> dict[str, str]:
    """The variables in a `.env` file; raises `ConfigError`."""
    try:
        return read_env_file(Path(path))
    except UsageError as error:
        raise ConfigError(str(path), str(error)) from error


def substitute_env_vars(text: str) -> str:
    """A text with each `${NAME}` filled in; raises `ConfigError` if a variable is not set."""
    try:
        return expand(text, "the text")
    except UsageError as error:
        raise ConfigError("", str(error)) from error
