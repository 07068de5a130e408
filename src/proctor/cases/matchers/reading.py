"""Reads matchers as files write them, at any depth of a value: `{"$regex": "A-[0-9]+"}`, `{"$one_of": ["km", "mi"]}`.

`OneOf` and `Subset` stand here with the reader and not with the other containers: they keep their values as they were
written, because that is how they are stored and compared, and read them as matchers when they are first used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from proctor.base.documents import nearest
from proctor.base.json_data import Json, show
from proctor.base.regexes import check_pattern
from proctor.cases.matchers.container_matchers import (
    Each,
    Including,
    ListOf,
    ObjectOf,
    OptionalValue,
)
from proctor.cases.matchers.value_matchers import (
    SHOWN,
    TYPES,
    Approx,
    Difference,
    Equals,
    Fuzzy,
    Ignore,
    Matcher,
    OfType,
    Predicate,
    Regex,
    accepts,
    describe,
    differences_of,
    has_forms,
    literal,
)

OPTIONS: Mapping[str, frozenset[str]] = {
    "$equals": frozenset(),
    "$regex": frozenset(),
    "$fuzzy": frozenset({"ignore_punctuation"}),
    "$approx": frozenset({"tolerance", "relative"}),
    "$type": frozenset({"value"}),
    "$one_of": frozenset(),
    "$optional": frozenset(),
    "$object": frozenset({"extra"}),
    "$subset": frozenset(),
    "$list": frozenset({"order", "extra"}),
    "$each": frozenset({"at_least", "at_most"}),
    "$ignore": frozenset(),
    "$predicate": frozenset(),
}
"""By form, the keys that may stand beside it."""
FORMS = tuple(OPTIONS)
DEEPEST = 100
"""Levels of a value in which matchers are looked for."""

Pointer = tuple[str | int, ...]


class BadForm(ValueError):
    """A value that no matcher can be read from; `pointer` leads to the part at fault."""

    def __init__(self, reason: str, pointer: Pointer = ()) -> None:
        super().__init__(reason)
        self.pointer = pointer


def parse(value: Json, base: Path | None = None) -> Matcher:
    """The matcher that a value in a file means; raises `BadForm`, a `ValueError`, when it means none.

    An object or list without any `$` key in it is itself; with some, it is closed, in order, and its parts matchers.
    `base` is the folder from which the references of predicates start.
    """
    return _read(value, base, (), key=True)


def parse_open(value: Json, base: Path | None = None) -> Matcher:
    """The same where objects may have more keys and lists more items, as deep as no matcher says otherwise."""
    return _read_open(value, base, ())


def parse_state(value: Mapping[str, Json], base: Path | None = None) -> ObjectOf:
    """The same for a state: its own keys are names, whatever they begin with."""
    return ObjectOf({name: _read_open_key(item, base, (name,)) for name, item in value.items()}, extra=True)


def parse_arguments(given: Mapping[str, Json], base: Path | None = None) -> dict[str, Matcher]:
    """A matcher per argument; raises `BadForm`, whose pointer begins with the name of the argument."""
    return {name: _read(value, base, (name,), key=True) for name, value in given.items()}


def _read(value: Json, base: Path | None, at: Pointer, *, key: bool = False) -> Matcher:
    """`key`: whether the value is that of an argument or of a key, which can be left out."""
    if len(at) > DEEPEST:
        raise BadForm(f"is nested more than {DEEPEST} levels deep", at)
    if isinstance(value, Mapping):
        if any(isinstance(name, str) and name.startswith("$") for name in value):
            return _form(value, base, at, key=key)
        return _object(value, base, at, extra=False) if _looks_formed(value, at) else Equals(value)
    if isinstance(value, (list, tuple)) and _looks_formed(value, at):
        return ListOf(tuple(_read(item, base, (*at, index)) for index, item in enumerate(value)))
    return Equals(value)


def _looks_formed(value: Json, at: Pointer) -> bool:
    try:
        return has_forms(value)
    except RecursionError:
        raise BadForm(f"is nested more than {DEEPEST} levels deep", at) from None


def _object(value: Mapping[str, Json], base: Path | None, at: Pointer, *, extra: bool) -> Matcher:
    fields = {name: _read(item, base, (*at, name), key=True) for name, item in value.items()}
    if not extra and all(type(matcher) is Equals for matcher in fields.values()):
        return Equals({name: getattr(matcher, "value", None) for name, matcher in fields.items()})
    return ObjectOf(fields, extra)


def _read_open(value: Json, base: Path | None, at: Pointer) -> Matcher:
    if len(at) > DEEPEST:
        raise BadForm(f"is nested more than {DEEPEST} levels deep", at)
    if isinstance(value, Mapping) and not any(isinstance(name, str) and name.startswith("$") for name in value):
        return ObjectOf({name: _read_open_key(item, base, (*at, name)) for name, item in value.items()}, extra=True)
    if isinstance(value, (list, tuple)):
        return Including(tuple(_read_open(item, base, (*at, index)) for index, item in enumerate(value)))
    return _read(value, base, at)


def _read_open_key(value: Json, base: Path | None, at: Pointer) -> Matcher:
    """The value of a key; `$optional` may stand here."""
    if isinstance(value, Mapping) and "$optional" in value:
        return _read(value, base, at, key=True)
    return _read_open(value, base, at)


def _form(value: Mapping[str, Json], base: Path | None, at: Pointer, *, key: bool) -> Matcher:
    names = [name for name in value if isinstance(name, str) and name.startswith("$")]
    form = names[0]
    if len(names) > 1 or form not in FORMS:
        hint = "" if len(names) > 1 else nearest(form, FORMS)
        rest = f"use one of {', '.join(FORMS)}; a literal with such a key is written {{$equals: …}}"
        raise BadForm(f"{' and '.join(names)} is not a matcher{hint}; {rest}", (*at, form))
    options = {name: item for name, item in value.items() if name != form}
    if unknown := sorted(str(name) for name in options if name not in OPTIONS[form]):
        raise BadForm(f"{form} takes no {', '.join(unknown)}", (*at, unknown[0]))
    if form == "$optional" and not key:
        raise BadForm("$optional has no meaning here: only an argument or a key of an object can be left out", at)
    try:
        found: Matcher = _READERS[form](value[form], options, base, (*at, form))
        return found
    except BadForm:
        raise
    except ValueError as error:
        raise BadForm(str(error), (*at, form)) from None


def _regex(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    if not isinstance(operand, str):
        raise ValueError("$regex needs a pattern")
    try:
        check_pattern(operand)
    except ValueError as error:
        raise ValueError(f"$regex {operand!r} is not a pattern: {error}") from None
    return Regex(operand)


def _approx(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    numbers = [operand, *options.values()]
    if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
        raise ValueError("$approx needs numbers")
    try:
        value, given = float(operand), {name: float(number) for name, number in options.items()}
    except OverflowError:
        raise ValueError("$approx needs numbers that a float can hold") from None
    if not all(math.isfinite(number) for number in (value, *given.values())):
        raise ValueError("$approx needs finite numbers")
    if any(number < 0 for number in given.values()):
        raise ValueError("the tolerance of $approx cannot be negative")
    return Approx(value, **given)


def _one_of(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    if not isinstance(operand, list) or not operand:
        raise ValueError("$one_of needs a list of at least one value")
    for index, item in enumerate(operand):
        _read(item, base, (*at, index))
    return OneOf(tuple(operand), base)


def _subset(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    _read_open(operand, base, at)
    return Subset(operand, base)


def _ignore(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    if operand is not True:
        raise ValueError("$ignore takes only true; leave the argument out to assert nothing about it")
    return Ignore()


def _predicate(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    if not isinstance(operand, str) or ":" not in operand:
        raise ValueError("$predicate needs a reference such as checks.py:is_valid")
    return Predicate(operand, base)


def _type(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    names = operand if isinstance(operand, list) else [operand]
    if not names or not all(isinstance(name, str) and name in TYPES for name in names):
        wrong = next((name for name in names if not isinstance(name, str) or name not in TYPES), operand)
        raise ValueError(f"$type needs one of {', '.join(TYPES)}, not {literal(wrong)}{nearest(str(wrong), TYPES)}")
    value = _read(options["value"], base, (*at[:-1], "value")) if "value" in options else None
    return OfType(tuple(dict.fromkeys(names)), value)


def _fuzzy(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    return Fuzzy(operand, _flag("$fuzzy", options, "ignore_punctuation"))


def _object_form(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    if not isinstance(operand, Mapping):
        raise ValueError("$object needs an object of keys and what they must look like")
    return _object(operand, base, at, extra=_flag("$object", options, "extra"))


def _list(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    if not isinstance(operand, list):
        raise ValueError("$list needs a list of items")
    order = options.get("order", "given")
    if order not in ("given", "any"):
        raise ValueError(f"the order of $list is given or any, not {literal(order)}")
    items = tuple(_read(item, base, (*at, index)) for index, item in enumerate(operand))
    extra = _flag("$list", options, "extra")
    if order == "given" and not extra and all(type(item) is Equals for item in items):
        return Equals([getattr(item, "value", None) for item in items])
    return ListOf(items, order == "any", extra)


def _each(operand: Json, options: dict[str, Json], base: Path | None, at: Pointer) -> Matcher:
    bounds = {"at_least": 0, "at_most": None, **options}
    for name, bound in options.items():
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < 0:
            raise ValueError(f"{name} of $each must be a whole number from 0, not {literal(bound)}")
    least, most = bounds["at_least"], bounds["at_most"]
    if most is not None and most < least:
        raise ValueError(f"$each wants at least {least} items and at most {most}, which no list has")
    return Each(_read(operand, base, at), least, most)


def _flag(form: str, options: dict[str, Json], name: str) -> bool:
    value = options.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{name} of {form} must be true or false, not {literal(value)}")
    return value


_READERS: Mapping[str, Any] = {
    "$equals": lambda operand, options, base, at: Equals(operand),
    "$regex": _regex,
    "$fuzzy": _fuzzy,
    "$approx": _approx,
    "$type": _type,
    "$one_of": _one_of,
    "$optional": lambda operand, options, base, at: OptionalValue(_read(operand, base, at)),
    "$object": _object_form,
    "$subset": _subset,
    "$list": _list,
    "$each": _each,
    "$ignore": _ignore,
    "$predicate": _predicate,
}


@dataclass(frozen=True)
class OneOf:
    """Any one of several values."""

    values: tuple[Json, ...]
    base: Path | None = None

    @cached_property
    def matchers(self) -> tuple[Matcher, ...]:
        return tuple(parse(value, self.base) for value in self.values)

    def mismatch(self, actual: Json) -> str | None:
        if any(accepts(matcher, actual) for matcher in self.matchers):
            return None
        return f"{literal(actual)} is none of {self.listed}"

    @property
    def listed(self) -> str:
        """The values as people would list them, without the forms that files need."""
        words = ", ".join(_bare(matcher) for matcher in self.matchers[:20])
        return f"[{words}{', …' if len(self.matchers) > 20 else ''}]"

    def describe(self) -> str:
        return f"one of {self.listed}"

    def to_json(self) -> Json:
        return {"$one_of": list(self.values)}


_WORD = r"[^\W\d_](?:[\w .%/-]*[\w.%])?"


def _bare(matcher: Matcher) -> str:
    """A matcher inside of brackets, where a plain word needs no quotes and what is fuzzy goes without saying."""
    if not isinstance(matcher, (Equals, Fuzzy)):
        return describe(matcher)
    value = matcher.value
    is_word = isinstance(value, str) and len(value) <= SHOWN and re.fullmatch(_WORD, value) is not None
    return value if is_word and value not in ("true", "false", "null") else literal(value)


@dataclass(frozen=True)
class Subset:
    """An object or list that contains at least these parts, however deep; each part may be a matcher itself."""

    value: Json
    base: Path | None = None

    @cached_property
    def parts(self) -> Matcher:
        return parse_open(self.value, self.base)

    def mismatch(self, actual: Json) -> str | None:
        return self.parts.mismatch(actual)

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        return differences_of(self.parts, actual, path)

    def describe(self) -> str:
        return f"at least {describe(self.parts) if has_forms(self.value) else show(self.value, SHOWN)}"

    def to_json(self) -> Json:
        return {"$subset": self.value}
