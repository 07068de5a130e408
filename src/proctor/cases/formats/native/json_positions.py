"""Where the objects and lists of a JSON text begin and end, and how a member of one is replaced or added."""

from __future__ import annotations

import json
import re
from typing import Literal

from proctor.base.errors import ProctorError
from proctor.base.json_data import Json
from proctor.base.records import record


class CannotEdit(ProctorError):
    """The text cannot be edited where it stands; the message says why."""


@record
class Node:
    """A value in a text."""

    kind: Literal["object", "list", "plain", "alias"]
    start: int
    end: int
    """After its last character; what follows on the line, or between it and the next value, is not part of it."""
    flow: bool = True
    """Whether it stands between braces or brackets, and not on lines of its own."""
    members: tuple[Member, ...] = ()
    items: tuple[Node, ...] = ()

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)

    def inside(self, part: str | int) -> Node | None:
        if isinstance(part, int):
            return self.items[part] if part < len(self.items) else None
        found = self.member(part)
        return None if found is None else found.node


@record
class Member:
    """A key of an object, where the key begins, and its value."""

    name: str
    start: int
    node: Node


def newline_of(text: str) -> str:
    """How lines end in a text."""
    return "\r\n" if "\r\n" in text else "\n"


_TOKEN = re.compile(r'\s*+("[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|[^\s\[\]{}:,"]++)', re.DOTALL)


def json_node(text: str, *, lines: bool = False) -> Node:
    """The whole text; of JSON Lines, a list of what its lines hold. The text has been parsed before."""
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
    found = _TOKEN.match(text, at)
    if found is None:
        raise CannotEdit("the text ends too early")
    return found.group(1), found.start(1), found.end(1)


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
    """From where to where a member of an object is to be replaced, and by what; without one, it is put at the end."""
    found = node.member(name)
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
    if found is not None:
        return found.start, found.node.end, member
    if not node.members:
        return node.end - 1, node.end - 1, member
    end = node.members[-1].node.end
    return end, end, f",{newline_of(text)}{indent}{member}" if spread else f", {member}"


def _json_text(value: Json, text: str, indent: str | None = None) -> str:
    """In the characters of the file: a file of plain ASCII stays one."""
    written = json.dumps(value, ensure_ascii=text.isascii(), indent=indent)
    try:
        written.encode()
    except UnicodeEncodeError:  # half a pair of surrogates can only be written as an escape
        return json.dumps(value, indent=indent)
    return written
