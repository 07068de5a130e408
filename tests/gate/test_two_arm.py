"""The gate with two versions of an agent: what it runs, in which order, and what it concludes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from proctor.gate.beliefs import BaselineRecord
from proctor.gate.decision import TrialRequest
from proctor.gate.settings import GateSettings
from proctor.gate.two_arm import TwoArmGate
from proctor.results.gate_result import NEW_ARM, OLD_ARM, CaseStatus, GateResult, GateVerdict
from proctor.results.score import Outcome

Answers = Callable[[str, str], bool | None]
"""Whether an arm passes a case; `None` is an error. Called with the id of the case and the arm."""

OUTCOMES = {True: Outcome.PASSED, False: Outcome.FAILED, None: Outcome.ERROR}
ALWAYS = BaselineRecord(10, 10)


def suite(cases: int = 20, record: BaselineRecord | None = None) -> dict[str, BaselineRecord | None]:
    return {f"case-{at}": record for at in range(cases)}


def new_gate(records: Mapping[str, BaselineRecord | None], seed: int = 0, **settings: object) -> TwoArmGate:
    chosen = GateSettings(against="main", **settings)  # type: ignore[arg-type]
    return TwoArmGate({("desk", case): record for case, record in records.items()}, chosen, seed=seed)


def drive(gate: TwoArmGate, answers: Answers, words: str | None = None) -> tuple[GateResult, list[list[TrialRequest]]]:
    """Run everything the gate requests. With `words`, the text of an answer is the same whenever its outcome is."""
    rounds = []
    while requests := gate.next_trials():
        rounds.append(requests)
        for request in requests:
            passed = answers(request.case[1], request.arm)
            answer = None if words is None else f"{words} {passed}"
            gate.record(request.case, OUTCOMES[passed], arm=request.arm, answer=answer)
    return gate.result(), rounds


def status(result: GateResult, case: str) -> CaseStatus:
    return next(item.status for item in result.cases if item.case == case)


def test_a_suite_that_passes_runs_once_and_only_on_the_new_version() -> None:
    result, rounds = drive(new_gate(suite()), lambda case, arm: True)
    assert result.verdict is GateVerdict.NO_REGRESSION
    assert [request.arm for requests in rounds for request in requests] == [NEW_ARM] * 20


def test_a_case_that_only_the_new_version_fails_is_a_regression_without_a_baseline() -> None:
    result, _ = drive(new_gate(suite()), lambda case, arm: case != "case-3" or arm == OLD_ARM)
    assert result.verdict is GateVerdict.REGRESSION
    assert status(result, "case-3") is CaseStatus.REGRESSED
    assert [item.case for item in result.cases if item.status is not CaseStatus.UNCHANGED] == ["case-3"]


def test_a_case_that_both_versions_fail_is_no_regression() -> None:
    result, _ = drive(new_gate(suite()), lambda case, arm: case != "case-3")
    assert result.verdict is GateVerdict.NO_REGRESSION
    assert status(result, "case-3") is CaseStatus.CLEARED


def test_a_case_that_passed_in_the_baseline_and_now_fails_with_both_versions_means_that_the_world_changed() -> None:
    result, _ = drive(new_gate(suite(record=ALWAYS)), lambda case, arm: case != "case-3")
    assert result.verdict is GateVerdict.WORLD_CHANGED and result.outcome is Outcome.PASSED
    assert result.world is not None and result.world.cases == (("desk", "case-3"),)
    assert status(result, "case-3") is CaseStatus.FAILS_ON_BOTH


def test_a_changed_world_is_inconclusive_if_the_user_wants_that() -> None:
    result, _ = drive(new_gate(suite(record=ALWAYS), strict_world=True), lambda case, arm: case != "case-3")
    assert result.outcome is Outcome.PENDING


def test_a_regression_in_a_changed_world_is_a_regression_and_both_are_reported() -> None:
    def answers(case: str, arm: str) -> bool:
        return case != "case-3" and (case != "case-4" or arm == OLD_ARM)

    result, _ = drive(new_gate(suite(record=ALWAYS)), answers)
    assert result.verdict is GateVerdict.REGRESSION
    assert status(result, "case-4") is CaseStatus.REGRESSED
    assert result.world is not None and result.world.cases == (("desk", "case-3"),)


def test_versions_take_turns_in_random_order() -> None:
    """With the new version always first, a cold start would look like a regression."""
    _, rounds = drive(new_gate(suite(40)), lambda case, arm: arm == OLD_ARM)
    paired = [request.arm for requests in rounds[1:] for request in requests]
    assert Counter(paired)[NEW_ARM] == Counter(paired)[OLD_ARM]
    first_half = Counter(paired[: len(paired) // 2])
    assert 0.3 < first_half[NEW_ARM] / sum(first_half.values()) < 0.7


def test_errors_are_never_evidence() -> None:
    result, _ = drive(new_gate(suite()), lambda case, arm: None if arm == NEW_ARM and case == "case-3" else True)
    assert result.verdict is GateVerdict.NO_REGRESSION
    assert status(result, "case-3") is CaseStatus.UNMEASURED


def test_a_suspect_whose_pairs_all_end_in_errors_is_undecided_and_ends() -> None:
    seen: Counter[str] = Counter()

    def answers(case: str, arm: str) -> bool | None:
        seen[case] += 1
        return True if case != "case-3" else (False if seen[case] == 1 else None)

    result, _ = drive(new_gate(suite()), answers)
    assert result.verdict is GateVerdict.INCONCLUSIVE
    assert status(result, "case-3") is CaseStatus.UNDECIDED
    assert seen["case-3"] < 20


def test_trials_that_are_not_new_are_never_evidence() -> None:
    gate = new_gate(suite())
    while requests := gate.next_trials():
        for request in requests:
            passed = request.case[1] != "case-3" or request.arm == OLD_ARM
            outcome = Outcome.SKIPPED if gate.attempts(*request) else OUTCOMES[passed]
            gate.record(request.case, outcome, arm=request.arm)
    assert gate.result().verdict is GateVerdict.INCONCLUSIVE


@pytest.mark.parametrize("record", [None, ALWAYS])
def test_versions_that_repeat_themselves_need_few_trials(record: BaselineRecord | None) -> None:
    def answers(case: str, arm: str) -> bool:
        return case not in ("case-3", "case-4") or arm == OLD_ARM

    result, rounds = drive(new_gate(suite(record=record)), answers, words="It is always this.")
    assert result.verdict is GateVerdict.REGRESSION and not result.answers_vary
    assert len(rounds) == 3, "the first round, a pair and a confirming pair"


def test_one_case_with_equal_answers_by_chance_needs_a_third_pair() -> None:
    _, rounds = drive(new_gate(suite()), lambda case, arm: case != "case-3" or arm == OLD_ARM, words="yes or no")
    assert len(rounds) == 4


def test_a_budget_ends_the_gate_without_a_verdict() -> None:
    gate = new_gate(suite(), budget=3)
    result, rounds = drive(gate, lambda case, arm: arm == OLD_ARM)
    assert result.verdict is GateVerdict.INCONCLUSIVE and result.stopped == "the budget of extra trials is spent"
    assert sum(map(len, rounds)) <= 23


def test_a_gate_that_is_resumed_requests_what_is_missing_and_concludes_the_same() -> None:
    rng = random.Random(7)
    outcomes: dict[tuple[str, str, int], bool] = {}

    def passed(case: str, arm: str, number: int) -> bool:
        key = (case, arm, number)
        return outcomes.setdefault(key, rng.random() < (0.3 if arm == NEW_ARM and case < "case-2" else 0.8))

    def drive_numbered(gate: TwoArmGate, most: int) -> list[tuple[TrialRequest, Outcome]]:
        done: list[tuple[TrialRequest, Outcome]] = []
        while requests := gate.next_trials():
            for request in requests:
                if len(done) == most:
                    return done
                number = gate.attempts(*request)
                outcome = OUTCOMES[passed(request.case[1], request.arm, number)]
                gate.record(request.case, outcome, arm=request.arm)
                done.append((request, outcome))
        return done

    whole = new_gate(suite())
    everything = drive_numbered(whole, 10_000)
    for stop in (1, 7, 25, len(everything) - 3):
        resumed = new_gate(suite())
        for request, outcome in everything[:stop]:
            resumed.record(request.case, outcome, arm=request.arm)
        drive_numbered(resumed, 10_000)
        assert resumed.result() == whole.result()


@pytest.mark.parametrize("record", [None, BaselineRecord(10, 7)])
def test_an_agent_that_did_not_change_is_rarely_red(record: BaselineRecord | None) -> None:
    """At most 5 % are promised; `benchmarks/gate_accuracy.py` measures the rate with many more suites."""
    red = 0
    for seed in range(60):
        rng = random.Random(seed)
        result, _ = drive(new_gate(suite(30, record), seed), lambda case, arm, rng=rng: rng.random() < 0.7)
        red += result.verdict is GateVerdict.REGRESSION
    assert red <= 3


def test_a_drop_of_all_rates_is_found_although_no_case_is_broken() -> None:
    red = 0
    rates = {NEW_ARM: 0.7, OLD_ARM: 0.95}
    for seed in range(10):
        rng = random.Random(seed)
        result, _ = drive(new_gate(suite(60), seed), lambda case, arm, rng=rng: rng.random() < rates[arm])
        red += result.verdict is GateVerdict.REGRESSION
    assert red >= 8
