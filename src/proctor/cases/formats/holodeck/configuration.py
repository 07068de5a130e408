"""HoloDeck's configuration: `config.yml` beside the agent and in the user's own folder, and the `execution` settings.

Each setting has an origin: the agent's file, a configuration file, the environment, or the default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.base.documents import Document, Fields
from proctor.base.environment import env_files
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json
from proctor.base.source import Pointer, read_text
from proctor.cases.formats.holodeck.variables import substitute
from proctor.cases.suite import Suite

NAMES = ("config.yml", "config.yaml")
USED = ("execution", "providers", "mcp_servers")
"""What tests take from such a file."""
ELSEWHERE = ("vectorstores", "deployment", "observability")
"""What such a file may say besides."""
MODEL_KEYS = (
    "provider",
    "name",
    "temperature",
    "max_tokens",
    "top_p",
    "endpoint",
    "api_key",
    "api_version",
    "auth_provider",
)
"""What may be said of a provider's models."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One configuration file, with a document that collects what is wrong in it."""

    document: Document
    data: Mapping[str, Json]

    @property
    def path(self) -> Path:
        return self.document.path

    def block(self, name: str) -> Json:
        return self.data.get(name)


def agent_env_files(folder: Path | None) -> list[Path]:
    """The `.env` files of an agent: beside its file, then in the working folder."""
    here = Path.cwd()
    return env_files(folder or here, here)


def config_files(folder: Path, home: Path | None = None) -> tuple[list[ConfigFile], list[Problem]]:
    """The files that are there, the more particular one first; what cannot be read is a problem.

    A `config.yml` without any key of HoloDeck belongs to another tool.
    """
    found: list[ConfigFile] = []
    problems: list[Problem] = []
    for place in (folder, _own_folder(home)):
        path = _first(place)
        if path is None:
            continue
        try:
            document = Document(path, read_text(path))
        except InvalidSuite as error:
            problems.extend(error.problems)
            continue
        if isinstance(document.data, dict) and not document.data.keys().isdisjoint((*USED, *ELSEWHERE)):
            wanted = {name: document.data[name] for name in USED if name in document.data}
            problems.extend(_misshapen(document, wanted))
            data = substitute(document, wanted, conceals=_describes_a_model)
            found.append(ConfigFile(document, data))
    return found, problems


def _misshapen(document: Document, blocks: Mapping[str, Json]) -> list[Problem]:
    """What is wrong with `providers` and `mcp_servers`, whether this agent uses them or not."""
    apart = Document(document.path, document.text, blocks)
    fields = Fields(apart, blocks)
    for key, block in (fields.mapping("providers") or {}).items():
        inside = Fields(apart, block, ("providers", key))
        for known in MODEL_KEYS:
            inside.take(known)
        inside.done()
    fields.each("mcp_servers", lambda server, pointer: Fields(apart, server, pointer))
    return apart.problems


def _describes_a_model(pointer: Pointer) -> bool:
    return bool(pointer) and pointer[0] in ("providers", "mcp_servers")


def _own_folder(home: Path | None) -> Path | None:
    try:
        return (home or Path.home()) / ".holodeck"
    except RuntimeError:  # there is no home folder
        return None


def _first(folder: Path | None) -> Path | None:
    if folder is None:
        return None
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


ProviderDefaults = Callable[[Mapping[str, Json]], dict[str, Json]]


def provider_defaults(files: list[ConfigFile]) -> ProviderDefaults:
    """What configuration files say of the provider that a model block names: by its key, or by its `provider`."""

    def of(model: Mapping[str, Json]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for file in reversed(files):
            _, chosen = provider_block(file, model)
            found |= {key: value for key, value in chosen.items() if key != "provider"}
        return found

    return of


def provider_block(file: ConfigFile, model: Mapping[str, Json]) -> tuple[str, Mapping[str, Json]]:
    """The entry of a file for the provider that a model block names, with its key; empty where there is none."""
    wanted = model.get("provider")
    blocks = file.block("providers")
    known = {key: block for key, block in blocks.items() if isinstance(block, dict)} if isinstance(blocks, dict) else {}
    if isinstance(wanted, str) and wanted in known:
        return wanted, known[wanted]
    return next(((key, block) for key, block in known.items() if block.get("provider") == wanted), ("", {}))


DEFAULT = "default"

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


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it comes from."""

    value: Json
    origin: str


def read_execution(inside: Fields) -> dict[str, Json]:
    """What one `execution` block says; what is wrong in it is told its document."""
    given = {name: _TAKEN[name](inside, name) for name in DEFAULTS}
    if given["verbose"] and given["quiet"]:
        inside.problem("quiet", "cannot be true beside 'verbose'; keep one of them")
    inside.done()
    return {name: value for name, value in given.items() if value is not None}


def resolve_execution(
    own: Mapping[str, Json],
    origin: str,
    files: Iterable[ConfigFile] = (),
    environment: Mapping[str, str] | None = None,
) -> tuple[dict[str, Setting], list[Problem]]:
    """The first source that gives a value wins: agent's file, configuration files, environment, defaults."""
    problems: list[Problem] = []
    layers: list[tuple[str, Mapping[str, Json]]] = [(origin, own)]
    for file in files:
        before = len(file.document.problems)
        if file.block("execution") is not None:
            inside = Fields(file.document, file.block("execution"), ("execution",))
            layers.append((str(file.path), read_execution(inside)))
        problems.extend(file.document.problems[before:])
    said = _from_environment(os.environ if environment is None else environment, problems)
    found: dict[str, Setting] = {}
    for name, usual in DEFAULTS.items():
        layer = next((layer for layer in layers if name in layer[1]), None)
        if layer is not None:
            found[name] = Setting(layer[1][name], layer[0])
        else:
            found[name] = said.get(name, Setting(usual, DEFAULT))
    return found, problems


def execution_of(suite: Suite) -> dict[str, Setting]:
    """The settings in force for the suite of an agent.yaml, the command line aside."""
    own: dict[str, Json] = {}
    folder = suite.base or Path.cwd()
    if suite.path is not None and suite.path.is_file():
        document = Document(suite.path, read_text(suite.path))
        block = document.data.get("execution") if isinstance(document.data, dict) else None
        if isinstance(block, dict):
            filled = substitute(document, block, conceals=lambda pointer: False)
            own = read_execution(Fields(document, filled, ("execution",)))
    files, _ = config_files(folder)
    return resolve_execution(own, str(suite.path), files)[0]


def _seconds(fields: Fields, name: str) -> Any:
    value = fields.number(name)
    if value is not None and value <= 0:
        fields.problem(name, "must be more than 0 seconds")
        return None
    return value


def _at_least_one(fields: Fields, name: str) -> Any:
    return fields.integer(name, least=1)


def _folder(fields: Fields, name: str) -> Any:
    return fields.text(name, blank=False)


_TAKEN: Mapping[str, Callable[[Fields, str], Any]] = {
    "file_timeout": _seconds,
    "llm_timeout": _seconds,
    "download_timeout": _seconds,
    "cache_enabled": Fields.flag,
    "cache_dir": _folder,
    "verbose": Fields.flag,
    "quiet": Fields.flag,
    "parallel_test_cases": _at_least_one,
}

_YES, _NO = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


def _from_environment(environment: Mapping[str, str], problems: list[Problem]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for name, usual in DEFAULTS.items():
        variable = f"HOLODECK_{name.upper()}"
        text = environment.get(variable, "").strip()
        if not text:
            continue
        value, noun = _parsed(name, text, usual)
        if value is None:
            problems.append(Problem(f"{variable} must be {noun}, not {text!r}"))
        else:
            found[name] = Setting(value, variable)
    return found


def _parsed(name: str, text: str, usual: Json) -> tuple[Json, str]:
    """The value, or `None` and what it should have been."""
    if isinstance(usual, str):
        return text, ""
    if isinstance(usual, bool):
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
