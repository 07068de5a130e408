"""Replaces `${NAME}` by variables of the environment, and keeps secrets out of what is kept."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping

from proctor.base.errors import UsageError
from proctor.base.fields import Document
from proctor.base.json_data import Json
from proctor.base.secrets import is_secret_name
from proctor.base.source import Pointer

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
CONCEALED = "***"
_DEEPEST = 150


def variables_in(text: str) -> list[str]:
    """The environment variables that `text` refers to as `${NAME}`."""
    return VARIABLE.findall(text)


def expand_with(text: str, value_of: Callable[[str], str | None]) -> str:
    """`text` with each `${NAME}` replaced by `value_of(NAME)`; where that is `None` it stays as it is written."""
    if "${" not in text:
        return text

    def replaced(found: re.Match[str]) -> str:
        value = value_of(found.group(1))
        return found.group() if value is None else value

    return VARIABLE.sub(replaced, text)


def expand(text: str, key: str) -> str:
    """`text` with each `${NAME}` replaced by that variable; raises `UsageError` that names `key` if it is not set."""

    def value(name: str) -> str:
        found = os.environ.get(name)
        if found is None:
            raise UsageError(f"{key} {unset(name)}")
        return found

    return expand_with(text, value)


def unset(name: str) -> str:
    """What is said of a value that uses a variable which is not there."""
    return f"uses ${{{name}}}, which is not set in the environment"


def substitute(
    document: Document,
    data: Json,
    *,
    conceals: Callable[[Pointer], bool],
    environment: Mapping[str, str] | None = None,
) -> Json:
    """`data` with its variables filled in; one that is not set is a problem.

    Below a place that `conceals`, secrets are never filled in: `${API_KEY}` stays as it is written, so that it can be
    looked up when it is needed, and a secret written out becomes `***`.
    """
    filling = _Filling(document, conceals, os.environ if environment is None else environment)
    return filling.value(data, (), secret=False)


class _Filling:
    def __init__(self, document: Document, conceals: Callable[[Pointer], bool], environment: Mapping[str, str]) -> None:
        self._document = document
        self._conceals = conceals
        self._environment = environment
        self._done: dict[tuple[int, bool, bool], Json] = {}
        self._open: set[int] = set()

    def value(self, value: Json, pointer: Pointer, *, secret: bool) -> Json:
        """`secret`: it stands under a key whose name says so."""
        if isinstance(value, str):
            return self._text(value, pointer, secret)
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                self._document.problem(pointer, "must be a finite number")
            return value
        if not isinstance(value, (dict, list)):
            self._document.problem(pointer, f"must be plain data, not {type(value).__name__}")
            return None
        return self._container(value, pointer, secret)

    def _container(self, value: dict[str, Json] | list[Json], pointer: Pointer, secret: bool) -> Json:
        """YAML's aliases may share a value many times over, or put it inside itself; each is walked once."""
        key = (id(value), secret, self._conceals(pointer))
        if key in self._done:
            return self._done[key]
        if id(value) in self._open or len(pointer) > _DEEPEST:
            self._document.problem(pointer[:_DEEPEST], "is nested too deeply, or inside itself")
            return None
        self._open.add(id(value))
        if isinstance(value, dict):
            filled: Json = {
                name: self.value(item, (*pointer, name), secret=is_secret_name(name, wide=True))
                for name, item in value.items()
            }
        else:
            filled = [self.value(item, (*pointer, index), secret=secret) for index, item in enumerate(value)]
        self._open.discard(id(value))
        self._done[key] = filled
        return filled

    def _text(self, text: str, pointer: Pointer, secret: bool) -> str:
        conceals = self._conceals(pointer)
        if conceals and secret:
            return text if not text or VARIABLE.search(text) else CONCEALED
        return expand_with(text, lambda name: self._variable(name, pointer, conceals))

    def _variable(self, name: str, pointer: Pointer, conceals: bool) -> str | None:
        if conceals and is_secret_name(name, wide=True):
            return None
        if name not in self._environment:
            self._document.problem(pointer, unset(name))
        return self._environment.get(name, "")


def conceal(name: str, value: Json) -> Json:
    """A value under `name` as it may be shown: of a secret, the variable that holds it and nothing else."""
    if not is_secret_name(name, wide=True) or not isinstance(value, str) or not value or VARIABLE.fullmatch(value):
        return value
    return CONCEALED
