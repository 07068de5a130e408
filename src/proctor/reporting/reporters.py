"""The kinds of reports, the file that each is written to, and writing them.

A kind of report is one row: its name, the ending of its files, its help, and the function that writes it. The options
`--html`, `--md`, `--json` and `--junit` are derived from `REPORTERS`. `--report [KIND=]FILE` reaches every kind, also
those of other packages, which register them with `Plugin.reporters` (`proctor.plugins`).

Targets are checked before anything runs: `check_targets` checks the paths, and `refuse_overwriting` compares them with
the files that the command reads. Each report is then written completely or not at all, and one that fails does not stop
the others.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from proctor.base.documents import did_you_mean
from proctor.base.errors import ProctorError, StoreError, UsageError, one_line
from proctor.plugins import Reporter, load, plugins
from proctor.reporting.output import STANDARD_OUTPUT, open_text, refuse_foreign_file, write_document
from proctor.results.run import Run
from proctor.results.verdict import RunVerdict

Writer = Callable[[Run, RunVerdict, TextIO], None]

REPORTERS = (
    Reporter(
        name="html", suffix=".html", help="Write an HTML report.", write="proctor.reporting.html.report_page:write"
    ),
    Reporter(name="md", suffix=".md", help="Write a Markdown report.", write="proctor.reporting.markdown.report:write"),
    Reporter(name="json", suffix=".json", help="Write a JSON report.", write="proctor.reporting.json_report:write"),
    Reporter(name="junit", suffix=".xml", help="Write a JUnit XML report.", write="proctor.reporting.junit:write"),
)
"""The reports that have their own option."""

OTHER_REPORTERS = (
    Reporter(name="csv", suffix=".csv", help="Write the scores as CSV.", write="proctor.reporting.tables:write"),
    Reporter(
        name="code-quality",
        help="Write GitLab's code quality report.",
        write="proctor.reporting.build_findings:write",
    ),
)
"""The other reports, which only `--report` writes."""

_TARGET = re.compile(r"([A-Za-z][\w-]*)=(.*)", re.DOTALL)


def reporters() -> Iterator[Reporter]:
    """Every kind of report; plugins are loaded only if the iteration gets to them."""
    yield from (*REPORTERS, *OTHER_REPORTERS)
    for plugin in plugins():
        yield from plugin.reporters


def find_reporter(name: str) -> Reporter:
    """The kind of report with this name; raises `UsageError` if there is none."""
    names: list[str] = []
    for reporter in reporters():
        if reporter.name == name:
            return reporter
        names.append(reporter.name)
    hint = did_you_mean(name, names) or f"; available: {', '.join(names)}"
    raise UsageError(f"unknown report {name!r}{hint}")


def parse_target(text: str) -> tuple[str, str]:
    """The kind of report and its file, from `KIND=FILE`, or from `FILE`, whose ending then decides the kind."""
    if match := _TARGET.fullmatch(text):
        return find_reporter(match[1]).name, match[2]
    suffix = Path(text).suffix.lower()
    kind = next((reporter.name for reporter in reporters() if reporter.suffix and reporter.suffix == suffix), None)
    if kind is None:
        endings = ", ".join(f"{reporter.name} ({reporter.suffix})" for reporter in reporters() if reporter.suffix)
        raise UsageError(f"--report {text}: unknown file ending; write KIND=FILE, or use one of {endings}")
    return kind, text


def check_targets(targets: Mapping[str, str]) -> None:
    """Raise `UsageError` if a report has no file, two have the same file, or a file has the wrong ending.

    The ending protects suites: with a forgotten FILE, `--json suite.yaml` would overwrite the suite.
    """
    for name, path in targets.items():
        option = _option(name)
        if not path.strip():
            raise UsageError(f"{option} needs a file, or - for standard output")
        suffix = next((reporter.suffix for reporter in reporters() if reporter.name == name), "")
        if suffix and not _is_special(path) and Path(path).suffix.lower() != suffix:
            hint = f"--{name} report{suffix}" if option == f"--{name}" else f"{option}report{suffix}"
            raise UsageError(f"{option} takes a file to write that ends in {suffix}, not {path!r}; for example {hint}")
        if path != STANDARD_OUTPUT and Path(path).is_dir():
            raise UsageError(f"{option}: {path} is a folder")
    _refuse_shared_paths(targets)


def refuse_overwriting(targets: Mapping[str, str], files: Iterable[Path | str | None]) -> None:
    """Raise `UsageError` if a report would overwrite one of the files that the command reads, or one of somebody else.

    JSON and CSV are what data is written in too, and not every file that an agent or a suite uses is known here.
    Proctor recognizes its own documents in these formats, so it overwrites no others.
    """
    for path in files if targets else ():
        for name, target in targets.items():
            if path is not None and target != STANDARD_OUTPUT and _is_same_file(Path(target), Path(path)):
                raise UsageError(f"{_request(name, target)} would overwrite a file that this command reads")
    for name, target in targets.items():
        if name in _RECOGNIZED:
            refuse_foreign_file(_request(name, target), target)


_RECOGNIZED = ("json", "csv")
"""Reports that `is_own_output` recognizes."""


def write_reports(
    run: Run, verdict: RunVerdict, targets: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> list[str]:
    """Write each report to its path (`-` is standard output) and return the paths written.

    `targets` has the path of each report by its kind. With `GITHUB_STEP_SUMMARY` in `environ`, a summary is appended
    to that file. Raises `UsageError` before anything is written if a kind is unknown, and `StoreError` at the end with
    everything that could not be written; `UsageError` if this run cannot have the reports.
    """
    writers = {name: _load_writer(find_reporter(name)) for name in targets}
    _refuse_shared_paths(targets)
    written: list[str] = []
    failures: list[str] = []
    kind: type[ProctorError] = UsageError
    for name, path in targets.items():
        try:
            _write_to(path, run, verdict, writers[name])
        except Exception as error:
            failures.append(f"the {name} report could not be written to {path}: {one_line(error)}")
            kind = kind if isinstance(error, UsageError) else StoreError
            continue
        if path != STANDARD_OUTPUT:
            written.append(path)
    if page := (environ or {}).get("GITHUB_STEP_SUMMARY"):
        try:
            _append_step_summary(Path(page), run, verdict)
        except Exception as error:
            failures.append(f"the step summary could not be written to {page}: {one_line(error)}")
            kind = StoreError
    if failures:
        raise kind("\n".join(failures))
    return written


def _load_writer(reporter: Reporter) -> Writer:
    try:
        return load(reporter.write)
    except Exception as error:
        reason = f"the report {reporter.name!r} ({reporter.write}) could not be loaded: {one_line(error)}"
        raise UsageError(reason) from error


def _option(name: str) -> str:
    """How the report is requested on the command line."""
    return f"--{name}" if any(reporter.name == name for reporter in REPORTERS) else f"--report {name}="


def _request(name: str, path: str) -> str:
    """The option of a report with its file."""
    option = _option(name)
    return f"{option}{path}" if option.endswith("=") else f"{option} {path}"


def _is_special(path: str) -> bool:
    """Whether the path is standard output, or a device or pipe, which have no endings."""
    return path == STANDARD_OUTPUT or (Path(path).exists() and not Path(path).is_file())


def _is_same_file(first: Path, second: Path) -> bool:
    if first.resolve() == second.resolve():
        return True
    return first.is_file() and second.is_file() and first.samefile(second)


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
    # Imported here: every run imports this module for its options, and few run in a GitHub workflow.
    from proctor.reporting.markdown.ci_pages import write_step_summary

    text = io.StringIO()
    write_step_summary(run, verdict, text)
    with open_text(page, "a") as out:
        out.write(text.getvalue())
