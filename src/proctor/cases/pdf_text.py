"""The text of PDF files, and of their scanned pages where words in pictures can be read."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

from proctor.cases.file_text import FileText, Limits, NoText, UnreadableFile, paged
from proctor.cases.image_text import INSTALL, recogniser


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
