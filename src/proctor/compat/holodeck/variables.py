"""Variables in HoloDeck's files: `${NAME}` is filled in when a file is read, except where it holds a secret."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from proctor.base.documents import Document
from proctor.base.environment import VARIABLE, expand_with, unset
from proctor.base.json_data import Json
from proctor.base.masking import is_secret_name
from proctor.base.positions import Pointer

CONCEALED = "***"
_DEEPEST = 150


def substitute(
    document: Document,
    data: Json,
    *,
    conceals: Callable[[Pointer], bool],
    keep_unset: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Any:
    """`data` with its variables filled in; one that is not set is a problem, or stays as it is if `keep_unset`.

    Below a place that `conceals`, secrets are never filled in: `${API_KEY}` stays as it is written, so that it can be
    looked up when it is needed, and a secret written out becomes `***`.
    """
    filling = _Filling(document, conceals, keep_unset, os.environ if environment is None else environment)
    return filling.value(data, (), secret=False)


class _Filling:
    def __init__(
        self,
        document: Document,
        conceals: Callable[[Pointer], bool],
        keep_unset: bool,
        environment: Mapping[str, str],
    ) -> None:
        self._document = document
        self._conceals = conceals
        self._keep_unset = keep_unset
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
        if name not in self._environment and self._keep_unset:
            return None
        if name not in self._environment:
            self._document.problem(pointer, unset(name))
        return self._environment.get(name, "")


def conceal(name: str, value: Json) -> Json:
    """A value under `name` as it may be shown: of a secret, the variable that holds it and nothing else."""
    if not is_secret_name(name, wide=True) or not isinstance(value, str) or not value or VARIABLE.fullmatch(value):
        return value
    return CONCEALED
