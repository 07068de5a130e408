"""From what the gate found to the verdict of a run, with the sentence that says why.

Besides regressions, three things decide a gated run. Errors: a suspect known only by errors could not be measured.
Cases that have no baseline: the suite's own criteria decide about them. Quarantines that have expired: they fail the
run. The worst suite decides, in the order of `GateVerdict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proctor.results.gate_result import CaseStatus, GatedCaseResult, GatedSuite, GateResult, GateVerdict
from proctor.results.run import Outcome, SuiteInfo
from proctor.results.verdict import SuiteVerdict

MAX_NAMES = 3

REGRESSION, ERROR, INCONCLUSIVE, NO_REGRESSION = GateVerdict


def overall_verdict(
    gate: GateResult, infos: Sequence[SuiteInfo], new_cases: Sequence[SuiteVerdict], note: str = ""
) -> GateResult:
    """The verdict of the whole run.

    `new_cases` are the verdicts of the suites' own criteria on the cases that have no baseline, in the order of
    `infos`; `note` says why the run ended early, if it did.
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
    elif verdict is NO_REGRESSION:
        reason = _no_regression_text(gate)
    return replace(gate, verdict=verdict, reason=reason, suites=suites)


def _suite_verdict(gate: GateResult, info: SuiteInfo, new: SuiteVerdict) -> tuple[GateVerdict, str]:
    own = [case for case in gate.cases if case.suite == info.name]
    if any(item.expired for item in info.quarantined):
        return REGRESSION, new.reason
    if regressed := [case for case in own if case.status is CaseStatus.REGRESSED]:
        return REGRESSION, f"{_names(regressed)} got worse: {case_text(regressed[0])}"
    if new.outcome is Outcome.FAILED:
        failed = [case.case_id for case in new.cases if case.outcome is Outcome.FAILED]
        return REGRESSION, f"new {_some(failed)} failed: {new.reason}"
    if unmeasured := [case for case in own if _has_only_errors(case)]:
        return ERROR, f"{_names(unmeasured)} could not be measured: errors are no verdict on the agent"
    if new.outcome is Outcome.ERROR:
        return ERROR, f"new cases: {new.reason}"
    if undecided := [
        case for case in own if case.status is CaseStatus.UNDECIDED or case.first_outcome is Outcome.PENDING
    ]:
        return INCONCLUSIVE, f"{_names(undecided)} may have got worse: {case_text(undecided[0])}"
    if new.outcome is Outcome.PENDING:
        return INCONCLUSIVE, f"new cases: {new.reason}"
    known = sum(_was_compared(case) for case in own)
    return NO_REGRESSION, f"no regression in {known:,} case{'s' if known != 1 else ''} with a past"


def _has_only_errors(case: GatedCaseResult) -> bool:
    """Whether nothing is known of it, because every trial that could have said something ended in an error."""
    if case.status is CaseStatus.UNMEASURED:
        return case.first_outcome is Outcome.ERROR
    return case.status is CaseStatus.UNDECIDED and case.errors > 0 and case.rerun_trials == 0


def _was_compared(case: GatedCaseResult) -> bool:
    return case.baseline_trials > 0 and case.status is not CaseStatus.QUARANTINED


def case_text(case: GatedCaseResult) -> str:
    """What the gate says about a case: `refund passed 10 of 10 before, 0 of 4 when asked again (p 0.003)`."""
    past = (
        f"{case.baseline_passes:,} of {case.baseline_trials:,} before"
        if case.baseline_trials
        else f"no past ({case.no_baseline_because})"
    )
    now = (
        f"{case.rerun_passes} of {case.rerun_trials} when asked again"
        if case.rerun_trials
        else f"{case.first_outcome} now"
    )
    score = ""
    if case.by_score and case.score is not None and case.baseline_score is not None:
        score = f"; it scored {case.score:.2f} where {case.baseline_score:.2f} is usual"
    p_value = "" if case.p_value is None else f" (p {case.p_value:.2g})"
    need = ""
    if case.status is CaseStatus.UNDECIDED:
        need = (
            f"; {case.trials_to_decide} further failing trials would prove it"
            if case.trials_to_decide
            else "; its past is too short or too mixed to prove anything by more trials"
        )
    return f"{case.case} passed {past}, {now}{p_value}{score}{need}"


def suite_wide_text(gate: GateResult) -> str:
    """What the gate says about the suite as a whole, if that is proven to be worse."""
    return (
        f"the suite as a whole fails more often than usual (p {gate.suite_wide.p_value:.2g} after "
        f"{gate.suite_wide.rounds} round{'s' if gate.suite_wide.rounds > 1 else ''}), though no single case is proven"
    )


def _inconclusive_text(gate: GateResult) -> str:
    if gate.suite_wide.in_doubt:
        p_value = f"(p {gate.suite_wide.p_value:.2g})"
        return (
            f"the suite as a whole may fail more often than usual {p_value}; record more trials of it, then gate again"
        )
    if not any(_was_compared(case) for case in gate.cases):
        reasons = sorted({case.no_baseline_because for case in gate.cases if case.no_baseline_because})
        return (
            f"no case has a past to be held against ({'; '.join(reasons[:MAX_NAMES]) or 'no case was run'}): "
            "accept a run with `proctor baseline accept`"
        )
    return gate.stopped or "no case with a past passed or failed"


def _no_regression_text(gate: GateResult) -> str:
    compared = sum(_was_compared(case) for case in gate.cases)
    text = f"no regression in {compared:,} case{'s' if compared != 1 else ''}"
    if new := gate.with_status(CaseStatus.NEW):
        text += f", {len(new):,} without a past"
    if improved := gate.with_status(CaseStatus.IMPROVED):
        text += f"; better: {_some([case.case for case in improved])}"
    return text


def _names(cases: Sequence[GatedCaseResult]) -> str:
    return _some([case.case for case in cases])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
