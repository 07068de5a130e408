from __future__ import annotations

from typing import Any

import pytest
from scripted_judge import ScriptedJudge, judged, seen

from proctor.agents.reply import Reply, ToolCall
from proctor.base.errors import JudgeFailed, UsageError
from proctor.cases.suite import Turn
from proctor.evaluators.evaluable import Exchange
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.rubric import Expectations, LLMJudge, Rubric, read_rubrics


def verdicts(*said: str) -> dict[str, Any]:
    return {"verdicts": [{"number": n, "reason": f"reason {n}", "verdict": v} for n, v in enumerate(said, 1)]}


@pytest.mark.parametrize(("verdict", "score"), [("yes", 1.0), ("no", 0.0)])
def test_a_rubric_is_met_or_not(verdict: str, score: float) -> None:
    evaluation = judged(LLMJudge(rubric="Is short."), seen("Yes."), {"rubric": {"reason": "so", "verdict": verdict}})
    assert (evaluation.score, evaluation.reasoning) == (score, "so")


def test_a_scored_rubric_gives_a_mark() -> None:
    replies = {"rubric-mark": {"reason": "so", "mark": 4}}
    assert judged(LLMJudge(rubric="Is short.", scored=True), seen("Yes."), replies).score == 0.4


def test_the_judge_of_a_rubric_sees_what_is_included() -> None:
    judge = ScriptedJudge({"rubric": {"reason": "", "verdict": "yes"}})
    evaluable = seen("A", "Q", "R", tool_calls=(ToolCall("f"),))
    judged(LLMJudge(rubric="x"), evaluable, judge)
    judged(LLMJudge(rubric="x", include_input=False), evaluable, judge)
    judged(LLMJudge(rubric="x", include_expected_output=True, include_tool_calls=True), evaluable, judge)
    assert [list(question.material) for question in judge.asked] == [
        ["question", "answer"],
        ["answer"],
        ["question", "reference", "step", "answer"],
    ]


def test_a_reference_that_is_to_be_shown_and_missing_skips_the_case() -> None:
    with pytest.raises(NothingToCompare):
        judged(LLMJudge(rubric="x", include_expected_output=True), seen("A"), {})


def test_the_conversation_so_far_is_shown_before_the_question() -> None:
    judge = ScriptedJudge({"rubric": {"reason": "", "verdict": "yes"}})
    turns = (Exchange(Turn("Hello"), Reply("Hi")), Exchange(Turn("Q"), Reply("A")))
    judged(LLMJudge(rubric="x"), seen("A", "Q", turns=turns), judge)
    assert judge.asked[0].material["earlier"] == ["user, turn 1: Hello", "agent, turn 1: Hi"]


def test_a_rubric_judge_without_a_rubric_is_refused() -> None:
    with pytest.raises(ValueError, match="rubric must be"):
        LLMJudge(rubric=" ")


def test_all_expectations_are_judged_in_one_question_and_the_broken_ones_named() -> None:
    judge = ScriptedJudge({"expectations": verdicts("yes", "no", "yes", "no")})
    evaluator = Expectations(must=["name the price", "be polite"], must_not=["promise delivery", "mention rivals"])
    evaluation = judged(evaluator, seen("It costs 5."), judge)
    assert judge.kinds == ["expectations"]
    assert evaluation.score == 0.5
    assert evaluation.reasoning == ("not met: MUST: be polite (reason 2); MUST NOT: mention rivals (reason 4)")


def test_expectations_pass_only_if_all_are_kept() -> None:
    assert Expectations.default_threshold == 1.0
    assert judged(Expectations(must="be polite"), seen("x"), {"expectations": verdicts("yes")}).score == 1.0


def test_expectations_of_case_and_turn_join_those_of_the_evaluator_each_once() -> None:
    judge = ScriptedJudge({"expectations": verdicts("yes", "yes", "yes")})
    evaluable = seen("x", eval_metadata={"must": ["b", "a"]}, turn_metadata={"must_not": "c"})
    judged(Expectations(must=["a"]), evaluable, judge)
    assert judge.asked[0].instructions.endswith("1. MUST: a\n2. MUST: b\n3. MUST NOT: c")


def test_a_judge_that_leaves_an_expectation_out_has_not_judged() -> None:
    with pytest.raises(JudgeFailed, match="exactly one entry for each number from 1 to 2"):
        judged(Expectations(must=["a", "b"]), seen("x"), {"expectations": verdicts("yes")})


def test_without_expectations_there_is_nothing_to_compare() -> None:
    with pytest.raises(NothingToCompare):
        judged(Expectations(), seen("x", eval_metadata={"must": []}), {})


def test_expectations_that_are_no_sentences_are_refused() -> None:
    with pytest.raises(ValueError, match="must_not must be a sentence"):
        Expectations(must_not=[3])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="metadata: must must be a sentence"):
        judged(Expectations(), seen("x", eval_metadata={"must": 3}), {})


@pytest.mark.parametrize(
    "given",
    [
        "Is polite.",
        {"text": "Is polite."},
        {"rubric_content": {"text_property": "Is polite."}},
        {"rubricContent": {"textProperty": "Is polite."}},
        Rubric("Is polite."),
    ],
)
def test_a_rubric_is_read_however_it_is_written(given: Any) -> None:
    assert read_rubrics([given]) == (Rubric("Is polite."),)


@pytest.mark.parametrize("given", ["Is polite.", {"text": "x"}, 3, [3], [{}], [{"text": " "}], [{"rubric_content": 1}]])
def test_what_is_no_rubric_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="rubrics"):
        read_rubrics(given)
