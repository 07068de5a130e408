"""The kind of a file: from the suite, from the suffix of its name, and from its first bytes."""

from __future__ import annotations

import io
import zipfile

from proctor.cases.suite import AttachedFile

KIND_OF_SUFFIX = {
    "pdf": "pdf",
    **dict.fromkeys(("docx", "docm"), "word"),
    **dict.fromkeys(("xlsx", "xlsm"), "excel"),
    **dict.fromkeys(("pptx", "pptm"), "powerpoint"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff"), "image"),
}
"""The kind of a file whose type the suite does not set."""
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


def declared_kind(file: AttachedFile) -> str:
    """The kind by the type in the suite, or else by the suffix of the name; `text` by default."""
    by_name = KIND_OF_SUFFIX.get(_suffix(file), "text")
    if file.kind is None:
        return by_name
    declared = file.kind.lower()
    kind = KIND_OF_SUFFIX.get(declared, declared)
    if kind in NOT_TEXT or kind == "html":
        return kind
    return "html" if by_name == "html" else "text"


def detected_kind(content: bytes) -> str | None:
    """The kind by the first bytes; `None` for text and unknown kinds."""
    if content.startswith(b"%PDF-"):
        return "pdf"
    if content.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return OLD_OFFICE
    if content.startswith(b"PK\x03\x04"):
        return _zip_kind(content)
    if content.startswith(_IMAGES) or (content[:4] == b"RIFF" and content[8:12] == b"WEBP"):
        return "image"
    if content.startswith(b"BM") and content[6:10] == b"\0\0\0\0":
        return "image"
    head = content[:200].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return "html" if head.startswith((b"<!doctype html", b"<html")) else None


def _zip_kind(content: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return "damaged zip"
    return next((kind for folder, kind in _OFFICE.items() if any(name.startswith(folder) for name in names)), "zip")


def _suffix(file: AttachedFile) -> str:
    """The suffix of a path, or of a URL without its query."""
    name = file.path
    if name is None:
        name = (file.url or "").partition("#")[0].partition("?")[0]
    return name.rpartition(".")[2].lower()
