"""Where the mappings and lists of a YAML text begin and end, and how a member of one is replaced or added."""

from __future__ import annotations

import re
from typing import Any

from proctor.base.json_data import Json
from proctor.base.yaml_source import compose_yaml
from proctor.cases.formats.native.json_positions import CannotEdit, Member, Node, newline_of
from proctor.cases.formats.native.writer import yaml_dumper

LINE_WIDTH = 120

_ALIAS = re.compile(r"\*[^\s,\[\]{}]+")
_REST_OF_LINE = re.compile(r"([ \t]*(?:#[^\r\n]*)?)(?=\r?\n|\r?$)")


def yaml_node(text: str) -> Node:
    """The whole text, which has been parsed before."""
    return _node(text, compose_yaml(text), 0, set())


def _node(text: str, node: Any, after: int, seen: set[int]) -> Node:
    """A node that stands somewhere after a position; one that was met before is an alias of it."""
    import yaml

    if id(node) in seen:
        found = _ALIAS.search(text, after)
        if found is None:
            raise CannotEdit("an alias cannot be found in the text")
        return Node("alias", found.start(), found.end())
    seen.add(id(node))
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
    """A block of lines ends with its last line of text, unless it says that empty ones belong to it."""
    start, end = node.start_mark.index, node.end_mark.index
    if node.style not in ("|", ">") or "+" in text[start : text.find("\n", start) + 1]:
        return int(end)
    return int(start) + len(text[start:end].rstrip())


def yaml_member(text: str, node: Node, name: str, value: Json) -> tuple[int, int, str]:
    """From where to where a member of a mapping is to be replaced, and by what; a new one stands after `input`."""
    found = node.member(name)
    if node.flow:
        return _flow_member(text, node, found, name, value)
    if found is not None:
        start, end = found.start, found.node.end
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


def _flow_member(text: str, node: Node, found: Member | None, name: str, value: Json) -> tuple[int, int, str]:
    member = _dumped({name: value}, flow=True).strip()[1:-1]
    if found is not None:
        return found.start, found.node.end, member
    if not node.members:
        return node.end - 1, node.end - 1, member
    last = (name == "expected" and node.member("input")) or node.members[-1]
    return last.node.end, last.node.end, f", {member}"


def _rest_of_line(text: str, end: int) -> str:
    found = _REST_OF_LINE.match(text, end)
    if found is None:
        line = text.count("\n", 0, end) + 1
        raise CannotEdit(f"line {line} goes on where a value ends")
    return found.group(1)


def _lines(text: str, node: Node, name: str, value: Json, width: int | None = LINE_WIDTH) -> list[str]:
    """The member on lines of its own, indented like its siblings but for the first."""
    column = " " * _column(text, node.members[0].start)
    first, *more = _dumped({name: value}, width=width).rstrip("\n").split("\n")
    return [first, *(f"{column}{line}" if line else "" for line in more)]


def _column(text: str, at: int) -> int:
    return at - (text.rfind("\n", 0, at) + 1)


def _dumped(data: Json, *, flow: bool = False, width: int | None = None) -> str:
    """Lists stand one level inside their key, as people write them."""
    import yaml

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
