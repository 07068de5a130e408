"""`proctor dataset create` and `proctor dataset save`: create pixie datasets and add entries from traces."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from proctor.agents.resolve import resolve_agent
from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json
from proctor.base.references import is_reference
from proctor.cases.suite import Case, NamedData, Turn
from proctor.cli.options import F, parse_evaluators, store_option
from proctor.cli.output import say
from proctor.cli.trace_to_case import proposal_from_store, spans_of
from proctor.compat.pixie.datasets import Dataset, DatasetStore
from proctor.evaluators.evaluation import Evaluable
from proctor.evaluators.from_trace import by_name, last_llm_call, root
from proctor.results.trace_cases import EntryProposal
from proctor.tracing.spans import build_tree

SELECTIONS = ("root", "last_llm_call", "by_name")


def dataset_option(command: F) -> F:
    return click.option(
        "--dir",
        "folder",
        metavar="DIR",
        help="Dataset folder (default: $PROCTOR_DATASET_DIR, pixie_qa/datasets, or datasets).",
    )(command)


@click.command("create")
@click.argument("name")
@click.option("--runnable", metavar="F:NAME", help="The application to test.")
@click.option("--evaluator", "evaluators", multiple=True, metavar="E", help="Evaluator for every entry (repeatable).")
@dataset_option
def create(name: str, runnable: str | None, evaluators: tuple[str, ...], folder: str | None) -> int:
    """Create an empty dataset in the dataset folder."""
    say(create_dataset(name, runnable, evaluators, folder))
    return 0


@click.command("save", short_help="Add an entry to a dataset, made from a stored trace.")
@click.argument("name")
@click.option("--select", type=click.Choice(SELECTIONS), help="Use one span instead of the whole trace.")
@click.option(
    "--span-name", metavar="N", help="Name of the span for --select by_name; the last span of that name is used."
)
@click.option("--trace", "trace_id", metavar="ID", default="last", help="Stored trace to use (default: the latest).")
@click.option(
    "--expected-output", metavar="FILE", help="File with the expected output, JSON or text; - for standard input."
)
@click.option("--notes", metavar="TEXT", help="Note to store in the metadata of the entry.")
@dataset_option
@store_option
def save(name: str, **options: Any) -> int:
    """Add an entry to a dataset, made from a stored trace. The runnable and evaluators of the file do not change."""
    message, warnings = save_entry(name, **options)
    for warning in warnings:
        say(f"note: {warning}", err=True)
    say(message)
    return 0


def create_dataset(name: str, runnable: str | None, evaluators: tuple[str, ...], folder: str | None) -> str:
    """Create a dataset and return the message about it."""
    if runnable is not None and not is_reference(runnable):
        raise UsageError(f"--runnable {runnable!r} is not a reference; write file.py:Name")
    dataset = _as_usage_error(
        lambda: DatasetStore(folder).create(name, runnable=runnable, evaluators=parse_evaluators(evaluators))
    )
    return f"created dataset {name!r} in {dataset.path}"


def save_entry(name: str, *, folder: str | None, **options: Any) -> tuple[str, list[str]]:
    """Add an entry and return the message about it, with warnings."""
    datasets = DatasetStore(folder)
    before = _as_usage_error(lambda: datasets.get(name))
    proposal = _proposal(options)
    evaluable = proposal.evaluable
    if options["expected_output"] is not None:
        evaluable = replace(evaluable, expectation=_read_expected(options["expected_output"]))
    if options["notes"]:
        evaluable = replace(evaluable, eval_metadata={**(evaluable.eval_metadata or {}), "notes": options["notes"]})
    warnings = [*proposal.notes, *_check_arguments(before, proposal.entry_kwargs)]
    dataset = _as_usage_error(lambda: datasets.append(name, evaluable, entry_kwargs=proposal.entry_kwargs))
    if evaluable.expectation is UNSET:
        warnings.append("the entry has no expectation; add one to the file, or pass --expected-output")
    if not before.evaluators:
        warnings.append(f"{dataset.path} has no evaluators yet; list some under 'evaluators'")
    if dataset.runnable is None:
        warnings.append(f"{dataset.path} has no runnable yet; add one, or pass --agent to `proctor test`")
    count = len(dataset.items)
    return f"saved to dataset {dataset.name!r}: now {count} entr{'y' if count == 1 else 'ies'}", warnings


def _proposal(options: Mapping[str, Any]) -> EntryProposal:
    """The entry for a whole trace, or for the selected span."""
    select, span_name = options["select"], options["span_name"]
    if (select == "by_name") != (span_name is not None):
        raise UsageError("use --select by_name and --span-name N together")
    whole = proposal_from_store(options["trace_id"], options["store"])
    if select is None:
        return whole
    tree = build_tree(spans_of(options["trace_id"], options["store"]))
    selections: dict[str, Callable[[], Evaluable]] = {
        "root": lambda: root(tree),
        "last_llm_call": lambda: last_llm_call(tree),
        "by_name": lambda: by_name(tree, str(span_name)),
    }
    evaluable = _as_usage_error(selections[select])
    # The entry runs the whole application, whose arguments and wrapped inputs are those of the trace.
    evaluable = replace(evaluable, description=whole.evaluable.description)
    inputs = list(whole.evaluable.eval_input)
    if inputs != [NamedData("input", dict(whole.entry_kwargs))]:
        evaluable = replace(evaluable, eval_input=inputs)
    return EntryProposal(evaluable, whole.entry_kwargs, whole.notes)


def _check_arguments(dataset: Dataset, entry_kwargs: Mapping[str, Json]) -> list[str]:
    """Raise `UsageError` if the dataset's application does not accept the arguments; return notes if it is unknown."""
    if dataset.runnable is None or dataset.path is None:
        return []
    try:
        agent = resolve_agent(dataset.runnable, dataset.path.parent)
    except UsageError as error:
        return [f"the arguments of the entry were not checked: {error}"]
    problem = agent.check(Case(id="entry", turns=(Turn(dict(entry_kwargs)),)))
    if problem:
        raise UsageError(
            f"nothing was saved: {dataset.runnable} does not accept the arguments of this trace: {problem}; "
            "record a trace of that application with `proctor trace --runnable`, or correct `runnable` in the dataset"
        )
    return []


def _read_expected(source: str) -> Json:
    """The expected output in a file or on standard input: JSON, or else the text."""
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--expected-output {source} cannot be read: {error}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.removesuffix("\n")


def _as_usage_error(work: Callable[[], Any]) -> Any:
    """Call `work` and raise its errors about names, files and selections as `UsageError`."""
    try:
        return work()
    except (ValueError, FileNotFoundError, FileExistsError, IndexError) as error:
        raise UsageError(str(error)) from None
