"""People's labels for scores: stores a label or a grade, and exports labels as rows for `proctor calibrate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json, to_json
from proctor.results.human_labels import HumanLabel, HumanLabels, ScorePlace
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.results.trial import Trial
from proctor.running.resume import exclusive_run
from proctor.running.review.grading import Grade, Gradebook, ScoreAddress, pending_score


def label_score(folder: Path, run: str, no: int, at: int, label: HumanLabel) -> bool:
    """Store a label for score number `at` of the trial with row number `no`; returns whether it graded a pending score.

    Raises `UsageError` if that is not the score that the person saw, because the run has changed.
    """
    store = Store(folder, create=False)
    try:
        trial = store.trial(no)
        if at >= len(trial.scores) or score_place(trial, at) != label.place:
            raise UsageError("the run has changed: that score no longer exists")
        if trial.scores[at].outcome is not Outcome.PENDING:
            with HumanLabels(store.path) as labels:
                labels.add(run, label)
            return False
        with exclusive_run(store, run):
            suite, case, number, turn, evaluator = label.place
            address = ScoreAddress(suite, case, number, turn, evaluator)
            grade = Grade(address, float(label.passed), label.comment, label.who)
            Gradebook(store, run, find_pending=False).record([grade])
        return True
    finally:
        store.close()


def score_place(trial: Trial, at: int) -> ScorePlace:
    score = trial.scores[at]
    return trial.suite, trial.case.id, trial.number, score.turn, score.evaluator


def calibration_rows(folder: Path, run: str, evaluator: str | None = None) -> Iterator[dict[str, Json]]:
    """The labels of a run as rows for `proctor calibrate`, each with the person and the time."""
    store = Store(folder, create=False)
    try:
        row = store.find_run(run)
        with HumanLabels(store.path) as labels:
            run_labels = labels.for_run(row.id)
        keys = store.stored_trials(row.no)
        for label in run_labels:
            suite, case, number, turn, name = label.place
            if evaluator in (None, name) and (suite, case, number) in keys:
                trial = store.trial(keys[suite, case, number].no)
                yield _row(row.id, trial, label, turn, name)
    finally:
        store.close()


def _row(run: str, trial: Trial, label: HumanLabel, turn: int | None, evaluator: str) -> dict[str, Json]:
    index = len(trial.replies) - 1 if turn is None else turn
    at = next((at for at in range(len(trial.scores)) if score_place(trial, at) == label.place), None)
    shown_score = None if at is None else pending_score(trial, trial.scores[at])
    reply = trial.replies[index] if 0 <= index < len(trial.replies) else None
    row: dict[str, Json] = {
        "id": "/".join([run, *map(str, label.place), label.who]),
        "input": None if shown_score is None else shown_score.question,
        "answer": None if shown_score is None else shown_score.answer,
        "label": "pass" if label.passed else "fail",
        "evaluator": evaluator,
        "comment": label.comment,
        "who": label.who,
        "at": label.at,
    }
    if reply is not None and reply.retrieval_context:
        row["context"] = list(reply.retrieval_context)
    if shown_score is not None and shown_score.expected is not UNSET:
        row["reference"] = to_json(shown_score.expected)
    return row
