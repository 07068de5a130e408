"""Matchers of one value (equal, a pattern, a range, a type), and the differences between a value and a matcher.

In files they are written as an object with one `$` key, so that a literal object is never mistaken for one:
`{"$regex": "A-[0-9]+"}`, `{"$approx": 12.5, "tolerance": 0.1}`, `{"$ignore": true}`. `reading` reads these forms,
`container_matchers` has those whose parts are matchers again.

A matcher has `mismatch` and `to_json`. It may also have `differences`, which yields each place that does not match, and
`describe`, which says in words what it requires; the functions `differences_of` and `describe` use them if they exist.
A matcher that can be used in files has `@form` above its class and a method `read`. Nothing else is needed:

    @form("$shorter_than")
    @dataclass(frozen=True, slots=True)
    class ShorterThan:
        length: int

        @classmethod
        def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
            if not isinstance(operand, int):
                raise ValueError("$shorter_than needs a number")
            return cls(operand)

        def mismatch(self, actual: Json) -> str | None:
            return None if len(str(actual)) < self.length else f"{literal(actual)} is too long"

        def to_json(self) -> Json:
            return {"$shorter_than": self.length}
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from proctor.base.documents import did_you_mean
from proctor.base.json_data import Json, to_text
from proctor.base.references import resolve
from proctor.base.regexes import check_pattern, fullmatch

MAX_DIFFERENCES = 4
"""How many differences of one value a reason lists."""
MAX_QUOTE = 60
"""How many characters of a value a reason quotes."""
MAX_PARTS = 8
"""How many parts of an object or list a description lists."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which a value does not match."""

    path: str
    """`payment[1].amount`; empty for the value itself."""
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


def summarize(differences: Iterable[Difference]) -> str | None:
    """The first differences as one reason; `None` if there are none."""
    first = list(islice(differences, MAX_DIFFERENCES + 1))
    if not first:
        return None
    more = ["and more"] if len(first) > MAX_DIFFERENCES else []
    return ", ".join([*map(str, first[:MAX_DIFFERENCES]), *more])


def unexpected_keys(actual: Mapping[str, Json], known: Iterable[str], path: str) -> Iterator[Difference]:
    """A difference for each key of an object that is not in `known`."""
    for key in actual:
        if key not in known:
            yield Difference(key_path(path, key), f"not expected, got {literal(actual[key])}")


def key_path(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def describe_change(expected: Json, actual: Json) -> str:
    """`5 → 55`: the expected value and the actual one; for long texts, the parts around their first difference."""
    if isinstance(expected, str) and isinstance(actual, str) and max(len(expected), len(actual)) > MAX_QUOTE:
        start = next(
            (i for i, (a, b) in enumerate(zip(expected, actual, strict=False)) if a != b),
            min(map(len, (expected, actual))),
        )
        expected, actual = _around(expected, start), _around(actual, start)
    return f"{literal(expected)} → {literal(actual)}"


def _around(text: str, place: int) -> str:
    first = max(0, place - MAX_QUOTE // 3)
    return (
        f"{'…' if first else ''}{text[first : first + MAX_QUOTE - 2]}{'…' if len(text) > first + MAX_QUOTE - 2 else ''}"
    )


def literal(value: Json) -> str:
    """A value, shortened for a sentence. Text is quoted, so that `'7'` and `7` look different."""
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_QUOTE else f"{value[: MAX_QUOTE - 1]}…")
    return to_text(value, MAX_QUOTE)


@runtime_checkable
class Matcher(Protocol):
    """Anything that can say why a value does not match."""

    def mismatch(self, actual: Json) -> str | None:
        """Why `actual` does not match, or `None` if it does."""
        ...

    def to_json(self) -> Json:
        """How the matcher is written in a file."""
        ...


Options: TypeAlias = Mapping[str, Json]
"""The keys next to a form: `tolerance` in `{"$approx": 12.5, "tolerance": 0.1}`."""


class Parts(Protocol):
    """Reads the values inside a form, which may be matchers, too. `way` leads from the form's operand to the value."""

    @property
    def base(self) -> Path | None:
        """The folder from which references start."""
        ...

    def read(self, value: Json, *way: str | int) -> Matcher:
        """An item, or the operand itself."""
        ...

    def read_key(self, value: Json, name: str) -> Matcher:
        """The value of a key, which `$optional` allows to be left out."""
        ...

    def read_open(self, value: Json) -> Matcher:
        """The operand, where objects may have more keys and lists more items."""
        ...

    def read_option(self, options: Options, name: str) -> Matcher:
        """The matcher in a key next to the form."""
        ...


@dataclass(frozen=True, slots=True)
class Form:
    """How files write a matcher."""

    read: Callable[[Json, Options, Parts], Matcher]
    """Raises `ValueError` with what is wrong."""
    options: frozenset[str]
    """The keys that are allowed next to it."""


FORMS: dict[str, Form] = {}
"""By the `$` key: every matcher that files can write."""

M = TypeVar("M", bound=type)


def form(name: str, *options: str) -> Callable[[M], M]:
    """A decorator: in files, the matcher is an object with this `$` key, and optionally with the keys in `options`."""

    def register(kind: M) -> M:
        FORMS[name] = Form(cast(Any, kind).read, frozenset(options))
        return kind

    return register


def read_boolean(form: str, options: Options, name: str) -> bool:
    """The value of a boolean option; false if it is missing."""
    value = options.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{name} of {form} must be true or false, not {literal(value)}")
    return value


def accepts(matcher: Matcher, actual: Json) -> bool:
    """Whether a value matches; quicker than finding every difference."""
    return next(differences_of(matcher, actual), None) is None


def describe(matcher: Matcher) -> str:
    """What a matcher requires, in words: `one of [km, mi]`; for a matcher without `describe`, its form in files."""
    own_description = getattr(matcher, "describe", None)
    return literal(matcher.to_json()) if own_description is None else str(own_description())


def differences_of(matcher: Matcher, actual: Json, path: str = "") -> Iterator[Difference]:
    """Each place at which `actual` does not match; a matcher without `differences` yields at most one."""
    own_differences = getattr(matcher, "differences", None)
    if own_differences is not None:
        yield from own_differences(actual, path)
    elif (reason := matcher.mismatch(actual)) is not None:
        yield Difference(path, reason)


@form("$equals")
@dataclass(frozen=True, slots=True)
class Equals:
    """Equal data: `1` equals `1.0`, `True` does not equal `1`, and the order of an object's keys does not matter."""

    value: Json

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        return cls(operand)

    def mismatch(self, actual: Json) -> str | None:
        return None if json_equal(self.value, actual) else summarize(self.differences(actual, ""))

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        return _unequal(self.value, actual, path)

    def describe(self) -> str:
        return literal(self.value)

    def to_json(self) -> Json:
        return {"$equals": self.value} if contains_matchers(self.value) else self.value


@form("$regex")
@dataclass(frozen=True, slots=True)
class Regex:
    """Text that the pattern matches as a whole; a number, true or false is matched as its JSON. Never null."""

    pattern: str

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        if not isinstance(operand, str):
            raise ValueError("$regex needs a pattern")
        try:
            check_pattern(operand)
        except ValueError as error:
            raise ValueError(f"$regex {operand!r} is not a pattern: {error}") from None
        return cls(operand)

    def mismatch(self, actual: Json) -> str | None:
        if actual is None:  # a missing value is not the text "null", and `.+` must not accept it
            return f"null is not text that matches /{self.pattern}/"
        text = actual if isinstance(actual, str) else to_text(actual)
        return None if fullmatch(self.pattern, text) else f"{literal(actual)} does not match /{self.pattern}/"

    def describe(self) -> str:
        return f"/{self.pattern}/"

    def to_json(self) -> Json:
        return {"$regex": self.pattern}


@form("$fuzzy", "ignore_punctuation")
@dataclass(frozen=True, slots=True)
class Fuzzy:
    """The same text or number, ignoring case, spacing, thousands separators and percent signs.

    Text matches a number, true or false that reads the same. Null is similar only to null, not to the text "null".
    """

    value: Json
    ignore_punctuation: bool = False
    """Whether punctuation and all spacing are ignored too: `New-York` matches `new york`."""

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        return cls(operand, read_boolean("$fuzzy", options, "ignore_punctuation"))

    def mismatch(self, actual: Json) -> str | None:
        expected, got = _normalize(self.value), _normalize(actual)
        expected_number, actual_number = _number(expected), _number(got)
        if self.value is None or actual is None:
            matches = self.value is actual
        elif expected.isdecimal() and got.isdecimal():
            matches = expected.lstrip("0") == got.lstrip("0")
        elif expected_number is not None and actual_number is not None:
            matches = math.isclose(expected_number, actual_number, rel_tol=1e-9, abs_tol=1e-9)
        else:
            matches = expected == got or (
                self.ignore_punctuation and _without_punctuation(expected) == _without_punctuation(got)
            )
        return None if matches else f"{literal(actual)} is not similar to {literal(self.value)}"

    def describe(self) -> str:
        return f"similar to {literal(self.value)}"

    def to_json(self) -> Json:
        form: dict[str, Json] = {"$fuzzy": self.value}
        return form | {"ignore_punctuation": True} if self.ignore_punctuation else form


@form("$approx", "tolerance", "relative")
@dataclass(frozen=True, slots=True)
class Approx:
    """A number within a tolerance: absolute or relative, whichever is larger."""

    value: float
    tolerance: float = 1e-6
    relative: float = 0.0

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        numbers = [operand, *options.values()]
        if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
            raise ValueError("$approx needs numbers")
        try:
            value, tolerances = float(operand), {name: float(number) for name, number in options.items()}
        except OverflowError:
            raise ValueError("$approx needs smaller numbers") from None
        if not all(math.isfinite(number) for number in (value, *tolerances.values())):
            raise ValueError("$approx needs finite numbers")
        if any(number < 0 for number in tolerances.values()):
            raise ValueError("the tolerance of $approx cannot be negative")
        return cls(value, **tolerances)

    @property
    def allowed(self) -> float:
        return max(self.tolerance, self.relative * abs(self.value))

    def mismatch(self, actual: Json) -> str | None:
        if isinstance(actual, bool) or not isinstance(actual, (int, float)):
            return f"expected a number near {self.value:.15g}, got {literal(actual)}"
        try:
            near = abs(float(actual) - self.value) <= self.allowed
        except OverflowError:
            near = False
        return None if near else f"{literal(actual)} is not within {self.allowed:.15g} of {self.value:.15g}"

    def describe(self) -> str:
        return f"{self.value:.15g} ± {self.allowed:.15g}"

    def to_json(self) -> Json:
        form: dict[str, Json] = {"$approx": self.value, "tolerance": self.tolerance}
        return form | {"relative": self.relative} if self.relative else form


@form("$ignore")
@dataclass(frozen=True, slots=True)
class Ignore:
    """Any value; an argument or key with this matcher may also be missing."""

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        if operand is not True:
            raise ValueError("$ignore must be true; to assert nothing about an argument, remove it")
        return cls()

    def mismatch(self, actual: Json) -> str | None:
        return None

    def describe(self) -> str:
        return "anything"

    def to_json(self) -> Json:
        return {"$ignore": True}


TYPES = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
"""The names of types in JSON Schema, and how messages call them."""


@form("$type", "value")
@dataclass(frozen=True, slots=True)
class OfType:
    """A value of one of these types; with `value`, it must match that too."""

    types: tuple[str, ...]
    value: Matcher | None = None

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        names = operand if isinstance(operand, list) else [operand]
        if not names or not all(isinstance(name, str) and name in TYPES for name in names):
            wrong = next((name for name in names if not isinstance(name, str) or name not in TYPES), operand)
            raise ValueError(
                f"$type needs one of {', '.join(TYPES)}, not {literal(wrong)}{did_you_mean(str(wrong), TYPES)}"
            )
        value = parts.read_option(options, "value") if "value" in options else None
        return cls(tuple(dict.fromkeys(names)), value)

    def mismatch(self, actual: Json) -> str | None:
        return summarize(self.differences(actual, ""))

    def differences(self, actual: Json, path: str) -> Iterator[Difference]:
        kind = type_name(actual)
        if kind not in self.types and not (kind == "integer" and "number" in self.types):
            # "expected an integer, got 3.0" would leave the reader guessing what is wrong with it.
            got = f"the number {literal(actual)}" if kind == "number" else literal(actual)
            yield Difference(path, f"expected {' or '.join(TYPES[name] for name in self.types)}, got {got}")
        elif self.value is not None:
            yield from differences_of(self.value, actual, path)

    def describe(self) -> str:
        kinds = " or ".join(TYPES[name] for name in self.types)
        return kinds if self.value is None else f"{describe(self.value)} as {kinds}"

    def to_json(self) -> Json:
        form: dict[str, Json] = {"$type": self.types[0] if len(self.types) == 1 else list(self.types)}
        return form if self.value is None else form | {"value": self.value.to_json()}


def type_name(value: Json) -> str:
    """The name of a value's type in JSON Schema; unlike there, `3.0` is a number and not an integer."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, (list, tuple)):
        return "array"
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return names.get(type(value), "string")


@form("$predicate")
@dataclass(frozen=True)
class Predicate:
    """Any value for which the referenced function returns true."""

    reference: str
    base: Path | None = None

    @classmethod
    def read(cls, operand: Json, options: Options, parts: Parts) -> Matcher:
        if not isinstance(operand, str) or ":" not in operand:
            raise ValueError("$predicate needs a reference such as checks.py:is_valid")
        return cls(operand, parts.base)

    @cached_property
    def function(self) -> Any:
        return resolve(self.reference, self.base)

    def mismatch(self, actual: Json) -> str | None:
        return None if self.function(actual) else f"{self.reference} rejects {literal(actual)}"

    def describe(self) -> str:
        return f"a value that {self.reference} accepts"

    def to_json(self) -> Json:
        return {"$predicate": self.reference}


def contains_matchers(value: Json) -> bool:
    """Whether a value has a key that begins with `$`, at any depth."""
    if isinstance(value, Mapping):
        return any(isinstance(key, str) and key.startswith("$") for key in value) or any(
            map(contains_matchers, value.values())
        )
    return isinstance(value, (list, tuple)) and any(map(contains_matchers, value))


def json_equal(left: Json, right: Json) -> bool:
    """Equality of JSON data in which `True` differs from `1`, and `1` equals `1.0`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(json_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(json_equal(a, b) for a, b in zip(left, right, strict=True))
    return type(left) is type(right) and left == right


def hashable_key(value: Json) -> object:
    """A hashable key that two values share exactly if they are `json_equal`."""
    if isinstance(value, Mapping):
        return "object", frozenset((key, hashable_key(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "list", tuple(map(hashable_key, value))
    if isinstance(value, bool):
        return "flag", value
    if isinstance(value, (int, float)):
        return ("number", value) if value == value else object()
    try:
        hash(value)
    except TypeError:
        return object()
    return type(value), value


def _unequal(expected: Json, actual: Json, path: str) -> Iterator[Difference]:
    """Where two values differ; objects and lists are compared part by part."""
    if json_equal(expected, actual):
        return
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, item in expected.items():
            if key in actual:
                yield from _unequal(item, actual[key], key_path(path, key))
            else:
                yield Difference(key_path(path, key), f"missing, expected {literal(item)}")
        yield from unexpected_keys(actual, expected, path)
    elif isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        yield from unequal_items([Equals(item) for item in expected], actual, path)
    else:
        yield Difference(path, describe_change(expected, actual))


def unequal_items(expected: Sequence[Matcher], actual: Sequence[Json], path: str) -> Iterator[Difference]:
    """The differences of lists, item by item.

    Equal items at both ends are skipped first. Otherwise one missing item would make every item after it differ.
    """
    start, shorter = 0, min(len(expected), len(actual))
    while start < shorter and accepts(expected[start], actual[start]):
        start += 1
    end = 0
    while end < shorter - start and accepts(expected[-1 - end], actual[-1 - end]):
        end += 1
    missing, extra = expected[start : len(expected) - end], actual[start : len(actual) - end]
    for index in range(max(len(missing), len(extra))):
        place = f"{path}[{start + index}]"
        if index >= len(extra):
            yield Difference(place, f"missing, expected {describe(missing[index])}")
        elif index >= len(missing):
            yield Difference(place, f"not expected, got {literal(extra[index])}")
        else:
            yield from differences_of(missing[index], extra[index], place)


def _normalize(value: Json) -> str:
    text = value if isinstance(value, str) else to_text(value)
    text = re.sub(r"[,_\u202f\u00a0]", "", text.strip().casefold())
    return " ".join(text.split())


def _without_punctuation(text: str) -> str:
    """Letters and digits, and the signs that change a number: decimal point, minus, percent sign."""
    text = re.sub(r"(?<=\d)\.(?=\d)", "\0", text)
    text = re.sub(r"(?<![\w\0])-(?=\d)", "\1", text)
    return re.sub(r"[^\w%\0\1]", "", text).replace("_", "")


def _number(text: str) -> float | None:
    digits = text.replace(" ", "")
    percent = digits.endswith("%")
    try:
        number = float(digits[:-1] if percent else digits)
    except ValueError:
        return None
    return None if math.isnan(number) else number / 100 if percent else number
