"""The configuration of a run: the agent's file as it was then, resolved and masked, and the version of its prompt."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from proctor.base.environment import CONCEALED, expand_with, variables_in
from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json, plain, show
from proctor.base.records import record
from proctor.base.secrets import is_masked, is_secret_name, mask_data
from proctor.base.source import parse, read_text
from proctor.cases.formats.holodeck import EXTENSION
from proctor.cases.formats.holodeck.agent_file import KEPT
from proctor.cases.formats.holodeck.configuration import ConfigFile, config_files, provider_defaults
from proctor.cases.suite import Suite
from proctor.declared.agent_reader import split_front_matter

UNFILLED = ("env", "headers")
"""Blocks whose variables may hold anything: they stay variables."""


def secrets_in(value: Json, *, secret: bool = False, wide: bool = False) -> Iterator[str]:
    """What data holds under the names of secrets: texts, and what the variables stand for that are named there."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_in(item, secret=is_secret_name(str(key), wide=wide), wide=wide)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secrets_in(item, secret=secret, wide=wide)
    elif isinstance(value, str) and secret:
        variables = variables_in(value)
        yield from (os.environ[name] for name in variables if name in os.environ)
        if not variables and value != CONCEALED and not is_masked(value):
            yield value


def mask_results(results: list[Json], known: Iterable[str] = ()) -> list[Json]:
    """Results without secrets; also where one repeats what another holds under the name of a secret."""
    masked: list[Json] = mask_data(results, [*known, *secrets_in(results)])
    return masked


def filled(value: Json) -> Json:
    """Data with the variables of the environment that hold no secret filled in."""
    if isinstance(value, Mapping):
        return {
            key: item if key in UNFILLED or is_secret_name(key, wide=True) else filled(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [filled(item) for item in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    return expand_with(value, lambda name: None if is_secret_name(name, wide=True) else os.environ.get(name))


class Snapshot:
    """The text of an agent's file when a run begins; what it says is worked out when a record is written."""

    def __init__(self, suite: Suite, execution: Mapping[str, Json]) -> None:
        self._suite = suite
        self._execution = dict(execution)
        self._path = suite.path or Path("agent.yaml")
        self._text = _read(suite.path)
        self._tests = _read(self._tests_file()) if "test_cases_file" in self._text else ""
        self._configs, _ = config_files(suite.base or Path.cwd())
        self._model = _resolved_model(suite, self._configs)

    def resolved(self) -> tuple[dict[str, Json], frozenset[str]]:
        """The whole file without secrets, its variables filled in, its model and its execution as in force.

        With the secrets of the file, so that they can be masked in answers and errors that repeat one.
        """
        written = _parsed(self._path, self._text)
        data = dict(written) if isinstance(written, Mapping) else {"name": self._suite.name, **self._kept}
        if self._tests:
            tests = _parsed(self._path, self._tests)
            data["test_cases"] = tests.get("test_cases") if isinstance(tests, Mapping) else tests
        if self._model is not None:
            data["model"] = {**self._model, **_block(data.get("model"))}
        data["execution"] = self._execution
        found = {key: frozenset(secrets_in({key: value}, wide=_wide(key))) for key, value in data.items()}
        elsewhere = secrets_in([self._model, *(file.data for file in self._configs)], wide=True)
        known = frozenset(elsewhere).union(*found.values())
        shown = {key: mask_data({key: filled(value)}, known, wide=_wide(key)) for key, value in plain(data).items()}
        return {key: value[key] for key, value in shown.items()}, known

    @property
    def _kept(self) -> Mapping[str, Json]:
        return _block(self._suite.extra.get(EXTENSION))

    def _tests_file(self) -> Path | None:
        named = _block(_parsed(self._path, self._text)).get("test_cases_file")
        return self._path.parent / filled(named) if isinstance(named, str) else None


def _resolved_model(suite: Suite, files: list[ConfigFile]) -> dict[str, Json] | None:
    """The model with what configuration files say of its provider, and the defaults for the rest."""
    kept: Any = _block(suite.extra.get(EXTENSION))
    block = kept.get("model")
    if not isinstance(block, Mapping):
        return None
    from proctor.declared.description import MAX_TOKENS, TEMPERATURE

    return {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS, **provider_defaults(files)(block), **plain(block)}


def _wide(key: str) -> bool:
    """Tests and metrics may speak of keys and tokens; whatever describes the agent means them."""
    return key in KEPT


def _block(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _read(path: Path | None) -> str:
    try:
        return read_text(path) if path is not None and path.is_file() else ""
    except (InvalidSuite, ValueError, OSError):
        return ""


def _parsed(path: Path, text: str) -> Json:
    try:
        return parse(path, text) if text else None
    except InvalidSuite:
        return None


_NO_NOTES: Mapping[str, Json] = {}
_NOTED = ("version", "author", "description", "tags")


@record
class PromptVersion:
    """What instructions say of themselves at their head, and what identifies the text that is sent."""

    version: str
    """As the instructions say, else `auto-` and the beginning of `body_hash`."""
    author: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    source: str = "inline"
    """`inline` or `file`."""
    file_path: str | None = None
    body_hash: str = ""
    """SHA-256 of the text without its notes."""
    extra: Mapping[str, Json] | None = None
    """Whatever else is noted."""


def prompt_version_of(suite: Suite) -> PromptVersion | None:
    """The prompt as it is now; `None` where the file has none, or one that cannot be read."""
    kept: Any = suite.extra.get(EXTENSION) or {}
    given = kept.get("instructions")
    if not isinstance(given, Mapping):
        return None
    path = given.get("file")
    text, notes = given.get("inline"), _NO_NOTES
    if isinstance(path, str):
        file = (suite.base or Path.cwd()) / path
        with suppress(InvalidSuite, ValueError):  # broken notes are a part of the text
            text = read_text(file)
            notes, text = split_front_matter(file, text)
    if not isinstance(text, str):
        return None
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    tags = notes.get("tags")
    return PromptVersion(
        version=f"auto-{mark[:8]}" if notes.get("version") is None else show(notes["version"]),
        author=_text(notes.get("author")),
        description=_text(notes.get("description")),
        tags=tuple(show(tag) for tag in (tags if isinstance(tags, list) else [tags] if tags else [])),
        source="file" if isinstance(path, str) else "inline",
        file_path=path if isinstance(path, str) else None,
        body_hash=mark,
        extra={key: plain(value) for key, value in notes.items() if key not in _NOTED} or None,
    )


def _text(value: Json) -> str | None:
    return None if value is None else show(value)
