"""DeepEval's datasets: goldens, which say what is asked, and test cases, which also say what came back."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from proctor.base.fields import nearest
from proctor.base.records import record
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase, Passages, Shape, Tools, Turn

__all__ = [
    "ConversationalGolden",
    "EvaluationDataset",
    "Golden",
]

METADATA = AliasChoices("additional_metadata", "additionalMetadata", "metadata")


class Golden(Shape):
    """A question, and what is known about it."""

    input: str
    actual_output: str | None = None
    expected_output: str | None = None
    context: Passages | None = None
    retrieval_context: Passages | None = None
    additional_metadata: dict[str, Any] | None = Field(default=None, validation_alias=METADATA)
    comments: str | None = None
    tools_called: Tools | None = None
    expected_tools: Tools | None = None
    token_cost: float | None = None
    input_token_count: int | None = None
    output_token_count: int | None = None
    source_file: str | None = None
    name: str | None = None
    custom_column_key_values: dict[str, str] | None = None

    def test_case(self, **found: Any) -> LLMTestCase:
        """The test case it becomes with what the application answered."""
        fields = (
            "input actual_output expected_output context retrieval_context comments tools_called expected_tools name "
            "token_cost input_token_count output_token_count custom_column_key_values"
        )
        known = {field: getattr(self, field) for field in fields.split()}
        return LLMTestCase(**{**known, "metadata": self.additional_metadata, **found})


def _turns(given: Any) -> Any:
    """DeepEval's files have turns as data or as text."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None


class ConversationalGolden(Shape):
    """A conversation that is to be held."""

    scenario: str
    expected_outcome: str | None = None
    user_description: str | None = None
    context: Passages | None = None
    additional_metadata: dict[str, Any] | None = Field(default=None, validation_alias=METADATA)
    comments: str | None = None
    name: str | None = None
    turns: Annotated[list[Turn] | None, BeforeValidator(_turns)] = None
    persona: dict[str, Any] | None = None
    """Who the user is, as newer versions of DeepEval write it."""
    custom_column_key_values: dict[str, str] | None = None


Entry = Golden | ConversationalGolden | LLMTestCase | ConversationalTestCase
_SINGLE = (Golden, LLMTestCase)


class EvaluationDataset:
    """Goldens and test cases of one kind: questions, or conversations, never both."""

    __test__: ClassVar[bool] = False

    def __init__(self, goldens: Iterable[Golden | ConversationalGolden] = (), test_cases: Iterable[Any] = ()) -> None:
        self._goldens: list[Any] = []
        self._test_cases: list[Any] = []
        self.evaluation_result: Any = None
        """What `evals_iterator` found in the end."""
        for golden in goldens:
            self.add_golden(golden)
        for case in test_cases:
            self.add_test_case(case)

    @property
    def goldens(self) -> list[Any]:
        return self._goldens

    @goldens.setter
    def goldens(self, given: Iterable[Any]) -> None:
        self._goldens = list(EvaluationDataset(given, self._test_cases)._goldens)

    @property
    def test_cases(self) -> list[Any]:
        return self._test_cases

    @test_cases.setter
    def test_cases(self, given: Iterable[Any]) -> None:
        self._test_cases = list(EvaluationDataset(self._goldens, given)._test_cases)

    def add_golden(self, golden: Golden | ConversationalGolden) -> None:
        self._add(golden, self._goldens, (Golden, ConversationalGolden))

    def add_test_case(self, test_case: LLMTestCase | ConversationalTestCase) -> None:
        self._add(test_case, self._test_cases, (LLMTestCase, ConversationalTestCase))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._test_cases)

    def __repr__(self) -> str:
        return f"EvaluationDataset(goldens={self._goldens!r}, test_cases={self._test_cases!r})"

    def __len__(self) -> int:
        return len(self._goldens) + len(self._test_cases)

    def evaluate(self, metrics: Any, **options: Any) -> Any:
        """`evaluate` for its test cases."""
        from proctor.compat.deepeval.evaluating import evaluate

        return evaluate(self._test_cases, metrics, **options)

    def save_as(
        self,
        file_type: Literal["json", "jsonl", "csv"],
        directory: str | Path = ".",
        file_name: str | None = None,
        include_test_cases: bool = False,
    ) -> Path:
        """Write the goldens, and the test cases if asked for; returns the file."""
        from proctor.compat.deepeval.dataset_files import save

        entries = [*self._goldens, *(self._test_cases if include_test_cases else ())]
        return save(entries, file_type, Path(directory), file_name)

    def evals_iterator(self, metrics: Any = None, **options: Any) -> Iterator[Any]:
        """Each golden in turn, for a loop that calls the application, whose functions are marked with `observe`.

        When the loop ends, what was observed is measured; `evaluation_result` has the results. `options` are those of
        `evaluate`.
        """
        from proctor.compat.deepeval.evaluating import evaluate_observed

        return evaluate_observed(self, metrics or (), **options)

    def add_goldens_from_json_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "json", positional(GOLDEN_KEYS, names, columns), golden=True)

    def add_goldens_from_jsonl_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "jsonl", positional(GOLDEN_LINE_KEYS, names, columns), golden=True)

    def add_goldens_from_csv_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "csv", positional(GOLDEN_COLUMNS, names, columns), golden=True)

    def add_test_cases_from_json_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "json", positional(CASE_KEYS, names, columns), golden=False)

    def add_test_cases_from_jsonl_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "jsonl", positional(CASE_KEYS, names, columns), golden=False)

    def add_test_cases_from_csv_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "csv", positional(CASE_COLUMNS, names, columns), golden=False)

    def _read(self, file_path: str | Path, file_type: str, columns: dict[str, Any], *, golden: bool) -> None:
        """All of a file or nothing: what is wrong with it is told before anything is added.

        `columns` says where things stand that go by other names: `input_key_name="question"`, and for CSV
        `input_col_name="question"`, `context_col_delimiter=";"`; without names they come in DeepEval's order.
        """
        from proctor.compat.deepeval.dataset_files import read

        entries = read(Path(file_path), file_type, columns, golden=golden)
        checked = EvaluationDataset(self._goldens, self._test_cases)
        for entry in entries:
            (checked.add_golden if golden else checked.add_test_case)(entry)
        self._goldens, self._test_cases = checked._goldens, checked._test_cases

    def _add(self, entry: Any, to: list[Any], kinds: tuple[type, ...]) -> None:
        if not isinstance(entry, kinds):
            raise TypeError(f"expected {' or '.join(kind.__name__ for kind in kinds)}, not {type(entry).__name__}")
        known = next(iter([*self._goldens, *self._test_cases]), entry)
        if isinstance(entry, _SINGLE) != isinstance(known, _SINGLE):
            raise TypeError("a dataset holds questions or conversations, not both")
        to.append(entry)


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


@record
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
            raise TypeError(f"there is no parameter {parameter!r}{nearest(parameter, known)}")
        elif ending == _SEPARATED:
            separators[field] = str(value)
        elif value is not None:
            names[field] = str(value)
    return Columns(names, separators, encoding)
