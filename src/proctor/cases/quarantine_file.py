"""Reads and writes `<suite>.quarantine.jsonl`: the quarantined cases of the suite next to it, one per line.

It works for suites in any format. A case in the native format may also have a `quarantine` key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from proctor.base.atomic_write import atomic_write
from proctor.base.documents import did_you_mean
from proctor.base.errors import InvalidSuite, Problem
from proctor.base.json_data import Json
from proctor.base.masking import mask
from proctor.base.source import parse_json, read_text
from proctor.cases.suite import Case, Quarantine, Suite

QUARANTINE_SUFFIX = ".quarantine.jsonl"
"""The suffix of the file with the quarantines of the suite next to it."""
KEYS = ("case", "reason", "until", "owner", "suite")


def quarantine_path(suite: Path) -> Path:
    """The file with the quarantines of a suite."""
    return suite.with_name(suite.stem + QUARANTINE_SUFFIX)


def is_date(text: Json) -> bool:
    """Whether a value is a date as YYYY-MM-DD."""
    try:
        return isinstance(text, str) and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_expired(quarantine: Quarantine, today: date | None = None) -> bool:
    """Whether its last day has passed."""
    return (today or date.today()).isoformat() > quarantine.until


def with_quarantines(suite: Suite) -> Suite:
    """The suite with the quarantines of its file; raises `InvalidSuite` with every problem in that file."""
    path = None if suite.path is None else quarantine_path(suite.path)
    if path is None or not path.is_file():
        return suite
    # `loading` adds the name of the file if two suites have one name.
    names = (suite.name, suite.name.removesuffix(f" ({suite.path.name})") if suite.path else suite.name)
    known = {case.id for case in suite.cases}
    entries = {
        case if case in known else mask(case): entry
        for (name, case), entry in _read_entries(path).items()
        if name in names or mask(name) in names
    }
    problems = [
        Problem(f"quarantines {case!r}, but {suite.name!r} has no such case{did_you_mean(case, known)}", path, line)
        for case, (line, _) in entries.items()
        if case not in known
    ]
    if problems:
        raise InvalidSuite(problems)
    quarantines = {case: quarantine for case, (_, quarantine) in entries.items()}
    return replace(suite, cases=tuple([_with_quarantine(case, quarantines.get(case.id)) for case in suite.cases]))


def _with_quarantine(case: Case, quarantine: Quarantine | None) -> Case:
    return case if quarantine is None else replace(case, quarantine=quarantine)


def read_quarantines(path: Path) -> dict[tuple[str, str], Quarantine]:
    """Quarantines by suite and case; the last line about a case wins."""
    return {address: quarantine for address, (_, quarantine) in _read_entries(path).items()}


def _read_entries(path: Path) -> dict[tuple[str, str], tuple[int, Quarantine]]:
    """By suite and case: the number of the line, and the quarantine."""
    entries: dict[tuple[str, str], tuple[int, Quarantine]] = {}
    problems: list[Problem] = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(path, line)
        except InvalidSuite as error:
            problems += [Problem(problem.message, path, number) for problem in error.problems]
            continue
        if reason := _line_problem(row):
            problems.append(Problem(reason, path, number))
        else:
            quarantine = Quarantine(row["reason"], row["until"], row.get("owner"))
            entries[row["suite"], row["case"]] = number, quarantine
    if problems:
        raise InvalidSuite(problems)
    return entries


def write_quarantines(path: Path, quarantines: Mapping[tuple[str, str], Quarantine]) -> None:
    """Write one line per case, sorted; without quarantines, remove the file."""
    if not quarantines:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as draft:
        draft.write_text("".join(_lines(sorted(quarantines.items()))), encoding="utf-8", newline="\n")


def _lines(items: Sequence[tuple[tuple[str, str], Quarantine]]) -> Iterable[str]:
    for (suite, case), quarantine in items:
        row = {"suite": suite, "case": case, "reason": quarantine.reason, "until": quarantine.until}
        yield json.dumps(row if quarantine.owner is None else {**row, "owner": quarantine.owner}) + "\n"


def _line_problem(row: Json) -> str:
    """What is wrong with a line; empty if nothing is."""
    if not isinstance(row, dict):
        return "must be an object with suite, case, reason and until"
    if unknown := [key for key in row if key not in KEYS]:
        return f"{unknown[0]!r} is not a known key{did_you_mean(unknown[0], KEYS)}"
    for key in ("suite", "case", "reason"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            return f"{key} must be non-empty text"
    if not is_date(row.get("until")):
        return f"until must be a date as YYYY-MM-DD, not {row.get('until')!r}"
    return "" if isinstance(row.get("owner"), str | None) else "owner must be text"
