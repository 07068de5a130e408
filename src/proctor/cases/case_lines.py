"""Where in its file each case stands, for reports that point a reader there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json
from proctor.base.source import Pointer, lines_of, parse, read_text

LISTS = ("cases", "test_cases", "eval_cases", "evalCases", "entries", "items")
"""The keys under which the formats keep their cases."""


def case_lines(path: Path) -> dict[str, int]:
    """The line of each case of a suite file, by id; empty where the file cannot be read or tells no lines."""
    from proctor.cases.formats.loading import load_file

    try:
        suites = load_file(path)
        if len(suites) != 1:
            return {}
        lines = _rows(path, read_text(path))
    except (InvalidSuite, OSError):
        return {}
    cases = suites[0].cases
    return {case.id: line for case, line in zip(cases, lines, strict=True)} if len(lines) == len(cases) else {}


def _rows(path: Path, text: str) -> Sequence[int]:
    """The lines at which the file's list of cases has its entries."""
    if path.suffix == ".csv":
        from proctor.cases.formats.table import parse_table

        return [line for line, _ in parse_table(path, text)]
    if path.suffix == ".jsonl":
        return [number for number, line in enumerate(text.split("\n"), 1) if line.strip() and not _is_head(path, line)]
    pointer, count = _list_of_cases(parse(path, text))
    place: Callable[[Pointer], int | None] = lines_of(path, text)
    found = [place((*pointer, number)) for number in range(count)]
    return [line for line in found if line is not None]


def _is_head(path: Path, line: str) -> bool:
    data = parse(path.with_suffix(".json"), line)
    return isinstance(data, dict) and set(data) == {"suite"}


def _list_of_cases(data: Json) -> tuple[Pointer, int]:
    if isinstance(data, list):
        return (), len(data)
    found = next((key for key in LISTS if isinstance(data, dict) and isinstance(data.get(key), list)), None)
    return ((), 0) if found is None else ((found,), len(data[found]))
