"""HoloDeck's configuration files: `config.yml` beside the agent, then the one in the user's own folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from proctor.cases.fields import Document, Fields
from proctor.cases.formats.environment import substitute
from proctor.cases.source import Pointer, read_text
from proctor.errors import InvalidSuite, Problem
from proctor.plain import Json
from proctor.records import record

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


@record
class ConfigFile:
    """One configuration file, with a document that collects what is wrong in it."""

    document: Document
    data: Mapping[str, Json]

    @property
    def path(self) -> Path:
        return self.document.path

    def block(self, name: str) -> Json:
        return self.data.get(name)


def config_files(folder: Path, home: Path | None = None) -> tuple[list[ConfigFile], list[Problem]]:
    """The files that are there, the more particular one first; what cannot be read is a problem.

    A `config.yml` that has nothing HoloDeck knows is somebody else's.
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
    """What is wrong with `providers` and `mcp_servers` whoever uses them."""
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
    except RuntimeError:  # nobody is at home here
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
