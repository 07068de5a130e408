"""Writing suites to files: the format that a file name implies, and the text."""

from __future__ import annotations

from pathlib import Path

from proctor.base.atomic_write import atomic_write
from proctor.base.errors import StoreError, UsageError
from proctor.cases.formats import CSV, NATIVE, formats, is_named_like, table
from proctor.cases.formats.native.writer import SuiteText, write_text
from proctor.cases.suite import Suite

WRITABLE_FORMATS = {known.name: known for known in (NATIVE, CSV)}
"""The formats that Proctor writes; those of other tools are only read."""


def check_ending(form: str, target: Path) -> None:
    """Raise `UsageError` unless files with the ending of `target` are read in this format."""
    if form not in WRITABLE_FORMATS:
        raise UsageError(
            f"Proctor writes suites as native or csv, not as {form!r}; it only reads formats of other tools"
        )
    suffixes = WRITABLE_FORMATS[form].suffixes
    if target.suffix not in suffixes:
        raise UsageError(f"{target.name!r}: the format {form} needs the ending {' or '.join(suffixes)}")


def format_for(target: Path) -> str:
    """The format that a file name implies; raises `UsageError` for names that belong to another tool."""
    for known in formats():
        if known.name not in WRITABLE_FORMATS and is_named_like(known, target):
            raise UsageError(
                f"{target.name!r} is a name of {known.name} files, which Proctor only reads; choose a name for native "
                f"(such as {target.name.partition('.')[0]}.proctor.yaml) or csv"
            )
    format_name = next((known.name for known in WRITABLE_FORMATS.values() if target.suffix in known.suffixes), None)
    if format_name is None:
        raise UsageError(f"cannot tell the format from {target.name!r}; add --to {'|'.join(sorted(WRITABLE_FORMATS))}")
    return format_name


def write_suites(suites: list[Suite], form: str, target: Path) -> SuiteText:
    """The text of suites in a format, with what the format cannot express."""
    return table.write(suites) if form == CSV.name else write_text(suites, target.suffix)


def write_file(target: Path, content: str | bytes) -> None:
    """Write a file completely or not at all, and create its folders; raises `StoreError`."""
    try:
        with atomic_write(target) as draft:
            draft.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from None


def read_bytes(path: Path | None) -> bytes | None:
    """The contents of the file, or None if it is missing or unreadable."""
    try:
        return None if path is None else path.read_bytes()
    except OSError:
        return None
