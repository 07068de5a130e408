from __future__ import annotations

import asyncio

import pytest
from engine_helpers import case, cases, echo, only, run, suite

from proctor.cases.suite import Case, Criteria, EvaluatorSpec, Expected, Turn
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.results.score import Outcome
from proctor.results.trial import Trial

ME = "test_scopes"


async def good(evaluable: Evaluable) -> bool:
    await asyncio.sleep(0)
    return evaluable.output == evaluable.expectation


def counts_turns(evaluable: Evaluable) -> Evaluation:
    return Evaluation(1.0, f"{len(evaluable.turns)} turns, input {evaluable.input!r}, output {evaluable.output!r}")


def conversation(*evaluators: tuple[EvaluatorSpec, ...] | None) -> Case:
    turns = [
        Turn(text, Expected(output=text), evaluators=own)
        for text, own in zip(("one", "two", "three"), evaluators, strict=True)
    ]
    return Case(id="c", turns=tuple(turns))


def said(trial: Trial) -> list[tuple[str, int | None, str]]:
    return [(score.evaluator, score.turn, score.reasoning) for score in trial.scores]


TURN = EvaluatorSpec(f"{ME}:counts_turns", label="turn", scope="turn")
WHOLE = EvaluatorSpec(f"{ME}:counts_turns", label="whole", scope="case")
OWN = EvaluatorSpec(f"{ME}:counts_turns", label="own")
WHOLE_SAID = ("whole", None, "3 turns, input ['one', 'two', 'three'], output 'three'")


def test_an_evaluator_sees_each_turn_or_the_whole_conversation() -> None:
    trial = only(run(suite([conversation(None, None, None)], evaluators=(TURN, WHOLE)), agent=echo))

    assert said(trial) == [
        ("turn", 0, "1 turns, input 'one', output 'one'"),
        ("turn", 1, "2 turns, input 'two', output 'two'"),
        ("turn", 2, "3 turns, input 'three', output 'three'"),
        WHOLE_SAID,
    ]


@pytest.mark.parametrize("own_turn", [0, 1, 2])
def test_a_turn_with_its_own_evaluators_does_not_hide_those_of_the_whole_conversation(own_turn: int) -> None:
    lists: list[tuple[EvaluatorSpec, ...] | None] = [None, None, None]
    lists[own_turn] = (OWN,)
    trial = only(run(suite([conversation(*lists)], evaluators=(TURN, WHOLE)), agent=echo))

    assert [(name, turn) for name, turn, _ in said(trial)] == [
        *(("own" if turn == own_turn else "turn", turn) for turn in range(3)),
        ("whole", None),
    ]
    assert WHOLE_SAID in said(trial)


def test_a_final_state_is_checked_even_if_the_last_turn_has_its_own_evaluators() -> None:
    turn = Turn("hi", Expected(output="hi"), evaluators=(EvaluatorSpec("ExactMatch"),))
    talk = Case(id="c", turns=(turn,), evaluators=(EvaluatorSpec("FinalState"),), final_state={"booked": True})
    trial = only(run(suite([talk], evaluators=()), agent=echo))

    assert {score.evaluator for score in trial.scores} == {"ExactMatch", "FinalState"}


def test_scores_stand_in_the_order_in_which_evaluators_are_listed() -> None:
    async_first = EvaluatorSpec(f"{ME}:good", label="slow")
    specs = (async_first, EvaluatorSpec("ExactMatch"), EvaluatorSpec("MaxSteps", {"steps": 3}), TURN)
    trial = only(run(suite([case("c")], evaluators=specs), agent=echo))

    assert [score.evaluator for score in trial.scores] == ["slow", "ExactMatch", "MaxSteps", "turn"]


@pytest.mark.filterwarnings("ignore::proctor.base.errors.UnusedExpectation")
def test_two_evaluators_of_the_same_name_are_distinguished() -> None:
    """Else their scores would be averaged into one, and a failing one could hide behind a passing one."""
    specs = (EvaluatorSpec("Regex", {"pattern": "c"}), EvaluatorSpec("Regex", {"pattern": "never"}))
    found = run(suite([case("c")], evaluators=specs, criteria=Criteria(trials="mean", threshold=0.5)), agent=echo)

    assert [score.evaluator for score in only(found).scores] == ["Regex", "Regex #2"]
    assert only(found).outcome is Outcome.FAILED
    assert [item.evaluator for item in found[1].suites[0].evaluators] == ["Regex", "Regex #2"]


@pytest.mark.filterwarnings("ignore::proctor.base.errors.UnusedExpectation")
def test_one_evaluator_of_many_cases_keeps_one_name_whatever_its_arguments() -> None:
    own = [case(name, evaluators=(EvaluatorSpec("Regex", {"pattern": name}),)) for name in ("a", "b", "c")]
    found = run(suite(own, evaluators=()), agent=echo)

    assert [item.evaluator for item in found[1].suites[0].evaluators] == ["Regex"]


def test_evaluators_run_at_the_same_time_never_exceed_the_parallel_limit() -> None:
    Gauge.now = Gauge.most = 0
    specs = tuple(EvaluatorSpec(f"{ME}:gauged", label=f"gauge-{number}") for number in range(6))
    found = run(suite(cases(10), evaluators=specs, parallel=3), agent=echo)

    assert found[1].exit_code == 0
    assert 1 < Gauge.most <= 3


class Gauge:
    now = 0
    most = 0


async def gauged(evaluable: Evaluable) -> bool:
    Gauge.now += 1
    Gauge.most = max(Gauge.most, Gauge.now)
    for _ in range(3):
        await asyncio.sleep(0)
    Gauge.now -= 1
    return True
