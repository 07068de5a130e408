"""Extracts the text of PDF, Word, Excel and PowerPoint files. Text in images is not read."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from proctor.base.installation import install_command
from proctor.cases.files.file_text import MAX_BYTES, FileText, NoText, ReadLimits, UnreadableFile, read_pages
from proctor.cases.files.kinds import KIND_NAMES, OLD_OFFICE

MAX_UNPACKED_BYTES = 100 * 2**20
"""An office file that unpacks to more is not read: a few kilobytes can unpack to more than the memory holds."""
MAX_CELLS = 500_000
"""A sheet with more is only read if a range is set. To read a million takes half a minute, to count them a second."""


def read_document(kind: str, detected: str | None, content: bytes, limits: ReadLimits) -> FileText:
    """The text of a file of `kind`, whose first bytes look like `detected`.

    Raises `UnreadableFile` with a message that follows the name of the file.
    """
    if detected == OLD_OFFICE:
        raise UnreadableFile(f"is {KIND_NAMES[detected]}; save it in a current format without a password")
    if detected is not None and detected != kind:
        raise UnreadableFile(f"is read as {kind}, but is {KIND_NAMES[detected]}")
    if kind == "image" and detected is None:
        raise UnreadableFile("cannot be read as an image: PNG, JPEG, TIFF, GIF, WebP or BMP")
    if kind in ("word", "excel", "powerpoint"):
        _check_size(content, kind)
    try:
        if kind == "excel" and not {"sheet", "range"} & limits.options.keys():
            _check_cells(content)
        return READERS[kind](content, limits)
    except UnreadableFile:
        raise
    except ImportError as error:
        raise UnreadableFile(f"needs more packages: {install_command('files')} ({error})") from None
    except Exception as error:  # libraries raise anything for a damaged file
        raise UnreadableFile(f"cannot be read as a file of type {kind}: {type(error).__name__}: {error}") from None


def _check_size(content: bytes, kind: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(item.file_size for item in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableFile(f"cannot be read as a file of type {kind}: {error}") from None
    if size > MAX_UNPACKED_BYTES:
        raise UnreadableFile(f"unpacks to more than {MAX_UNPACKED_BYTES // 2**20} MB")


def _check_cells(content: bytes) -> None:
    """Count the cells before anything is read, because only a part of a huge sheet can be meant."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with archive.open(name) as sheet:
                    pieces = iter(partial(sheet.read, 2**20), b"")
                    cells = sum(piece.count(b"<c ") + piece.count(b"<c>") for piece in pieces)
                if cells > MAX_CELLS:
                    raise UnreadableFile(f"has a sheet with {cells:,} cells, more than {MAX_CELLS:,}; set a range")


def read_pdf(content: bytes, limits: ReadLimits) -> FileText:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted:
        _unlock(reader)
    return read_pages([partial(_page_text, page) for page in reader.pages], "page", limits)


def _unlock(reader: Any) -> None:
    """Decrypt a file that has an empty password: many are protected only against changes."""
    from pypdf.errors import DependencyError

    try:
        opened = reader.decrypt("")
    except DependencyError as error:
        raise UnreadableFile(f"is encrypted: {error}") from None
    if not opened:
        raise UnreadableFile("is protected with a password")


def _page_text(page: Any) -> str:
    text = str(page.extract_text() or "").strip()
    if not text and page.images.keys():
        raise NoText("is an image; text in images is not read")
    return text


Area = tuple[int, int, int, int]
"""Left, top, right, bottom."""
ALL: Area = (1, 1, 16384, 1048576)


def read_excel(content: bytes, limits: ReadLimits) -> FileText:
    """The sheets as CSV. Rows are read one by one, so that a sheet of a million rows ends at its limit."""
    from openpyxl import load_workbook

    with closing(load_workbook(io.BytesIO(content), data_only=True, read_only=True)) as book:
        name, area = limits.options.get("sheet"), limits.options.get("range")
        sheets = _sheets(book, name, first=area is not None)
        cells = ALL if area is None else _area(str(area))
        texts = [(sheet.title, _table(sheet, cells, limits)) for sheet in sheets]
    parts = [f"[sheet {title}]\n{text}" if len(sheets) > 1 else text for title, text in texts if text]
    return FileText("\n\n".join(parts))


def _sheets(book: Any, name: Any, *, first: bool) -> list[Any]:
    """The sheet `name`, the active one (`first`), or all sheets; never a chart, which has no cells."""
    sheets = list(book.worksheets)
    if name is not None:
        matches = [sheet for sheet in sheets if sheet.title == name]
        if not matches:
            titles = ", ".join(sheet.title for sheet in sheets) or "none"
            raise UnreadableFile(f"has no sheet {name!r}; it has {titles}")
        return matches
    if not first:
        return sheets
    return [book.active] if book.active in sheets else sheets[:1]


def _area(text: str) -> Area:
    """`A1:E100`, `B2`, `A:C` or `1:20`."""
    from openpyxl.utils import range_boundaries

    try:
        boundaries = range_boundaries(text)
        if boundaries.count(None) > (2 if ":" in text else 0):
            raise ValueError
        left, top, right, bottom = (
            edge if number is None else number for number, edge in zip(boundaries, ALL, strict=True)
        )
        if not (0 < left <= ALL[2] and 0 < right <= ALL[2] and 0 < top <= ALL[3] and 0 < bottom <= ALL[3]):
            raise ValueError
    except (ValueError, TypeError):
        raise UnreadableFile(f"has no range {text!r}; write it like A1:E100") from None
    return min(left, right), min(top, bottom), max(left, right), max(top, bottom)


def _table(sheet: Any, area: Area, limits: ReadLimits) -> str:
    """The rows as CSV, all as wide as the widest, without empty ones."""
    too_long = f"has more than {MAX_BYTES // 2**20} MB of text on sheet {sheet.title}; set a range"
    lines: list[tuple[str, int]] = []
    size = 0
    for values in _rows(sheet, area, limits):
        line = _csv_line(values)
        lines.append((line, len(values)))
        size += len(line) + 1
        if size > MAX_BYTES:
            raise UnreadableFile(too_long)
    width = max((count for _, count in lines), default=0)
    if size + sum(width - count for _, count in lines) > MAX_BYTES:
        raise UnreadableFile(too_long)
    return "".join(f"{line}{',' * (width - count)}\n" for line, count in lines)


def _csv_line(values: Sequence[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(values)
    return out.getvalue()


def _rows(sheet: Any, area: Area, limits: ReadLimits) -> Iterator[Sequence[Any]]:
    """The rows of the area that have a value, each up to its last value."""
    left, top, right, bottom = area
    # The size that a file states may be wrong, and every row would be filled up to it.
    sheet.reset_dimensions()
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        limits.check(f"sheet {sheet.title} was not read completely")
        if number > bottom:
            return
        values = row[left - 1 : right] if number >= top else ()
        count = next((index for index in range(len(values), 0, -1) if values[index - 1] not in (None, "")), 0)
        if count:
            yield values[:count]


def _powerpoint(content: bytes, limits: ReadLimits) -> FileText:
    from pptx import Presentation

    slides = Presentation(io.BytesIO(content)).slides
    return read_pages([partial(_slide_text, slide) for slide in slides], "slide", limits)


def _slide_text(slide: Any) -> str:
    texts = [line for shape in slide.shapes for line in _shape_texts(shape)]
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        texts.append(f"Notes: {notes.text}")
    return "\n".join(texts)


def _shape_texts(shape: Any) -> Iterable[str]:
    if getattr(shape, "has_text_frame", False) and shape.text_frame.text.strip():
        yield shape.text_frame.text
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield " | ".join(cell.text for cell in row.cells)
    for inner in getattr(shape, "shapes", ()):
        yield from _shape_texts(inner)


def _word(content: bytes, limits: ReadLimits) -> FileText:
    from docx import Document
    from docx.table import Table

    parts: list[str] = []
    for item in Document(io.BytesIO(content)).iter_inner_content():
        limits.check(f"{len(parts)} paragraphs were read")
        if isinstance(item, Table):
            parts.append("\n".join(" | ".join(cell.text for cell in row.cells) for row in item.rows))
        elif item.text.strip():
            style = getattr(item.style, "name", "") or ""
            level = style.removeprefix("Heading ")
            head = f"{'#' * min(6, int(level))} " if style.startswith("Heading ") and level.isdigit() else ""
            parts.append(f"{head}{item.text}")
    return FileText("\n\n".join(parts))


def _image(content: bytes, limits: ReadLimits) -> FileText:
    return FileText("", ("is an image; text in images is not read",))


READERS: Mapping[str, Callable[[bytes, ReadLimits], FileText]] = {
    "pdf": read_pdf,
    "word": _word,
    "excel": read_excel,
    "powerpoint": _powerpoint,
    "image": _image,
}
