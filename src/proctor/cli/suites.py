"""Loads the suites that a command line names, and says which files in its folders were skipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from proctor.cases.formats.folders import SkippedFile
from proctor.cases.formats.loading import load
from proctor.cases.suite import Suite
from proctor.cli.output import say
from proctor.reporting.wording import MAX_SKIPPED_FILES, skipped_files_text


def load_suites(paths: Iterable[str | Path]) -> list[Suite]:
    """The suites, with a note on standard error about files in folders that are not suites."""
    skipped: list[SkippedFile] = []
    suites = load(paths, skipped=skipped)
    say_skipped(reasons_by_file(skipped))
    return suites


def reasons_by_file(skipped: Iterable[SkippedFile]) -> dict[str, str]:
    """Why each file was skipped, as runs store it."""
    return {str(item.path): item.reason for item in skipped}


def say_skipped(files: Mapping[str, str], *, verbose: bool = False, has_verbose: bool = False) -> None:
    """Print a note about the skipped files on standard error: the first ones, or all if `verbose` is set.

    `has_verbose` says that the command has the option `-v`, which the note then points to.
    """
    if not files:
        return
    if not verbose:
        hint = "; -v lists them" if has_verbose and len(files) > MAX_SKIPPED_FILES else ""
        say(f"note: skipped {skipped_files_text(files)}{hint}", err=True)
        return
    say("note: these files are not suites and were skipped:", err=True)
    for path, reason in files.items():
        say(f"  {path}: {reason}", err=True)
