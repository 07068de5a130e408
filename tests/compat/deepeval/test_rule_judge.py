"""Hallucination with the rule-based judge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from scripted_judge import session_of

from proctor.base.json_data import UNSET
from proctor.cases.suite import NamedData
from proctor.compat.deepeval.evaluators import Hallucination
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.judging.session import judge_session

QUESTION = "When does the Harbour Museum open, and what does a ticket cost?"
PASSAGES = (
    "The Harbour Museum opens at 9 am. It is closed on Mondays.",
    "A ticket costs 12 euros; children under six enter free.",
    "The city's bakery guild was founded in 1883.",
)
RIGHT = "The Harbour Museum opens at 9 am and a ticket costs 12 euros."


def make_evaluable(output: Any, expectation: Any = UNSET, question: str = QUESTION, **more: Any) -> Evaluable:
    more.setdefault("retrieval_context", PASSAGES)
    given = [NamedData("input", question)]
    return Evaluable(eval_input=given, eval_output=[NamedData("output", output)], expectation=expectation, **more)


def judged(evaluator: Any, evaluable: Evaluable) -> Evaluation:
    with judge_session(session_of("rules")):
        evaluation = asyncio.run(evaluator(evaluable))
    assert isinstance(evaluation, Evaluation)
    return evaluation


def test_hallucination_names_the_passage_that_is_contradicted_and_no_other() -> None:
    assert judged(Hallucination(), make_evaluable(RIGHT)).score == 1
    wrong = judged(Hallucination(), make_evaluable("A ticket costs 30 euros."))
    assert wrong.score == pytest.approx(2 / 3)
    assert [item["verdict"] for item in wrong.details["findings"]] == ["agrees", "contradicts", "agrees"]
