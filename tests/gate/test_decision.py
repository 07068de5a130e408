from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable

import pytest

from proctor.gate.beliefs import BaselineRecord
from proctor.gate.decision import Gate, TrialRequest
from proctor.gate.settings import GateSettings
from proctor.results.gate_result import CaseStatus, GatedCaseResult, GateResult, GateVerdict
from proctor.results.score import Outcome

ALWAYS = BaselineRecord(10, 10)


def new_gate(
    records: dict[str, BaselineRecord | None], settings: GateSettings | None = None, quarantined: tuple[str, ...] = ()
) -> Gate:
    """A gate of one suite; cases are named by their id."""
    return Gate(
        {("desk", case): record for case, record in records.items()}, settings, {("desk", case) for case in quarantined}
    )


def wanted(gate: Gate) -> list[str]:
    return [request.case[1] for request in gate.next_trials()]


def record(gate: Gate, case: str, passed: bool | None, score: float | None = None) -> None:
    outcomes = {True: Outcome.PASSED, False: Outcome.FAILED, None: Outcome.ERROR}
    gate.record(("desk", case), outcomes[passed], score)


def drive(gate: Gate, ask: Callable[[str], bool | None], most: int = 10_000) -> GateResult:
    """The engine's loop: run what the gate wants until it wants no more."""
    asked = 0
    while cases := wanted(gate):
        for case in cases:
            record(gate, case, ask(case))
            asked += 1
            assert asked <= most, "the gate never ends"
    return gate.result()


def finding(report: GateResult, case: str) -> GatedCaseResult:
    return next(found for found in report.cases if found.case == case)


def suite(count: int = 20, past: BaselineRecord = ALWAYS) -> dict[str, BaselineRecord | None]:
    return {f"case-{at}": past for at in range(count)}


def test_a_suite_that_passes_as_usual_costs_one_run_a_case() -> None:
    report = drive(new_gate(suite()), lambda case: True)

    assert report.verdict is GateVerdict.NO_REGRESSION
    assert report.extra_trials == 0


def test_a_case_that_broke_is_proven_by_name() -> None:
    report = drive(new_gate(suite()), lambda case: case != "case-3")

    assert report.verdict is GateVerdict.REGRESSION
    assert [found.case for found in report.cases if found.status is CaseStatus.REGRESSED] == ["case-3"]
    proven = finding(report, "case-3")
    assert proven.p_value is not None and proven.p_value <= 0.05
    assert proven.rerun_passes == 0 and 2 <= proven.rerun_trials <= 6
    assert report.extra_trials == proven.rerun_trials


def test_only_suspects_are_asked_again() -> None:
    gate = new_gate(suite(5))
    for case in wanted(gate):
        record(gate, case, case != "case-1")

    assert wanted(gate) == ["case-1"]


def test_the_first_failure_is_no_evidence() -> None:
    gate = new_gate(suite())
    for case in wanted(gate):
        record(gate, case, case != "case-1")
    suspect = finding(gate.result(), "case-1")

    assert suspect.status is CaseStatus.UNDECIDED
    assert suspect.p_value is None
    assert suspect.rerun_trials == 0


def test_one_failure_of_a_case_that_passes_again_is_cleared() -> None:
    first = {f"case-{at}": True for at in range(20)} | {"case-1": False}
    report = drive(new_gate(suite()), lambda case: first.pop(case, True))

    assert report.verdict is GateVerdict.NO_REGRESSION
    assert finding(report, "case-1").status is CaseStatus.CLEARED
    assert report.extra_trials <= 4


def test_a_case_that_usually_fails_is_no_suspect() -> None:
    pasts = {**suite(), "weak": BaselineRecord(10, 3)}
    report = drive(new_gate(pasts), lambda case: case != "weak")

    assert finding(report, "weak").status is CaseStatus.UNCHANGED
    assert report.verdict is GateVerdict.NO_REGRESSION
    assert report.extra_trials == 0


def test_a_case_that_always_failed_and_passes_now_has_improved() -> None:
    report = drive(
        new_gate({**suite(), "weak": BaselineRecord(10, 0), "mixed": BaselineRecord(10, 6)}), lambda case: True
    )

    assert finding(report, "weak").status is CaseStatus.IMPROVED
    assert finding(report, "mixed").status is CaseStatus.UNCHANGED
    assert report.verdict is GateVerdict.NO_REGRESSION


def test_a_suite_that_fails_less_than_usual_is_told() -> None:
    report = drive(new_gate(suite(60, BaselineRecord(10, 6))), lambda case: True)

    assert report.suite_wide.better_p_value < 0.001
    assert report.verdict is GateVerdict.NO_REGRESSION


@pytest.mark.parametrize("past", [None, BaselineRecord(0, 0)])
def test_a_case_without_a_past_never_regresses_and_runs_five_times_if_it_fails(past: BaselineRecord | None) -> None:
    report = drive(new_gate({**suite(), "fresh": past}), lambda case: case != "fresh")

    assert finding(report, "fresh").status is CaseStatus.NEW
    assert report.verdict is GateVerdict.NO_REGRESSION
    assert report.extra_trials == 4


def test_an_outage_of_the_first_round_is_no_evidence() -> None:
    """Four of ten cases fail in the first round only."""
    red = 0
    for seed in range(40):
        rng = random.Random(seed)
        pasts: dict[str, BaselineRecord | None] = {f"case-{at}": BaselineRecord(10, 10) for at in range(50)}
        seen: set[str] = set()

        def recovering(case: str, rng: random.Random = rng, seen: set[str] = seen) -> bool:
            is_first = case not in seen
            seen.add(case)
            return not (is_first and rng.random() < 0.4)

        red += drive(new_gate(pasts), recovering).verdict is GateVerdict.REGRESSION
    assert red == 0


@pytest.mark.parametrize("pasts", [{}, {"fresh": None}])
def test_nothing_to_compare_with_is_inconclusive_and_not_green(pasts: dict[str, BaselineRecord | None]) -> None:
    assert drive(new_gate(pasts), lambda case: True).verdict is GateVerdict.INCONCLUSIVE


def test_errors_alone_are_inconclusive_and_end() -> None:
    report = drive(new_gate(suite()), lambda case: None)

    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert {found.status for found in report.cases} == {CaseStatus.UNMEASURED}


def test_a_suspect_that_only_errs_stays_open_and_is_not_asked_for_ever() -> None:
    first = {f"case-{at}": True for at in range(20)} | {"case-1": False}
    report = drive(new_gate(suite()), lambda case: first.pop(case, None), most=60)
    suspect = finding(report, "case-1")

    assert suspect.status is CaseStatus.UNDECIDED and suspect.rerun_trials == 0
    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert report.extra_trials == 10


def test_two_suites_may_have_cases_of_the_same_id() -> None:
    records = {(suite, "refund"): ALWAYS for suite in ("desk", "shop")}
    gate = Gate(records)
    while requests := gate.next_trials():
        for request in requests:
            gate.record(request.case, Outcome.FAILED if request.case[0] == "shop" else Outcome.PASSED)
    statuses = {case.address: case.status for case in gate.result().cases}

    assert statuses == {("desk", "refund"): CaseStatus.UNCHANGED, ("shop", "refund"): CaseStatus.REGRESSED}


def test_a_case_in_quarantine_is_counted_and_decides_nothing() -> None:
    gate = new_gate({**suite(5), "weak": ALWAYS}, quarantined=("weak",))
    record(gate, "weak", False)
    report = drive(gate, lambda case: True)

    assert finding(report, "weak").status is CaseStatus.QUARANTINED
    assert finding(report, "weak").first_outcome is Outcome.FAILED
    assert report.verdict is GateVerdict.NO_REGRESSION
    assert report.extra_trials == 0


def test_the_gate_asks_for_the_version_under_test() -> None:
    gate = new_gate(suite(5))

    assert {request.arm for request in gate.next_trials()} == {"new"}
    for case in wanted(gate):
        record(gate, case, case != "case-1")
    assert gate.next_trials() == [TrialRequest(("desk", "case-1"), "new")]


def test_errors_between_failures_change_no_p_value() -> None:
    answers = itertools.cycle([None, False])
    with_errors = drive(new_gate(suite(), GateSettings(max_trials=10)), lambda case: case != "case-3")
    first = {f"case-{at}": at != 3 for at in range(20)}
    without = drive(
        new_gate(suite(), GateSettings(max_trials=10)), lambda case: first.pop(case) if case in first else next(answers)
    )

    assert finding(with_errors, "case-3").p_value == finding(without, "case-3").p_value


def test_an_open_case_says_what_it_would_take_and_that_much_is_enough() -> None:
    gate = new_gate(suite(), GateSettings(budget=1))
    report = drive(gate, lambda case: case != "case-3")
    needed = finding(report, "case-3").trials_to_decide

    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert report.stopped and "budget" in report.stopped
    assert report.extra_trials == 1
    assert needed is not None
    again = drive(new_gate(suite(), GateSettings(max_trials=1 + needed)), lambda case: case != "case-3")
    assert again.verdict is GateVerdict.REGRESSION


def test_a_gate_that_is_stopped_asks_no_more() -> None:
    gate = new_gate(suite())
    for case in wanted(gate):
        record(gate, case, case != "case-1")
    gate.stop("the money is spent")

    assert wanted(gate) == []
    assert gate.result().verdict is GateVerdict.INCONCLUSIVE
    assert gate.result().stopped == "the money is spent"


def test_a_suspect_that_never_passes_again_is_not_cleared_by_a_past_that_is_too_short() -> None:
    report = drive(new_gate(suite(20, BaselineRecord(1, 1)), GateSettings(max_trials=3)), lambda case: case != "case-3")

    assert finding(report, "case-3").status in (CaseStatus.UNDECIDED, CaseStatus.REGRESSED)
    assert report.verdict is not GateVerdict.NO_REGRESSION


def test_no_case_is_asked_more_often_than_allowed() -> None:
    rng = random.Random(4)
    for limit in (0, 1, 2, 5):
        asked: Counter[str] = Counter()

        def ask(case: str, asked: Counter[str] = asked) -> bool:
            asked[case] += 1
            return rng.random() < 0.5

        drive(new_gate(suite(30, BaselineRecord(10, 8)), GateSettings(max_trials=limit)), ask)
        assert max(asked.values()) <= 1 + limit


def test_a_score_far_below_its_usual_range_makes_a_suspect_of_a_case_that_passes() -> None:
    usual = BaselineRecord(10, 10, score_mean=0.9, score_deviation=0.02)
    gate = new_gate(suite(20, usual))
    while cases := wanted(gate):
        for case in cases:
            record(gate, case, True, 0.6 if case == "case-3" else 0.91)
    found = finding(gate.result(), "case-3")

    assert found.by_score and found.status is CaseStatus.REGRESSED


def test_a_score_a_little_below_its_usual_range_is_no_suspect() -> None:
    gate = new_gate({"one": BaselineRecord(10, 10, 0.9, 0.02), "short": BaselineRecord(3, 3, 0.9, 0.0)})
    for case in wanted(gate):
        record(gate, case, True, 0.82 if case == "one" else 0.1)

    assert wanted(gate) == []
    assert gate.result().verdict is GateVerdict.NO_REGRESSION


def test_a_drop_that_is_spread_thin_is_a_regression_of_the_suite() -> None:
    rng = random.Random(6)
    pasts = {f"case-{at}": BaselineRecord(20, sum(rng.random() < 0.95 for _ in range(20))) for at in range(100)}
    report = drive(new_gate(pasts), lambda case: rng.random() < 0.85)

    assert report.verdict is GateVerdict.REGRESSION
    assert report.suite_wide.proven and report.suite_wide.p_value <= 0.05


def test_ten_thousand_cases_end_with_few_further_trials() -> None:
    rng = random.Random(9)
    rates = {
        f"case-{at}": rng.betavariate(60, 1) if rng.random() < 0.7 else rng.betavariate(5, 2) for at in range(10_000)
    }
    pasts = {
        case: BaselineRecord(count, sum(rng.random() < rate for _ in range(count)))
        for case, rate in rates.items()
        for count in (9,)
    }
    report = drive(new_gate(pasts), lambda case: rng.random() < rates[case], most=40_000)

    assert report.verdict is not GateVerdict.REGRESSION


MIXTURES: dict[str, Callable[[random.Random], float]] = {
    "mixed": lambda rng: rng.betavariate(60, 1) if rng.random() < 0.7 else rng.betavariate(5, 2),
    "flaky": lambda rng: rng.betavariate(5, 2),
    "certain but a tenth": lambda rng: 0.99 if rng.random() < 0.9 else 0.5,
    "all alike": lambda rng: 0.6,
}


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize(("cases", "trials"), [(30, 10), (8, 5)])
def test_an_unchanged_agent_is_seldom_red(name: str, cases: int, trials: int) -> None:
    rng = random.Random(f"{name} {cases}")
    red, suites = 0, 120
    for _ in range(suites):
        rates = {str(at): MIXTURES[name](rng) for at in range(cases)}
        pasts = {
            case: BaselineRecord(trials, sum(rng.random() < rate for _ in range(trials)))
            for case, rate in rates.items()
        }
        report = drive(new_gate(pasts), lambda case, rates=rates: rng.random() < rates[case])  # type: ignore[misc]
        red += report.verdict is GateVerdict.REGRESSION

    assert red / suites <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / suites)


def test_a_case_that_broke_outright_is_found_nearly_always() -> None:
    rng = random.Random(12)
    found, suites = 0, 120
    for _ in range(suites):
        rates = [MIXTURES["mixed"](rng) for _ in range(50)]
        pasts = {
            str(at): BaselineRecord(10, sum(rng.random() < rate for _ in range(10))) for at, rate in enumerate(rates)
        }
        rates[rng.randrange(50)] = 0.0
        report = drive(new_gate(pasts), lambda case, rates=rates: rng.random() < rates[int(case)])  # type: ignore[misc]
        found += report.verdict is GateVerdict.REGRESSION

    assert found / suites >= 0.88


def test_scores_that_vary_as_usual_are_seldom_red() -> None:
    rng = random.Random(13)
    red, suites = 0, 150
    for _ in range(suites):
        scores = [[rng.gauss(0.7, 0.08) for _ in range(5)] for _ in range(40)]
        pasts = {}
        for at, known in enumerate(scores):
            mean = sum(known) / 5
            pasts[str(at)] = BaselineRecord(5, 5, mean, math.sqrt(sum((score - mean) ** 2 for score in known) / 4))
        gate = new_gate(pasts)
        while cases := wanted(gate):
            for case in cases:
                record(gate, case, True, rng.gauss(0.7, 0.08))
        red += gate.result().verdict is GateVerdict.REGRESSION

    assert red / suites <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / suites)
