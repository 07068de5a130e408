"""Connects the gate to a plan: the baselines of its cases, and the planned trial for each request of the gate.

The gate requests more trials during the run. Reports show them next to the first trial of their case, so a gated plan
reserves positions for them; a resumed run looks for stored trials at all of these positions.

With two versions of the agent, the plan has every suite once per arm, and the trials of the new arm only: the gate
requests those of the old one. The suite of the new arm keeps its name, so that runs with and without a second version
have the same cases and share a baseline.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from proctor.cases.arms import WORKING_FOLDER
from proctor.cases.identity import CaseAddress, content_key
from proctor.gate.baseline import CaseBaseline, CaseIdentity, baselines_of_suites, check_key
from proctor.gate.decision import TrialRequest
from proctor.gate.session import GateSession
from proctor.gate.settings import GateSettings
from proctor.results.gate_result import NEW_ARM, OLD_ARM
from proctor.results.masking import mask_case
from proctor.results.store.store import Store
from proctor.running.plan import Plan, PlannedSuite, PlannedTrial
from proctor.running.resume import scoring_keys


def arms_to_compare(against: str) -> dict[str, str]:
    """The arms of a gate with two versions; the new one is last, so it decides."""
    return {OLD_ARM: against, NEW_ARM: WORKING_FOLDER}


def reserve_positions(plan: Plan, settings: GateSettings) -> Plan:
    """The plan of the first round, with free positions after each case for every trial that the gate may request."""
    step = settings.max_trials_per_case
    trials = [trial for trial in plan.trials if settings.against is None or trial.suite.arm != OLD_ARM]
    first_round = plan.with_trials(replace(trial, position=at * step) for at, trial in enumerate(trials))
    return first_round if settings.against is None else first_round.with_suites(_with_own_name)


def _with_own_name(item: PlannedSuite) -> PlannedSuite:
    """The suite of the new arm without the arm in its name."""
    return item if item.arm == OLD_ARM else replace(item, suite=replace(item.suite, name=item.source))


def with_every_follow_up(plan: Plan, settings: GateSettings) -> Plan:
    """The plan with every trial that the gate may request; a resumed run keeps those that are stored."""
    old_suites = _old_suites(plan)
    numbers = range(1, settings.max_trials_per_arm + 1)
    trials: list[PlannedTrial] = []
    for trial in plan.trials:
        trials += [trial.follow_up(number) for number in numbers]
        if (old := old_suites.get(trial.suite.source)) is not None:
            trials += [_on_old_arm(trial, old, number, settings) for number in numbers]
    return replace(plan, trials=tuple(trials))


def planned_trials(plan: Plan, requests: Iterable[TrialRequest], session: GateSession) -> list[PlannedTrial]:
    """The trials that the gate requests, each as the next trial of its case on its arm, in the same order."""
    first = {_address(trial): trial for trial in plan.trials}
    old_suites = _old_suites(plan)
    trials = []
    for request in requests:
        planned, number = first[request.case], session.attempts(*request) + 1
        if request.arm == OLD_ARM:
            trials.append(_on_old_arm(planned, old_suites[planned.suite.source], number, session.settings))
        else:
            trials.append(planned.follow_up(number))
    return trials


def _old_suites(plan: Plan) -> dict[str, PlannedSuite]:
    """The suites with the old version of the agent, by their name in the file."""
    return {item.source: item for item in plan.suites if item.arm == OLD_ARM}


def _on_old_arm(planned: PlannedTrial, suite: PlannedSuite, number: int, settings: GateSettings) -> PlannedTrial:
    """A trial of the old version, scored by the same evaluators as the new one; `planned` is the case's first trial."""
    position = planned.position + settings.max_trials_per_arm + number - 1
    return replace(planned, suite=suite, number=number, position=position)


def gate_session(
    plan: Plan,
    settings: GateSettings,
    baselines: tuple[dict[CaseAddress, CaseBaseline], str],
    store: Store | None,
    run_id: str,
) -> GateSession:
    """The gate of a run; `baselines` is what `baselines_for` returns for the plan."""
    quarantined = {(item.suite.name, case.case) for item in plan.suites for case in item.quarantined}
    records, source = baselines
    new_suites = {item.suite.name: item.source for item in _old_suites(plan).values()}
    return GateSession(
        records, settings, source=source, run_id=run_id, quarantined=quarantined, store=store, new_suites=new_suites
    )


def baselines_for(
    plan: Plan, baseline: str | None, store: Store | None, *, fast: bool
) -> tuple[dict[CaseAddress, CaseBaseline], str]:
    """The baseline of every case of a plan, and where it was read from.

    `baseline` is the file or run that the user named, if any.
    """
    baselines, source = baselines_of_suites({item.suite.name: item.suite.path for item in plan.suites}, baseline, store)
    identities = case_identities(plan, fast=fast)
    return {address: baselines[address[0]].lookup(identity) for address, identity in identities.items()}, source


def case_identities(plan: Plan, *, fast: bool = False) -> dict[CaseAddress, CaseIdentity]:
    """What the baseline record of each case is found by."""
    keys = scoring_keys(plan, fast=fast)
    identities: dict[CaseAddress, CaseIdentity] = {}
    for planned in plan.trials:
        suite, case = address = _address(planned)
        if address not in identities:
            evaluators = keys[suite].get(case, keys[suite][""])
            content = content_key(mask_case(planned.case))
            checks = _check_keys(planned) if planned.suite.suite.criteria.trials != "mean" else ()
            identities[address] = CaseIdentity(suite, case, planned.suite.agent.name, content, evaluators, checks)
    return identities


def _check_keys(planned: PlannedTrial) -> tuple[str, ...]:
    """The keys of the deciding evaluators of a trial, as its scores will have them."""
    return tuple(
        check_key(evaluator.title, evaluator.fingerprint, evaluator.threshold)
        for evaluator in planned.evaluators
        if not evaluator.spec.report_only
    )


def _address(planned: PlannedTrial) -> CaseAddress:
    return planned.suite.suite.name, planned.case.id
