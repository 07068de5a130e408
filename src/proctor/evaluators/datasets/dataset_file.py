"""Datasets as files: entries become what evaluators see, and what was seen becomes an entry.

Files are those that `proctor test` reads. What a file says beyond that is kept as it stands.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from proctor.base.errors import InvalidSuite, Problem, StoreError, UsageError
from proctor.base.fields import Document
from proctor.base.json_data import UNSET, Json, json_text, plain, show
from proctor.base.records import record
from proctor.base.source import read_text
from proctor.cases.evaluator_specs import read_specs, write_specs
from proctor.cases.formats import pixie
from proctor.cases.suite import Case, EvaluatorSpec, NamedData, Suite
from proctor.evaluators.evaluation import Evaluable

LONGEST_DESCRIPTION = 80

_STAND_IN = {"input_data": {}, "description": "none yet"}


@record
class Dataset:
    """A named list of test cases, with the application that runs and the evaluators that score them."""

    name: str
    items: tuple[Evaluable, ...] = ()
    runnable: str | None = None
    """The application, as `file.py:Name`."""
    evaluators: tuple[EvaluatorSpec, ...] = ()
    """Those of every item that names none of its own."""
    path: Path | None = None
    cases: tuple[Case, ...] = ()
    """The same items as a run sees them: with what the application is given."""


def read_data(path: Path) -> dict[str, Json]:
    """What a dataset's file says, word for word; raises `InvalidSuite` for a file that is no dataset."""
    data = Document(path, read_text(path)).data
    rows = data.get(rows_key(data)) if isinstance(data, dict) else None
    if not pixie.recognises(path, {**data, "entries": [_STAND_IN]} if rows == [] else data):
        raise InvalidSuite([Problem("is not a dataset: it has no 'entries'", path)])
    return dict(data)


def read_dataset(path: Path) -> Dataset:
    """The dataset in a file of any generation; one that is still being put together may lack entries or evaluators."""
    data = read_data(path)
    rows = data.get(rows_key(data))
    complete = {**data, "evaluators": data.get("evaluators") or ["ExactMatch"]}
    if not rows:
        complete |= {"entries": [_STAND_IN]}
        complete.pop("items", None)
    suite = _tolerantly_read(Document(path, read_text(path), complete))
    cases = tuple(suite.cases) if rows else ()
    return Dataset(
        name=suite.name,
        items=tuple(_item(case) for case in cases),
        runnable=_runnable(suite),
        evaluators=suite.evaluators if data.get("evaluators") else (),
        path=path,
        cases=cases,
    )


def rows_key(data: Mapping[str, Json]) -> str:
    """The key that a dataset has its entries under; the first generation called them items."""
    return "items" if "items" in data and "entries" not in data else "entries"


def read_evaluators(given: Sequence[str | Mapping[str, Json] | EvaluatorSpec]) -> tuple[EvaluatorSpec, ...]:
    """Evaluators as a file names them, given in Python; raises `UsageError` for what names none."""
    if isinstance(given, (str, Mapping, EvaluatorSpec)):
        given = [given]
    specs: list[EvaluatorSpec] = []
    for item in given:
        if isinstance(item, EvaluatorSpec):
            specs.append(item)
            continue
        entry = plain(item)
        document = Document(Path("evaluators"), json_text([entry]), [entry])
        specs.extend(read_specs(document, [entry], (), defaults=None))
        if document.problems:
            raise UsageError(f"evaluator {show(entry, 80)}: {document.problems[0].message}")
    return tuple(specs)


def make_entry(
    evaluable: Evaluable,
    kwargs_key: str,
    entry_kwargs: Mapping[str, Json] | None = None,
    evaluators: Sequence[EvaluatorSpec] = (),
) -> dict[str, Json]:
    """The entry that a run reads as `evaluable`; `entry_kwargs` are taken from its inputs where they are not said."""
    if not evaluable.eval_input:
        raise ValueError("an entry needs at least one eval_input")
    names = [item.name for item in evaluable.eval_input]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the eval_input {repeated!r} is given twice; the application could not tell which")
    entry: dict[str, Json] = {
        kwargs_key: plain(_arguments(evaluable) if entry_kwargs is None else entry_kwargs),
        "description": _description(evaluable),
        "eval_input": _named(evaluable.eval_input),
    }
    if evaluable.expectation is not UNSET:
        entry["expectation"] = plain(evaluable.expectation)
    if evaluable.eval_metadata:
        entry["eval_metadata"] = plain(evaluable.eval_metadata)
    if evaluators:
        entry["evaluators"] = write_specs(evaluators, defaults=())
    if evaluable.eval_output:
        entry[pixie.EXTENSION] = {"eval_output": _named(evaluable.eval_output)}
    return entry


def write_data(path: Path, data: Mapping[str, Json]) -> None:
    """Put a whole file in place of the old one, or leave the old one as it is."""
    target = Path(os.path.realpath(path))
    draft = target.parent / f".{target.stem}.{os.urandom(4).hex()}.tmp"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(json_text(data))
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from None


def _tolerantly_read(document: Document) -> Suite:
    """A key that means nothing here stops a run, but not the keeping of the file that has it."""
    try:
        [suite] = pixie.read(document)
    except InvalidSuite as error:
        grave = [problem for problem in error.problems if not problem.message.startswith("is not a known key")]
        if grave or not error.read:
            raise InvalidSuite(grave or error.problems, error.read) from None
        suite = error.read[0]
    return suite


def _runnable(suite: Suite) -> str | None:
    return suite.agent if isinstance(suite.agent, str) else None


def _item(case: Case) -> Evaluable:
    turn = case.turns[0]
    return Evaluable(
        eval_input=case.inputs or (NamedData("input", turn.input),),
        eval_output=_recorded(case),
        expectation=turn.expected.output,
        eval_metadata=case.metadata or None,
        description=case.description or None,
    )


def _recorded(case: Case) -> tuple[NamedData, ...]:
    """The output that an entry was saved with, if it was."""
    kept = case.extra.get(pixie.EXTENSION)
    output = kept.get("eval_output") if isinstance(kept, Mapping) else None
    if output is None:
        return ()
    if isinstance(output, list) and output and all(_is_named(item) for item in output):
        return tuple(NamedData(item["name"], item["value"]) for item in output)
    return (NamedData("output", output),)


def _is_named(item: Json) -> bool:
    return isinstance(item, dict) and item.keys() == {"name", "value"} and isinstance(item["name"], str)


def _named(items: Sequence[NamedData]) -> list[Json]:
    return [{"name": item.name, "value": plain(item.value)} for item in items]


def _arguments(evaluable: Evaluable) -> Mapping[str, Json]:
    """An only input that is an object is the arguments by name, as `observe` records them."""
    only = evaluable.eval_input[0].value
    if len(evaluable.eval_input) == 1 and isinstance(only, Mapping):
        return only
    return {item.name: item.value for item in evaluable.eval_input}


def _description(evaluable: Evaluable) -> str:
    if evaluable.description and evaluable.description.strip():
        return evaluable.description
    values = [item.value for item in evaluable.eval_input]
    text = " ".join(show(plain(values[0] if len(values) == 1 else evaluable.input), 1000).split())
    return show(text, LONGEST_DESCRIPTION) or evaluable.eval_input[0].name or "an empty input"
