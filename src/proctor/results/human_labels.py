"""Labels that people give to existing scores: whether a judge was right, or a second opinion on a grade."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from pathlib import Path
from types import TracebackType
from typing import Any

from proctor.base.masking import mask
from proctor.results.agreement import JudgeAgreement, judge_agreement
from proctor.results.store.database import Database
from proctor.results.store.text_columns import decode_text, encode_text

ScorePlace = tuple[str, str, int, int | None, str]
"""Suite, case, trial number, turn and evaluator of a score."""


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """Whether one person passed or failed one score, and when."""

    place: ScorePlace
    passed: bool
    comment: str
    who: str
    at: float = 0.0


class HumanLabels:
    """The labels in one store, on their own database connection."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def __enter__(self) -> HumanLabels:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def add(self, run: str, label: HumanLabel) -> None:
        """Store a label. It replaces an earlier one by the same person for the same score."""
        suite, case, number, turn, evaluator = label.place
        place = (run, encode_text(suite), encode_text(case), number, turn, encode_text(evaluator))
        who = encode_text(mask(label.who))
        with self._database.transaction():
            self._database.execute(
                "DELETE FROM labels WHERE run = ? AND suite = ? AND case_id = ? AND number = ? AND turn IS ?"
                " AND evaluator = ? AND who = ?",
                (*place, who),
            )
            self._database.execute(
                "INSERT INTO labels (run, suite, case_id, number, turn, evaluator, passed, comment, who, at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*place, int(label.passed), encode_text(mask(label.comment)), who, time.time()),
            )

    def for_run(self, run: str) -> list[HumanLabel]:
        """Every label of a run, and every grade that people gave, the oldest first."""
        labels = [*self.second_opinions(run), *self._grades(run)]
        return sorted(labels, key=lambda label: label.at)

    def second_opinions(self, run: str) -> Iterator[HumanLabel]:
        """The labels that people gave to existing scores."""
        for suite, case, number, turn, evaluator, passed, comment, who, at in self._database.read(
            "SELECT suite, case_id, number, turn, evaluator, passed, comment, who, at FROM labels WHERE run = ?", (run,)
        ):
            place = (decode_text(suite), decode_text(case), number, turn, decode_text(evaluator))
            yield HumanLabel(place, bool(passed), decode_text(comment), decode_text(who), at)

    def _grades(self, run: str) -> Iterator[HumanLabel]:
        for suite, case, number, turn, evaluator, outcome, reasoning, details in self._database.read(
            "SELECT t.suite, t.case_id, t.number, s.turn, s.evaluator, s.outcome, s.reasoning, s.details"
            " FROM trials t JOIN runs r ON r.no = t.run JOIN scores s ON s.trial = t.no"
            " WHERE r.id = ? AND s.details LIKE '%\"graded_by\"%' ORDER BY t.no, s.place",
            (run,),
        ):
            grade = json.loads(details)
            if isinstance(grade.get("graded_by"), str):
                place = (decode_text(suite), decode_text(case), number, turn, decode_text(evaluator))
                graded_at = _timestamp(grade.get("graded_at"))
                yield HumanLabel(place, outcome == "passed", decode_text(reasoning), grade["graded_by"], graded_at)


def _timestamp(text: Any) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How far two people, or a judge and a person, agree on the same scores."""

    first: str
    second: str
    agreement: JudgeAgreement


def pairwise_agreement(labels: Sequence[HumanLabel]) -> list[PairAgreement]:
    """The agreement of each pair of people who labelled the same scores."""
    by_person: dict[str, dict[ScorePlace, bool]] = {}
    for label in labels:
        by_person.setdefault(label.who, {})[label.place] = label.passed
    pairs = []
    for first, second in combinations(sorted(by_person), 2):
        shared = [place for place in by_person[first] if place in by_person[second]]
        if shared:
            sides = ([by_person[who][place] for place in shared] for who in (first, second))
            pairs.append(PairAgreement(first, second, judge_agreement(*sides)))
    return pairs
