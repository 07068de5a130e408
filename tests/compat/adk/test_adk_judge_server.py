"""Judged metrics of an EvalSet from start to end: files, a model server that answers every question in full, scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adk_documents as docs
import pytest
from judge_server import JudgeServer, ModelRequest, judge_server

from proctor.agents.reply import Reply, ToolCall
from proctor.compat.adk import AgentEvaluationFailed, AgentEvaluator

ANSWER = "Parcel 7 is in Utrecht. It will arrive on Mars. Have a nice day!"
LABELS = {"Parcel 7 is in Utrecht.": "supported", "It will arrive on Mars.": "unsupported"}
RUBRICS = [
    {"rubric_id": "city", "rubric_content": {"text_property": "It names the city."}},
    {"rubric_id": "date", "rubric_content": {"text_property": "It names the day."}},
]
MET = {"It names the city."}


class Script:
    """Says what a careful model would say: a label for each sentence, a verdict for each rubric."""

    def __call__(self, request: ModelRequest) -> Any:
        if "Label each sentence" in request.system:
            sentences = re.findall(
                r"Parcel 7 is in Utrecht\.|It will arrive on Mars\.|Have a nice day!", request.prompt
            )
            return {"verdicts": list(self.labels(sentences))}
        asked = re.findall(r"^(\d+)\. (.+)$", request.system, re.MULTILINE)
        return {"verdicts": [self.verdict(int(number), text) for number, text in asked]}

    def labels(self, sentences: list[str]) -> Iterator[dict[str, Any]]:
        for number, sentence in enumerate(dict.fromkeys(sentences), 1):
            yield {"number": number, "reason": f"about {sentence}", "label": LABELS.get(sentence, "not_applicable")}

    def verdict(self, number: int, text: str) -> dict[str, Any]:
        met = any(rubric in text for rubric in MET)
        return {"number": number, "reason": f"looked at {text}", "verdict": "yes" if met else "no"}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server(Script()) as running:
        yield running


def evaluate(folder: Path, server: JudgeServer, criteria: Any, *turns: Any, **case: Any) -> dict[str, Any]:
    """The scores of one case by metric."""
    turns = turns or (docs.turn(),)
    (folder / "parcels.test.json").write_text(json.dumps(docs.eval_set(docs.case("a", *turns, **case))))
    (folder / "test_config.json").write_text(json.dumps({"criteria": criteria}))
    reply = Reply(ANSWER, (ToolCall("track", {"parcel": 7}, {"city": "Utrecht"}),))
    judge = {"model": "openai:small", "base_url": server.url}
    try:
        run = AgentEvaluator.evaluate_sync(lambda question: reply, folder, 1, judge=judge)
    except AgentEvaluationFailed as failed:
        run = failed.run
    scores: dict[str, Any] = {}
    for trial in run.trials:
        for score in trial.scores:
            scores.setdefault(score.evaluator, []).append(score)
    return scores


def test_each_sentence_is_labelled_and_the_score_is_the_share_that_is_grounded(
    tmp_path: Path, server: JudgeServer
) -> None:
    [score] = evaluate(tmp_path, server, {"hallucinations_v1": 0.8})["hallucinations_v1"]
    assert (score.outcome.value, score.value) == ("failed", pytest.approx(2 / 3))
    assert [(item["sentence"], item["label"]) for item in score.details["sentences"]] == [
        ("Parcel 7 is in Utrecht.", "supported"),
        ("It will arrive on Mars.", "unsupported"),
        ("Have a nice day!", "not_applicable"),
    ]
    assert "unsupported: It will arrive on Mars." in score.reasoning


@pytest.mark.parametrize("metric", ["rubric_based_final_response_quality_v1", "rubric_based_tool_use_quality_v1"])
def test_each_rubric_is_judged_and_the_score_is_the_share_that_is_met(
    tmp_path: Path, server: JudgeServer, metric: str
) -> None:
    [score] = evaluate(tmp_path, server, {metric: {"threshold": 0.5, "rubrics": RUBRICS}})[metric]
    assert (score.outcome.value, score.value) == ("passed", 0.5)
    assert [(item["id"], item["met"]) for item in score.details["rubrics"]] == [("city", True), ("date", False)]
    assert score.reasoning.startswith("not met: date")


def test_rubrics_of_each_turn_are_judged_with_their_turn(tmp_path: Path, server: JudgeServer) -> None:
    metric = "rubric_based_final_response_quality_v1"
    turns = [docs.turn(f"Question {number}?", rubrics=[rubric]) for number, rubric in enumerate(RUBRICS)]
    scores = evaluate(tmp_path, server, {metric: 0.5}, *turns)[metric]
    assert [score.value for score in scores] == [1.0, 0.0]


def test_the_whole_conversation_is_judged_once(tmp_path: Path, server: JudgeServer) -> None:
    metric = "rubric_based_multi_turn_trajectory_quality_v1"
    turns = [docs.turn("Question 1?"), docs.turn("Question 2?")]
    scores = evaluate(tmp_path, server, {metric: 0.5}, *turns, rubrics=RUBRICS)[metric]
    assert [(score.turn, score.value) for score in scores] == [(None, 0.5)]


def test_a_judge_that_leaves_a_rubric_out_gives_no_score(tmp_path: Path, server: JudgeServer) -> None:
    """adk-python takes the mean of the rubrics that were answered, so one of two is a pass."""
    server.script = lambda request: {"verdicts": [Script().verdict(1, "It names the city.")]}
    metric = "rubric_based_final_response_quality_v1"
    [score] = evaluate(tmp_path, server, {metric: {"threshold": 0.5, "rubrics": RUBRICS}})[metric]
    assert (score.outcome.value, score.value) == ("error", None)
