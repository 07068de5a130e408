"""Matchers that Python code can pass for an argument of an expected call, besides literals and the forms of files.

`re.compile(p)` is `$regex`, a type or a union such as `int | None` is `$type`, `...` and `Any` are `$ignore`. A
function says whether it accepts the value, and any other object is compared with `==`, so that `pytest.approx` and
`mock.ANY` work. These two count by the fingerprint of their code, and only their text is stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from proctor.base.errors import UsageError
from proctor.base.fingerprints import code_fingerprint
from proctor.base.functions import reference_of, title_of
from proctor.base.json_data import Json
from proctor.base.passed_objects import PassedObjects
from proctor.cases.matchers.value_matchers import Ignore, Matcher, OfType, Regex, literal

_TYPES: Final[Mapping[Any, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
    NoneType: "null",
}
_JSON = (str, int, float, bool, NoneType, Mapping, list, tuple)
_FLAGS: Final = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}


def is_python_matcher(value: Any) -> bool:
    """Whether a value is not data, so that it is itself a matcher."""
    return not isinstance(value, _JSON)


def python_matcher(value: Any) -> Matcher:
    """The matcher for a value that is not data."""
    if value is ... or value is Any:
        return Ignore()
    if isinstance(value, re.Pattern):
        flags = "".join(letter for flag, letter in _FLAGS.items() if value.flags & flag)
        return Regex(f"(?{flags}){value.pattern}" if flags else str(value.pattern))
    if isinstance(value, type) and value in _TYPES:
        return OfType((_TYPES[value],))
    if get_origin(value) in (Union, UnionType) and all(item in _TYPES for item in get_args(value)):
        return OfType(tuple(_TYPES[item] for item in get_args(value)))
    if isinstance(value, Matcher):
        return value
    return PythonMatcher.of(value)


def _is_function(value: Any) -> bool:
    """Whether a value is called to decide, and not compared: it has no own equality."""
    own: Any = type(value).__eq__
    return callable(value) and own is object.__eq__


_TARGETS = PassedObjects()
"""By fingerprint: what was passed in this process, so that its runs can be scored again."""


@dataclass(frozen=True, slots=True)
class PythonMatcher:
    """A value that a function accepts, or that is equal to an object."""

    text: str
    """What reports call it: the name of the function, the text of a lambda, or what the object prints."""
    fingerprint: str
    reference: str = ""
    """`file.py:name` of a function, if it has one."""
    target: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, value: Any) -> PythonMatcher:
        is_code = _is_function(value)
        text = title_of(value) if is_code else repr(value)
        matcher = cls(text, code_fingerprint([text, value]), (reference_of(value) or "") if is_code else "", value)
        _TARGETS.add(matcher.fingerprint, value)
        return matcher

    def __getstate__(self) -> list[Any]:
        return [self.text, self.fingerprint, self.reference]

    def __setstate__(self, state: list[Any]) -> None:
        for name, value in zip(("text", "fingerprint", "reference"), state, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "target", None)

    def mismatch(self, actual: Json) -> str | None:
        target = _TARGETS.get(self.fingerprint) if self.target is None else self.target
        if target is None:
            raise UsageError(f"the matcher {self.text} is Python code of another process; run the suite again")
        if isinstance(target, type):
            return None if isinstance(actual, target) else f"{literal(actual)} is not {target.__name__}"
        if _is_function(target):
            return None if target(actual) else f"{self.text} rejects {literal(actual)}"
        return None if target == actual else f"{literal(actual)} is not {self.text}"

    def describe(self) -> str:
        return self.text

    def to_json(self) -> Json:
        return {"$predicate": self.reference or self.text}
