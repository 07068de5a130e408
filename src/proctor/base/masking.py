"""Masks secrets in texts and data: for the store, every report, traces, judges and the PII evaluators.

A secret is found by the shape that its vendor gives it or by the name before it (see `secret_patterns`), because a
variable of the environment or of a `.env` file holds it, as it is or encoded, or because the caller passes it. Data
classes are masked field by field and keep their type, so that the code after masking works as before. The keys of
objects are masked like their values.

What replaces a secret depends on the secret alone, not on the name before it or its place: one secret has one mask in
all texts of a run, and masked texts can be compared.
"""

from __future__ import annotations

import base64
import bisect
import dataclasses
import enum
import functools
import html
import json
import operator
import os
import re
import urllib.parse
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from proctor.base.json_data import Json, to_json, to_text
from proctor.base.secret_names import (
    MASK_PATTERN,
    Strength,
    is_name_key,
    is_private_key_part,
    is_secret_value,
    is_typed_key,
    is_typed_password,
    is_value_key,
    name_strength,
    password_field,
)
from proctor.base.secret_names import is_secret_name as is_secret_name
from proctor.base.secret_names import is_secret_variable_name as is_secret_variable_name
from proctor.base.secret_patterns import (
    MIN_VALUE_LENGTH,
    find_secrets_in,
    is_secret_variable,
    may_contain_secrets,
)
from proctor.base.secret_shapes import URL_PASSWORD, Secret, find_shapes

MAX_ARGUMENT, MIN_ARGUMENT = 400, 4
"""Lengths of words of a command line, and of the secrets in it."""
PIECE_LENGTH = 8
"""From how many characters on a piece of a secret is masked where somebody quotes it."""
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
    names = {value: name for name, value in _variables()}
    values = [(names.get(value, ""), value) for value in secrets if len(value) >= min_length]
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

    def __init__(self, secrets: Iterable[str] = (), *, quoted: Iterable[str] = (), config_names: bool = False) -> None:
        """`quoted` are secrets of which the texts may have only a piece."""
        self._values = _secrets_by_value(secrets)
        self._pieces = {
            secret[at : at + PIECE_LENGTH] for secret in quoted for at in range(len(secret) - PIECE_LENGTH + 1)
        }
        self._config_names = config_names

    def might_mask(self, value: object) -> bool:
        """Whether data may contain secrets, so that masking is worth its time. A quick check: many times faster."""
        text = "\n".join(texts_in(value))
        return may_contain_secrets(text) or next(_find_values(text, self._values), None) is not None

    def text(self, text: str) -> str:
        found = _find(text, self._values)
        if self._pieces:
            found = _without_overlaps(_without_masks(text, [*found, *_find_pieces(text, self._pieces)]))
        return _replace_secrets(text, found)

    def secrets_in(self, value: object) -> set[str]:
        """The secrets in the texts of data, as they are written there, and without a sign that may end the sentence."""
        found = {text[secret.start : secret.end] for text in texts_in(value) for secret in _find(text, self._values)}
        return found | {secret.rstrip(".!?") for secret in found}

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
            items = [self.data(item, name) for item in self._without_passwords(value)]
            return _unless_same(tuple(items) if isinstance(value, tuple) else items, value)
        if isinstance(value, Mapping):
            return self._object(value, name)
        if isinstance(value, int):
            is_secret = abs(value) >= 1000 and name and is_secret_name(name)
            return mask_text("", len(str(value))) if is_secret else value
        if isinstance(value, (bytes, bytearray)):  # in plain data they are Base64, in which no secret is recognized
            text = bytes(value).decode("utf-8", "replace")
            masked = self._text_under(name, text)
            return value if masked == text else masked
        simple = to_json(value)
        changed = self.data(simple, name) if isinstance(simple, (str, dict, list)) else simple
        return value if changed is simple else changed

    def _row(self, row: Json, columns: Sequence[str]) -> Json:
        """A row of a table without secrets; its columns say what the cells are."""
        if not isinstance(row, list) or len(row) != len(columns):
            return self.data(row)
        cells = [self.data(cell, name) for name, cell in zip(columns, row, strict=True)]
        return _unless_same(cells, row)

    def _without_passwords(self, words: Sequence[Json]) -> Sequence[Json]:
        """A command line in words without its passwords: `["curl", "-u", "admin:..."]`."""
        if not any(type(word) is str and _OPTION.match(word) for word in words):
            return words
        if not all(type(word) is str and len(word) <= MAX_ARGUMENT for word in words):
            return words
        line = " ".join(map(str, words))
        found = {line[secret.start : secret.end] for secret in _find(line, self._values)}
        values = [("", secret) for secret in found if len(secret) >= MIN_ARGUMENT]
        masked = [_replace_secrets(str(word), _without_overlaps(_find_values(str(word), values))) for word in words]
        return [new if new != old else old for new, old in zip(masked, words, strict=True)]

    def _object(self, value: Mapping[Any, Json], name: str) -> Json:
        name_of_value = _name_in_object(value) or (name if is_secret_name(name) else "")
        is_manifest = value.get("kind") == "Secret"
        is_password_field = any(type(item) is str and password_field(str(key), item) for key, item in value.items())
        masked: dict[Any, Json] = {}
        same = True
        columns = _columns_of(value)
        for key, item in value.items():
            item_name = name_of_value if name_of_value and is_value_key(str(key)) else str(key)
            if is_manifest and key in ("data", "stringData") and isinstance(item, Mapping):
                new_item: Json = {inner: self.data(content, "secret") for inner, content in item.items()}
            elif type(item) is str and (
                (is_password_field and is_typed_key(str(key)) and is_typed_password(item))
                or ("kty" in value and is_private_key_part(str(key), item))
            ):
                new_item = self._text_under("password", item)
            elif columns and key in _ROW_KEYS and isinstance(item, list):
                new_item = _unless_same([self._row(row, columns) for row in item], item)
            else:
                new_item = self.data(item, item_name)
            new_key = self._key(key, masked)
            same = same and new_key is key and new_item is item
            masked[new_key] = new_item
        return value if same else masked

    def _key(self, key: Any, others: Mapping[Any, Json]) -> Any:
        """The key without secrets. Different keys stay different: the second that looks the same gets a number."""
        text = key if type(key) is str else to_text(to_json(key))
        new = self.text(text) if len(text) >= MIN_VALUE_LENGTH else text
        if new == text:
            return key
        number = 2
        unique = new
        while unique in others:
            unique, number = f"{new} #{number}", number + 1
        return unique

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
            scheme = _SCHEME.match(text)
            start = 0 if scheme is None else scheme.end()
            return text[:start] + mask_text(self._kind(text[start:]), len(text) - start)
        return self.text(text) if len(text) >= MIN_VALUE_LENGTH else text

    def _kind(self, secret: str) -> str:
        """Whose token it is, or the variable that holds it; empty if neither is known."""
        names = [name for name, value in self._values if value == secret]
        shapes = [shape.kind for shape in find_shapes(secret) if (shape.start, shape.end) == (0, len(secret))]
        return next(iter([*map(secret_kind, names), *shapes]), "")


_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|digest|apikey|negotiate|bot)[ \t]{1,4}(?=\S)")
"""The scheme before a credential, as in a header."""


def _unless_same(new: Sequence[Json], old: Sequence[Json]) -> Json:
    """The new list, or the old one if it has the same items: what has no secrets stays the same object."""
    return old if all(map(operator.is_, new, old)) else new


_OPTION = re.compile(r"--?[A-Za-z]")
"""The beginning of an option in a command line."""
_COLUMN_KEYS, _ROW_KEYS = ("columns", "header", "headers", "fields"), ("rows", "data", "values", "records")


def _columns_of(value: Mapping[Any, Json]) -> list[str]:
    """The names of the columns of a table, if the object is one: `{"columns": [...], "rows": [[...]]}`."""
    names: list[Any] = next((value[key] for key in _COLUMN_KEYS if isinstance(value.get(key), list)), [])
    return names if all(type(name) is str for name in names) else []


def _name_in_object(value: Mapping[Any, Json]) -> str:
    """The name of the value in an object such as `{"name": "X-Api-Key", "value": "..."}`; empty if there is none."""
    for key, item in value.items():
        if type(item) is str and is_name_key(str(key)) and name_strength(item) is not Strength.NONE:
            return item
    return ""


class IdMasker:
    """Masks ids that must stay different: the second of those that are masked alike gets a number."""

    def __init__(self) -> None:
        self._masker = Masker()
        self._masked: dict[str, str] = {}
        self._taken: set[str] = set()

    def mask(self, text: str) -> str:
        if text not in self._masked:
            masked = self._masker.text(text)
            unique, number = masked, 2
            while masked != text and unique in self._taken:
                unique, number = f"{masked} #{number}", number + 1
            self._masked[text] = unique
            self._taken.add(unique)
        return self._masked[text]

    def has_secrets(self, texts: Iterable[str]) -> bool:
        """Whether one of many ids would change; much faster than masking each."""
        joined = "\n".join(texts)
        return self._masker.text(joined) != joined


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
        if len(value) >= MIN_VALUE_LENGTH and is_secret_value(name, value):
            scheme = _SCHEME.match(value)
            yield value if scheme is None else value[scheme.end() :]
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


def _find_pieces(text: str, pieces: Collection[str]) -> Iterator[Secret]:
    """Where a text has pieces of secrets; a longer piece is found as overlapping ones."""
    for start in range(len(text) - PIECE_LENGTH + 1):
        if text[start : start + PIECE_LENGTH] in pieces:
            yield Secret("", start, start + PIECE_LENGTH, True)


def _find(text: str, values: list[tuple[str, str]]) -> list[Secret]:
    return _without_overlaps(_without_masks(text, [*_find_values(text, values), *find_secrets_in(text)]))


def _without_masks(text: str, secrets: list[Secret]) -> list[Secret]:
    """The secrets that are more than a mask or a part of one: masking twice changes nothing."""
    if "[secret: " not in text:
        return secrets
    masks = [match.span() for match in MASK_PATTERN.finditer(text)]
    remaining = []
    for secret in secrets:
        number = bisect.bisect_right(masks, (secret.start, len(text)))
        start = max(secret.start, masks[number - 1][1]) if number else secret.start
        end = min(secret.end, masks[number][0]) if number < len(masks) else secret.end
        if any(character.isalnum() for character in text[start:end]):
            remaining.append(secret)
    return remaining


@functools.lru_cache(maxsize=8)
def _secret_names(names: tuple[str, ...]) -> list[str]:
    """The variables that are secrets by their name; the same for nearly all trials of a run."""
    return [name for name in names if is_secret_variable_name(name)]


def _variables() -> list[tuple[str, str]]:
    """Name and value of the variables that are secrets, of the environment and of `.env` files."""
    variables = [(name, os.environ.get(name, "")) for name in _secret_names(tuple(os.environ))]
    return [*variables, *ENV_FILE_VALUES]


def _secrets_by_value(secrets: Iterable[str]) -> list[tuple[str, str]]:
    """Names and values of the secrets to look for by value: variables, `.env` files, and those the caller passed."""
    values: dict[str, str] = {}
    for name, value in (*_variables(), *(("", value) for value in secrets)):
        if len(value) >= MIN_VALUE_LENGTH:
            values.setdefault(value, name)
    return [(name, value) for value, name in values.items()]


def _find_values(text: str, values: Iterable[tuple[str, str]]) -> Iterator[Secret]:
    """Where the values occur. One of letters alone counts only as a whole word: it may be part of ordinary words."""
    for name, value in values:
        for form in (value, *_encoded_forms(value)):
            start = text.find(form)
            while start >= 0:
                end = start + len(form)
                is_part = form.isalpha() and (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())
                if not is_part or form is not value:
                    yield Secret(secret_kind(name), start, end, True)
                start = text.find(form, end)


@functools.lru_cache(maxsize=256)
def _encoded_forms(value: str) -> tuple[str, ...]:
    """How a value is written in JSON, HTML, addresses, hexadecimal and Base64.

    Base64 writes three bytes as four characters, so a value inside a longer text has one of three forms. Characters at
    the ends that depend on the neighbours are left out: they hold less than a byte of the value.
    """
    data = value.encode("utf-8", "surrogatepass")
    forms = {
        json.dumps(value)[1:-1],
        html.escape(value),
        urllib.parse.quote(value, safe=""),
        urllib.parse.quote_plus(value),
    }
    forms |= {urllib.parse.quote(value), data.hex(), data.hex().upper()}
    for offset in range(3):
        padded = b"\0" * offset + data
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(padded).decode()
            first, last = (0, 2, 3)[offset], len(encoded) - (0, 3, 2)[len(padded) % 3]
            forms.add(encoded[first:last])
    return tuple(
        sorted((form for form in forms if form != value and len(form) >= MIN_VALUE_LENGTH), key=len, reverse=True)
    )


def _without_overlaps(secrets: Iterable[Secret]) -> list[Secret]:
    """The secrets in order, with overlapping ones merged. Of two that are the same, the one of a known kind counts."""
    merged: list[Secret] = []
    for secret in sorted(secrets, key=lambda secret: (secret.start, -secret.end, not secret.kind)):
        if merged and secret.start < merged[-1].end:
            if secret.end > merged[-1].end:
                merged[-1] = dataclasses.replace(merged[-1], kind="", end=secret.end)
        else:
            merged.append(secret)
    return merged


def _replace_secrets(text: str, secrets: list[Secret]) -> str:
    if not secrets:
        return text
    parts: list[str] = []
    position = 0
    for secret in secrets:
        kind = "" if secret.kind == URL_PASSWORD else secret.kind
        parts += [text[position : secret.start], mask_text(kind, secret.end - secret.start)]
        position = secret.end
    return "".join([*parts, text[position:]])


def secret_kind(name: str) -> str:
    """A name as it is written in a mask: short, and without characters that a pattern would take for a range."""
    return re.sub(r"[^A-Za-z0-9_ ]", "_", name.rpartition(".")[2])[:40]


def mask_text(kind: str, length: int) -> str:
    """What replaces a secret: `[secret: GitHub token, 40 characters]`, or without the kind if it is not known."""
    return f"[secret: {kind}, {length} characters]" if kind else f"[secret: {length} characters]"
