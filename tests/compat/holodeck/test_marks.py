"""Evaluators whose judge gives a mark on a scale."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, judged, seen

from proctor.base.errors import JudgeFailed
from proctor.compat.holodeck.marks import Coherence, Fluency, Groundedness, Relevance
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.marks import MarkEvaluator

ALL = [Groundedness, Relevance, Coherence, Fluency]


def mark_reply(mark: float) -> dict[str, Any]:
    return {kind.kind: {"reason": "so", "mark": mark} for kind in ALL}


@pytest.mark.parametrize("kind", ALL)
def test_a_mark_is_scored_as_its_share_of_the_top_mark(kind: type[MarkEvaluator]) -> None:
    evaluation = judged(kind(), seen("x", retrieval_context=("p",)), mark_reply(4))
    assert (evaluation.score, evaluation.reasoning) == (0.8, "so")
    assert evaluation.details["mark"] == 4


def test_a_wider_scale_is_what_the_judge_is_asked_for() -> None:
    judge = ScriptedJudge(mark_reply(7))
    assert judged(Fluency(scale=10), seen("x"), judge).score == 0.7
    assert "from 1 to 10" in judge.asked[0].instructions


@pytest.mark.parametrize("mark", [0, 6, float("nan")])
def test_a_mark_off_the_scale_is_not_a_verdict(mark: float) -> None:
    with pytest.raises(JudgeFailed):
        judged(Coherence(), seen("x"), mark_reply(mark))


def test_only_grounds_need_passages() -> None:
    with pytest.raises(NothingToCompare, match="passages"):
        judged(Groundedness(), seen("x"), mark_reply(3))
    judge = ScriptedJudge(mark_reply(3))
    judged(Groundedness(), seen("x", "q", context=("fact",)), judge)
    assert judge.asked[0].material == {"question": "q", "passage": ["fact"], "answer": "x"}


def test_an_empty_answer_is_worth_nothing_and_costs_nothing() -> None:
    judge = ScriptedJudge()
    assert judged(Relevance(), seen(" "), judge).score == 0.0
    assert judge.asked == []


def test_a_custom_prompt_replaces_what_is_asked_and_values_stay_material() -> None:
    judge = ScriptedJudge(mark_reply(5))
    evaluator = Fluency(custom_prompt="Does {{ response }} rhyme, as {ground_truth} does? Answer {braces}.")
    judged(evaluator, seen("roses", "q", "violets"), judge)
    [question] = judge.asked
    assert question.instructions.startswith(
        "Does (the answer in the material) rhyme, as (the reference in the material) does? Answer {braces}."
    )
    assert "from 1 to 5" in question.instructions
    assert question.material == {"question": "q", "reference": "violets", "answer": "roses"}


def test_a_custom_prompt_that_names_what_is_missing_skips_the_case() -> None:
    with pytest.raises(NothingToCompare):
        judged(Fluency(custom_prompt="Like {reference}?"), seen("x"), mark_reply(5))


@pytest.mark.parametrize("arguments", [{"scale": 1}, {"scale": True}, {"scale": 2.5}, {"custom_prompt": " "}])
def test_what_cannot_be_meant_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        Coherence(**arguments)


def test_the_arguments_of_a_holodeck_file_fit() -> None:
    assert Fluency(model={"provider": "ollama", "name": "m"}, scale=10, custom_prompt="x").scale == 10


@given(st.integers(2, 100), st.data())
def test_every_mark_on_every_scale_is_a_score_and_the_top_mark_is_full(scale: int, data: st.DataObject) -> None:
    mark = data.draw(st.integers(1, scale))
    score = judged(Coherence(scale=scale), seen("x"), mark_reply(mark)).score
    assert 0 < score <= 1
    assert (score == 1) == (mark == scale)
