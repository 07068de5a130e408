"""Which prompt an agent had: the version that its instructions name, else a mark that changes with their text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from proctor.cases.formats.holodeck import EXTENSION
from proctor.cases.model import Suite
from proctor.cases.source import read_text
from proctor.declarative.front_matter import split_front_matter
from proctor.errors import InvalidSuite
from proctor.plain import Json, plain, show
from proctor.records import record

_NO_NOTES: Mapping[str, Json] = {}
_NOTED = ("version", "author", "description", "tags")


@record
class PromptVersion:
    """What instructions say of themselves at their head, and what identifies the text that is sent."""

    version: str
    """As the instructions say, else `auto-` and the beginning of `body_hash`."""
    author: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    source: str = "inline"
    """`inline` or `file`."""
    file_path: str | None = None
    body_hash: str = ""
    """SHA-256 of the text without its notes."""
    extra: Mapping[str, Json] | None = None
    """Whatever else is noted."""


def prompt_version_of(suite: Suite) -> PromptVersion | None:
    """The prompt as it is now; `None` where the file has none, or one that cannot be read."""
    kept: Any = suite.extra.get(EXTENSION) or {}
    given = kept.get("instructions")
    if not isinstance(given, Mapping):
        return None
    path = given.get("file")
    text, notes = given.get("inline"), _NO_NOTES
    if isinstance(path, str):
        file = (suite.base or Path.cwd()) / path
        with suppress(InvalidSuite, ValueError):  # broken notes are a part of the text
            text = read_text(file)
            notes, text = split_front_matter(file, text)
    if not isinstance(text, str):
        return None
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    tags = notes.get("tags")
    return PromptVersion(
        version=f"auto-{mark[:8]}" if notes.get("version") is None else show(notes["version"]),
        author=_text(notes.get("author")),
        description=_text(notes.get("description")),
        tags=tuple(show(tag) for tag in (tags if isinstance(tags, list) else [tags] if tags else [])),
        source="file" if isinstance(path, str) else "inline",
        file_path=path if isinstance(path, str) else None,
        body_hash=mark,
        extra={key: plain(value) for key, value in notes.items() if key not in _NOTED} or None,
    )


def _text(value: Json) -> str | None:
    return None if value is None else show(value)
