"""JSON Lines: one case a line, and perhaps a line `{"suite": {...}}` that says what holds for all of them.

`parse_lines` makes a list of the lines; a line that is not JSON becomes a problem of the document, so that it does not
hide those of the other lines. `join_lines` makes one document with `cases` out of that list, which is read like any
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json
from proctor.base.source import Pointer, parse_json


def parse_lines(path: Path, text: str) -> Document:
    """The value of each line that is not blank; raises if no line is JSON."""
    rows: list[Json] = []
    lines: list[int] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(parse_json(path, line))
            lines.append(number)
        except InvalidSuite as error:
            problems += [Problem(problem.message, path, number) for problem in error.problems]
    if problems and not rows:
        raise InvalidSuite(problems)
    document = Document(path, text, rows, lambda pointer: lines[int(pointer[0])] if pointer else None)
    document.problems.extend(problems)
    return document


def join_lines(document: Document) -> Document:
    """One document with `cases` out of many lines; problems keep the line where they stand in the file."""
    data: dict[str, Json] = {}
    key_lines: dict[str, int | None] = {}
    cases: list[Json] = []
    case_lines: list[int | None] = []
    problems: list[Problem] = []
    for index, row in enumerate(document.data):
        number = document.line((index,))
        if is_suite_line(row):
            problems += _repeated_keys(row["suite"], data, document.path, number)
            data |= {key: value for key, value in row["suite"].items() if key != "cases"}
            key_lines |= dict.fromkeys(row["suite"], number)
        else:
            cases.append(row)
            case_lines.append(number)

    def line_of(pointer: Pointer) -> int | None:
        first, second = (*pointer, None, None)[:2]
        if first == "cases":
            return case_lines[second] if isinstance(second, int) and second < len(case_lines) else None
        return key_lines.get(str(first))

    joined = Document(document.path, document.text, data | {"cases": cases}, line_of)
    joined.problems.extend([*document.problems, *problems])
    return joined


def is_suite_line(row: Json) -> bool:
    """Whether a line is about the whole suite and not a case; it need not be the first."""
    return isinstance(row, Mapping) and set(row) == {"suite"} and isinstance(row["suite"], Mapping)


def _repeated_keys(
    head: Mapping[str, Json], earlier: Mapping[str, Json], path: Path, number: int | None
) -> list[Problem]:
    """The keys of a head that stand on an earlier line already, and `cases`, which have lines of their own."""
    reasons = {key: "is given on an earlier line already" for key in head if key in earlier}
    if "cases" in head:
        reasons["cases"] = "stand on lines of their own"
    return [Problem(reason, path, number, f"suite.{key}") for key, reason in reasons.items()]
