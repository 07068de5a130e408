"""The words of an HTML page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from proctor.cases.files.file_text import UNLIMITED, ReadLimits

_SKIPPED_TAGS = frozenset({"script", "style", "noscript", "template", "svg"})
_BLOCK_TAGS = frozenset(
    "p div br li tr h1 h2 h3 h4 h5 h6 section article header footer table ul ol pre hr title".split()
)


CHUNK_CHARS = 2**18
"""Characters read between two looks at the clock: pages can be made that take very long."""


def html_to_text(page: str, limits: ReadLimits = UNLIMITED, piece: int = CHUNK_CHARS) -> str:
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
        if tag in _SKIPPED_TAGS:
            self._unread += 1
        elif tag in _BLOCK_TAGS:
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED_TAGS:
            self._unread = max(0, self._unread - 1)
        elif tag in _BLOCK_TAGS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.parts.append(" ".join(data.split("\n")))
