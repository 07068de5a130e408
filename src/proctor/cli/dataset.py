"""`proctor dataset`: validates, converts, lists and makes datasets, and fills them from traces."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import UNSET, Json
from proctor.base.references import is_reference
from proctor.cases.formats.loading import load
from proctor.cases.relocate import relocate
from proctor.cases.suite import Suite
from proctor.cli.help_pages import DocumentedGroup
from proctor.cli.options import F, json_option, parse_evaluators, store_option
from proctor.cli.output import by_place, reserve_stdout, say, say_json
from proctor.cli.suite_files import check_ending, format_for, write_file, written_as
from proctor.cli.trace_to_case import proposal_from_store, spans_of
from proctor.compat.pixie.datasets import DatasetStore, read_dataset
from proctor.config import read_configuration
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.from_trace import by_name, last_llm_call, root
from proctor.results.trace_cases import Proposal, suite_of_traces
from proctor.running.plan import unresolved
from proctor.tracing.otlp import find_traces, is_otlp
from proctor.tracing.spans import build_tree

SELECTIONS = ("root", "last_llm_call", "by_name")


def dataset_option(command: F) -> F:
    return click.option(
        "--dir",
        "folder",
        metavar="DIR",
        help="The dataset folder (default: $PROCTOR_DATASET_DIR, pixie_qa/datasets, or datasets).",
    )(command)


@click.group(
    "dataset",
    cls=DocumentedGroup,
    examples=("proctor dataset validate suite.yaml", "proctor dataset convert suite.yaml faq.test.json"),
)
def command() -> None:
    """Validate, convert and list suites; make datasets and fill them from traces."""


@command.command("validate", short_help="Report every problem of every file.")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option("--load", "loads", is_flag=True, help="Also load what they name as file.py:name, which runs those files.")
@json_option
def validate(paths: tuple[str, ...], loads: bool, as_json: bool) -> int:
    """Report every problem of every file, with file and line; what they name is looked for, and nothing is run."""
    with read_configuration().environment(), reserve_stdout(as_json):
        suites, problems = _load_all(paths)
        problems = by_place([*problems, *_unresolved(suites, loads)])
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


@command.command("list", short_help="List suites and what they hold.")
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option("--cases", "with_cases", is_flag=True, help="Also the cases of each.")
@json_option
def list_(paths: tuple[str, ...], with_cases: bool, as_json: bool) -> int:
    """List suites with their format, number of cases, agent and evaluators.

    Without paths: those of the working folder, and of the dataset folder wherever that is.
    """
    with reserve_stdout(as_json):
        suites = load(paths) if paths else _of_this_project()
    if as_json:
        say_json("suite-row", [_summary(suite) for suite in suites])
        return 0
    for suite in suites:
        names = ", ".join(spec.title for spec in suite.evaluators) or "per case"
        agent = (
            suite.agent if isinstance(suite.agent, str) else "described in the file" if suite.agent else "none named"
        )
        say(f"{suite.name}  ({suite.format}, {suite.path})")
        say(f"  {len(suite.cases)} case{_s(len(suite.cases))}, agent: {agent}, evaluators: {names}")
        for case in suite.cases if with_cases else ():
            tags = f"  [{', '.join(case.tags)}]" if case.tags else ""
            say(f"    {case.id}{tags}  {case.description}".rstrip())
    return 0


@command.command("create")
@click.argument("name")
@click.option("--runnable", metavar="F:NAME", help="The application that its entries are for.")
@click.option("--evaluator", "evaluators", multiple=True, metavar="E", help="Scores every entry; may be repeated.")
@dataset_option
def create(name: str, runnable: str | None, evaluators: tuple[str, ...], folder: str | None) -> int:
    """Make an empty dataset in the dataset folder."""
    say(create_dataset(name, runnable, evaluators, folder))
    return 0


@command.command("save", short_help="Add an entry to a dataset, made of a kept trace.")
@click.argument("name")
@click.option("--select", type=click.Choice(SELECTIONS), help="One span instead of the run as a whole.")
@click.option("--span-name", metavar="N", help="The span that --select by_name takes: the last of that name.")
@click.option("--trace", "trace_id", metavar="ID", default="last", help="A kept trace (default: the latest).")
@click.option(
    "--expected-output", metavar="FILE", help="JSON or text: what a right answer is like; - for standard input."
)
@click.option("--notes", metavar="TEXT", help="Kept with the entry's metadata.")
@dataset_option
@store_option
def save(name: str, **given: Any) -> int:
    """Add an entry to a dataset, made of a kept trace; the file's runnable and evaluators stay as they are."""
    message, warnings = save_entry(name, **given)
    for warning in warnings:
        say(f"note: {warning}", err=True)
    say(message)
    return 0


@command.command("convert", short_help="Write a suite of any format in the native one.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO", type=click.Path(path_type=Path))
@click.option("--to", "name", metavar="FORMAT", help="native or csv (default: by the ending of TO).")
@click.option("--force", is_flag=True, help="Overwrite.")
def convert(source: str, target: Path, name: str | None, force: bool) -> int:
    """Write a suite of any format as native YAML, JSON or JSON Lines, or as CSV; what that cannot hold is listed.

    A file of OTLP JSON becomes a case for each trace, as `proctor trace to-case` makes them.
    """
    form = name or format_for(target)
    check_ending(form, target)
    suites = [relocate(suite, target.parent) for suite in _of_traces(source) or load([source])]
    written = written_as(suites, form, target)
    if target.exists() and not force:
        raise UsageError(f"{target} exists; say --force to overwrite it")
    write_file(target, written.text)
    for loss in written.losses:
        say(f"not expressed: {loss}", err=True)
    again, problems = _load_all([str(target)])
    cases = sum(len(suite.cases) for suite in again)
    lost = f"; {len(written.losses)} thing{_s(len(written.losses))} could not be expressed" if written.losses else ""
    say(f"wrote {target} ({cases} case{_s(cases)}){lost}")
    for problem in problems:
        say(f"warning: what is left is not a suite: {problem}", err=True)
    return 2 if problems else 0


def _of_traces(source: str) -> list[Suite]:
    """The cases of a file of traces; none where it is no such file."""
    path = Path(source)
    if path.suffix not in (".json", ".jsonl", ".gz") or not is_otlp(path):
        return []
    made = suite_of_traces(find_traces(path), path)
    for note in made.notes:
        say(f"note: {note}", err=True)
    return [made.suite]


def _of_this_project() -> list[Suite]:
    """What can be read below the working folder, and the datasets of their folder, also those without entries yet."""
    datasets = {_real(suite): suite for suite in datasets_as_suites()}
    suites, problems = _load_all(())
    suites = [suite for suite in suites if _real(suite) not in datasets]
    grave = [problem for problem in problems if problem.path is None or problem.path.resolve() not in datasets]
    nothing_else = any(problem.path == Path() for problem in grave)  # the folder as a whole holds no suite
    if grave and not (datasets and nothing_else):
        raise InvalidSuite(grave, suites)
    return [*suites, *datasets.values()]


def _real(suite: Suite) -> Path:
    return Path() if suite.path is None else suite.path.resolve()


def _load_all(paths: Sequence[str]) -> tuple[list[Suite], list[Problem]]:
    """As much as can be read, and everything that is wrong with the rest."""
    suites: list[Suite] = []
    problems: list[Problem] = []
    for path in paths or (".",):
        try:
            suites.extend(load([path]))
        except InvalidSuite as error:
            problems.extend(error.problems)
            suites.extend(error.read)
    return suites, problems


def _unresolved(suites: Sequence[Suite], loads: bool) -> list[Problem]:
    return [problem for suite in suites for problem in unresolved(suite, load=loads)]


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


def datasets_as_suites() -> list[Suite]:
    """The datasets of their folder as far as they can be read, finished or not."""
    datasets = [read_dataset(details.path) for details in DatasetStore().list_details()]
    return [
        Suite(item.name, item.cases, item.evaluators, item.runnable, path=item.path, format="pixie")
        for item in datasets
    ]


def create_dataset(name: str, runnable: str | None, evaluators: tuple[str, ...], folder: str | None) -> str:
    """What to say of the dataset that was made."""
    if runnable is not None and not is_reference(runnable):
        raise UsageError(f"--runnable {runnable!r} is not a reference; write file.py:Name")
    made = _mended(
        lambda: DatasetStore(folder).create(name, runnable=runnable, evaluators=parse_evaluators(evaluators))
    )
    return f"created dataset {name!r} in {made.path}"


def save_entry(name: str, *, folder: str | None, **given: Any) -> tuple[str, list[str]]:
    """What to say of the dataset with its new entry, and what the person should know."""
    datasets = DatasetStore(folder)
    before = _mended(lambda: datasets.get(name))
    proposal = _proposal(given)
    evaluable = proposal.evaluable
    if given["expected_output"] is not None:
        evaluable = replace(evaluable, expectation=_expected(given["expected_output"]))
    if given["notes"]:
        evaluable = replace(evaluable, eval_metadata={**(evaluable.eval_metadata or {}), "notes": given["notes"]})
    dataset = _mended(lambda: datasets.append(name, evaluable, entry_kwargs=proposal.entry_kwargs))
    warnings = list(proposal.notes)
    if evaluable.expectation is UNSET:
        warnings.append(
            "the entry has no expectation; say in the file, or with --expected-output, what a right answer is"
        )
    if not before.evaluators:
        warnings.append(f"{dataset.path} names no evaluators yet; list some under 'evaluators'")
    if dataset.runnable is None:
        warnings.append(f"{dataset.path} names no runnable yet; without one, tell `proctor test` the agent")
    count = len(dataset.items)
    return f"saved to dataset {dataset.name!r}: now {count} entr{'y' if count == 1 else 'ies'}", warnings


def _proposal(given: Mapping[str, Any]) -> Proposal:
    select, span_name = given["select"], given["span_name"]
    if (select == "by_name") != (span_name is not None):
        raise UsageError("--select by_name and --span-name N belong together")
    if select is None:
        return proposal_from_store(given["trace_id"], given["store"])
    tree = build_tree(spans_of(given["trace_id"], given["store"]))
    chosen: dict[str, Callable[[], Evaluable]] = {
        "root": lambda: root(tree),
        "last_llm_call": lambda: last_llm_call(tree),
        "by_name": lambda: by_name(tree, str(span_name)),
    }
    evaluable = _mended(chosen[select])
    value = evaluable.input
    return Proposal(evaluable, dict(value) if isinstance(value, Mapping) else {"input": value})


def _expected(given: str) -> Json:
    """JSON, or the text as it stands where it is none."""
    try:
        text = sys.stdin.read() if given == "-" else Path(given).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--expected-output {given} cannot be read: {error}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.removesuffix("\n")


def _mended(work: Callable[[], Any]) -> Any:
    """What is wrong with a name, a file or a selection, as something the person can mend."""
    try:
        return work()
    except (ValueError, FileNotFoundError, FileExistsError, IndexError) as error:
        raise UsageError(str(error)) from None
