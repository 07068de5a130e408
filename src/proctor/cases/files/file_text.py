"""The text of a file, and the limits for reading it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from proctor.base.errors import ProctorError
from proctor.base.json_data import Json

MAX_BYTES = 20 * 2**20
"""The largest file, and the longest text of a file, that is read: no agent could process more."""


class UnreadableFile(ProctorError):
    """A file of a case cannot be read, so the case cannot run."""


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, with notes and metadata."""

    text: str
    notes: tuple[str, ...] = ()
    """What could not be read: an image, a scanned page."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    """Its path or URL, its type and size, and which parts were read."""
    seconds: float = 0.0
    """How long it took to read."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Which part of a file to read, and by when."""

    options: Mapping[str, Json] = field(default_factory=dict)
    until: float = float("inf")
    """The deadline, on the clock of `time.monotonic`."""

    def check(self, done: str) -> None:
        """Raise `UnreadableFile` if the time is up; `done` says how far reading came."""
        if time.monotonic() > self.until:
            raise UnreadableFile(f"takes too long to read: {done} in time")


UNLIMITED = ReadLimits()


def read_pages(pages: Sequence[Callable[[], str]], noun: str, limits: ReadLimits) -> FileText:
    """The text of the pages in `limits.options`, or of all, with a note for each page without text.

    Pages are counted from 1. `noun` is what a page is called. The function of a page may raise `NoText` with the reason
    why it has none.
    """
    numbers = _page_numbers(limits.options.get("pages"), len(pages), noun)
    if not pages:
        return FileText("", (f"has no {noun}s",))
    several = len(pages) > 1
    texts: list[str] = []
    notes: list[str] = []
    for number in numbers:
        limits.check(f"{len(texts) + len(notes)} of {len(numbers)} {noun}s were read")
        try:
            text = (pages[number - 1]() or "").strip()
            if not text:
                raise NoText("has no text")
        except NoText as reason:
            notes.append(f"{noun} {number} {reason}")
        else:
            texts.append(f"[{noun} {number}]\n{text}" if several else text)
    return FileText("\n\n".join(texts), tuple(notes))


class NoText(Exception):
    """Why a page has no text."""


def _page_numbers(pages: Json, count: int, noun: str) -> list[int]:
    if pages is None:
        return list(range(1, count + 1))
    numbers = pages if isinstance(pages, (list, tuple)) else [pages]
    if wrong := [number for number in numbers if isinstance(number, bool) or not isinstance(number, int)]:
        raise UnreadableFile(f"has no {noun} {wrong[0]!r}; {noun}s are numbered from 1")
    if beyond := [number for number in numbers if not 1 <= number <= count]:
        raise UnreadableFile(f"has {count} {noun}{'' if count == 1 else 's'}, so there is no {noun} {beyond[0]}")
    return list(dict.fromkeys(numbers)) or list(range(1, count + 1))
