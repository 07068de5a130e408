"""Create, read and change dataset files: one JSON file per dataset in one folder."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proctor.base.atomic_write import atomic_write
from proctor.base.documents import Document
from proctor.base.errors import InvalidSuite, Problem, StoreError
from proctor.base.json_data import UNSET, Json, fingerprint, json_text, to_json, to_text
from proctor.base.locks import FileLock
from proctor.base.source import read_text
from proctor.cases.evaluator_specs import read_evaluators, write_specs
from proctor.cases.ids import slug
from proctor.cases.suite import Case, EvaluatorSpec, NamedData, Suite
from proctor.compat.pixie.models import Evaluable, invalid, refuse_assignment
from proctor.compat.pixie.reader import EXTENSION, NAME, read, recognises
from proctor.evaluators import evaluable as engine

MAX_DESCRIPTION = 80
"""The maximum length of a description made from an input."""

_PLACEHOLDER_ENTRY = {"input_data": {}, "description": "none yet"}
"""An entry that makes a dataset without entries readable."""


@dataclass(frozen=True)
class _DatasetFields:
    """The fields of a dataset."""

    name: str
    items: tuple[engine.Evaluable, ...] = ()
    runnable: str | None = None
    """The application, as `file.py:Name`."""
    evaluators: tuple[EvaluatorSpec, ...] = ()
    """The evaluators of items that do not have their own."""
    path: Path | None = None
    cases: tuple[Case, ...] = ()
    """The items as a run sees them, with the arguments of the application."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise invalid("Dataset", "name", "string_too_short", "name must be a non-empty string", self.name)
        items = (item if isinstance(item, engine.Evaluable) else Evaluable.model_validate(item) for item in self.items)
        object.__setattr__(self, "items", tuple(items))


class Dataset(_DatasetFields):
    """A named list of test cases, with the application to test and the evaluators that score it.

    pixie's is a frozen pydantic model, so it has the methods of one and raises the same errors.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        refuse_assignment("Dataset", name, value)

    @classmethod
    def model_validate(cls, data: Any) -> Dataset:
        """A dataset from what `model_dump` returned, or from another dataset."""
        if isinstance(data, Dataset):
            return data
        return cls(
            data.get("name", ""),
            tuple(data.get("items", ())),
            data.get("runnable"),
            tuple(read_evaluators(data.get("evaluators") or [])),
        )

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Dataset:
        return cls.model_validate(json.loads(text))

    def model_dump(self, *, mode: str = "python") -> dict[str, Any]:
        """The name and the items, and the runnable and the evaluators if there are any."""
        dumped: dict[str, Any] = {"name": self.name, "items": [item.model_dump(mode=mode) for item in self.items]}
        if self.runnable is not None:
            dumped["runnable"] = self.runnable
        if self.evaluators:
            dumped["evaluators"] = write_specs(self.evaluators, defaults=())
        return dumped

    def model_dump_json(self, *, indent: int | None = None) -> str:
        return json.dumps(self.model_dump(mode="json"), indent=indent, ensure_ascii=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Dataset:
        return replace(self, **dict(update or {}))


def read_data(path: Path) -> dict[str, Json]:
    """The data of a dataset file, unchanged; raises `InvalidSuite` if the file is not a dataset."""
    data = Document(path, read_text(path)).data
    rows = data.get(entries_key(data)) if isinstance(data, dict) else None
    if not recognises(path, {**data, "entries": [_PLACEHOLDER_ENTRY]} if rows == [] else data):
        raise InvalidSuite([Problem("is not a dataset: it has no 'entries'", path)])
    return dict(data)


def read_dataset(path: Path) -> Dataset:
    """The dataset in a file of any generation; entries and evaluators may still be missing."""
    data = read_data(path)
    rows = data.get(entries_key(data))
    complete = {**data, "evaluators": data.get("evaluators") or ["ExactMatch"]}
    if not rows:
        complete |= {"entries": [_PLACEHOLDER_ENTRY]}
        complete.pop("items", None)
    suite = _read_lenient(Document(path, read_text(path), complete))
    cases = tuple(suite.cases) if rows else ()
    return Dataset(
        name=suite.name,
        items=tuple(_item(case) for case in cases),
        runnable=_runnable(suite),
        evaluators=suite.evaluators if data.get("evaluators") else (),
        path=path,
        cases=cases,
    )


def entries_key(data: Mapping[str, Json]) -> str:
    """The key under which a dataset has its entries; pixie 0.4 called them items."""
    return "items" if "items" in data and "entries" not in data else "entries"


def make_entry(
    evaluable: engine.Evaluable,
    kwargs_key: str,
    entry_kwargs: Mapping[str, Json] | None = None,
    evaluators: Sequence[EvaluatorSpec] = (),
) -> dict[str, Json]:
    """The entry for `evaluable`; `entry_kwargs` defaults to its inputs by name.

    `kwargs_key` is the key for the application's arguments, which differs between generations.
    """
    if not evaluable.eval_input:
        raise ValueError("an entry needs at least one eval_input")
    names = [item.name for item in evaluable.eval_input]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"there are two eval_input named {repeated!r}; names must be unique")
    entry: dict[str, Json] = {
        kwargs_key: to_json(_arguments(evaluable) if entry_kwargs is None else entry_kwargs),
        "description": _description(evaluable),
        "eval_input": _named_data(evaluable.eval_input),
    }
    if evaluable.expectation is not UNSET:
        entry["expectation"] = to_json(evaluable.expectation)
    if evaluable.eval_metadata:
        entry["eval_metadata"] = to_json(evaluable.eval_metadata)
    if evaluators:
        entry["evaluators"] = write_specs(evaluators, defaults=())
    if evaluable.eval_output:
        entry[EXTENSION] = {"eval_output": _named_data(evaluable.eval_output)}
    return entry


def write_data(path: Path, data: Mapping[str, Json]) -> None:
    """Replace the file as a whole, or leave it unchanged if that fails."""
    try:
        with atomic_write(path) as draft:
            draft.write_text(json_text(data), encoding="utf-8", newline="\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from None


def _read_lenient(document: Document) -> Suite:
    """Read a dataset in spite of unknown keys: they stop a run, but not a change of the file."""
    try:
        [suite] = read(document)
    except InvalidSuite as error:
        serious = [problem for problem in error.problems if problem.code != "unknown key"]
        if serious or not error.partial_suites:
            raise InvalidSuite(serious or error.problems, error.partial_suites) from None
        suite = error.partial_suites[0]
    return suite


def _runnable(suite: Suite) -> str | None:
    return suite.agent if isinstance(suite.agent, str) else None


def _item(case: Case) -> Evaluable:
    turn = case.turns[0]
    return Evaluable(
        eval_input=case.inputs or (NamedData("input", turn.input),),
        eval_output=_saved_output(case),
        expectation=turn.expected.output,
        eval_metadata=case.metadata or None,
        description=case.description or None,
    )


def _saved_output(case: Case) -> tuple[NamedData, ...]:
    """The output that an entry was saved with, if any."""
    extra = case.extra.get(EXTENSION)
    output = extra.get("eval_output") if isinstance(extra, Mapping) else None
    if output is None:
        return ()
    if isinstance(output, list) and output and all(_is_named_data(item) for item in output):
        return tuple(NamedData(item["name"], item["value"]) for item in output)
    return (NamedData("output", output),)


def _is_named_data(item: Json) -> bool:
    return isinstance(item, dict) and item.keys() == {"name", "value"} and isinstance(item["name"], str)


def _named_data(items: Sequence[NamedData]) -> list[Json]:
    return [{"name": item.name, "value": to_json(item.value)} for item in items]


def _arguments(evaluable: engine.Evaluable) -> Mapping[str, Json]:
    """The arguments by name; a single input that is an object is the arguments, as `observe` records them."""
    only = evaluable.eval_input[0].value
    if len(evaluable.eval_input) == 1 and isinstance(only, Mapping):
        return only
    return {item.name: item.value for item in evaluable.eval_input}


def _description(evaluable: engine.Evaluable) -> str:
    if evaluable.description and evaluable.description.strip():
        return evaluable.description
    values = [item.value for item in evaluable.eval_input]
    text = " ".join(to_text(to_json(values[0] if len(values) == 1 else evaluable.input), 1000).split())
    return to_text(text, MAX_DESCRIPTION) or evaluable.eval_input[0].name or "an empty input"


DEFAULT_FOLDER = "datasets"
FOLDER_VARIABLES = ("PROCTOR_DATASET_DIR", "PIXIE_DATASET_DIR")
ROOT_VARIABLE = "PIXIE_ROOT"
"""pixie's root folder; its datasets are in `datasets` there."""
DEFAULT_ROOT = "pixie_qa"
MAX_NAME = 200
"""The maximum length of a file name that every file system supports."""

EvaluatorList = Sequence[str | Mapping[str, Json] | EvaluatorSpec]
"""Evaluators in the forms that a file may have them."""

_WRITE_LOCK = threading.Lock()
"""One change at a time in this process."""


@dataclass(frozen=True, slots=True)
class DatasetDetails:
    """One dataset in a list of datasets."""

    name: str
    row_count: int
    updated_at: str
    """In UTC, e.g. `2026-04-21 09:30:00`."""
    path: Path


def folder_in_environment() -> Path | None:
    """The dataset folder set by an environment variable, Proctor's or pixie's."""
    folders = [value for name in FOLDER_VARIABLES if (value := os.environ.get(name))]
    if folders:
        return Path(folders[0])
    root = os.environ.get(ROOT_VARIABLE)
    return Path(root, DEFAULT_FOLDER) if root else None


def default_folder() -> Path:
    """The folder from the environment, else `pixie_qa/datasets` if it exists, else `datasets`."""
    from_environment, pixie_folder = folder_in_environment(), Path(DEFAULT_ROOT, DEFAULT_FOLDER)
    return from_environment or (pixie_folder if pixie_folder.is_dir() else Path(DEFAULT_FOLDER))


class DatasetStore:
    """The datasets in a folder: `dataset_dir`, else the one from the environment, `pixie_qa/datasets` or `datasets`."""

    def __init__(self, dataset_dir: str | Path | None = None) -> None:
        self.folder = Path(dataset_dir) if dataset_dir else default_folder()

    def create(
        self,
        name: str,
        items: Sequence[engine.Evaluable] | None = None,
        *,
        runnable: str | None = None,
        evaluators: EvaluatorList = (),
    ) -> Dataset:
        """Create a dataset with these items, or without any; raises `FileExistsError` if the name is taken."""
        path = self.folder / f"{file_stem(name)}.json"
        specs = read_evaluators(evaluators)
        with self._exclusive():
            if path.exists() or self._find(name) is not None:
                raise FileExistsError(f"Dataset already exists: {name!r}")
            data: dict[str, Json] = {"name": name}
            if runnable is not None:
                data["runnable"] = runnable
            if specs:
                data["evaluators"] = write_specs(specs, defaults=())
            write_data(path, {**data, "entries": [make_entry(item, "entry_kwargs") for item in items or ()]})
        return read_dataset(path)

    def get(self, name: str) -> Dataset:
        """The dataset of that name; raises `FileNotFoundError` if there is none."""
        return read_dataset(self._path(name))

    def list(self) -> list[str]:
        """The names of all readable datasets, in the order of their files."""
        return [dataset.name for dataset in self._all()]

    def list_details(self) -> Sequence[DatasetDetails]:
        """All readable datasets with the details that a table shows."""
        return [
            DatasetDetails(dataset.name, len(dataset.items), _modified_at(dataset.path), dataset.path)
            for dataset in self._all()
            if dataset.path is not None
        ]

    def append(
        self,
        name: str,
        *evaluables: engine.Evaluable,
        entry_kwargs: Mapping[str, Json] | None = None,
        evaluators: EvaluatorList = (),
    ) -> Dataset:
        """Add entries. `entry_kwargs` are the application's arguments; the default is each entry's inputs by name.

        `evaluators` are for these entries only; `"..."` in them stands for the dataset's evaluators.
        """
        inherits = "..." in evaluators
        specs = read_evaluators([item for item in evaluators if item != "..."])
        with self._exclusive():
            path = self._path(name)
            read_dataset(path)  # raises before anything is written to a file that cannot be read
            data = read_data(path)
            rows = list(data.get(entries_key(data)) or [])
            key = "input_data" if any(isinstance(row, dict) and "input_data" in row for row in rows) else "entry_kwargs"
            for evaluable in evaluables:
                entry = make_entry(evaluable, key, entry_kwargs, specs)
                if inherits:
                    entry["evaluators"] = ["...", *entry.get("evaluators", ())]
                rows.append(entry)
            write_data(path, {**data, entries_key(data): rows})
        return read_dataset(path)

    def remove(self, name: str, index: int) -> Dataset:
        """Remove the entry at `index`, counted from 0; raises `IndexError` if there is none."""
        with self._exclusive():
            path = self._path(name)
            data = read_data(path)
            rows = list(data.get(entries_key(data)) or [])
            if not 0 <= index < len(rows):
                raise IndexError(f"Dataset {name!r} has {len(rows)} entries; there is no index {index}")
            del rows[index]
            write_data(path, {**data, entries_key(data): rows})
        return read_dataset(path)

    def delete(self, name: str) -> None:
        """Delete the dataset's file."""
        with self._exclusive():
            self._path(name).unlink()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the lock for a change, which reads and rewrites the whole file.

        The lock file is in the system's temporary folder, because the dataset folder is usually under version control.
        """
        with _WRITE_LOCK:
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
            raise FileNotFoundError(f"Dataset not found: {name!r}; {self._available()}")
        return path

    def _find(self, name: str) -> Path | None:
        """The file named after the dataset, else a file of another name that contains this dataset."""
        by_file_name = self.folder / f"{slug(name, longest=None)[:MAX_NAME]}.json"
        exists = by_file_name.name in self._files()
        if exists and _has_name(by_file_name, name):
            return by_file_name
        by_name = next((dataset.path for dataset in self._all() if dataset.name == name), None)
        return by_name or (by_file_name if exists else None)

    def _available(self) -> str:
        """Where datasets were looked for, and the ones that are there."""
        place = f"looked in {self.folder}"
        if not self.folder.is_dir():
            return f"{place}, which is not a folder; set another with dataset_dir or {FOLDER_VARIABLES[0]}"
        names = self.list()
        return f"{place}, which has {', '.join(names[:20])}" if names else f"{place}, which has no datasets"

    def _files(self) -> Sequence[str]:
        return sorted(path.name for path in self.folder.glob("*.json") if not path.name.startswith("."))

    def _all(self) -> Iterator[Dataset]:
        for file in self._files():
            try:
                yield read_dataset(self.folder / file)
            except InvalidSuite:
                continue  # `proctor dataset validate` reports its problems


def file_stem(name: str) -> str:
    """The file name of a dataset, without suffix; no name can lead out of the folder."""
    stem = slug(name, longest=None)
    if not stem:
        raise ValueError(f"Cannot slugify empty or non-alphanumeric name: {name!r}")
    if len(stem) > MAX_NAME:
        raise ValueError(f"the name of a dataset must have at most {MAX_NAME} characters, not {len(stem)}")
    return stem


def _has_name(path: Path, name: str) -> bool:
    try:
        own_name = read_data(path).get("name", path.stem)
    except InvalidSuite:
        return True  # named after the dataset; reading it reports the problem
    return isinstance(own_name, str) and slug(own_name, longest=None) == slug(name, longest=None)


def _modified_at(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S")


def unfinished_datasets() -> list[Suite]:
    """All readable datasets of the default folder, including those without entries."""
    datasets = [read_dataset(details.path) for details in DatasetStore().list_details()]
    return [
        Suite(item.name, item.cases, evaluators=item.evaluators, agent=item.runnable, path=item.path, format=NAME)
        for item in datasets
    ]


def entry_text(evaluable: engine.Evaluable, entry_kwargs: Mapping[str, Json]) -> str:
    """The JSON text of an entry made from a trace."""
    return json.dumps(make_entry(evaluable, "entry_kwargs", entry_kwargs), indent=2)
