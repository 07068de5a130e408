"""JSON Lines: one case per line, and optionally a line `{"suite": {...}}` with the keys of the suite.

`parse_lines` returns a document with a list of the lines; a line that is not JSON becomes one of its problems, so that
it does not hide the problems of other lines. `join_lines` turns that list into an object with `cases`, which is read
like any other suite.
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
    """The lines as one object with `cases`; problems have the line of the file."""
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
    """Whether a line has keys of the suite and is not a case; it need not be the first line."""
    return isinstance(row, Mapping) and set(row) == {"suite"} and isinstance(row["suite"], Mapping)


def _repeated_keys(
    head: Mapping[str, Json], earlier: Mapping[str, Json], path: Path, number: int | None
) -> list[Problem]:
    """Problems for keys of a suite line that an earlier line has too, and for `cases`, which have their own lines."""
    reasons = {key: "is already on an earlier line" for key in head if key in earlier}
    if "cases" in head:
        reasons["cases"] = "must be on their own lines"
    return [Problem(reason, path, number, f"suite.{key}") for key, reason in reasons.items()]
