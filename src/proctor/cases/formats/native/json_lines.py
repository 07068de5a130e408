"""JSON Lines: one case a line, and perhaps a line `{"suite": {...}}` that says what holds for all of them.

The lines become one document with `cases`, which is read like any other. A line that is not JSON must not hide the
problems of the other lines, so `parse_lines` puts None in its place and `join_lines` says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json
from proctor.base.source import Pointer, parse_json

LINES = (".jsonl", ".ndjson")


def parse_lines(path: Path, text: str) -> list[Json]:
    """The value of each line that is not blank, None for one that is not JSON; raises if no line is JSON."""
    rows: list[Json] = []
    problems: list[Problem] = []
    for number, line in _filled(text):
        try:
            rows.append(parse_json(path, line))
        except InvalidSuite as error:
            rows.append(None)
            problems += _on_line(error, path, number)
    if problems and not any(row is not None for row in rows):
        raise InvalidSuite(problems)
    return rows


def join_lines(document: Document) -> Document:
    """One document with `cases` out of many lines; problems keep the line where they stand in the file."""
    data: dict[str, Json] = {}
    key_lines: dict[str, int] = {}
    cases: list[Json] = []
    case_lines: list[int] = []
    problems: list[Problem] = []
    for (number, line), row in zip(_filled(document.text), document.data, strict=True):
        if is_head(row):
            problems += _repeated(row["suite"], data, document.path, number)
            data |= {key: value for key, value in row["suite"].items() if key != "cases"}
            key_lines |= dict.fromkeys(row["suite"], number)
        elif row is None and (unreadable := _problems_of(document.path, line, number)):
            problems += unreadable
        else:
            cases.append(row)
            case_lines.append(number)

    def line_of(pointer: Pointer) -> int | None:
        first, second = (*pointer, None, None)[:2]
        if first == "cases":
            return case_lines[second] if isinstance(second, int) and second < len(case_lines) else None
        return key_lines.get(str(first))

    joined = Document(document.path, document.text, data | {"cases": cases}, line_of)
    joined.problems.extend(problems)
    return joined


def is_head(row: Json) -> bool:
    """Whether a line is about the whole suite and not a case; it need not be the first."""
    return isinstance(row, Mapping) and set(row) == {"suite"} and isinstance(row["suite"], Mapping)


def _repeated(head: Mapping[str, Json], earlier: Mapping[str, Json], path: Path, number: int) -> list[Problem]:
    """The keys of a head that stand on an earlier line already, and `cases`, which have lines of their own."""
    reasons = {key: "is given on an earlier line already" for key in head if key in earlier}
    if "cases" in head:
        reasons["cases"] = "stand on lines of their own"
    return [Problem(reason, path, number, f"suite.{key}") for key, reason in reasons.items()]


def _problems_of(path: Path, line: str, number: int) -> list[Problem]:
    try:
        parse_json(path, line)
    except InvalidSuite as error:
        return _on_line(error, path, number)
    return []


def _on_line(error: InvalidSuite, path: Path, number: int) -> list[Problem]:
    return [Problem(problem.message, path, number) for problem in error.problems]


def _filled(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
