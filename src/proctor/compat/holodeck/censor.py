"""Keeps secrets out of records: what stands under the name of one, what looks like one, and whatever repeats them."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping

from proctor.cases.formats.environment import CONCEALED, VARIABLE, conceal
from proctor.judging import redaction
from proctor.plain import Json
from proctor.records import record
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
        variables = VARIABLE.findall(value)
        yield from (os.environ[name] for name in variables if name in os.environ)
        if not variables and value != CONCEALED:
            yield value


def filled(text: str) -> str:
    """With the variables of the environment that hold no secret."""
    if "${" not in text:
        return text
    return VARIABLE.sub(lambda v: v[0] if is_named_secret(v[1], widely=True) else os.environ.get(v[1], v[0]), text)


@functools.lru_cache(maxsize=4096)
def is_named_secret(name: str, widely: bool) -> bool:
    """Whether values of that name are for nobody's eyes."""
    return is_secret(name) or (widely and conceal(name, "x") == CONCEALED)


@functools.cache
def _passwords() -> re.Pattern[str]:
    return re.compile(r"([a-z][a-z0-9+.-]*://)[^/\s@'\"]+@", re.IGNORECASE)
