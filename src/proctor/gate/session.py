"""The gate in a run: finished trials come in, requests for more trials go out, and at the end a result.

A `GateSession` does not know the engine or its plan. The engine passes in the cases with their baselines and reports
each finished trial. It turns each `TrialRequest` into a trial of its plan (`proctor.running.gate_trials`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from proctor.base.json_data import fingerprint, to_json
from proctor.cases.identity import CaseAddress, question_key
from proctor.gate.baseline import (
    CaseBaseline,
    is_new_evidence,
    models_of,
    outcome_of_others,
    outcome_under,
    trial_score,
)
from proctor.gate.decision import Gate, TrialRequest
from proctor.gate.new_cases import new_cases_verdict
from proctor.gate.other_days import Counts
from proctor.gate.settings import GateSettings
from proctor.gate.two_arm import TwoArmGate
from proctor.gate.verdict import overall_verdict
from proctor.results.comparison.alignment import most_similar_trials
from proctor.results.comparison.divergence import Divergence
from proctor.results.gate_result import NEW_ARM, OLD_ARM, CaseStatus, GateResult, WorldChange
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import SuiteVerdict

PASSING_TRIALS = 5
"""How many stored passing trials of a case are compared with a failing one, to find the most similar."""


class GateSession:
    """Gives the engine the trials to run next, and the run its gate result."""

    def __init__(
        self,
        baselines: Mapping[CaseAddress, CaseBaseline],
        settings: GateSettings,
        *,
        source: str = "",
        run_id: str = "",
        quarantined: Collection[CaseAddress] = (),
        store: Store | None = None,
        new_suites: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`baselines` has the baseline of every case of the run, in the order of reports; `source` says where they were
        read from. `store` is searched for passing trials to compare failing ones with. With two versions, `run_id`
        fixes the random order of trials, so that a resumed run continues with the same, and `new_suites` has the suite
        of the new version for each suite of the old one: a case of both is one case.
        """
        self.settings = settings
        self._new_suites = new_suites
        self._baselines = baselines
        self._source = source
        self._store = store
        records = {case: baseline.record for case, baseline in baselines.items()}
        self._gate: Gate | TwoArmGate
        self._known_checks: dict[CaseAddress, frozenset[str]] = {}
        """The evaluators that the baseline knows, for cases that have others as well."""
        if settings.against is None:
            self._known_checks = {case: item.checks for case, item in baselines.items() if item.checks is not None}
            self._gate = Gate(records, settings, quarantined)
        else:
            runs = _recorded_runs(baselines)
            # Both versions run under all evaluators, so only a baseline under all of them compares.
            records = {case: baselines[case].record if baselines[case].checks is None else None for case in baselines}
            self._gate = TwoArmGate(records, settings, quarantined, recorded_runs=runs, seed=run_id)

    def record_stored(self, trials: Iterable[Trial]) -> None:
        """Count the trials that a resumed run already has."""
        for trial in sorted(trials, key=lambda item: item.number):
            self.record(trial)

    def record(self, trial: Trial) -> None:
        """Count a finished trial."""
        case = self._address(trial)
        if case not in self._baselines:  # a resumed run may have trials of cases that were removed
            return
        score, arm = trial_score(TrialSummary.of(trial)), trial.arm or NEW_ARM
        known = self._known_checks.get(case)
        # An answer or a judgement that was only repeated says nothing new about the agent.
        outcome = outcome_under(known, trial) if is_new_evidence(trial) else Outcome.SKIPPED
        if isinstance(self._gate, TwoArmGate):
            answer = fingerprint([[reply.text, to_json(reply.tool_calls)] for reply in trial.replies])
            self._gate.record(case, outcome, score, arm, answer=answer)
        else:
            new = None if known is None else outcome_of_others(known, trial)
            self._gate.record(case, outcome, score, arm, new_checks=new)

    def _address(self, trial: Trial) -> CaseAddress:
        """The case, whichever version ran it."""
        return self._new_suites.get(trial.suite, trial.suite), trial.case.id

    def next_trials(self) -> list[TrialRequest]:
        """The next round of trials; empty when the gate has decided."""
        return self._gate.next_trials()

    def attempts(self, case: CaseAddress, arm: str = NEW_ARM) -> int:
        """How many trials of a case were counted so far for an arm, errors included."""
        return self._gate.attempts(case, arm)

    def stop(self, reason: str) -> None:
        """End the gate early; the result uses the trials so far."""
        self._gate.stop(reason)

    def result(self, run: Run) -> GateResult:
        """The result for a run. For a run that ended early, only a proven regression is a verdict."""
        result = self._gate.result()
        suspects = {case.address for case in result.with_status(CaseStatus.REGRESSED, CaseStatus.UNDECIDED)}
        divergences = self._divergences(run, suspects)
        cases = tuple(
            replace(
                case,
                no_baseline_because=self._baselines[case.address].missing_because,
                divergence=divergences.get(case.address),
            )
            for case in result.cases
        )
        result = replace(result, baseline=self._source, cases=cases)
        if result.world is not None:
            result = replace(result, world=self._with_models(result.world, run))
        infos = [info for info in run.suites if info.arm != OLD_ARM]
        return overall_verdict(result, infos, self._verdicts_on_new_checks(result, run, infos), run.note)

    def _with_models(self, world: WorldChange, run: Run) -> WorldChange:
        """The change with the models then and now, which may explain it."""
        cases = set(world.cases) or set(self._baselines)
        old_trials = [trial for trial in run.trials if trial.arm == OLD_ARM and self._address(trial) in cases]
        baselines = [self._baselines[case] for case in cases]
        return replace(
            world,
            models_then=tuple(sorted({model for baseline in baselines for model in baseline.models})),
            models_now=models_of(old_trials),
        )

    def _verdicts_on_new_checks(self, result: GateResult, run: Run, infos: Sequence[SuiteInfo]) -> list[SuiteVerdict]:
        """The verdict of each suite's own criteria on what no baseline knows: new cases, new evaluators of others."""
        summaries: dict[str, list[TrialSummary]] = {info.name: [] for info in infos}
        new = {case.address for case in result.with_status(CaseStatus.NEW)}
        for summary in run.summaries:
            if (summary.suite, summary.case_id) in new:
                summaries[summary.suite].append(summary)
        for trial in run.trials if self._known_checks else ():
            known = self._known_checks.get((trial.suite, trial.case.id))
            other = None if known is None else outcome_of_others(known, trial)
            if other is not None:
                summaries[trial.suite].append(replace(TrialSummary.of(trial), outcome=other))
        return [new_cases_verdict(info, summaries[info.name]) for info in infos]

    def _divergences(self, run: Run, cases: set[CaseAddress]) -> dict[CaseAddress, Divergence]:
        """The first difference between a failing conversation of this run and the most similar passing one."""
        if not cases:
            return {}
        passing: dict[CaseAddress, list[Trial]] = {case: [] for case in cases}
        failing: dict[CaseAddress, list[Trial]] = {case: [] for case in cases}
        for trial in run.trials:
            case = self._address(trial)
            if case in cases and trial.outcome in (Outcome.PASSED, Outcome.FAILED):
                (passing if trial.outcome is Outcome.PASSED else failing)[case].append(trial)
        divergences = {}
        for case in cases:
            pair = most_similar_trials(passing[case] or self._stored_passing(case, failing[case]), failing[case])
            if pair is not None and pair.divergence is not None:
                divergences[case] = pair.divergence
        return divergences

    def _stored_passing(self, case: CaseAddress, failing: Sequence[Trial]) -> list[Trial]:
        """Passing trials of the case in earlier runs, with the same input."""
        if self._store is None or not failing:
            return []
        question = question_key(failing[0].case)
        stored = self._store.passing_trials(*case, PASSING_TRIALS)
        return [trial for trial in stored if question_key(trial.case) == question]


def _recorded_runs(baselines: Mapping[CaseAddress, CaseBaseline]) -> list[dict[CaseAddress, Counts]]:
    """The runs of the baseline, each with the counts of its cases."""
    runs: dict[str, dict[CaseAddress, Counts]] = {}
    for address, baseline in baselines.items():
        for run, counts in baseline.counts_by_run.items():
            runs.setdefault(run, {})[address] = counts
    return list(runs.values())
