"""Reads a file into plain data, and tells on which line each value is.

The JSON parser of the standard library keeps no positions, and one that does is many times slower. So JSON is parsed at
full speed, and positions are looked up by a second pass over the text when a problem has to be reported. YAML has them
from its only pass. In both, a key that is given twice is a mistake.
"""

from __future__ import annotations

import json
import math
import re
import stat
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json
from proctor.base.positions import MAX_DEPTH as MAX_DEPTH
from proctor.base.positions import Lines as Lines
from proctor.base.positions import Place, line_at
from proctor.base.positions import Pointer as Pointer
from proctor.base.positions import pointer_text as pointer_text

YAML_SUFFIXES = (".yaml", ".yml")

MAX_FILE_BYTES = 1_000_000_000
"""Bytes of a file that is read whole; a hundred thousand cases are a tenth of this."""


def read_text(path: Path) -> str:
    """A file's text; an unreadable one is a problem that names it."""
    try:
        refuse_endless(path)
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidSuite([Problem(f"is not UTF-8 text ({error.reason} at byte {error.start})", path, line)]) from None
    except OSError as error:
        raise InvalidSuite([Problem(f"cannot be read: {error.strerror or error}", path)]) from None
    except ValueError as error:
        raise InvalidSuite([Problem(f"cannot be read: {error}", path)]) from None


def refuse_endless(path: Path) -> None:
    """A pipe or a device may wait or go on forever, and a file can be larger than the memory."""
    about = path.stat()
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
        raise ValueError("it is not a file, but a pipe or a device")
    if about.st_size > MAX_FILE_BYTES:
        raise ValueError(f"it has {about.st_size / 1e6:,.0f} MB; {MAX_FILE_BYTES / 1e6:,.0f} MB are the most")


def parse(path: Path, text: str) -> Json:
    """The data in a JSON or YAML document."""
    return parse_with_lines(path, text)[0]


def parse_with_lines(path: Path, text: str) -> tuple[Json, Lines]:
    """The data in a JSON or YAML document, and a function that returns the line of each value in it."""
    if path.suffix in YAML_SUFFIXES:
        from proctor.base.yaml_source import parse_yaml  # PyYAML is heavy, and many suites are JSON

        data, lines = parse_yaml(path, text)
    else:
        data, lines = parse_json(path, text), _JsonLines(text)
    if _is_too_deep(data):
        raise InvalidSuite([Problem("is nested too deeply to be read", path)])
    return data, lines


def lines_of(path: Path, text: str) -> Lines:
    """The lines of the values in one document; nothing is known of one that cannot be parsed."""
    try:
        return parse_with_lines(path, text)[1]
    except InvalidSuite:
        return lambda pointer: None


def _is_too_deep(data: Json) -> bool:
    level = [data]
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for container in level
            if isinstance(container, (dict, list))
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


class _NotJson(ValueError):
    """Something that the parser takes and the standard does not; `token` is how the text has it."""

    def __init__(self, message: str, token: str) -> None:
        self.token = token
        super().__init__(message)


class _KeyTwice(ValueError):
    """A key that one object has twice."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"key {key!r} is given twice in one object")


def _reject_constant(name: str) -> None:
    raise _NotJson(f"{name} is not JSON", name)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotJson(f"{text[:40]} is too large for a number", text)
    return number


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _KeyTwice(key)
            seen.add(key)
    return data


_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_finite, object_pairs_hook=_unique_pairs)


def parse_json(path: Path, text: str) -> Json:
    """The data in a JSON text; `path` is only named in problems."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        problem = Problem(f"is not valid JSON: {error.msg} (column {error.colno})", path, error.lineno)
    except RecursionError:
        problem = Problem("is nested too deeply to be read", path)
    except _NotJson as error:
        problem = Problem(f"is not valid JSON: {error}", path, _line_of_token(text, re.escape(error.token)))
    except _KeyTwice as error:
        problem = Problem(f"is not valid JSON: {error}", path, _JsonPlaces(text).line_of_repeated(error.key))
    except ValueError:
        problem = Problem("has a number with too many digits to be read", path, _line_of_token(text, r"-?[0-9]{1000,}"))
    raise InvalidSuite([problem])


# Possessive: a long text would otherwise be remembered character by character, at a hundred times its size.
_TOKEN = re.compile(r'\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s\[\]{}:,"]++)', re.DOTALL)


def _line_of_token(text: str, pattern: str) -> int | None:
    """The line of the first token that is neither text nor punctuation and fits."""
    for found in _TOKEN.finditer(text):
        if re.fullmatch(pattern, found.group(1)):
            return text.count("\n", 0, found.start(1)) + 1
    return None


class _JsonLines:
    """The lines of the values in a JSON text, which is gone through when the first one is needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self, pointer: Pointer) -> int | None:
        return None if self._root is None else line_at(self._root, pointer)

    @cached_property
    def _root(self) -> Place | None:
        with suppress(ValueError, RecursionError):
            return _JsonPlaces(self._text).read()
        return None


class _JsonPlaces:
    """Goes through a JSON text that the parser has accepted and notes where each value is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0
        self._repeated: list[tuple[str, int]] = []

    def read(self) -> Place:
        return self._value(self._next(), None)

    def line_of_repeated(self, key: str) -> int | None:
        """Where an object has a key for the second time; what follows need not be JSON."""
        with suppress(ValueError, RecursionError):
            self.read()
        return next((line for repeated, line in self._repeated if repeated == key), None)

    def _next(self) -> str:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise ValueError("end of text")
        start = match.start(1)
        self._line += self._text.count("\n", self._counted, start)
        self._at, self._counted = match.end(), start
        return match.group(1)

    def _value(self, opening: str, line: int | None) -> Place:
        here = self._line if line is None else line
        if opening == "[":
            return here, self._items()
        if opening == "{":
            return here, self._members()
        return here, None

    def _items(self) -> list[Place]:
        items: list[Place] = []
        while (token := self._next()) != "]":
            if token != ",":
                items.append(self._value(token, None))
        return items

    def _members(self) -> dict[str, Place]:
        members: dict[str, Place] = {}
        while (token := self._next()) != "}":
            if token == ",":
                continue
            line = self._line
            self._next()
            key = json.loads(token)
            if key in members:
                self._repeated.append((key, line))
            members[key] = self._value(self._next(), line)
        return members
