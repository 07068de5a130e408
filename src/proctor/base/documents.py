"""Reads documents that people write, and collects everything that is wrong, with its line.

A reader wraps the parsed data in a `Document` and takes known keys with `Fields`. Keys that are missing, unknown or of
the wrong type become problems; `Document.finish` raises one `InvalidSuite` with all of them.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from proctor.base.errors import InvalidSuite, Problem, ProblemCode
from proctor.base.json_data import Json, to_text
from proctor.base.positions import Lines, Pointer, Position, pointer_text
from proctor.base.source import lines_of, parse_with_lines

T = TypeVar("T")

_UNPARSED: Any = object()


class Document:
    """One file being read: its data, and the problems found in it so far."""

    is_python = False
    """Whether the data was passed from Python, where functions and objects may stand for references."""

    def __init__(self, path: Path, text: str, data: Json = _UNPARSED, lines: Lines | None = None) -> None:
        self.path = path
        self.text = text
        if data is _UNPARSED:
            data, lines = parse_with_lines(path, text)
        self.data = data
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._lines = lines

    def problem(self, pointer: Pointer, message: str) -> None:
        self.problems.append(self._at(pointer, message))

    def unknown_key(self, pointer: Pointer, hint: str) -> None:
        """Report a key that does not exist; `hint` is the end of the sentence."""
        self.problems.append(replace(self._at(pointer, f"is not a known key{hint}"), code="unknown key"))

    def warn(self, pointer: Pointer, message: str, code: ProblemCode | None = None) -> None:
        self.warnings.append(replace(self._at(pointer, message), code=code))

    def line(self, pointer: Pointer) -> int | None:
        if self._lines is None:
            self._lines = lines_of(self.path, self.text)
        return self._lines(pointer)

    def position(self, pointer: Pointer) -> Position:
        """Where the value at `pointer` is written, or its nearest parent that is in the file."""
        return Position(self.path, self.line(pointer))

    def positions_below(self, pointer: Pointer, name: str = "") -> dict[str, Position]:
        """The positions of a value and of everything in it, by place: `agent.http.url` for the name `agent`."""
        positions: dict[str, Position] = {}
        value = self.data
        for part in pointer:
            if isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            elif isinstance(value, Mapping) and part in value:
                value = value[part]
            else:
                return positions
        for inner in _pointers_in(value):
            positions[pointer_text((name, *inner) if name else inner)] = self.position((*pointer, *inner))
        return positions

    def finish(self, *read: Any) -> None:
        """Raise `InvalidSuite` if there are problems, with the suites as far as they could be `read`."""
        if self.problems:
            raise InvalidSuite(self.problems, read)

    def _at(self, pointer: Pointer, message: str) -> Problem:
        return Problem(message, self.path, self.line(pointer), pointer_text(pointer))


def _pointers_in(value: Json) -> Iterator[tuple[str | int, ...]]:
    yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from ((key, *inner) for inner in _pointers_in(item))


class Fields:
    """The keys of one object, taken one by one; `report_unknown_keys` reports the ones that were not taken."""

    def __init__(self, document: Document, data: Json, pointer: Pointer = (), *, camel: bool = False) -> None:
        self.document = document
        self.pointer = tuple(pointer)
        self._camel = camel
        self._known: list[str] = []
        self._asked: list[str] = []
        self._old_key_of: dict[str, str] = {}
        if isinstance(data, dict):
            self._data: Mapping[str, Json] = data
        elif isinstance(data, Mapping):
            self._data = dict(data)
        else:
            self._data = {}
            document.problem(pointer, f"must be an object, not {json_type_name(data)}")
        self.valid = isinstance(data, Mapping)

    def problem(self, name: str, message: str) -> None:
        self.document.problem((*self.pointer, self._spelling(name)), message)

    def has(self, name: str) -> bool:
        """Whether the key is there; it is then also suggested for misspelled keys."""
        if not self._camel:
            self._asked.append(name)
            return name in self._data
        return any(spelling in self._data for spelling in self._spellings(name))

    def at(self, name: str) -> Pointer:
        """The pointer of a key, in the spelling the file uses."""
        return (*self.pointer, self._spelling(name))

    def position(self, name: str) -> Position:
        """Where a key is written, or the object if it does not have the key."""
        return self.document.position(self.at(name))

    def accept_old_key(self, old: str, new: str, *, inverted: bool = False) -> None:
        """Read the key `old` as `new`, with a warning: call this before either is taken.

        `inverted`: the new key says the opposite, so that `gate: false` is `report_only: true`.
        """
        if old not in self._data:
            return
        pointer = (*self.pointer, old)
        if new in self._data:
            self.document.problem(pointer, f"is the old name of {new!r}, which is also given; remove one of them")
            self._known.append(old)
            return
        value = self._data[old]
        replacement = repr(new)
        if inverted and isinstance(value, bool):
            value = not value
            replacement = f"'{new}: {to_text(value)}'"
        message = f"is now {replacement}; the old key works for one more release"
        if all(warning.message != message for warning in self.document.warnings):
            self.document.warn(pointer, message)
        self._data = {new if key == old else key: value if key == old else item for key, item in self._data.items()}
        self._old_key_of[new] = old

    def take(self, name: str, default: Any = None) -> Any:
        """The value of a key, of any type."""
        if not self._camel:
            self._known.append(name)
            return self._data.get(name, default)
        spellings = self._spellings(name)
        was_taken = spellings[0] in self._known
        self._known.extend(spellings)
        present = [spelling for spelling in spellings if spelling in self._data]
        if len(present) > 1 and not was_taken:
            self.problem(name, f"is set twice, as {present[0]} and {present[1]}; remove one of them")
        return self._data[present[0]] if present else default

    def text(self, name: str, default: Any = None, *, required: bool = False, blank: bool = True) -> Any:
        """A string. With `blank=False`, a blank one is a problem."""
        value = self._typed(name, (str,), "text", default, required)
        if not blank and isinstance(self.take(name), str) and not value.strip():
            self.problem(name, "must not be blank")
            return default
        return value

    def boolean(self, name: str, default: Any = None) -> Any:
        return self._typed(name, (bool,), "true or false", default, False)

    def integer(self, name: str, default: Any = None, *, least: int | None = None) -> Any:
        value = self._typed(name, (int, float), "a whole number", default, False)
        if isinstance(value, float):
            if not value.is_integer():
                self.problem(name, f"must be a whole number, not {to_text(value, 40)}")
                return default
            value = int(value)
        return self._at_least(name, value, least, default)

    def number(self, name: str, default: Any = None, *, least: float | None = None, most: float | None = None) -> Any:
        value = self._typed(name, (int, float), "a number", default, False)
        if isinstance(value, (int, float)) and not _is_finite(value):
            self.problem(name, "must be a finite number")
            return default
        if most is not None and isinstance(value, (int, float)) and value > most:
            self.problem(name, f"must be at most {most:g}, not {to_text(value, 40)}")
            return default
        return self._at_least(name, value, least, default)

    def choice(self, name: str, options: Iterable[str], default: Any = None) -> Any:
        value = self.text(name, default)
        allowed = list(options)
        if value is not default and value not in allowed:
            self.problem(name, f"must be one of {', '.join(allowed)}, not {value!r}{did_you_mean(str(value), allowed)}")
            return default
        return value

    def mapping(self, name: str, default: Any = None, *, required: bool = False) -> Any:
        return self._typed(name, (dict,), "an object", default, required)

    def items(self, name: str, *, required: bool = False, least: int = 0) -> list[Json] | None:
        """A list, or `None` if it is missing."""
        value: list[Json] | None = self._typed(name, (list,), "a list", None, required)
        if value is not None and len(value) < least:
            self.problem(name, "is empty; add at least one" if least == 1 else f"needs at least {least} items")
        return value

    def texts(self, name: str, default: Any = None) -> Any:
        """A tuple of strings."""
        value = self.items(name)
        if value is None:
            return default
        for index, item in enumerate(value):
            if not isinstance(item, str):
                self.document.problem((*self.at(name), index), f"must be text, not {json_type_name(item)}")
        return tuple(item for item in value if isinstance(item, str))

    def each(self, name: str, read: Callable[[Json, Pointer], T], *, required: bool = False, least: int = 0) -> list[T]:
        """Read every item of a list with `read(item, pointer)`."""
        value = self.items(name, required=required, least=least) or []
        return [read(item, (*self.at(name), index)) for index, item in enumerate(value)]

    def inside(self, name: str) -> Fields | None:
        """The fields of a nested object, or `None` if it is missing."""
        if self.take(name) is None:
            return None
        return Fields(self.document, self.take(name), self.at(name), camel=self._camel)

    def rest(self) -> dict[str, Json]:
        """The keys that were not taken yet; they then count as known."""
        left = {key: value for key, value in self._data.items() if key not in self._known}
        self._known.extend(left)
        return left

    def extensions(self) -> dict[str, Json]:
        """The `x-` keys, which users may add."""
        own = {key: value for key, value in self._data.items() if key.startswith("x-")}
        self._known.extend(own)
        return own

    def report_unknown_keys(self, *, nulls: bool = False, ignored_by: str = "") -> list[str]:
        """Report every unknown key, and return those that are problems.

        With `nulls`, an unknown key without a value is not reported. If the tool `ignored_by` ignores unknown keys,
        they are only warnings, once per key, unless one looks like a known key that is misspelled.
        """
        known, wrong = [*self._known, *self._asked], []
        unknown = [
            key
            for key in self._data
            if key not in self._known and not ((nulls or ignored_by) and self._data[key] is None)
        ]
        if len(unknown) > MAX_UNKNOWN_KEYS:
            say = self.document.warn if ignored_by else self.document.problem
            say(self.pointer, f"has {len(unknown) - MAX_UNKNOWN_KEYS:,} more unknown keys")
        for key in unknown[:MAX_UNKNOWN_KEYS]:
            if not ignored_by or did_you_mean(key, self._known, cutoff=MISSPELLING_SIMILARITY):
                self.document.unknown_key((*self.pointer, key), did_you_mean(key, known))
                wrong.append(key)
                continue
            message = f"is not a known key and is ignored, as {ignored_by} does"
            warnings = self.document.warnings
            if all(warning.message != message or not warning.where.endswith(key) for warning in warnings):
                self.document.warn((*self.pointer, key), message)
        return wrong

    def _spellings(self, name: str) -> tuple[str, ...]:
        return _both_spellings(name) if self._camel else (name,)

    def _spelling(self, name: str) -> str:
        if name in self._old_key_of:
            return self._old_key_of[name]
        return next((spelling for spelling in self._spellings(name) if spelling in self._data), name)

    def _typed(self, name: str, types: tuple[type, ...], noun: str, default: Any, required: bool) -> Any:
        value = self.take(name)
        if value is None:
            if required:
                self.document.problem(self.pointer, f"needs {self._spellings(name)[0]!r} ({noun})")
            return default
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            self.problem(name, f"must be {noun}, not {json_type_name(value)}")
            return default
        return value

    def _at_least(self, name: str, value: Any, least: float | None, default: Any) -> Any:
        if least is not None and isinstance(value, (int, float)) and value < least:
            self.problem(name, f"must be at least {least:g}, not {to_text(value, 40)}")
            return default
        return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


@functools.cache
def _both_spellings(name: str) -> tuple[str, ...]:
    """`eval_id` as `evalId` and as it is."""
    head, *tail = name.split("_")
    camel = head + "".join(part.capitalize() for part in tail)
    return (name,) if camel == name else (camel, name)


def json_type_name(value: Json) -> str:
    """What messages call the type of a JSON value."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else type(value).__name__)


MAX_UNKNOWN_KEYS = 100
"""How many unknown keys of one object are reported: each is compared with all known ones, which takes time."""

MISSPELLING_SIMILARITY = 0.8
"""How similar an unknown key must be to a known one to count as misspelled."""


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """`; did you mean 'x'?` for the most similar known name, or an empty string."""
    close = difflib.get_close_matches(name, list(dict.fromkeys(known)), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else ""
