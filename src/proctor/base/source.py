"""Reads a JSON or YAML file into plain data, and finds the line of each value.

The JSON parser of the standard library has no positions, and one that does is many times slower. So JSON is parsed at
full speed, and lines are found by a second pass over the text when a problem has to be reported. The YAML parser has
them from its only pass. In both formats, a duplicate key is an error.
"""

from __future__ import annotations

import codecs
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
from proctor.base.positions import LineTree, line_at
from proctor.base.positions import Pointer as Pointer
from proctor.base.positions import pointer_text as pointer_text

YAML_SUFFIXES = (".yaml", ".yml")

MAX_FILE_BYTES = 1_000_000_000
"""Size of the largest file that is read; a hundred thousand cases take a tenth of this."""


def ending(path: Path) -> str:
    """The suffix that says what a file is, in lower case: some systems and people write `SUITE.YAML`."""
    return path.suffix.lower()


def read_text(path: Path) -> str:
    """A file's text. Raises `InvalidSuite` with the path if the file cannot be read."""
    try:
        check_readable(path)
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InvalidSuite([Problem("is not UTF-8 text but UTF-16; save it as UTF-8", path, 1)]) from None
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidSuite([Problem(f"is not UTF-8 text ({error.reason} at byte {error.start})", path, line)]) from None
    except OSError as error:
        raise InvalidSuite([Problem(read_error(error), path)]) from None
    except ValueError as error:
        raise InvalidSuite([Problem(f"cannot be read: {error}", path)]) from None


def read_error(error: OSError) -> str:
    """Why a file cannot be read, as the rest of a sentence that begins with its name."""
    return "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror or error}"


def check_readable(path: Path) -> None:
    """Raise `ValueError` for a pipe or a device, which may never end, and for a file that is too large."""
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise ValueError("it is a pipe or a device, not a file")
    if status.st_size > MAX_FILE_BYTES:
        raise ValueError(f"it has {status.st_size / 1e6:,.0f} MB; the limit is {MAX_FILE_BYTES / 1e6:,.0f} MB")


def parse(path: Path, text: str) -> Json:
    """The data in a JSON or YAML document."""
    return parse_with_lines(path, text)[0]


def parse_with_lines(path: Path, text: str) -> tuple[Json, Lines]:
    """The data in a JSON or YAML document, and a function that returns the line of each value in it."""
    if ending(path) in YAML_SUFFIXES:
        from proctor.base.yaml_source import parse_yaml  # PyYAML is heavy, and many suites are JSON

        data, lines = parse_yaml(path, text)
    else:
        data, lines = parse_json(path, text), _JsonLines(text)
    if _is_too_deep(data):
        raise InvalidSuite([Problem("is nested too deeply to be read", path)])
    return data, lines


def lines_of(path: Path, text: str) -> Lines:
    """A function that returns the line of each value in a document, or None for all if it cannot be parsed."""
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
    """Something that the parser accepts and the standard does not; `token` is its text in the document."""

    def __init__(self, message: str, token: str) -> None:
        self.token = token
        super().__init__(message)


class _DuplicateKey(ValueError):
    """A key that occurs twice in one object."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"duplicate key {key!r}")


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
        keys: set[str] = set()
        for key, _ in pairs:
            if key in keys:
                raise _DuplicateKey(key)
            keys.add(key)
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
    except _DuplicateKey as error:
        problem = Problem(f"is not valid JSON: {error}", path, _JsonLineReader(text).line_of_duplicate(error.key))
    except ValueError:
        problem = Problem("has a number with too many digits to be read", path, _line_of_token(text, r"-?[0-9]{1000,}"))
    raise InvalidSuite([problem])


# Possessive quantifiers: otherwise the engine remembers a long string character by character, at 100 times its size.
_TOKEN = re.compile(r'\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s\[\]{}:,"]++)', re.DOTALL)


def _line_of_token(text: str, pattern: str) -> int | None:
    """The line of the first token that matches the pattern."""
    for match in _TOKEN.finditer(text):
        if re.fullmatch(pattern, match.group(1)):
            return text.count("\n", 0, match.start(1)) + 1
    return None


class _JsonLines:
    """The lines of the values in a JSON text, which is read again when the first line is needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self, pointer: Pointer) -> int | None:
        return None if self._root is None else line_at(self._root, pointer)

    @cached_property
    def _root(self) -> LineTree | None:
        with suppress(ValueError, RecursionError):
            return _JsonLineReader(self._text).read()
        return None


class _JsonLineReader:
    """Reads a JSON text that the parser has accepted, for the line of each value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1
        self._last_start = 0
        self._duplicates: list[tuple[str, int]] = []

    def read(self) -> LineTree:
        return self._value(self._next(), None)

    def line_of_duplicate(self, key: str) -> int | None:
        """The line where a key occurs again in an object; the text after it may be invalid."""
        with suppress(ValueError, RecursionError):
            self.read()
        return next((line for duplicate, line in self._duplicates if duplicate == key), None)

    def _next(self) -> str:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise ValueError("end of text")
        start = match.start(1)
        self._line += self._text.count("\n", self._last_start, start)
        self._position = match.end()
        self._last_start = start
        return match.group(1)

    def _value(self, opening: str, line: int | None) -> LineTree:
        line = self._line if line is None else line
        if opening == "[":
            return line, self._items()
        if opening == "{":
            return line, self._members()
        return line, None

    def _items(self) -> list[LineTree]:
        items: list[LineTree] = []
        while (token := self._next()) != "]":
            if token != ",":
                items.append(self._value(token, None))
        return items

    def _members(self) -> dict[str, LineTree]:
        members: dict[str, LineTree] = {}
        while (token := self._next()) != "}":
            if token == ",":
                continue
            line = self._line
            self._next()
            key = json.loads(token)
            if key in members:
                self._duplicates.append((key, line))
            members[key] = self._value(self._next(), line)
        return members
