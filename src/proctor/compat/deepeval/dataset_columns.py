"""The keys and columns of dataset files, as named by the parameters of DeepEval's readers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proctor.base.documents import did_you_mean

SEPARATORS = {"context": "|", "retrieval_context": "|", "tools_called": ";", "expected_tools": ";", "tags": ";"}
"""The columns that are lists, and their default separators. A cell is a JSON list or separated text."""
UTF8 = "utf-8-sig"
_NAME_SUFFIXES = ("_key_name", "_col_name")
_DELIMITER_SUFFIX = "_col_delimiter"


_TEXT_FIELDS = "input actual_output expected_output"
_TOOL_FIELDS = "tools_called expected_tools"
_NUMBER_FIELDS = "token_cost input_token_count output_token_count"
_OTHER_FIELDS = (
    "source_file additional_metadata custom_column_key_values scenario turns expected_outcome user_description"
)


def _parameters(fields: str, ending: str) -> list[str]:
    """Parameter names: each field with a suffix."""
    return [f"{field}{ending}" for field in fields.split()]


def _with_delimiters(fields: str) -> list[str]:
    return [name for field in fields.split() for name in (f"{field}_col_name", f"{field}_col_delimiter")]


_LIST_FIELDS = "context retrieval_context"
CASE_COLUMNS = [
    *_parameters(_TEXT_FIELDS, "_col_name"),
    *_with_delimiters(f"{_LIST_FIELDS} {_TOOL_FIELDS}"),
    "additional_metadata_col_name",
]
CASE_KEYS = [
    *_parameters(f"{_TEXT_FIELDS} {_LIST_FIELDS} {_TOOL_FIELDS} additional_metadata", "_key_name"),
    "encoding_type",
]
GOLDEN_COLUMNS = [
    *_parameters(_TEXT_FIELDS, "_col_name"),
    *_with_delimiters(f"{_LIST_FIELDS} {_TOOL_FIELDS}"),
    *_parameters(_NUMBER_FIELDS, "_col_name"),
    *_parameters("comments name", "_key_name"),
    *_parameters(_OTHER_FIELDS, "_col_name"),
]
GOLDEN_KEYS = [
    *_parameters(
        f"{_TEXT_FIELDS} {_LIST_FIELDS} {_TOOL_FIELDS} {_NUMBER_FIELDS} comments name {_OTHER_FIELDS} persona",
        "_key_name",
    ),
    "encoding_type",
]
GOLDEN_LINE_KEYS = [
    *_parameters(_TEXT_FIELDS, "_key_name"),
    *(f"{field}{ending}" for field in _LIST_FIELDS.split() for ending in ("_key_name", "_col_delimiter")),
    *_parameters(f"{_TOOL_FIELDS} {_NUMBER_FIELDS} comments name {_OTHER_FIELDS} persona", "_key_name"),
    "encoding_type",
]
"""The parameters of DeepEval's methods in their order, for positional arguments."""


def parameters_by_name(order: Sequence[str], values: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters by name; raises `TypeError` for too many positional ones or one passed twice."""
    if len(values) > len(order):
        raise TypeError(f"expected at most {len(order)} positional arguments after the file, got {len(values)}")
    parameters = dict(zip(order, values, strict=False))
    for name in keywords:
        if name in parameters:
            raise TypeError(f"{name!r} is passed twice")
    return {**parameters, **{DEEPEVAL_TYPOS.get(name, name): value for name, value in keywords.items()}}


DEEPEVAL_TYPOS = {"addtional_metadata_key_name": "additional_metadata_key_name"}
"""Parameters that DeepEval misspells."""


@dataclass(frozen=True, slots=True)
class DatasetColumns:
    """The column names and separators of a file; a field without an entry has the column of the same name."""

    names: Mapping[str, str]
    separators: Mapping[str, str]
    encoding: str = UTF8

    def rename(self, row: Mapping[str, Any], fields: Collection[str]) -> Mapping[str, Any]:
        """The row under the names of `fields`. If columns are named, all other columns are ignored."""
        if not self.names:
            return row
        renamed = set(self.names.values())
        unrenamed = {name: value for name, value in row.items() if name in fields and name not in renamed}
        return unrenamed | {field: row[column] for field, column in self.names.items() if column in row}

    def missing(self, rows: Sequence[Any]) -> list[str]:
        """Problems for named columns that no row has; a column named like its field may be absent."""
        present = {name for row in rows if isinstance(row, Mapping) for name in row}
        return [
            f"has no column {column!r}, which was named for {field}"
            for field, column in self.names.items()
            if rows and column not in present and column != field
        ]


def read_columns(parameters: Mapping[str, Any], fields: Collection[str]) -> DatasetColumns:
    """Read DeepEval's parameters; raises `TypeError` for an unknown one."""
    names: dict[str, str] = {}
    separators = dict(SEPARATORS)
    encoding = UTF8
    for parameter, value in parameters.items():
        suffix = next(
            (
                names_of_parameters
                for names_of_parameters in (*_NAME_SUFFIXES, _DELIMITER_SUFFIX)
                if parameter.endswith(names_of_parameters)
            ),
            "",
        )
        field = parameter.removesuffix(suffix)
        if parameter == "encoding_type":
            encoding = UTF8 if str(value).lower() in ("utf-8", "utf8") else str(value)
        elif not suffix or field not in fields or (suffix == _DELIMITER_SUFFIX and field not in SEPARATORS):
            names_of_parameters = [f"{name}{one}" for name in sorted(fields) for one in _NAME_SUFFIXES]
            names_of_parameters += [f"{name}{_DELIMITER_SUFFIX}" for name in SEPARATORS]
            raise TypeError(f"there is no parameter {parameter!r}{did_you_mean(parameter, names_of_parameters)}")
        elif suffix == _DELIMITER_SUFFIX:
            separators[field] = str(value)
        elif value is not None:
            names[field] = str(value)
    return DatasetColumns(names, separators, encoding)
