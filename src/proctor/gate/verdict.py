"""From the findings of the gate to the verdict of a run, with its reason in one sentence.

Besides regressions, three things decide a gated run. Errors: nothing is known about a suspect that has only errors.
Cases without a baseline: the suite's own criteria decide about them. Expired quarantines: they fail the run. The worst
suite decides, in the order of `GateVerdict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proctor.results.gate_result import CaseStatus, GatedCaseResult, GatedSuite, GateResult, GateVerdict
from proctor.results.score import Outcome
from proctor.results.suite_info import SuiteInfo
from proctor.results.verdict import SuiteVerdict

MAX_NAMES = 3

REGRESSION, NEW_CASE_FAILS, ERROR, INCONCLUSIVE, WORLD_CHANGED, NO_REGRESSION = GateVerdict


def overall_verdict(
    gate: GateResult, infos: Sequence[SuiteInfo], new_cases: Sequence[SuiteVerdict], note: str = ""
) -> GateResult:
    """The verdict of the whole run.

    `new_cases` are the verdicts of the suites' own criteria on the cases without a baseline, in the order of `infos`.
    `note` says why the run ended early, if it did.
    """
    suites = tuple(
        GatedSuite(info.name, *_suite_verdict(gate, info, new)) for info, new in zip(infos, new_cases, strict=True)
    )
    worst_first = list(GateVerdict)
    verdict = min((suite.verdict for suite in suites), key=worst_first.index, default=INCONCLUSIVE)
    reason = next((suite.reason for suite in suites if suite.verdict is verdict), "")
    if gate.suite_wide.proven and not gate.with_status(CaseStatus.REGRESSED) and verdict is not REGRESSION:
        verdict, reason = REGRESSION, suite_wide_text(gate)
    elif note and verdict is not REGRESSION:
        verdict, reason = ERROR, note
    elif verdict is NO_REGRESSION and gate.verdict is INCONCLUSIVE:
        verdict, reason = INCONCLUSIVE, _inconclusive_text(gate)
    elif verdict in (NO_REGRESSION, WORLD_CHANGED) and gate.world is not None:
        verdict, reason = WORLD_CHANGED, world_text(gate)
    elif verdict is NO_REGRESSION:
        reason = _no_regression_text(gate)
    return replace(gate, verdict=verdict, reason=reason, suites=suites)


def _suite_verdict(gate: GateResult, info: SuiteInfo, new: SuiteVerdict) -> tuple[GateVerdict, str]:
    own = [case for case in gate.cases if case.suite == info.name]
    if any(item.expired for item in info.quarantined):
        return REGRESSION, new.reason
    if regressed := [case for case in own if case.status is CaseStatus.REGRESSED]:
        what = "regressed, caused by this change" if gate.against else "regressed"
        return REGRESSION, _findings(what, regressed, gate.against)
    if new.outcome is Outcome.FAILED:
        failed = [case.case_id for case in new.cases if case.outcome is Outcome.FAILED]
        return NEW_CASE_FAILS, f"new and failing: {_some(failed)} ({new.reason})"
    if unmeasured := [case for case in own if is_unmeasured(case)]:
        return ERROR, f"{_names(unmeasured)} ended in errors only, so nothing is known about the agent there"
    if new.outcome is Outcome.ERROR:
        return ERROR, f"cases without a baseline: {new.reason}"
    if undecided := [
        case for case in own if case.status is CaseStatus.UNDECIDED or case.first_outcome is Outcome.PENDING
    ]:
        return INCONCLUSIVE, _findings("may have regressed", undecided, gate.against)
    if new.outcome is Outcome.PENDING:
        unsure = [case.case_id for case in new.cases if case.outcome is Outcome.PENDING]
        return INCONCLUSIVE, f"new cases that both pass and fail, or are pending: {_some(unsure)} ({new.reason})"
    if any(case.status is CaseStatus.FAILS_ON_BOTH for case in own):
        return WORLD_CHANGED, world_text(gate)
    compared = sum(_was_compared(gate, case) for case in own)
    with_what = f"against {gate.against}" if gate.against else "with a baseline"
    return NO_REGRESSION, f"no regression in {compared:,} case{'s' if compared != 1 else ''} {with_what}"


def is_unmeasured(case: GatedCaseResult) -> bool:
    """Whether nothing is known about it, because all trials that would count ended in errors."""
    if case.status is CaseStatus.UNMEASURED:
        return case.first_outcome is Outcome.ERROR
    return case.status is CaseStatus.UNDECIDED and case.errors > 0 and case.rerun_trials == 0


def _was_compared(gate: GateResult, case: GatedCaseResult) -> bool:
    """Whether the gate could say something about it. Two versions can be compared on any case that ran."""
    has_past = case.first_outcome in (Outcome.PASSED, Outcome.FAILED) if gate.against else case.baseline_trials > 0
    return has_past and case.status is not CaseStatus.QUARANTINED


def _findings(what: str, cases: Sequence[GatedCaseResult], against: str = "") -> str:
    """`refund regressed: 10/10 in the baseline, 0/2 re-run (p = 0.047)`; of several cases, the first one's evidence."""
    if len(cases) == 1:
        return f"{cases[0].case} {what}: {evidence_text(cases[0], against)}"
    return f"{_names(cases)} {what}; {case_text(cases[0], against)}"


def case_text(case: GatedCaseResult, against: str = "") -> str:
    """The name of a case and what the gate saw of it: `refund: 10/10 in the baseline, 0/4 re-run (p = 0.003)`."""
    return f"{case.case}: {evidence_text(case, against)}"


def evidence_text(case: GatedCaseResult, against: str = "") -> str:
    """What the gate saw of a case: `10/10 in the baseline, 0/4 re-run (p = 0.003)`.

    With two versions: `0/4 now, 4/4 with main in the same minutes (p = 0.02)`.
    """
    if against:
        return _evidence_of_both(case, against)
    if case.baseline_trials:
        text = f"{case.baseline_passes:,}/{case.baseline_trials:,} in the baseline"
    else:
        text = f"no baseline ({case.no_baseline_because})"
    text += f", {case.rerun_passes}/{case.rerun_trials} re-run" if case.rerun_trials else f", {case.first_outcome} now"
    if case.p_value is not None:
        text += f" ({_p_text(case.p_value)})"
    if case.by_score and case.score is not None and case.baseline_score is not None:
        text += f"; it scored {case.score:.2f}, {case.baseline_score:.2f} in the baseline"
    if case.status is CaseStatus.UNDECIDED and case.trials_to_decide:
        more = f"{case.trials_to_decide} more failing trial{'s' if case.trials_to_decide > 1 else ''}"
        text += f"; {more} would prove it"
    elif case.status is CaseStatus.UNDECIDED:
        text += "; its baseline is too short or too flaky to decide"
    return text


def _evidence_of_both(case: GatedCaseResult, against: str) -> str:
    if not case.rerun_trials and not case.old_trials:
        return f"{case.first_outcome} now"
    text = f"{case.rerun_passes}/{case.rerun_trials} now, {case.old_passes}/{case.old_trials} with {against}"
    text += " in the same minutes"
    if case.baseline_trials:
        text += f", {case.baseline_passes:,}/{case.baseline_trials:,} in the baseline"
    if case.p_value is not None and case.p_value < 1 and case.status is CaseStatus.UNDECIDED:
        text += f" ({_p_text(case.p_value)})"
    return text


def world_text(gate: GateResult) -> str:
    """What changed although the agent did not."""
    if gate.world is not None and gate.world.cases:
        failing = gate.with_status(CaseStatus.FAILS_ON_BOTH)
        which = f"{_names(failing)} now fail{'s' if len(failing) == 1 else ''} with {gate.against} as well"
    else:
        which = f"the suite as a whole now fails more often than in its baseline, with {gate.against} as well"
    return f"the world changed, not the agent: {which}"


def _p_text(p_value: float) -> str:
    return f"p = {p_value:.2g}"


def suite_wide_text(gate: GateResult) -> str:
    """The reason of a suite-wide regression."""
    if gate.against:
        return (
            f"the suite as a whole fails more often than with {gate.against} in the same minutes "
            f"({_p_text(gate.suite_wide.p_value)}), although no single case is proven"
        )
    rounds = f"{gate.suite_wide.rounds} round{'s' if gate.suite_wide.rounds > 1 else ''}"
    return (
        f"the suite as a whole fails more often than its baseline ({_p_text(gate.suite_wide.p_value)} after {rounds}), "
        "although no single case is proven"
    )


def _inconclusive_text(gate: GateResult) -> str:
    if gate.stopped:
        return gate.stopped
    if gate.against and gate.suite_wide.in_doubt:
        return f"the suite as a whole may fail more often than with {gate.against}; run the gate again"
    if gate.suite_wide.in_doubt:
        p_value = _p_text(gate.suite_wide.p_value)
        return (
            f"the suite as a whole may fail more often than its baseline ({p_value}); record more runs with "
            "`proctor baseline accept`, then gate again"
        )
    if not any(_was_compared(gate, case) for case in gate.cases):
        reasons = sorted({case.no_baseline_because for case in gate.cases if case.no_baseline_because})
        return (
            f"no case has a baseline ({'; '.join(reasons[:MAX_NAMES]) or 'no case ran'}); "
            "record one with `proctor baseline accept`, or compare with a version: --against main"
        )
    return "no case passed or failed"


def _no_regression_text(gate: GateResult) -> str:
    compared = sum(_was_compared(gate, case) for case in gate.cases)
    text = f"no regression in {compared:,} case{'s' if compared != 1 else ''}"
    if gate.against:
        text += f" against {gate.against}"
    if new := gate.with_status(CaseStatus.NEW):
        text += f", {len(new):,} without a baseline"
    if improved := gate.with_status(CaseStatus.IMPROVED):
        text += f"; improved: {_some([case.case for case in improved])}"
    return text


def _names(cases: Sequence[GatedCaseResult]) -> str:
    return _some([case.case for case in cases])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
