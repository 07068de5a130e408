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
    entities,
    relevant_sentences,
    statements,
    useful_passages,
)
from proctor.judging.rule_judge import judge as rule_based_judge
from proctor.judging.rule_judge.judge import RULE_FOR_KIND, RuleJudge
from proctor.judging.rule_judge.relevance import relevances
from proctor.judging.session import judge_session

QUESTION = "When does the Harbour Museum open, and what does a ticket cost?"
PASSAGES = (
    "The Harbour Museum opens at 9 am from Tuesday to Sunday. It is closed on Mondays.",
    "A ticket to the Harbour Museum costs 12 euros; children under six enter free.",
    "The city's bakery guild was founded in 1883.",
)
RIGHT = "The Harbour Museum opens at 9 am and a ticket costs 12 euros."
WRONG = "The Harbour Museum opens at 11 am and a ticket costs 30 euros."


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


def test_one_invented_claim_among_true_ones_is_noticed() -> None:
    mixed = judged(Faithfulness(), seen(f"{RIGHT} It was designed by Zaha Hadid in 1999."))
    assert mixed.score == 0.5 < Faithfulness.default_threshold
    assert mixed.reasoning.startswith("1 of 2 claims are supported by the passages. unmentioned: “It was designed")


def test_contradictions_alone_can_be_held_against_an_answer() -> None:
    unmentioned = seen("Professor Okafor teaches astronomy to sailors.")
    assert judged(Faithfulness(), unmentioned).score < 0.5
    assert judged(Faithfulness(mode="contradicted"), unmentioned).score == 1


@pytest.mark.parametrize("answer", ["I don't know.", "Sorry, but I cannot help with that.", "Hello!", "…"])
def test_an_answer_that_claims_nothing_is_skipped_by_faithfulness(answer: str) -> None:
    with pytest.raises(NothingToCompare, match=r"makes no claim|is empty"):
        judged(Faithfulness(), seen(answer))


def test_an_answer_about_something_else_is_less_relevant() -> None:
    other = "Penguins are flightless birds of the southern hemisphere."
    assert judged(AnswerRelevancy(), seen(RIGHT)).score > 0.5 > judged(AnswerRelevancy(), seen(other)).score
    assert judged(AnswerRelevancy(), seen("I don't know.")).score < 0.5


@pytest.mark.parametrize("evaluator", [Factuality(), AnswerCorrectness(answer_similarity_weight=0)])
def test_the_same_answer_in_other_words_is_correct_and_another_one_is_not(evaluator: Any) -> None:
    question = "When was the bakery guild founded?"
    assert judged(evaluator, seen("It was founded in 1883.", "1883", question)).score >= 0.5
    assert judged(evaluator, seen("It was founded in 1921.", "1883", question)).score < 0.5
    assert judged(evaluator, seen("I don't know.", "1883", question)).score < 0.5


def test_an_empty_answer_is_not_factual() -> None:
    assert judged(Factuality(), seen("", "1883")).score < 0.5


def test_retrieval_is_judged_too() -> None:
    expected = "The Harbour Museum opens at 9 am. A ticket costs 12 euros."
    ahead, behind = seen("x", expected), seen("x", expected, retrieval_context=PASSAGES[::-1])
    assert judged(ContextualPrecision(), ahead).score == 1
    assert judged(ContextualPrecision(), behind).score == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert judged(ContextualRecall(), ahead).score > 0.8
    assert judged(ContextualRecall(), seen("x", expected, retrieval_context=PASSAGES[2:])).score < 0.5
    assert 0 < judged(ContextualRelevancy(), ahead).score < 1
    assert 0 < judged(ContextRelevancy(), ahead).score < 1
    assert judged(ContextEntityRecall(), seen("x", "The Harbour Museum costs 12 euros.")).score == 1
    assert judged(ContextEntityRecall(), seen("x", "The Louvre costs 99 euros.")).score == 0


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
        asyncio.run(RuleJudge().ask(statements("q", "It is nine.")))
    assert [(call.kind, call.model, call.usage) for call in calls] == [("statements", "rules", Usage(0, 0, 0.0, 0))]


def test_an_unknown_kind_needs_a_model() -> None:
    question: Any = statements("q", "a")
    unknown = type(question)("telepathy", 1, "", {}, question.reply)
    with pytest.raises(NeedsModel, match="the rule-based judge has no rule for this"):
        asyncio.run(RuleJudge().ask(unknown))


def test_large_material_leaves_the_event_loop_to_others() -> None:
    question = claims(["The museum opens at 9 am."], ["x " * rule_based_judge.THREAD_FROM_LENGTH, *PASSAGES])
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
        useful_passages(question, expected, passages),
        attributions(expected, passages),
        relevant_sentences(question, passages),
        comparison(question, expected, answer),
        entities(expected, passages),
    ]
    asked = [replace(each, accepts_abstentions=True) for each in asked]
    judge = RuleJudge()
    replies = [asyncio.run(judge.ask(each)) for each in asked]
    again = [asyncio.run(judge.ask(each, sample=1)) for each in asked]
    assert replies == again
    assert {each.kind for each in asked} <= set(RULE_FOR_KIND)


def test_a_statement_that_carries_on_what_a_relevant_one_says_is_relevant_too() -> None:
    question = "What would a $50,000 loan at 5% over 48 months cost?"
    told = ["A $50,000 loan at 5% over 48 months costs $1,151.46 a month.", "You would pay $55,270.30 in total."]
    found = relevances(question, [*told, "Bananas are rich in potassium."])
    assert [judged.verdict for judged in found] == ["relevant", "relevant", "irrelevant"]
