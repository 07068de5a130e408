"""The files of a program, by which `--reuse` and `--resume` notice that the program has changed.

A script imports other files, and no one can say which without running it. So all source files count that are in the
folder of a script that the command names, or below it; if it names none, those in the folder where it runs. Installed
packages count by their lock file. Data and prompts do not count, as with Python agents. If there are no such files, or
too many, the program is unknown, and its answers are not reused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.agents.opened_files import recording_nothing

SOURCE_SUFFIXES = frozenset(
    """.py .js .mjs .cjs .jsx .ts .mts .cts .tsx .go .rs .java .kt .rb .php .pl .lua .sh .bash .cs .swift .ex .exs .jl
    .r .scala .c .cc .cpp .h .hpp .clj .ps1""".split()
)
LOCK_FILES = frozenset(
    """package.json package-lock.json pnpm-lock.yaml yarn.lock bun.lock deno.lock uv.lock poetry.lock requirements.txt
    go.sum Cargo.lock Gemfile.lock""".split()
)
_IGNORED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "coverage"})
_MAX_FILES = 3000
_MAX_FILE_BYTES = 20 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ProgramFiles:
    """The hashes of a program's files by their path, and what is unknown about them."""

    digests: dict[str, str]
    unknown: tuple[str, ...] = ()

    @classmethod
    @recording_nothing()
    def of(cls, argv: Sequence[str], cwd: Path | None) -> ProgramFiles:
        """The files of the program that this command line starts in the folder `cwd`."""
        base = cwd or Path.cwd()
        named = list(_files_in_command(argv, base))
        digests = {name: _digest(file) for name, file in named}
        folders = {_source_folder(base / name, base) for name, file in named if file.suffix in SOURCE_SUFFIXES}
        for folder in folders or ({base} if not named else set()):
            for file in _sources(folder):
                digests[os.path.relpath(file, base)] = _digest(file)
                if len(digests) > _MAX_FILES:
                    return cls({}, (f"a program in {folder}, which has more than {_MAX_FILES:,} source files",))
        if not any(digests.values()):
            return cls(digests, (f"the program {argv[0]!r}, whose files are not known",))
        return cls(digests)


def _files_in_command(argv: Sequence[str], base: Path) -> Iterator[tuple[str, Path]]:
    """The files that the command line names, as it names them; the program itself only if it is below the folder."""
    for index, word in enumerate(argv):
        if word.startswith("-") or "\0" in word or len(word) > 4096 or (index == 0 and os.sep not in word):
            continue
        file = base / word
        try:
            if file.is_file() and (index > 0 or file.resolve().is_relative_to(base.resolve())):
                yield word, file
        except OSError:
            continue


def _source_folder(file: Path, base: Path) -> Path:
    """The folder whose sources count: the one with the package of the script, or else that of the script."""
    folder = file.resolve().parent
    root = base.resolve()
    for place in (folder, *folder.parents):
        if (place / "package.json").is_file():
            return place
        if place == root:
            break
    return folder


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _IGNORED_FOLDERS and not name.startswith("."))
        for name in sorted(files):
            if Path(name).suffix.lower() in SOURCE_SUFFIXES or name in LOCK_FILES:
                yield Path(place, name)


def _digest(file: Path) -> str:
    """The hash of a file; empty if it cannot be read or is too large to be a source file."""
    try:
        if file.stat().st_size > _MAX_FILE_BYTES:
            return ""
        return hashlib.blake2b(file.read_bytes(), digest_size=12).hexdigest()
    except OSError:
        return ""
