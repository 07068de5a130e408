"""The configuration a run was made with: the agent's file as it was then, resolved and without a single secret."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.cases.formats.holodeck import EXTENSION, KEPT
from proctor.cases.formats.holodeck_config import ConfigFile, config_files, provider_defaults
from proctor.cases.model import Suite
from proctor.cases.source import parse, read_text
from proctor.compat.holodeck.censor import Censor, filled, secrets_in
from proctor.errors import InvalidSuite
from proctor.plain import Json, plain


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
    from proctor.declarative.reading_model import MAX_TOKENS, TEMPERATURE

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
