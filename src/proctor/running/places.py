"""Points into a suite's file, also for what is only found out after it was read."""

from __future__ import annotations

from pathlib import Path


def line_with(path: Path | None, text: str) -> int | None:
    """The first line of a file that mentions something, so that a problem found late still points into the file."""
    if path is None or not text or not path.is_file():
        return None
    content = path.read_text(encoding="utf-8", errors="replace")
    at = content.find(text)
    return content.count("\n", 0, at) + 1 if at >= 0 else None
