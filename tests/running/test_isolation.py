from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from engine_helpers import case, cases, echo, forgetful_async, forgetful_sync, only, run, suite, trials_of

import proctor
from proctor.cases.suite import Case, Expected, NamedData, Turn
from proctor.results.score import Outcome


@pytest.mark.parametrize("agent", [forgetful_async, forgetful_sync])
def test_twenty_trials_at_once_never_see_each_others_tool_calls_and_answers(agent: Any) -> None:
    found = run(suite(cases(60), parallel=20), agent=agent)

    assert found[1].exit_code == 0
    for trial in trials_of(found):
        (reply,) = trial.replies
        assert reply.text == trial.case.id
        assert [call.arguments for call in reply.tool_calls] == [
            {"key": f"{trial.case.id}/{step}"} for step in range(3)
        ]
        assert [call.result for call in reply.tool_calls] == [f"value of {trial.case.id}/{step}" for step in range(3)]


def test_repeats_of_one_case_have_sessions_of_their_own() -> None:
    def counts(question: str, state: dict[str, int]) -> str:
        state["asked"] = state.get("asked", 0) + 1
        return str(state["asked"])

    conversation = Case(id="c", turns=(Turn("a", Expected(output="1")), Turn("b", Expected(output="2"))))
    found = run(suite([conversation], repeat=20, parallel=20), agent=counts)

    assert [trial.outcome for trial in trials_of(found)] == [Outcome.PASSED] * 20


def test_tool_calls_of_one_turn_do_not_show_up_in_the_next() -> None:
    @proctor.tool
    def look(key: str) -> str:
        return key

    def agent(question: str) -> str:
        return look(question)

    conversation = Case(id="c", turns=tuple(Turn(text, Expected(output=text)) for text in ("one", "two")))

    assert [
        [call.arguments for call in reply.tool_calls] for reply in only(run(suite([conversation]), agent=agent)).replies
    ] == [
        [{"key": "one"}],
        [{"key": "two"}],
    ]


def test_a_tool_that_is_still_running_when_time_is_up_does_not_show_up_in_another_trial() -> None:
    release, late = threading.Event(), threading.Event()

    @proctor.tool
    def slow(key: str) -> str:
        release.wait(30)
        return key

    def agent(question: str) -> str:
        if question == "slow":
            try:
                return slow(question)
            finally:
                late.set()
        release.set()
        assert late.wait(30)
        return question

    found = run(suite([case("slow", timeout=0.1), case("other")], parallel=1), agent=agent)

    assert [trial.outcome for trial in trials_of(found)] == [Outcome.FAILED, Outcome.PASSED]
    assert trials_of(found)[1].replies[0].tool_calls == ()


def test_the_calls_of_an_attempt_that_failed_are_not_counted_against_the_next() -> None:
    attempts = []

    @proctor.tool
    def look(key: str) -> str:
        return key

    def agent(question: str) -> str:
        attempts.append(look(question))
        if len(attempts) == 1:
            raise ConnectionError("reset")
        return question

    trial = only(run(suite([case("c")]), agent=agent))

    assert trial.attempts == 2
    assert len(trial.replies[0].tool_calls) == 1


def test_what_an_evaluator_does_is_not_recorded_as_the_agents_doing() -> None:
    from proctor.cases.suite import EvaluatorSpec

    trial = only(run(suite([case("c")], evaluators=(EvaluatorSpec("test_isolation:curious"),)), agent=echo))

    assert trial.outcome is Outcome.PASSED
    assert trial.replies[0].tool_calls == ()


@proctor.tool
def peek(key: str) -> str:
    return key


def curious(evaluable: Any) -> bool:
    return bool(peek("anything"))


def test_an_input_that_an_agent_changes_is_whole_again_for_the_next_trial() -> None:
    def agent(question: dict[str, Any]) -> str:
        return str(question.pop("words"))

    shared = Case(id="c", turns=(Turn({"words": "hello"}, Expected(output="hello")),), inputs=(NamedData("x", 1),))
    found = run(suite([shared], repeat=3, parallel=1), agent=agent)

    assert [trial.outcome for trial in trials_of(found)] == [Outcome.PASSED] * 3


def test_two_runs_at_once_in_one_event_loop_do_not_mix() -> None:
    async def both() -> list[Any]:
        first = proctor.run_async(suite(cases(20), name="a"), forgetful_async)
        second = proctor.run_async(suite(cases(20, start=100), name="b"), forgetful_async)
        return await asyncio.gather(first, second)

    for result in asyncio.run(both()):
        assert proctor.verdict(result).exit_code == 0
        for trial in result.trials:
            assert {call.arguments["key"].split("/")[0] for call in trial.replies[0].tool_calls} == {trial.case.id}
