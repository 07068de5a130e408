"""`proctor dataset create` and `proctor dataset save`: make pixie datasets and fill them from traces."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json
from proctor.base.references import is_reference
from proctor.cli.options import F, parse_evaluators, store_option
from proctor.cli.output import say
from proctor.cli.trace_to_case import proposal_from_store, spans_of
from proctor.compat.pixie.datasets import DatasetStore
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
        help="The dataset folder (default: $PROCTOR_DATASET_DIR, pixie_qa/datasets, or datasets).",
    )(command)


@click.command("create")
@click.argument("name")
@click.option("--runnable", metavar="F:NAME", help="The application that its entries are for.")
@click.option("--evaluator", "evaluators", multiple=True, metavar="E", help="Scores every entry; may be repeated.")
@dataset_option
def create(name: str, runnable: str | None, evaluators: tuple[str, ...], folder: str | None) -> int:
    """Make an empty dataset in the dataset folder."""
    say(create_dataset(name, runnable, evaluators, folder))
    return 0


@click.command("save", short_help="Add an entry to a dataset, made of a kept trace.")
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


def _proposal(given: Mapping[str, Any]) -> EntryProposal:
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
    return EntryProposal(evaluable, dict(value) if isinstance(value, Mapping) else {"input": value})


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
