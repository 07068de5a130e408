"""Text in, plain data out, and, only when something is wrong, the line where it stands.

JSON and YAML are parsed at full speed; positions are looked up by a second pass over the text when a problem has to be
reported. In both, a key given twice is a mistake.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json

Pointer: TypeAlias = Sequence[str | int]
"""The way from the root of a document to a value in it."""

YAML_ENDINGS = (".yaml", ".yml")

LARGEST_FILE = 1_000_000_000
"""Bytes of a file that is read whole; a hundred thousand cases are a tenth of this."""

DEEPEST = 200
"""Levels of nesting a document may have: more is no real data, and could exhaust the stack of what walks through it."""


def read_text(path: Path) -> str:
    """A file's text; an unreadable one is a problem that names it."""
    try:
        refuse_endless(path)
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSuite([Problem(f"is not UTF-8 text ({error.reason} at byte {error.start})", path)]) from None
    except OSError as error:
        raise InvalidSuite([Problem(f"cannot be read: {error.strerror or error}", path)]) from None
    except ValueError as error:
        raise InvalidSuite([Problem(f"cannot be read: {error}", path)]) from None


def refuse_endless(path: Path) -> None:
    """A pipe or a device may wait or go on forever, and a file can be larger than the memory."""
    about = path.stat()
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
        raise ValueError("it is not a file, but a pipe or a device")
    if about.st_size > LARGEST_FILE:
        raise ValueError(f"it has {about.st_size / 1e6:,.0f} MB; {LARGEST_FILE / 1e6:,.0f} MB are the most")


def parse(path: Path, text: str) -> Json:
    """The data in a JSON or YAML document."""
    if path.suffix in YAML_ENDINGS:
        from proctor.base.yaml_source import parse_yaml

        data = parse_yaml(path, text)
    else:
        data = parse_json(path, text)
    if _is_too_deep(data):
        raise InvalidSuite([Problem("is nested too deeply to be read", path)])
    return data


Lines: TypeAlias = Callable[[Pointer], int | None]
"""Tells the line of the value at a pointer, or of its nearest parent that can be found."""


def lines_of(path: Path, text: str) -> Lines:
    """Positions in one document; the text is gone through once, however many are asked for."""
    try:
        if path.suffix in YAML_ENDINGS:
            from proctor.base.yaml_source import yaml_places

            tree = yaml_places(text)
        else:
            tree = _JsonPlaces(text).read()
    except Exception:
        return lambda pointer: None
    return lambda pointer: _line_in(tree, pointer)


def pointer_text(pointer: Pointer) -> str:
    """`("evalCases", 3, "conversation")` as people write it: `evalCases[3].conversation`."""
    text = ""
    for part in pointer:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _is_too_deep(data: Json) -> bool:
    level = [data]
    for _ in range(DEEPEST + 1):
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


Place: TypeAlias = "tuple[int, dict[str, Place] | list[Place] | None]"
"""A line, and the places of what is inside the value there."""


def _line_in(place: Place, pointer: Pointer) -> int:
    for part in pointer:
        inside = place[1]
        if isinstance(inside, dict) and isinstance(part, str) and part in inside:
            place = inside[part]
        elif isinstance(inside, list) and isinstance(part, int) and part < len(inside):
            place = inside[part]
        else:
            break
    return place[0]


# Possessive: a long text would otherwise be remembered character by character, at a hundred times its size.
_TOKEN = re.compile(r'\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s\[\]{}:,"]++)', re.DOTALL)


def _line_of_token(text: str, pattern: str) -> int | None:
    """The line of the first token that is neither text nor punctuation and fits."""
    for found in _TOKEN.finditer(text):
        if re.fullmatch(pattern, found.group(1)):
            return text.count("\n", 0, found.start(1)) + 1
    return None


class _JsonPlaces:
    """Where everything in a JSON text stands; trusts that the text parsed before."""

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
