"""A budget counts what is known to have been spent, and says what it does not know."""

from __future__ import annotations

import pytest

from proctor.agents.reply import Usage
from proctor.judging.budget import Budget, UncappedBudget


def test_a_budget_is_exhausted_when_it_is_spent_and_not_before() -> None:
    budget = Budget(1.0)
    budget.spend(Usage(cost_usd=0.6))
    assert not budget.is_exhausted
    budget.spend(Usage(cost_usd=0.42), "agent")
    assert budget.is_exhausted
    assert budget.spent == pytest.approx(1.02)


def test_without_a_limit_nothing_is_ever_too_much() -> None:
    budget = Budget(None)
    budget.spend(Usage(cost_usd=1e9))
    assert not budget.is_exhausted


def test_an_unknown_cost_is_reported_and_not_taken_for_zero() -> None:
    budget = Budget(1.0)
    assert budget.uncounted_notice() == ""
    budget.spend(Usage(input_tokens=10))
    assert budget.uncounted_notice() == "the cost of 1 judge call is unknown and not counted"
    budget.spend(None, "agent")
    budget.spend(None, "agent")
    assert budget.uncounted_notice() == "the cost of 1 judge call and 2 answers is unknown and not counted"
    assert budget.spent == 0.0


def test_free_is_a_known_cost() -> None:
    budget = Budget(1.0)
    budget.spend(Usage(cost_usd=0.0))
    assert budget.uncounted_notice() == ""


def test_what_trials_under_way_spend_is_counted_and_does_not_cut_them_short() -> None:
    budget = Budget(1.0)
    uncapped = UncappedBudget(budget)
    uncapped.spend(Usage(cost_usd=5.0))
    assert budget.is_exhausted
    assert not uncapped.is_exhausted
