"""Masks secrets in texts and data: the one way for the store, every report, traces, judges and PII.

A secret is found by the shape that its vendor gives it or by the name before it (see `secret_patterns`), because a
variable of the environment or of a `.env` file holds it, or because the caller knows it. Data classes are masked field
by field and keep their type, so that everything after the masking works as before it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, cast

from proctor.base.json_data import Json, to_json, to_text
from proctor.base.secret_patterns import (
    MASKED,
    MIN_VALUE_LENGTH,
    Secret,
    find_secrets_in,
    is_secret_value,
    is_secret_variable,
    kind_of,
    may_contain_secrets,
)
from proctor.base.secret_patterns import is_secret_name as is_secret_name

ENV_FILE_VALUES: dict[tuple[str, str], None] = {}
"""Name and value of the secrets in `.env` files, for as long as the process runs: reports are written after a run."""


def add_env_file_value(name: str, value: str) -> None:
    """Remember a variable of a `.env` file if it is a secret. `REGION=frankfurt` is not: it is in ordinary answers."""
    if is_secret_variable(name, value):
        ENV_FILE_VALUES[name, value] = None


def mask(text: str, known: Iterable[str] = ()) -> str:
    """`text` with each secret replaced by its kind and length; `known` are secrets whatever they look like."""
    return _replace_secrets(text, find_secrets(text, known))


def mask_values(text: str, known: Iterable[str], shortest: int = MIN_VALUE_LENGTH) -> str:
    """`text` without the `known` secrets, and otherwise as it is."""
    values = [("key", value) for value in known if len(value) >= shortest]
    return _replace_secrets(text, _without_overlaps(_find_values(text, values)))


def mask_data(value: Json, known: Iterable[str] = (), *, wide: bool = False) -> Json:
    """The same data without secrets; the same object if it has none. See `is_secret_name` for `wide`."""
    return Masker(known, wide=wide).data(value)


def is_masked(text: str) -> bool:
    """Whether a secret was masked in it."""
    return "[secret: " in text and MASKED.search(text) is not None


def find_secrets(text: str, known: Iterable[str] = ()) -> list[Secret]:
    """The secrets in the order of the text, without overlaps."""
    return _find(text, _known_values(known))


class Masker:
    """Masks texts and data, and whatever repeats the `known` secrets; reads the environment once."""

    def __init__(self, known: Iterable[str] = (), *, wide: bool = False) -> None:
        self._values = _known_values(known)
        self._wide = wide

    def may_find_in(self, value: object) -> bool:
        """Whether it is worth looking for secrets in data: false for ordinary words, and many times quicker."""
        text = "\n".join(texts_in(value))
        return may_contain_secrets(text) or any(secret in text for _, secret in self._values)

    def text(self, text: str) -> str:
        return _replace_secrets(text, _find(text, self._values))

    def data(self, value: Json, name: str = "") -> Json:
        """`value` without secrets, or itself if it has none; `name` is the one that it stands under."""
        kind = type(value)
        if kind is str:
            return self._text_under(name, value)
        if value is None or kind is bool or kind is float or isinstance(value, enum.Enum):
            return value
        if dataclasses.is_dataclass(kind):
            return self._data_class(value, name)
        if isinstance(value, (list, tuple)):
            items = [self.data(item, name) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return tuple(items) if isinstance(value, tuple) else items
        if isinstance(value, Mapping):
            changed = {key: self.data(item, str(key)) for key, item in value.items()}
            return value if all(changed[key] is item for key, item in value.items()) else changed
        if isinstance(value, int):
            is_secret = abs(value) >= 1000 and name and is_secret_name(name)
            return _mask_of(kind_of(name), len(str(value))) if is_secret else value
        simple = to_json(value)
        changed = self.data(simple, name) if isinstance(simple, (str, dict, list)) else simple
        return value if changed is simple else changed

    def _data_class(self, value: Any, name: str) -> Any:
        name_of_value = _name_of_value(value, name)
        changes: dict[str, Any] = {}
        for field in _field_names(cast(Hashable, type(value))) or ():
            old = getattr(value, field)
            new = old if field in NOT_MASKED else self.data(old, name_of_value if field == "value" else "")
            if new is not old:
                changes[field] = new
        if not changes:
            return value
        try:
            return dataclasses.replace(value, **changes)
        except (TypeError, ValueError):  # a field that `__post_init__` derives, or a text that it refuses
            return self.data(to_json(value), name)

    def _text_under(self, name: str, text: str) -> str:
        if is_secret_value(name, text, wide=self._wide):
            return _mask_of(kind_of(name), len(text))
        return self.text(text) if len(text) >= MIN_VALUE_LENGTH else text


NOT_MASKED = frozenset({"tool_definitions"})
"""Fields that hold names and no values: the schema of a tool that takes a password contains no password."""


@functools.cache
def _field_names(kind: Hashable) -> tuple[str, ...] | None:
    """The fields of a data class but for `position`, which only says where something is written or comes.

    None for any other type. Cached, because every value of every trial is looked at.
    """
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(field.name for field in dataclasses.fields(cast(Any, kind)) if field.name != "position")


@functools.cache
def _field_values(kind: Hashable) -> Callable[[Any], tuple[Any, ...]] | None:
    """Takes the values of these fields from an object of the class; None for a type that is no data class."""
    names = _field_names(kind)
    if names is None:
        return None
    if len(names) < 2:  # `attrgetter` returns a tuple only for several names
        return lambda item: tuple(getattr(item, name) for name in names)
    return operator.attrgetter(*names)


def _name_of_value(value: Any, name: str) -> str:
    """The name under which the field `value` of a data class stands: that of a named output is beside it."""
    return (getattr(value, "name", "") or name) if hasattr(value, "value") else ""


def values_under_names(value: Any, name: str = "") -> Iterator[str]:
    """Texts that stand under the name of a secret, at any depth: elsewhere they may be repeated without the name."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from values_under_names(item, str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from values_under_names(item, name)
    elif type(value) is str:
        if len(value) >= MIN_VALUE_LENGTH and is_secret_name(name) and is_secret_value(name, value):
            yield value
    elif dataclasses.is_dataclass(type(value)):
        name_of_value = _name_of_value(value, name)
        for field in _field_names(cast(Hashable, type(value))) or ():
            yield from values_under_names(getattr(value, field), name_of_value if field == "value" else "")


_WITHOUT_TEXT = frozenset({type(None), bool, int, float})


def texts_in(value: object) -> list[str]:
    """All texts in data or data classes, names of values included, in no particular order."""
    texts: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind is str:
            texts.append(item)  # type: ignore[arg-type]
        elif kind in _WITHOUT_TEXT:
            continue
        elif kind is tuple or isinstance(item, (list, tuple)):
            waiting += item  # type: ignore[arg-type]
        elif (values_of := _field_values(cast(Hashable, kind))) is not None:
            waiting += values_of(item)
        elif isinstance(item, Mapping):
            waiting += map(str, item)
            waiting += item.values()
        elif not isinstance(item, enum.Enum):
            texts.append(to_text(to_json(item)))
    return texts


def _find(text: str, values: list[tuple[str, str]]) -> list[Secret]:
    return _without_overlaps([*_find_values(text, values), *find_secrets_in(text)])


@functools.lru_cache(maxsize=8)
def _secret_names(names: tuple[str, ...]) -> list[str]:
    """The variables that are secrets by their name; the same for nearly all trials of a run."""
    return [name for name in names if is_secret_name(name, wide=True)]


def _known_values(known: Iterable[str]) -> list[tuple[str, str]]:
    """Names and values of secrets that are looked for as they are: of variables, of `.env` files, and `known` ones."""
    variables = [(name, os.environ.get(name, "")) for name in _secret_names(tuple(os.environ))]
    values = dict.fromkeys([*variables, *ENV_FILE_VALUES, *(("key", value) for value in known)])
    return [(name, value) for name, value in values if len(value) >= MIN_VALUE_LENGTH and name not in ("PWD", "OLDPWD")]


def _find_values(text: str, values: Iterable[tuple[str, str]]) -> Iterator[Secret]:
    """A value of letters alone counts only as a whole word: a password may be a part of ordinary words."""
    for name, value in values:
        start = text.find(value)
        while start >= 0:
            end = start + len(value)
            is_part = value.isalpha() and (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())
            if not is_part:
                yield Secret(kind_of(name), start, end, True)
            start = text.find(value, end)


def _without_overlaps(secrets: Iterable[Secret]) -> list[Secret]:
    """In order; one that overlaps an earlier one becomes a part of it."""
    merged: list[Secret] = []
    for secret in sorted(secrets, key=lambda secret: (secret.start, -secret.end)):
        if merged and secret.start < merged[-1].end:
            if secret.end > merged[-1].end:
                merged[-1] = dataclasses.replace(merged[-1], end=secret.end)
        else:
            merged.append(secret)
    return merged


def _replace_secrets(text: str, secrets: list[Secret]) -> str:
    if not secrets:
        return text
    parts: list[str] = []
    position = 0
    for secret in secrets:
        parts += [text[position : secret.start], _mask_of(secret.kind, secret.end - secret.start)]
        position = secret.end
    return "".join([*parts, text[position:]])


def _mask_of(kind: str, length: int) -> str:
    return f"[secret: {kind}, {length} characters]"
