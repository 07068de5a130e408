"""Escapes text from outside for Markdown, so that it cannot become a heading, a link, a table or HTML."""

from __future__ import annotations

import re

from proctor.reporting.terminal.screen import escape_control
from proctor.reporting.wording import without_machine_paths

_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^[#+=-]")
"""Characters that are special anywhere, underscores outside of words, and what would start a heading or a list."""
_NUMBERED = re.compile(r"^([0-9]{1,9})([.)])(?=\s|$)")
_BACKTICKS = re.compile(r"`+")


def inline(text: str, limit: int = 2_000) -> str:
    """Text for a heading, a table cell or a list item: one line, with special characters escaped."""
    line = " ".join(escape_control(cut(without_machine_paths(text), limit)).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _NUMBERED.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", line))


def code(text: str, limit: int = 500) -> str:
    """Text as a code span; not for table cells, which a pipe would end even inside the span."""
    line = " ".join(escape_control(cut(without_machine_paths(text), limit)).split())
    if not line:
        return '""'
    ticks = "`" * (_longest_run(line) + 1)
    return f"{ticks} {line} {ticks}" if line[0] == "`" or line[-1] == "`" else f"{ticks}{line}{ticks}"


def fence(text: str, limit: int) -> str:
    """Text as a code block, fenced by more backticks than the text has in a row."""
    content = escape_control(without_machine_paths(text[:limit]))
    ticks = "`" * max(3, _longest_run(content) + 1)
    note = f"\n\n*{len(text):,} characters in all; the first {limit:,} are shown.*" if len(text) > limit else ""
    return f"{ticks}text\n{content}\n{ticks}{note}\n"


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def table_head(*titles: str) -> str:
    return row(*titles) + row(*("---" for _ in titles))


def cut(text: str, limit: int) -> str:
    """The first `limit` characters, with a note on the length; to be cut before escaping, so that no escape is cut."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters in all)"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
