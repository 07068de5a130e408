"""Variables in HoloDeck's files: `${NAME}` is filled in when a file is read, except where it holds a secret."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from proctor.base.documents import Document
from proctor.base.environment import VARIABLE, expand_with, unset_variable_message
from proctor.base.json_data import Json
from proctor.base.masking import is_secret_name
from proctor.base.positions import Pointer

MASKED = "***"
"""What is shown and stored instead of a secret that was written out."""
_MAX_DEPTH = 150


def substitute(
    document: Document,
    data: Json,
    *,
    hides_secrets: Callable[[Pointer], bool],
    keep_unset: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Any:
    """`data` with its variables filled in.

    A variable that is not set is a problem, or is left as it is if `keep_unset`. At places for which `hides_secrets` is
    true, secrets are never filled in: `${API_KEY}` stays as it is written and is looked up when it is needed, and a
    secret that was written out becomes `***`.
    """
    substitution = _Substitution(
        document, hides_secrets, keep_unset, os.environ if environment is None else environment
    )
    return substitution.value(data, (), secret=False)


class _Substitution:
    """Walks the data of one document and fills in variables."""

    def __init__(
        self,
        document: Document,
        hides_secrets: Callable[[Pointer], bool],
        keep_unset: bool,
        environment: Mapping[str, str],
    ) -> None:
        self._document = document
        self._conceals = hides_secrets
        self._keep_unset = keep_unset
        self._environment = environment
        self._results: dict[tuple[int, bool, bool], Json] = {}
        self._in_progress: set[int] = set()

    def value(self, value: Json, pointer: Pointer, *, secret: bool) -> Json:
        """A value with its variables filled in; `secret` if the name of its key says so."""
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
        """An object or list, processed once even if YAML aliases repeat it or nest it in itself."""
        key = (id(value), secret, self._conceals(pointer))
        if key in self._results:
            return self._results[key]
        if id(value) in self._in_progress or len(pointer) > _MAX_DEPTH:
            self._document.problem(pointer[:_MAX_DEPTH], "is nested too deeply, or inside itself")
            return None
        self._in_progress.add(id(value))
        if isinstance(value, dict):
            result: Json = {
                name: self.value(item, (*pointer, name), secret=is_secret_name(name, config_names=True))
                for name, item in value.items()
            }
        else:
            result = [self.value(item, (*pointer, index), secret=secret) for index, item in enumerate(value)]
        self._in_progress.discard(id(value))
        self._results[key] = result
        return result

    def _text(self, text: str, pointer: Pointer, secret: bool) -> str:
        hides_secrets = self._conceals(pointer)
        if hides_secrets and secret:
            return text if not text or VARIABLE.search(text) else MASKED
        return expand_with(text, lambda name: self._variable(name, pointer, hides_secrets))

    def _variable(self, name: str, pointer: Pointer, hides_secrets: bool) -> str | None:
        if hides_secrets and is_secret_name(name, config_names=True):
            return None
        if name not in self._environment and self._keep_unset:
            return None
        if name not in self._environment:
            self._document.problem(pointer, unset_variable_message(name))
        return self._environment.get(name, "")


def mask_secret(name: str, value: Json) -> Json:
    """A value as it may be shown: of a secret, only the variable that holds it."""
    if (
        not is_secret_name(name, config_names=True)
        or not isinstance(value, str)
        or not value
        or VARIABLE.fullmatch(value)
    ):
        return value
    return MASKED
