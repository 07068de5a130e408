"""What people say of scores that are there already: a second opinion on a grade, or whether a judge was right."""

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
"""Suite, case, repetition, turn and evaluator of a score."""


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """What one person said of one score, and when."""

    place: ScorePlace
    passed: bool
    comment: str
    who: str
    at: float = 0.0


class HumanLabels:
    """The labels of one store, on a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path)

    def __enter__(self) -> HumanLabels:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def add(self, run: str, label: HumanLabel) -> None:
        """Keep a label; what the same person said of the same score before is replaced."""
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
        """Every label of a run: those given beside a score, and the grades that people gave, in the order of time."""
        found = [*self.second_opinions(run), *self._grades(run)]
        return sorted(found, key=lambda label: label.at)

    def second_opinions(self, run: str) -> Iterator[HumanLabel]:
        """What people said of scores that are there already."""
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
            known = json.loads(details)
            if isinstance(known.get("graded_by"), str):
                place = (decode_text(suite), decode_text(case), number, turn, decode_text(evaluator))
                moment = _seconds(known.get("graded_at"))
                yield HumanLabel(place, outcome == "passed", decode_text(reasoning), known["graded_by"], moment)


def _seconds(text: Any) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How far two people, or a judge and a person, say the same of the same scores."""

    first: str
    second: str
    agreement: JudgeAgreement


def pairwise_agreement(labels: Sequence[HumanLabel]) -> list[PairAgreement]:
    """Each two people who labelled a score in common."""
    by_person: dict[str, dict[ScorePlace, bool]] = {}
    for label in labels:
        by_person.setdefault(label.who, {})[label.place] = label.passed
    found = []
    for first, second in combinations(sorted(by_person), 2):
        shared = [place for place in by_person[first] if place in by_person[second]]
        if shared:
            sides = ([by_person[who][place] for place in shared] for who in (first, second))
            found.append(PairAgreement(first, second, judge_agreement(*sides)))
    return found
