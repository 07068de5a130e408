"""The cells of Excel files as CSV: all sheets, one of them, or a range."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from proctor.cases.file_text import MOST_BYTES, FileText, Limits, UnreadableFile

Area = tuple[int, int, int, int]
"""Left, top, right, bottom."""
ALL: Area = (1, 1, 16384, 1048576)


def read_excel(content: bytes, limits: Limits) -> FileText:
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(content), data_only=True)
    name, area = limits.options.get("sheet"), limits.options.get("range")
    sheets = _sheets(book, name, first=area is not None)
    cells = ALL if area is None else _area(str(area))
    texts = [(sheet.title, _table(sheet, cells, limits)) for sheet in sheets]
    told = [f"[sheet {title}]\n{text}" if len(sheets) > 1 else text for title, text in texts if text]
    return FileText("\n\n".join(told))


def _sheets(book: Any, name: Any, *, first: bool) -> list[Any]:
    """Those with cells: a book may have sheets that are charts."""
    sheets = list(book.worksheets)
    if name is not None:
        found = [sheet for sheet in sheets if sheet.title == name]
        if not found:
            titles = ", ".join(sheet.title for sheet in sheets) or "none"
            raise UnreadableFile(f"has no sheet {name!r}; it has {titles}")
        return found
    if not first:
        return sheets
    return [book.active] if book.active in sheets else sheets[:1]


def _area(text: str) -> Area:
    """`A1:E100`, `B2`, `A:C` or `1:20`."""
    from openpyxl.utils import range_boundaries

    try:
        given = range_boundaries(text)
        if given.count(None) > (2 if ":" in text else 0):
            raise ValueError
        left, top, right, bottom = (edge if number is None else number for number, edge in zip(given, ALL, strict=True))
        if not (0 < left <= ALL[2] and 0 < right <= ALL[2] and 0 < top <= ALL[3] and 0 < bottom <= ALL[3]):
            raise ValueError
    except (ValueError, TypeError):
        raise UnreadableFile(f"has no range {text!r}; write for example A1:E100") from None
    return min(left, right), min(top, bottom), max(left, right), max(top, bottom)


def _table(sheet: Any, area: Area, limits: Limits) -> str:
    """Rows as CSV, as wide as the widest of them, without those that are empty."""
    rows = list(_rows(sheet, area))
    width = max((row[-1][0] for row in rows), default=0) - area[0] + 1
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        values = [""] * width
        for column, value in row:
            values[column - area[0]] = value
        writer.writerow(values)
        if out.tell() > MOST_BYTES:
            raise UnreadableFile(f"has more than {MOST_BYTES // 2**20} MB of text on sheet {sheet.title}; give a range")
        limits.check(f"sheet {sheet.title} was not read to its end")
    return out.getvalue()


def _rows(sheet: Any, area: Area) -> Iterator[list[tuple[int, Any]]]:
    """The cells with something in them; a sheet is as large as its farthest cell, so that asking for all takes long."""
    left, top, right, bottom = area
    number = 0
    row: list[tuple[int, Any]] = []
    for (at, column), cell in sorted(sheet._cells.items()):
        if not (top <= at <= bottom and left <= column <= right) or cell.value is None:
            continue
        if at != number and row:
            yield row
            row = []
        number = at
        row.append((column, cell.value))
    if row:
        yield row
