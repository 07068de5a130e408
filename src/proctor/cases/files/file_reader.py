"""Reads the files of a suite, from its folder or from an address, and sets them out below a message."""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.base.json_data import Json
from proctor.cases.files.documents import read_document
from proctor.cases.files.downloads import fetch
from proctor.cases.files.file_text import MAX_BYTES, FileText, ReadLimits, UnreadableFile
from proctor.cases.files.html_text import declared_encoding, html_to_text
from proctor.cases.files.kinds import KIND_NAMES, NOT_TEXT, declared_kind, detected_kind
from proctor.cases.suite import AttachedFile, FileSettings

NO_TEXT = "is not text; say of what type it is"


DEFAULT_SETTINGS = FileSettings()


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads the files of one suite."""

    base: Path
    settings: FileSettings = DEFAULT_SETTINGS

    def read(self, attachment: AttachedFile) -> FileText:
        """The text of a file; raises `UnreadableFile`."""
        begun = time.monotonic()
        name, kind = file_title(attachment), declared_kind(attachment)
        options = {key: value for key, value in attachment.options.items() if key != "cache"}
        if unused := [key for key in options if key not in _OPTIONS.get(kind, ())]:
            raise UnreadableFile(f"{name} is read as {kind}, which has no {unused[0]}")
        content = self._content(attachment)
        limits = ReadLimits(options, time.monotonic() + self.settings.read_seconds)
        try:
            found = _read(content, kind, limits)
        except UnreadableFile as error:
            raise UnreadableFile(f"{name} {error}") from None
        notes = found.notes or (() if found.text.strip() else ("yields no text",))
        about: dict[str, Json] = {"path" if attachment.url is None else "url": name, "type": kind}
        about |= {"size_bytes": len(content), **{f"{key}_extracted": value for key, value in options.items()}}
        told = tuple(f"the file {name}: {note}" for note in notes)
        return replace(found, notes=told, metadata=about, seconds=time.monotonic() - begun)

    def _content(self, attachment: AttachedFile) -> bytes:
        if attachment.url is None:
            return local_content(self.base, attachment.path or "")
        keep = attachment.options.get("cache") is not False
        settings = self.settings
        return fetch(attachment.url, settings.fetch_seconds, settings.cache if keep else None, settings.fetch_attempts)


def local_content(base: Path, path: str) -> bytes:
    """What is in a file; raises `UnreadableFile`. A pipe or a device has no end, and is not even opened."""
    try:
        file = base / path
        if not stat.S_ISREG(file.stat().st_mode):
            raise UnreadableFile(f"{path} cannot be read: it is {'a folder' if file.is_dir() else 'not a plain file'}")
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{path} cannot be read: {error}") from None
    if len(content) > MAX_BYTES:
        raise UnreadableFile(f"{path} has more than {MAX_BYTES // 2**20} MB")
    return content


def file_title(attachment: AttachedFile) -> str:
    return attachment.path or attachment.url or "unnamed"


def with_files(said: Json, files: Sequence[tuple[AttachedFile, str]]) -> Json:
    """A message with its files set out below it, each between lines that name it."""
    blocks = []
    for attachment, text in files:
        name, about = file_title(attachment), _description(attachment)
        blocks.append(f"--- file: {name}{about}\n{text.strip() or '(no text)'}\n--- end of file: {name}")
    return "\n\n".join([str(said), *blocks])


def _description(attachment: AttachedFile) -> str:
    options = attachment.options
    parts = [f"{key} {_join_values(options[key])}" for key in ("pages", "sheet", "range") if options.get(key)]
    told = f" ({'; '.join(parts)})" if parts else ""
    return f"{told}: {attachment.description}" if attachment.description else told


def _join_values(value: Json) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)


_OPTIONS: dict[str, tuple[str, ...]] = {
    "pdf": ("pages",),
    "powerpoint": ("pages",),
    "image": ("pages",),
    "excel": ("sheet", "range"),
}


def _read(content: bytes, kind: str, limits: ReadLimits) -> FileText:
    found = detected_kind(content)
    if kind in NOT_TEXT:
        return read_document(kind, found, content, limits)
    if found is not None and found != "html":
        raise UnreadableFile(f"is read as {kind}, but is {KIND_NAMES[found]}; say so with its type")
    text = _decode(content, html="html" in (kind, found))
    if "html" in (kind, found):
        return FileText(html_to_text(text, limits))
    return FileText(text)


def _decode(content: bytes, *, html: bool) -> str:
    """UTF-8 unless a mark at the beginning or a page itself says otherwise; what is neither is no text."""
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\x00" if wide else _decode_legacy(content, html=html)
    if "\x00" in text:
        raise UnreadableFile(NO_TEXT)
    return text


def _decode_legacy(content: bytes, *, html: bool) -> str:
    """As a page says in its head, else as Windows writes; both have letters where other files have anything at all."""
    text = content.decode((html and declared_encoding(content)) or "cp1252", "replace")
    if re.search(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]", text):
        raise UnreadableFile(NO_TEXT)
    return text
