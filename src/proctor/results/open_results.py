"""Pending scores as checks without a result, for assertions about a run or a trial."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.base.open_checks import OpenCheck
from proctor.results.judge_usage import judge_details
from proctor.results.score import Outcome, Score
from proctor.results.trial import Trial


def open_check_of(trials: Iterable[Trial], details: str) -> OpenCheck:
    """The check that the pending trials among these leave open."""
    scores = [score for trial in trials if trial.outcome is Outcome.PENDING for score in pending_scores(trial)]
    names = tuple(dict.fromkeys(score.evaluator for score in scores))
    is_judged = any(judge_details(score) is not None for score in scores)
    summary = "" if names else "a case has no result"
    return OpenCheck(names, "model" if is_judged else "grade", details, summary)


def pending_scores(trial: Trial) -> list[Score]:
    """The pending scores that count."""
    return [score for score in trial.scores if score.outcome is Outcome.PENDING and not score.report_only]
