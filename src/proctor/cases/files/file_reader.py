"""Reads the files of a suite, from its folder or from a URL, and appends them to a message."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.base.json_data import Json
from proctor.cases.files.boundaries import open_file
from proctor.cases.files.documents import read_document
from proctor.cases.files.downloads import fetch
from proctor.cases.files.file_text import MAX_BYTES, FileText, ReadLimits, UnreadableFile
from proctor.cases.files.html_text import declared_encoding, html_to_text
from proctor.cases.files.kinds import KIND_NAMES, NOT_TEXT, declared_kind, detected_kind
from proctor.cases.suite import AttachedFile, FileSettings

NO_TEXT = "is not text; set its type"

DEFAULT_SETTINGS = FileSettings()


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads the files of one suite; relative paths start from the folder `base`."""

    base: Path
    settings: FileSettings = DEFAULT_SETTINGS
    folders: tuple[Path, ...] | None = None
    """Where files may be (`boundaries.py`); `None` for anywhere."""

    def read(self, file: AttachedFile) -> FileText:
        """The text of a file; raises `UnreadableFile`."""
        started = time.monotonic()
        name, kind = file_title(file), declared_kind(file)
        options = {key: value for key, value in file.options.items() if key != "cache"}
        if unused := [key for key in options if key not in _OPTIONS.get(kind, ())]:
            raise UnreadableFile(f"{name} is read as {kind}, which does not support {unused[0]!r}")
        content = self._content(file)
        limits = ReadLimits(options, time.monotonic() + self.settings.read_seconds)
        try:
            result = _read(content, kind, limits)
        except UnreadableFile as error:
            raise UnreadableFile(f"{name} {error}") from None
        notes = result.notes or (() if result.text.strip() else ("has no text",))
        metadata: dict[str, Json] = {"path" if file.url is None else "url": name, "type": kind}
        metadata |= {"size_bytes": len(content), **{f"{key}_extracted": value for key, value in options.items()}}
        notes = tuple(f"the file {name}: {note}" for note in notes)
        return replace(result, notes=notes, metadata=metadata, seconds=time.monotonic() - started)

    def _content(self, file: AttachedFile) -> bytes:
        if file.url is None:
            return local_content(self.base, file.path or "", self.folders)
        settings = self.settings
        cache = None if file.options.get("cache") is False else settings.cache
        return fetch(file.url, settings.fetch_seconds, cache, settings.fetch_attempts)


def local_content(base: Path, path: str, folders: Sequence[Path] | None = None) -> bytes:
    """The contents of a file in one of the folders, or anywhere; raises `UnreadableFile`."""
    try:
        with open_file(base, path, folders) as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{path} cannot be read: {error}") from None
    if len(content) > MAX_BYTES:
        raise UnreadableFile(f"{path} has more than {MAX_BYTES // 2**20} MB")
    return content


def file_title(file: AttachedFile) -> str:
    """What messages call a file: its path or URL."""
    return file.path or file.url or "unnamed"


def with_files(message: Json, files: Sequence[tuple[AttachedFile, str]]) -> Json:
    """A message followed by the text of its files, each between lines with its name."""
    blocks = []
    for file, text in files:
        name = file_title(file)
        blocks.append(f"--- file: {name}{_description(file)}\n{text.strip() or '(no text)'}\n--- end of file: {name}")
    return "\n\n".join([str(message), *blocks])


def _description(file: AttachedFile) -> str:
    """` (pages 1, 2): the description`, behind the name of a file."""
    options = file.options
    parts = [f"{key} {_join_values(options[key])}" for key in ("pages", "sheet", "range") if options.get(key)]
    extract = f" ({'; '.join(parts)})" if parts else ""
    return f"{extract}: {file.description}" if file.description else extract


def _join_values(value: Json) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)


_OPTIONS: dict[str, tuple[str, ...]] = {
    "pdf": ("pages",),
    "powerpoint": ("pages",),
    "image": ("pages",),
    "excel": ("sheet", "range"),
}


def _read(content: bytes, kind: str, limits: ReadLimits) -> FileText:
    detected = detected_kind(content)
    if kind in NOT_TEXT:
        return read_document(kind, detected, content, limits)
    if detected is not None and detected != "html":
        raise UnreadableFile(f"is read as {kind}, but is {KIND_NAMES[detected]}; set its type")
    text = _decode(content, html="html" in (kind, detected))
    if "html" in (kind, detected):
        return FileText(html_to_text(text, limits))
    return FileText(text)


def _decode(content: bytes, *, html: bool) -> str:
    """The text of a file: UTF-8, unless a byte order mark or the page itself says otherwise."""
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\x00" if is_utf16 else _decode_legacy(content, html=html)
    if "\x00" in text:
        raise UnreadableFile(NO_TEXT)
    return text


def _decode_legacy(content: bytes, *, html: bool) -> str:
    """Text in the encoding that a page declares, or else in that of Windows; raises if it has control characters."""
    text = content.decode((html and declared_encoding(content)) or "cp1252", "replace")
    if re.search(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]", text):
        raise UnreadableFile(NO_TEXT)
    return text
