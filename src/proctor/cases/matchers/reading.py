"""Reads matchers from values in files, at any depth: `{"$regex": "A-[0-9]+"}`, `{"$one_of": ["km", "mi"]}`.

`OneOf` and `Subset` are here and not with the other containers because they need the reader: they hold their values as
written, which is how they are stored and compared, and parse them when they are first used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from proctor.base.documents import did_you_mean
from proctor.base.json_data import Json, to_text
from proctor.cases.matchers.container_matchers import Including, ListOf, ObjectOf, object_of
from proctor.cases.matchers.python_matchers import is_python_matcher, python_matcher
from proctor.cases.matchers.value_matchers import (
    FORMS,
    MAX_QUOTE,
    Difference,
    Equals,
    Fuzzy,
    Matcher,
    Options,
    Parts,
    accepts,
    contains_matchers,
    describe,
    differences_of,
    form,
    literal,
)

MAX_DEPTH = 100
"""How deep a value with matchers may be nested."""

Pointer = tuple[str | int, ...]


class InvalidMatcher(ValueError):
    """A value that is not a valid matcher; `pointer` leads to the invalid part."""

    def __init__(self, reason: str, pointer: Pointer = ()) -> None:
        super().__init__(reason)
        self.pointer = pointer


def parse(value: Json, base: Path | None = None) -> Matcher:
    """The matcher for a value in a file; raises `InvalidMatcher`, a `ValueError`.

    An object or list without a `$` key at any depth matches only equal data. With some, its parts are matchers, and it
    allows no other keys or items. References of predicates are relative to the folder `base`.
    """
    return _read(value, base, (), key=True)


def parse_open(value: Json, base: Path | None = None) -> Matcher:
    """Like `parse`, but objects may have more keys and lists more items, at any depth outside of explicit matchers."""
    return _read_open(value, base, ())


def parse_state(value: Mapping[str, Json], base: Path | None = None) -> ObjectOf:
    """Like `parse_open`, for a state: its top-level keys are names, even if they begin with `$`."""
    return ObjectOf({name: _read_open_key(item, base, (name,)) for name, item in value.items()}, extra=True)


def parse_arguments(arguments: Mapping[str, Json], base: Path | None = None) -> dict[str, Matcher]:
    """A matcher per argument; raises `InvalidMatcher`, whose pointer begins with the name of the argument."""
    return {name: _read(value, base, (name,), key=True) for name, value in arguments.items()}


def _read(value: Json, base: Path | None, at: Pointer, *, key: bool = False) -> Matcher:
    """`key`: whether this is the value of an argument or a key, which `$optional` allows to be missing."""
    if len(at) > MAX_DEPTH:
        raise InvalidMatcher(f"is nested more than {MAX_DEPTH} levels deep", at)
    if isinstance(value, Mapping):
        if any(isinstance(name, str) and name.startswith("$") for name in value):
            return _read_form(value, base, at, key=key)
        if not _has_matchers(value, at):
            return Equals(value)
        return object_of({name: _read(item, base, (*at, name), key=True) for name, item in value.items()}, extra=False)
    if isinstance(value, (list, tuple)) and _has_matchers(value, at):
        return ListOf(tuple(_read(item, base, (*at, index)) for index, item in enumerate(value)))
    return python_matcher(value) if is_python_matcher(value) else Equals(value)


def _has_matchers(value: Json, at: Pointer) -> bool:
    try:
        return contains_matchers(value) or _contains_code(value)
    except RecursionError:
        raise InvalidMatcher(f"is nested more than {MAX_DEPTH} levels deep", at) from None


def _contains_code(value: Any) -> bool:
    """Whether a value from Python has something that is not data, at any depth."""
    if isinstance(value, Mapping):
        return any(map(_contains_code, value.values()))
    return any(map(_contains_code, value)) if isinstance(value, (list, tuple)) else is_python_matcher(value)


def _read_open(value: Json, base: Path | None, at: Pointer) -> Matcher:
    if len(at) > MAX_DEPTH:
        raise InvalidMatcher(f"is nested more than {MAX_DEPTH} levels deep", at)
    if isinstance(value, Mapping) and not any(isinstance(name, str) and name.startswith("$") for name in value):
        return ObjectOf({name: _read_open_key(item, base, (*at, name)) for name, item in value.items()}, extra=True)
    if isinstance(value, (list, tuple)):
        return Including(tuple(_read_open(item, base, (*at, index)) for index, item in enumerate(value)))
    return _read(value, base, at)


def _read_open_key(value: Json, base: Path | None, at: Pointer) -> Matcher:
    """The value of a key, which may be `$optional`."""
    if isinstance(value, Mapping) and "$optional" in value:
        return _read(value, base, at, key=True)
    return _read_open(value, base, at)


def _read_form(value: Mapping[str, Json], base: Path | None, at: Pointer, *, key: bool) -> Matcher:
    names = [name for name in value if isinstance(name, str) and name.startswith("$")]
    name = names[0]
    if len(names) > 1 or name not in FORMS:
        hint = "" if len(names) > 1 else did_you_mean(name, FORMS)
        rest = f"; use one of {', '.join(FORMS)}, or {{$equals: …}} for a literal with such a key"
        raise InvalidMatcher(f"{' and '.join(names)} is not a matcher{hint or rest}", (*at, name))
    options = {option: item for option, item in value.items() if option != name}
    if unknown := sorted(str(option) for option in options if option not in FORMS[name].options):
        raise InvalidMatcher(f"{name} does not take {', '.join(unknown)}", (*at, unknown[0]))
    if name == "$optional" and not key:
        raise InvalidMatcher(
            "$optional is not allowed here: only an argument or a key of an object can be optional", at
        )
    try:
        return FORMS[name].read(value[name], options, _Parts(base, (*at, name)))
    except InvalidMatcher:
        raise
    except ValueError as error:
        raise InvalidMatcher(str(error), (*at, name)) from None


@dataclass(frozen=True, slots=True)
class _Parts:
    """Reads the parts of one matcher; `at` leads to its operand."""

    base: Path | None
    at: Pointer

    def read(self, value: Json, *way: str | int) -> Matcher:
        return _read(value, self.base, (*self.at, *way))

    def read_key(self, value: Json, name: str) -> Matcher:
        return _read(value, self.base, (*self.at, name), key=True)

    def read_open(self, value: Json) -> Matcher:
        return _read_open(value, self.base, self.at)

    def read_option(self, options: Options, name: str) -> Matcher:
        return _read(options[name], self.base, (*self.at[:-1], name))


@form("$one_of")
@dataclass(frozen=True)
class OneOf:
    """Any one of several values."""

    values: tuple[Json, ...]
    base: Path | None = None

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        if not isinstance(operand, list) or not operand:
            raise ValueError("$one_of needs a list of at least one value")
        for index, item in enumerate(operand):
            parts.read(item, index)
        return cls(tuple(operand), parts.base)

    @cached_property
    def matchers(self) -> tuple[Matcher, ...]:
        return tuple(parse(value, self.base) for value in self.values)

    def mismatch(self, actual: Json) -> str | None:
        if any(accepts(matcher, actual) for matcher in self.matchers):
            return None
        return f"{literal(actual)} is not one of {self.listed}"

    @property
    def listed(self) -> str:
        """The values as a list for people, without the syntax of files."""
        words = ", ".join(_describe_inline(matcher) for matcher in self.matchers[:20])
        return f"[{words}{', …' if len(self.matchers) > 20 else ''}]"

    def describe(self) -> str:
        return f"one of {self.listed}"

    def to_json(self) -> Json:
        return {"$one_of": list(self.values)}


_WORD = r"[^\W\d_](?:[\w .%/-]*[\w.%])?"


def _describe_inline(matcher: Matcher) -> str:
    """A matcher in a list in brackets: a word without quotes, and a fuzzy value without "similar to"."""
    if not isinstance(matcher, (Equals, Fuzzy)):
        return describe(matcher)
    value = matcher.value
    is_word = isinstance(value, str) and len(value) <= MAX_QUOTE and re.fullmatch(_WORD, value) is not None
    return value if is_word and value not in ("true", "false", "null") else literal(value)


@form("$subset")
@dataclass(frozen=True)
class Subset:
    """An object or list that contains at least these parts, at any depth; each part may be a matcher."""

    value: Json
    base: Path | None = None

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        parts.read_open(operand)
        return cls(operand, parts.base)

    @cached_property
    def parts(self) -> Matcher:
        return parse_open(self.value, self.base)

    def mismatch(self, actual: Json) -> str | None:
        return self.parts.mismatch(actual)

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        return differences_of(self.parts, actual, path)

    def describe(self) -> str:
        return f"at least {describe(self.parts) if contains_matchers(self.value) else to_text(self.value, MAX_QUOTE)}"

    def to_json(self) -> Json:
        return {"$subset": self.value}
