"""Reads CSV text into rows with their lines."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from proctor.base.errors import InvalidSuite, Problem


def csv_rows(path: Path, text: str, *, strict: bool = True) -> list[tuple[int, list[str]]]:
    """The rows that are not empty, each with the line in which it begins: a cell may have several lines.

    Without `strict`, a quotation mark that is out of place is taken literally. Raises `InvalidSuite` for text that is
    not CSV; `path` is the file that it names.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=strict)
    rows: list[tuple[int, list[str]]] = []
    limit = csv.field_size_limit(max(len(text), 1))  # a cell may have a whole document
    try:
        line = 1
        for row in reader:
            if row:
                rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InvalidSuite([Problem(f"is not valid CSV: {error}", path, reader.line_num)]) from None
    finally:
        csv.field_size_limit(limit)  # the limit holds for the whole process, so others must find theirs again
    return rows
