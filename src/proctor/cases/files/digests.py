"""A digest of each file, stored with its case: a stored answer is reused only for the same contents."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from proctor.cases.suite import AttachedFile, Case, Turn

DIGESTS_KEY = "x-file-contents"
"""The key under which a turn keeps them, in the order of its files; `None` where there is none."""


class FileDigests:
    """The files of one suite; one that several cases name is read once."""

    def __init__(self, base: Path | None) -> None:
        self._base = base or Path.cwd()
        self._known: dict[str, str | None] = {}

    def with_digests(self, case: Case) -> Case:
        """The case with the addresses of what its files say now; of a file that cannot be read, what it said before."""
        if not any(turn.files for turn in case.turns):
            return case
        return replace(case, turns=tuple(self._turn(turn) for turn in case.turns))

    def _turn(self, turn: Turn) -> Turn:
        before = digests_of(turn)
        now = [self._address(item) or kept for item, kept in zip(turn.files, before, strict=True)]
        return turn if now == before else replace(turn, extra={**turn.extra, DIGESTS_KEY: now})

    def _address(self, attachment: AttachedFile) -> str | None:
        path = attachment.path
        if path is None:
            return None
        if path not in self._known:
            self._known[path] = _digest(self._base, path)
        return self._known[path]


def digests_of(turn: Turn) -> Sequence[str | None]:
    """What is kept of each file of a turn; a file that was never looked at has none."""
    kept = turn.extra.get(DIGESTS_KEY)
    if not isinstance(kept, list) or len(kept) != len(turn.files):
        return [None] * len(turn.files)
    return [item if isinstance(item, str) else None for item in kept]


def _digest(base: Path, path: str) -> str | None:
    """`None` for what is not a plain file: a pipe or a device would never end."""
    try:
        file = base / path
        if not stat.S_ISREG(file.stat().st_mode):
            return None
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except (OSError, ValueError):
        return None
