"""The comparison of arms: pairs, verdicts, totals, and the correction for several pairs."""

from __future__ import annotations

import random
from statistics import median
from typing import Any

import pytest

from proctor.agents.reply import Reply, Usage
from proctor.cases.suite import Case, Suite
from proctor.results.comparison.arms import arm_tables
from proctor.results.comparison.compare import compare_runs
from proctor.results.comparison.significance import mean_of_cases, median_of_cases
from proctor.results.run import Run


def desk(cases: int = 12) -> Suite:
    return Suite("desk", [Case(f"q{n}", f"q{n}") for n in range(cases)])


def priced(text: str, cost: float) -> Any:
    return lambda question: Reply(text or question, usage=Usage(10, 5, cost_usd=cost))


def run_arms(**arms: Any) -> Run:
    return desk().run(arms=arms)


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [("", "no", "worse"), ("no", "", "better"), ("", "", "no difference shown"), ("no", "no", "no difference shown")],
)
def test_a_pair_of_arms_has_one_of_three_verdicts(old: str, new: str, verdict: str) -> None:
    run = run_arms(old=priced(old, 0.1), new=priced(new, 0.2))
    [table] = arm_tables(run)
    [item] = table.comparisons
    assert (item.before, item.after, item.verdict) == ("old", "new", verdict)
    assert item.sentence.startswith(f"new compared with old: {verdict}: ")


def test_two_arms_are_compared_as_two_runs_are() -> None:
    run = run_arms(old=priced("", 0.1), new=priced("no", 0.2))
    [table] = arm_tables(run)
    alone = compare_runs(run.arms["old"], run.arms["new"])
    assert table.comparisons[0].comparison.difference == alone.difference
    assert table.comparisons[0].comparison.test == alone.test


def test_cells_and_totals_have_answer_outcome_cost_and_time() -> None:
    run = run_arms(old=priced("", 0.1), new=priced("no", 0.2))
    [table] = arm_tables(run)
    case_id, (old, new) = table.rows[0]
    assert case_id == "q0"
    assert old is not None
    assert new is not None
    assert (old.outcome.value, old.answer, old.cost_usd) == ("passed", "q0", 0.1)
    assert (new.outcome.value, new.answer, new.cost_usd) == ("failed", "no", 0.2)
    assert new.duration_ms is not None
    first, second = table.arms
    assert (first.pass_rate and first.pass_rate.mean, second.pass_rate and second.pass_rate.mean) == (1.0, 0.0)
    assert second.cost_usd is not None
    assert second.cost_usd.value == pytest.approx(0.2)
    assert first.duration_ms is not None
    assert first.duration_ms.low <= first.duration_ms.value <= first.duration_ms.high
    [cost] = [item for item in table.comparisons[0].comparison.resources if item.resource == "cost_usd"]
    assert cost.ratio.value == pytest.approx(2.0)


def test_several_arms_are_compared_in_pairs_and_each_pair_is_corrected_for_their_number() -> None:
    few = [f"q{n}" for n in range(5)]
    worse = lambda question: "no" if question in few else question  # noqa: E731
    two = arm_tables(run_arms(old=lambda q: q, new=worse))[0].comparisons
    many = run_arms(old=lambda q: q, new=worse, other=lambda q: q, last=lambda q: q)
    [table] = arm_tables(many)
    assert [(item.before, item.after) for item in table.comparisons] == [
        ("old", "new"),
        ("old", "other"),
        ("old", "last"),
        ("new", "other"),
        ("new", "last"),
        ("other", "last"),
    ]
    alone, corrected = two[0].comparison, table.comparisons[0].comparison
    assert alone.test is not None
    assert corrected.test is not None
    assert corrected.test.p_value == pytest.approx(6 * alone.test.p_value)
    assert alone.difference is not None
    assert corrected.difference is not None
    assert corrected.difference.low < alone.difference.low
    assert corrected.difference.high > alone.difference.high
    assert (two[0].verdict, table.comparisons[0].verdict) == ("worse", "no difference shown")
    assert "6 pairs" in table.correction


def test_the_interval_of_a_median_contains_the_true_one_often_enough() -> None:
    rng, hits = random.Random(1), 0
    for _ in range(400):
        effect = median_of_cases([rng.expovariate(1.0) for _ in range(15)])
        assert effect is not None
        hits += effect.low <= 0.6931 <= effect.high
    assert hits >= 372
    known = median_of_cases([3.0, 1.0, 2.0])
    assert known is not None
    assert (known.value, known.low, known.high) == (median([1.0, 2.0, 3.0]), 0.0, float("inf"))
    assert median_of_cases([]) is None
    assert mean_of_cases([]) is None
    assert (
        len({(effect.low, effect.high) for effect in [median_of_cases([float(n) for n in range(2001)])] if effect}) == 1
    )


def test_an_ordinary_run_has_no_arms() -> None:
    assert arm_tables(desk().run(lambda question: question)) == ()
