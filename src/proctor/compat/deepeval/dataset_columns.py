"""Where a file of goldens or test cases has what, as DeepEval's parameters say it: `input_key_name="question"`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from proctor.records import record

SEPARATORS = {"context": "|", "retrieval_context": "|", "tools_called": ";", "expected_tools": ";", "tags": ";"}
"""Columns with several entries: a JSON list, or, as DeepEval writes them, texts with a sign between them."""
UTF8 = "utf-8-sig"
_ENDINGS = ("_key_name", "_col_name")
_SEPARATED = "_col_delimiter"


@record
class Columns:
    """Names and signs that somebody gave; whatever is not named goes by its own name."""

    names: Mapping[str, str]
    separators: Mapping[str, str]
    encoding: str = UTF8

    def of(self, row: Mapping[str, Any], fields: Collection[str]) -> Mapping[str, Any]:
        """The row by the names of `fields`. Who says where things stand wants nothing of the other columns."""
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
            raise TypeError(f"there is no parameter {parameter!r}")
        elif ending == _SEPARATED:
            separators[field] = str(value)
        elif value is not None:
            names[field] = str(value)
    return Columns(names, separators, encoding)
