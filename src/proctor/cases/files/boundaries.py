"""Which files a suite may attach, and how such a file is opened.

A suite is data, often from someone else, and the text of its files is sent to the agent and stored. So a file must be
in the suite's folder, or in a folder that the suite allows with `allow_files_from:`. Suites in Python may name any
file: code can read what it likes anyway.

The check is made on the file that was opened, not on its name. A name may lead through links, and a link may change
between a check and the opening. So the file is opened once, the name is resolved, and the file at the end of all links
must be the opened one and be in an allowed folder.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath

from proctor.base.source import ending
from proctor.cases.files.file_text import UnreadableFile
from proctor.cases.suite import Suite


class OutsideFile(UnreadableFile):
    """A file is not in a folder that its suite may read from."""


def allowed_folders(suite: Suite) -> tuple[Path, ...] | None:
    """The folders whose files the suite may attach; `None` for a suite in Python, which may attach any file."""
    if suite.path is None or suite.base is None or ending(suite.path) == ".py":
        return None
    return (suite.base, *(suite.base / folder for folder in suite.allow_files_from))


def open_file(base: Path, path: str, folders: Sequence[Path] | None) -> io.BufferedReader:
    """The opened file; raises `OutsideFile` if it is not in one of the folders, and `UnreadableFile` or `OSError`.

    A pipe or a device is not opened, because it may have no end.
    """
    if folders is not None and PureWindowsPath(path).drive and os.name != "nt":
        raise OutsideFile(outside_message(path))
    file = base / path
    if not stat.S_ISREG(file.stat().st_mode):
        if folders is not None and not _is_in(file.resolve(), folders):
            raise OutsideFile(outside_message(path))
        raise UnreadableFile(f"{path} cannot be read: it is {'a folder' if file.is_dir() else 'not a regular file'}")
    if folders is None:
        return file.open("rb")
    real = file.resolve()
    if not _is_in(real, folders):
        raise OutsideFile(outside_message(path))
    # Without `O_NONBLOCK`, a pipe that has taken the place of the file would block here.
    stream = os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)), "rb")
    opened = os.fstat(stream.fileno())
    if not stat.S_ISREG(opened.st_mode) or not _is_at(opened, file.resolve(), folders):
        stream.close()
        raise OutsideFile(outside_message(path))
    return stream


def is_outside(base: Path, path: str, folders: Sequence[Path]) -> bool:
    """Whether a name leads out of the folders, as far as it can be said before the file is opened."""
    if PureWindowsPath(path).drive and os.name != "nt":
        return True
    try:
        return not _is_in((base / path).resolve(), folders)
    except (OSError, ValueError):
        return False  # not a path; opening it says why


def _is_at(opened: os.stat_result, real: Path, folders: Sequence[Path]) -> bool:
    """Whether the opened file is the one at a path without links in one of the folders."""
    return _is_in(real, folders) and os.path.samestat(opened, real.lstat())


def _is_in(real: Path, folders: Sequence[Path]) -> bool:
    return any(real.is_relative_to(folder.resolve()) for folder in folders)


def outside_message(path: str) -> str:
    """Why a file is refused, and how to allow it."""
    folder = PureWindowsPath(path).parent if "\\" in path else Path(path).parent
    return (
        f"{path} is outside of the suite's folder; move it there, or add `allow_files_from: [{folder}]` to the suite "
        "(the folder where it really is, if it is a link)"
    )
