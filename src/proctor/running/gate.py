"""Drives the gate through a run: every case once, then only what it asks for, on fresh trials."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.base.errors import UsageError
from proctor.cases.identity import content_key, question_key
from proctor.results.baseline import Baseline, CaseIdentity, Spread, Usual, baseline_path, read_baseline, trial_score
from proctor.results.comparison.alignment import Divergence, nearest_pair
from proctor.results.comparison.significance import Enlargement, PlannedCase, detectable_drop, enlargement
from proctor.results.gate import DRIFT_SHARES, CaseFinding, Gate, GateOptions, GateReport, Past, Standing
from proctor.results.gate_evidence import UsualRates
from proctor.results.gate_outcome import QUARANTINED, GatedCase, GateOutcome, conclude
from proctor.results.history import baseline_of_run
from proctor.results.masking import mask_case
from proctor.results.run import Outcome, Run, RunStatus, TrialResult, TrialSummary
from proctor.results.store.store import Store
from proctor.results.verdict import SuiteVerdict, judge_suite
from proctor.running.plan import Plan, PlannedTrial
from proctor.running.resume import evaluator_keys

Address = tuple[str, str]

PASSING_KEPT = 5
"""Among so many earlier passing trials of a case the one nearest to a failing trial is looked for."""


@dataclass(frozen=True, slots=True)
class GateRequest:
    """How a run is gated."""

    alpha: float = 0.05
    max_trials: int = 10
    baseline: str | None = None
    """A file, or a run that is kept; by default the files beside the suites."""

    @property
    def stride(self) -> int:
        """Positions between one case and the next: room for all trials that the gate can ask for."""
        return self.max_trials + len(DRIFT_SHARES) + 1


def spaced(plan: Plan, request: GateRequest) -> Plan:
    """The plan with room behind each case, so that further trials stand beside the first one in reports."""
    trials = tuple(replace(trial, position=at * request.stride) for at, trial in enumerate(plan.trials))
    return replace(plan, trials=trials)


def all_possible(plan: Plan, request: GateRequest) -> Plan:
    """The plan with every trial that the gate could ask for: a resumed run keeps those that are there."""
    numbers = range(1, request.stride + 1)
    return replace(plan, trials=tuple(_further(trial, number) for trial in plan.trials for number in numbers))


def _further(planned: PlannedTrial, number: int) -> PlannedTrial:
    return replace(planned, number=number, position=planned.position + number - 1)


class GateRounds:
    """Tells the engine which trials to make next, and the run what the gate found."""

    def __init__(
        self, plan: Plan, request: GateRequest, store: Store | None, usual: tuple[Mapping[Address, Usual], str]
    ) -> None:
        """`usual` is what `usual_of_plan` returns for this plan."""
        self._request = request
        self._store = store
        self._first = {_address(trial): trial for trial in plan.trials}
        self._quarantined = {(item.suite.name, case.case) for item in plan.suites for case in item.quarantined}
        self._usual, self._source = usual
        options = GateOptions(request.alpha, request.max_trials)
        gated = {address: self._usual[address].past for address in self._first if address not in self._quarantined}
        self._names = {f"{at}": address for at, address in enumerate(gated)}
        self._keys = {address: name for name, address in self._names.items()}
        self._gate = Gate({name: gated[address] for name, address in self._names.items()}, options)
        self._attempts: Counter[Address] = Counter()
        self._errors: Counter[Address] = Counter()
        self._outcomes: dict[Address, Outcome] = {}
        self._scores: dict[Address, float | None] = {}

    def replay(self, summaries: Iterable[TrialSummary]) -> None:
        """Tell the gate of the trials that a resumed run made before."""
        for summary in sorted(summaries, key=lambda item: item.number):
            self._record(summary)

    def trial_done(self, trial: TrialResult) -> None:
        self._record(TrialSummary.of(trial))

    def _record(self, trial: TrialSummary) -> None:
        address = (trial.suite, trial.case_id)
        self._attempts[address] += 1
        score = trial_score(trial)
        if self._attempts[address] == 1:
            self._outcomes[address], self._scores[address] = trial.outcome, score
        self._errors[address] += trial.outcome is Outcome.ERROR
        if address in self._keys:
            passed = {Outcome.PASSED: True, Outcome.FAILED: False}.get(trial.outcome)
            self._gate.record(self._keys[address], passed, score)

    def next_trials(self) -> list[PlannedTrial]:
        """The next round; empty when the gate is sure."""
        asked = [self._names[name] for name in self._gate.next_cases()]
        return [_further(self._first[address], self._attempts[address] + 1) for address in asked]

    def stop(self, reason: str) -> None:
        self._gate.stop(reason)

    def conclude(self, run: Run) -> GateOutcome:
        """The verdict; a run that was cut short has one only if a regression is proven."""
        report = self._gate.report()
        cases = [self._gated(self._names[finding.case], finding) for finding in report.cases]
        cases += [self._left_out(address) for address in sorted(self._quarantined)]
        order = {address: at for at, address in enumerate(self._first)}
        cases.sort(key=lambda case: order[case.address])
        suspects = {case.address for case in cases if case.standing in (Standing.PROVEN, Standing.OPEN)}
        parted = self._divergences(run, suspects)
        cases = [replace(case, divergence=parted.get(case.address)) for case in cases]
        outcome = self._outcome(report, tuple(cases))
        return conclude(outcome, run.suites, self._new_cases(run), run.note)

    def _outcome(self, report: GateReport, cases: tuple[GatedCase, ...]) -> GateOutcome:
        return GateOutcome(
            verdict=report.verdict.value,
            reason="",
            baseline=self._source,
            alpha=self._request.alpha,
            max_trials=self._request.max_trials,
            extra_trials=report.extra_trials,
            stopped=report.stopped,
            drift=report.drift,
            cases=cases,
            suites=(),
        )

    def _gated(self, address: Address, finding: CaseFinding) -> GatedCase:
        usual, past = self._usual[address], finding.past
        first = self._outcomes.get(address)
        return GatedCase(
            *address,
            standing=finding.standing.value,
            first=None if first is None else first.value,
            past_trials=0 if past is None else past.trials,
            past_passes=0 if past is None else past.passes,
            no_past=usual.unknown,
            fresh_trials=finding.fresh_trials,
            fresh_passes=finding.fresh_passes,
            errors=self._errors[address],
            p_value=finding.p_value,
            by_score=finding.by_score,
            usual_score=None if past is None else past.score_mean,
            score=self._scores.get(address),
            needed=finding.needed,
        )

    def _left_out(self, address: Address) -> GatedCase:
        usual, first = self._usual[address], self._outcomes.get(address)
        past = usual.past
        return GatedCase(
            *address,
            standing=QUARANTINED,
            first=None if first is None else first.value,
            past_trials=0 if past is None else past.trials,
            past_passes=0 if past is None else past.passes,
            no_past=usual.unknown,
            errors=self._errors[address],
            score=self._scores.get(address),
        )

    def _new_cases(self, run: Run) -> list[SuiteVerdict]:
        """By suite: what its own criteria say of the cases that have no past."""
        found = []
        for info in run.suites:
            new = [
                summary
                for summary in run.summaries
                if summary.suite == info.name and self._is_new((summary.suite, summary.case_id))
            ]
            found.append(judge_suite(replace(info, planned=len(new)), new))
        return found

    def _is_new(self, address: Address) -> bool:
        return address in self._keys and self._usual[address].past is None

    def _divergences(self, run: Run, wanted: set[Address]) -> dict[Address, Divergence]:
        """Where a failing conversation of this run and a passing one, of this run or an earlier one, part."""
        if not wanted:
            return {}
        passing: dict[Address, list[TrialResult]] = {address: [] for address in wanted}
        failing: dict[Address, list[TrialResult]] = {address: [] for address in wanted}
        for trial in run.trials:
            address = (trial.suite, trial.case.id)
            if address in wanted and trial.outcome in (Outcome.PASSED, Outcome.FAILED):
                (passing if trial.outcome is Outcome.PASSED else failing)[address].append(trial)
        found = {}
        for address in wanted:
            known = passing[address] or self._earlier(address, failing[address])
            pair = nearest_pair(known, failing[address])
            if pair is not None and pair.divergence is not None:
                found[address] = pair.divergence
        return found

    def _earlier(self, address: Address, failing: Sequence[TrialResult]) -> list[TrialResult]:
        if self._store is None or not failing:
            return []
        asked = question_key(failing[0].case)
        kept = self._store.passing_trials(*address, PASSING_KEPT)
        return [trial for trial in kept if question_key(trial.case) == asked]


def _address(planned: PlannedTrial) -> Address:
    return planned.suite.suite.name, planned.case.id


def usual_of_plan(
    plan: Plan, wanted: str | None, store: Store | None, *, fast: bool
) -> tuple[dict[Address, Usual], str]:
    """What is usual of every case of a plan, and where that was read."""
    known, source = _baselines(plan, wanted, store)
    identities = identities_of_plan(plan, fast=fast)
    return {address: known[address[0]].usual(identity) for address, identity in identities.items()}, source


def identities_of_plan(plan: Plan, *, fast: bool = False) -> dict[Address, CaseIdentity]:
    """By suite and case: by what its past is found."""
    keys = evaluator_keys(plan, fast=fast)
    found: dict[Address, CaseIdentity] = {}
    for planned in plan.trials:
        name, case = _address(planned)
        if (name, case) not in found:
            evaluators = keys[name].get(case, keys[name][""])
            content = content_key(mask_case(planned.case))
            found[name, case] = CaseIdentity(name, case, planned.suite.agent.name, content, evaluators)
    return found


def _baselines(plan: Plan, wanted: str | None, store: Store | None) -> tuple[dict[str, Baseline], str]:
    names = [item.suite.name for item in plan.suites]
    if wanted is not None:
        shared = named_baseline(wanted, store)
        return dict.fromkeys(names, shared), wanted
    paths = {item.suite.name: baseline_path(item.suite.path) for item in plan.suites}
    read = {path: read_baseline(path) if path.is_file() else Baseline() for path in dict.fromkeys(paths.values())}
    there = [str(path) for path in read if path.is_file()]
    return {name: read[path] for name, path in paths.items()}, ", ".join(there) or "none"


def named_baseline(wanted: str, store: Store | None) -> Baseline:
    """The baseline that `--baseline` names: a file, or a run that is kept."""
    path = Path(wanted)
    if path.is_file():
        return read_baseline(path)
    if path.suffix == ".jsonl" or path.parent != Path():
        raise UsageError(f"--baseline: there is no file {wanted}; make it with `proctor baseline accept`")
    if store is None:
        raise UsageError(f"--baseline {wanted}: names no file, and no runs are kept here")
    run = store.find_run(wanted)
    if run.status is not RunStatus.FINISHED:
        raise UsageError(
            f"--baseline {wanted}: run {run.id} was interrupted, so that it is no measure of what is usual"
        )
    return baseline_of_run(run)


ASSUMED_RATE = 0.9


ASSUMED_TRIALS = 10
"""What a plan assumes of a case that has no past: how often it passes, and how many trials will be recorded first."""


SIMULATED_TRIALS = 4000
"""Simulated gates together ask about so many cases: enough for a mean, and quick."""


@dataclass(frozen=True, slots=True)
class GatePlan:
    """What can be said about a gated run beforehand."""

    cases: int
    known: int
    """Cases that have a past."""
    recorded: int
    """Trials recorded of them."""
    sees: Mapping[int, float | None]
    """By runs of each case: the smallest drop of all pass rates that is noticed with a chance of 80 %."""
    target: float
    to_see_target: Enlargement
    trials: float
    """Expected in a gated run if nothing changed."""
    trials_high: int
    """The most that nine in ten such runs take."""
    seconds: float | None
    tokens: float | None
    usd: float | None
    unmeasured: int
    """Cases whose time was never recorded; time and cost are scaled up for them."""


def plan_gate(usuals: Sequence[Usual], options: GateOptions, repeats: int, target: float) -> GatePlan:
    """Estimates by driving the shipped gate with simulated outcomes at the usual rates."""
    pasts = [usual.past for usual in usuals]
    known = [past for past in pasts if past is not None]
    rates = UsualRates((past.passes, past.trials) for past in known) if known else None
    planned = [_planned(past, rates) for past in pasts]
    spent = _simulated(pasts, planned, options)
    mean = math.fsum(spent) / len(spent)
    share = options.alpha * DRIFT_SHARES[0]
    runs = sorted({1, len(DRIFT_SHARES), repeats})
    return GatePlan(
        cases=len(usuals),
        known=len(known),
        recorded=sum(past.trials for past in known),
        sees={count: detectable_drop(planned, count, alpha=share) for count in runs},
        target=target,
        to_see_target=enlargement(planned, target, repeats, alpha=share),
        trials=mean,
        trials_high=round(sorted(spent)[min(len(spent) - 1, math.ceil(0.9 * len(spent)) - 1)]),
        seconds=_total([usual.seconds for usual in usuals], mean),
        tokens=_total([usual.tokens for usual in usuals], mean),
        usd=_total([usual.usd for usual in usuals], mean),
        unmeasured=sum(usual.seconds is None for usual in usuals),
    )


def _planned(past: Past | None, rates: UsualRates | None) -> PlannedCase:
    if past is None or rates is None:
        return PlannedCase(ASSUMED_RATE, ASSUMED_TRIALS)
    return PlannedCase(rates.belief(past.passes, past.trials).mean, past.trials)


def _simulated(pasts: Sequence[Past | None], planned: Sequence[PlannedCase], options: GateOptions) -> list[int]:
    """How many trials gated runs of the unchanged suite take; the same each time it is asked."""
    rng = random.Random(0)  # noqa: S311  the same answer each time is wanted
    assumed = Past(ASSUMED_TRIALS, round(ASSUMED_RATE * ASSUMED_TRIALS))
    names = {f"{at}": (past or assumed, case.rate) for at, (past, case) in enumerate(zip(pasts, planned, strict=True))}
    spent = []
    for _ in range(max(3, min(50, SIMULATED_TRIALS // max(1, len(names))))):
        gate, trials = Gate({name: past for name, (past, _) in names.items()}, options), 0
        while cases := gate.next_cases():
            trials += len(cases)
            for case in cases:
                gate.record(case, passed=rng.random() < names[case][1])
        spent.append(trials)
    return spent


def _total(spreads: Sequence[Spread | None], trials: float) -> float | None:
    """What so many trials take: the mean over cases, those that were never measured like the others."""
    known = [spread.mean for spread in spreads if spread is not None]
    return trials * math.fsum(known) / len(known) if known else None
