"""Suites written to files: which format a name asks for, and what it can hold."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from proctor.base.atomic_write import whole_file
from proctor.base.errors import StoreError, UsageError
from proctor.cases.formats.format_spec import Written
from proctor.cases.formats.loading import writable_formats
from proctor.cases.suite import Suite


def check_ending(form: str, target: Path) -> None:
    """A format is read again only from files of certain names."""
    endings = writable_formats()[form].DECLARED.endings
    if target.suffix not in endings:
        raise UsageError(f"{target.name!r} cannot hold the format {form}; it is kept in {' or '.join(endings)}")


def format_for(target: Path) -> str:
    """The format that a file's name asks for; a plain ending is the native format's."""
    known = writable_formats()
    for name, item in known.items():
        if any(fnmatchcase(target.name, pattern) for pattern in item.DECLARED.written_to):
            return name
    if target.suffix in known["native"].DECLARED.endings:
        return "native"
    raise UsageError(f"cannot tell a format from {target.name!r}; say --to {'|'.join(sorted(known))}")


def written_as(suites: list[Suite], form: str, target: Path) -> Written:
    """The suites as text of a format, with what it cannot express."""
    return writable_formats()[form].write(suites, target.suffix)


def write_file(target: Path, content: str | bytes) -> None:
    """Put a whole file in place of the old one, folders included, or leave the old one; raises `StoreError`."""
    try:
        with whole_file(target) as draft:
            draft.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from None


def read_bytes(path: Path | None) -> bytes | None:
    """What a file holds; `None` where there is none, or none that can be read."""
    try:
        return None if path is None else path.read_bytes()
    except OSError:
        return None
