"""Connects the gate to a plan: the baselines of its cases, and the planned trial for each request of the gate.

The gate requests more trials during the run. Reports show them next to the first trial of their case, so a gated plan
reserves positions for them; a resumed run looks for stored trials at all of these positions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from proctor.cases.identity import CaseAddress, content_key
from proctor.gate.baseline import CaseBaseline, CaseIdentity, baselines_of_suites, check_key
from proctor.gate.decision import TrialRequest
from proctor.gate.session import GateSession
from proctor.gate.settings import GateSettings
from proctor.results.masking import mask_case
from proctor.results.store.store import Store
from proctor.running.plan import Plan, PlannedTrial
from proctor.running.resume import scoring_keys


def reserve_positions(plan: Plan, settings: GateSettings) -> Plan:
    """The plan with free positions after each case for every trial that the gate may request."""
    step = settings.max_trials_per_case
    return replace(plan, trials=tuple(replace(trial, position=at * step) for at, trial in enumerate(plan.trials)))


def with_every_follow_up(plan: Plan, settings: GateSettings) -> Plan:
    """The plan with every trial that the gate may request; a resumed run keeps those that are stored."""
    numbers = range(1, settings.max_trials_per_case + 1)
    return replace(plan, trials=tuple(trial.follow_up(number) for trial in plan.trials for number in numbers))


def planned_trials(plan: Plan, requests: Iterable[TrialRequest], session: GateSession) -> list[PlannedTrial]:
    """The trials that the gate requests, each as the next trial of its case."""
    first = {_address(trial): trial for trial in plan.trials}
    return [first[request.case].follow_up(session.attempts(request.case) + 1) for request in requests]


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
    return GateSession(records, settings, source=source, run_id=run_id, quarantined=quarantined, store=store)


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
