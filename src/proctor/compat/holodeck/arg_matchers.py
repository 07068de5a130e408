"""HoloDeck's matchers of one argument of a tool call: `{fuzzy: …}`, `{regex: …}`, or a value to be equal to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proctor.base.documents import json_type_name
from proctor.base.json_data import Json, to_json
from proctor.base.regexes import check_pattern
from proctor.cases.matchers import Equals, Fuzzy, Matcher, Regex
from proctor.cases.validation import problem_at


@dataclass(frozen=True)
class LiteralMatcher:
    """Exactly this value; 1 and 1.0 are the same."""

    value: Any


@dataclass(frozen=True)
class FuzzyMatcher:
    """This text or number, whatever its case, white space and separators."""

    pattern: str


@dataclass(frozen=True)
class RegexMatcher:
    """The whole value matches the expression."""

    compiled: re.Pattern[str]


ArgMatcher = LiteralMatcher | FuzzyMatcher | RegexMatcher


def parse_arg_matcher(name: str, value: Any) -> ArgMatcher:
    """The matcher of an argument as it stands in a file; raises the problem for a validator."""
    if isinstance(value, ArgMatcher):
        return value
    if not isinstance(value, Mapping) or {"fuzzy", "regex"}.isdisjoint(value):
        return LiteralMatcher(value)
    if len(value) != 1:
        raise problem_at((name,), f"must have exactly one key, fuzzy or regex, not {', '.join(sorted(value))}")
    [(kind, pattern)] = value.items()
    if kind == "regex":
        return RegexMatcher(_compile(pattern, (name, "regex")))
    if pattern is None or isinstance(pattern, dict | list):
        raise problem_at((name, "fuzzy"), f"must be text or a number, not {json_type_name(pattern)}")
    return FuzzyMatcher(pattern)


def _compile(pattern: Any, place: tuple[str, ...]) -> re.Pattern[str]:
    if not isinstance(pattern, str):
        raise problem_at(place, f"must be a regular expression, not {json_type_name(pattern)}")
    try:
        check_pattern(pattern)
        return re.compile(pattern)
    except (ValueError, re.error) as error:
        raise problem_at(place, f"{pattern!r} is not a valid regular expression: {error}") from None


def to_file_form(matcher: Any) -> Json:
    """How a matcher is written in a file."""
    if isinstance(matcher, RegexMatcher):
        return {"regex": matcher.compiled.pattern}
    if isinstance(matcher, FuzzyMatcher):
        return {"fuzzy": matcher.pattern}
    return to_json(matcher.value) if isinstance(matcher, LiteralMatcher) else to_json(matcher)


def to_engine_matcher(matcher: ArgMatcher) -> Matcher:
    """The matcher that a run compares with."""
    if isinstance(matcher, RegexMatcher):
        return Regex(matcher.compiled.pattern)
    return Fuzzy(matcher.pattern) if isinstance(matcher, FuzzyMatcher) else Equals(to_json(matcher.value))
