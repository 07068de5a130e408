"""Goldens and test cases as files: JSON, JSON Lines, and CSV, whose cells hold JSON where they hold more than text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from proctor.compat.deepeval.dataset import ConversationalGolden, Golden
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase
from proctor.errors import InvalidSuite, Problem, StoreError, UsageError

SEPARATED = {"context": "|", "retrieval_context": "|", "tools_called": ";", "expected_tools": ";", "tags": ";"}
"""Columns with several entries: a JSON list, or, as DeepEval writes them, texts with a sign between them."""
STRUCTURED = ("additional_metadata", "metadata", "turns")
TYPES = ("json", "jsonl", "csv")


def save(entries: Sequence[BaseModel], file_type: str, folder: Path, name: str | None) -> Path:
    """Write entries to a new file, or over one of the same name."""
    if file_type not in TYPES:
        raise UsageError(f"a dataset is saved as {', '.join(TYPES)}, not {file_type!r}")
    rows = [entry.model_dump(mode="json", exclude_none=True) for entry in entries]
    path = folder / f"{name or 'dataset'}.{file_type}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(rows, file_type), encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def _text(rows: Sequence[Mapping[str, Any]], file_type: str) -> str:
    if file_type == "json":
        return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    if file_type == "jsonl":
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    written = io.StringIO()
    table = csv.DictWriter(written, columns, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writeheader()
    for row in rows:
        table.writerow({name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()})
    return written.getvalue()


def read(path: Path, file_type: str, *, golden: bool) -> list[Any]:
    """The entries of a file; raises `InvalidSuite` with everything that is wrong with it."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except OSError as error:
        raise InvalidSuite([Problem(f"cannot be read: {error.strerror or error}", path)]) from None
    except ValueError:
        raise InvalidSuite([Problem("is not UTF-8 text", path)]) from None
    problems: list[Problem] = []
    found = [_entry(row, line, path, golden, problems) for line, row in _rows(text, file_type, path, problems)]
    if problems:
        raise InvalidSuite(problems)
    return found


def _rows(text: str, file_type: str, path: Path, problems: list[Problem]) -> list[tuple[int | None, Any]]:
    if file_type == "csv":
        csv.field_size_limit(2**31 - 1)
        try:
            return [(line, _cells(row)) for line, row in enumerate(csv.DictReader(io.StringIO(text, newline="")), 2)]
        except csv.Error as error:
            problems.append(Problem(f"is not CSV: {error}", path))
            return []
    lines = enumerate(text.split("\n"), 1) if file_type == "jsonl" else [(None, text)]
    rows: list[tuple[int | None, Any]] = []
    for line, part in lines:
        if not part.strip():
            continue
        try:
            data = json.loads(part)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"is not JSON: {error}", path, line))
            continue
        if file_type == "json" and not isinstance(data, list):
            problems.append(Problem("must be a list of objects", path))
        else:
            rows += [(None, row) for row in data] if file_type == "json" else [(line, data)]
    return rows


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """An empty cell says nothing."""
    return {name: _cell(name, text) for name, text in row.items() if name is not None and text not in (None, "")}


def _cell(name: str, text: str) -> Any:
    if name in SEPARATED or name in STRUCTURED:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    return [part.strip() for part in text.split(SEPARATED[name]) if part.strip()] if name in SEPARATED else text


def _entry(row: Any, line: int | None, path: Path, golden: bool, problems: list[Problem]) -> Any:
    if not isinstance(row, Mapping):
        problems.append(Problem("must be an object", path, line))
        return None
    conversation = "scenario" in row or "turns" in row
    kind: type[BaseModel]
    if golden:
        kind = ConversationalGolden if conversation else Golden
    else:
        kind = ConversationalTestCase if conversation else LLMTestCase
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        problems += [Problem(str(item["msg"]), path, line, ".".join(map(str, item["loc"]))) for item in found]
        return None
