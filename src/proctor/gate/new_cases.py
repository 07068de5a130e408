"""Cases without a baseline: nothing they do is a regression, so the suite's own criteria decide about them.

One failure says little about a new case, as about any other. A new case that fails runs `NEW_CASE_TRIALS` times. It
fails if no trial passed, is undecided if fewer than half did, and otherwise passes; its failures become part of its
baseline. Suites that set their own rule for several trials (`criteria: {trials: any}`) keep it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proctor.gate.settings import NEW_CASE_TRIALS
from proctor.results.score import Outcome
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import TrialSummary
from proctor.results.verdict import SuiteVerdict, suite_verdict


def needs_another_trial(passed: Sequence[bool], attempts: int) -> bool:
    """Whether a new case runs again: it failed, and has not run often enough to say that it fails."""
    return attempts < NEW_CASE_TRIALS and False in passed


def new_cases_verdict(info: SuiteInfo, trials: Sequence[TrialSummary]) -> SuiteVerdict:
    """The verdict of the suite's criteria on these trials of its new cases."""
    if info.criteria.trials == "all":
        by_case: dict[str, list[TrialSummary]] = {}
        for trial in trials:
            by_case.setdefault(trial.case_id, []).append(trial)
        trials = [replace(group[0], outcome=_outcome(group)) for group in by_case.values()]
    return suite_verdict(replace(info, planned=len(trials)), trials)


def _outcome(trials: Sequence[TrialSummary]) -> Outcome:
    outcomes = [trial.outcome for trial in trials]
    passed, failed = outcomes.count(Outcome.PASSED), outcomes.count(Outcome.FAILED)
    if not failed:
        return outcomes[0]
    if not passed:
        return Outcome.FAILED
    return Outcome.PASSED if passed > failed else Outcome.PENDING
