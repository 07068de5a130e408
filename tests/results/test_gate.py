from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.results import gate_evidence
from proctor.results.gate import CaseFinding, Gate, GateOptions, GateReport, GateVerdict, Past, Standing
from proctor.results.gate_evidence import (
    ANY_RATE,
    DriftTest,
    SuiteCase,
    SuspectTest,
    UsualRates,
    any_reaches,
    critical_height,
)

ALWAYS = Past(10, 10)


def drive(gate: Gate, ask: Callable[[str], bool | None], most: int = 10_000) -> GateReport:
    """The engine's loop: run what the gate wants until it wants no more."""
    asked = 0
    while cases := gate.next_cases():
        for case in cases:
            gate.record(case, ask(case))
            asked += 1
            assert asked <= most, "the gate never ends"
    return gate.report()


def finding(report: GateReport, case: str) -> CaseFinding:
    return next(found for found in report.cases if found.case == case)


def suite(count: int = 20, past: Past = ALWAYS) -> dict[str, Past | None]:
    return {f"case-{at}": past for at in range(count)}


def test_a_suite_that_passes_as_usual_costs_one_run_a_case() -> None:
    report = drive(Gate(suite()), lambda case: True)

    assert report.verdict is GateVerdict.NO_REGRESSION
    assert report.extra_trials == 0


def test_a_case_that_broke_is_proven_by_name() -> None:
    report = drive(Gate(suite()), lambda case: case != "case-3")

    assert report.verdict is GateVerdict.REGRESSION
    assert [found.case for found in report.cases if found.standing is Standing.PROVEN] == ["case-3"]
    proven = finding(report, "case-3")
    assert proven.p_value is not None and proven.p_value <= 0.05
    assert proven.fresh_passes == 0 and 2 <= proven.fresh_trials <= 6
    assert report.extra_trials == proven.fresh_trials


def test_only_suspects_are_asked_again() -> None:
    gate = Gate(suite(5))
    for case in gate.next_cases():
        gate.record(case, case != "case-1")

    assert gate.next_cases() == ("case-1",)


def test_the_first_failure_is_no_evidence() -> None:
    gate = Gate(suite())
    for case in gate.next_cases():
        gate.record(case, case != "case-1")
    suspect = finding(gate.report(), "case-1")

    assert suspect.standing is Standing.OPEN
    assert suspect.p_value is None
    assert suspect.fresh_trials == 0


def test_one_failure_of_a_case_that_passes_again_is_cleared() -> None:
    first = {f"case-{at}": True for at in range(20)} | {"case-1": False}
    report = drive(Gate(suite()), lambda case: first.pop(case, True))

    assert report.verdict is GateVerdict.NO_REGRESSION
    assert finding(report, "case-1").standing is Standing.CLEARED
    assert report.extra_trials <= 4


def test_a_case_that_usually_fails_is_no_suspect() -> None:
    pasts = {**suite(), "weak": Past(10, 3)}
    report = drive(Gate(pasts), lambda case: case != "weak")

    assert finding(report, "weak").standing is Standing.AS_USUAL
    assert report.verdict is GateVerdict.NO_REGRESSION
    assert report.extra_trials == 0


def test_a_case_that_always_failed_and_passes_now_has_improved() -> None:
    report = drive(Gate({**suite(), "weak": Past(10, 0), "mixed": Past(10, 6)}), lambda case: True)

    assert finding(report, "weak").standing is Standing.IMPROVED
    assert finding(report, "mixed").standing is Standing.AS_USUAL
    assert report.verdict is GateVerdict.NO_REGRESSION


def test_a_suite_that_fails_less_than_usual_is_told() -> None:
    report = drive(Gate(suite(60, Past(10, 6))), lambda case: True)

    assert report.drift.better_p_value < 0.001
    assert report.verdict is GateVerdict.NO_REGRESSION


@pytest.mark.parametrize("past", [None, Past(0, 0)])
def test_a_case_without_a_past_takes_no_part(past: Past | None) -> None:
    report = drive(Gate({**suite(), "fresh": past}), lambda case: case != "fresh")

    assert finding(report, "fresh").standing is Standing.NEW
    assert report.verdict is GateVerdict.NO_REGRESSION
    assert report.extra_trials == 0


@pytest.mark.parametrize("pasts", [{}, {"fresh": None}])
def test_nothing_to_compare_with_is_inconclusive_and_not_green(pasts: dict[str, Past | None]) -> None:
    assert drive(Gate(pasts), lambda case: True).verdict is GateVerdict.INCONCLUSIVE


def test_errors_alone_are_inconclusive_and_end() -> None:
    report = drive(Gate(suite()), lambda case: None)

    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert {found.standing for found in report.cases} == {Standing.NO_OUTCOME}


def test_a_suspect_that_only_errs_stays_open_and_is_not_asked_for_ever() -> None:
    first = {f"case-{at}": True for at in range(20)} | {"case-1": False}
    report = drive(Gate(suite()), lambda case: first.pop(case, None), most=60)
    suspect = finding(report, "case-1")

    assert suspect.standing is Standing.OPEN and suspect.fresh_trials == 0
    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert report.extra_trials == 10


def test_errors_between_failures_change_no_p_value() -> None:
    answers = itertools.cycle([None, False])
    with_errors = drive(Gate(suite(), GateOptions(max_trials=10)), lambda case: case != "case-3")
    first = {f"case-{at}": at != 3 for at in range(20)}
    without = drive(
        Gate(suite(), GateOptions(max_trials=10)), lambda case: first.pop(case) if case in first else next(answers)
    )

    assert finding(with_errors, "case-3").p_value == finding(without, "case-3").p_value


def test_an_open_case_says_what_it_would_take_and_that_much_is_enough() -> None:
    gate = Gate(suite(), GateOptions(budget=1))
    report = drive(gate, lambda case: case != "case-3")
    needed = finding(report, "case-3").needed

    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert report.stopped and "budget" in report.stopped
    assert report.extra_trials == 1
    assert needed is not None
    again = drive(Gate(suite(), GateOptions(max_trials=1 + needed)), lambda case: case != "case-3")
    assert again.verdict is GateVerdict.REGRESSION


def test_a_gate_that_is_stopped_asks_no_more() -> None:
    gate = Gate(suite())
    for case in gate.next_cases():
        gate.record(case, case != "case-1")
    gate.stop("the money is spent")

    assert gate.next_cases() == ()
    assert gate.report().verdict is GateVerdict.INCONCLUSIVE
    assert gate.report().stopped == "the money is spent"


def test_a_suspect_that_never_passes_again_is_not_cleared_by_a_past_that_is_too_short() -> None:
    report = drive(Gate(suite(20, Past(1, 1)), GateOptions(max_trials=3)), lambda case: case != "case-3")

    assert finding(report, "case-3").standing in (Standing.OPEN, Standing.PROVEN)
    assert report.verdict is not GateVerdict.NO_REGRESSION


def test_no_case_is_asked_more_often_than_allowed() -> None:
    rng = random.Random(4)
    for limit in (0, 1, 2, 5):
        asked: Counter[str] = Counter()

        def ask(case: str, asked: Counter[str] = asked) -> bool:
            asked[case] += 1
            return rng.random() < 0.5

        drive(Gate(suite(30, Past(10, 8)), GateOptions(max_trials=limit)), ask)
        assert max(asked.values()) <= 1 + limit


def test_a_score_far_below_its_usual_range_makes_a_suspect_of_a_case_that_passes() -> None:
    usual = Past(10, 10, score_mean=0.9, score_deviation=0.02)
    gate = Gate(suite(20, usual))
    while cases := gate.next_cases():
        for case in cases:
            gate.record(case, True, 0.6 if case == "case-3" else 0.91)
    found = finding(gate.report(), "case-3")

    assert found.by_score and found.standing is Standing.PROVEN


def test_a_score_a_little_below_its_usual_range_is_no_suspect() -> None:
    gate = Gate({"one": Past(10, 10, 0.9, 0.02), "short": Past(3, 3, 0.9, 0.0)})
    for case in gate.next_cases():
        gate.record(case, True, 0.82 if case == "one" else 0.1)

    assert gate.next_cases() == ()
    assert gate.report().verdict is GateVerdict.NO_REGRESSION


def test_a_drop_that_is_spread_thin_is_a_regression_of_the_suite() -> None:
    rng = random.Random(6)
    pasts = {f"case-{at}": Past(20, sum(rng.random() < 0.95 for _ in range(20))) for at in range(100)}
    report = drive(Gate(pasts), lambda case: rng.random() < 0.75)

    assert report.verdict is GateVerdict.REGRESSION
    assert report.drift.proven and report.drift.p_value <= 0.05


def test_more_passes_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="11 passes of 10 trials"):
        Past(10, 11)


def test_ten_thousand_cases_end_with_few_further_trials() -> None:
    rng = random.Random(9)
    rates = {
        f"case-{at}": rng.betavariate(60, 1) if rng.random() < 0.7 else rng.betavariate(5, 2) for at in range(10_000)
    }
    pasts = {
        case: Past(count, sum(rng.random() < rate for _ in range(count)))
        for case, rate in rates.items()
        for count in (9,)
    }
    report = drive(Gate(pasts), lambda case: rng.random() < rates[case], most=40_000)

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
        pasts = {case: Past(trials, sum(rng.random() < rate for _ in range(trials))) for case, rate in rates.items()}
        report = drive(Gate(pasts), lambda case, rates=rates: rng.random() < rates[case])  # type: ignore[misc]
        red += report.verdict is GateVerdict.REGRESSION

    assert red / suites <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / suites)


def test_a_case_that_broke_outright_is_found_nearly_always() -> None:
    rng = random.Random(12)
    found, suites = 0, 120
    for _ in range(suites):
        rates = [MIXTURES["mixed"](rng) for _ in range(50)]
        pasts = {str(at): Past(10, sum(rng.random() < rate for _ in range(10))) for at, rate in enumerate(rates)}
        rates[rng.randrange(50)] = 0.0
        report = drive(Gate(pasts), lambda case, rates=rates: rng.random() < rates[int(case)])  # type: ignore[misc]
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
            pasts[str(at)] = Past(5, 5, mean, math.sqrt(sum((score - mean) ** 2 for score in known) / 4))
        gate = Gate(pasts)
        while cases := gate.next_cases():
            for case in cases:
                gate.record(case, True, rng.gauss(0.7, 0.08))
        red += gate.report().verdict is GateVerdict.REGRESSION

    assert red / suites <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / suites)


PASTS = st.integers(0, 12).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials)))


@settings(deadline=None, max_examples=60)
@given(PASTS, st.lists(PASTS, max_size=6), st.floats(-3, 8))
def test_the_chance_to_reach_a_score_agrees_with_trying_every_course(
    past: tuple[int, int], others: list[tuple[int, int]], height: float
) -> None:
    usual = UsualRates([past, *others]).belief(*past).after(0, 1)
    test = SuspectTest(usual, 5)
    chances = usual.sequences(5)[5]
    total = 0.0
    for course in itertools.product((0, 1), repeat=5):
        if any(test.scores[n][sum(course[:n])] >= height for n in range(1, 6)):
            total += chances[sum(course)]

    assert test.tail(height) == pytest.approx(total, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(PASTS, st.lists(PASTS, max_size=6))
def test_further_failures_of_a_suspect_speak_louder_and_further_passes_do_not(
    past: tuple[int, int], others: list[tuple[int, int]]
) -> None:
    past = (max(past[0], past[1] - past[0]), past[1])
    test = SuspectTest(UsualRates([past, *others]).belief(*past).after(0, 1), 8)

    for n, row in enumerate(test.scores):
        assert row == sorted(row, reverse=True)
        assert test.reachable(n, 0) == pytest.approx(test.scores[8][0])


@settings(deadline=None, max_examples=40)
@given(st.lists(PASTS, min_size=1, max_size=6), st.floats(0.001, 0.2))
def test_the_critical_score_keeps_alpha_over_all_suspects(pasts: list[tuple[int, int]], alpha: float) -> None:
    rates = UsualRates(pasts)
    tests = Counter(SuspectTest(rates.belief(*past).after(0, 1), 6) for past in pasts)
    height = critical_height(tests, alpha)

    assert height == math.inf or any_reaches(tests, height) <= alpha


@settings(deadline=None)
@given(st.lists(PASTS, max_size=8), PASTS)
def test_beliefs_are_chances_and_a_better_past_promises_more(
    pasts: list[tuple[int, int]], past: tuple[int, int]
) -> None:
    rates = UsualRates(pasts)
    passes, trials = past
    belief = rates.belief(passes, trials)

    assert math.fsum(weight for weight, _, _ in belief.parts) == pytest.approx(1)
    assert 0 < belief.mean < 1
    for row, n in zip(belief.sequences(4), range(5), strict=True):
        assert math.fsum(math.comb(n, count) * chance for count, chance in enumerate(row)) == pytest.approx(1)
    if passes < trials:
        assert rates.belief(passes + 1, trials).mean >= belief.mean - 1e-9


def test_a_long_past_is_believed_and_a_short_one_is_drawn_to_the_suite() -> None:
    rates = UsualRates([(10, 10)] * 30 + [(7, 10)] * 10 + [(600, 1000), (1, 2)])

    assert rates.belief(600, 1000).mean == pytest.approx(0.6, abs=0.01)
    assert rates.belief(1, 2).mean > 0.6
    assert ANY_RATE.after(1, 1).mean == pytest.approx(0.5)


CASES = st.tuples(PASTS, st.integers(1, 2), st.integers(0, 2)).map(
    lambda drawn: SuiteCase(drawn[0][0], drawn[0][1], min(drawn[1], drawn[2]), drawn[1])
)


def share_by_shuffling(cases: list[SuiteCase]) -> float:
    """Every way the failures of each case can fall on its recorded and its new trials, tried one by one."""
    ways = []
    observed = 0
    for case in cases:
        trials = case.trials + case.now_trials
        failures = trials - case.passes - case.now_passes
        weight = gate_evidence.failure_weight(failures, trials)
        observed += weight * (case.now_trials - case.now_passes)
        ways.append(
            [
                weight * sum(at < failures for at in now)
                for now in itertools.combinations(range(trials), case.now_trials)
            ]
        )
    sums = [sum(way) for way in itertools.product(*ways)]
    return sum(total >= observed for total in sums) / len(sums)


@settings(deadline=None, max_examples=50)
@given(st.lists(CASES.filter(lambda case: case.trials <= 5), min_size=1, max_size=3))
def test_the_suite_level_chance_agrees_with_trying_every_shuffle(cases: list[SuiteCase]) -> None:
    assert DriftTest(cases).worse == pytest.approx(share_by_shuffling(cases))


@given(st.lists(CASES, min_size=1, max_size=30), st.integers(0, 29))
def test_one_more_failure_never_makes_a_suite_look_better(cases: list[SuiteCase], at: int) -> None:
    at %= len(cases)
    case = cases[at]
    if case.now_passes and case.now_trials == 1 and case.passes == case.trials:
        worse = SuiteCase(case.passes, case.trials, 0, 1)
        assert DriftTest([*cases[:at], worse, *cases[at + 1 :]]).worse <= DriftTest(cases).worse + 1e-9


@pytest.mark.parametrize("failing", [0.08, 0.12, 0.2])
def test_the_approximation_for_large_suites_agrees_with_counting(
    failing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(7)
    cases = []
    for _ in range(200):
        rate = rng.betavariate(8, 1)
        cases.append(SuiteCase(sum(rng.random() < rate for _ in range(10)), 10, int(rng.random() > failing), 1))
    approximate = DriftTest(cases)
    worse, better = approximate.worse, approximate.better
    monkeypatch.setattr(gate_evidence, "EXACT_UP_TO", 1000)
    exact = DriftTest(cases)

    assert worse == pytest.approx(exact.worse, rel=0.08)
    assert better == pytest.approx(exact.better, rel=0.08)
