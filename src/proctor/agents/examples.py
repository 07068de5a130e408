"""Invents a value that a matcher accepts, so that a control agent can give the expected answer."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from proctor.cases.matchers import Approx, Equals, Fuzzy, Ignore, Matcher, OneOf, Regex, Subset, parse
from proctor.plain import Json, show

_LONGEST = 100_000
_ALPHABET = "a0 A_-.!~\u00e9\n"


class NoExample(Exception):
    """No value can be invented that certainly fits."""


def example_of(matcher: Matcher) -> Json:
    """A value that fits, checked against the matcher itself."""
    value = _invent(matcher)
    try:
        fits = matcher.mismatch(value) is None
    except Exception:
        fits = False
    if not fits:
        raise NoExample(f"a value for {show(matcher.to_json(), 120)}")
    return value


def example_of_parts(value: Json) -> Json:
    """Plain data in which matchers may stand anywhere, each replaced by an example."""
    if isinstance(value, Mapping) and not any(str(key).startswith("$") for key in value):
        return {key: example_of_parts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [example_of_parts(item) for item in value]
    return example_of(parse(value))


def _invent(matcher: Matcher) -> Json:
    match matcher:
        case Equals(value=value) | Fuzzy(value=value) | Approx(value=value):
            return value
        case Subset(value=value):
            return example_of_parts(value)
        case OneOf(values=values):
            return _first_example(matcher, values)
        case Ignore():
            return None
        case Regex(pattern=pattern):
            return example_of_pattern(pattern)
        case _:
            raise NoExample(f"a value for {show(matcher.to_json(), 120)}")


def _first_example(matcher: Matcher, values: tuple[Json, ...]) -> Json:
    for value in values:
        try:
            return example_of(parse(value))
        except NoExample:
            continue
    raise NoExample(f"a value for {show(matcher.to_json(), 120)}")


def example_of_pattern(pattern: str) -> str:
    """A text that the pattern matches from end to end; look-arounds are not understood, only checked afterwards."""
    parser: Any = importlib.import_module("re._parser")
    groups: dict[int, str] = {}
    try:
        text = _sequence(parser.parse(pattern), groups)
    except RecursionError:
        raise NoExample(f"a text that matches /{pattern[:100]}/") from None
    if Regex(pattern).mismatch(text) is not None:
        raise NoExample(f"a text that matches /{pattern[:100]}/")
    return text


def _sequence(tokens: Any, groups: dict[int, str]) -> str:
    text = ""
    for operation, operand in tokens:
        write = _WRITERS.get(str(operation))
        if write is None:
            raise NoExample(f"a text for the pattern part {str(operation).lower()}")
        text += write(operand, groups)
        if len(text) > _LONGEST:
            raise NoExample("a text that long")
    return text


def _repeat(operand: Any, groups: dict[int, str]) -> str:
    least, most, item = operand
    # One instead of none reads better: `.*` should not be answered with silence.
    times = max(least, min(1, most))
    once: str = _sequence(item, groups)
    if len(once) * times > _LONGEST:
        raise NoExample("a text that long")
    return once * int(times)


def _group(operand: Any, groups: dict[int, str]) -> str:
    number, *_, item = operand
    text = _sequence(item, groups)
    if number is not None:
        groups[number] = text
    return text


def _choice(operand: Any, groups: dict[int, str]) -> str:
    """A character of a class: the first it names, or, for `[^...]`, the first ordinary one that it does not."""
    if str(operand[0][0]) == "NEGATE":
        refused = [_accepts(item) for item in operand[1:]]
        return _pick(lambda character: not any(accepts(character) for accepts in refused))
    kind, value = operand[0]
    if str(kind) == "LITERAL":
        return chr(value)
    return chr(value[0]) if str(kind) == "RANGE" else _pick(_accepts(operand[0]))


def _accepts(item: Any) -> Callable[[str], bool]:
    kind, value = item
    if str(kind) == "LITERAL":
        return lambda character: ord(character) == value
    if str(kind) == "RANGE":
        return lambda character: bool(value[0] <= ord(character) <= value[1])
    category = str(value)
    tests: dict[str, Callable[[str], bool]] = {
        "DIGIT": str.isdigit,
        "SPACE": str.isspace,
        "WORD": lambda character: character.isalnum() or character == "_",
    }
    test = tests[category.rpartition("_")[2]]
    return (lambda character: not test(character)) if "_NOT_" in category else test


def _pick(accepts: Callable[[str], bool]) -> str:
    for character in _ALPHABET:
        if accepts(character):
            return character
    raise NoExample("a character for such a class")


_WRITERS: dict[str, Callable[[Any, dict[int, str]], str]] = {
    "LITERAL": lambda operand, groups: chr(operand),
    "NOT_LITERAL": lambda operand, groups: _pick(lambda character: ord(character) != operand),
    "ANY": lambda operand, groups: "a",
    "IN": _choice,
    "MAX_REPEAT": _repeat,
    "MIN_REPEAT": _repeat,
    "POSSESSIVE_REPEAT": _repeat,
    "SUBPATTERN": _group,
    "ATOMIC_GROUP": lambda operand, groups: _sequence(operand, groups),
    "BRANCH": lambda operand, groups: _sequence(operand[1][0], groups),
    "GROUPREF": lambda operand, groups: groups.get(operand, ""),
    "AT": lambda operand, groups: "",
    "ASSERT": lambda operand, groups: "",
    "ASSERT_NOT": lambda operand, groups: "",
}
