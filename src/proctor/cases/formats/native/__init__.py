"""Proctor's own format: YAML or JSON with `cases`, or JSON Lines with one case a line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.base.fields import Document
from proctor.base.json_data import Json
from proctor.cases.formats.format_spec import JSON_AND_YAML, Declaration, Written, mentions_key
from proctor.cases.suite import Case, Suite

NAME = "native"
LINES = (".jsonl", ".ndjson")


def recognises(path: Path, data: Json) -> bool:
    """A `cases` list, or objects with an input or turns, in a bare list or one a line."""
    if isinstance(data, Mapping):
        return "cases" in data
    marks = ("input", "turns", "suite") if path.suffix in LINES else ("input", "turns")
    return isinstance(data, list) and any(isinstance(row, Mapping) and any(k in row for k in marks) for row in data)


def read(document: Document) -> list[Suite]:
    from proctor.cases.formats.native.reader import read_document

    return read_document(document)


def write(suites: Sequence[Suite], ending: str = "") -> Written:
    from proctor.cases.formats.native.writer import write_text

    return write_text(suites, ending or ".yaml")


def _edit(path: Path, text: str, suite: Suite, changed: Mapping[int, Case]) -> str:
    from proctor.cases.formats.native.editing import edit_cases

    return edit_cases(path, text, suite, changed)


def _parse_lines(path: Path, text: str) -> Json:
    from proctor.cases.formats.native.parts import parse_lines

    return parse_lines(path, text)


def _resembles(path: Path, text: str) -> bool:
    if path.suffix in LINES:
        return re.search(r'"(?:input|turns|suite)"\s*:', text) is not None
    return path.suffix in JSON_AND_YAML and mentions_key(text, "cases")


def _read_lines(path: Path) -> list[Suite] | None:
    from proctor.cases.formats.native.json_lines import read_lines

    return read_lines(path)


DECLARED = Declaration(
    endings=(*JSON_AND_YAML, *LINES),
    own_keys=frozenset({"cases"}),
    file_names=("*.proctor.*",),
    companions=("suite.schema.json",),
    parsers=dict.fromkeys(LINES, _parse_lines),
    resembles=_resembles,
    agent_hint="add `agent: app.py:agent`, or ",
    edit=_edit,
    line_readers=dict.fromkeys(LINES, _read_lines),
)
