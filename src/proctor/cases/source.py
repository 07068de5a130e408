"""Text in, plain data out, and, only when something is wrong, the line where it stands.

JSON and YAML are parsed at full speed; positions are looked up by a second pass over the text when a problem has to be
reported. YAML is read as its 1.2 core schema: `no` and `2024-01-01` are text, and a key given twice is a mistake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
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


def line_of(path: Path, text: str, pointer: Pointer) -> int | None:
    """The line of the value at `pointer`, or of its nearest parent that can be found."""
    try:
        if path.suffix in YAML_ENDINGS:
            return _yaml_line(text, pointer)
        return _JsonLines(text).find(pointer)
    except Exception:
        return None


def pointer_text(pointer: Pointer) -> str:
    """`("evalCases", 3, "conversation")` as people write it: `evalCases[3].conversation`."""
    text = ""
    for part in pointer:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


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
        return json.loads(text, parse_constant=_reject_constant, object_pairs_hook=_unique_pairs)
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
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))
    _LOADER.append(Loader)
    return Loader


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


def _yaml_line(text: str, pointer: Pointer) -> int | None:
    import yaml

    node: Any = yaml.compose(text, Loader=_yaml_loader())
    line: int | None = None
    for part in pointer:
        if isinstance(part, int) and isinstance(node, yaml.SequenceNode) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line
            continue
        pair = next((p for p in node.value if p[0].value == part), None) if isinstance(node, yaml.MappingNode) else None
        if pair is None:
            break
        line, node = pair[0].start_mark.line, pair[1]
    return (node.start_mark.line if line is None else line) + 1


class _JsonLines:
    """Walks JSON text to one place and counts the lines on the way; trusts that the text parsed before."""

    _TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+)', re.DOTALL)

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._start = 0

    def find(self, pointer: Pointer) -> int:
        found = self._descend(list(pointer), 0)
        return self._text.count("\n", 0, found) + 1

    def _next(self) -> str:
        match = self._TOKEN.match(self._text, self._at)
        if match is None:
            raise ValueError("end of text")
        self._at, self._start = match.end(), match.start(1)
        return match.group(1)

    def _skip(self) -> None:
        depth = 0
        while True:
            token = self._next()
            depth += (token in "[{") - (token in "]}")
            if depth == 0:
                return

    def _descend(self, pointer: list[str | int], fallback: int) -> int:
        opening = self._next()
        here = self._start
        if not pointer:
            return fallback or here
        if (opening == "{") != isinstance(pointer[0], str) or opening not in "[{":
            return fallback or here
        index = 0
        while True:
            mark = self._at
            token = self._next()
            if token in "]}":
                return fallback or here
            if token == ",":
                continue
            place = self._start
            if opening == "{":
                key: str | int = json.loads(token)
                self._next()
            else:
                key, index = index, index + 1
                self._at = mark
            if key == pointer[0]:
                return self._descend(pointer[1:], place)
            self._skip()
