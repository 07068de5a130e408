"""Text in, plain data out, and, only when something is wrong, the line where it stands.

JSON and YAML are parsed at full speed; positions are looked up by a second pass over the text when a problem has to be
reported. YAML is read as its 1.2 core schema: `no` and `2024-01-01` are text, and a key given twice is a mistake.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from proctor.errors import InvalidSuite, Problem
from proctor.plain import Json

Pointer: TypeAlias = Sequence[str | int]
"""The way from the root of a document to a value in it."""

YAML_ENDINGS = (".yaml", ".yml")


def read_text(path: Path) -> str:
    """A file's text; an unreadable one is a problem that names it."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSuite([Problem(f"is not UTF-8 text ({error.reason} at byte {error.start})", path)]) from None
    except OSError as error:
        raise InvalidSuite([Problem(f"cannot be read: {error.strerror or error}", path)]) from None


def parse(path: Path, text: str) -> Json:
    """The data in a JSON or YAML document."""
    return _parse_yaml(path, text) if path.suffix in YAML_ENDINGS else _parse_json(path, text)


Lines: TypeAlias = Callable[[Pointer], int | None]
"""Tells the line of the value at a pointer, or of its nearest parent that can be found."""


def lines_of(path: Path, text: str) -> Lines:
    """Positions in one document; the text is gone through once, however many are asked for."""
    try:
        tree = _yaml_tree(text) if path.suffix in YAML_ENDINGS else _JsonTree(text).root
    except Exception:
        return lambda pointer: None
    return lambda pointer: _line_in(tree, pointer)


def pointer_text(pointer: Pointer) -> str:
    """`("evalCases", 3, "conversation")` as people write it: `evalCases[3].conversation`."""
    text = ""
    for part in pointer:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is too large for a number")
    return number


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key!r} is given twice in one object")
            seen.add(key)
    return data


def _parse_json(path: Path, text: str) -> Json:
    try:
        return json.loads(text, parse_constant=_reject_constant, parse_float=_finite, object_pairs_hook=_unique_pairs)
    except json.JSONDecodeError as error:
        problem = Problem(f"is not valid JSON: {error.msg} (column {error.colno})", path, error.lineno)
    except RecursionError:
        problem = Problem("is nested too deeply to be read", path)
    except ValueError as error:
        problem = Problem(f"is not valid JSON: {error}", path, _line_of_text(text, str(error)))
    raise InvalidSuite([problem])


def _line_of_text(text: str, message: str) -> int | None:
    """Where the thing an error message quotes stands last: the second of two equal keys, the constant."""
    found = re.search(r"'([^']+)'|^(\S+)", message)
    word = (found.group(1) or found.group(2)) if found else ""
    at = text.rfind(word)
    return text.count("\n", 0, at) + 1 if word and at >= 0 else None


def _parse_yaml(path: Path, text: str) -> Json:
    import yaml

    try:
        return yaml.load(text, Loader=_yaml_loader())  # noqa: S506  a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        problem = Problem(f"is not valid YAML: {error.problem or error.context}", path, line)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        problem = Problem(f"is not valid YAML: {first}", path)
    raise InvalidSuite([problem])


_LOADER: list[Any] = []


def _yaml_loader() -> Any:
    """The safe loader narrowed to YAML 1.2's core schema; made once, since PyYAML is imported late."""
    if _LOADER:
        return _LOADER[0]
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                if key.tag == "tag:yaml.org,2002:merge" or not isinstance(key, yaml.ScalarNode):
                    continue
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key.value!r} is given twice", key.start_mark
                    )
                seen.add(key.value)
            mapping = super().construct_mapping(node, deep)
            if any(not isinstance(key, str) for key in mapping):
                return {_key_text(key): value for key, value in mapping.items()}
            return mapping

    resolve = Loader.add_implicit_resolver
    resolve("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
    resolve("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
    resolve("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
    resolve(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
        list("-+0123456789."),
    )
    resolve("tag:yaml.org,2002:merge", re.compile(r"^<<$"), ["<"])
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: _finite(node.value))
    for kind in ("binary", "timestamp", "omap", "pairs", "set"):
        Loader.add_constructor(f"tag:yaml.org,2002:{kind}", Loader.construct_undefined)
    _LOADER.append(Loader)
    return Loader


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


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


def _yaml_tree(text: str) -> Place:
    import yaml

    return _yaml_place(yaml.compose(text, Loader=_yaml_loader()), None, set())


def _yaml_place(node: Any, line: int | None, above: set[int]) -> Place:
    """A key's line is where its value is told to be: that is where people look."""
    import yaml

    here = node.start_mark.line + 1 if line is None else line
    if id(node) in above:
        return here, None
    within = above | {id(node)}
    if isinstance(node, yaml.SequenceNode):
        return here, [_yaml_place(item, None, within) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return here, {str(key.value): _yaml_place(value, key.start_mark.line + 1, within) for key, value in node.value}
    return here, None


class _JsonTree:
    """Where everything in a JSON text stands; trusts that the text parsed before."""

    _TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+)', re.DOTALL)

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0
        self.root = self._value(self._next(), None)

    def _next(self) -> str:
        match = self._TOKEN.match(self._text, self._at)
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
            members[json.loads(token)] = self._value(self._next(), line)
        return members
