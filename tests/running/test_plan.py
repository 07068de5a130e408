from __future__ import annotations

from typing import Any

import pytest
from engine_helpers import case, cases, echo, suite

import proctor
from proctor.agents.resolve import resolve_agent
from proctor.cases.suite import AttachedFile, Case, EvaluatorSpec, Expected, Suite, Turn
from proctor.running.plan import Plan, make_plan
from proctor.running.settings import RunOptions


def run(agent: Any) -> tuple[str, ...]:
    turn = Turn("hi", Expected(output="hi"), files=(AttachedFile(path="notes.txt"),))
    files = Suite("files", (Case(id="one", turns=(turn,)),), evaluators=(proctor.EvaluatorSpec("ExactMatch"),))
    [trial] = proctor.run(files, agent).trials
    return trial.warnings


def test_an_agent_that_takes_the_turn_sees_its_files() -> None:
    def agent(turn: Turn) -> str:
        assert turn.files[0].path == "notes.txt"
        return turn.input

    assert run(agent) == ()


def test_a_suite_made_in_python_is_scored_by_what_it_expects() -> None:
    implied = Suite("implied", (Case(id="one", turns=(Turn("hi", Expected(output="hi")),)),))
    [trial] = proctor.run(implied, lambda question: question).trials
    assert [(score.evaluator, score.value) for score in trial.scores] == [("ExactMatch", 1.0)]


def titles(plan: Plan) -> dict[str, list[str]]:
    return {trial.case.id: [bound.title for bound in trial.evaluators] for trial in plan.trials}


@pytest.mark.filterwarnings("ignore::proctor.base.errors.UnusedExpectation")
def test_an_evaluator_has_one_title_in_all_cases_that_take_it_over_from_the_suite() -> None:
    usual = EvaluatorSpec("Contains", {"any": ["a"]})
    other = EvaluatorSpec("Contains", {"any": ["b"]})
    three = (case("plain"), case("more", evaluators=(other, usual)), case("twice", evaluators=(other, other)))
    plan = make_plan([suite(three, evaluators=(usual,))], RunOptions(), agent=echo)
    assert titles(plan) == {
        "plain": ["Contains"],
        "more": ["Contains #2", "Contains"],
        "twice": ["Contains", "Contains #2"],
    }


@pytest.mark.filterwarnings("ignore::proctor.base.errors.UnusedExpectation")
def test_cases_that_are_scored_alike_share_their_evaluators() -> None:
    own = [case(f"own-{n}", evaluators=(EvaluatorSpec("Contains", {"any": ["a"]}),)) for n in range(50)]
    plan = make_plan([suite([*cases(50), *own])], RunOptions(), agent=echo)
    assert len({trial.evaluators for trial in plan.trials}) == 2


def test_other_agents_make_another_plan_and_leave_this_one_as_it_is() -> None:
    plan = make_plan([suite(cases(3), repeat=2, parallel=4)], RunOptions(), agent=echo)
    [before] = plan.suites
    stand_in = resolve_agent(lambda question: question)
    other = plan.with_agents(lambda item: stand_in, lambda item: item.max_sessions * 3)
    [after] = other.suites

    assert before.agent is not stand_in
    assert before.max_sessions == 4
    assert after.agent is stand_in
    assert (after.max_sessions, after.limits.parallel) == (12, 4)
    assert {trial.suite for trial in other.trials} == {after}
    assert [trial.address for trial in other.trials] == [trial.address for trial in plan.trials]


@pytest.mark.parametrize(("parallel", "expected"), [(None, 8), (3, 3), (30, 30)])
def test_agents_that_start_a_process_for_each_trial_run_eight_at_a_time_unless_told_otherwise(
    parallel: int | None, expected: int
) -> None:
    plan = make_plan([suite(cases(3), parallel=parallel)], RunOptions(), agent="cmd:python -c pass")

    assert [item.max_sessions for item in plan.suites] == [expected]


def test_more_trials_in_parallel_on_workers_do_not_run_more_evaluators_in_parallel() -> None:
    plan = make_plan([suite(cases(3), parallel=2)], RunOptions(), agent=echo)

    on_workers = plan.with_agents(lambda item: item.agent, lambda item: item.limits.parallel * 3)

    assert [(item.max_sessions, item.limits.parallel) for item in on_workers.suites] == [(6, 2)]
