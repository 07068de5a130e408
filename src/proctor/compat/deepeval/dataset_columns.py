"""Which keys and columns of a dataset's file hold what, as the arguments of DeepEval's readers name them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.base.documents import did_you_mean

SEPARATORS = {"context": "|", "retrieval_context": "|", "tools_called": ";", "expected_tools": ";", "tags": ";"}
"""Columns with several entries: a JSON list, or, as DeepEval writes them, texts with a sign between them."""
UTF8 = "utf-8-sig"
_ENDINGS = ("_key_name", "_col_name")
_SEPARATED = "_col_delimiter"


_ASKED = "input actual_output expected_output"
_CALLS = "tools_called expected_tools"
_COUNTS = "token_cost input_token_count output_token_count"
_TOLD = "source_file additional_metadata custom_column_key_values scenario turns expected_outcome user_description"


def _named(fields: str, ending: str) -> list[str]:
    return [f"{field}{ending}" for field in fields.split()]


def _with_delimiters(fields: str) -> list[str]:
    return [name for field in fields.split() for name in (f"{field}_col_name", f"{field}_col_delimiter")]


_LISTS = "context retrieval_context"
CASE_COLUMNS = [
    *_named(_ASKED, "_col_name"),
    *_with_delimiters(f"{_LISTS} {_CALLS}"),
    "additional_metadata_col_name",
]
CASE_KEYS = [*_named(f"{_ASKED} {_LISTS} {_CALLS} additional_metadata", "_key_name"), "encoding_type"]
GOLDEN_COLUMNS = [
    *_named(_ASKED, "_col_name"),
    *_with_delimiters(f"{_LISTS} {_CALLS}"),
    *_named(_COUNTS, "_col_name"),
    *_named("comments name", "_key_name"),
    *_named(_TOLD, "_col_name"),
]
GOLDEN_KEYS = [
    *_named(f"{_ASKED} {_LISTS} {_CALLS} {_COUNTS} comments name {_TOLD} persona", "_key_name"),
    "encoding_type",
]
GOLDEN_LINE_KEYS = [
    *_named(_ASKED, "_key_name"),
    *(f"{field}{ending}" for field in _LISTS.split() for ending in ("_key_name", "_col_delimiter")),
    *_named(f"{_CALLS} {_COUNTS} comments name {_TOLD} persona", "_key_name"),
    "encoding_type",
]
"""The parameters of DeepEval's methods in their order, for files whose columns are given without names."""


def positional(order: Sequence[str], given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by name; raises `TypeError` for too many, and for one that is given twice."""
    if len(given) > len(order):
        raise TypeError(f"at most {len(order)} columns are given without names, not {len(given)}")
    found = dict(zip(order, given, strict=False))
    for name in named:
        if name in found:
            raise TypeError(f"{name!r} is given twice")
    return {**found, **{MISSPELT.get(name, name): value for name, value in named.items()}}


MISSPELT = {"addtional_metadata_key_name": "additional_metadata_key_name"}
"""Parameters that DeepEval itself spells so."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Column names and separators as given; a field that is not named has the column of its own name."""

    names: Mapping[str, str]
    separators: Mapping[str, str]
    encoding: str = UTF8

    def of(self, row: Mapping[str, Any], fields: Collection[str]) -> Mapping[str, Any]:
        """The row by the names of `fields`. Where columns are named, the others are ignored."""
        if not self.names:
            return row
        taken = set(self.names.values())
        own = {name: value for name, value in row.items() if name in fields and name not in taken}
        return own | {field: row[column] for field, column in self.names.items() if column in row}

    def missing(self, rows: Sequence[Any]) -> list[str]:
        """Columns that were named and are nowhere; one that goes by its field's own name may well be left out."""
        there = {name for row in rows if isinstance(row, Mapping) for name in row}
        return [
            f"has no {column!r}, where {field} was to be found"
            for field, column in self.names.items()
            if rows and column not in there and column != field
        ]


def columns_from(given: Mapping[str, Any], fields: Collection[str]) -> Columns:
    """What DeepEval's parameters say; raises `TypeError` for any other, and for one about a field that is not there."""
    names: dict[str, str] = {}
    separators = dict(SEPARATORS)
    encoding = UTF8
    for parameter, value in given.items():
        ending = next((known for known in (*_ENDINGS, _SEPARATED) if parameter.endswith(known)), "")
        field = parameter.removesuffix(ending)
        if parameter == "encoding_type":
            encoding = UTF8 if str(value).lower() in ("utf-8", "utf8") else str(value)
        elif not ending or field not in fields or (ending == _SEPARATED and field not in SEPARATORS):
            known = [f"{name}{one}" for name in sorted(fields) for one in _ENDINGS]
            known += [f"{name}{_SEPARATED}" for name in SEPARATORS]
            raise TypeError(f"there is no parameter {parameter!r}{did_you_mean(parameter, known)}")
        elif ending == _SEPARATED:
            separators[field] = str(value)
        elif value is not None:
            names[field] = str(value)
    return Columns(names, separators, encoding)
