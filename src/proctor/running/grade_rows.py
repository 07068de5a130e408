"""Grades as rows of data: what `proctor grade --json` prints, filled in, is what `--from` takes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from proctor.cases.fields import nearest
from proctor.cases.model import UNSET
from proctor.errors import UsageError
from proctor.plain import Json, plain, show
from proctor.records import record
from proctor.results.model import Score
from proctor.running.grading import GRADED_BY, Address, Grade, Gradebook, Waiting

WORDS = {"pass": 1.0, "fail": 0.0}
KEYS = ("suite", "case", "trial", "turn", "evaluator", "score", "reasoning", "grader")
TOLD = ("criteria", "question", "expected", "answer", "threshold")
"""What a row tells the grader; it may come back and is not read."""

SAID = 60
"""How much of a wrong value is repeated in a message."""


class BadGrade(Exception):
    """A grade that cannot be taken; says why."""


@record
class Row:
    """One grade as it was written, and where."""

    place: str
    data: Json


def row_of(item: Waiting) -> dict[str, Json]:
    """A row to be filled in: `score` and `reasoning` are empty."""
    address = item.address
    row: dict[str, Json] = {
        "suite": address.suite,
        "case": address.case,
        "trial": address.trial,
        "turn": address.turn,
        "evaluator": address.evaluator,
        "criteria": item.criteria,
        "question": item.question,
        "answer": item.answer,
        "threshold": item.threshold,
        "score": None,
        "reasoning": "",
    }
    if item.expected is not UNSET:
        row["expected"] = plain(item.expected)
    return row


def parse_rows(text: str, source: str) -> list[Row]:
    """The rows of a JSON list, or one of each line; raises `UsageError` with every line that is no JSON."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return _parse_lines(text, source)
    if isinstance(whole, list):
        return [Row(f"{source}: row {number}", data) for number, data in enumerate(whole, 1)]
    return [Row(f"{source}: row 1", whole)]


def _parse_lines(text: str, source: str) -> list[Row]:
    rows, problems = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{source}:{number}"
        try:
            rows.append(Row(place, json.loads(line)))
        except (ValueError, RecursionError) as error:
            problems.append(f"{place}: is not JSON: {error}")
    if problems:
        raise UsageError(_together(problems))
    return rows


def read_grades(rows: Sequence[Row], book: Gradebook, grader: str) -> list[Grade]:
    """The grades that rows mean; a row whose score is null waits on. Raises `UsageError` with all that is wrong."""
    grades: dict[Address, Grade] = {}
    problems: list[str] = []
    for row in rows:
        try:
            grade = _read(row.data, book, grader)
            if grade is not None and grade.address in grades:
                raise BadGrade("grades what an earlier row grades already")
        except BadGrade as problem:
            problems.append(f"{row.place}: {problem}")
            continue
        if grade is not None:
            grades[grade.address] = grade
    if problems:
        raise UsageError(_together(problems))
    if not grades:
        raise UsageError("no row has a score, so there is nothing to grade")
    return list(grades.values())


def read_score(value: Any) -> float:
    """A number between 0 and 1, or pass or fail."""
    if isinstance(value, str) and value.strip().lower() in WORDS:
        return WORDS[value.strip().lower()]
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0.0 <= number <= 1.0:
        raise BadGrade(f"score must be a number between 0 and 1, pass or fail, not {show(plain(value), SAID)}")
    return number


def _read(data: Json, book: Gradebook, grader: str) -> Grade | None:
    if not isinstance(data, dict):
        raise BadGrade(f"must be an object with case, evaluator and score, not {show(plain(data), SAID)}")
    for key in data:
        if key not in KEYS + TOLD:
            raise BadGrade(f"has no use for {show(key, SAID)}{nearest(key, KEYS)}")
    if "score" not in data:
        raise BadGrade("has no score; null leaves it waiting")
    address = _find(data, book)
    if data["score"] is None:
        return None
    reasoning, by = data.get("reasoning"), data.get("grader")
    for name, text in (("reasoning", reasoning), ("grader", by)):
        if text is not None and not isinstance(text, str):
            raise BadGrade(f"{name} must be text, not {show(plain(text), SAID)}")
    return Grade(address, read_score(data["score"]), reasoning or "", by or grader)


def _find(data: dict[str, Json], book: Gradebook) -> Address:
    """The one score that a row means; what it leaves out must not be needed to tell."""
    for name in ("case", "evaluator"):
        if not isinstance(data.get(name), str):
            raise BadGrade(f"must name its {name}")
    found = [item.address for item in book.waiting if _means(data, item.address)]
    if len(found) == 1:
        return found[0]
    if found:
        names = [name for name in ("suite", "trial", "turn") if len({getattr(a, name) for a in found}) > 1]
        raise BadGrade(f"could mean any of {len(found)} scores; say which {' and '.join(names)}")
    raise BadGrade(_why_not(data, book))


def _means(data: dict[str, Json], address: Address) -> bool:
    return all(
        name not in data or (type(data[name]), data[name]) == (type(getattr(address, name)), getattr(address, name))
        for name in ("suite", "case", "trial", "turn", "evaluator")
    )


def _why_not(data: dict[str, Json], book: Gradebook) -> str:
    done = [score for address, score in book.known.items() if _means(data, address)]
    what = f"{show(data['evaluator'], SAID)} of case {show(data['case'], SAID)}"
    if done:
        return f"{what} does not wait for a grade: {_as_it_is(done[0])}"
    addresses = [item.address for item in book.waiting] + list(book.known)
    for name in ("suite", "case", "evaluator"):
        names = [getattr(address, name) for address in addresses]
        if name in data and data[name] not in names:
            return f"run {book.run.id} has no {name} {show(plain(data[name]), SAID)}{nearest(str(data[name]), names)}"
    return f"{what} is not in run {book.run.id} with this {' and '.join(n for n in ('trial', 'turn') if n in data)}"


def _as_it_is(score: Score) -> str:
    said = score.outcome.value if score.value is None else f"{score.outcome.value} with {score.value:g}"
    return f"{said}, graded by {score.details[GRADED_BY]}" if GRADED_BY in score.details else said


def _together(problems: Sequence[str]) -> str:
    count = len(problems)
    return "\n".join([*problems, f"{count} problem{'s' if count != 1 else ''}; nothing was graded"])
