from __future__ import annotations

from reporting_samples import ERROR, FAILED, PASSED, OnePass, make_run, score, small_run, trial

from proctor.cases.suite import Criteria
from proctor.reporting.failing_cases import failing_cases
from proctor.results.verdict import verdict


def test_failing_trials_are_one_entry_per_case_with_each_reason_counted() -> None:
    wrong = [trial("a", FAILED, f"{n} days", score(FAILED, 0.0, reasoning=f"got '{n}'"), number=n) for n in (2, 3)]
    crashed = [trial("a", FAILED, None, number=4, reason="the agent raised KeyError: 'x'")]
    run = make_run([trial("a"), *wrong, *crashed, trial("b")])

    (case,) = failing_cases(run, verdict(run))

    assert (case.suite, case.case_id, case.outcome, case.share) == ("support", "a", FAILED, "1/4 passed")
    assert case.is_flaky
    assert [(reason.trials, reason.text) for reason in case.reasons] == [
        (2, "ExactMatch 0.00 < 0.50: got '2'"),
        (1, "the agent raised KeyError: 'x'"),
    ]
    assert case.example is not None
    assert (case.example.number, case.example.position) == (2, 1)


def test_failed_cases_come_first_then_errors_then_cases_that_passed_although_a_trial_failed() -> None:
    majority = [trial("mostly", FAILED), trial("mostly", number=2), trial("mostly", number=3)]
    broken = [trial("broken", ERROR, None, number=n, reason="the network was down") for n in (1, 2, 3)]
    wrong = [trial("wrong", FAILED, number=n) for n in (1, 2, 3)]
    run = make_run([*majority, *broken, *wrong], criteria=Criteria(trials="majority"))

    found = [(case.case_id, case.outcome, case.share) for case in failing_cases(run, verdict(run))]

    assert found == [
        ("wrong", FAILED, "0/3 passed"),
        ("broken", ERROR, "0/3 passed, 3 errors"),
        ("mostly", PASSED, "2/3 passed"),
    ]


def test_a_case_that_failed_and_broke_tells_both_numbers() -> None:
    run = make_run([trial("a", FAILED), trial("a", ERROR, None, number=2, reason="the network was down")])

    (case,) = failing_cases(run, verdict(run))

    assert case.share == "0/2 passed, 1 error"


def test_a_case_with_one_trial_is_not_counted() -> None:
    assert [case.share for case in failing_cases(small_run(), verdict(small_run()))] == ["", "1/2 passed", "", ""]


def test_no_more_trials_are_read_than_the_reasons_that_are_wanted_need() -> None:
    trials = [trial(f"c{n}", FAILED) for n in range(100)]
    stream = OnePass(100, make_run(trials).trials.__getitem__)
    run = make_run(trials, stream=stream)

    cases = failing_cases(run, verdict(run), max_with_reasons=3)

    assert len(cases) == 100
    assert [len(case.reasons) for case in cases[:4]] == [1, 1, 1, 0]
    assert stream.made == 3
