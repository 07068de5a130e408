"""Text from outside as Markdown that shows it and nothing else: no heading, link, table or HTML can come out of it."""

from __future__ import annotations

import re

from proctor.reporting.terminal.screen import escape_control

_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^[#+=-]")
"""What means something anywhere, an underscore unless it is inside a word, and what would begin a heading or a list."""
_NUMBERED = re.compile(r"^([0-9]{1,9})([.)])(?=\s|$)")
_BACKTICKS = re.compile(r"`+")


def inline(text: str, limit: int = 2_000) -> str:
    """Text for a heading, a table cell or a list item: one line, every special character escaped."""
    words = " ".join(escape_control(cut(text, limit)).split())
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", words))


def code(text: str, limit: int = 500) -> str:
    """Text as a code span; not for table cells, where a pipe would still end the cell."""
    words = " ".join(escape_control(cut(text, limit)).split())
    if not words:
        return '""'
    ticks = "`" * (_longest_run(words) + 1)
    return f"{ticks} {words} {ticks}" if words[0] == "`" or words[-1] == "`" else f"{ticks}{words}{ticks}"


def fence(text: str, limit: int) -> str:
    """Text as a block of its own, behind more backticks than it has itself."""
    shown = escape_control(text[:limit])
    ticks = "`" * max(3, _longest_run(shown) + 1)
    note = f"\n\n*{len(text):,} characters in all; the first {limit:,} are shown.*" if len(text) > limit else ""
    return f"{ticks}text\n{shown}\n{ticks}{note}\n"


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def table_head(*titles: str) -> str:
    return row(*titles) + row(*("---" for _ in titles))


def cut(text: str, limit: int) -> str:
    """The beginning of a long text, cut before it is escaped so that an escape is never cut in two."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters in all)"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
