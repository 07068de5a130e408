"""Reads YAML (the 1.2 core schema) as plain data, with the line of each value.

No document can run code, crash the process or fill the memory. Tags outside the core schema are errors. So is nesting
that would overflow the parser's stack, and so are aliases that contain themselves or expand to too many values.
"""

from __future__ import annotations

import math
import re
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeAlias

import yaml

from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json
from proctor.base.positions import MAX_DEPTH, Lines, LineTree, Pointer, line_at

MAX_EXPANSION = 1_000_000
"""How many values a document may have after its aliases are expanded."""

MAX_MERGED_KEYS = 200_000
"""How many keys a document may add by merging (`<<`): a merge of merges doubles with every level."""

MAX_NUMBER_DIGITS = 4300
"""The most digits of a whole number that Python reads."""

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(f"{_CORE}{kind}" for kind in ("int", "float", "bool", "null"))
_DEEP_LINE = re.compile(r"^[ \t?:-]{400}", re.MULTILINE)


def parse_yaml(path: Path, text: str) -> tuple[Json, Lines]:
    """The data of a document and the lines of its values. Raises `InvalidSuite` with one problem if it is invalid.

    Both come from one tree of nodes. The lines are collected from it when the first one is needed.
    """
    try:
        _check_depth(text)
        node, data, aliases = _compose_and_construct(text)
        if "&" in text and "*" in text and _expanded_size(data, {}, set()) > MAX_EXPANSION:
            raise ValueError(f"its aliases (*) expand to more than {MAX_EXPANSION:,} values")
        return data, _YamlLines(node, aliases)
    except yaml.MarkedYAMLError as error:
        last_line = text.rstrip().count("\n")
        line = None if error.problem_mark is None else min(error.problem_mark.line, last_line) + 1
        message = _tab_problem(text, line) or ": ".join(part for part in (error.context, error.problem) if part)
        if (error.problem or "").startswith("mapping values are not allowed"):
            message += "; a value with a colon and a space in it needs quotes"
        problem = Problem(f"is not valid YAML: {message}", path, line)
    except RecursionError:
        problem = Problem("is nested too deeply to be read", path)
    except (yaml.YAMLError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        problem = Problem(f"is not valid YAML: {first}", path)
    raise InvalidSuite([problem])


def _tab_problem(text: str, line: int | None) -> str:
    """That a line is indented with a tab, which YAML forbids and its parser does not name; empty if it is not."""
    lines = text.splitlines()
    if line is None or line > len(lines):
        return ""
    # The parser stops at the tab, or at the line below it.
    near = [number for number in (line, line - 1) if number > 0 and "\t" in _indentation(lines[number - 1])]
    return f"line {near[0]} is indented with a tab; use spaces" if near else ""


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


_AliasLines: TypeAlias = dict[tuple[int, int], int]
"""The lines of list items that are aliases, by the node of the list and the index."""


def _compose_and_construct(text: str) -> tuple[Any, Json, _AliasLines]:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        aliases = _alias_lines(text, node) if node is not None and "&" in text and "*" in text else {}
        return node, None if node is None else loader.construct_document(node), aliases
    finally:
        loader.dispose()


def _alias_lines(text: str, root: Any) -> _AliasLines:
    """The lines of aliases in lists. An alias is the same node as its anchor, so the node has only the anchor's line;
    the events of the parser have both. Nodes and events are walked side by side, before merging rewrites the nodes.
    """
    lines: _AliasLines = {}
    events = (event for event in yaml.parse(text, Loader=_Loader) if isinstance(event, _VALUE_EVENTS))

    def walk(node: Any) -> int | None:
        event = next(events)
        if isinstance(event, yaml.AliasEvent):
            return None if event.start_mark is None else event.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                if (line := walk(item)) is not None:
                    lines[id(node), index] = line
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                walk(key)
                walk(value)
        return None

    walk(root)
    return lines


_VALUE_EVENTS = (yaml.AliasEvent, yaml.ScalarEvent, yaml.SequenceStartEvent, yaml.MappingStartEvent)
"""The events that begin a value."""


class _YamlLines:
    """The lines of the values below a node."""

    def __init__(self, node: Any, aliases: _AliasLines) -> None:
        self._node = node
        self._aliases = aliases

    def __call__(self, pointer: Pointer) -> int | None:
        return None if self._node is None else line_at(self._root, pointer)

    @cached_property
    def _root(self) -> LineTree:
        return self._node.start_mark.line + 1, _child_lines(self._node, self._aliases, {})


def compose_yaml(text: str) -> Any:
    """The nodes of a text, with the marks of where each begins and ends."""
    return yaml.compose(text, Loader=_Loader)


def _child_lines(node: Any, aliases: _AliasLines, cache: dict[int, Any]) -> Any:
    """The lines of the values in a node. `cache`, by node: aliases may lead to one node many times.

    The line of a member is that of its key, because that is where people look.
    """
    if id(node) in cache:
        return cache[id(node)]
    if isinstance(node, yaml.SequenceNode):
        items: list[LineTree] = []
        cache[id(node)] = items
        items.extend(
            (aliases.get((id(node), index), item.start_mark.line + 1), _child_lines(item, aliases, cache))
            for index, item in enumerate(node.value)
        )
        return items
    if isinstance(node, yaml.MappingNode):
        members: dict[str, LineTree] = {}
        cache[id(node)] = members
        for key, value in node.value:
            members[_key_text(key)] = (key.start_mark.line + 1, _child_lines(value, aliases, cache))
        return members
    return None


def _check_depth(text: str) -> None:
    """Raise `RecursionError` for deep nesting: the composer would overflow the stack of the process, and crash it."""
    if text.count("[") + text.count("{") < 400 and _DEEP_LINE.search(text) is None:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise RecursionError
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _expanded_size(value: Json, sizes: dict[int, int], above: set[int]) -> int:
    """How many values there are after aliases are expanded; raises `ValueError` if one contains itself."""
    if not isinstance(value, (dict, list)):
        return 1
    key = id(value)
    if key in above:
        raise ValueError("an alias (*) refers to a value that contains it")
    if key not in sizes:
        above.add(key)
        inside = value.values() if isinstance(value, dict) else value
        sizes[key] = 1 + sum(_expanded_size(item, sizes, above) for item in inside)
        above.discard(key)
    return sizes[key]


class _Loader(_SafeLoader):  # type: ignore[misc]
    """The safe loader, limited to the core schema and to `MAX_MERGED_KEYS`."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._checked_nodes: set[int] = set()
        self._merged_keys = 0

    def flatten_mapping(self, node: Any) -> None:
        """Check the keys of a node before merging, which rewrites the node."""
        if id(node) not in self._checked_nodes:
            self._checked_nodes.add(id(node))
            _make_keys_text(node)
        count = len(node.value)
        super().flatten_mapping(node)
        self._merged_keys += max(0, len(node.value) - count)
        if self._merged_keys > MAX_MERGED_KEYS:
            _raise_at(node, f"its merges (<<) add more than {MAX_MERGED_KEYS:,} keys")


def _add_core_schema(loader: Any) -> None:
    resolve = loader.add_implicit_resolver
    resolve(f"{_CORE}null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
    resolve(f"{_CORE}bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
    resolve(f"{_CORE}int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
    resolve(
        f"{_CORE}float",
        re.compile(r"^[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
        list("-+0123456789."),
    )
    resolve(f"{_CORE}merge", re.compile(r"^<<$"), ["<"])
    loader.add_constructor(f"{_CORE}int", _integer)
    loader.add_constructor(f"{_CORE}float", _float)
    loader.add_constructor(f"{_CORE}bool", _boolean)
    for kind in ("binary", "timestamp", "omap", "pairs", "set"):
        loader.add_constructor(f"{_CORE}{kind}", loader.construct_undefined)


def _raise_at(node: Any, reason: str) -> NoReturn:
    raise yaml.constructor.ConstructorError(None, None, reason, node.start_mark)


def _make_keys_text(node: Any) -> None:
    """Make keys text, as in JSON (to Python, `1` and `true` are the same key), and refuse duplicates."""
    names: set[str] = set()
    for key, _ in node.value:
        if key.tag == f"{_CORE}merge" or not isinstance(key, yaml.ScalarNode):
            continue
        name = _key_text(key)
        if name in names:
            _raise_at(key, f"duplicate key {name!r}")
        names.add(name)
        if key.tag in _SCALAR_TAGS:
            key.tag, key.value = f"{_CORE}str", name


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    if len(text) > MAX_NUMBER_DIGITS:
        _raise_at(node, f"a number of {len(text)} digits is too long")
    try:
        return int(text)
    except ValueError:
        _raise_at(node, f"{text!r} is not a whole number")


def _float(loader: Any, node: Any) -> float:
    text = loader.construct_scalar(node)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        _raise_at(node, f"{text[:40]} is too large for a number" if math.isinf(number) else f"{text!r} is not a number")
    return number


def _boolean(loader: Any, node: Any) -> bool:
    text = loader.construct_scalar(node).lower()
    if text not in ("true", "false"):
        _raise_at(node, f"{text!r} is neither true nor false")
    return bool(text == "true")


def _key_text(key: Any) -> str:
    if key.tag == f"{_CORE}null":
        return "null"
    return str(key.value).lower() if key.tag == f"{_CORE}bool" else str(key.value)


_add_core_schema(_Loader)
