"""The kind of a file (by the suite, its ending, its first bytes), what reading it gives, and the limits of reading."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence

from proctor.base.errors import ProctorError
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import NOTHING, Attachment

KINDS = {
    "pdf": "pdf",
    **dict.fromkeys(("docx", "docm"), "word"),
    **dict.fromkeys(("xlsx", "xlsm"), "excel"),
    **dict.fromkeys(("pptx", "pptm"), "powerpoint"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff"), "image"),
}
"""By the ending of a name, where the suite does not say of what kind a file is."""
NOT_TEXT = frozenset({"pdf", "word", "excel", "powerpoint", "image"})
OLD_OFFICE = "old office"
KIND_NAMES = {
    "pdf": "a PDF file",
    "word": "a Word file",
    "excel": "an Excel file",
    "powerpoint": "a PowerPoint file",
    "image": "an image",
    "html": "an HTML page",
    "zip": "a zip file",
    "damaged zip": "a damaged zip file",
    OLD_OFFICE: "an old or password-protected office file",
}
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_OFFICE = {"word/": "word", "xl/": "excel", "ppt/": "powerpoint"}


def kind_said(attachment: Attachment) -> str:
    """What the suite says, else the name; text where neither says anything."""
    by_name = KINDS.get(_ending(attachment), "text")
    if attachment.kind is None:
        return by_name
    said = attachment.kind.lower()
    kind = KINDS.get(said, said)
    if kind in NOT_TEXT or kind == "html":
        return kind
    return "html" if by_name == "html" else "text"


def detected_kind(content: bytes) -> str | None:
    """The kind that the first bytes show; `None` for text and unknown kinds."""
    if content.startswith(b"%PDF-"):
        return "pdf"
    if content.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return OLD_OFFICE
    if content.startswith(b"PK\x03\x04"):
        return _packed(content)
    if content.startswith(_IMAGES) or (content[:4] == b"RIFF" and content[8:12] == b"WEBP"):
        return "image"
    if content.startswith(b"BM") and content[6:10] == b"\0\0\0\0":
        return "image"
    head = content[:200].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return "html" if head.startswith((b"<!doctype html", b"<html")) else None


def _packed(content: bytes) -> str:
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return "damaged zip"
    return next((kind for folder, kind in _OFFICE.items() if any(name.startswith(folder) for name in names)), "zip")


def _ending(attachment: Attachment) -> str:
    """Of the name of a file; an address may say more behind it."""
    name = attachment.path
    if name is None:
        name = (attachment.url or "").partition("#")[0].partition("?")[0]
    return name.rpartition(".")[2].lower()


MOST_BYTES = 20 * 2**20
"""A file that is larger is not read, nor text that is longer: no agent could take it in."""


class UnreadableFile(ProctorError):
    """A file of a test cannot be read, so that nothing can be asked about it."""


@record
class FileText:
    """What a file says, and what there is to know about that."""

    text: str
    notes: tuple[str, ...] = ()
    """What could not be read in it: a picture, a page that was scanned."""
    metadata: Mapping[str, Json] = NOTHING
    """Where it is from, how large it is, and which parts of it were read."""
    seconds: float = 0.0
    """How long it took to read."""


@record
class Limits:
    """Which part of a file is wanted, and until when."""

    options: Mapping[str, Json] = NOTHING
    until: float = float("inf")
    """By the clock of `time.monotonic`."""

    def check(self, done: str) -> None:
        if time.monotonic() > self.until:
            raise UnreadableFile(f"takes too long to read; {done} in time")


UNLIMITED = Limits()


def paged(pages: Sequence[Callable[[], str]], noun: str, limits: Limits) -> FileText:
    """The pages that are asked for, the first being number 1; those without text are told of.

    A page that knows better why it has no text says so by raising `NoText`.
    """
    wanted = _wanted(limits.options.get("pages"), len(pages), noun)
    if not pages:
        return FileText("", (f"has no {noun}s",))
    several = len(pages) > 1
    told: list[str] = []
    notes: list[str] = []
    for number in wanted:
        limits.check(f"{len(told) + len(notes)} of {len(wanted)} {noun}s were read")
        try:
            text = (pages[number - 1]() or "").strip()
            if not text:
                raise NoText("yields no text")
        except NoText as reason:
            notes.append(f"{noun} {number} {reason}")
        else:
            told.append(f"[{noun} {number}]\n{text}" if several else text)
    return FileText("\n\n".join(told), tuple(notes))


class NoText(Exception):
    """Why a page has no text."""


def _wanted(given: Json, count: int, noun: str) -> list[int]:
    if given is None:
        return list(range(1, count + 1))
    numbers = given if isinstance(given, (list, tuple)) else [given]
    if wrong := [number for number in numbers if isinstance(number, bool) or not isinstance(number, int)]:
        raise UnreadableFile(f"is asked for {noun} {wrong[0]!r}; {noun}s are numbers, from 1")
    if beyond := [number for number in numbers if not 1 <= number <= count]:
        raise UnreadableFile(f"has {count} {noun}{'' if count == 1 else 's'}, and no {noun} {beyond[0]}")
    return list(dict.fromkeys(numbers)) or list(range(1, count + 1))
