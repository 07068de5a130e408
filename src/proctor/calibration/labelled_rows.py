"""Reads rows that people labelled, to measure a judge with; and word overlap, the measure that a judge has to beat."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.base.errors import InvalidSuite, Problem, UsageError
from proctor.base.json_data import UNSET, Json, fingerprint, to_json, to_text
from proctor.base.source import read_error
from proctor.cases.suite import EvaluatorSpec, NamedData
from proctor.evaluators.evaluation import Evaluable

GOOD_LABELS = frozenset("supported correct yes true 1 pass passed good faithful".split())
BAD_LABELS = frozenset("unsupported incorrect no false 0 fail failed bad unfaithful".split())


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """An answer, what to compare it with, and whether people found it good."""

    id: str
    answer: Json
    label: bool
    input: Json = None
    context: tuple[str, ...] | None = None
    reference: Json = None

    @property
    def evaluable(self) -> Evaluable:
        """The row as evaluators take it."""
        return Evaluable(
            eval_input=() if self.input is None else (NamedData("input", self.input),),
            eval_output=(NamedData("output", self.answer),),
            expectation=UNSET if self.reference is None else self.reference,
            retrieval_context=self.context,
        )


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """The rows of a file in an order that depends only on their ids, so that every second row is a random half."""

    rows: tuple[LabelledRow, ...]
    unlabelled: int
    path: Path

    @property
    def fingerprint(self) -> str:
        return fingerprint(*(to_json(row) for row in self.rows))


def read_rows(path: Path, positive: str | None = None, limit: int | None = None) -> LabelledRows:
    """Every row with a label; raises `InvalidSuite` with every problem and its line.

    `positive` is the label that means a good answer, if it is not one of `GOOD_LABELS`; any other then means bad.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"{path} {read_error(error)}") from None
    except ValueError:
        raise UsageError(f"{path} is not UTF-8 text") from None
    reading = _RowReader(path, positive)
    for number, line in enumerate(lines, 1):
        if line.strip():
            reading.add(number, line)
    if reading.problems:
        raise InvalidSuite(reading.problems)
    if not reading.rows:
        without = f"; {reading.unlabelled:,} have no label" if reading.unlabelled else ""
        raise UsageError(f"{path} has no labelled rows{without}")
    if positive is not None and not any(row.label for row in reading.rows):
        raise UsageError(f"--positive {positive!r}: no row of {path} has that label")
    ordered = sorted(reading.rows, key=lambda row: (fingerprint(row.id), row.id))
    return LabelledRows(tuple(ordered[:limit]), reading.unlabelled, path)


class _RowReader:
    """Collects the rows of a file, and its problems."""

    def __init__(self, path: Path, positive: str | None) -> None:
        self.path = path
        self.rows: list[LabelledRow] = []
        self.problems: list[Problem] = []
        self.unlabelled = 0
        self._positive = None if positive is None else _normalize_label(positive)
        self._lines: dict[str, int] = {}

    def add(self, number: int, line: str) -> None:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._problem(number, f"is not valid JSON: {to_text(str(error), 200)}")
            return
        if not isinstance(data, dict):
            self._problem(number, "must be a JSON object with answer and label")
            return
        before = len(self.problems)
        name = self._name(number, data)
        answer = data.get("answer")
        if answer is None:
            self._problem(number, "has no answer")
        context = self._context(number, data.get("context"))
        label = self._label(number, data)
        if label is not None and len(self.problems) == before:
            self.rows.append(LabelledRow(name, answer, label, data.get("input"), context, data.get("reference")))

    def _name(self, number: int, data: Mapping[str, Any]) -> str:
        row_id = data.get("id")
        name = f"line {number}" if row_id is None else to_text(row_id)
        first = self._lines.setdefault(name, number)
        if first != number:
            self._problem(number, f"has the same id as line {first}: {to_text(name, 80)!r}")
        return name

    def _context(self, number: int, value: Json) -> tuple[str, ...] | None:
        if value is None:
            return None
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            self._problem(number, "context must be a string or a list of strings")
            return None
        return tuple(texts)

    def _label(self, number: int, data: Mapping[str, Any]) -> bool | None:
        word = _normalize_label(data.get("label"))
        if not word:
            self.unlabelled += 1
            return None
        if self._positive is not None:
            return word == self._positive
        if word not in GOOD_LABELS | BAD_LABELS:
            label = to_text(data["label"], 80)
            self._problem(number, f"unknown label {label!r}; name the label of good answers with --positive")
            return None
        return word in GOOD_LABELS

    def _problem(self, number: int, message: str) -> None:
        self.problems.append(Problem(message, self.path, number))


def _normalize_label(label: Json) -> str:
    if label is None:
        return ""
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return to_text(label).strip().casefold()


def implied_evaluator(rows: Sequence[LabelledRow]) -> EvaluatorSpec:
    """The evaluator that fits the rows: `Faithfulness` if all have a context, `Factuality` if all have a reference."""
    if all(row.context for row in rows):
        return EvaluatorSpec("Faithfulness")
    if all(row.reference is not None for row in rows):
        return EvaluatorSpec("Factuality")
    raise UsageError("not every row has a context or a reference; name the evaluator with --evaluator")


def word_overlap(rows: Sequence[LabelledRow]) -> tuple[str, list[float]] | None:
    """A description of the overlap, and its value for each row; `None` if rows have nothing to compare with."""
    if all(row.context for row in rows):
        shares = [_share(to_text(row.answer), "\n".join(row.context or ())) for row in rows]
        return "share of the answer's words found in the context", shares
    if all(row.reference is not None for row in rows):
        shares = [_best_share(to_text(row.reference), to_text(row.answer)) for row in rows]
        return "share of the reference's words found in the answer", shares
    return None


def _best_share(reference: str, answer: str) -> float:
    """The best overlap with one of the alternatives of a reference, which are separated by slashes."""
    return max(_share(alternative, answer) for alternative in reference.split("/"))


def _share(text: str, other: str) -> float:
    """The share of the words of a text that another text has."""
    words, other_words = (set(re.findall(r"\w+", item.casefold())) for item in (text, other))
    return len(words & other_words) / len(words) if words else 0.0
