"""The files of a turn as text: found from the suite's folder or fetched, read by their kind, and told to the agent.

A digest of each file is kept with its case: a stored answer is reused only for the same contents.
"""

from __future__ import annotations

import io
import re
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from proctor.base.errors import ProctorError
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import NOTHING, Attachment, Case, Turn

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


NO_TEXT = "is not text; say of what type it is"


@record
class FileSettings:
    """How long files may take, and where fetched ones are kept."""

    read_seconds: float = 30.0
    fetch_seconds: float = 30.0
    cache: Path | None = None
    """`None` keeps nothing."""


@record
class FileReader:
    """Reads the files of one suite."""

    base: Path
    settings: FileSettings = FileSettings()

    def read(self, attachment: Attachment) -> FileText:
        """The text of a file; raises `UnreadableFile`."""
        begun = time.monotonic()
        name, kind = title(attachment), kind_said(attachment)
        options = {key: value for key, value in attachment.options.items() if key != "cache"}
        if unused := [key for key in options if key not in _OPTIONS.get(kind, ())]:
            raise UnreadableFile(f"{name} is read as {kind}, which has no {unused[0]}")
        content = self._content(attachment)
        limits = Limits(options, time.monotonic() + self.settings.read_seconds)
        try:
            found = _read(content, kind, limits)
        except UnreadableFile as error:
            raise UnreadableFile(f"{name} {error}") from None
        notes = found.notes or (() if found.text.strip() else ("yields no text",))
        about: dict[str, Json] = {"path" if attachment.url is None else "url": name, "type": kind}
        about |= {"size_bytes": len(content), **{f"{key}_extracted": value for key, value in options.items()}}
        told = tuple(f"the file {name}: {note}" for note in notes)
        return replace(found, notes=told, metadata=about, seconds=time.monotonic() - begun)

    def _content(self, attachment: Attachment) -> bytes:
        if attachment.url is None:
            return local_content(self.base, attachment.path or "")
        from proctor.cases.files.downloads import fetch

        keep = attachment.options.get("cache") is not False
        return fetch(attachment.url, self.settings.fetch_seconds, self.settings.cache if keep else None)


def local_content(base: Path, path: str) -> bytes:
    """What is in a file; raises `UnreadableFile`. A pipe or a device has no end, and is not even opened."""
    try:
        file = base / path
        if not stat.S_ISREG(file.stat().st_mode):
            raise UnreadableFile(f"{path} cannot be read: it is {'a folder' if file.is_dir() else 'not a plain file'}")
        with file.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{path} cannot be read: {error}") from None
    if len(content) > MOST_BYTES:
        raise UnreadableFile(f"{path} has more than {MOST_BYTES // 2**20} MB")
    return content


def title(attachment: Attachment) -> str:
    return attachment.path or attachment.url or "unnamed"


def with_files(said: Json, files: Sequence[tuple[Attachment, str]]) -> Json:
    """A message with its files set out below it, each between lines that name it."""
    blocks = []
    for attachment, text in files:
        name, about = title(attachment), _about(attachment)
        blocks.append(f"--- file: {name}{about}\n{text.strip() or '(no text)'}\n--- end of file: {name}")
    return "\n\n".join([str(said), *blocks])


def _about(attachment: Attachment) -> str:
    options = attachment.options
    parts = [f"{key} {_listed(options[key])}" for key in ("pages", "sheet", "range") if options.get(key)]
    told = f" ({'; '.join(parts)})" if parts else ""
    return f"{told}: {attachment.description}" if attachment.description else told


def _listed(value: Json) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)


_OPTIONS: dict[str, tuple[str, ...]] = {
    "pdf": ("pages",),
    "powerpoint": ("pages",),
    "image": ("pages",),
    "excel": ("sheet", "range"),
}


def _read(content: bytes, kind: str, limits: Limits) -> FileText:
    found = detected_kind(content)
    if kind in NOT_TEXT:
        from proctor.cases.files.documents import read_document

        return read_document(kind, found, content, limits)
    if found is not None and found != "html":
        raise UnreadableFile(f"is read as {kind}, but is {KIND_NAMES[found]}; say so with its type")
    text = _decoded(content, html="html" in (kind, found))
    if "html" in (kind, found):
        from proctor.cases.files.documents import text_of_html

        return FileText(text_of_html(text, limits))
    return FileText(text)


def _decoded(content: bytes, *, html: bool) -> str:
    """UTF-8 unless a mark at the beginning or a page itself says otherwise; what is neither is no text."""
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\x00" if wide else _in_another_encoding(content, html=html)
    if "\x00" in text:
        raise UnreadableFile(NO_TEXT)
    return text


def _in_another_encoding(content: bytes, *, html: bool) -> str:
    """As a page says in its head, else as Windows writes; both have letters where other files have anything at all."""
    from proctor.cases.files.documents import declared_encoding

    text = content.decode((html and declared_encoding(content)) or "cp1252", "replace")
    if re.search(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]", text):
        raise UnreadableFile(NO_TEXT)
    return text


CONTENTS = "x-file-contents"
"""The key under which a turn keeps them, in the order of its files; `None` where there is none."""


class Contents:
    """The files of one suite; one that several cases name is read once."""

    def __init__(self, base: Path | None) -> None:
        self._base = base or Path.cwd()
        self._known: dict[str, str | None] = {}

    def of(self, case: Case) -> Case:
        """The case with the addresses of what its files say now; of a file that cannot be read, what it said before."""
        if not any(turn.attachments for turn in case.turns):
            return case
        return replace(case, turns=tuple(self._turn(turn) for turn in case.turns))

    def _turn(self, turn: Turn) -> Turn:
        before = contents_of(turn)
        now = [self._address(item) or kept for item, kept in zip(turn.attachments, before, strict=True)]
        return turn if now == before else replace(turn, extra={**turn.extra, CONTENTS: now})

    def _address(self, attachment: Attachment) -> str | None:
        path = attachment.path
        if path is None:
            return None
        if path not in self._known:
            self._known[path] = _address_of(self._base, path)
        return self._known[path]


def contents_of(turn: Turn) -> Sequence[str | None]:
    """What is kept of each file of a turn; a file that was never looked at has none."""
    kept = turn.extra.get(CONTENTS)
    if not isinstance(kept, list) or len(kept) != len(turn.attachments):
        return [None] * len(turn.attachments)
    return [item if isinstance(item, str) else None for item in kept]


def _address_of(base: Path, path: str) -> str | None:
    """`None` for what is not a plain file: a pipe or a device would never end."""
    import hashlib

    try:
        file = base / path
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except (OSError, ValueError):
        return None
