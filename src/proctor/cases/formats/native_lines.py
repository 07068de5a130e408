"""Brings the shorter shapes of the native format, a bare list and JSON Lines, to the one with `cases`.

Positions follow: a problem is reported on the line of the file where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor.cases.fields import Document
from proctor.cases.source import Pointer, lines_of, parse_json
from proctor.errors import InvalidSuite, Problem
from proctor.plain import Json

LINES = (".jsonl", ".ndjson")


def parse_lines(path: Path, text: str) -> list[Json]:
    """The objects of a JSON Lines file; every bad line is a problem of its own."""
    rows: list[Json] = []
    problems: list[Problem] = []
    for number, line in _filled(text):
        try:
            rows.append(parse_json(path, line))
        except InvalidSuite as error:
            problems.extend(Problem(p.message, path, number) for p in error.problems)
    if problems:
        raise InvalidSuite(problems)
    return rows


def whole(document: Document) -> Document:
    """The document as one object with `cases`, whichever shape it has."""
    if document.path.suffix in LINES:
        return _join(document)
    if isinstance(document.data, list):
        places = lines_of(document.path, document.text)
        return Document(document.path, document.text, {"cases": document.data}, lambda pointer: places(pointer[1:]))
    return document


def _join(document: Document) -> Document:
    """One object out of many lines: a line that holds nothing but `suite` says what is true of all cases."""
    head: dict[str, Json] = {}
    head_lines: dict[str, int] = {}
    cases: list[Json] = []
    case_lines: list[int] = []
    problems: list[Problem] = []
    for (number, _), row in zip(_filled(document.text), document.data, strict=True):
        if not (isinstance(row, Mapping) and set(row) == {"suite"} and isinstance(row["suite"], Mapping)):
            cases.append(row)
            case_lines.append(number)
            continue
        for key, value in row["suite"].items():
            if key == "cases" or key in head:
                reason = "stand on lines of their own" if key == "cases" else "is given on an earlier line already"
                problems.append(Problem(reason, document.path, number, f"suite.{key}"))
            head[key] = value
            head_lines[key] = number

    def line(pointer: Pointer) -> int | None:
        first, second = (*pointer, None, None)[:2]
        if first == "cases":
            return case_lines[second] if isinstance(second, int) and second < len(case_lines) else None
        return head_lines.get(str(first))

    joined = Document(document.path, document.text, head | {"cases": cases}, line)
    joined.problems.extend(problems)
    return joined


def _filled(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
