"""Read and write goldens and test cases as JSON, JSON Lines and CSV; CSV cells hold JSON where text is not enough."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from proctor.base.csv_text import csv_rows
from proctor.base.errors import InvalidSuite, Problem, StoreError, UsageError
from proctor.base.source import lines_of, read_error
from proctor.compat.deepeval.dataset_columns import read_columns
from proctor.compat.deepeval.goldens import ConversationalGolden, Golden
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase

STRUCTURED = ("additional_metadata", "metadata", "turns", "custom_column_key_values")
"""The columns that hold JSON objects or lists."""
TYPES = ("json", "jsonl", "csv")
Kinds = tuple[type[BaseModel], type[BaseModel]]
"""The model of a single-turn entry, and that of a conversation."""


def save(entries: Sequence[BaseModel], file_type: str, folder: Path, name: str | None) -> Path:
    """Write entries to a file, replacing an existing one, and return its path."""
    if file_type not in TYPES:
        raise UsageError(f"file_type must be one of {', '.join(TYPES)}, not {file_type!r}")
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
    out = io.StringIO()
    table = csv.DictWriter(out, columns, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writeheader()
    for row in rows:
        table.writerow({name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()})
    return out.getvalue()


def read(path: Path, file_type: str, parameters: Mapping[str, Any], *, golden: bool) -> list[Any]:
    """The entries of a file; raises `InvalidSuite` with all problems. `parameters` are those of DeepEval's readers."""
    kinds: Kinds = (Golden, ConversationalGolden) if golden else (LLMTestCase, ConversationalTestCase)
    fields = {name for kind in kinds for name in kind.model_fields} | {"additional_metadata"}
    columns = read_columns(parameters, fields)
    try:
        with path.open(encoding=columns.encoding, newline="") as file:
            text = file.read()
    except OSError as error:
        raise InvalidSuite([Problem(read_error(error), path)]) from None
    except ValueError:
        raise InvalidSuite([Problem(f"is not {columns.encoding.upper().removesuffix('-SIG')} text", path)]) from None
    except LookupError as error:
        raise InvalidSuite([Problem(f"cannot be read: {error}", path)]) from None
    problems: list[Problem] = []
    rows = _rows(text, file_type, path, problems)
    problems += [Problem(missing, path) for missing in columns.missing([row for _, row in rows])]
    entries = []
    for line, row in rows:
        if isinstance(row, Mapping):
            fields_of_row = columns.rename(row, fields)
            row = _cells(fields_of_row, columns.separators) if file_type == "csv" else fields_of_row
        entries.append(_entry(row, line, path, kinds, problems))
    if problems:
        raise InvalidSuite(problems)
    return entries


def _csv_rows(text: str, path: Path) -> list[tuple[int | None, Any]]:
    """The rows of a CSV file by column, each with its line; cells beyond the last column are under `None`."""
    rows = csv_rows(path, text, strict=False)
    names = rows[0][1] if rows else []
    by_column: list[tuple[int | None, Any]] = []
    for line, cells in rows[1:]:
        values: dict[Any, Any] = dict(zip_longest(names, cells[: len(names)]))
        by_column.append((line, values | ({None: cells[len(names) :]} if len(cells) > len(names) else {})))
    return by_column


def _rows(text: str, file_type: str, path: Path, problems: list[Problem]) -> list[tuple[int | None, Any]]:
    if file_type == "csv":
        return _csv_rows(text, path)
    lines = enumerate(text.split("\n"), 1) if file_type == "jsonl" else [(None, text)]
    rows: list[tuple[int | None, Any]] = []
    for line, part in lines:
        if not part.strip():
            continue
        try:
            data = json.loads(part)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"is not valid JSON: {error}", path, line))
            continue
        if file_type == "json" and not isinstance(data, list):
            problems.append(Problem("must be a list of objects", path))
        elif file_type == "json":
            line_of = lines_of(Path("goldens.json"), text)
            rows += [(line_of((index,)), row) for index, row in enumerate(data)]
        else:
            rows.append((line, data))
    return rows


def _cells(row: Mapping[str, Any], separators: Mapping[str, str]) -> dict[str, Any]:
    """The cells of a CSV row that are not empty, parsed."""
    return {
        name: _cell(name, text, separators.get(name))
        for name, text in row.items()
        if name is not None and text not in (None, "")
    }


def _cell(name: str, text: str, separator: str | None) -> Any:
    if separator is not None or name in STRUCTURED:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    return [part.strip() for part in text.split(separator) if part.strip()] if separator is not None else text


def _entry(row: Any, line: int | None, path: Path, kinds: Kinds, problems: list[Problem]) -> Any:
    if not isinstance(row, Mapping):
        problems.append(Problem("must be an object", path, line))
        return None
    kind = kinds[row.get("scenario") is not None or row.get("turns") is not None]
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False)
        problems += [Problem(str(item["msg"]), path, line, ".".join(map(str, item["loc"]))) for item in errors]
        return None
    except TypeError as error:
        problems.append(Problem(str(error), path, line))
        return None
