"""Matchers say what one value must look like: equal, a pattern, a range, part of something larger.

In files they are written as an object with one `$` key, so that a literal object is never mistaken for one:
`{"$regex": "A-[0-9]+"}`, `{"$approx": 12.5, "tolerance": 0.1}`, `{"$ignore": true}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from proctor.base.json_data import Json, show
from proctor.base.patterns import check_pattern, fullmatch
from proctor.base.records import record


@runtime_checkable
class Matcher(Protocol):
    """Anything that can say why a value does not fit."""

    def mismatch(self, actual: Json) -> str | None:
        """Why `actual` does not fit, or `None` when it does."""
        ...

    def to_json(self) -> Json:
        """How the matcher is written in a file."""
        ...


@record
class Equals:
    """The same data: `1` equals `1.0`, `True` does not equal `1`, the order of an object's keys means nothing."""

    value: Json

    def mismatch(self, actual: Json) -> str | None:
        if same(self.value, actual):
            return None
        wanted, got = show(self.value, 80), show(actual, 80)
        if wanted == got:
            wanted, got = f"{_kind(self.value)} {wanted}", f"{_kind(actual)} {got}"
        return f"expected {wanted}, got {got}"

    def to_json(self) -> Json:
        literal = self.value
        is_form = isinstance(literal, dict) and any(isinstance(key, str) and key.startswith("$") for key in literal)
        return {"$equals": literal} if is_form else literal


@record
class Regex:
    """Text that the pattern matches from end to end."""

    pattern: str

    def mismatch(self, actual: Json) -> str | None:
        text = actual if isinstance(actual, str) else show(actual)
        return None if fullmatch(self.pattern, text) else f"{show(actual, 80)} does not match /{self.pattern}/"

    def to_json(self) -> Json:
        return {"$regex": self.pattern}


@record
class Fuzzy:
    """The same text or number but for case, spacing, thousands separators and a percent sign."""

    value: Json

    def mismatch(self, actual: Json) -> str | None:
        wanted, got = _loosen(self.value), _loosen(actual)
        wanted_number, got_number = _number(wanted), _number(got)
        if wanted.isdecimal() and got.isdecimal():
            fits = wanted.lstrip("0") == got.lstrip("0")
        elif wanted_number is not None and got_number is not None:
            fits = math.isclose(wanted_number, got_number, rel_tol=1e-9, abs_tol=1e-9)
        else:
            fits = wanted == got
        return None if fits else f"{show(actual, 80)} is not like {show(self.value, 80)}"

    def to_json(self) -> Json:
        return {"$fuzzy": self.value}


@record
class Approx:
    """A number within a tolerance, absolute or relative, whichever is wider."""

    value: float
    tolerance: float = 1e-6
    relative: float = 0.0

    def mismatch(self, actual: Json) -> str | None:
        if isinstance(actual, bool) or not isinstance(actual, (int, float)):
            return f"expected a number near {self.value}, got {show(actual, 80)}"
        allowed = max(self.tolerance, self.relative * abs(self.value))
        try:
            near = abs(float(actual) - self.value) <= allowed
        except OverflowError:
            near = False
        return None if near else f"{show(actual, 80)} is not within {allowed:g} of {self.value:g}"

    def to_json(self) -> Json:
        form: dict[str, Json] = {"$approx": self.value, "tolerance": self.tolerance}
        return form | {"relative": self.relative} if self.relative else form


@record
class Subset:
    """An object or list that contains at least these parts, each of which may be a matcher itself."""

    value: Json
    base: Path | None = None

    def mismatch(self, actual: Json) -> str | None:
        return _subset(self.value, actual, "", self.base)

    def to_json(self) -> Json:
        return {"$subset": self.value}


@record
class OneOf:
    """Any one of several values."""

    values: tuple[Json, ...]
    base: Path | None = None

    def mismatch(self, actual: Json) -> str | None:
        if any(parse(value, self.base).mismatch(actual) is None for value in self.values):
            return None
        return f"{show(actual, 80)} is none of {show(list(self.values), 120)}"

    def to_json(self) -> Json:
        return {"$one_of": list(self.values)}


@record
class Ignore:
    """Anything at all, even nothing."""

    def mismatch(self, actual: Json) -> str | None:
        return None

    def to_json(self) -> Json:
        return {"$ignore": True}


@dataclass(frozen=True)
class Predicate:
    """Whatever the named function, given the value, calls true."""

    reference: str
    base: Path | None = None

    @cached_property
    def function(self) -> Any:
        from proctor.base.references import resolve

        return resolve(self.reference, self.base)

    def mismatch(self, actual: Json) -> str | None:
        return None if self.function(actual) else f"{self.reference} rejects {show(actual, 80)}"

    def to_json(self) -> Json:
        return {"$predicate": self.reference}


FORMS = ("$equals", "$regex", "$fuzzy", "$approx", "$subset", "$one_of", "$ignore", "$predicate")


def parse(value: Json, base: Path | None = None) -> Matcher:
    """The matcher a file means; raises `ValueError` with the reason when it means none."""
    if not isinstance(value, Mapping):
        return Equals(value)
    forms = [key for key in value if isinstance(key, str) and key.startswith("$")]
    if not forms:
        return Equals(dict(value))
    if len(forms) > 1 or forms[0] not in FORMS:
        raise ValueError(f"{' and '.join(forms)} is not a matcher; use one of {', '.join(FORMS)}")
    return _build(forms[0], value[forms[0]], {k: v for k, v in value.items() if k != forms[0]}, base)


def _build(form: str, operand: Json, options: dict[str, Json], base: Path | None) -> Matcher:
    allowed = {"tolerance", "relative"} if form == "$approx" else set()
    if unknown := sorted(set(options) - allowed):
        raise ValueError(f"{form} takes no {', '.join(unknown)}")
    match form:
        case "$regex":
            if not isinstance(operand, str):
                raise ValueError("$regex needs a pattern")
            return Regex(_pattern(operand))
        case "$fuzzy":
            return Fuzzy(operand)
        case "$approx":
            numbers = [operand, *options.values()]
            if any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
                raise ValueError("$approx needs numbers")
            return _approx(operand, options)
        case "$subset":
            _check(operand, base)
            return Subset(operand, base)
        case "$one_of":
            if not isinstance(operand, list) or not operand:
                raise ValueError("$one_of needs a list of at least one value")
            _check(operand, base)
            return OneOf(tuple(operand), base)
        case "$ignore":
            if operand is not True:
                raise ValueError("$ignore takes only true; leave the argument out to assert nothing about it")
            return Ignore()
        case "$predicate":
            if not isinstance(operand, str) or ":" not in operand:
                raise ValueError("$predicate needs a reference such as checks.py:is_valid")
            return Predicate(operand, base)
        case _:
            return Equals(operand)


def _pattern(text: str) -> str:
    try:
        check_pattern(text)
    except ValueError as error:
        raise ValueError(f"$regex {text!r} is not a pattern: {error}") from None
    return text


def _approx(operand: Json, options: dict[str, Json]) -> Approx:
    try:
        value, given = float(operand), {name: float(number) for name, number in options.items()}
    except OverflowError:
        raise ValueError("$approx needs numbers that a float can hold") from None
    if not all(math.isfinite(number) for number in (value, *given.values())):
        raise ValueError("$approx needs finite numbers")
    if any(number < 0 for number in given.values()):
        raise ValueError("the tolerance of $approx cannot be negative")
    return Approx(value, **given)


def _check(value: Json, base: Path | None) -> None:
    """Find mistakes inside a nested matcher when the file is read, not when it is used."""
    if isinstance(value, Mapping):
        if any(isinstance(key, str) and key.startswith("$") for key in value):
            parse(value, base)
        else:
            for item in value.values():
                _check(item, base)
    elif isinstance(value, list):
        for item in value:
            _check(item, base)


def same(left: Json, right: Json) -> bool:
    """Equality of JSON data that tells `True` from `1` and does not tell `1` from `1.0`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return type(left) is type(right) and left == right


def _subset(wanted: Json, actual: Json, place: str, base: Path | None) -> str | None:
    if isinstance(wanted, Mapping) and not any(str(key).startswith("$") for key in wanted):
        if not isinstance(actual, Mapping):
            return f"{place or 'value'} should be an object, got {show(actual, 80)}"
        for key, item in wanted.items():
            if key not in actual:
                return f"{place}{'.' if place else ''}{key} is missing"
            if reason := _subset(item, actual[key], f"{place}{'.' if place else ''}{key}", base):
                return reason
        return None
    if isinstance(wanted, list) and isinstance(actual, (list, tuple)):
        missing = [item for item in wanted if all(_subset(item, other, place, base) for other in actual)]
        return f"{place or 'value'} lacks {show(missing[0], 80)}" if missing else None
    reason = parse(wanted, base).mismatch(actual)
    return f"{place} {reason}".strip() if reason else None


def _kind(value: Json) -> str:
    return {bool: "true or false", str: "text", type(None): "nothing"}.get(type(value), "number")


def _loosen(value: Json) -> str:
    text = value if isinstance(value, str) else show(value)
    text = re.sub(r"[,_\u202f\u00a0]", "", text.strip().casefold())
    return " ".join(text.split())


def _number(text: str) -> float | None:
    digits = text.replace(" ", "")
    percent = digits.endswith("%")
    try:
        number = float(digits[:-1] if percent else digits)
    except ValueError:
        return None
    return None if math.isnan(number) else number / 100 if percent else number
