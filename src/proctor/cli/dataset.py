"""`proctor dataset`: validate, convert and list suites. Plugins of tools add commands to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.cases.formats import unfinished_suites
from proctor.cases.formats.loading import load
from proctor.cases.relocate import relocate
from proctor.cases.suite import Suite
from proctor.cli.help_pages import DocumentedGroup
from proctor.cli.options import json_option
from proctor.cli.output import in_file_order, reserve_stdout, say, say_json
from proctor.cli.suite_files import check_ending, format_for, write_file, write_suites
from proctor.cli.suites import load_suites
from proctor.config import read_configuration
from proctor.results.trace_cases import suite_from_traces
from proctor.running.plan import check_references
from proctor.tracing.otlp import is_otlp, read_trace_file


@click.group(
    "dataset",
    cls=DocumentedGroup,
    examples=("proctor dataset validate suite.yaml", "proctor dataset convert faq.test.json suite.yaml"),
)
def command() -> None:
    """Validate, convert and list suites and datasets."""


@command.command("validate", short_help="Report every problem in suite files.")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option(
    "--load", "loads", is_flag=True, help="Also import what suites name as file.py:name, which runs those files."
)
@json_option
def validate(paths: tuple[str, ...], loads: bool, as_json: bool) -> int:
    """Report every problem in suite files, with file and line. Runs no code unless --load is given.

    PATHS are files or folders (default: the current folder). Agents and evaluators that suites name must exist.
    """
    with read_configuration().environment(), reserve_stdout(as_json):
        suites, problems = _load_all(paths)
        problems = in_file_order([*problems, *_reference_problems(suites, loads)])
    warnings = [warning for suite in suites for warning in suite.warnings]
    if as_json:
        say_json("validation", {"problems": list(map(_as_json, problems)), "warnings": list(map(_as_json, warnings))})
        return 2 if problems else 0
    for warning in warnings:
        say(f"warning: {warning}", err=True)
    for problem in problems:
        say(f"error: {problem}")
    if problems:
        files = len({problem.path for problem in problems})
        say(f"{len(problems)} problem{_s(len(problems))} in {files} file{_s(files)}")
        return 2
    for suite in suites:
        say(f"{suite.path}: ok ({suite.format}, {len(suite.cases)} case{_s(len(suite.cases))})")
    return 0


@command.command("list", short_help="List suites with their cases and agent.")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option("--cases", "with_cases", is_flag=True, help="Also list the cases of each suite.")
@json_option
def list_(paths: tuple[str, ...], with_cases: bool, as_json: bool) -> int:
    """List suites with their format, number of cases, agent and evaluators.

    Without PATHS, the suites in the current folder and in the dataset folder are listed.
    """
    with reserve_stdout(as_json):
        suites = load_suites(paths) if paths else _of_this_project()
    if as_json:
        say_json("suite-row", [_summary(suite) for suite in suites])
        return 0
    for suite in suites:
        names = ", ".join(spec.title for spec in suite.evaluators) or "per case"
        agent = suite.agent if isinstance(suite.agent, str) else "described in the file" if suite.agent else "none"
        say(f"{suite.name}  ({suite.format}, {suite.path})")
        say(f"  {len(suite.cases)} case{_s(len(suite.cases))}, agent: {agent}, evaluators: {names}")
        for case in suite.cases if with_cases else ():
            tags = f"  [{', '.join(case.tags)}]" if case.tags else ""
            say(f"    {case.id}{tags}  {case.description}".rstrip())
    return 0


@command.command("convert", short_help="Convert a suite of any format to the native one.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO", type=click.Path(path_type=Path))
@click.option("--to", "name", metavar="FORMAT", help="Format to write: native or csv (default: by the ending of TO).")
@click.option("--force", is_flag=True, help="Overwrite TO if it exists.")
def convert(source: str, target: Path, name: str | None, force: bool) -> int:
    """Convert the suite in FROM to native YAML, JSON or JSON Lines, or to CSV, and list what cannot be expressed.

    A file of OTLP JSON becomes one case per trace, as with `proctor trace to-case`.
    """
    form = name or format_for(target)
    check_ending(form, target)
    suites = [relocate(suite, target.parent) for suite in _of_traces(source) or load([source])]
    written = write_suites(suites, form, target)
    if target.exists() and not force:
        raise UsageError(f"{target} exists; add --force to overwrite it")
    write_file(target, written.text)
    for loss in written.losses:
        say(f"not expressed: {loss}", err=True)
    again, problems = _load_all([str(target)])
    cases = sum(len(suite.cases) for suite in again)
    lost = f"; {len(written.losses)} thing{_s(len(written.losses))} could not be expressed" if written.losses else ""
    say(f"wrote {target} ({cases} case{_s(cases)}){lost}")
    for problem in problems:
        say(f"warning: the result is not a valid suite: {problem}", err=True)
    return 2 if problems else 0


def _of_traces(source: str) -> list[Suite]:
    """The cases of a file of traces; empty if it is not one."""
    path = Path(source)
    if path.suffix not in (".json", ".jsonl", ".gz") or not is_otlp(path):
        return []
    converted = suite_from_traces(read_trace_file(path), path)
    for note in converted.notes:
        say(f"note: {note}", err=True)
    return [converted.suite]


def _of_this_project() -> list[Suite]:
    """The suites in the working folder, and unfinished ones in the dataset folder."""
    unfinished = {_real(suite): suite for suite in unfinished_suites()}
    suites, problems = _load_all(())
    suites = [suite for suite in suites if _real(suite) not in unfinished]
    serious = [problem for problem in problems if problem.path is None or problem.path.resolve() not in unfinished]
    nothing_else = any(problem.path == Path() for problem in serious)  # the folder has no suite
    if serious and not (unfinished and nothing_else):
        raise InvalidSuite(serious, suites)
    return [*suites, *unfinished.values()]


def _real(suite: Suite) -> Path:
    return Path() if suite.path is None else suite.path.resolve()


def _load_all(paths: Sequence[str]) -> tuple[list[Suite], list[Problem]]:
    """All suites that can be read, and all problems of the others."""
    suites: list[Suite] = []
    problems: list[Problem] = []
    for path in paths or (".",):
        try:
            suites.extend(load_suites([path]))
        except InvalidSuite as error:
            problems.extend(error.problems)
            suites.extend(error.partial_suites)
    return suites, problems


def _reference_problems(suites: Sequence[Suite], loads: bool) -> list[Problem]:
    return [problem for suite in suites for problem in check_references(suite, load=loads)]


def _summary(suite: Suite) -> dict[str, object]:
    return {
        "name": suite.name,
        "path": None if suite.path is None else str(suite.path),
        "format": suite.format,
        "agent": suite.agent,
        "evaluators": [spec.title for spec in suite.evaluators],
        "cases": [case.id for case in suite.cases],
    }


def _as_json(problem: Problem) -> dict[str, object]:
    path = None if problem.path is None else str(problem.path)
    return {"path": path, "line": problem.line, "where": problem.where, "message": problem.message}


def _s(count: int) -> str:
    return "" if count == 1 else "s"
