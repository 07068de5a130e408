"""Writes one document to a file, completely or not at all, or to standard output."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast

from proctor.base.atomic_write import atomic_write
from proctor.base.errors import UsageError
from proctor.base.own_files import is_own_output
from proctor.reporting.terminal.screen import SafeStream, escape_ci_commands

STANDARD_OUTPUT = "-"


def write_document(path: str, write: Callable[[TextIO], object]) -> None:
    """Write one document, completely or not at all; the path `-` is standard output."""
    if path == STANDARD_OUTPUT:
        _write_to_standard_output(write)
        return
    with atomic_write(Path(path)) as draft, open_text(draft, "w") as out:
        write(out)


def refuse_foreign_file(option: str, path: str, is_own: Callable[[Path], bool] = is_own_output) -> None:
    """Raise `UsageError` if the path is a file with content that Proctor did not write; `option` begins the message."""
    file = Path(path)
    if path != STANDARD_OUTPUT and file.is_file() and file.stat().st_size and not is_own(file):
        raise UsageError(
            f"{option} would overwrite a file that Proctor did not write; name another, or delete it first"
        )


def open_text(path: Path, mode: str) -> TextIO:
    """Open a file as UTF-8; a lone surrogate from a plugin is escaped, so that it does not cost the report."""
    return path.open(mode, encoding="utf-8", errors="backslashreplace", newline="\n")  # type: ignore[return-value]


def _write_to_standard_output(write: Callable[[TextIO], object]) -> None:
    """Write UTF-8, whatever the encoding of the terminal; a reader that closes the pipe early (`| head`) is fine."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        write(cast(TextIO, SafeStream(sys.stdout)))
        return
    with suppress(OSError):
        sys.stdout.flush()
    wrapper = io.TextIOWrapper(buffer, encoding="utf-8", newline="\n")
    stream = SafeStream(wrapper)
    document = io.StringIO()
    try:
        write(document)
        stream.write(escape_ci_commands(document.getvalue()).replace("\x1b", "\\x1b"))
    finally:
        stream.flush()
        with suppress(OSError):
            wrapper.detach()
