"""Grades from people and agents: finds what waits for one in a kept run, and puts it where the score was missing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from proctor.agents.model import Reply
from proctor.cases.model import UNSET, Case, Turn, Unset
from proctor.errors import StoreError
from proctor.evaluators.model import collapse
from proctor.evaluators.registry import DEFAULT_THRESHOLD
from proctor.plain import Json, plain
from proctor.records import record
from proctor.results.model import Outcome, Run, Score, TrialResult, TrialSummary
from proctor.results.reading import read_run
from proctor.results.store import Store
from proctor.results.verdict import RunVerdict, judge, trial_outcome
from proctor.running.booking import alone_with

GRADED_BY, GRADED_AT = "graded_by", "graded_at"
"""Where a score keeps who said so, and when."""


@record
class Address:
    """Which score of a run is meant."""

    suite: str
    case: str
    trial: int
    """Which repetition, from 1."""
    turn: int | None
    """The index of the turn, or `None` for the whole conversation."""
    evaluator: str


@record
class Waiting:
    """One score that is yet to be given, with everything a grader needs to see."""

    address: Address
    criteria: str
    question: Json
    answer: Json
    threshold: float
    expected: Json | Unset = UNSET


@record
class Grade:
    """What somebody says of one answer."""

    address: Address
    score: float
    reasoning: str
    grader: str


class Gradebook:
    """A kept run while it is being graded; each grade is on disk before the next one is asked for."""

    def __init__(self, store: Store, wanted: str) -> None:
        row = store.find_run(wanted)
        self._store = store
        self._no = row.no
        self._info = row.info
        self.run: Run = read_run(store, row.id)
        self._criteria = {info.name: info.criteria for info in self.run.suites}
        self._trials = {address: key.no for address, key in store.trial_keys(row.no).items()}
        self.waiting: list[Waiting] = []
        self.known: dict[Address, Score] = {}
        """Every score of the run that is not waiting."""
        for trial in self.run.trials:
            self._look_at(trial)

    def verdict(self) -> RunVerdict:
        return judge(self.run)

    def record(self, grades: Sequence[Grade]) -> None:
        """Keep grades, all or none, and judge the trials and the run anew."""
        given = {grade.address: grade for grade in grades}
        changed = []
        for place in dict.fromkeys((grade.address.suite, grade.address.case, grade.address.trial) for grade in grades):
            trial = self._store.trial(self._trials[place])
            _require_waiting(trial, given)
            scores = tuple(_graded(score, given.get(_address(trial, score))) for score in trial.scores)
            outcome, _ = trial_outcome(scores, self._criteria[trial.suite])
            changed.append((self._trials[place], replace(trial, scores=scores, outcome=outcome)))
        anew = {trial.position: TrialSummary.of(trial) for _, trial in changed}
        run = replace(self.run, summaries=[anew.get(summary.position, summary) for summary in self.run.summaries])
        verdict = judge(run)
        told = {"outcome": verdict.outcome.value, "reason": verdict.reason, "exit_code": verdict.exit_code}
        counts = {outcome.value: count for outcome, count in verdict.counts.items()}
        info = {**self._info, "verdict": told, "counts": counts}
        self._store.grade_trials(self._no, changed, info)
        self.run, self._info = run, info
        self.waiting = [item for item in self.waiting if item.address not in given]
        self.known |= {_address(trial, score): score for _, trial in changed for score in trial.scores}

    def _look_at(self, trial: TrialResult) -> None:
        for score in trial.scores:
            address = _address(trial, score)
            if score.outcome is Outcome.PENDING:
                self.waiting.append(_waiting(trial, score, address))
            else:
                self.known[address] = score


def look_at(folder: Path, wanted: str) -> Gradebook:
    """The run called `wanted`, to see what waits in it."""
    return Gradebook(Store(folder, create=False), wanted)


@contextmanager
def open_gradebook(folder: Path, wanted: str) -> Iterator[Gradebook]:
    """The run called `wanted`, kept from everybody else until it is closed."""
    store = Store(folder, create=False)
    try:
        run_id = store.find_run(wanted).id
        with alone_with(store, run_id):
            yield Gradebook(store, run_id)
    finally:
        store.close()


def _require_waiting(trial: TrialResult, given: Mapping[Address, Grade]) -> None:
    """The lock of a run is only advice: what somebody has graded all the same is never written over."""
    for score in trial.scores:
        if _address(trial, score) in given and score.outcome is not Outcome.PENDING:
            raise StoreError(f"{score.evaluator} of case {trial.case.id!r} has been graded by somebody else meanwhile")


def _graded(score: Score, grade: Grade | None) -> Score:
    if grade is None or score.outcome is not Outcome.PENDING:
        return score
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return replace(
        score,
        outcome=Outcome.PASSED if grade.score >= _threshold(score) - 1e-12 else Outcome.FAILED,
        value=grade.score,
        reasoning=grade.reasoning,
        details={**score.details, GRADED_BY: grade.grader, GRADED_AT: when},
    )


def _address(trial: TrialResult, score: Score) -> Address:
    return Address(trial.suite, trial.case.id, trial.number, score.turn, score.evaluator)


def _threshold(score: Score) -> float:
    return DEFAULT_THRESHOLD if score.threshold is None else score.threshold


def _waiting(trial: TrialResult, score: Score, address: Address) -> Waiting:
    details: Mapping[str, Json] = score.details
    turns = trial.case.turns if score.turn is None else trial.case.turns[score.turn :][:1]
    replies = trial.replies if score.turn is None else trial.replies[score.turn :][:1]
    questions = [_question(trial.case, turn) for turn in turns]
    answers = [_answer(reply) for reply in replies]
    return Waiting(
        address,
        criteria=str(details.get("criteria") or score.reasoning),
        question=questions[0] if len(questions) == 1 else questions,
        answer=answers[0] if len(questions) == 1 and answers else answers,
        threshold=_threshold(score),
        expected=turns[-1].expected.output if turns else UNSET,
    )


def _question(case: Case, turn: Turn) -> Json:
    """The words, or the values by name where there are no words."""
    if turn.input is None and case.inputs:
        return {item.name: plain(item.value) for item in case.inputs}
    return plain(turn.input)


def _answer(reply: Reply) -> Json:
    """What evaluators saw: the named outputs where there are any, else the words, else the data."""
    if reply.outputs:
        return plain(collapse(reply.outputs))
    return reply.text if reply.text or reply.structured is None else plain(reply.structured)
