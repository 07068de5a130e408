"""PDF, Word, Excel and PowerPoint files as text; each library is loaded by the function that needs it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from proctor.cases.attachments import FileText, UnreadableFile
from proctor.plain import Json

Options = Mapping[str, Json]


def _pdf(content: bytes, options: Options) -> FileText:
    from pypdf import PdfReader

    pages = PdfReader(io.BytesIO(content)).pages
    return _paged([page.extract_text for page in pages], "page", options)


def _powerpoint(content: bytes, options: Options) -> FileText:
    from pptx import Presentation

    slides = [_slide(slide) for slide in Presentation(io.BytesIO(content)).slides]
    return _paged(slides, "slide", options)


def _slide(slide: Any) -> Callable[[], str]:
    def read() -> str:
        texts = [line for shape in slide.shapes for line in _shape(shape)]
        notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if notes is not None and notes.text.strip():
            texts.append(f"Notes: {notes.text}")
        return "\n".join(texts)

    return read


def _shape(shape: Any) -> Iterable[str]:
    if getattr(shape, "has_text_frame", False) and shape.text_frame.text.strip():
        yield shape.text_frame.text
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield " | ".join(cell.text for cell in row.cells)
    for inner in getattr(shape, "shapes", ()):
        yield from _shape(inner)


def _paged(pages: Sequence[Callable[[], str]], noun: str, options: Options) -> FileText:
    """The pages that are asked for, the first being number 1; those without text are told of."""
    wanted = options.get("pages") or list(range(1, len(pages) + 1))
    if beyond := [number for number in wanted if not 1 <= number <= len(pages)]:
        raise UnreadableFile(f"has {len(pages)} {noun}s, and no {noun} {beyond[0]}")
    texts = {number: (pages[number - 1]() or "").strip() for number in wanted}
    empty = [number for number, text in texts.items() if not text]
    notes = [f"{noun} {number} yields no text" for number in empty]
    several = len(pages) > 1
    told = [f"[{noun} {number}]\n{text}" if several else text for number, text in texts.items() if text]
    return FileText("\n\n".join(told), tuple(notes))


def _word(content: bytes, options: Options) -> FileText:
    from docx import Document
    from docx.table import Table

    parts: list[str] = []
    for item in Document(io.BytesIO(content)).iter_inner_content():
        if isinstance(item, Table):
            parts.append("\n".join(" | ".join(cell.text for cell in row.cells) for row in item.rows))
        elif item.text.strip():
            style = getattr(item.style, "name", "") or ""
            level = style.removeprefix("Heading ")
            head = f"{'#' * min(6, int(level))} " if style.startswith("Heading ") and level.isdigit() else ""
            parts.append(f"{head}{item.text}")
    return FileText("\n\n".join(parts))


def _excel(content: bytes, options: Options) -> FileText:
    from openpyxl import load_workbook

    book = load_workbook(io.BytesIO(content), data_only=True, read_only=False)
    name, area = options.get("sheet"), options.get("range")
    if name is not None and name not in book.sheetnames:
        raise UnreadableFile(f"has no sheet {name!r}; it has {', '.join(book.sheetnames)}")
    if area is not None:
        return FileText(_table(_cells(book[name] if name else book.active, str(area))))
    sheets = [book[name]] if name else book.worksheets
    several = len(sheets) > 1
    texts = [(sheet.title, _table(sheet.iter_rows(values_only=True))) for sheet in sheets]
    return FileText("\n\n".join(f"[sheet {title}]\n{text}" if several else text for title, text in texts if text))


def _cells(sheet: Any, area: str) -> list[tuple[Any, ...]]:
    from openpyxl.utils import range_boundaries

    try:
        left, top, right, bottom = range_boundaries(area)
    except (ValueError, TypeError):
        raise UnreadableFile(f"has no range {area!r}; write for example A1:E100") from None
    return list(sheet.iter_rows(top, bottom, left, right, values_only=True))


def _table(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV, without those that are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows(["" if c is None else c for c in row] for row in rows if any(c is not None for c in row))
    return out.getvalue()


READERS: Mapping[str, Callable[[bytes, Options], FileText]] = {
    "pdf": _pdf,
    "word": _word,
    "excel": _excel,
    "powerpoint": _powerpoint,
}
