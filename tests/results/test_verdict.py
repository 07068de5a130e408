from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proctor.cases.suite import Criteria
from proctor.results.run import Run
from proctor.results.score import Outcome, Score, ScoreRow
from proctor.results.suite_info import SuiteInfo
from proctor.results.trial import TrialSummary
from proctor.results.verdict import RunVerdict, SuiteVerdict, case_outcome, suite_verdict, trial_outcome, verdict

PASSED, FAILED, ERROR, SKIPPED, PENDING = Outcome
Rule = Literal["all", "any", "majority"]
RULES = st.sampled_from(get_args(Rule))
OUTCOMES = st.sampled_from(list(Outcome))
SHARES = st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.7, 0.9, 1.0])


def trial(case_id: str, outcome: Outcome, number: int = 1, scores: Sequence[Any] = ()) -> TrialSummary:
    return TrialSummary("s", case_id, number, 0, outcome, tuple(scores), 0.0)


def of_cases(*outcomes: Outcome) -> list[TrialSummary]:
    return [trial(f"case-{number}", outcome) for number, outcome in enumerate(outcomes)]


def info(criteria: Criteria | None = None, planned: int = 0) -> SuiteInfo:
    return SuiteInfo("s", None, "native", "agent", "", criteria or Criteria(), planned, planned)


def judged(
    trials: Sequence[TrialSummary], criteria: Criteria | None = None, planned: int | None = None
) -> SuiteVerdict:
    return suite_verdict(info(criteria, len(trials) if planned is None else planned), trials)


def of_run(*suites: Sequence[TrialSummary], note: str = "", interrupted: bool = False) -> RunVerdict:
    infos = [replace(info(planned=len(trials)), name=f"s{number}") for number, trials in enumerate(suites)]
    summaries = [replace(item, suite=f"s{number}") for number, trials in enumerate(suites) for item in trials]
    return verdict(Run("id", 0.0, tuple(infos), summaries, (), note=note, interrupted=interrupted))


def completions(outcomes: Sequence[Outcome]) -> Iterator[tuple[Outcome, ...]]:
    """Every way in which what is not known could have come out."""
    options = [(PASSED, FAILED) if outcome in (ERROR, PENDING) else (outcome,) for outcome in outcomes]
    return itertools.product(*options)


def satisfied(outcomes: Sequence[Outcome], rule: str) -> bool:
    known = [outcome is PASSED for outcome in outcomes if outcome is not SKIPPED]
    return {"all": all(known), "any": any(known), "majority": sum(known) > len(known) / 2}[rule]


def settled(possible: set[bool]) -> Outcome | None:
    return PASSED if possible == {True} else FAILED if possible == {False} else None


@given(st.lists(OUTCOMES, min_size=1, max_size=6), RULES)
def test_trials_of_a_case_leave_it_open_exactly_if_what_is_unknown_could_change_it(
    outcomes: list[Outcome], rule: Rule
) -> None:
    found = case_outcome([trial("c", outcome, n) for n, outcome in enumerate(outcomes)], Criteria(trials=rule))

    if set(outcomes) == {SKIPPED}:
        assert found is SKIPPED
        return
    expected = settled({satisfied(completion, rule) for completion in completions(outcomes)})
    assert found is (expected or (ERROR if ERROR in outcomes else PENDING))


@given(st.lists(OUTCOMES, min_size=1, max_size=8), SHARES)
def test_cases_of_a_suite_leave_it_open_exactly_if_what_is_unknown_could_change_it(
    outcomes: list[Outcome], pct: float
) -> None:
    found = judged(of_cases(*outcomes), Criteria(pct=pct)).outcome

    known = [outcome for outcome in outcomes if outcome is not SKIPPED]
    if not known:
        assert found is SKIPPED
        return
    shares = {sum(outcome is PASSED for outcome in ways) / len(known) >= pct - 1e-9 for ways in completions(known)}
    assert found is (settled(shares) or (ERROR if ERROR in outcomes else PENDING))


@given(st.lists(OUTCOMES, min_size=1, max_size=8), SHARES)
def test_an_error_never_turns_into_a_pass(outcomes: list[Outcome], pct: float) -> None:
    """A suite that passes with an error in it would pass as well if that case had failed."""
    assume(ERROR in outcomes)
    if judged(of_cases(*outcomes), Criteria(pct=pct)).outcome is PASSED:
        worse = [FAILED if outcome is ERROR else outcome for outcome in outcomes]
        assert judged(of_cases(*worse), Criteria(pct=pct)).outcome is PASSED


@given(st.lists(OUTCOMES, max_size=8), SHARES)
def test_another_passing_case_never_turns_a_pass_into_anything_else(outcomes: list[Outcome], pct: float) -> None:
    if judged(of_cases(*outcomes), Criteria(pct=pct)).outcome is PASSED:
        assert judged(of_cases(*outcomes, PASSED), Criteria(pct=pct)).outcome is PASSED


@given(st.lists(OUTCOMES, max_size=8), SHARES)
def test_another_failing_case_never_turns_a_failure_into_anything_else(outcomes: list[Outcome], pct: float) -> None:
    if judged(of_cases(*outcomes), Criteria(pct=pct)).outcome is FAILED:
        assert judged(of_cases(*outcomes, FAILED), Criteria(pct=pct)).outcome is FAILED


@given(st.lists(OUTCOMES, max_size=6), st.integers(1, 4), SHARES, RULES)
def test_a_suite_whose_trials_were_not_all_made_has_failed_only_if_the_others_could_not_help(
    outcomes: list[Outcome], missing: int, pct: float, rule: Rule
) -> None:
    made = of_cases(*outcomes)
    found = judged(made, Criteria(rule, pct=pct), planned=len(made) + missing).outcome

    assert found is not PASSED
    if found is FAILED:
        more = of_cases(*outcomes, *[PASSED] * missing)
        assert judged(more, Criteria(rule, pct=pct)).outcome is FAILED
        if outcomes:
            again = [trial(made[0].case_id, PASSED, n + 2) for n in range(missing)]
            assert judged([*made, *again], Criteria(rule, pct=pct)).outcome is FAILED


VALUES = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))


def row(value: float | None, threshold: float, name: str = "e", *, report_only: bool = False) -> ScoreRow:
    outcome = ERROR if value is None else PASSED if value >= threshold else FAILED
    return ScoreRow(name, outcome, value, threshold, report_only)


def means(values: Sequence[float | None], threshold: float) -> Outcome:
    """By trying both ends of the scale for everything that is not known."""
    ends = [(0.0, 1.0) if value is None else (value,) for value in values]
    return settled({math.fsum(ways) / len(ways) >= threshold - 1e-12 for ways in itertools.product(*ends)}) or ERROR


@given(
    st.lists(st.lists(VALUES, min_size=1, max_size=3), min_size=1, max_size=3), st.sampled_from([0.2, 0.5, 0.8, 1.0])
)
def test_means_are_taken_over_all_runs_and_turns_and_left_open_only_if_something_could_tip_them(
    runs: list[list[float | None]], threshold: float
) -> None:
    trials = [trial("c", PASSED, n, [row(value, threshold) for value in values]) for n, values in enumerate(runs)]

    found = case_outcome(trials, Criteria("mean"))

    assert found is means([value for values in runs for value in values], threshold)


@given(st.lists(VALUES, min_size=1, max_size=5), st.integers(1, 3), st.sampled_from([0.2, 0.5, 0.8]))
def test_runs_that_could_not_be_measured_count_as_anything_in_a_mean(
    values: list[float | None], lost: int, threshold: float
) -> None:
    trials = [trial("c", PASSED, n, [row(value, threshold)]) for n, value in enumerate(values)]
    errors = [trial("c", ERROR, len(values) + n) for n in range(lost)]

    assert case_outcome([*trials, *errors], Criteria("mean")) is means([*values, *[None] * lost], threshold)


def test_a_mean_passes_although_one_run_scored_low_and_fails_although_one_scored_high() -> None:
    def outcome(*values: float) -> Outcome:
        return case_outcome([trial("c", FAILED, n, [row(v, 0.5)]) for n, v in enumerate(values)], Criteria("mean"))

    assert outcome(1.0, 0.0) is PASSED
    assert outcome(1.0, 0.0, 0.0) is FAILED


def test_a_run_in_which_the_agent_broke_down_fails_a_mean() -> None:
    trials = [trial("c", PASSED, 1, [row(1.0, 0.5)]), trial("c", FAILED, 2)]

    assert case_outcome(trials, Criteria("mean")) is FAILED


def test_each_evaluator_has_a_mean_of_its_own() -> None:
    rows = [row(1.0, 0.5, "good"), row(0.0, 0.5, "bad"), row(0.9, 0.5, "bad")]

    assert case_outcome([trial("c", FAILED, 1, rows)], Criteria("mean")) is FAILED
    informing = [row(1.0, 0.5, "good"), row(0.0, 0.5, "bad", report_only=True)]
    assert case_outcome([trial("c", FAILED, 1, informing)], Criteria("mean")) is PASSED


@given(st.lists(st.tuples(OUTCOMES, st.booleans()), max_size=6))
def test_one_failed_score_fails_a_trial_and_only_scores_that_gate_count(rows: list[tuple[Outcome, bool]]) -> None:
    scores = [Score(f"e{n}", outcome, 1.0, 0.5, report_only=not counts) for n, (outcome, counts) in enumerate(rows)]
    gating = {outcome for outcome, counts in rows if counts}

    found, reason = trial_outcome(scores, Criteria())

    expected = next((outcome for outcome in (FAILED, ERROR, PENDING, PASSED) if outcome in gating), None)
    assert found is (expected or ERROR)
    assert bool(reason) is (expected is None)


@pytest.mark.parametrize("rule", ["all", "any", "majority", "mean"])
def test_nothing_passes_vacuously(rule: Any) -> None:
    criteria = Criteria(rule)

    assert trial_outcome([], criteria)[0] is ERROR
    assert trial_outcome([Score("e", SKIPPED)], criteria)[0] is ERROR
    assert trial_outcome([Score("e", PASSED, 1.0, 0.5, report_only=True)], criteria)[0] is ERROR
    assert judged([], criteria).outcome is SKIPPED
    assert judged(of_cases(SKIPPED, SKIPPED), criteria).outcome is SKIPPED
    assert of_run([]).exit_code == 4
    assert of_run().exit_code == 4
    assert of_run(of_cases(SKIPPED)).exit_code == 4


@pytest.mark.parametrize("outcomes", [(FAILED,), (ERROR, ERROR), (PENDING,), (FAILED, ERROR)])
def test_a_suite_of_which_no_share_must_pass_still_needs_one_that_does(outcomes: tuple[Outcome, ...]) -> None:
    assert judged(of_cases(*outcomes), Criteria(pct=0.0)).outcome is not PASSED
    assert judged(of_cases(*outcomes, PASSED), Criteria(pct=0.0)).outcome is PASSED


@pytest.mark.parametrize(
    ("suites", "code"),
    [
        ([of_cases(PASSED, PASSED)], 0),
        ([of_cases(PASSED, SKIPPED)], 0),
        ([of_cases(PASSED), of_cases(SKIPPED)], 0),
        ([of_cases(PASSED, FAILED)], 1),
        ([of_cases(FAILED), of_cases(ERROR)], 1),
        ([of_cases(ERROR), of_cases(FAILED)], 1),
        ([of_cases(PASSED, PENDING)], 3),
        ([of_cases(PASSED, ERROR)], 4),
        ([of_cases(PENDING), of_cases(ERROR)], 4),
        ([of_cases(PENDING, ERROR)], 4),
    ],
)
def test_exit_codes(suites: list[list[TrialSummary]], code: int) -> None:
    assert of_run(*suites).exit_code == code
    assert of_run(*suites, interrupted=True, note="interrupted").exit_code == 130


def test_a_run_that_stopped_early_never_passes() -> None:
    assert of_run(of_cases(PASSED), note="the disk is full").exit_code == 4
    assert of_run(of_cases(FAILED), note="the disk is full").exit_code == 1
    assert of_run(of_cases(PASSED), note="the disk is full").reason == "the disk is full"


def test_not_every_suite_passed_if_one_was_skipped() -> None:
    assert of_run(of_cases(PASSED), of_cases(PASSED)).reason == "every suite passed"
    assert of_run(of_cases(PASSED), of_cases(SKIPPED)).reason != "every suite passed"


def test_nine_of_ten_is_nine_of_ten_whatever_floating_point_thinks() -> None:
    for total in range(1, 30):
        for passed in range(1, total + 1):
            outcomes = [PASSED] * passed + [FAILED] * (total - passed)
            assert judged(of_cases(*outcomes), Criteria(pct=passed / total)).outcome is PASSED


def test_reliability_is_averaged_over_cases_that_were_measured_each_time() -> None:
    trials = [
        *(trial("steady", PASSED, n) for n in (1, 2, 3)),
        *(trial("shaky", outcome, n) for n, outcome in enumerate((PASSED, FAILED, PASSED))),
        *(trial("lost", outcome, n) for n, outcome in enumerate((PASSED, ERROR, PASSED))),
    ]
    found = judged(trials)

    assert (found.repeats, found.pass_hat_k, found.pass_at_k) == (3, 0.5, 1.0)
    assert judged(of_cases(PASSED)).pass_hat_k is None


def test_reliability_is_told_for_every_number_of_trials_up_to_the_repeats() -> None:
    counts = {"steady": 4, "shaky": 3, "rare": 1, "broken": 0}
    trials = [
        trial(name, PASSED if number < passed else FAILED, number)
        for name, passed in counts.items()
        for number in range(4)
    ]
    found = judged(trials).reliability

    assert [item.k for item in found] == [1, 2, 3, 4]
    for item in found:
        hats = [math.comb(passed, item.k) / math.comb(4, item.k) for passed in counts.values()]
        ats = [1 - math.comb(4 - passed, item.k) / math.comb(4, item.k) for passed in counts.values()]
        assert item.pass_hat == pytest.approx(sum(hats) / 4)
        assert item.pass_at == pytest.approx(sum(ats) / 4)
    assert judged(of_cases(PASSED)).reliability == ()


def test_summaries_of_evaluators_count_repeats_of_a_case_once() -> None:
    trials = [trial("a", PASSED, n, [row(1.0, 0.5)]) for n in range(10)] + [trial("b", FAILED, 1, [row(0.0, 0.5)])]
    (found,) = judged(trials).evaluators

    assert found.scores is not None
    assert (found.scores.mean, found.scores.count) == (0.5, 2)
    assert (found.passed, found.failed, found.threshold) == (10, 1, 0.5)
