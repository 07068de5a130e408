"""What reading a file yields, and the limits within which it is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from proctor.base.errors import ProctorError
from proctor.base.json_data import Json

MAX_BYTES = 20 * 2**20
"""A file that is larger is not read, nor text that is longer: no agent could take it in."""


class UnreadableFile(ProctorError):
    """A file of a test cannot be read, so that nothing can be asked about it."""


@dataclass(frozen=True, slots=True)
class FileText:
    """What a file says, and what there is to know about that."""

    text: str
    notes: tuple[str, ...] = ()
    """What could not be read in it: a picture, a page that was scanned."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    """Where it is from, how large it is, and which parts of it were read."""
    seconds: float = 0.0
    """How long it took to read."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Which part of a file is wanted, and until when."""

    options: Mapping[str, Json] = field(default_factory=dict)
    until: float = float("inf")
    """By the clock of `time.monotonic`."""

    def check(self, done: str) -> None:
        if time.monotonic() > self.until:
            raise UnreadableFile(f"takes too long to read; {done} in time")


UNLIMITED = ReadLimits()


def read_pages(pages: Sequence[Callable[[], str]], noun: str, limits: ReadLimits) -> FileText:
    """The pages that are asked for, the first being number 1; those without text are told of.

    A page that knows better why it has no text says so by raising `NoText`.
    """
    wanted = _page_numbers(limits.options.get("pages"), len(pages), noun)
    if not pages:
        return FileText("", (f"has no {noun}s",))
    several = len(pages) > 1
    told: list[str] = []
    notes: list[str] = []
    for number in wanted:
        limits.check(f"{len(told) + len(notes)} of {len(wanted)} {noun}s were read")
        try:
            text = (pages[number - 1]() or "").strip()
            if not text:
                raise NoText("yields no text")
        except NoText as reason:
            notes.append(f"{noun} {number} {reason}")
        else:
            told.append(f"[{noun} {number}]\n{text}" if several else text)
    return FileText("\n\n".join(told), tuple(notes))


class NoText(Exception):
    """Why a page has no text."""


def _page_numbers(given: Json, count: int, noun: str) -> list[int]:
    if given is None:
        return list(range(1, count + 1))
    numbers = given if isinstance(given, (list, tuple)) else [given]
    if wrong := [number for number in numbers if isinstance(number, bool) or not isinstance(number, int)]:
        raise UnreadableFile(f"is asked for {noun} {wrong[0]!r}; {noun}s are numbers, from 1")
    if beyond := [number for number in numbers if not 1 <= number <= count]:
        raise UnreadableFile(f"has {count} {noun}{'' if count == 1 else 's'}, and no {noun} {beyond[0]}")
    return list(dict.fromkeys(numbers)) or list(range(1, count + 1))
