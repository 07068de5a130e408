"""Makes datasets and fills them from traces; what they are kept in is the business of `DatasetStore`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.cases.formats import pixie
from proctor.cases.model import UNSET, Suite
from proctor.cli.common import parse_evaluators
from proctor.cli.proposing import proposal_from_store, spans_of
from proctor.errors import UsageError
from proctor.evaluators.datasets.by_name import DatasetStore
from proctor.evaluators.datasets.files import read_dataset
from proctor.evaluators.from_trace import by_name, last_llm_call, root
from proctor.evaluators.model import Evaluable
from proctor.plain import Json
from proctor.references import is_reference
from proctor.results.proposals import Proposal


def datasets_as_suites() -> list[Suite]:
    """The datasets of their folder as far as they can be read, finished or not."""
    datasets = [read_dataset(details.path) for details in DatasetStore().list_details()]
    return [
        Suite(item.name, item.cases, item.evaluators, item.runnable, path=item.path, format=pixie.NAME)
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
    from proctor.tracing.spans import build_tree

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
