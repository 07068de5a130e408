"""The gate in a run: trials in, requests out, and the verdict of the run, without an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from proctor.agents.reply import Reply
from proctor.cases.identity import CaseAddress
from proctor.cases.suite import Case, Criteria, Turn
from proctor.gate.baseline import CaseBaseline, CaseIdentity
from proctor.gate.beliefs import BaselineRecord
from proctor.gate.session import GateSession
from proctor.gate.settings import GateSettings
from proctor.results.gate_result import CaseStatus, GateResult, GateVerdict
from proctor.results.run import Run
from proctor.results.score import Outcome, Score
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import Trial, TrialSummary
from proctor.results.verdict import verdict

PASSED, FAILED, ERROR = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR


def baseline(address: CaseAddress, record: BaselineRecord | None) -> CaseBaseline:
    missing = "" if record else "the case is new"
    return CaseBaseline(CaseIdentity(*address, "agent", "c", "e"), record, missing)


def trial(address: CaseAddress, number: int, outcome: Outcome) -> Trial:
    suite, case_id = address
    value = None if outcome is ERROR else float(outcome is PASSED)
    return Trial(
        suite,
        Case(id=case_id, turns=(Turn("How long?"),)),
        number,
        number,
        outcome,
        replies=(Reply("Five days." if outcome is PASSED else "Please call us."),),
        scores=(Score("ExactMatch", outcome, value, 0.5),),
        agent="agent",
    )


def gated(
    records: dict[CaseAddress, BaselineRecord | None],
    answer: Callable[[CaseAddress, int], Outcome],
    quarantined: tuple[CaseAddress, ...] = (),
) -> tuple[GateResult, Run]:
    """A whole run: what an engine does, in memory."""
    baselines = {address: baseline(address, record) for address, record in records.items()}
    session = GateSession(baselines, GateSettings(), source="desk.baseline.jsonl", quarantined=quarantined)
    trials: list[Trial] = []

    def run_trial(case: CaseAddress) -> None:
        number = session.attempts(case) + 1
        trials.append(trial(case, number, answer(case, number)))
        session.record(trials[-1])

    for case in records:
        run_trial(case)
    while requests := session.next_trials():
        for request in requests:
            run_trial(request.case)
    suites = tuple(
        SuiteInfo(name, None, "native", "agent", "f", Criteria(), 1, len(trials))
        for name in dict.fromkeys(suite for suite, _ in records)
    )
    run = Run("run", 0.0, suites, [TrialSummary.of(item) for item in trials], trials, finished_at=1.0)
    run.gate = session.result(run)
    return run.gate, run


ALWAYS = BaselineRecord(10, 10)
DESK = {("desk", f"case-{at}"): ALWAYS for at in range(10)}


def test_a_case_that_broke_makes_its_suite_and_the_run_red_and_says_where_it_differs() -> None:
    answers = {("desk", "case-3"): FAILED}
    found, run = gated({**DESK, ("shop", "case-3"): ALWAYS}, lambda case, number: answers.get(case, PASSED))

    assert found.verdict is GateVerdict.REGRESSION
    assert {suite.name: suite.verdict for suite in found.suites} == {
        "desk": GateVerdict.REGRESSION,
        "shop": GateVerdict.NO_REGRESSION,
    }
    assert found.reason.startswith("case-3 regressed: 10/10 in the baseline, 0/")
    assert found.baseline == "desk.baseline.jsonl"
    assert verdict(run).outcome is FAILED


def test_a_failing_conversation_is_compared_with_a_passing_one_of_the_run() -> None:
    found, _ = gated(DESK, lambda case, number: FAILED if case[1] == "case-3" and number != 2 else PASSED)

    assert found.cases[3].status is CaseStatus.REGRESSED
    divergence = found.cases[3].divergence
    assert divergence is not None and "Please call us." in divergence.text


def test_a_suspect_that_only_errs_is_an_error_and_no_regression() -> None:
    found, _ = gated(DESK, lambda case, number: PASSED if case[1] != "case-3" else FAILED if number == 1 else ERROR)
    (case,) = [case for case in found.cases if case.case == "case-3"]

    assert found.verdict is GateVerdict.ERROR
    assert case.errors == 10 and case.rerun_trials == 0
    assert "case-3 ended in errors only" in found.reason


def test_a_new_case_is_held_to_the_criteria_of_its_suite() -> None:
    new = ("desk", "new")
    found, run = gated({**DESK, new: None}, lambda case, number: FAILED if case == new else PASSED)

    assert found.verdict is GateVerdict.NEW_CASE_FAILS and found.outcome is FAILED
    assert found.reason.startswith("new and failing: new")
    assert found.cases[-1].no_baseline_because == "the case is new"
    assert sum(summary.case_id == "new" for summary in run.summaries) == 5


@pytest.mark.parametrize(
    ("passing", "expected"),
    [
        ({2, 3, 4, 5}, GateVerdict.NO_REGRESSION),
        ({2, 5}, GateVerdict.INCONCLUSIVE),
        (set(), GateVerdict.NEW_CASE_FAILS),
    ],
)
def test_a_new_case_that_fails_once_is_judged_by_five_trials(passing: set[int], expected: GateVerdict) -> None:
    new = ("desk", "new")
    answers = {number: PASSED if number in passing else FAILED for number in range(1, 6)}
    found, _ = gated({**DESK, new: None}, lambda case, number: answers[number] if case == new else PASSED)
    assert found.verdict is expected


def test_answers_from_a_cache_are_not_evidence() -> None:
    """The cache repeats one bad answer, which says nothing about how often the case fails."""
    broken = ("desk", "case-3")
    session = GateSession({case: baseline(case, record) for case, record in DESK.items()}, GateSettings())
    for case in DESK:
        session.record(trial(case, 1, FAILED if case == broken else PASSED))
    while requests := session.next_trials():
        for request in requests:
            again = trial(request.case, session.attempts(request.case) + 1, FAILED)
            session.record(replace(again, replies=(Reply("Please call us.", from_cache=True),)))
    assert session.attempts(broken) > 1
    summaries = [TrialSummary.of(trial(case, 1, PASSED)) for case in DESK]
    run = Run("run", 0.0, (), summaries, [], finished_at=1.0)
    assert session.result(run).verdict is not GateVerdict.REGRESSION


def test_a_case_in_quarantine_is_reported_and_not_run_again() -> None:
    broken = ("desk", "case-3")
    found, run = gated(DESK, lambda case, number: FAILED if case == broken else PASSED, quarantined=(broken,))

    assert found.verdict is GateVerdict.NO_REGRESSION
    assert found.cases[3].status is CaseStatus.QUARANTINED and found.cases[3].first_outcome is FAILED
    assert len(run.summaries) == len(DESK)


def test_a_resumed_run_goes_on_from_the_trials_it_has() -> None:
    whole, run = gated(DESK, lambda case, number: FAILED if case[1] == "case-3" else PASSED)
    baselines = {address: baseline(address, record) for address, record in DESK.items()}
    session = GateSession(baselines, GateSettings(), source="desk.baseline.jsonl")
    gone = trial(("desk", "a case that was removed"), 1, FAILED)
    session.record_stored([gone, *reversed(run.trials)])

    assert session.next_trials() == []
    assert session.result(run).cases == whole.cases
