"""What a person reads of a page: its words, without marks, scripts and styles."""

from __future__ import annotations

from html.parser import HTMLParser

_UNREAD = frozenset({"script", "style", "noscript", "template", "svg"})
_BREAKS = frozenset("p div br li tr h1 h2 h3 h4 h5 h6 section article header footer table ul ol pre hr title".split())


def text_of_html(page: str) -> str:
    """The words of a page, one line for each block."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)


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
