"""Expectations of single turns: the state after a turn, and calls that may have been made in an earlier one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor import Case, Suite, Turn
from proctor.cases.formats.native.writer import write_text
from proctor.results.run import Run
from proctor.results.score import Outcome


@proctor.tool
def find(order: str) -> str:
    return "lost"


@proctor.tool
def refund(order: str) -> str:
    return "done"


def agent(question: str, state: dict[str, Any]) -> str:
    if question == "where?":
        state["order"] = find(order="A-17")
    if question == "refund!":
        state["refunded"] = refund(order="A-17")
    return "ok"


def run(*turns: tuple[str, dict[str, Any]], evaluators: Any = None, target: Any = agent) -> Run:
    rows = [Turn(question, expected) for question, expected in turns]  # type: ignore[arg-type]
    return Suite("desk", [Case(turns=rows, id="a", evaluators=evaluators)]).run(target)


EARLIER = {"name": "find", "args": {"order": "A-17"}, "or_earlier": True}


def test_the_state_is_checked_after_the_turn_that_expects_it() -> None:
    assert run(("where?", {"state": {"order": "lost"}}), ("refund!", {"state": {"refunded": "done"}})).passed
    too_early = run(("where?", {"state": {"refunded": "done"}}), ("refund!", {"state": {"refunded": "done"}}))
    assert not too_early.passed
    assert "TurnState 0.00 < 1.00 at turn 1: refunded: missing, expected 'done'" in too_early["a"].reason


def test_a_turn_state_may_hold_matchers_and_agrees_with_a_final_state() -> None:
    pattern = {"state": {"order": {"$regex": "l.*"}}}
    whole = Case(turns=[Turn("where?", pattern), Turn("refund!")], id="a", final_state={"refunded": "done"})  # type: ignore[arg-type]
    result = Suite("desk", [whole]).run(agent)
    assert result.passed
    assert {score.evaluator for score in result.trials[0].scores} == {"TurnState", "FinalState"}


def test_an_agent_without_a_state_is_an_error_and_not_a_pass() -> None:
    assert run(("where?", {"state": {"a": 1}}), target=lambda question: "ok")["a"].outcome is Outcome.ERROR


@pytest.mark.parametrize("evaluators", [None, ["ToolTrajectory"], [{"ToolTrajectory": {"match": "ANY_ORDER"}}]])
def test_a_call_of_an_earlier_turn_counts_where_the_case_says_so(evaluators: Any) -> None:
    later = {"tools": [EARLIER, "refund"]}
    assert run(("where?", {}), ("refund!", later), evaluators=evaluators).passed
    assert run(("where?", {"tools": ["find"]}), ("refund!", later), evaluators=evaluators).passed
    strict = {"tools": [{**EARLIER, "or_earlier": False}, "refund"]}
    assert not run(("where?", {}), ("refund!", strict), evaluators=evaluators).passed
    other = {"tools": [{**EARLIER, "args": {"order": "B-2"}}, "refund"]}
    assert not run(("where?", {}), ("refund!", other), evaluators=evaluators).passed
    assert not run(("hello", {}), ("refund!", later), evaluators=evaluators).passed


def test_a_call_of_this_turn_counts_as_well_and_other_expectations_are_not_relaxed() -> None:
    assert run(("hello", {}), ("where?", {"tools": [EARLIER]})).passed
    assert run(("where?", {}), ("refund!", {"tools": [EARLIER]})).passed  # and `tools` still allows other calls
    twice = run(("where?", {}), ("hello", {"tools": [{**EARLIER, "count": 2}]}))
    assert not twice.passed
    missing = run(("where?", {}), ("hello", {"tools": [EARLIER, "refund"]}))
    assert "ExpectedTools 0.50 < 1.00 at turn 2: 1 of 2 expected tools were called as expected" in missing["a"].reason
    assert "missing refund" in missing["a"].reason


def test_one_call_satisfies_both_turns_when_the_whole_conversation_is_scored() -> None:
    whole = [{"ExpectedTools": {"scope": "case"}}]
    turns = (("where?", {"tools": ["find"]}), ("refund!", {"tools": [EARLIER, "refund"]}))
    assert run(*turns, evaluators=whole).passed
    assert not run(turns[0], ("hello", turns[1][1]), evaluators=whole).passed


def test_the_oracle_passes_and_both_keys_survive_being_written_to_a_file(tmp_path: Path) -> None:
    turns = [
        Turn("where?", {"state": {"order": "lost", "n": {"$type": "integer"}}}),
        Turn("refund!", {"tools": [EARLIER], "state": {"n": 2}}),
    ]
    suite = Suite("desk", [Case(turns=turns, id="a")])
    assert suite.run("oracle").passed
    assert not suite.run("nop").passed
    path = tmp_path / "suite.yaml"
    path.write_text(write_text([suite], ".yaml").text, encoding="utf-8")
    [read] = proctor.load(path)
    assert read.cases[0].turns == suite.cases[0].turns


def test_a_first_turn_has_no_earlier_one() -> None:
    with pytest.raises(ValueError, match="a call with or_earlier in turn 1, and there is no earlier turn"):
        Case("where?", expected={"tools": [EARLIER]})  # type: ignore[typeddict-item,list-item]
