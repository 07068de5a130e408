"""What changed from one run to another: groups, statements and what cannot be compared."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from reporting_samples import ERROR, FAILED, PASSED, SKIPPED, make_run, score, single, trial

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.errors import UsageError
from proctor.cases.suite import Case
from proctor.results.comparison.compare import compare_runs
from proctor.results.comparison.comparison import Change, Comparison
from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.trial import Trial


def outcomes(case: Case | str, *found: Outcome, **rest: Any) -> list[Trial]:
    return [trial(case, outcome, number=number, **rest) for number, outcome in enumerate(found, 1)]


def run_of(*cases: Sequence[Trial], **rest: Any) -> Run:
    return make_run([item for case in cases for item in case], **rest)


def compared(before: Run, after: Run, **options: Any) -> Comparison:
    return compare_runs(before, replace_id(after), **options)


def replace_id(run: Run) -> Run:
    run.id = "20260102-000000-beef"
    return run


def group_of(before: Sequence[Outcome], after: Sequence[Outcome]) -> Change:
    [case] = compared(run_of(outcomes("a", *before)), run_of(outcomes("a", *after))).cases
    return case.group


P, F = PASSED, FAILED


@pytest.mark.parametrize(
    ("before", "after", "group"),
    [
        ([P], [F], Change.BROKEN),
        ([F], [P], Change.FIXED),
        ([F], [F], Change.STILL_FAILING),
        ([P], [P], Change.STILL_PASSING),
        ([P] * 5, [F] * 5, Change.BROKEN),
        ([P] * 5, [P, P, P, F, F], Change.FLAKY),
        ([P, P, F], [P, F, P], Change.FLAKY),
        ([P, P, P, P, F], [F] * 5, Change.BROKEN),
        ([F] * 5, [P] * 5, Change.FIXED),
        ([ERROR], [P], Change.NOT_COMPARABLE),
        ([P], [SKIPPED], Change.NOT_COMPARABLE),
        ([ERROR, P], [P], Change.STILL_PASSING),
    ],
)
def test_a_case_is_in_the_group_that_its_trials_say(before: list[Outcome], after: list[Outcome], group: Change) -> None:
    assert group_of(before, after) == group


def test_new_and_gone_cases_are_told_apart_from_changed_ones() -> None:
    found = compared(
        run_of(outcomes("a", P), outcomes(single("old", "Bye?"), P)),
        run_of(outcomes("a", P), outcomes(single("b", "Hi?"), F)),
    )
    assert {case.case_id: case.group for case in found.cases} == {
        "a": Change.STILL_PASSING,
        "b": Change.NEW,
        "old": Change.GONE,
    }


def test_a_renamed_case_is_the_same_case() -> None:
    found = compared(run_of(outcomes(single("a", "Hi?"), P)), run_of(outcomes(single("b", "Hi?"), F)))
    [case] = found.cases
    assert (case.case_id, case.renamed_from, case.group) == ("b", "support/a", Change.BROKEN)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (single("a", "Ho?", output="x"), "the input of the case changed"),
        (single("a", "Hi?", output="y"), "the expectation of the case changed"),
    ],
)
def test_a_case_that_changed_says_what_changed(other: Case, reason: str) -> None:
    found = compared(run_of(outcomes(single("a", "Hi?", output="x"), P)), run_of(outcomes(other, F)))
    [case] = found.cases
    assert (case.group, case.reasons) == (Change.NOT_COMPARABLE, (reason,))
    assert found.verdict == "not comparable"


JUDGED = {"judge": {"model": "openai:a"}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"threshold": 0.7}, "the threshold of ExactMatch changed from 0.5 to 0.7"),
        ({"fingerprint": "x"}, "the evaluator ExactMatch changed"),
        (
            {"fingerprint": "x", "details": {"judge": {"model": "b"}}},
            "the judge of ExactMatch changed from openai:a to b",
        ),
        ({"report_only": True}, "ExactMatch is now report only"),
        ({"evaluator": "Contains"}, "the evaluator ExactMatch was removed"),
    ],
)
def test_scores_that_were_made_otherwise_are_not_compared(changes: dict[str, Any], reason: str) -> None:
    usual = replace(score(details=JUDGED))
    before, after = (run_of([trial("a", P, "x", item)]) for item in (usual, replace(usual, **changes)))
    [case] = compared(before, after).cases
    assert case.group == Change.NOT_COMPARABLE
    assert case.reasons[0] == reason


def test_an_evaluator_that_only_informs_may_come_and_go() -> None:
    before = run_of([trial("a", P, "x", score())])
    after = run_of([trial("a", P, "x", score(), score(evaluator="Tone", report_only=True))])
    assert compared(before, after).cases[0].group == Change.STILL_PASSING


def many(passing: int, failing: int, *, shift: int = 0) -> Run:
    """Cases by number, of which the first pass; `shift` of them fail although they are among the first."""
    found = [P] * (passing - shift) + [F] * (failing + shift)
    return run_of(*(outcomes(f"case-{at}", outcome) for at, outcome in enumerate(found)))


def test_one_flip_among_many_is_no_difference() -> None:
    found = compared(many(49, 1), many(49, 1, shift=1))
    assert found.verdict == "no difference"
    assert found.sentence.startswith("No significant difference: 1 of 50 cases broken, pass rate 98% → 96% (")


def test_ten_breaks_are_a_regression_and_ten_fixes_an_improvement() -> None:
    worse = compared(many(50, 0), many(50, 0, shift=10))
    assert (worse.verdict, worse.sentence[:6]) == ("regression", "Worse:")
    assert "10 of 50 cases broken" in worse.sentence
    assert compared(many(50, 0, shift=10), many(50, 0)).verdict == "improvement"


def test_five_of_five_to_none_of_five_is_a_regression_of_one_case() -> None:
    found = compared(
        run_of(outcomes("a", *[P] * 5), outcomes("b", *[P] * 5)),
        run_of(outcomes("a", *[F] * 5), outcomes("b", *[P] * 5)),
    )
    assert found.verdict == "regression"
    assert found.test is not None
    assert found.test.method == "permutation within cases"
    assert found.cases[0].before is not None
    assert (found.cases[0].before.passed, found.cases[0].before.trials) == (5, 5)


def test_nothing_changed_says_so() -> None:
    assert compared(many(3, 0), many(3, 0)).sentence.startswith(
        "No change: all 3 cases ended as before, pass rate 100% → 100%"
    )


def test_runs_without_a_case_in_common_are_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="have no case in common"):
        compared(run_of(outcomes(single("a", "Hi?"), P)), run_of(outcomes(single("b", "Ho?"), P)))


def test_a_run_that_ended_in_errors_alone_is_said_to_be_unmeasured() -> None:
    broken = [trial("a", ERROR, None, reason="the agent could not be reached")]
    found = compared(run_of(outcomes("a", P)), run_of(broken))
    assert found.is_unmeasured
    assert found.sentence.startswith(
        "Nothing can be compared: 1 case cannot be compared (no result in the second run (error: the agent could"
    )


def test_a_run_that_was_interrupted_is_compared_as_far_as_it_came_and_says_so() -> None:
    cut = run_of(outcomes("a", P), interrupted=True)
    found = compared(run_of(outcomes("a", P), outcomes(single("b", "Hi?"), P)), cut)
    assert found.notes == (
        "run 20260102-000000-beef is incomplete: 1 of 1 trials ran",
        "1 case cannot be compared",
    )
    assert found.gone == []  # it may just not have run
    [missing] = found.not_comparable
    assert (missing.case_id, missing.reasons) == ("b", ("did not run in the second run, which is incomplete",))


def test_scores_and_resources_come_with_intervals() -> None:
    def whole(at: int, value: float, tokens: int) -> list[Trial]:
        scores = (score(), score(P, value, "Tone", report_only=True))
        reply = Reply("x", (ToolCall("t"),), Usage(tokens, 0, tokens / 1000))
        return [trial(f"case-{at}", P, None, *scores, replies=(reply,), duration_ms=100.0 + at)]

    before = run_of(*(whole(at, 0.9, 100 + at) for at in range(12)))
    after = run_of(*(whole(at, 0.5, 2 * (100 + at)) for at in range(12)))
    found = compared(before, after)
    tone = next(item for item in found.evaluators if item.evaluator == "Tone")
    assert tone.differs
    assert tone.difference.value == pytest.approx(-0.4)
    assert tone.difference.low <= -0.4 <= tone.difference.high
    ratios = {item.resource: item.ratio for item in found.resources}
    assert ratios["tokens"].value == ratios["cost_usd"].value == pytest.approx(2.0)
    assert ratios["duration_ms"].value == ratios["tool_calls"].value == pytest.approx(1.0)


def test_a_broken_case_tells_where_its_conversation_parts() -> None:
    before, after = Reply("x", (ToolCall("pay", {"sum": 1}),)), Reply("y", (ToolCall("pay", {"sum": 2}),))
    found = compared(
        run_of([trial("a", P, None, score(), replies=(before,))]),
        run_of([trial("a", F, None, score(FAILED, 0.0, reasoning="the answers differ"), replies=(after,))]),
    )
    assert found.cases[0].divergence is not None
    assert found.cases[0].divergence.text == "pay: sum 1 → 2"
    assert found.cases[0].reasons == ("ExactMatch 0.00 < 0.50: the answers differ",)


def test_only_the_chosen_cases_are_compared() -> None:
    runs = [run_of(outcomes("a", P), outcomes(single("b", "Hi?"), P)) for _ in range(2)]
    found = compared(*runs, select=lambda suite, case: case.id == "b")
    assert [case.case_id for case in found.cases] == ["b"]
    with pytest.raises(UsageError, match="is selected"):
        compared(*runs, select=lambda suite, case: False)


def test_the_data_of_a_comparison_is_json_without_infinities() -> None:
    reply = Reply("x", usage=Usage(1, 1))
    runs = [run_of([trial("a", P, None, score(), replies=(reply,))]) for _ in range(2)]
    data = json.loads(json.dumps(compared(*runs).to_json(), allow_nan=False))
    assert data["schema"] == "proctor.comparison/1"
    assert data["counts"]["still passing"] == 1
    assert data["resources"][0]["ratio"]["high"] is None


@pytest.mark.parametrize("repeats", [1, 3])
def test_two_runs_of_one_agent_are_seldom_called_different(repeats: int) -> None:
    rng = random.Random(repeats)
    rates = [rng.choice((0.98, 0.98, 0.7, 0.4)) for _ in range(12)]
    cases = [single(f"case-{at}", f"{at}?") for at in range(len(rates))]

    def one() -> Run:
        return run_of(
            *(
                outcomes(case, *(P if rng.random() < rate else F for _ in range(repeats)))
                for case, rate in zip(cases, rates, strict=True)
            )
        )

    alarms = sum(compared(one(), one()).verdict in ("regression", "improvement") for _ in range(120))
    assert alarms <= 12  # 5 % of 120 are 6; more than 12 would come by chance once in a hundred


def test_the_interval_of_a_difference_never_contradicts_its_p_value() -> None:
    """Not: +0.957 [+0.007, +1.000] next to p = 1.00."""

    def run(*values: float) -> Run:
        return run_of([trial("a", P, "x", *(score(P, value, f"E{at}") for at, value in enumerate(values)))])

    [first, second] = compared(run(0.043, 0.5), run(1.0, 0.5)).evaluators
    assert first.p_value == 1.0
    assert first.difference.value == pytest.approx(0.957)
    for item in (first, second):
        assert item.difference.low <= 0 <= item.difference.high
        assert not item.differs
