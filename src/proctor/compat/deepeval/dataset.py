"""DeepEval's datasets: goldens (inputs and expectations) and test cases (goldens with the actual output)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from proctor.base.errors import UsageError
from proctor.base.event_loops import run_in_session_loop
from proctor.compat.deepeval.dataset_columns import (
    CASE_COLUMNS,
    CASE_KEYS,
    GOLDEN_COLUMNS,
    GOLDEN_KEYS,
    GOLDEN_LINE_KEYS,
    parameters_by_name,
)
from proctor.compat.deepeval.dataset_files import read, save
from proctor.compat.deepeval.evaluating import evaluate, evaluate_goldens
from proctor.compat.deepeval.goldens import ConversationalGolden, Golden
from proctor.compat.deepeval.test_case import ConversationalTestCase, LLMTestCase

__all__ = [
    "ConversationalGolden",
    "EvaluationDataset",
    "Golden",
]

_SINGLE = (Golden, LLMTestCase)


class EvaluationDataset:
    """Goldens and test cases, either all single-turn or all conversations."""

    __test__: ClassVar[bool] = False

    def __init__(self, goldens: Iterable[Golden | ConversationalGolden] = (), test_cases: Iterable[Any] = ()) -> None:
        self._goldens: list[Any] = []
        self._test_cases: list[Any] = []
        self.evaluation_result: Any = None
        """The result of `evals_iterator`, set when its loop ends."""
        for golden in goldens:
            self.add_golden(golden)
        for case in test_cases:
            self.add_test_case(case)

    @property
    def goldens(self) -> list[Any]:
        return self._goldens

    @goldens.setter
    def goldens(self, entries: Iterable[Any]) -> None:
        self._goldens = list(EvaluationDataset(entries, self._test_cases)._goldens)

    @property
    def test_cases(self) -> list[Any]:
        return self._test_cases

    @test_cases.setter
    def test_cases(self, entries: Iterable[Any]) -> None:
        self._test_cases = list(EvaluationDataset(self._goldens, entries)._test_cases)

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
        """Evaluate the test cases; in a loop over `evals_iterator`, run the application's coroutine instead."""
        if inspect.iscoroutine(metrics):
            return run_in_session_loop(metrics)
        if inspect.isawaitable(metrics):
            raise UsageError("pass the coroutine itself: dataset.evaluate(application(golden.input)), without a task")
        return evaluate(self._test_cases, metrics, **options)

    def pull(self, *args: Any, **kwargs: Any) -> None:
        """Raise `UsageError`: Proctor has no service to read datasets from."""
        raise UsageError("datasets are not pulled from Confident AI here; read a file with add_goldens_from_json_file")

    def push(self, *args: Any, **kwargs: Any) -> None:
        """Raise `UsageError`: Proctor has no service to write datasets to."""
        raise UsageError("datasets are not pushed to Confident AI here; write a file with save_as")

    queue = push

    def generate_goldens(self, *args: Any, **kwargs: Any) -> None:
        """Raise that goldens are not generated."""
        raise UsageError("Proctor does not generate goldens; write cases, or use `proctor trace to-case`")

    generate_goldens_from_docs = generate_goldens_from_contexts = generate_goldens_from_scratch = generate_goldens

    def save_as(
        self,
        file_type: Literal["json", "jsonl", "csv"],
        directory: str | Path = ".",
        file_name: str | None = None,
        include_test_cases: bool = False,
    ) -> Path:
        """Write the goldens, and the test cases if requested, to a file and return its path."""
        entries = [*self._goldens, *(self._test_cases if include_test_cases else ())]
        if not entries:
            raise ValueError("No goldens found: the dataset is empty, so there is nothing to save")
        return save(entries, file_type, Path(directory), file_name)

    def evals_iterator(self, metrics: Any = None, **options: Any) -> Iterator[Any]:
        """Yield each golden, for a loop that calls the application with it.

        The functions of the application are marked with `observe`. When the loop ends, the recorded calls are
        evaluated, and `evaluation_result` has the results. `options` are those of `evaluate`.
        """
        return evaluate_goldens(self, metrics or (), **options)

    def add_goldens_from_json_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "json", parameters_by_name(GOLDEN_KEYS, names, columns), golden=True)

    def add_goldens_from_jsonl_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "jsonl", parameters_by_name(GOLDEN_LINE_KEYS, names, columns), golden=True)

    def add_goldens_from_csv_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "csv", parameters_by_name(GOLDEN_COLUMNS, names, columns), golden=True)

    def add_test_cases_from_json_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "json", parameters_by_name(CASE_KEYS, names, columns), golden=False)

    def add_test_cases_from_jsonl_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "jsonl", parameters_by_name(CASE_KEYS, names, columns), golden=False)

    def add_test_cases_from_csv_file(self, file_path: str | Path, *names: Any, **columns: Any) -> None:
        self._read(file_path, "csv", parameters_by_name(CASE_COLUMNS, names, columns), golden=False)

    def _read(self, file_path: str | Path, file_type: str, columns: dict[str, Any], *, golden: bool) -> None:
        """Add the entries of a file, all or none: problems are raised before anything is added.

        `columns` names the keys or columns to read: `input_key_name="question"`, and for CSV
        `input_col_name="question"` and `context_col_delimiter=";"`. Positional arguments are in DeepEval's order.
        """
        entries = read(Path(file_path), file_type, columns, golden=golden)
        checked = EvaluationDataset(self._goldens, self._test_cases)
        for entry in entries:
            (checked.add_golden if golden else checked.add_test_case)(entry)
        self._goldens = checked._goldens
        self._test_cases = checked._test_cases

    def _add(self, entry: Any, entries: list[Any], kinds: tuple[type, ...]) -> None:
        if not isinstance(entry, kinds):
            raise TypeError(f"expected {' or '.join(kind.__name__ for kind in kinds)}, not {type(entry).__name__}")
        first = next(iter([*self._goldens, *self._test_cases]), entry)
        if isinstance(entry, _SINGLE) != isinstance(first, _SINGLE):
            raise TypeError("a dataset has either single-turn entries or conversations, not both")
        entries.append(entry)
