"""HoloDeck's configuration: `config.yml` next to the agent and in the user's folder, and the `execution` settings.

The first source with a value wins: the agent's file, the configuration files, the environment, the defaults. Each
setting is resolved once, when the agent's file is read, and stored with its origin.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.base.documents import Document
from proctor.base.environment import env_files
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json
from proctor.base.source import Pointer, read_text
from proctor.cases.suite import FileSettings, ResolvedSetting, Settings
from proctor.cases.validation import validate
from proctor.compat.holodeck.models import ExecutionConfig, HoloDeckModel
from proctor.compat.holodeck.variables import substitute

CONFIG_NAMES = ("config.yml", "config.yaml")
USED_KEYS = ("execution", "providers", "mcp_servers")
"""The keys of a configuration file that tests use."""
OTHER_KEYS = ("vectorstores", "deployment", "observability")
"""HoloDeck's other keys in such a file."""
DEFAULT = "default"
"""The origin of a value that no source sets."""

DEFAULTS: Mapping[str, Json] = {
    "file_timeout": 30,
    "llm_timeout": 300,
    "download_timeout": 30,
    "cache_enabled": True,
    "cache_dir": ".holodeck/cache",
    "verbose": False,
    "quiet": False,
    "parallel_test_cases": 1,
}
"""HoloDeck's defaults, except `llm_timeout`, which is 60 seconds per turn there and for all turns of a test here."""


class ProviderBlock(HoloDeckModel):
    """A configuration file's settings for a provider's models; checked when an agent uses them."""

    provider: Any = None
    name: Any = None
    temperature: Any = None
    max_tokens: Any = None
    top_p: Any = None
    endpoint: Any = None
    api_key: Any = None
    api_version: Any = None
    auth_provider: Any = None


class ConfigData(HoloDeckModel):
    """The part of a configuration file that tests use."""

    execution: ExecutionConfig | None = None
    providers: dict[str, ProviderBlock] | None = None
    mcp_servers: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file."""

    document: Document
    data: Mapping[str, Json]
    """Its data. Variables that are not set are unchanged; they matter only where they are used."""
    execution: ExecutionConfig

    @property
    def path(self) -> Path:
        return self.document.path

    @property
    def servers(self) -> list[dict[str, Json]]:
        servers = self.data.get("mcp_servers")
        return servers if isinstance(servers, list) else []

    def provider(self, name: Json) -> tuple[str, Mapping[str, Json]]:
        """The key and block for a provider: the block of that name, else one whose `provider` it is."""
        blocks = self.data.get("providers") or {}
        if isinstance(name, str) and name in blocks:
            return name, blocks[name]
        return next(((key, block) for key, block in blocks.items() if block.get("provider") == name), ("", {}))


def agent_env_files(folder: Path | None) -> list[Path]:
    """The `.env` files of an agent: next to its file, then in the working folder, then the user's own."""
    here, user = Path.cwd(), _user_folder()
    return env_files(folder or here, here, *([] if user is None else [user]))


def config_file(folder: Path | None) -> tuple[ConfigFile | None, list[Problem]]:
    """The configuration file in a folder (the user's own if it is None), and its problems."""
    files, problems = _config_files_in([folder or _user_folder()])
    return (files[0] if files else None), problems


def config_files(folder: Path) -> tuple[list[ConfigFile], list[Problem]]:
    """The configuration files, the one next to the agent first, and their problems.

    A `config.yml` without any of HoloDeck's keys belongs to another tool and is ignored.
    """
    return _config_files_in([folder, _user_folder()])


def _config_files_in(folders: Iterable[Path | None]) -> tuple[list[ConfigFile], list[Problem]]:
    files: list[ConfigFile] = []
    problems: list[Problem] = []
    for place in folders:
        path = None if place is None else next((p for name in CONFIG_NAMES if (p := place / name).is_file()), None)
        if path is None:
            continue
        try:
            document = Document(path, read_text(path))
        except InvalidSuite as error:
            problems.extend(error.problems)
            continue
        if isinstance(document.data, dict) and not document.data.keys().isdisjoint((*USED_KEYS, *OTHER_KEYS)):
            files.append(_read_config(document, document.data))
            problems.extend(document.problems)
    return files, problems


def _read_config(document: Document, data: Mapping[str, Json]) -> ConfigFile:
    execution = substitute(
        document, {k: data[k] for k in ("execution",) if k in data}, hides_secrets=lambda pointer: False
    )
    other_data = {key: data[key] for key in ("providers", "mcp_servers") if data.get(key) is not None}
    other_data = substitute(document, other_data, hides_secrets=_holds_secrets, keep_unset=True)
    read = validate(ConfigData, {**other_data, **execution}, document)
    if read is None:
        return ConfigFile(document, {}, ExecutionConfig())
    _check_verbosity(document, read.execution)
    return ConfigFile(document, other_data, read.execution or ExecutionConfig())


def _holds_secrets(pointer: Pointer) -> bool:
    return bool(pointer) and pointer[0] in ("providers", "mcp_servers")


def _user_folder() -> Path | None:
    try:
        return Path.home() / ".holodeck"
    except RuntimeError:  # no home folder
        return None


def _check_verbosity(document: Document, execution: ExecutionConfig | None) -> None:
    if execution is not None and execution.verbose and execution.quiet:
        document.problem(("execution", "quiet"), "cannot be true together with 'verbose'; keep one of them")


def resolve_execution(
    document: Document, agent_config: ExecutionConfig | None, files: Iterable[ConfigFile]
) -> dict[str, ResolvedSetting]:
    """Each execution setting with its origin; `agent_config` is the `execution` of the agent's file."""
    _check_verbosity(document, agent_config)
    sources = [
        (str(document.path), agent_config or ExecutionConfig()),
        *((str(file.path), file.execution) for file in files),
    ]
    return resolve_settings(document, sources, DEFAULTS)


def resolve_settings(
    document: Document, sources: Iterable[tuple[str, ExecutionConfig]], defaults: Mapping[str, Json]
) -> dict[str, ResolvedSetting]:
    """Each setting of the first source that has it, then of the environment, then the default."""
    variables, sources = _from_environment(document), list(sources)
    settings: dict[str, ResolvedSetting] = {}
    for name in DEFAULTS:
        default = defaults.get(name)
        same_as = "timeout" if name == "llm_timeout" else ""
        configured = next(((v, origin) for origin, config in sources if (v := getattr(config, name)) is not None), None)
        value, origin = configured or variables.get(name) or (default, DEFAULT)
        settings[name] = ResolvedSetting(value, origin, same_as)
    return settings


def as_execution_config(settings: Mapping[str, ResolvedSetting]) -> ExecutionConfig:
    """The settings as one object."""
    return ExecutionConfig.model_construct(**{name: setting.value for name, setting in settings.items()})


def suite_settings(settings: Mapping[str, ResolvedSetting]) -> Settings:
    """The settings of trials; a timeout that no source sets is left to the project."""
    timeout = settings["llm_timeout"]
    return Settings(
        parallel=settings["parallel_test_cases"].value, timeout=None if timeout.origin == DEFAULT else timeout.value
    )


def file_settings(config: ExecutionConfig, folder: Path) -> FileSettings:
    """How files are read, and where downloads are stored."""
    cache = folder / str(config.cache_dir) if config.cache_enabled else None
    return FileSettings(float(config.file_timeout or 30), float(config.download_timeout or 30), cache)


_YES, _NO = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


def _from_environment(document: Document) -> dict[str, tuple[Json, str]]:
    values: dict[str, tuple[Json, str]] = {}
    for name, default in DEFAULTS.items():
        variable = f"HOLODECK_{name.upper()}"
        text = os.environ.get(variable, "").strip()
        if not text:
            continue
        value, noun = _parse(name, text, default)
        if value is None:
            document.problems.append(Problem(f"{variable} must be {noun}, not {text!r}"))
        else:
            values[name] = value, variable
    return values


def _parse(name: str, text: str, default: Json) -> tuple[Json, str]:
    """The value of an environment variable, or None and a description of valid values."""
    if isinstance(default, str):
        return text, ""
    if isinstance(default, bool):
        word = text.lower()
        return (True if word in _YES else False if word in _NO else None), "true or false"
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    is_whole = name == "parallel_test_cases"
    is_valid = 0 < number < float("inf") and (not is_whole or (number.is_integer() and number >= 1))
    return (int(number) if number.is_integer() else number) if is_valid else None, (
        "a whole number, 1 or more" if is_whole else "a positive number of seconds"
    )
