"""Datasets by name: made, filled and emptied from Python or the command line, one file each in one folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from proctor.base.errors import InvalidSuite
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.evaluator_specs import write_specs
from proctor.cases.formats.format_spec import slug
from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators.datasets.dataset_file import (
    Dataset,
    make_entry,
    read_data,
    read_dataset,
    read_evaluators,
    rows_key,
    write_data,
)
from proctor.evaluators.evaluation import Evaluable

DEFAULT_FOLDER = "datasets"
FOLDER_VARIABLES = ("PROCTOR_DATASET_DIR", "PIXIE_DATASET_DIR")
ROOT_VARIABLE = "PIXIE_ROOT"
"""Where pixie keeps everything; its datasets are in the folder `datasets` there."""
USUAL_ROOT = "pixie_qa"
LONGEST_NAME = 200
"""Characters of a file's name that every file system takes."""

Names = Sequence[str | Mapping[str, Json] | EvaluatorSpec]

_CHANGING = threading.Lock()


@record
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
        with _CHANGING:
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
        with _CHANGING:
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
        with _CHANGING:
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
        with _CHANGING:
            self._path(name).unlink()

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
