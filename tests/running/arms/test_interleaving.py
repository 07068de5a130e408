"""The order in which the trials of arms run."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from itertools import groupby

import pytest

import proctor
from proctor.cases.suite import Suite
from proctor.running.arms.interleaving import interleaved
from proctor.running.execution import Dispatcher
from proctor.running.plan import Plan, PlannedTrial, make_plan
from proctor.running.settings import RunOptions


def plan_of(arms: int, cases: int, repeat: int = 1) -> Plan:
    suite = Suite("desk", [{"id": f"c{n}", "input": "q", "expected": "q", "repeat": repeat} for n in range(cases)])
    return make_plan([suite], RunOptions(), arms={f"arm{n}": lambda text: text for n in range(arms)})


def blocks_of(trials: list[PlannedTrial]) -> list[list[str]]:
    return [[trial.suite.arm for trial in group] for _, group in groupby(trials, key=lambda t: (t.case.id, t.number))]


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_the_arms_of_a_case_run_next_to_each_other_and_each_is_first_equally_often(arms: int) -> None:
    blocks = blocks_of(interleaved(plan_of(arms, 4 * arms, repeat=3).trials))
    assert len(blocks) == 12 * arms
    assert all(len(set(block)) == arms for block in blocks)
    for place in (0, -1):
        assert set(Counter(block[place] for block in blocks).values()) == {12}


def test_the_order_of_two_arms_is_random_and_not_simply_alternating() -> None:
    plan = plan_of(2, 40)
    orders = {tuple(map(tuple, blocks_of(interleaved(plan.trials, random.Random(seed))))) for seed in range(20)}
    assert len(orders) == 20


def test_trials_without_arms_keep_the_order_of_the_plan() -> None:
    suite = Suite("desk", [{"id": f"c{n}", "input": "q", "expected": "q"} for n in range(9)], agent=lambda text: text)
    plan = make_plan([suite], RunOptions())
    assert interleaved(plan.trials) == list(plan.trials)


def test_an_arm_on_hold_does_not_stop_the_other() -> None:
    plan = plan_of(2, 3)
    old, new = plan.suites

    async def take() -> None:
        dispatcher = Dispatcher(plan.trials)
        dispatcher.hold(old)
        taken = [await dispatcher.next() for _ in range(3)]
        assert [trial.suite for trial in taken if trial is not None] == [new, new, new]
        assert dispatcher.drop(old) == 3
        assert await dispatcher.next() is None

    asyncio.run(take())


def test_each_trial_knows_its_arm() -> None:
    suite = Suite("desk", [{"id": "c", "input": "q", "expected": "q"}])
    run = suite.run(arms={"old": lambda text: text, "new": lambda text: "no"})
    assert [(trial.arm, trial.passed) for trial in run.trials] == [("old", True), ("new", False)]
    assert {summary.arm for summary in run.summaries} == {"old", "new"}
    assert [trial.arm for trial in proctor.run(suite, lambda text: text).trials] == [""]
