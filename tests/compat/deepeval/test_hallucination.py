"""Hallucination: which passages an answer contradicts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scripted_judge import ScriptedJudge, judged, seen, session_of

from proctor.compat.deepeval.evaluators import Hallucination
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.retrieval import (
    AnswerRelevancy,
    Faithfulness,
)
from proctor.judging.prompts import prompt_of
from proctor.judging.session import judge_session

PASSAGES = ("The shop opens at nine.", "It is closed on Mondays.", "Parking is free.")


def judge_replies(*relevant: str, claim: str = "yes", **more: Any) -> dict[str, Any]:
    """The reply to what an answer says."""
    return {
        "statements": [
            {"text": f"statement {number}", "claim": claim, "relevant": verdict, "reason": "off topic", **more}
            for number, verdict in enumerate(relevant, 1)
        ]
    }


def verdicts(*given: str) -> dict[str, Any]:
    found = [{"number": n, "verdict": verdict, "reason": f"reason {n}"} for n, verdict in enumerate(given, 1)]
    return {"verdicts": found}


@pytest.mark.parametrize("passages", [None, (), ("", " ")])
def test_without_passages_there_is_nothing_to_compare(passages: Any) -> None:
    with pytest.raises(NothingToCompare, match="passages"):
        judged(Hallucination(), seen("text", retrieval_context=passages))


def test_hallucination_compares_with_the_ideal_facts_or_else_with_the_retrieved_passages() -> None:
    judge = ScriptedJudge({"agreements": [verdicts("yes"), verdicts("yes", "no", "yes")]})
    both = seen("text", context=("A fact.",), retrieval_context=PASSAGES)
    assert judged(Hallucination(), both, judge).score == 1
    evaluation = judged(Hallucination(), seen("text", retrieval_context=PASSAGES), judge)
    assert evaluation.score == pytest.approx(2 / 3)
    assert "contradicts: “It is closed on Mondays.” (reason 2)" in evaluation.reasoning
    assert judge.asked[0].material["passage"] == ["A fact."]


def test_an_empty_answer_is_not_praised_for_contradicting_nothing() -> None:
    with pytest.raises(NothingToCompare, match="empty"):
        judged(Hallucination(), seen("", retrieval_context=PASSAGES))


def test_relevancy_faithfulness_and_hallucination_ask_three_different_questions_in_all() -> None:
    replies = {
        "statements": judge_replies("yes"),
        "claims": verdicts("supported"),
        "agreements": verdicts("yes", "yes", "yes"),
    }
    judge = ScriptedJudge(replies)
    case = seen("text", retrieval_context=PASSAGES)

    async def all_three() -> None:
        with judge_session(session_of(judge)):
            await asyncio.gather(*(each(case) for each in (AnswerRelevancy(), Faithfulness(), Hallucination())))

    asyncio.run(all_three())
    assert len({prompt_of(question) for question in judge.asked}) == 3
    assert sorted(judge.kinds) == ["agreements", "claims", "statements", "statements"]
