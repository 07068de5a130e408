"""Reads and writes CSV suites: one case per row, for cases from a spreadsheet.

Columns: `id`, `input`, `expected`, `contains` and `contains_all` (several separated by `|`), `tools` (several separated
by `;`), `description`, `tags` (`;`), and any `metadata.NAME`, `state.NAME` or `input.NAME`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from proctor.base.csv_text import csv_rows
from proctor.base.documents import Document, did_you_mean
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import UNSET, Json, to_text
from proctor.cases.formats.columns import COLUMNS, PREFIXES, SEPARATORS, separator_of
from proctor.cases.formats.native.reader import read_case, read_document
from proctor.cases.formats.native.writer import SuiteText, replace_lone_surrogates
from proctor.cases.ids import UniqueIds
from proctor.cases.suite import Case, Criteria, Settings, Suite, complete_evaluators

CASE_FIELD_NAMES = {
    "id": "its id",
    "description": "description",
    "tags": "tags",
    "inputs": "inputs",
    "metadata": "metadata",
    "state": "state",
    "final_state": "final_state",
    "repeat": "repeat",
    "timeout": "timeout",
    "skip": "skip",
    "mocks": "mocks",
    "scenario": "scenario",
    "extra": "keys of another format",
}
TURN_FIELD_NAMES = {
    "input": "the type of the input",
    "retrieval_context": "retrieval_context",
    "files": "files",
    "metadata": "metadata of the turn",
    "extra": "keys of another format in the turn",
}
EXPECTED_FIELD_NAMES = {
    "output": "the type of the expected output",
    "contains": "the exact expected words",
    "tools": "the exact expected tool calls",
    "context": "context",
}
"""Fields, and how messages call them if CSV cannot express them."""


def parse(path: Path, text: str) -> Document:
    """The rows of a CSV file, each with its line; the first row names the columns."""
    rows = csv_rows(path, text)
    if not rows:
        raise InvalidSuite([Problem("is empty; add a row of column names and at least one case", path)])
    header = [name.strip() for name in rows[0][1]]
    _check_shape(path, header, rows)
    lines = [line for line, _ in rows[1:]]
    data = [dict(zip(header, row, strict=True)) for _, row in rows[1:]]
    return Document(path, text, data, lambda pointer: lines[int(pointer[0])] if pointer else None)


def read(document: Document) -> list[Suite]:
    """The one suite of a table."""
    rows: list[dict[str, str]] = document.data
    if not rows:
        raise InvalidSuite([Problem("has column names but no cases", document.path, 1)])
    if clashes := [index for index, row in enumerate(rows) if row.get("input") and _values_under(row, "input.")]:
        reason = "fills 'input' and a column of 'input.' as well; keep one of them"
        raise InvalidSuite(Problem(reason, document.path, document.line((index,)), "the row") for index in clashes)
    cases = Document(document.path, document.text, [_case(row) for row in rows], document.line)
    try:
        return [replace(suite, format="csv") for suite in read_document(cases)]
    except InvalidSuite as error:
        raise InvalidSuite(map(_in_row, error.problems), error.partial_suites) from None


def _in_row(problem: Problem) -> Problem:
    """The problem without `cases[3].`, which a table does not have; its line says where it is."""
    return replace(problem, where=problem.where.partition("]")[2].lstrip(".") or "the row")


def write(suites: Sequence[Suite]) -> SuiteText:
    """One row per case, and a list of everything that a row cannot express."""
    losses = [loss for suite in suites for loss in _losses_of_suite(suite)]
    table: list[dict[str, str]] = []
    ids = UniqueIds()
    for suite in suites:
        for case in suite.cases:
            row = _row(replace(case, id=ids.claim(case.id)))
            losses += _losses_of_case(suite, case, row)
            table.append(row)
    present = {name for row in table for name in row}
    if not any(name.startswith("input.") for name in present):
        present.add("input")
    used = [*(name for name in COLUMNS if name in present), *sorted(present.difference(COLUMNS))]
    out = io.StringIO(newline="")
    breaks = any("\r" in value for row in table for value in (*row, *row.values()))
    writer = csv.DictWriter(
        out, used, restval="", lineterminator="\n", quoting=csv.QUOTE_ALL if breaks else csv.QUOTE_MINIMAL
    )
    writer.writeheader()
    writer.writerows(table)
    return SuiteText(replace_lone_surrogates(out.getvalue(), losses), tuple(losses))


def _check_shape(path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> None:
    if len(header) == 1 and (mark := separator_of(header[0])) != "," and mark in header[0]:
        reason = f"has its columns separated by {SEPARATORS[mark]}; separate them by commas"
        raise InvalidSuite([Problem(reason, path, 1)])
    problems = [
        Problem(f"column {name!r} is not known{did_you_mean(name, COLUMNS)}", path, 1)
        for name in header
        if name not in COLUMNS and not (name.startswith(PREFIXES) and not name.endswith("."))
    ]
    problems += [Problem(f"column {n!r} is given twice", path, 1) for n in dict.fromkeys(header) if header.count(n) > 1]
    if "input" not in header and not any(name.startswith("input.") for name in header):
        problems.append(Problem("has no column 'input'", path, 1))
    for line, row in rows[1:]:
        if len(row) != len(header):
            problems.append(Problem(f"has {len(row)} cells, but there are {len(header)} columns", path, line))
    if problems:
        raise InvalidSuite(problems)


def _case(row: Mapping[str, str]) -> dict[str, Json]:
    case: dict[str, Json] = {name: row[name] for name in ("id", "description") if row.get(name)}
    family = {prefix: _values_under(row, prefix) for prefix in PREFIXES}
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


def _values_under(row: Mapping[str, str], prefix: str) -> dict[str, Json]:
    return {name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix) and value}


def _split(text: str | None, separator: str) -> list[str]:
    return [part.strip() for part in (text or "").split(separator) if part.strip()]


def _row(case: Case) -> dict[str, str]:
    turn = case.turns[0]
    expected = turn.expected
    row = {"id": case.id, "description": case.description, "tags": ";".join(case.tags)}
    if isinstance(turn.input, dict):
        row |= _columns("input.", turn.input)
    else:
        row["input"] = to_text(turn.input)
    if expected.output is not UNSET:
        row["expected"] = to_text(expected.output)
    if expected.contains is not None:
        row["contains"] = "|".join(expected.contains.any)
        row["contains_all"] = "|".join(expected.contains.all)
    if expected.tools:
        row["tools"] = ";".join(call.name for call in expected.tools for _ in range(call.count))
    row |= _columns("metadata.", case.metadata) | _columns("state.", case.state)
    return {name: value for name, value in row.items() if value}


def _columns(family: str, values: Mapping[str, Json]) -> dict[str, str]:
    return {f"{family}{name}": to_text(value) for name, value in values.items() if name and name == name.strip()}


def _later_turns(count: int) -> str:
    """The turns after the first, in words."""
    return "" if count < 2 else "turn 2" if count == 2 else f"turns 2 to {count}"


def _losses_of_case(suite: Suite, case: Case, row: Mapping[str, str]) -> list[str]:
    """Everything in a case that is different after its row is read back."""
    again = read_case(Document(Path("row"), "", {}, lambda pointer: None), _case(row), ())
    turn, turn_again = case.turns[0], again.turns[0]
    missing = [later_turns] if (later_turns := _later_turns(len(case.turns))) else []
    missing += [noun for name, noun in CASE_FIELD_NAMES.items() if getattr(case, name) != getattr(again, name)]
    missing += [noun for name, noun in TURN_FIELD_NAMES.items() if getattr(turn, name) != getattr(turn_again, name)]
    missing += [
        noun
        for name, noun in EXPECTED_FIELD_NAMES.items()
        if getattr(turn.expected, name) != getattr(turn_again.expected, name)
    ]
    if suite.evaluators_of(case, turn) != complete_evaluators(again, ()):
        missing.append("evaluators")
    return [f"case {case.id!r}: {thing} cannot be expressed in CSV" for thing in missing]


def _losses_of_suite(suite: Suite) -> list[str]:
    values = {
        "description": suite.description,
        "agent": suite.agent,
        "arms": suite.arms,
        "criteria": suite.criteria != Criteria(),
        "settings": suite.settings != Settings(),
        "judge": suite.judge is not None,
        "extra": suite.extra,
    }
    return [f"suite {suite.name!r}: {name} cannot be expressed in CSV" for name, value in values.items() if value]
