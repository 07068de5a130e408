"""Suites written to files: which format a name asks for, and what it can hold."""

from __future__ import annotations

from pathlib import Path

from proctor.base.atomic_write import atomic_write
from proctor.base.errors import StoreError, UsageError
from proctor.cases.formats import CSV, NATIVE, formats, is_named_like, table
from proctor.cases.formats.native.writer import SuiteText, write_text
from proctor.cases.suite import Suite

WRITABLE_FORMATS = {known.name: known for known in (NATIVE, CSV)}
"""The formats that suites are written in; those of other tools are only read."""


def check_ending(form: str, target: Path) -> None:
    """A format is read again only from files of certain names."""
    if form not in WRITABLE_FORMATS:
        raise UsageError(f"suites are written as native or csv, not as {form!r}; formats of other tools are only read")
    suffixes = WRITABLE_FORMATS[form].suffixes
    if target.suffix not in suffixes:
        raise UsageError(f"{target.name!r} cannot hold the format {form}; it is kept in {' or '.join(suffixes)}")


def format_for(target: Path) -> str:
    """The format that a file's name asks for; a name that files of another tool have is refused."""
    for known in formats():
        if known.name not in WRITABLE_FORMATS and is_named_like(known, target):
            raise UsageError(
                f"{target.name!r} is a name of {known.name} files, which are only read; suites are written as native "
                f"(such as {target.name.partition('.')[0]}.proctor.yaml) or csv"
            )
    found = next((known.name for known in WRITABLE_FORMATS.values() if target.suffix in known.suffixes), None)
    if found is None:
        raise UsageError(f"cannot tell a format from {target.name!r}; say --to {'|'.join(sorted(WRITABLE_FORMATS))}")
    return found


def write_suites(suites: list[Suite], form: str, target: Path) -> SuiteText:
    """The suites as text of a format, with what it cannot express."""
    return table.write(suites) if form == CSV.name else write_text(suites, target.suffix)


def write_file(target: Path, content: str | bytes) -> None:
    """Put a whole file in place of the old one, folders included, or leave the old one; raises `StoreError`."""
    try:
        with atomic_write(target) as draft:
            draft.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from None


def read_bytes(path: Path | None) -> bytes | None:
    """What a file holds; `None` where there is none, or none that can be read."""
    try:
        return None if path is None else path.read_bytes()
    except OSError:
        return None
