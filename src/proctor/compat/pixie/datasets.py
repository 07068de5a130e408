"""Datasets that Python and the command line fill: entries as evaluators see them, one file each in one folder."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from proctor.base.atomic_write import atomic_write
from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite, Problem, StoreError
from proctor.base.json_data import UNSET, Json, fingerprint, json_text, to_json, to_text
from proctor.base.locks import FileLock
from proctor.base.source import read_text
from proctor.cases.evaluator_specs import read_evaluators, write_specs
from proctor.cases.ids import slug
from proctor.cases.suite import Case, EvaluatorSpec, NamedData, Suite
from proctor.compat.pixie.reader import EXTENSION, NAME, read, recognises
from proctor.evaluators.evaluable import Evaluable

LONGEST_DESCRIPTION = 80

_STAND_IN = {"input_data": {}, "description": "none yet"}


@dataclass(frozen=True, slots=True)
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
    if not recognises(path, {**data, "entries": [_STAND_IN]} if rows == [] else data):
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
        kwargs_key: to_json(_arguments(evaluable) if entry_kwargs is None else entry_kwargs),
        "description": _description(evaluable),
        "eval_input": _named(evaluable.eval_input),
    }
    if evaluable.expectation is not UNSET:
        entry["expectation"] = to_json(evaluable.expectation)
    if evaluable.eval_metadata:
        entry["eval_metadata"] = to_json(evaluable.eval_metadata)
    if evaluators:
        entry["evaluators"] = write_specs(evaluators, defaults=())
    if evaluable.eval_output:
        entry[EXTENSION] = {"eval_output": _named(evaluable.eval_output)}
    return entry


def write_data(path: Path, data: Mapping[str, Json]) -> None:
    """Put a whole file in place of the old one, or leave the old one as it is."""
    try:
        with atomic_write(path) as draft:
            draft.write_text(json_text(data), encoding="utf-8", newline="\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from None


def _tolerantly_read(document: Document) -> Suite:
    """A key that means nothing here stops a run, but not the keeping of the file that has it."""
    try:
        [suite] = read(document)
    except InvalidSuite as error:
        grave = [problem for problem in error.problems if not problem.is_unknown_key]
        if grave or not error.partial_suites:
            raise InvalidSuite(grave or error.problems, error.partial_suites) from None
        suite = error.partial_suites[0]
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
    kept = case.extra.get(EXTENSION)
    output = kept.get("eval_output") if isinstance(kept, Mapping) else None
    if output is None:
        return ()
    if isinstance(output, list) and output and all(_is_named(item) for item in output):
        return tuple(NamedData(item["name"], item["value"]) for item in output)
    return (NamedData("output", output),)


def _is_named(item: Json) -> bool:
    return isinstance(item, dict) and item.keys() == {"name", "value"} and isinstance(item["name"], str)


def _named(items: Sequence[NamedData]) -> list[Json]:
    return [{"name": item.name, "value": to_json(item.value)} for item in items]


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
    text = " ".join(to_text(to_json(values[0] if len(values) == 1 else evaluable.input), 1000).split())
    return to_text(text, LONGEST_DESCRIPTION) or evaluable.eval_input[0].name or "an empty input"


DEFAULT_FOLDER = "datasets"
FOLDER_VARIABLES = ("PROCTOR_DATASET_DIR", "PIXIE_DATASET_DIR")
ROOT_VARIABLE = "PIXIE_ROOT"
"""Where pixie keeps everything; its datasets are in the folder `datasets` there."""
USUAL_ROOT = "pixie_qa"
LONGEST_NAME = 200
"""Characters of a file's name that every file system takes."""

Names = Sequence[str | Mapping[str, Json] | EvaluatorSpec]

_CHANGING = threading.Lock()


@dataclass(frozen=True, slots=True)
class DatasetDetails:
    """A line in a list of datasets."""

    name: str
    row_count: int
    updated_at: str
    """In UTC, as `2026-04-21 09:30:00`."""
    path: Path


def folder_in_environment() -> Path | None:
    """The dataset folder that a variable names, of ours or of pixie's."""
    said = [value for name in FOLDER_VARIABLES if (value := os.environ.get(name))]
    if said:
        return Path(said[0])
    root = os.environ.get(ROOT_VARIABLE)
    return Path(root, DEFAULT_FOLDER) if root else None


def usual_folder() -> Path:
    """Where datasets are: as the environment says, else `pixie_qa/datasets` if there is one, else `datasets`."""
    named, pixies = folder_in_environment(), Path(USUAL_ROOT, DEFAULT_FOLDER)
    return named or (pixies if pixies.is_dir() else Path(DEFAULT_FOLDER))


class DatasetStore:
    """The datasets of one folder: as given, else as the environment says, else `pixie_qa/datasets` or `datasets`."""

    def __init__(self, dataset_dir: str | Path | None = None) -> None:
        self.folder = Path(dataset_dir) if dataset_dir else usual_folder()

    def create(self, name: str, *, runnable: str | None = None, evaluators: Names = ()) -> Dataset:
        """A new dataset without entries; `FileExistsError` if there is one of that name."""
        path = self.folder / f"{file_stem(name)}.json"
        specs = read_evaluators(evaluators)
        with self._changing():
            if path.exists() or self._find(name) is not None:
                raise FileExistsError(f"Dataset already exists: {name!r}")
            data: dict[str, Json] = {"name": name}
            if runnable is not None:
                data["runnable"] = runnable
            if specs:
                data["evaluators"] = write_specs(specs, defaults=())
            write_data(path, {**data, "entries": []})
        return read_dataset(path)

    def get(self, name: str) -> Dataset:
        """The dataset of that name; `FileNotFoundError` if there is none."""
        return read_dataset(self._path(name))

    def list(self) -> list[str]:
        """The names of all datasets that can be read, in the order of their files."""
        return [dataset.name for dataset in self._all()]

    def list_details(self) -> Sequence[DatasetDetails]:
        """All datasets that can be read, with what a table of them shows."""
        return [
            DatasetDetails(dataset.name, len(dataset.items), _changed(dataset.path), dataset.path)
            for dataset in self._all()
            if dataset.path is not None
        ]

    def append(
        self,
        name: str,
        *evaluables: Evaluable,
        entry_kwargs: Mapping[str, Json] | None = None,
        evaluators: Names = (),
    ) -> Dataset:
        """Add entries. What the application is given for them is `entry_kwargs`, or else their own inputs by name.

        `evaluators` are for these entries alone; `"..."` in them stands for the dataset's.
        """
        inherits = "..." in evaluators
        own = read_evaluators([item for item in evaluators if item != "..."])
        with self._changing():
            path = self._path(name)
            read_dataset(path)  # a file that cannot be read is not to be added to
            data = read_data(path)
            rows = list(data.get(rows_key(data)) or [])
            key = "input_data" if any(isinstance(row, dict) and "input_data" in row for row in rows) else "entry_kwargs"
            for evaluable in evaluables:
                entry = make_entry(evaluable, key, entry_kwargs, own)
                if inherits:
                    entry["evaluators"] = ["...", *entry.get("evaluators", ())]
                rows.append(entry)
            write_data(path, {**data, rows_key(data): rows})
        return read_dataset(path)

    def remove(self, name: str, index: int) -> Dataset:
        """Take out the entry at `index`, counted from 0; `IndexError` if there is none."""
        with self._changing():
            path = self._path(name)
            data = read_data(path)
            rows = list(data.get(rows_key(data)) or [])
            if not 0 <= index < len(rows):
                raise IndexError(f"Dataset {name!r} has {len(rows)} entries; there is no index {index}")
            del rows[index]
            write_data(path, {**data, rows_key(data): rows})
        return read_dataset(path)

    def delete(self, name: str) -> None:
        """Remove the dataset's file."""
        with self._changing():
            self._path(name).unlink()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A change reads the whole file and writes it again, so only one thread of one process may do so at a time.

        The lock is among the temporary files of the system, because the folder is usually under version control.
        """
        with _CHANGING:
            name = f"proctor-datasets-{fingerprint(str(self.folder.resolve()))}.lock"
            lock = FileLock(Path(tempfile.gettempdir(), name))
            lock.acquire(wait=True)
            try:
                yield
            finally:
                lock.release()

    def _path(self, name: str) -> Path:
        path = self._find(name)
        if path is None:
            raise FileNotFoundError(f"Dataset not found: {name!r}; {self._what_is_there()}")
        return path

    def _find(self, name: str) -> Path | None:
        """The file named after the dataset; else the file of any name that says it is this dataset."""
        own = self.folder / f"{slug(name, longest=None)[:LONGEST_NAME]}.json"
        there = own.name in self._files()
        if there and _is_called(own, name):
            return own
        named = next((dataset.path for dataset in self._all() if dataset.name == name), None)
        return named or (own if there else None)

    def _what_is_there(self) -> str:
        """Where datasets were looked for, and which there are."""
        place = f"looked in {self.folder}"
        if not self.folder.is_dir():
            return f"{place}, which is no folder; name another with dataset_dir or {FOLDER_VARIABLES[0]}"
        known = self.list()
        return f"{place}, which has {', '.join(known[:20])}" if known else f"{place}, which has no datasets"

    def _files(self) -> Sequence[str]:
        return sorted(path.name for path in self.folder.glob("*.json") if not path.name.startswith("."))

    def _all(self) -> Iterator[Dataset]:
        for file in self._files():
            try:
                yield read_dataset(self.folder / file)
            except InvalidSuite:
                continue  # `proctor dataset validate` says what is wrong with it


def file_stem(name: str) -> str:
    """The file that a dataset is kept in, without its ending; nothing in a name can lead out of the folder."""
    made = slug(name, longest=None)
    if not made:
        raise ValueError(f"Cannot slugify empty or non-alphanumeric name: {name!r}")
    if len(made) > LONGEST_NAME:
        raise ValueError(f"the name of a dataset has at most {LONGEST_NAME} characters, not {len(made)}")
    return made


def _is_called(path: Path, name: str) -> bool:
    try:
        said = read_data(path).get("name", path.stem)
    except InvalidSuite:
        return True  # asked for by its file's name, it is worth saying what is wrong with it
    return isinstance(said, str) and slug(said, longest=None) == slug(name, longest=None)


def _changed(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S")


def unfinished_datasets() -> list[Suite]:
    """The datasets of their folder as far as they can be read, also those without entries yet."""
    datasets = [read_dataset(details.path) for details in DatasetStore().list_details()]
    return [
        Suite(item.name, item.cases, item.evaluators, item.runnable, path=item.path, format=NAME) for item in datasets
    ]


def entry_text(evaluable: Evaluable, entry_kwargs: Mapping[str, Json]) -> str:
    """An entry, made of what a trace shows."""
    return json.dumps(make_entry(evaluable, "entry_kwargs", entry_kwargs), indent=2)
