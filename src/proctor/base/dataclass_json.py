"""Converts dataclasses to JSON data and back, by their fields and type hints.

A field that has its default is left out, a key that the class does not know is ignored, and a tuple, a mapping, an enum
or another dataclass inside is written and read as its type hint says. So a new field is stored without being listed
anywhere, and data that an older or a newer program wrote can be read. The price: the default of a stored field cannot
be changed any more without changing what stored data means.

`hooks` define how to write a type that is not a dataclass, or that has a special form. Three kinds of fields are not
written: those that do not count when two objects are compared (`field(compare=False)`), those in `skip`, and those that
a caller lists in `without`.
"""

from __future__ import annotations

import enum
import math
import threading
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NamedTuple, TypeVar

from proctor.base.json_data import Json, Unset

T = TypeVar("T")

Convert = Callable[[Any], Any]


class Hook(NamedTuple):
    """How a type is written and read."""

    encode: Convert
    decode: Convert


class _Field(NamedTuple):
    """One field of a class: `encode` and `decode` are None if its value is written as it is."""

    name: str
    stored_name: str
    default: Any
    encode: Convert | None
    decode: Convert | None
    is_optional: bool
    """Whether the value may be None."""


class DataclassCodec:
    """Writes and reads dataclasses.

    `hooks`: by type, how it is written. `skip`: by class, fields that are not written. `always`: by class, fields that
    are written although they have their default. `json_value`: converts values of type `Json`, which may be anything
    that a user's code returned. `names`: types that the hints of a class name but its module does not import.
    `strict`: whether text, numbers and truth values are checked when they are read, for data that comes from anywhere.
    `stored_names`: by class, fields that are written under another name, such as one that they had before.
    """

    def __init__(
        self,
        *,
        hooks: Mapping[Any, Hook] | None = None,
        skip: Mapping[type, Collection[str]] | None = None,
        always: Mapping[type, Collection[str]] | None = None,
        json_value: Convert | None = None,
        names: Mapping[str, Any] | None = None,
        strict: bool = False,
        stored_names: Mapping[type, Mapping[str, str]] | None = None,
    ) -> None:
        self._hooks: dict[Any, Hook] = dict(hooks or {})
        self._skip = dict(skip or {})
        self._always = dict(always or {})
        self._json_value = json_value
        self._names = dict(names or {})
        self._strict = strict
        self._stored_names = dict(stored_names or {})
        self._classes: dict[type, list[_Field]] = {}
        self._incomplete: dict[type, list[_Field]] = {}
        self._lock = threading.RLock()

    def prepare(self, *kinds: type) -> None:
        """Look up the types of these classes and of all in them now.

        Looking up a type needs the module of its class, and an agent may remove modules while it runs.
        """
        for kind in kinds:
            self._fields(kind)

    def encode(self, value: Any, without: Collection[str] = ()) -> dict[str, Json]:
        """The fields of a dataclass that differ from their defaults."""
        data: dict[str, Json] = {}
        for name, stored_name, default, encode, _, _ in self._fields(type(value)):
            item = getattr(value, name)
            if name in without or item is default or (default is not None and item == default):
                continue
            data[stored_name] = item if encode is None or item is None else encode(item)
        return data

    def decode(self, kind: type[T], data: Mapping[str, Json], **values: Any) -> T:
        """The object that `encode` wrote; `values` are fields that were stored elsewhere.

        Raises `ValueError` or `TypeError` if the data does not fit.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"{type(data).__name__} instead of an object that describes a {kind.__name__}")
        for name, stored_name, _, _, decode, is_optional in self._fields(kind):
            if stored_name in data and name not in values:
                item = data[stored_name]
                if item is None and self._strict and not is_optional:
                    raise TypeError(f"{stored_name} of a {kind.__name__} is null")
                values[name] = item if decode is None or item is None else decode(item)
        return kind(**values)

    def names(self, kind: type) -> list[str]:
        """The names under which the fields of a class are written."""
        return [item.stored_name for item in self._fields(kind)]

    def _fields(self, kind: type) -> list[_Field]:
        result = self._classes.get(kind)
        if result is None:
            with self._lock:  # other threads wait until the list is complete
                result = self._classes.get(kind) or self._incomplete.get(kind)
                if result is None:
                    result = self._incomplete[kind] = []  # a class may contain itself
                    result += self._read_fields(kind)
                    self._classes[kind] = result
        return result

    def _read_fields(self, kind: type) -> list[_Field]:
        hints = typing.get_type_hints(kind, localns=self._names)
        skipped, always = self._skip.get(kind, ()), self._always.get(kind, ())
        stored_names = self._stored_names.get(kind, {})
        result = []
        for item in fields(kind):
            if not item.compare or item.name in skipped:
                continue
            default = item.default if item.default_factory is MISSING else item.default_factory()
            hook = self._hook(hints[item.name])
            encode, decode = hook or (None, None)
            stored_name = stored_names.get(item.name, item.name)
            default = MISSING if item.name in always else default
            result.append(_Field(item.name, stored_name, default, encode, decode, _is_optional(hints[item.name])))
        return result

    def _hook(self, hint: Any) -> Hook | None:
        """How a value with this type hint is written; None if it is written as it is."""
        hook = self._hooks.get(hint)
        if hook is not None:
            return hook
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            choices = [choice for choice in arguments if choice not in (type(None), Unset)]
            return self._hook(choices[0]) if len(choices) == 1 else None
        if origin is typing.Literal:
            return Hook(lambda value: value, lambda value: _one_of(value, arguments))
        if hint is Any:
            return None if self._json_value is None else Hook(self._json_value, lambda value: value)
        if hint in _SCALARS:
            return Hook(lambda value: value, _SCALARS[hint]) if self._strict else None
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return Hook(lambda value: value.value, hint)
        if isinstance(hint, type) and is_dataclass(hint):
            kind: type = hint
            self._fields(kind)
            return Hook(self.encode, lambda data: self.decode(kind, data))
        if isinstance(origin, type) and issubclass(origin, Mapping):
            if arguments[1] is Any and self._json_value is not None:
                return self._checked(Hook(self._json_value, lambda data: data), _OBJECT)
            return self._checked(_mapping_hook(self._hook(arguments[1])), _OBJECT)
        if isinstance(origin, type) and issubclass(origin, Collection):
            return self._checked(_sequence_hook(self._hook(arguments[0])), _LIST)
        return None

    def _checked(self, hook: Hook, check: Convert) -> Hook:
        """The hook with a check of what it reads, if the codec is strict."""
        return Hook(hook.encode, lambda value: hook.decode(check(value))) if self._strict else hook


def _is_optional(hint: Any) -> bool:
    return hint is Any or type(None) in typing.get_args(hint) or hint is type(None)


def _type_check(*kinds: type, expected: str) -> Convert:
    def check(value: Any) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise TypeError(f"{type(value).__name__} instead of {expected}")
        return value

    return check


def _number(value: Any) -> Any:
    """A number that fits into a float. JSON may have a larger one, and Python's reader takes NaN and Infinity too."""
    _NUMBER(value)
    if not math.isfinite(float(value)):
        raise ValueError(f"{value} is not a finite number")
    return value


_NUMBER = _type_check(int, float, expected="a number")
_OBJECT = _type_check(dict, expected="an object")
_LIST = _type_check(list, expected="a list")

_SCALARS: Mapping[Any, Convert] = {
    str: _type_check(str, expected="text"),
    int: _type_check(int, expected="a whole number"),
    float: _number,
    bool: _type_check(bool, expected="true or false"),
}


def _mapping_hook(inner: Hook | None) -> Hook:
    if inner is None:
        return Hook(dict, lambda data: data)
    return Hook(
        lambda items: {name: inner.encode(item) for name, item in items.items()},
        lambda data: {name: inner.decode(item) for name, item in data.items()},
    )


def _sequence_hook(inner: Hook | None) -> Hook:
    if inner is None:
        return Hook(list, tuple)
    return Hook(
        lambda items: [inner.encode(item) for item in items],
        lambda data: tuple([inner.decode(item) for item in data]),
    )


def _one_of(value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise ValueError(f"{value!r} is not one of {', '.join(map(repr, choices))}")
    return value
