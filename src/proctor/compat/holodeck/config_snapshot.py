"""The configuration a run was made with: the agent's file as it was then, resolved and without a single secret.

Keeps secrets out of records: what stands under the name of one, what looks like one, and whatever repeats them.

Which prompt an agent had: the version that its instructions name, else a mark that changes with their text.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from proctor.base.environment import CONCEALED, VARIABLE, conceal, expand_with, variables_in
from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json, plain, show
from proctor.base.records import record
from proctor.base.source import parse, read_text
from proctor.cases.formats.holodeck import EXTENSION
from proctor.cases.formats.holodeck.agent_file import KEPT
from proctor.cases.formats.holodeck.configuration import ConfigFile, config_files, provider_defaults
from proctor.cases.suite import Suite
from proctor.declared.agent_reader import split_front_matter
from proctor.judging import redaction
from proctor.tracing.secrets import is_secret

UNFILLED = ("env", "headers")
"""Blocks whose variables may hold anything: they stay variables."""


@record
class Censor:
    """Shows data to anybody."""

    secrets: frozenset[str] = frozenset()
    """Texts that must not be told wherever they occur, beside what looks like a key."""

    def shown(
        self, value: Json, name: str = "", *, secret: bool = False, fills: bool = False, widely: bool = False
    ) -> Json:
        """The same data without secrets; with `fills`, variables of the environment that hold none are filled in.

        `widely` takes more names for those of secrets: `key` and `token` are keys where a model is described, and
        ordinary words elsewhere.
        """
        secret, fills = secret or is_named_secret(name, widely), fills and name not in UNFILLED
        if not secret and self._is_harmless(value, fills, widely):
            return value
        if isinstance(value, Mapping):
            return {k: self.shown(item, k, secret=secret, fills=fills, widely=widely) for k, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.shown(item, secret=secret, fills=fills, widely=widely) for item in value]
        if secret and not isinstance(value, bool) and value not in (None, ""):
            return value if isinstance(value, str) and VARIABLE.fullmatch(value) else CONCEALED
        if not isinstance(value, str):
            return value
        return self._clean(filled(value) if fills else value)

    def _is_harmless(self, value: Json, fills: bool, widely: bool) -> bool:
        """Nearly all data is, and looking at it as a whole is much faster than at each of its texts."""
        texts: list[str] = []
        if not _gathered(value, widely, texts):
            return False
        whole = "\n".join(texts)
        return not (fills and "${" in whole) and self._clean(whole) == whole

    def all_shown(self, data: Json) -> Json:
        """Data that may repeat in one place what it holds under the name of a secret in another."""
        if self._is_harmless(data, fills=False, widely=False):
            return data
        return Censor(self.secrets.union(secrets_in(data))).shown(data)

    def _clean(self, text: str) -> str:
        if len(text) < redaction.SHORTEST:
            return text
        return _passwords().sub(rf"\1{CONCEALED}@", redaction.conceal(text, self.secrets))


def _gathered(value: Json, widely: bool, texts: list[str]) -> bool:
    """Whether nothing in it has the name of a secret; its texts, those that are too short for a key aside."""
    if isinstance(value, str):
        if len(value) >= redaction.SHORTEST:
            texts.append(value)
        return True
    if isinstance(value, Mapping):
        return all(not is_named_secret(key, widely) and _gathered(item, widely, texts) for key, item in value.items())
    return not isinstance(value, (list, tuple)) or all(_gathered(item, widely, texts) for item in value)


def secrets_in(value: Json, *, secret: bool = False, widely: bool = False) -> Iterator[str]:
    """What data holds under the names of secrets: texts, and what the variables stand for that are named there."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_in(item, secret=secret or is_named_secret(str(key), widely), widely=widely)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secrets_in(item, secret=secret, widely=widely)
    elif isinstance(value, str) and secret:
        variables = variables_in(value)
        yield from (os.environ[name] for name in variables if name in os.environ)
        if not variables and value != CONCEALED:
            yield value


def filled(text: str) -> str:
    """With the variables of the environment that hold no secret."""
    return expand_with(text, lambda name: None if is_named_secret(name, widely=True) else os.environ.get(name))


@functools.lru_cache(maxsize=4096)
def is_named_secret(name: str, widely: bool) -> bool:
    """Whether values of that name are for nobody's eyes."""
    return is_secret(name) or (widely and conceal(name, "x") == CONCEALED)


@functools.cache
def _passwords() -> re.Pattern[str]:
    return re.compile(r"([a-z][a-z0-9+.-]*://)[^/\s@'\"]+@", re.IGNORECASE)


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

    def resolved(self) -> tuple[dict[str, Json], Censor]:
        """The whole file, its variables filled in, its model and its execution as in force; and who hides its secrets.

        The censor knows every secret of the file, so that no answer and no error that repeats one tells it.
        """
        written = _parsed(self._path, self._text)
        data = dict(written) if isinstance(written, Mapping) else {"name": self._suite.name, **self._kept}
        if self._tests:
            tests = _parsed(self._path, self._tests)
            data["test_cases"] = tests.get("test_cases") if isinstance(tests, Mapping) else tests
        if self._model is not None:
            data["model"] = {**self._model, **_block(data.get("model"))}
        data["execution"] = self._execution
        found = {key: frozenset(secrets_in({key: value}, widely=_widely(key))) for key, value in data.items()}
        elsewhere = secrets_in([self._model, *(file.data for file in self._configs)], widely=True)
        censor = Censor(frozenset(elsewhere).union(*found.values()))
        return {
            key: censor.shown(value, key, fills=True, widely=_widely(key)) for key, value in plain(data).items()
        }, censor

    @property
    def _kept(self) -> Mapping[str, Json]:
        return _block(self._suite.extra.get(EXTENSION))

    def _tests_file(self) -> Path | None:
        named = _block(_parsed(self._path, self._text)).get("test_cases_file")
        return self._path.parent / filled(named) if isinstance(named, str) else None


def _resolved_model(suite: Suite, files: list[ConfigFile]) -> dict[str, Json] | None:
    """The model with what configuration files say of its provider, and what holds where nobody says anything."""
    kept: Any = _block(suite.extra.get(EXTENSION))
    block = kept.get("model")
    if not isinstance(block, Mapping):
        return None
    from proctor.declared.model_reader import MAX_TOKENS, TEMPERATURE

    return {"temperature": TEMPERATURE, "max_tokens": MAX_TOKENS, **provider_defaults(files)(block), **plain(block)}


def _widely(key: str) -> bool:
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
