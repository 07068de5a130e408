"""Edits cases in the text of a native file: what changes is written anew, and every other line stays as it is.

The text is edited by the positions of its values. The result is read again and must come to exactly the data that was
meant; where it does not, or where a value is shared by an alias, `CannotEdit` says so and nothing is written.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.base.errors import InvalidSuite
from proctor.base.fields import Document
from proctor.base.json_data import Json, plain
from proctor.base.source import YAML_ENDINGS, Pointer, parse, pointer_text
from proctor.cases.formats.native import LINES
from proctor.cases.formats.native.json_positions import CannotEdit, Node, json_member, json_node
from proctor.cases.formats.native.parts import parse_lines
from proctor.cases.formats.native.reader import read_case
from proctor.cases.formats.native.writer import write_case
from proctor.cases.formats.native.yaml_positions import yaml_member, yaml_node
from proctor.cases.suite import Case, Suite


def edit_cases(path: Path, text: str, suite: Suite, changed: Mapping[int, Case]) -> str:
    """The text of `suite` in which the cases at these indices expect and tell what the given ones do."""
    data = _parsed(path, text)
    cases = _cases_of(path, data)
    after = copy.deepcopy(data)
    pointers: list[Pointer] = []
    for index, case in changed.items():
        at = cases[index]
        raw = _at(after, at)
        pointers += [(*at, *inner) for inner in _apply(raw, suite, case)]
    edited = _edited(path, text, after, pointers)
    try:
        again = _parsed(path, edited)
    except InvalidSuite:
        again = None
    if json.dumps(again, sort_keys=True) != json.dumps(after, sort_keys=True):
        raise CannotEdit("one of the cases is written in a way that cannot be edited")
    return edited


def _parsed(path: Path, text: str) -> Json:
    return parse_lines(path, text) if path.suffix in LINES else parse(path, text)


def _cases_of(path: Path, data: Json) -> list[Pointer]:
    """Where each case stands in the data of the file."""
    if path.suffix in LINES:
        return [(n,) for n, row in enumerate(data) if not (set(row) == {"suite"} and isinstance(row["suite"], dict))]
    if isinstance(data, list):
        return [(index,) for index in range(len(data))]
    return [("cases", index) for index in range(len(data["cases"]))]


def _at(data: Json, pointer: Pointer) -> Any:
    for part in pointer:
        data = data[part]
    return data


def _apply(raw: dict[str, Json], suite: Suite, case: Case) -> list[Pointer]:
    """Change the data of one case to what it is to say, and tell where it was changed."""
    meant = plain(write_case(case, suite.evaluators))
    changed: list[Pointer] = []
    if "turns" in raw:
        turns = meant.get("turns", [meant])
        for index, (own, new) in enumerate(zip(raw["turns"], turns, strict=True)):
            changed += [("turns", index, *inner) for inner in _expect(own, new)]
    else:
        changed += _expect(raw, meant)
    for name, value in meant.get("metadata", {}).items():
        if (raw.get("metadata") or {}).get(name) != value:
            raw["metadata"] = {**(raw.get("metadata") or {}), name: value}
            changed.append(("metadata", name))
    if _read_again(raw, suite).evaluators != case.evaluators:
        for name in ("evaluators", "implied"):
            if raw.get(name) != meant.get(name) and name in meant:
                raw[name] = meant[name]
                changed.append((name,))
    return changed


def _expect(raw: dict[str, Json], meant: Mapping[str, Json]) -> list[Pointer]:
    """Only what is expected otherwise, where both are objects; else the expectation as a whole."""
    if "expected" not in meant or raw.get("expected") == meant["expected"]:
        return []
    new, old = meant["expected"], raw.get("expected")
    if not (isinstance(old, dict) and isinstance(new, dict)):
        raw["expected"] = new
        return [("expected",)]
    names = [name for name in ("output", "tools") if name in new and (name not in old or old[name] != new[name])]
    raw["expected"] = {**old, **{name: new[name] for name in names}}
    return [("expected", name) for name in names]


def _read_again(raw: Json, suite: Suite) -> Case:
    document = Document(suite.path or Path("suite.yaml"), "", raw, lambda pointer: None)
    return read_case(document, raw, (), suite.evaluators)


def _edited(path: Path, text: str, after: Json, pointers: list[Pointer]) -> str:
    """Every change as a piece of text, put in from the last to the first so that positions stay what they are."""
    is_yaml = path.suffix in YAML_ENDINGS
    root = yaml_node(text) if is_yaml else json_node(text, lines=path.suffix in LINES)
    pieces: dict[tuple[int, int], list[str]] = {}
    done: set[tuple[str | int, ...]] = set()
    for pointer in pointers:
        node, inner = _nearest_object(root, pointer)
        depth = len(pointer) - len(inner) + 1
        if tuple(pointer[:depth]) in done:
            continue
        done.add(tuple(pointer[:depth]))
        name, value = str(inner[0]), _at(after, pointer[:depth])
        write = yaml_member if is_yaml else json_member
        start, end, piece = write(text, node, name, value)
        pieces.setdefault((start, end), []).append(piece)
    for (start, end), parts in sorted(pieces.items(), reverse=True):
        text = f"{text[:start]}{''.join(parts)}{text[end:]}"
    return text


def _nearest_object(root: Node, pointer: Pointer) -> tuple[Node, Pointer]:
    """The innermost object on the way that the text has, and the rest of the way from there."""
    node, place = root, 0
    for index, part in enumerate(pointer):
        inner = node.inside(part)
        if inner is None or (isinstance(part, str) and inner.kind != "object" and inner.kind != "list"):
            break
        if inner.kind == "alias":
            raise CannotEdit(f"{pointer_text(pointer[: index + 1])} is an alias of what stands elsewhere")
        if index == len(pointer) - 1:
            break
        node, place = inner, index + 1
    if node.kind != "object" or pointer[place] == "cases":
        raise CannotEdit(f"{pointer_text(pointer)} cannot be found in the text")
    return node, pointer[place:]
