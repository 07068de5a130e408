from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, judged, seen

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import JudgeFailed
from proctor.cases.suite import NamedData, Turn
from proctor.evaluators.agent import ArgumentCorrectness, StepEfficiency, TaskCompletion, ToolSelection, repetitions
from proctor.evaluators.evaluable import Evaluable, Exchange
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.judged_evaluator import JudgeAbstained
from proctor.judging.prompts import prompt_of
from proctor.judging.rule_judge.judge import RuleJudge
from proctor.tracing.spans import LLMSpan, ObservationNode, ToolDefinition, UserMessage

SEARCH = ToolCall("search", {"q": "trains"}, result=["8:15"])
BOOK = ToolCall("book", {"train": "8:15"}, result="booked")
BROKEN = ToolCall.parse("book", "{not json")


def done(verdict: float, **more: Any) -> dict[str, Any]:
    return {"task": "book a train", "outcome": "a train was booked", "reason": "all done", "verdict": verdict, **more}


def ruled(*verdicts: str) -> dict[str, Any]:
    return {"verdicts": [{"number": n, "verdict": v, "reason": f"reason {n}"} for n, v in enumerate(verdicts, 1)]}


def conversation(*calls: tuple[ToolCall, ...]) -> Evaluable:
    """A conversation with these calls in its turns, as an evaluator of the case sees it."""
    turns = tuple(
        Exchange(Turn(f"question {number}"), Reply(f"answer {number}", tool_calls=made))
        for number, made in enumerate(calls, 1)
    )
    return Evaluable(
        eval_input=[NamedData("input", [exchange.turn.input for exchange in turns])],
        eval_output=[NamedData("output", turns[-1].reply.text)],
        tool_calls=tuple(call for made in calls for call in made),
        turns=turns,
    )


def test_a_task_is_judged_in_one_call_and_its_score_is_the_verdict() -> None:
    judge = ScriptedJudge({"task-completion": done(0.8)})
    evaluation = judged(TaskCompletion(), seen("Booked.", tool_calls=(BOOK,)), judge)
    assert (evaluation.score, evaluation.reasoning) == (0.8, "all done")
    assert (evaluation.details["task"], evaluation.details["outcome"]) == ("book a train", "a train was booked")
    assert judge.kinds == ["task-completion"]
    assert "booked" in judge.asked[0].material["step"][0]


def test_a_task_that_is_given_is_the_one_judged() -> None:
    judge = ScriptedJudge({"task-completion": done(1.0)})
    evaluation = judged(TaskCompletion(task="cancel the train"), seen("Booked.", question=""), judge)
    assert judge.asked[0].material["task"] == "cancel the train"
    assert evaluation.details["task"] == "cancel the train"


def test_a_task_is_looked_for_in_the_whole_conversation() -> None:
    judge = ScriptedJudge({"task-completion": done(1.0)})
    judged(TaskCompletion(), conversation((SEARCH,), (BOOK,)), judge)
    assert [line.partition(":")[0] for line in judge.asked[0].material["line"]] == [
        "user, turn 1",
        "agent uses a tool, turn 1",
        "agent, turn 1",
        "user, turn 2",
        "agent uses a tool, turn 2",
        "agent, turn 2",
    ]


@pytest.mark.parametrize("verdict", [1.2, -0.1, float("nan"), 95])
def test_a_verdict_beyond_the_scale_is_an_error_and_never_a_score(verdict: float) -> None:
    with pytest.raises((JudgeFailed, ValueError)):
        judged(TaskCompletion(), seen("Booked."), {"task-completion": done(verdict)})


@pytest.mark.parametrize("question", ["", "  ", None])
def test_where_nothing_was_asked_no_task_can_be_judged(question: Any) -> None:
    with pytest.raises(NothingToCompare, match="input"):
        judged(TaskCompletion(), seen("text", question=question))


@pytest.mark.parametrize("wrong", ["", " ", 7])
def test_a_task_must_say_something(wrong: Any) -> None:
    with pytest.raises(ValueError, match="task must be a non-empty string"):
        TaskCompletion(task=wrong)


@pytest.mark.parametrize("evaluator", [ArgumentCorrectness(), StepEfficiency(), ToolSelection()])
def test_without_tool_calls_there_is_no_verdict_and_never_a_full_score(evaluator: Any) -> None:
    with pytest.raises(NothingToCompare, match="no tools"):
        judged(evaluator, seen("text"))


def test_argument_correctness_is_the_share_of_calls_with_the_right_arguments() -> None:
    evaluation = judged(ArgumentCorrectness(), seen("ok", tool_calls=(SEARCH, BOOK)), {"arguments": ruled("yes", "no")})
    assert evaluation.score == 0.5
    assert evaluation.reasoning == (
        "1 of 2 tool calls have the right arguments. wrong: “book(train='8:15')” (reason 2)"
    )


def test_arguments_that_are_no_object_are_wrong_whatever_the_judge_says() -> None:
    evaluation = judged(
        ArgumentCorrectness(), seen("ok", tool_calls=(SEARCH, BROKEN)), {"arguments": ruled("yes", "yes")}
    )
    assert evaluation.score == 0.5
    assert "not a JSON object" in evaluation.reasoning


def test_where_no_arguments_can_be_read_no_judge_is_asked() -> None:
    judge = ScriptedJudge()
    assert judged(ArgumentCorrectness(), seen("ok", tool_calls=(BROKEN,)), judge).score == 0
    assert judge.asked == []


@pytest.mark.parametrize("verdicts", [("yes",), ("yes", "yes", "yes"), ()])
def test_a_judge_must_speak_of_every_call_once(verdicts: tuple[str, ...]) -> None:
    with pytest.raises(JudgeFailed, match="exactly one entry"):
        judged(ArgumentCorrectness(), seen("ok", tool_calls=(SEARCH, BOOK)), {"arguments": ruled(*verdicts)})


def chosen(*verdicts: str, missing: tuple[str, ...] = ()) -> dict[str, Any]:
    return {**ruled(*verdicts), "missing": [{"tool": tool, "reason": "needed"} for tool in missing]}


def test_tools_wrongly_left_out_count_like_wrong_ones() -> None:
    evaluation = judged(
        ToolSelection(available_tools=("search", "book", {"name": "pay", "description": "pays"})),
        seen("ok", tool_calls=(SEARCH, BOOK)),
        {"tool-selection": chosen("yes", "no", missing=("pay",))},
    )
    assert evaluation.score == pytest.approx(1 / 3)
    assert "not used: “pay” (needed)" in evaluation.reasoning


def test_a_tool_that_is_not_available_is_wrong_whatever_the_judge_says() -> None:
    evaluation = judged(
        ToolSelection(available_tools=("search",)),
        seen("ok", tool_calls=(SEARCH, BOOK)),
        {"tool-selection": chosen("yes", "yes")},
    )
    assert evaluation.score == 0.5
    assert "no such tool is available" in evaluation.reasoning


def test_using_no_tool_where_none_is_needed_is_right_and_was_judged() -> None:
    judge = ScriptedJudge({"tool-selection": chosen()})
    assert judged(ToolSelection(available_tools=("search",)), seen("Hello!"), judge).score == 1
    assert judge.asked[0].material["step"] == []


def test_a_judge_cannot_miss_a_tool_that_does_not_exist() -> None:
    with pytest.raises(JudgeFailed, match="'fly', which is not an available tool"):
        judged(
            ToolSelection(available_tools=("search",)),
            seen("ok", tool_calls=(SEARCH,)),
            {"tool-selection": chosen("yes", missing=("fly",))},
        )


def test_the_available_tools_are_those_the_trace_shows_if_none_are_named() -> None:
    span = LLMSpan(
        "1", "1", input_messages=(UserMessage.from_text("Go"),), tool_definitions=(ToolDefinition("search", "finds"),)
    )
    judge = ScriptedJudge({"tool-selection": chosen("yes")})
    judged(ToolSelection(), seen("ok", "Go", tool_calls=(SEARCH,), trace=[ObservationNode(span)]), judge)
    assert judge.asked[0].material["available-tool"] == ['{"name": "search", "description": "finds"}']


@pytest.mark.parametrize("wrong", ["search", ("",), (7,), ({"description": "x"},), {"name": "search"}])
def test_available_tools_have_names(wrong: Any) -> None:
    with pytest.raises(ValueError, match="available_tools must be"):
        ToolSelection(available_tools=wrong)


def test_step_efficiency_is_the_share_of_steps_that_were_needed() -> None:
    evaluation = judged(
        StepEfficiency(), seen("ok", tool_calls=(SEARCH, BOOK)), {"step-efficiency": ruled("yes", "no")}
    )
    assert evaluation.score == 0.5
    assert "not needed: “book(train='8:15')” (reason 2)" in evaluation.reasoning


def test_a_call_that_repeats_another_was_not_needed_whatever_the_judge_says() -> None:
    reply = {"step-efficiency": ruled("yes", "yes", "yes")}
    evaluation = judged(StepEfficiency(), seen("ok", tool_calls=(SEARCH, BOOK, SEARCH)), reply)
    assert evaluation.score == pytest.approx(2 / 3)
    assert "repeats step 1 with the same result" in evaluation.reasoning


def test_without_a_model_enough_repetitions_fail_and_the_reason_says_that_only_they_were_counted() -> None:
    evaluation = judged(StepEfficiency(), seen("ok", tool_calls=(SEARCH, SEARCH, SEARCH)), RuleJudge(), threshold=0.5)
    assert evaluation.score < 0.5
    assert evaluation.reasoning.startswith("checked for repetitions only: ")
    assert "repeats step 1 with the same result" in evaluation.reasoning
    assert evaluation.details["patterns_only"] is True


@pytest.mark.parametrize("calls", [(SEARCH, BOOK), (SEARCH, BOOK, SEARCH)])
def test_without_a_model_steps_that_repeat_nothing_are_not_known_to_be_needed(
    calls: tuple[ToolCall, ...],
) -> None:
    with pytest.raises(JudgeAbstained, match="cannot decide"):
        judged(StepEfficiency(), seen("ok", tool_calls=calls), RuleJudge(), threshold=0.5)


def test_another_try_after_a_failure_and_another_result_are_no_repetitions() -> None:
    failed = ToolCall("search", {"q": "trains"}, error="timeout")
    later = ToolCall("search", {"q": "trains"}, result=["9:15"])
    assert repetitions([[failed, SEARCH, later]]) == {}
    assert repetitions([[SEARCH], [SEARCH]]) == {}, "another turn may ask the same again"


def test_steps_of_a_conversation_are_numbered_through_and_say_their_turn() -> None:
    judge = ScriptedJudge({"step-efficiency": ruled("yes", "yes", "yes")})
    evaluation = judged(StepEfficiency(), conversation((SEARCH,), (), (BOOK, BOOK)), judge)
    material = judge.asked[0].material
    assert material["question"] == ["question 1", "question 2", "question 3"]
    assert [step[:7] for step in material["step"]] == ["turn 1:", "turn 3:", "turn 3:"]
    assert evaluation.score == pytest.approx(2 / 3)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
calls = st.builds(
    ToolCall,
    st.sampled_from(["a", "b", "\ud800"]),
    st.dictionaries(st.text(max_size=3), values, max_size=2),
    result=values,
    error=st.sampled_from([None, None, "failed"]),
)


@given(st.lists(calls, max_size=6), st.integers(1, 3))
def test_repeating_all_calls_repeats_exactly_those_that_did_not_fail(made: list[ToolCall], times: int) -> None:
    once = repetitions([made])
    again = repetitions([made * times])
    sound = sum(call.error is None for call in made)
    assert len(again) == len(once) + (times - 1) * sound
    assert all(1 <= number <= len(made) * times for number in again)


@given(st.lists(calls, min_size=1, max_size=5), st.data())
def test_whatever_the_calls_are_the_score_is_the_share_and_the_prompt_can_be_sent(
    made: list[ToolCall], data: st.DataObject
) -> None:
    verdicts = data.draw(st.lists(st.sampled_from(["yes", "no"]), min_size=len(made), max_size=len(made)))
    judge = ScriptedJudge({"arguments": ruled(*verdicts)})
    evaluation = judged(ArgumentCorrectness(), seen("ok", tool_calls=tuple(made)), judge)
    assert evaluation.score == pytest.approx(verdicts.count("yes") / len(made))
    prompt_of(judge.asked[0]).user.encode()
