"""The gate in a run: trials of the engine go in, requests for further trials come out, and at the end a result.

A `GateSession` knows no engine and no plan. The engine names the cases with what was recorded of them, reports each
finished trial, and turns each `TrialRequest` into a trial of its plan (`proctor.running.gate_trials`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from proctor.cases.identity import CaseAddress, question_key
from proctor.gate.baseline import CaseBaseline, trial_score
from proctor.gate.decision import Gate, TrialRequest
from proctor.gate.settings import GateSettings
from proctor.gate.verdict import overall_verdict
from proctor.results.comparison.alignment import most_similar_trials
from proctor.results.comparison.divergence import Divergence
from proctor.results.gate_result import NEW_ARM, CaseStatus, GateResult
from proctor.results.run import Outcome, Run, TrialResult, TrialSummary
from proctor.results.store.store import Store
from proctor.results.verdict import SuiteVerdict, suite_verdict

PASSING_TRIALS = 5
"""Among so many stored passing trials of a case, the one most similar to a failing trial is looked for."""


class GateSession:
    """Tells the engine which trials to run next, and the run what the gate found."""

    def __init__(
        self,
        baselines: Mapping[CaseAddress, CaseBaseline],
        settings: GateSettings,
        *,
        source: str = "",
        quarantined: Collection[CaseAddress] = (),
        store: Store | None = None,
    ) -> None:
        """`baselines`: for every case of the run, in the order of reports, what its baseline says; `source`: where that
        was read from. Passing trials to compare a failing one with are looked for in `store`.
        """
        self._baselines = baselines
        self._source = source
        self._store = store
        records = {case: baseline.record for case, baseline in baselines.items()}
        self._gate = Gate(records, settings, quarantined)

    def record_stored(self, summaries: Iterable[TrialSummary]) -> None:
        """Count the trials that a resumed run has already."""
        for summary in sorted(summaries, key=lambda item: item.number):
            self._record(summary)

    def record(self, trial: TrialResult) -> None:
        """Count a trial that has just been finished."""
        self._record(TrialSummary.of(trial))

    def _record(self, trial: TrialSummary) -> None:
        case = (trial.suite, trial.case_id)
        if case in self._baselines:  # a resumed run may have trials of cases that are gone
            self._gate.record(case, trial.outcome, trial_score(trial), trial.arm or NEW_ARM)

    def next_trials(self) -> list[TrialRequest]:
        """The next round; empty when the gate is sure."""
        return self._gate.next_trials()

    def attempts(self, case: CaseAddress) -> int:
        """How many trials of a case were counted so far."""
        return self._gate.attempts(case)

    def stop(self, reason: str) -> None:
        """End the gate early; it concludes from what it has."""
        self._gate.stop(reason)

    def result(self, run: Run) -> GateResult:
        """The verdict on a run. One that was cut short has a verdict only if a regression is proven."""
        found = self._gate.result()
        suspects = {case.address for case in found.with_status(CaseStatus.REGRESSED, CaseStatus.UNDECIDED)}
        divergences = self._divergences(run, suspects)
        cases = tuple(
            replace(
                case,
                no_baseline_because=self._baselines[case.address].missing_because,
                divergence=divergences.get(case.address),
            )
            for case in found.cases
        )
        found = replace(found, baseline=self._source, cases=cases)
        new = {case.address for case in found.with_status(CaseStatus.NEW)}
        return overall_verdict(found, run.suites, _verdicts_on(new, run), run.note)

    def _divergences(self, run: Run, wanted: set[CaseAddress]) -> dict[CaseAddress, Divergence]:
        """Where a failing conversation of this run and a passing one, of this run or an earlier one, differ first."""
        if not wanted:
            return {}
        passing: dict[CaseAddress, list[TrialResult]] = {case: [] for case in wanted}
        failing: dict[CaseAddress, list[TrialResult]] = {case: [] for case in wanted}
        for trial in run.trials:
            case = (trial.suite, trial.case.id)
            if case in wanted and trial.outcome in (Outcome.PASSED, Outcome.FAILED):
                (passing if trial.outcome is Outcome.PASSED else failing)[case].append(trial)
        divergences = {}
        for case in wanted:
            pair = most_similar_trials(passing[case] or self._stored_passing(case, failing[case]), failing[case])
            if pair is not None and pair.divergence is not None:
                divergences[case] = pair.divergence
        return divergences

    def _stored_passing(self, case: CaseAddress, failing: Sequence[TrialResult]) -> list[TrialResult]:
        """Passing trials of earlier runs with the same question."""
        if self._store is None or not failing:
            return []
        question = question_key(failing[0].case)
        stored = self._store.passing_trials(*case, PASSING_TRIALS)
        return [trial for trial in stored if question_key(trial.case) == question]


def _verdicts_on(cases: Collection[CaseAddress], run: Run) -> list[SuiteVerdict]:
    """By suite: what its own criteria say of these cases alone."""
    verdicts = []
    for info in run.suites:
        own = [trial for trial in run.summaries if trial.suite == info.name and (trial.suite, trial.case_id) in cases]
        verdicts.append(suite_verdict(replace(info, planned=len(own)), own))
    return verdicts
