"""Writes the reports that were asked for, each whole or not at all, and one that fails never stops the others."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast

from proctor.base.errors import StoreError, UsageError
from proctor.base.references import describe
from proctor.base.whole_files import whole_file
from proctor.reporting.terminal.screen import Outlet, without_commands
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict

Writer = Callable[[Run, RunVerdict, TextIO], None]

SHIPPED = {
    "md": "markdown.report",
    "json": "json_report",
    "junit": "junit",
    "html": "html.report_page",
    "csv": "tables",
    "code-quality": "build_findings",
}
STANDARD_OUTPUT = "-"


def write_reports(
    run: Run, verdict: RunVerdict, targets: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> list[str]:
    """Write each report to its path (`-` is standard output) and return the paths written.

    With `GITHUB_STEP_SUMMARY` in `environ`, a summary is appended to that file. Raises `UsageError` before anything is
    written if a report is not known, and `StoreError` afterwards with everything that could not be written.
    """
    writers = {name: find_writer(name) for name in targets}
    _refuse_shared_paths(targets)
    written: list[str] = []
    failures: list[str] = []
    for name, path in targets.items():
        try:
            _write_to(path, run, verdict, writers[name])
        except Exception as error:
            failures.append(f"the {name} report could not be written to {path}: {describe(error)}")
            continue
        if path != STANDARD_OUTPUT:
            written.append(path)
    if page := (environ or {}).get("GITHUB_STEP_SUMMARY"):
        try:
            _append_step_summary(Path(page), run, verdict)
        except Exception as error:
            failures.append(f"the step summary could not be written to {page}: {describe(error)}")
    if failures:
        raise StoreError("\n".join(failures))
    return written


def find_writer(name: str) -> Writer:
    """The shipped report of that name, or the entry point of the group `proctor.reporters`."""
    import importlib

    if name in SHIPPED:
        shipped: Writer = importlib.import_module(f"proctor.reporting.{SHIPPED[name]}").write
        return shipped
    from importlib.metadata import entry_points

    for entry in entry_points(group="proctor.reporters", name=name):
        try:
            loaded: Writer = entry.load()
        except Exception as error:
            raise UsageError(f"the report {name!r} ({entry.value}) could not be loaded: {describe(error)}") from error
        return loaded
    raise UsageError(f"no report is called {name!r}; there are {', '.join(SHIPPED)}")


def _refuse_shared_paths(targets: Mapping[str, str]) -> None:
    names: dict[str, str] = {}
    for name, path in targets.items():
        key = path if path == STANDARD_OUTPUT else str(Path(path).resolve())
        if key in names:
            where = "standard output" if path == STANDARD_OUTPUT else path
            raise UsageError(f"the reports {names[key]} and {name} would both go to {where}")
        names[key] = name


def _write_to(path: str, run: Run, verdict: RunVerdict, writer: Writer) -> None:
    write_document(path, lambda out: writer(run, verdict, out))


def write_document(path: str, write: Callable[[TextIO], object]) -> None:
    """Write one document, whole or not at all; `-` is standard output."""
    if path == STANDARD_OUTPUT:
        _write_to_standard_output(write)
        return
    with whole_file(Path(path)) as draft, _open(draft, "w") as out:
        write(out)


def _open(path: Path, mode: str) -> TextIO:
    """Always UTF-8; a plug-in's lone surrogate is spelt out instead of losing the report."""
    return path.open(mode, encoding="utf-8", errors="backslashreplace", newline="\n")  # type: ignore[return-value]


def _write_to_standard_output(write: Callable[[TextIO], object]) -> None:
    """Documents are UTF-8 whatever the terminal is; a reader that goes away early (`| head`) is no failure."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        write(cast(TextIO, Outlet(sys.stdout)))
        return
    with suppress(OSError):
        sys.stdout.flush()
    wrapper = io.TextIOWrapper(buffer, encoding="utf-8", newline="\n")
    outlet = Outlet(wrapper)
    document = io.StringIO()
    try:
        write(document)
        outlet.write(without_commands(document.getvalue()).replace("\x1b", "\\x1b"))
    finally:
        outlet.flush()
        with suppress(OSError):
            wrapper.detach()


def _append_step_summary(page: Path, run: Run, verdict: RunVerdict) -> None:
    from proctor.reporting.markdown.ci_pages import write_step_summary

    text = io.StringIO()
    write_step_summary(run, verdict, text)
    with _open(page, "a") as out:
        out.write(text.getvalue())
