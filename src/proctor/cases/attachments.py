"""The files of a turn as text: found from the suite's folder or fetched, read by their kind, and told to the agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.cases.model import Attachment
from proctor.errors import ProctorError
from proctor.plain import Json
from proctor.records import record

MOST_BYTES = 20 * 2**20
"""A file that is larger is not read: no agent could take it in."""
KINDS = {
    "pdf": "pdf",
    "docx": "word",
    "xlsx": "excel",
    "xlsm": "excel",
    "pptx": "powerpoint",
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff"), "image"),
}
"""By the ending of a name, where the suite does not say of what kind a file is."""


class UnreadableFile(ProctorError):
    """A file of a test cannot be read, so that nothing can be asked about it."""


@record
class FileText:
    """What a file says, and what there is to know about that."""

    text: str
    notes: tuple[str, ...] = ()
    """What could not be read in it: an image, a page that was scanned."""


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
        name = title(attachment)
        if attachment.url is not None:
            from proctor.cases.downloads import fetch

            keep = attachment.options.get("cache") is not False
            content = fetch(attachment.url, self.settings.fetch_seconds, self.settings.cache if keep else None)
        else:
            content = self._local(attachment.path or "")
        found = _read(content, name, attachment)
        notes = found.notes or (() if found.text.strip() else ("yields no text",))
        return FileText(found.text, tuple(f"the file {name}: {note}" for note in notes))

    def _local(self, path: str) -> bytes:
        try:
            file = self.base / path
            if file.stat().st_size > MOST_BYTES:
                raise UnreadableFile(f"{path} has more than {MOST_BYTES // 2**20} MB")
            return file.read_bytes()
        except (OSError, ValueError) as error:
            raise UnreadableFile(f"{path} cannot be read: {error}") from None


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


def _read(content: bytes, name: str, attachment: Attachment) -> FileText:
    kind = attachment.kind or KINDS.get(name.rpartition(".")[2].lower(), "text")
    options = attachment.options
    if unused := [key for key in options if key not in (*_OPTIONS.get(kind, ()), "cache")]:
        raise UnreadableFile(f"{name} is read as {kind}, which has no {unused[0]}")
    if kind == "image":
        return FileText("", ("is an image, of which no text is read",))
    if kind in _OPTIONS:
        from proctor.cases import documents

        try:
            return documents.READERS[kind](content, options)
        except UnreadableFile as error:
            raise UnreadableFile(f"{name} {error}") from None
        except ImportError as error:
            raise UnreadableFile(f"{name} needs a package: pip install 'proctor[files]' ({error})") from None
        except Exception as error:  # whatever a library says of a broken file
            raise UnreadableFile(f"{name} is no readable {kind} file: {type(error).__name__}: {error}") from None
    return FileText(_text(content, name))


_OPTIONS: dict[str, tuple[str, ...]] = {
    "pdf": ("pages",),
    "powerpoint": ("pages",),
    "excel": ("sheet", "range"),
    "word": (),
}


def _text(content: bytes, name: str) -> str:
    text = _decoded(content, name)
    if name.rpartition(".")[2].lower() in ("html", "htm"):
        from proctor.cases.html_text import text_of_html

        return text_of_html(text)
    return text


def _decoded(content: bytes, name: str) -> str:
    """UTF-8 unless a mark at the beginning says otherwise; what is neither is no text."""
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        if b"\x00" in content:
            raise UnreadableFile(f"{name} is not text; say of what type it is") from None
        return content.decode("cp1252", "replace")
    if "\x00" in text:
        raise UnreadableFile(f"{name} is not text; say of what type it is")
    return text
