"""pixie's datasets of every generation: entries with arguments for an application and evaluators for its answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.base.fields import Document
from proctor.base.json_data import Json
from proctor.cases.formats.format_spec import JSON_AND_YAML, Declaration, Written, mentions_key
from proctor.cases.suite import Suite

NAME = "pixie"
EXTENSION = "x-pixie"
"""The key of `Case.extra` that keeps an answer recorded in the dataset."""

_ENTRY_KEYS = frozenset(
    "entry_kwargs input_data test_case eval_input expectation expected_output eval_metadata".split()
)
_DATASET_KEYS = frozenset("name runnable evaluators entries items".split())


def recognises(path: Path, data: Json) -> bool:
    """Datasets have `entries` or `items` of a telling shape, or name a `runnable`."""
    if not isinstance(data, dict) or "cases" in data or "test_cases" in data:
        return False
    if "runnable" in data:
        return True
    rows = data.get("entries", data.get("items"))
    if not isinstance(rows, list):
        return False
    if not rows:
        return data.keys() <= _DATASET_KEYS
    return any(isinstance(row, dict) and not _ENTRY_KEYS.isdisjoint(row) for row in rows)


def read(document: Document) -> list[Suite]:
    """The one suite that a dataset is."""
    from proctor.cases.formats.pixie.dataset_reader import read_document

    return read_document(document)


def write(suites: Sequence[Suite], ending: str = "") -> Written:
    from proctor.cases.formats.pixie.dataset_writer import write_datasets

    return write_datasets(suites)


def _resembles(path: Path, text: str) -> bool:
    return path.suffix in JSON_AND_YAML and mentions_key(text, "entry_kwargs")


DECLARED = Declaration(
    endings=(".json",),
    own_keys=frozenset({"runnable"}),
    resembles=_resembles,
    agent_hint='add "runnable": "app.py:App", or ',
)
