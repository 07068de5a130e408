"""Files that are not text, as text; each library is loaded by the function that needs it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from proctor.cases.file_kinds import OLD_OFFICE, TOLD
from proctor.cases.file_text import FileText, Limits, UnreadableFile, paged
from proctor.cases.image_text import read_image
from proctor.cases.pdf_text import read_pdf
from proctor.cases.sheet_text import read_excel

MOST_UNPACKED = 100 * 2**20
"""An office file that unpacks to more is not read: a few kilobytes can unpack to whatever a machine has."""


def read_document(kind: str, found: str | None, content: bytes, limits: Limits) -> FileText:
    """A file of `kind`; raises `UnreadableFile`, with what is wrong but not with the file's name."""
    if found == OLD_OFFICE:
        raise UnreadableFile(f"is {TOLD[found]}; save it in a format of today, unprotected")
    if found is not None and found != kind:
        raise UnreadableFile(f"is read as {kind}, but is {TOLD[found]}")
    if kind == "image" and found is None:
        raise UnreadableFile("is no image that can be read: PNG, JPEG, TIFF, GIF, WebP or BMP")
    if kind in ("word", "excel", "powerpoint"):
        _check_size(content, kind)
    try:
        return READERS[kind](content, limits)
    except UnreadableFile:
        raise
    except ImportError as error:
        raise UnreadableFile(f"needs a package: pip install 'proctor[files]' ({error})") from None
    except Exception as error:  # whatever a library says of a broken file
        raise UnreadableFile(f"is no readable {kind} file: {type(error).__name__}: {error}") from None


def _check_size(content: bytes, kind: str) -> None:
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(item.file_size for item in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadableFile(f"is no readable {kind} file: {error}") from None
    if size > MOST_UNPACKED:
        raise UnreadableFile(f"unpacks to more than {MOST_UNPACKED // 2**20} MB")


def _powerpoint(content: bytes, limits: Limits) -> FileText:
    from pptx import Presentation

    slides = Presentation(io.BytesIO(content)).slides
    return paged([partial(_slide, slide) for slide in slides], "slide", limits)


def _slide(slide: Any) -> str:
    texts = [line for shape in slide.shapes for line in _shape(shape)]
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        texts.append(f"Notes: {notes.text}")
    return "\n".join(texts)


def _shape(shape: Any) -> Iterable[str]:
    if getattr(shape, "has_text_frame", False) and shape.text_frame.text.strip():
        yield shape.text_frame.text
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield " | ".join(cell.text for cell in row.cells)
    for inner in getattr(shape, "shapes", ()):
        yield from _shape(inner)


def _word(content: bytes, limits: Limits) -> FileText:
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


READERS: Mapping[str, Callable[[bytes, Limits], FileText]] = {
    "pdf": read_pdf,
    "word": _word,
    "excel": read_excel,
    "powerpoint": _powerpoint,
    "image": read_image,
}
