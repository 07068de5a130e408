"""A digest of each file, stored with its case: a stored answer is reused only for the same contents."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from proctor.cases.files.boundaries import open_file
from proctor.cases.files.file_text import UnreadableFile
from proctor.cases.suite import AttachedFile, Case, Turn

DIGESTS_KEY = "x-file-contents"
"""The key in a turn for the digests of its files, in their order; `None` for a file without one."""


class FileDigests:
    """Computes the digests of the files of one suite; a file that several cases name is read once."""

    def __init__(self, base: Path | None, folders: Sequence[Path] | None = None) -> None:
        """`folders` are those in which files may be (`boundaries.py`); others are not read."""
        self._base = base or Path.cwd()
        self._folders = folders
        self._known: dict[str, str | None] = {}

    def with_digests(self, case: Case) -> Case:
        """The case with the current digests of its files; a file that cannot be read now keeps its stored digest."""
        if not any(turn.files for turn in case.turns):
            return case
        return replace(case, turns=tuple(self._turn(turn) for turn in case.turns))

    def _turn(self, turn: Turn) -> Turn:
        before = digests_of(turn)
        now = [self._digest_of(file) or stored for file, stored in zip(turn.files, before, strict=True)]
        return turn if now == before else replace(turn, extra={**turn.extra, DIGESTS_KEY: now})

    def _digest_of(self, file: AttachedFile) -> str | None:
        path = file.path
        if path is None:
            return None
        if path not in self._known:
            self._known[path] = _digest(self._base, path, self._folders)
        return self._known[path]


def digests_of(turn: Turn) -> Sequence[str | None]:
    """The stored digest of each file of a turn; `None` for a file that was never read."""
    stored = turn.extra.get(DIGESTS_KEY)
    if not isinstance(stored, list) or len(stored) != len(turn.files):
        return [None] * len(turn.files)
    return [item if isinstance(item, str) else None for item in stored]


def _digest(base: Path, path: str, folders: Sequence[Path] | None) -> str | None:
    """The digest of a file; `None` if it cannot be read or is not allowed."""
    try:
        with open_file(base, path, folders) as stream:
            return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except (OSError, ValueError, UnreadableFile):
        return None
