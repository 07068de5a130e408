"""Edits cases in the text of a native file, and leaves every other line unchanged.

Parsing the file and writing it again would be simpler, but would lose comments and the author's formatting. So each
change becomes a piece of text that replaces one value. The result is parsed again and compared with the intended data;
if they differ, nothing is written (`CannotEdit`).


`json_node` and `yaml_node` find where the objects and lists of a text begin and end.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite, ProctorError
from proctor.base.json_data import Json, to_json
from proctor.base.source import YAML_SUFFIXES, Pointer, ending, parse, pointer_text
from proctor.base.yaml_source import compose_yaml
from proctor.cases.formats import CASES_KEYS, JSON_LINES, KEYWORDS_KEY
from proctor.cases.formats.native.json_lines import is_suite_line, parse_lines
from proctor.cases.formats.native.reader import read_case
from proctor.cases.formats.native.writer import write_case, yaml_dumper
from proctor.cases.suite import Case, Suite


class CannotEdit(ProctorError):
    """The text cannot be edited in place; the message says why."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it is in a text."""

    kind: Literal["object", "list", "plain", "alias"]
    start: int
    end: int
    """The position after its last character; a comment or a comma after it is not part of it."""
    flow: bool = True
    """Whether it is written in braces or brackets, and not as indented lines."""
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)

    def inside(self, part: str | int) -> Node | None:
        if isinstance(part, int):
            return self.items[part] if part < len(self.items) else None
        member = self.member(part)
        return None if member is None else member.node


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object, the position of the key, and its value."""

    name: str
    start: int
    node: Node


def newline_of(text: str) -> str:
    """The line ending of a text."""
    return "\r\n" if "\r\n" in text else "\n"


_TOKEN = re.compile(r'\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s\[\]{}:,"]++)', re.DOTALL)


def json_node(text: str, *, lines: bool = False) -> Node:
    """The root of a valid JSON text; for JSON Lines, a list of the values of its lines."""
    if not lines:
        return _value(text, 0)[0]
    rows: list[Node] = []
    at = 0
    for line in text.split("\n"):
        if line.strip():
            rows.append(_value(text, at)[0])
        at += len(line) + 1
    return Node("list", 0, len(text), items=tuple(rows))


def _token(text: str, at: int) -> tuple[str, int, int]:
    match = _TOKEN.match(text, at)
    if match is None:
        raise CannotEdit("the text ends too early")
    return match.group(1), match.start(1), match.end(1)


def _value(text: str, at: int) -> tuple[Node, int]:
    """The value that begins at a position, and the position after it."""
    token, start, end = _token(text, at)
    if token not in "[{":
        return Node("plain", start, end), end
    members: list[Member] = []
    items: list[Node] = []
    at, closing = end, "]" if token == "[" else "}"
    while (peeked := _token(text, at))[0] != closing:
        if peeked[0] == ",":
            at = peeked[2]
        elif token == "[":
            node, at = _value(text, at)
            items.append(node)
        else:
            _, _, colon = _token(text, peeked[2])
            node, at = _value(text, colon)
            members.append(Member(json.loads(peeked[0]), peeked[1], node))
    kind: Literal["object", "list"] = "list" if token == "[" else "object"
    return Node(kind, start, peeked[2], members=tuple(members), items=tuple(items)), peeked[2]


def json_member(text: str, node: Node, name: str, value: Json) -> tuple[int, int, str]:
    """Start, end and text of the edit that sets a key of an object; a new key is added at the end."""
    existing = node.member(name)
    first = node.members[0].start if node.members else node.end
    line = text.rfind("\n", 0, first) + 1
    indent = text[line:first]
    spread = bool(node.members) and "\n" in text[node.start : first] and not indent.strip()
    key, compact = json.dumps(name), _json_text(value, text)
    if spread and len(compact) > 80:
        closing = re.search(r"[ \t]*$", text[: node.end - 1])
        unit = indent[len(closing.group()) if closing else 0 :] or "  "
        compact = _json_text(value, text, unit).replace("\n", f"{newline_of(text)}{indent}")
    member = f"{key}: {compact}"
    if existing is not None:
        return existing.start, existing.node.end, member
    if not node.members:
        return node.end - 1, node.end - 1, member
    end = node.members[-1].node.end
    return end, end, f",{newline_of(text)}{indent}{member}" if spread else f", {member}"


def _json_text(value: Json, text: str, indent: str | None = None) -> str:
    """JSON text with the characters of the file: an ASCII file stays ASCII."""
    written = json.dumps(value, ensure_ascii=text.isascii(), indent=indent)
    try:
        written.encode()
    except UnicodeEncodeError:  # a lone surrogate can only be written as an escape
        return json.dumps(value, indent=indent)
    return written


LINE_WIDTH = 120

_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")
_REST_OF_LINE = re.compile(r"([ \t]*(?:#[^\r\n]*)?)(?=\r?\n|\r?$)")


def yaml_node(text: str) -> Node:
    """The root of a valid YAML text."""
    return _node(text, compose_yaml(text), 0, set())


def _node(text: str, node: Any, after: int, seen: set[yaml.Node]) -> Node:
    """The value of a node that begins after a position; a node that was seen before is an alias."""
    if node in seen:
        match = _ALIAS.search(text, after)
        if match is None:
            raise CannotEdit("an alias cannot be found in the text")
        return Node("alias", match.start(), match.end())
    seen.add(node)
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.ScalarNode):
        return Node("plain", start, _end_of_scalar(text, node))
    flow = bool(node.flow_style)
    if isinstance(node, yaml.SequenceNode):
        items: list[Node] = []
        for item in node.value:
            items.append(_node(text, item, items[-1].end if items else start, seen))
        return Node("list", start, end if flow or not items else items[-1].end, flow, items=tuple(items))
    members: list[Member] = []
    for key, value in node.value:
        inner = _node(text, value, key.end_mark.index, seen)
        members.append(Member(str(key.value), key.start_mark.index, inner))
    last = end if flow or not members else members[-1].node.end
    return Node("object", start, last, flow, members=tuple(members))


def _end_of_scalar(text: str, node: Any) -> int:
    """The end of a scalar. A block ends with its last line of text, unless it keeps empty lines (`+`)."""
    start, end = node.start_mark.index, node.end_mark.index
    if node.style not in ("|", ">") or "+" in text[start : text.find("\n", start) + 1]:
        return int(end)
    return int(start) + len(text[start:end].rstrip())


def yaml_member(text: str, node: Node, name: str, value: Json) -> tuple[int, int, str]:
    """Start, end and text of the edit that sets a key of a mapping; a new `expected` is added after `input`."""
    existing = node.member(name)
    if node.flow:
        return _flow_member(text, node, existing, name, value)
    if existing is not None:
        start, end = existing.start, existing.node.end
        rest = _rest_of_line(text, end)
        written = _lines(text, node, name, value, width=None if rest.strip() else LINE_WIDTH)
        written[0] += rest.rstrip() if rest.strip() else ""
        return start, end + len(rest), newline_of(text).join(written)
    last = (name == "expected" and node.member("input")) or node.members[-1]
    lines = _lines(text, node, name, value)
    column = " " * _column(text, node.members[0].start)
    end = last.node.end
    if text[end - 1 : end] == "\n":
        return end, end, column + newline_of(text).join(lines) + newline_of(text)
    end += len(_rest_of_line(text, end))
    return end, end, newline_of(text) + column + newline_of(text).join(lines)


def _flow_member(text: str, node: Node, existing: Member | None, name: str, value: Json) -> tuple[int, int, str]:
    member = _dump_yaml({name: value}, flow=True).strip()[1:-1]
    if existing is not None:
        return existing.start, existing.node.end, member
    if not node.members:
        return node.end - 1, node.end - 1, member
    last = (name == "expected" and node.member("input")) or node.members[-1]
    return last.node.end, last.node.end, f", {member}"


def _rest_of_line(text: str, end: int) -> str:
    match = _REST_OF_LINE.match(text, end)
    if match is None:
        line = text.count("\n", 0, end) + 1
        raise CannotEdit(f"line {line} has more text after a value")
    return match.group(1)


def _lines(text: str, node: Node, name: str, value: Json, width: int | None = LINE_WIDTH) -> list[str]:
    """The key and its value as lines, indented like its siblings, except for the first line."""
    column = " " * _column(text, node.members[0].start)
    first, *more = _dump_yaml({name: value}, width=width).rstrip("\n").split("\n")
    return [first, *(f"{column}{line}" if line else "" for line in more)]


def _column(text: str, at: int) -> int:
    return at - (text.rfind("\n", 0, at) + 1)


def _dump_yaml(data: Json, *, flow: bool = False, width: int | None = None) -> str:
    """YAML text with lists indented below their key, as people write them."""

    class Dumper(yaml_dumper()):  # type: ignore[misc]
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:
            return True

    return str(
        yaml.dump(
            data,
            Dumper=Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=width or 1_000_000_000,
            default_flow_style=flow,
        )
    )


def edit_cases(path: Path, text: str, suite: Suite, changed: Mapping[int, Case]) -> str:
    """The text of `suite` with the expectations and metadata of the cases at these indices changed."""
    data = _parse(path, text)
    cases = _case_pointers(path, data)
    after = copy.deepcopy(data)
    pointers: list[Pointer] = []
    for index, case in changed.items():
        at = cases[index]
        raw = _value_at(after, at)
        pointers += [(*at, *inner) for inner in _update_case(raw, suite, case)]
    edited = _apply_edits(path, text, after, pointers)
    try:
        again = _parse(path, edited)
    except InvalidSuite:
        again = None
    if json.dumps(again, sort_keys=True) != json.dumps(after, sort_keys=True):
        raise CannotEdit("one of the cases is written in a way that cannot be edited")
    return edited


def _parse(path: Path, text: str) -> Json:
    return parse_lines(path, text).data if ending(path) in JSON_LINES else parse(path, text)


def _case_pointers(path: Path, data: Json) -> list[Pointer]:
    """The pointer of each case in the data of the file."""
    if ending(path) in JSON_LINES:
        return [(number,) for number, row in enumerate(data) if not is_suite_line(row)]
    if isinstance(data, list):
        return [(index,) for index in range(len(data))]
    key = next(name for name in CASES_KEYS if name in data)
    return [(key, index) for index in range(len(data[key]))]


def _value_at(data: Json, pointer: Pointer) -> Any:
    for part in pointer:
        data = data[part]
    return data


def _update_case(raw: dict[str, Json], suite: Suite, case: Case) -> list[Pointer]:
    """Change the data of one case to match `case`, and return the pointers of what changed."""
    new_data = to_json(write_case(case, suite.evaluators))
    changed: list[Pointer] = []
    if "turns" in raw:
        turns = new_data.get("turns", [new_data])
        for index, (own, new) in enumerate(zip(raw["turns"], turns, strict=True)):
            changed += [("turns", index, *inner) for inner in _update_expected(own, new)]
    else:
        changed += _update_expected(raw, new_data)
    for name, value in new_data.get("metadata", {}).items():
        if (raw.get("metadata") or {}).get(name) != value:
            raw["metadata"] = {**(raw.get("metadata") or {}), name: value}
            changed.append(("metadata", name))
    if _read_again(raw, suite).evaluators != case.evaluators:
        for name in ("evaluators", "implied"):
            if raw.get(name) != new_data.get(name) and name in new_data:
                raw[name] = new_data[name]
                changed.append((name,))
    return changed


def _update_expected(raw: dict[str, Json], new_data: Mapping[str, Json]) -> list[Pointer]:
    """Change only the keys that differ if both expectations are objects, or else the whole expectation."""
    if "expected" not in new_data or raw.get("expected") == new_data["expected"]:
        return []
    new, old = new_data["expected"], raw.get("expected")
    if KEYWORDS_KEY in raw and isinstance(new, dict):
        new = {name: value for name, value in new.items() if name != "contains"}  # they stay in their own key
    if not (isinstance(old, dict) and isinstance(new, dict)):
        raw["expected"] = new
        return [("expected",)]
    names = [name for name in ("output", "tools") if name in new and (name not in old or old[name] != new[name])]
    raw["expected"] = {**old, **{name: new[name] for name in names}}
    return [("expected", name) for name in names]


def _read_again(raw: Json, suite: Suite) -> Case:
    document = Document(suite.path or Path("suite.yaml"), "", raw, lambda pointer: None)
    return read_case(document, raw, (), suite.evaluators)


def _apply_edits(path: Path, text: str, after: Json, pointers: list[Pointer]) -> str:
    """The text with the values at `pointers` replaced, from last to first, so that earlier positions stay valid."""
    is_yaml = ending(path) in YAML_SUFFIXES
    root = yaml_node(text) if is_yaml else json_node(text, lines=ending(path) in JSON_LINES)
    pieces: dict[tuple[int, int], list[str]] = {}
    done: set[tuple[str | int, ...]] = set()
    for pointer in pointers:
        node, inner = _nearest_object(root, pointer)
        depth = len(pointer) - len(inner) + 1
        if tuple(pointer[:depth]) in done:
            continue
        done.add(tuple(pointer[:depth]))
        name, value = str(inner[0]), _value_at(after, pointer[:depth])
        write = yaml_member if is_yaml else json_member
        start, end, piece = write(text, node, name, value)
        pieces.setdefault((start, end), []).append(piece)
    for (start, end), parts in sorted(pieces.items(), reverse=True):
        text = f"{text[:start]}{''.join(parts)}{text[end:]}"
    return text


def _nearest_object(root: Node, pointer: Pointer) -> tuple[Node, Pointer]:
    """The innermost object on the way to a value that is in the text, and the rest of the pointer."""
    node, place = root, 0
    for index, part in enumerate(pointer):
        inner = node.inside(part)
        if inner is None or (isinstance(part, str) and inner.kind != "object" and inner.kind != "list"):
            break
        if inner.kind == "alias":
            raise CannotEdit(f"{pointer_text(pointer[: index + 1])} is an alias (*) of a value elsewhere")
        if index == len(pointer) - 1:
            break
        node, place = inner, index + 1
    if node.kind != "object" or pointer[place] in CASES_KEYS:
        raise CannotEdit(f"{pointer_text(pointer)} cannot be found in the text")
    return node, pointer[place:]
