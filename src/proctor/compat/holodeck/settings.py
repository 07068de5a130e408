"""HoloDeck's configuration: `config.yml` beside the agent and in the user's own folder, and the `execution` settings.

The first source that gives a value wins: the agent's file, the configuration files, the environment, the defaults. Each
setting is resolved once, when the agent's file is read, and is kept with its origin.
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
"""What tests take from such a file."""
OTHER_KEYS = ("vectorstores", "deployment", "observability")
"""What such a file may say besides."""
DEFAULT = "default"
"""The origin of a value that no source gives."""

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
"""As HoloDeck has them, but for `llm_timeout`: there it is 60 for each turn, here it is for all turns of a test."""


class ProviderBlock(HoloDeckModel):
    """What a configuration file says of a provider's models; checked where an agent uses it."""

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
    """A configuration file of HoloDeck's."""

    document: Document
    data: Mapping[str, Json]
    """What it says; variables that are not set stand as they are written, and matter only where they are used."""
    execution: ExecutionConfig

    @property
    def path(self) -> Path:
        return self.document.path

    @property
    def servers(self) -> list[dict[str, Json]]:
        found = self.data.get("mcp_servers")
        return found if isinstance(found, list) else []

    def provider(self, wanted: Json) -> tuple[str, Mapping[str, Json]]:
        """The block for a provider and its key: the one of that name, else one whose `provider` it is."""
        blocks = self.data.get("providers") or {}
        if isinstance(wanted, str) and wanted in blocks:
            return wanted, blocks[wanted]
        return next(((key, block) for key, block in blocks.items() if block.get("provider") == wanted), ("", {}))


def agent_env_files(folder: Path | None) -> list[Path]:
    """The `.env` files of an agent: beside its file, then in the working folder."""
    here = Path.cwd()
    return env_files(folder or here, here)


def config_files(folder: Path) -> tuple[list[ConfigFile], list[Problem]]:
    """The configuration files, the one beside the agent first, and what is wrong in them.

    A `config.yml` without any key of HoloDeck's belongs to another tool.
    """
    found: list[ConfigFile] = []
    problems: list[Problem] = []
    for place in (folder, _user_folder()):
        path = None if place is None else next((p for name in CONFIG_NAMES if (p := place / name).is_file()), None)
        if path is None:
            continue
        try:
            document = Document(path, read_text(path))
        except InvalidSuite as error:
            problems.extend(error.problems)
            continue
        if isinstance(document.data, dict) and not document.data.keys().isdisjoint((*USED_KEYS, *OTHER_KEYS)):
            found.append(_read_config(document, document.data))
            problems.extend(document.problems)
    return found, problems


def _read_config(document: Document, data: Mapping[str, Json]) -> ConfigFile:
    execution = substitute(document, {k: data[k] for k in ("execution",) if k in data}, conceals=lambda pointer: False)
    others = {key: data[key] for key in ("providers", "mcp_servers") if data.get(key) is not None}
    others = substitute(document, others, conceals=_holds_secrets, keep_unset=True)
    read = validate(ConfigData, {**others, **execution}, document)
    if read is None:
        return ConfigFile(document, {}, ExecutionConfig())
    _check_verbosity(document, read.execution)
    return ConfigFile(document, others, read.execution or ExecutionConfig())


def _holds_secrets(pointer: Pointer) -> bool:
    return bool(pointer) and pointer[0] in ("providers", "mcp_servers")


def _user_folder() -> Path | None:
    try:
        return Path.home() / ".holodeck"
    except RuntimeError:  # there is no home folder
        return None


def _check_verbosity(document: Document, execution: ExecutionConfig | None) -> None:
    if execution is not None and execution.verbose and execution.quiet:
        document.problem(("execution", "quiet"), "cannot be true beside 'verbose'; keep one of them")


def resolve_execution(
    document: Document, own: ExecutionConfig | None, files: Iterable[ConfigFile]
) -> dict[str, ResolvedSetting]:
    """Each execution setting with its origin; `own` is what the agent's file says."""
    _check_verbosity(document, own)
    sources = [(str(document.path), own or ExecutionConfig()), *((str(file.path), file.execution) for file in files)]
    variables = _from_environment(document)
    found: dict[str, ResolvedSetting] = {}
    for name, default in DEFAULTS.items():
        same_as = "timeout" if name == "llm_timeout" else ""
        given = next(((v, origin) for origin, config in sources if (v := getattr(config, name)) is not None), None)
        value, origin = given or variables.get(name) or (default, DEFAULT)
        found[name] = ResolvedSetting(value, origin, same_as)
    return found


def execution_in_force(settings: Mapping[str, ResolvedSetting]) -> ExecutionConfig:
    """The same as one object."""
    return ExecutionConfig.model_construct(**{name: setting.value for name, setting in settings.items()})


def suite_settings(settings: Mapping[str, ResolvedSetting]) -> Settings:
    """What an agent's file says of trials; a timeout that nobody gives is left to the project."""
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
    found: dict[str, tuple[Json, str]] = {}
    for name, default in DEFAULTS.items():
        variable = f"HOLODECK_{name.upper()}"
        text = os.environ.get(variable, "").strip()
        if not text:
            continue
        value, noun = _parse(name, text, default)
        if value is None:
            document.problems.append(Problem(f"{variable} must be {noun}, not {text!r}"))
        else:
            found[name] = value, variable
    return found


def _parse(name: str, text: str, default: Json) -> tuple[Json, str]:
    """The value, or `None` and what it should have been."""
    if isinstance(default, str):
        return text, ""
    if isinstance(default, bool):
        word = text.lower()
        return (True if word in _YES else False if word in _NO else None), "true or false"
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    whole = name == "parallel_test_cases"
    sound = 0 < number < float("inf") and (not whole or (number.is_integer() and number >= 1))
    return (int(number) if number.is_integer() else number) if sound else None, (
        "a whole number from 1" if whole else "a number of seconds above 0"
    )
