from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import session_of

from proctor.agents.reply import Usage
from proctor.base.json_data import UNSET
from proctor.cases.suite import EvaluatorSpec, NamedData
from proctor.evaluators.evaluation import Evaluable, Evaluation, NothingToCompare
from proctor.evaluators.judged_evaluator import JudgeAbstained
from proctor.evaluators.reference import AnswerCorrectness, Factuality
from proctor.evaluators.registry import resolve_evaluator
from proctor.evaluators.retrieval import (
    AnswerRelevancy,
    ContextEntityRecall,
    ContextRelevancy,
    ContextualPrecision,
    ContextualRecall,
    ContextualRelevancy,
    Faithfulness,
)
from proctor.judging.call_log import call_log
from proctor.judging.judge import NeedsModel
from proctor.judging.questions import (
    agreements,
    attributions,
    claims,
    comparison,
    relevant_sentences,
    statements,
)
from proctor.judging.rule_judge import judge as rule_based_judge
from proctor.judging.rule_judge.judge import RULE_FOR_KIND, RuleJudge
from proctor.judging.session import judge_session

QUESTION = "When does the Harbour Museum open, and what does a ticket cost?"
PASSAGES = (
    "The Harbour Museum opens at 9 am. It is closed on Mondays.",
    "A ticket costs 12 euros; children under six enter free.",
    "The city's bakery guild was founded in 1883.",
)
RIGHT = "The Harbour Museum opens at 9 am and a ticket costs 12 euros."
WRONG = "The Harbour Museum opens at 11 am and a ticket costs 12 euros."


def seen(output: Any, expectation: Any = UNSET, question: str = QUESTION, **more: Any) -> Evaluable:
    more.setdefault("retrieval_context", PASSAGES)
    given = [NamedData("input", question)]
    return Evaluable(eval_input=given, eval_output=[NamedData("output", output)], expectation=expectation, **more)


def judged(evaluator: Any, evaluable: Evaluable) -> Evaluation:
    with judge_session(session_of("rules")):
        evaluation = asyncio.run(evaluator(evaluable))
    assert isinstance(evaluation, Evaluation)
    return evaluation


def test_what_the_passages_say_is_faithful_and_a_changed_number_is_not() -> None:
    right, wrong = judged(Faithfulness(), seen(RIGHT)), judged(Faithfulness(), seen(WRONG))
    assert right.score >= 0.8 > 0.5 > wrong.score
    assert "contradicted" in wrong.reasoning


def test_one_wrong_fact_fails_a_long_answer_at_any_threshold_and_is_shown_first() -> None:
    answer = (
        f"{RIGHT} It is closed on Mondays. Children under six enter free. The city's bakery guild was founded in 1921."
    )
    wrong = judged(Faithfulness(), seen(answer))
    assert (wrong.score, wrong.passed) == (0.0, False)
    assert wrong.reasoning.partition(". ")[2].startswith("contradicted: “The city's bakery guild was founded in 1921.”")


@pytest.mark.parametrize("mode", ["grounded", "contradicted"])
def test_a_claim_about_something_else_is_left_open(mode: Any) -> None:
    with pytest.raises(JudgeAbstained, match=r"cannot decide.*Okafor"):
        judged(Faithfulness(mode=mode), seen("Professor Okafor teaches astronomy to sailors."))


@pytest.mark.parametrize("answer", ["I don't know.", "Sorry, but I cannot help with that.", "Hello!", "Yes.", "…"])
@pytest.mark.parametrize(
    "name",
    [
        "Faithfulness",
        pytest.param("Hallucination", marks=pytest.mark.needs("deepeval")),
        pytest.param("Hallucinations", marks=pytest.mark.needs("adk")),
    ],
)
def test_an_answer_that_claims_nothing_is_skipped(name: str, answer: str) -> None:
    with pytest.raises(NothingToCompare, match=r"makes no claim|is empty"):
        judged(resolve_evaluator(EvaluatorSpec(name)).call, seen(answer))


def test_an_answer_with_what_was_asked_for_is_relevant_and_one_about_another_thing_is_not() -> None:
    question = "When does the Harbour Museum open?"
    assert judged(AnswerRelevancy(), seen("The Harbour Museum opens at 9 am.", question=question)).score == 1
    assert judged(AnswerRelevancy(), seen("A-17 is sent.", question="Where is order A-18?")).score == 0
    for answer in (
        "I don't know.",
        "The Railway Museum opens at 8 am.",
        "Penguins are flightless birds.",
        "The Harbour Museum has three floors.",
    ):
        with pytest.raises(JudgeAbstained):
            judged(AnswerRelevancy(), seen(answer, question=question))


@pytest.mark.parametrize("evaluator", [Factuality(), AnswerCorrectness(answer_similarity_weight=0)])
def test_the_same_answer_in_other_words_is_correct_and_another_one_is_not(evaluator: Any) -> None:
    question = "When was the bakery guild founded?"
    assert judged(evaluator, seen("It was founded in 1883.", "1883", question)).score >= 0.5
    assert judged(evaluator, seen("It was founded in 1921.", "1883", question)).score < 0.5
    with pytest.raises(JudgeAbstained):
        judged(evaluator, seen("I don't know.", "1883", question))


def test_an_empty_answer_is_not_factual() -> None:
    assert judged(Factuality(), seen("", "1883")).score < 0.5


def test_retrieval_is_judged_too() -> None:
    expected = "The Harbour Museum opens at 9 am. A ticket costs 12 euros."
    texts = (PASSAGES[0], "Penguins cannot fly.", PASSAGES[1])
    ahead = seen("x", expected, retrieval_context=texts)
    assert judged(ContextualRecall(), ahead).score == 1
    with pytest.raises(JudgeAbstained):
        judged(ContextualRecall(), seen("x", expected, retrieval_context=PASSAGES[2:]))
    question, passages = "When does the Harbour Museum open?", ("The Harbour Museum opens at 9 am.",)
    assert judged(ContextualRelevancy(), seen("x", question=question, retrieval_context=passages)).score == 1
    assert judged(ContextRelevancy(), seen("x", question=question, retrieval_context=passages)).score == 1
    for evaluator in (ContextualPrecision(), ContextEntityRecall()):
        with pytest.raises(NeedsModel):
            judged(evaluator, ahead)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ClosedQA", marks=pytest.mark.needs("pixie")),
        pytest.param("Battle", marks=pytest.mark.needs("pixie")),
        "Moderation",
    ],
)
def test_what_rules_cannot_tell_needs_a_model_and_says_how_to_name_one(name: str) -> None:
    evaluator = resolve_evaluator(EvaluatorSpec(name)).call
    with pytest.raises(NeedsModel, match=rf"^{name} needs a model; name one with --judge"):
        judged(evaluator, seen(RIGHT, "expected"))


def test_every_call_is_accounted_for_and_costs_nothing() -> None:
    account = judged(Faithfulness(), seen(RIGHT)).details["judge"]
    assert account["model"] == "rules"
    assert [call["kind"] for call in account["calls"]] == ["statements", "claims"]
    assert account["usage"] == {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "model_calls": 0}


def test_a_call_is_noted_with_zero_usage() -> None:
    with call_log() as calls:
        asyncio.run(RuleJudge().ask(statements("When does the tour start?", "The tour starts at 9 am.")))
    assert [(call.kind, call.model, call.usage) for call in calls] == [("statements", "rules", Usage(0, 0, 0.0, 0))]


def test_an_unknown_kind_needs_a_model() -> None:
    question: Any = statements("q", "a")
    unknown = type(question)("telepathy", 1, "", {}, question.reply)
    with pytest.raises(NeedsModel, match="the rule-based judge has no rule for this"):
        asyncio.run(RuleJudge().ask(unknown))


def test_large_material_leaves_the_event_loop_to_others() -> None:
    question = claims([PASSAGES[2]], ["x " * rule_based_judge.THREAD_FROM_LENGTH, *PASSAGES])
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    async def both() -> None:
        heart = asyncio.create_task(beat())
        await RuleJudge().ask(question)
        heart.cancel()

    asyncio.run(both())
    assert beats > 1


UGLY = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        ["", " ", "\ud800", "?", "...", "0", "{}", "[1, 2]", "a\x00b", "١٢٣", "1" * 400, "(" * 300, "½ cup"]
    ),
)
SEVERAL = st.lists(UGLY, min_size=1, max_size=4)


@given(UGLY, UGLY, UGLY, SEVERAL, SEVERAL)
def test_every_known_question_is_answered_in_its_shape_whatever_the_texts(
    question: str, answer: str, expected: str, passages: list[str], claimed: list[str]
) -> None:
    asked: list[Any] = [
        statements(question, answer),
        claims(claimed, passages),
        agreements(answer, passages),
        attributions(expected, passages),
        relevant_sentences(question, passages),
        comparison(question, expected, answer),
    ]
    asked = [replace(each, accepts_abstentions=True) for each in asked]
    judge = RuleJudge()
    replies = [asyncio.run(judge.ask(each)) for each in asked]
    again = [asyncio.run(judge.ask(each, sample=1)) for each in asked]
    assert replies == again
    assert {each.kind for each in asked} <= set(RULE_FOR_KIND)
