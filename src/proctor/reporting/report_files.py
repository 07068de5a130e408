"""Writes the reports that were asked for, each whole or not at all, and one that fails never stops the others."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

from proctor.base.errors import StoreError, UsageError, one_line
from proctor.plugins import load as load_target
from proctor.plugins import plugins
from proctor.reporting import build_findings, json_report, junit, tables
from proctor.reporting.html import report_page
from proctor.reporting.markdown import report
from proctor.reporting.markdown.ci_pages import write_step_summary
from proctor.reporting.output import STANDARD_OUTPUT, open_text, write_document
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict

Writer = Callable[[Run, RunVerdict, TextIO], None]

SHIPPED: Mapping[str, Writer] = {
    "md": report.write,
    "json": json_report.write,
    "junit": junit.write,
    "html": report_page.write,
    "csv": tables.write,
    "code-quality": build_findings.write,
}


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
            failures.append(f"the {name} report could not be written to {path}: {one_line(error)}")
            continue
        if path != STANDARD_OUTPUT:
            written.append(path)
    if page := (environ or {}).get("GITHUB_STEP_SUMMARY"):
        try:
            _append_step_summary(Path(page), run, verdict)
        except Exception as error:
            failures.append(f"the step summary could not be written to {page}: {one_line(error)}")
    if failures:
        raise StoreError("\n".join(failures))
    return written


def find_writer(name: str) -> Writer:
    """The shipped report of that name, or the entry point of the group `proctor.reporters`."""
    if name in SHIPPED:
        return SHIPPED[name]
    for reporter in (item for plugin in plugins() for item in plugin.reporters if item.name == name):
        try:
            return load_target(reporter.write)
        except Exception as error:
            raise UsageError(
                f"the report {name!r} ({reporter.write}) could not be loaded: {one_line(error)}"
            ) from error
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


def _append_step_summary(page: Path, run: Run, verdict: RunVerdict) -> None:
    text = io.StringIO()
    write_step_summary(run, verdict, text)
    with open_text(page, "a") as out:
        out.write(text.getvalue())
