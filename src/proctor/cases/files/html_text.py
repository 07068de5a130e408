"""Converts an HTML page to text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from proctor.cases.files.file_text import UNLIMITED, ReadLimits

_SKIPPED_TAGS = frozenset({"script", "style", "noscript", "template", "svg"})
_BLOCK_TAGS = frozenset(
    "p div br li tr h1 h2 h3 h4 h5 h6 section article header footer table ul ol pre hr title".split()
)


CHUNK_CHARS = 2**18
"""Characters parsed between two checks of the time limit: a page can be crafted to take very long."""


def html_to_text(page: str, limits: ReadLimits = UNLIMITED, chunk: int = CHUNK_CHARS) -> str:
    """The text of a page, one line per block."""
    reader = _Reader()
    for start in range(0, len(page), chunk):
        limits.check(f"{start} of {len(page)} characters were read")
        reader.feed(page[start : start + chunk])
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)


def declared_encoding(page: bytes) -> str | None:
    """The encoding that a page declares, if Python supports it."""
    declared = re.search(rb"""charset\s*=\s*["']?([\w:.-]{2,40})""", page[:2048], re.IGNORECASE)
    if declared is None:
        return None
    try:
        name = declared[1].decode("ascii")
        b" ".decode(name)
    except (LookupError, UnicodeDecodeError):
        return None
    return name


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skipped_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED_TAGS:
            self._skipped_depth += 1
        elif tag in _BLOCK_TAGS:
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED_TAGS:
            self._skipped_depth = max(0, self._skipped_depth - 1)
        elif tag in _BLOCK_TAGS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipped_depth:
            self.parts.append(" ".join(data.split("\n")))
