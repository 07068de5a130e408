"""Masks secrets in texts and data: for the store, every report, traces, judges and the PII evaluators.

A secret is found by the shape that its vendor gives it or by the name before it (see `secret_patterns`), because a
variable of the environment or of a `.env` file holds it, or because the caller passes it. Data classes are masked
field by field and keep their type, so that the code after masking works as before.
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
    MASK_PATTERN,
    MIN_VALUE_LENGTH,
    Secret,
    find_secrets_in,
    is_secret_value,
    is_secret_variable,
    may_contain_secrets,
    secret_kind,
)
from proctor.base.secret_patterns import is_secret_name as is_secret_name
from proctor.base.secret_patterns import is_secret_variable_name as is_secret_variable_name

ENV_FILE_VALUES: dict[tuple[str, str], None] = {}
"""Name and value of the secrets in `.env` files, for as long as the process runs: reports are written after a run."""


def add_env_file_value(name: str, value: str) -> None:
    """Remember a variable of a `.env` file if it is a secret. `REGION=frankfurt` is not: answers may contain it."""
    if is_secret_variable(name, value):
        ENV_FILE_VALUES[name, value] = None


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with each secret replaced by its kind and length; `secrets` are masked whatever they look like."""
    return _replace_secrets(text, find_secrets(text, secrets))


def mask_values(text: str, secrets: Iterable[str], min_length: int = MIN_VALUE_LENGTH) -> str:
    """`text` with only these secrets masked; those shorter than `min_length` are not looked for."""
    values = [("key", value) for value in secrets if len(value) >= min_length]
    return _replace_secrets(text, _without_overlaps(_find_values(text, values)))


def mask_data(value: Json, secrets: Iterable[str] = (), *, config_names: bool = False) -> Json:
    """The same data without secrets; the same object if it has none. See `is_secret_name` for `config_names`."""
    return Masker(secrets, config_names=config_names).data(value)


def is_masked(text: str) -> bool:
    """Whether the text contains a masked secret."""
    return "[secret: " in text and MASK_PATTERN.search(text) is not None


def find_secrets(text: str, secrets: Iterable[str] = ()) -> list[Secret]:
    """The secrets in the order of the text, without overlaps."""
    return _find(text, _secrets_by_value(secrets))


class Masker:
    """Masks texts and data, with the `secrets` wherever they occur in them; reads the environment once."""

    def __init__(self, secrets: Iterable[str] = (), *, config_names: bool = False) -> None:
        self._values = _secrets_by_value(secrets)
        self._config_names = config_names

    def might_mask(self, value: object) -> bool:
        """Whether data may contain secrets, so that masking is worth its time. A quick check: many times faster."""
        text = "\n".join(texts_in(value))
        return may_contain_secrets(text) or any(secret in text for _, secret in self._values)

    def text(self, text: str) -> str:
        return _replace_secrets(text, _find(text, self._values))

    def data(self, value: Json, name: str = "") -> Json:
        """`value` without secrets, or itself if it has none; `name` is its key or field."""
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
            return _mask_text(secret_kind(name), len(str(value))) if is_secret else value
        simple = to_json(value)
        changed = self.data(simple, name) if isinstance(simple, (str, dict, list)) else simple
        return value if changed is simple else changed

    def _data_class(self, value: Any, name: str) -> Any:
        name_of_value = _name_of_value(value, name)
        changes: dict[str, Any] = {}
        for field in _field_names(cast(Hashable, type(value))) or ():
            old = getattr(value, field)
            new = old if field in UNMASKED_FIELDS else self.data(old, name_of_value if field == "value" else "")
            if new is not old:
                changes[field] = new
        if not changes:
            return value
        try:
            return dataclasses.replace(value, **changes)
        except (TypeError, ValueError):  # a field that `__post_init__` derives, or a text that it refuses
            return self.data(to_json(value), name)

    def _text_under(self, name: str, text: str) -> str:
        if is_secret_value(name, text, config_names=self._config_names):
            return _mask_text(secret_kind(name), len(text))
        return self.text(text) if len(text) >= MIN_VALUE_LENGTH else text


UNMASKED_FIELDS = frozenset({"tool_definitions"})
"""Fields that contain names and no values: the schema of a tool that takes a password contains no password."""


@functools.cache
def _field_names(kind: Hashable) -> tuple[str, ...] | None:
    """The fields of a data class except `position`, which only says where something is written.

    None for any other type. Cached, because every value of every trial is checked.
    """
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(field.name for field in dataclasses.fields(cast(Any, kind)) if field.name != "position")


@functools.cache
def _field_values(kind: Hashable) -> Callable[[Any], tuple[Any, ...]] | None:
    """Takes the values of these fields from an object of the class; None for a type that is not a data class."""
    names = _field_names(kind)
    if names is None:
        return None
    if len(names) < 2:  # `attrgetter` returns a tuple only for several names
        return lambda item: tuple(getattr(item, name) for name in names)
    return operator.attrgetter(*names)


def _name_of_value(value: Any, name: str) -> str:
    """The name of what is in the field `value` of a data class: a named output has it in its field `name`."""
    return (getattr(value, "name", "") or name) if hasattr(value, "value") else ""


def secret_values_in(value: Any, name: str = "") -> Iterator[str]:
    """Texts under the name of a secret, at any depth. Other texts may repeat them without the name."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secret_values_in(item, str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secret_values_in(item, name)
    elif type(value) is str:
        if len(value) >= MIN_VALUE_LENGTH and is_secret_name(name) and is_secret_value(name, value):
            yield value
    elif dataclasses.is_dataclass(type(value)):
        name_of_value = _name_of_value(value, name)
        for field in _field_names(cast(Hashable, type(value))) or ():
            yield from secret_values_in(getattr(value, field), name_of_value if field == "value" else "")


_NON_TEXT_TYPES = frozenset({type(None), bool, int, float})


def texts_in(value: object) -> list[str]:
    """All texts in data or data classes, names of values included, in no particular order."""
    texts: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind is str:
            texts.append(item)  # type: ignore[arg-type]
        elif kind in _NON_TEXT_TYPES:
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
    return [name for name in names if is_secret_variable_name(name)]


def _secrets_by_value(secrets: Iterable[str]) -> list[tuple[str, str]]:
    """Names and values of the secrets to look for by value: variables, `.env` files, and those the caller passed."""
    variables = [(name, os.environ.get(name, "")) for name in _secret_names(tuple(os.environ))]
    values = dict.fromkeys([*variables, *ENV_FILE_VALUES, *(("key", value) for value in secrets)])
    return [(name, value) for name, value in values if len(value) >= MIN_VALUE_LENGTH]


def _find_values(text: str, values: Iterable[tuple[str, str]]) -> Iterator[Secret]:
    """Where the values occur. One of letters alone counts only as a whole word: it may be part of ordinary words."""
    for name, value in values:
        start = text.find(value)
        while start >= 0:
            end = start + len(value)
            is_part = value.isalpha() and (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())
            if not is_part:
                yield Secret(secret_kind(name), start, end, True)
            start = text.find(value, end)


def _without_overlaps(secrets: Iterable[Secret]) -> list[Secret]:
    """The secrets in order, with overlapping ones merged."""
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
        parts += [text[position : secret.start], _mask_text(secret.kind, secret.end - secret.start)]
        position = secret.end
    return "".join([*parts, text[position:]])


def _mask_text(kind: str, length: int) -> str:
    return f"[secret: {kind}, {length} characters]"
