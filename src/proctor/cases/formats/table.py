"""CSV in Proctor's own vocabulary: one case a row, for people who keep their cases in a spreadsheet.

Columns: `id`, `input`, `expected`, `contains` and `contains_all` (several separated by `|`), `tools` (several separated
by `;`), `description`, `tags` (`;`), and any `metadata.NAME`, `state.NAME` or `input.NAME`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from proctor.cases.fields import Document, nearest
from proctor.cases.formats import native
from proctor.cases.formats.model import Written
from proctor.cases.model import UNSET, Case, Suite
from proctor.errors import InvalidSuite, Problem
from proctor.plain import Json, show

NAME = "csv"
COLUMNS = ("id", "input", "expected", "contains", "contains_all", "tools", "description", "tags")
FAMILIES = ("metadata.", "state.", "input.")


def recognises(path: Path, data: Json) -> bool:
    return path.suffix == ".csv"


def parse_table(path: Path, text: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file, each with its line; the first row names the columns."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        line = 1
        for row in reader:
            if row:
                rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InvalidSuite([Problem(f"is not valid CSV: {error}", path, reader.line_num)]) from None
    if not rows:
        raise InvalidSuite([Problem("is empty; give a row of column names and at least one case", path)])
    header = [name.strip() for name in rows[0][1]]
    _check_shape(path, header, rows)
    return [(line, dict(zip(header, row, strict=True))) for line, row in rows[1:]]


def read(document: Document) -> list[Suite]:
    rows: list[tuple[int, dict[str, str]]] = document.data
    if not rows:
        raise InvalidSuite([Problem("has column names but no cases", document.path, 1)])
    cases = [_case(row) for _, row in rows]
    inner = Document(document.path, document.text, {"cases": cases})
    try:
        suites = native.read(inner)
    except InvalidSuite as error:
        raise InvalidSuite(_relocate(problem, rows) for problem in error.problems) from None
    return [_as_table(suite) for suite in suites]


def write(suites: Sequence[Suite]) -> Written:
    losses: list[str] = []
    table = [_row(case, losses) for suite in suites for case in suite.cases]
    losses += [
        f"suite {suite.name!r}: its agent and evaluators cannot be expressed in CSV"
        for suite in suites
        if suite.agent is not None or suite.evaluators
    ]
    present = {name for row in table for name in row}
    used = [*(name for name in COLUMNS if name in present), *sorted(present.difference(COLUMNS))]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, used, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return Written(out.getvalue(), tuple(losses))


def _check_shape(path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> None:
    problems = [
        Problem(f"column {name!r} is not known{nearest(name, COLUMNS)}", path, 1)
        for name in header
        if name not in COLUMNS and not (name.startswith(FAMILIES) and not name.endswith("."))
    ]
    problems += [Problem(f"column {n!r} is given twice", path, 1) for n in dict.fromkeys(header) if header.count(n) > 1]
    if "input" not in header and not any(name.startswith("input.") for name in header):
        problems.append(Problem("has no column 'input'", path, 1))
    for line, row in rows[1:]:
        if len(row) != len(header):
            problems.append(Problem(f"has {len(row)} cells where {len(header)} columns are named", path, line))
    if problems:
        raise InvalidSuite(problems)


def _case(row: Mapping[str, str]) -> dict[str, Json]:
    case: dict[str, Json] = {name: row[name] for name in ("id", "description") if row.get(name)}
    family = {prefix: _family(row, prefix) for prefix in FAMILIES}
    case["input"] = family["input."] or row.get("input", "")
    expected: dict[str, Json] = {}
    if row.get("expected"):
        expected["output"] = row["expected"]
    words = {"any": _split(row.get("contains"), "|"), "all": _split(row.get("contains_all"), "|")}
    if any(words.values()):
        expected["contains"] = words
    if row.get("tools"):
        expected["tools"] = _split(row["tools"], ";")
    if expected:
        case["expected"] = expected
    if row.get("tags"):
        case["tags"] = _split(row["tags"], ";")
    return case | {name: family[f"{name}."] for name in ("metadata", "state") if family[f"{name}."]}


def _family(row: Mapping[str, str], prefix: str) -> dict[str, Json]:
    return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix) and value}


def _split(text: str | None, separator: str) -> list[str]:
    return [part.strip() for part in (text or "").split(separator) if part.strip()]


def _relocate(problem: Problem, rows: list[tuple[int, dict[str, str]]]) -> Problem:
    """From the place in the data to the line in the table."""
    index = problem.where.removeprefix("cases[").partition("]")[0]
    if not index.isdigit() or int(index) >= len(rows):
        return problem
    place = problem.where.partition("]")[2].lstrip(".")
    return Problem(problem.message, problem.path, rows[int(index)][0], place or "the row")


def _as_table(suite: Suite) -> Suite:
    from dataclasses import replace

    return replace(suite, format=NAME)


def _row(case: Case, losses: list[str]) -> dict[str, str]:
    turn = case.turns[0]
    expected = turn.expected
    row = {"id": case.id, "description": case.description, "tags": ";".join(case.tags)}
    if isinstance(turn.input, dict):
        row |= {f"input.{name}": show(value) for name, value in turn.input.items()}
    else:
        row["input"] = show(turn.input)
    if expected.output is not UNSET:
        row["expected"] = show(expected.output)
    if expected.keywords is not None:
        row["contains"] = "|".join(expected.keywords.any_of)
        row["contains_all"] = "|".join(expected.keywords.all_of)
    if expected.tool_calls:
        row["tools"] = ";".join(call.name for call in expected.tool_calls for _ in range(call.count))
    row |= {f"metadata.{name}": show(value) for name, value in case.metadata.items()}
    row |= {f"state.{name}": show(value) for name, value in case.state.items()}
    losses += _not_in_a_row(case)
    return {name: value for name, value in row.items() if value}


def _not_in_a_row(case: Case) -> list[str]:
    turn, missing = case.turns[0], []
    if len(case.turns) > 1:
        missing.append(f"turns 2 to {len(case.turns)}")
    if turn.expected.tool_calls is not None and any(call.arguments for call in turn.expected.tool_calls):
        missing.append("arguments of expected tool calls")
    if turn.expected.output is not UNSET and not isinstance(turn.expected.output, str):
        missing.append("the type of the expected output")
    given = {
        "evaluators": case.evaluators,
        "inputs": case.inputs,
        "final_state": case.final_state,
        "retrieval_context": turn.retrieval_context,
        "files": turn.attachments,
        "repeat": case.repeat,
        "timeout": case.timeout,
        "skip": case.skip,
    }
    missing += [name for name, value in given.items() if value]
    return [f"case {case.id!r}: {thing} cannot be expressed in CSV" for thing in missing]
